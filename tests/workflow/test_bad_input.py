"""Bad input is refused in words before anything is trained, and leaves nothing half-written."""

import pytest


def trained(checkout):
    return list((checkout.folder / "results").rglob("policy.safetensors"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "old, new, message",
    [
        ("budget: 1000", "bugdet: 1000", "algorithms.ppo.bugdet: unknown key; did you mean 'budget'?"),
        ("seeds: 0-2", "seeds: [0, 1, 1]", "seeds [1] appear more than once"),
        ("pilot_seeds: [1000]", "pilot_seeds: [2]", "seeds [2] are pilot_seeds too"),
        ("algorithm: ppo", "algorithm: pqo", "There is no algorithm 'pqo'"),
        (
            "{hidden: [16]}}\n  dqn",
            "{learning_rate: -1}}\n  dqn",
            "learning_rate: Input should be greater than 0",
        ),
        ("{hidden: [16]}}\n  dqn", "{hiden: [16]}}\n  dqn", "hiden: Unexpected keyword argument"),
        ("preset: tiny", "preset: huge", "MockInterview has no preset 'huge'"),
        ("budget: 1000", "budget: 1001", "a budget of 1001 steps is not a positive multiple of"),
        ("[return, post", "[retrun, post", "no metric retrun in the metric sets"),
        (
            "test: {episodes: 8}",
            "test: {episodes: 2, reset_seeds: [4, 5]}",
            "evaluation.test.reset_seeds and evaluation.curve.reset_seeds share [5]",
        ),
        ("  random:", "  ../random:", "'../random' cannot be a label"),
    ],
)
def test_bad_study(checkout, old, new, message):
    path = checkout.folder / "studies/small.yaml"
    text = path.read_text()
    assert old in text
    if "reset_seeds" in new:
        text = text.replace("episodes: 4}", "episodes: 2, reset_seeds: [5, 6]}")
    path.write_text(text.replace(old, new))
    run = checkout.snakemake()
    assert run.returncode != 0
    assert message in run.stdout
    assert "studies/small.yaml" in run.stdout
    assert "Traceback" not in run.stdout
    assert trained(checkout) == []


def test_unknown_configuration_key(checkout):
    checkout.configure("seed_per_job: 3")
    run = checkout.snakemake()
    assert run.returncode != 0
    assert (
        "config.yaml is not valid:\n  seed_per_job: unknown key; did you mean 'seeds_per_job'?" in run.stdout
    )


def test_missing_study(checkout):
    (checkout.folder / "studies/small.yaml").unlink()
    run = checkout.snakemake()
    assert run.returncode != 0
    assert "studies/small.yaml does not exist" in run.stdout


@pytest.mark.slow
def test_truncated_table_is_named_and_nothing_after_it_is_written(copy_of_finished):
    episodes = copy_of_finished.folder / "results/small/tiny/ppo/seeds-0-2/episodes.parquet"
    episodes.write_bytes(episodes.read_bytes()[:-100])
    scores = episodes.with_name("scores.parquet")
    before = scores.read_bytes()
    run = copy_of_finished.snakemake("report")
    assert run.returncode != 0
    assert "episodes.parquet is damaged or not Parquet" in run.stdout
    assert "Delete it" in run.stdout
    assert not scores.exists() or scores.read_bytes() == before
    episodes.unlink()
    again = copy_of_finished.snakemake()
    assert again.returncode == 0, again.stdout
    assert scores.read_bytes() == before


def test_missing_result_is_named_where_nothing_may_be_trained(copy_of_finished):
    (copy_of_finished.folder / "results/small/tiny/ppo/seeds-0-2/episodes.parquet").unlink()
    (copy_of_finished.folder / "results/small/statistics/summary.parquet").unlink()
    (copy_of_finished.folder / "results/report/paper.md").unlink()
    run = copy_of_finished.snakemake("report")
    assert run.returncode != 0
    assert "results/small/tiny/ppo/seeds-0-2/episodes.parquet" in run.stdout


def test_unwritable_results(checkout):
    """A file where the folder of results should be stops root as well."""
    (checkout.folder / "results/README.md").unlink()
    (checkout.folder / "results").rmdir()
    (checkout.folder / "results").write_text("not a folder")
    run = checkout.snakemake()
    assert run.returncode != 0
    assert "results" in run.stdout


def test_results_of_other_settings_are_not_reported(copy_of_finished):
    """A study changed after its runs must not be reported with them."""
    study = copy_of_finished.folder / "results/small/study.json"
    study.write_text(study.read_text().replace('"budget": 1000', '"budget": 9000'))
    run = copy_of_finished.snakemake("report")
    assert run.returncode != 0
    assert "was made under other settings than the study's now (algorithm)" in run.stdout

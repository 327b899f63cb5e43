"""The same study gives the same results: in other blocks, in another folder, and from the results alone."""

import subprocess

import pandas as pd
import pytest


def test_checksums_hold_and_list_everything_made(finished):
    check = subprocess.run(
        ["sha256sum", "-c", "--strict", "--quiet", "results/provenance/checksums.sha256"], cwd=finished.folder
    )
    assert check.returncode == 0
    listed = {line.split("  ", 1)[1] for line in _lines(finished, "checksums.sha256")}
    own = {f"results/provenance/{name}.sha256" for name in ("checksums", "deterministic")}
    made = {
        name
        for name in finished.files()
        if not name.startswith("results/logs/") and name != "results/README.md" and name not in own
    }
    assert listed == made


@pytest.mark.slow
def test_deterministic_files_are_equal_in_another_checkout(finished, checkout):
    run = checkout.snakemake()
    assert run.returncode == 0, run.stdout
    one, other = (_lines(place, "deterministic.sha256") for place in (finished, checkout))
    assert one == other
    assert any("policy.safetensors" in line for line in one)
    assert any("figures/" in line for line in one)
    assert not any("run.json" in line for line in one)


@pytest.mark.slow
def test_scores_are_equal_for_any_division_into_jobs(finished, copy_of_finished):
    copy_of_finished.configure("seeds_per_job: 1")
    run = copy_of_finished.snakemake("small_scores")
    assert run.returncode == 0, run.stdout
    assert "train" in run.stdout
    name = "results/small/scores.parquet"
    assert (finished.folder / name).read_bytes() == (copy_of_finished.folder / name).read_bytes()


@pytest.mark.slow
def test_report_rebuilt_from_the_same_results_has_the_same_bytes(finished, copy_of_finished):
    folder = copy_of_finished.folder / "results"
    for part in ("report", "small/figures", "small/tables", "small/statistics"):
        for path in (folder / part).iterdir():
            path.unlink()
    run = copy_of_finished.snakemake("report")
    assert run.returncode == 0, run.stdout
    assert "rule train" not in run.stdout
    before, after = (
        {name: content for name, content in place.files().items() if "/logs/" not in name}
        for place in (finished, copy_of_finished)
    )
    assert [name for name in before if before[name] != after.get(name)] == []


def test_all_items_of_the_checklist_are_ticked(finished):
    page = (finished.folder / "results/provenance/checklist.md").read_text()
    assert page.count("- [x]") == 7
    assert "- [ ]" not in page


def test_every_job_can_be_repeated_from_its_log(copy_of_finished):
    log = copy_of_finished.folder / "results/logs/small/tiny/random/seeds-0-2/evaluate.log"
    first = log.read_text().splitlines()[0]
    assert first.startswith("$ python workflow_scripts/evaluate.py")
    table = copy_of_finished.folder / "results/small/tiny/random/seeds-0-2/episodes.parquet"
    before = table.read_bytes()
    subprocess.run(
        first[2:], shell=True, check=True, cwd=copy_of_finished.folder, env=copy_of_finished.environment
    )
    assert table.read_bytes() == before


def test_episode_and_score_tables_agree(finished):
    scores = pd.read_parquet(finished.folder / "results/small/scores.parquet")
    for algorithm in ("ppo", "random"):
        episodes = pd.read_parquet(
            finished.folder / f"results/small/tiny/{algorithm}/seeds-0-2/episodes.parquet"
        )
        mean = episodes[episodes.policy_mode == "sampled"].groupby("seed")["return"].mean()
        rows = scores[
            (scores.algorithm == algorithm) & (scores.policy_mode == "sampled") & (scores.metric == "return")
        ]
        assert rows.set_index("seed")["value"].to_dict() == pytest.approx(mean.to_dict(), abs=1e-12)


def _lines(checkout, name):
    return (checkout.folder / "results/provenance" / name).read_text().splitlines()

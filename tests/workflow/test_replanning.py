"""Content decides what reruns: an edit reruns what it takes part in, a touch reruns nothing."""

import pytest

TRAINING = {"train ppo", "train dqn", "train rule_based", "train random"}


def test_finished_run_has_nothing_to_do(finished):
    assert finished.planned() == set()


def test_touching_files_replans_nothing(copy_of_finished):
    for pattern in ("src/**/*.py", "workflow_scripts/*.py", "rules/*", "results/**/*", "studies/*", "*.yaml"):
        for path in copy_of_finished.folder.glob(pattern):
            path.touch()
    assert copy_of_finished.planned() == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "file, expected",
    [
        ("src/seedbed/algorithms/ppo.py", {"train ppo"}),
        ("src/seedbed/algorithms/dqn.py", {"train dqn"}),
        ("src/seedbed/environments/interview.py", TRAINING),
        ("src/seedbed/statistics/paired.py", set()),
    ],
)
def test_editing_a_module_replans_what_it_takes_part_in(copy_of_finished, file, expected):
    path = copy_of_finished.folder / file
    original = path.read_text()
    path.write_text(original + "\n# edited\n")
    planned = copy_of_finished.planned()
    assert {job for job in planned if job.startswith("train ")} == expected
    assert "analyse" in planned
    assert "render" in planned
    path.write_text(original)
    assert not {job for job in copy_of_finished.planned() if job.startswith(("train", "evaluate", "analyse"))}


def test_changed_key_replans_what_reads_it(copy_of_finished):
    study = copy_of_finished.folder / "studies/small.yaml"
    study.write_text(study.read_text().replace("budget: 600", "budget: 700"))
    planned = copy_of_finished.planned()
    assert {job for job in planned if job.startswith("train")} == {"train dqn"}
    text = study.read_text().replace("budget: 700", "budget: 600")
    study.write_text(text.replace("title: A small", "title: The small"))
    planned = copy_of_finished.planned()
    assert not {job for job in planned if job.startswith(("train", "evaluate"))}
    assert "resolve_study" in planned


def test_report_target_trains_nothing_even_after_an_edit(copy_of_finished):
    path = copy_of_finished.folder / "src/seedbed/environments/interview.py"
    path.write_text(path.read_text() + "\n# edited\n")
    planned = copy_of_finished.planned("report")
    assert not {job for job in planned if job.startswith(("train", "evaluate", "measure"))}

"""What a job is told of the files that its algorithm reads."""

import pytest

from seedbed.artifacts import ArtifactError, sha256, write_json
from seedbed.layout import BLOCK, blocks, forecast_files
from seedbed.settings import check_files, check_runs, evaluation_settings, training_settings
from seedbed.study import Study

CELL = ("here", "net")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        (tmp_path / f"net-{seed}.onnx").write_text(f"network {seed}")
    return Study.model_validate(
        {
            "name": "small",
            "title": "Small",
            "question": "Which?",
            "environments": {"here": {"environment": "CartPole"}},
            "algorithms": {
                "net": {"algorithm": "policy_file", "arguments": {"path": "net-{seed}.onnx"}},
                "random": {"algorithm": "random"},
                "rule": {"algorithm": "function", "arguments": {"function": "json:loads"}},
            },
            "seeds": "0-1",
            "evaluation": {"curve": {"every": 100, "episodes": 2}, "test": {"episodes": 3}},
            "statistics": {"primary": {"here": "return"}, "baseline": "random"},
        }
    )


def test_files_are_told_by_checksum_to_training_alone(study, tmp_path):
    settings = training_settings(study, *CELL, "seeds-0-1", [0, 1])
    assert settings["files"] == {f"net-{seed}.onnx": sha256(f"net-{seed}.onnx") for seed in (0, 1)}
    assert "files" not in training_settings(study, "here", "random", "seeds-0-1", [0, 1])
    assert "files" not in evaluation_settings(study, *CELL, "seeds-0-1", [0, 1])
    check_files(settings)
    (tmp_path / "net-1.onnx").write_text("another network")
    with pytest.raises(ArtifactError, match=r"net-1.onnx changed between planning and start"):
        check_files(settings)
    assert training_settings(study, *CELL, "seed-0", [0])["files"] == {"net-0.onnx": sha256("net-0.onnx")}


def test_modules_that_arguments_name_are_the_algorithms_own(study):
    assert study.modules("rule", "here") == ["seedbed.algorithms.function_policy:Function", "json:loads"]
    assert study.modules("random", "here") == ["seedbed.algorithms.uniform_random:UniformRandom"]


def test_a_report_needs_no_file_any_more_but_refuses_a_changed_one(study, tmp_path):
    divided = blocks(study, 2)
    for algorithm in study.algorithms:
        folder = BLOCK.format(study="small", environment="here", algorithm=algorithm, block="seeds-0-1")
        for name, settings in (("run", training_settings), ("evaluation", evaluation_settings)):
            configuration = settings(study, "here", algorithm, "seeds-0-1", [0, 1])
            write_json(f"{folder}/{name}.json", {"configuration": configuration})
    check_runs(study, divided)
    (tmp_path / "net-1.onnx").unlink()
    check_runs(study, divided)
    (tmp_path / "net-1.onnx").write_text("another network")
    with pytest.raises(ArtifactError, match=r"other settings than the study's now \(files\)"):
        check_runs(study, divided)


def test_step_tables_are_read_for_forecasts_only_with_the_metrics_of_models(study):
    divided = {"here": {"random": {"seeds-0-1": [0, 1]}}}
    assert forecast_files(study, divided) == []
    modelled = study.model_copy(update={"metrics": ["episodes", "model"]})
    assert forecast_files(modelled, divided) == ["results/small/here/random/seeds-0-1/steps.parquet"]

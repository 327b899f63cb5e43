"""Every block of docs/bring-your-own.md is run, as somebody who copies it would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seedbed.evaluation import evaluate
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, load, make
from seedbed.resolution import resolve
from seedbed.seeding import Purpose
from seedbed.study_files import load_study
from seedbed.training import CurvePlan, train

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/bring-your-own.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
STUDIES = [Path(name).stem for kind, name, _ in BLOCKS if kind == "yaml"]


def test_the_page_is_short_and_every_block_has_a_name():
    assert len(PAGE.splitlines()) < 150
    assert PAGE.count("\n```") == 2 * len(BLOCKS)
    assert {kind for kind, _, _ in BLOCKS} == {"python", "yaml"}
    for identifier in ("CartPole-v1", "Acrobot-v1", "LunarLander-v3", "MountainCarContinuous-v0"):
        assert f"id: {identifier}" in PAGE


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with all files of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for _, name, text in BLOCKS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    yield tmp_path
    for name in (Path(name).stem for _, name, _ in BLOCKS):
        sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_the_page(name, project):
    if (project / f"{name}_export.py").exists():
        environment = os.environ | {"PYTHONPATH": str(project)}
        subprocess.run(
            [sys.executable, f"{name}_export.py"], check=True, env=environment, capture_output=True
        )
    study = load_study(f"studies/{name}.yaml", "smoke")
    load_study(f"studies/{name}.yaml", "quick")
    resolve(study, 2)
    [(label, place)] = study.environments.items()
    environment = make(place.environment, place.arguments, ENVIRONMENTS, "environment")
    for algorithm, entry in study.algorithms_in(label).items():
        learner = make(entry.algorithm, study.arguments(algorithm, label), ALGORITHMS, "algorithm")
        curve = CurvePlan(study.evaluation.curve.every, 1, 1)
        run = train(learner, environment, study.seeds, entry.budget, curve)
        run.policy.save("policy.safetensors")
        policy = load(entry.algorithm, ALGORITHMS, "algorithm").policy_class.load(
            "policy.safetensors", environment
        )
        for mode in policy.modes:
            episodes = min(2, study.evaluation.test.episodes)
            table = evaluate(policy.in_mode(mode), environment, Purpose.TEST, episodes, lanes=2).episodes
            assert len(table) == episodes * len(study.seeds)
        if entry.budget:
            assert run.curve.steps.max() == entry.budget

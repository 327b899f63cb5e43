"""The study of docs/generalization.md is run, as somebody who copies it would."""

import re
import sys
from pathlib import Path

import pytest

from seedbed.evaluation import evaluate
from seedbed.metrics.base import load_metrics, score
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, load, make
from seedbed.resolution import resolve
from seedbed.seeding import Purpose
from seedbed.study_files import load_study
from seedbed.training import CurvePlan, train

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/generalization.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The page's study, beside its files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for _, name, text in BLOCKS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    load_study("studies/worlds.yaml", "quick")
    yield load_study("studies/worlds.yaml", "smoke")
    sys.modules.pop("sticks", None)


def test_the_page_is_short_and_has_these_files():
    assert len(PAGE.splitlines()) < 100
    assert [name for _, name, _ in BLOCKS] == ["studies/worlds.yaml", "sticks.py"]
    assert PAGE.count("\n```") == 2 * len(BLOCKS)


def test_modules_of_the_study_are_found(study):
    modules = study.environments["sticks"].modules
    assert {"sticks:Stick", "sticks:even"} <= set(modules)


@pytest.mark.parametrize("preset", ["smoke", "quick", "paper"])
def test_the_shipped_study_trains_on_1_5_25_and_fresh_environments(preset):
    shipped = load_study(ROOT / "studies/generalization.yaml", preset)
    resolve(shipped, 4)
    arguments = [place.arguments for place in shipped.environments.values()]
    assert [given.pop("train") for given in arguments] == [1, 5, 25, None]
    assert all(given == arguments[0] for given in arguments)


@pytest.mark.slow
@pytest.mark.parametrize("label", ["lander", "sticks"])
def test_from_training_to_the_gap(label, study):
    resolve(study, 2)
    place, metrics = study.environments[label], load_metrics(study.metrics)
    environment = make(place.environment, place.arguments, ENVIRONMENTS, "environment")
    for algorithm, entry in study.algorithms_in(label).items():
        learner = make(entry.algorithm, entry.arguments, ALGORITHMS, "algorithm")
        curve = CurvePlan(study.evaluation.curve.every, study.evaluation.curve.episodes, 2)
        run = train(learner, environment, study.seeds, entry.budget, curve)
        run.policy.save("policy.safetensors")
        policy = load(entry.algorithm, ALGORITHMS, "algorithm").policy_class.load(
            "policy.safetensors", environment
        )
        if entry.budget:
            assert set(run.episodes["final_training_environment"]) <= set(range(5))
            assert run.episodes["final_parameter_" + sorted(environment.parameters)[0]].nunique() > 1
        tables = [
            evaluate(policy, environment, Purpose.TEST, study.evaluation.test.episodes, lanes=lanes).episodes
            for lanes in (1, 3)
        ]
        assert tables[0].equals(tables[1])
        scores = score(
            "worlds", label, algorithm, tables[0], None, metrics.values(), horizon=environment.spec.horizon
        )
        assert (scores["status"] == "ok").all()
        wide = scores.pivot(index="seed", columns="metric", values="value")
        assert wide.index.tolist() == study.seeds
        seen = tables[0]["episode"] % 2 == 0
        means = tables[0].groupby(["seed", seen])["return"].mean().unstack()
        assert wide["return_gap"].to_numpy() == pytest.approx((means[True] - means[False]).to_numpy())

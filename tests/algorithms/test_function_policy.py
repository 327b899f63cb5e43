"""A plain function as a policy."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from seedbed.algorithms.function_policy import Function, FunctionPolicy
from seedbed.algorithms.row_policy import PolicyError
from seedbed.artifacts import ArtifactError, SeedbedError
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.environments.interview import MockInterview
from seedbed.evaluation import evaluate
from seedbed.registry import ALGORITHMS, make
from seedbed.seeding import Purpose
from seedbed.training import CurvePlan, train


@pytest.fixture(autouse=True)
def agents(monkeypatch):
    """The module foreign_agents, as a study would find it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def function(name, **arguments):
    return make("function", {"function": f"foreign_agents:{name}"} | arguments, ALGORITHMS, "algorithm")


def test_a_function_acts_as_it_says_for_any_number_of_lanes(tmp_path):
    pole = GymnasiumEnvironment("CartPole-v1")
    run = train(function("toward"), pole, [3, 4], 0, CurvePlan(1, 2, 2))
    assert len(run.curve) == 4
    run.policy.save(tmp_path / "policy.safetensors")
    policy = FunctionPolicy.load(tmp_path / "policy.safetensors", pole)
    tables = [evaluate(policy, pole, Purpose.TEST, 8, lanes=lanes, log_steps=True) for lanes in (1, 2, 3, 8)]
    assert all(tables[0].steps.equals(other.steps) for other in tables[1:])
    observation = np.random.default_rng(0).normal(size=(2, 50, 4)).astype(np.float32)
    action, _ = policy.act(observation, None, np.zeros((2, 50, 0)), None, np.ones((2, 50), bool))
    assert np.array_equal(action, observation[..., 2] > 0)
    one = policy.probabilities(observation, None, None, np.ones((2, 50), bool))
    assert np.array_equal(one.argmax(-1), action)


def test_array_actions():
    car = GymnasiumEnvironment("MountainCarContinuous-v0")
    algorithm = function("swing")
    algorithm.check(car, [0], 0)
    run = train(algorithm, car, [0], 0, None)
    table = evaluate(run.policy, car, Purpose.TEST, 2, lanes=2).episodes
    assert table.terminated.all(), "pumping energy drives the car up"


def test_masked_and_sampled_functions_get_what_they_ask_for():
    tutor = MockInterview(preset="tiny")
    algorithm = function("drawn", masked=True, sampled=True)
    algorithm.check(tutor, [0], 0)
    policy = train(algorithm, tutor, [0, 1], 0, None).policy
    assert policy.modes == ("sampled",)
    assert policy.uniforms == 1
    tables = [evaluate(policy, tutor, Purpose.TEST, 4, lanes=n, log_steps=True).steps for n in (1, 3)]
    assert tables[0].equals(tables[1])
    assert tables[0].action.nunique() > 2


@pytest.mark.parametrize(
    "name, message",
    [
        ("two", r"seed 7: an action of the shape \(2,\) was given; it takes one whole number"),
        ("half", "seed 7: the action 0.5 is of type float64, not a whole number"),
        ("nan", r"seed 7: an action of the shape \(1,\)"),
        ("far", "seed 7: the action 7 is not between 0 and 1"),
        ("nothing", "seed 7: the action None is not a number"),
        ("failing", "seed 7: foreign_agents:failing raised KeyError: 'weights'"),
        ("counting", "seed 7: the same observation gave . and then .. Acting must not draw"),
    ],
)
def test_bad_actions_are_found_before_training(name, message):
    with pytest.raises(PolicyError, match=message):
        function(name).check(GymnasiumEnvironment("CartPole-v1"), [7], 0)


def test_nan_in_an_array_action():
    with pytest.raises(PolicyError, match=r"seed 2: the action \[nan\] is not finite"):
        function("nan").check(GymnasiumEnvironment("MountainCarContinuous-v0"), [2], 0)


@pytest.mark.parametrize(
    "name, message",
    [
        ("foreign_agents:nowhere", "the module 'foreign_agents' has nothing called 'nowhere'"),
        ("no_such_module:f", "'no_such_module' cannot be imported: ModuleNotFoundError"),
        ("foreign_agents:NOT_A_FUNCTION", "is no function"),
        ("foreign_agents:LinearSarsa", "is no function"),
        ("foreign_agents", "is not of the form package.module:name"),
    ],
)
def test_what_is_no_function_is_refused(name, message):
    with pytest.raises(SeedbedError, match=message):
        make("function", {"function": name}, ALGORITHMS, "algorithm")


def test_a_forbidden_action_is_refused(tmp_path):
    tutor = MockInterview(preset="tiny")
    state = tutor.initial(tutor.draw(np.random.default_rng(0))[0])
    forbidden = int(np.argmin(tutor.action_mask(state)))
    (tmp_path / "stubborn.py").write_text(f"def act(observation):\n    return {forbidden}\n")
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    try:
        with pytest.raises(PolicyError, match=f"the action {forbidden} is not allowed now; allowed are"):
            Function("stubborn:act").check(tutor, [0], 0)
    finally:
        sys.path.remove(str(tmp_path))


def test_a_function_that_is_gone_is_named(tmp_path):
    pole = GymnasiumEnvironment("CartPole-v1")
    policy = train(function("toward"), pole, [0], 0, None).policy
    policy.options["function"] = "foreign_agents:renamed"
    policy.save(tmp_path / "policy.safetensors")
    with pytest.raises(ArtifactError, match="has nothing called 'renamed'"):
        FunctionPolicy.load(tmp_path / "policy.safetensors", pole)

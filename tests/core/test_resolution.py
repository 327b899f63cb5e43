"""Resolution: what a study names is tried before anything is trained."""

import json
import random

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from seedbed.environments.external import GymnasiumEnvironment
from seedbed.registry import mentioned
from seedbed.resolution import resolve
from seedbed.study import Study
from seedbed.study_files import StudyError


class Unseeded(gymnasium.Env):
    """Its observations come from a global generator."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.array([random.random()], np.float32), {}

    def step(self, action):
        return np.array([random.random()], np.float32), 0.0, False, True, {}


class Failing(Unseeded):
    def step(self, action):
        raise RuntimeError("no licence found")


def study(environment, arguments, algorithm=None):
    return Study.model_validate(
        {
            "name": "small",
            "title": "Small",
            "question": "Which is better?",
            "environments": {"here": {"environment": environment, "arguments": arguments}},
            "algorithms": {"first": algorithm or {"algorithm": "random"}},
            "seeds": "0-3",
            "evaluation": {"curve": {"every": 100, "episodes": 2}, "test": {"episodes": 3}},
            "statistics": {"primary": {"here": "return"}, "baseline": "first"},
        }
    )


def resolved(*arguments):
    return resolve(study(*arguments), 2)["environments"]["here"]


def test_gymnasium_environment_is_described():
    entry = resolved("Gymnasium", {"id": "Acrobot-v1"})
    assert entry == {
        "arguments": {"id": "Acrobot-v1"},
        "observation_shape": [6],
        "actions": 3,
        "horizon": 500,
        "success": "",
        "content": {},
        "warnings": [],
    }
    assert json.dumps(entry)
    assert resolved("CartPole", {})["warnings"] == []


def test_defaults_and_what_success_is_are_written_out():
    entry = resolved("GoalGrid", {"hold": 2})
    assert (entry["arguments"]["hold"], entry["arguments"]["goal_bonus"]) == (2, 5.0)
    assert entry["success"].startswith("the goal was held for as many steps as asked, at the step that ends")
    assert entry["success"].endswith("an episode cut by the step limit is none")


def test_ignored_seeds_are_a_warning():
    (warning,) = resolved("Gymnasium", {"id": f"{__name__}:Unseeded"})["warnings"]
    assert warning.startswith("Equal reset seeds and actions gave different episodes")
    (warning,) = resolved("GymnasiumVector", {"id": "CartPole-v1", "horizon": 500})["warnings"]
    assert "depends on the number of lanes" in warning


def test_environment_that_fails_is_found_before_training():
    with pytest.raises(StudyError, match=r"environments.here: a trial episode failed: RuntimeError: no lic"):
        resolved("Gymnasium", {"id": f"{__name__}:Failing"})


def test_array_actions_need_an_algorithm_that_gives_them():
    arguments = {"id": "MountainCarContinuous-v0"}
    assert resolved("Gymnasium", arguments)["actions"] == "1 real number"
    with pytest.raises(StudyError, match=r"algorithms.first \(in here\): ppo chooses one of several actions"):
        resolved("Gymnasium", arguments, {"algorithm": "ppo", "budget": 1000})


@pytest.mark.parametrize(
    "algorithm, message",
    [
        (
            {"algorithm": "policy_file", "arguments": {"path": "net-{seed}.onnx"}},
            r"algorithms.first \(in here\): The policy file net-0.onnx cannot be read: No such file",
        ),
        (
            {"algorithm": "policy_file", "arguments": {"path": "net.pkl"}},
            r"algorithms.first \(in here\): .*net.pkl: '.pkl' is no policy file",
        ),
        (
            {"algorithm": "function", "arguments": {"function": "json:dumps"}},
            r"algorithms.first \(in here\): The policy of seed 0: json:dumps raised TypeError",
        ),
        (
            {"algorithm": "sb3", "budget": 100, "arguments": {"model": "PPO"}},
            r"algorithms.first \(in here\): a budget of 100 steps is not a multiple of 2048",
        ),
        (
            {"algorithm": "agent", "budget": 100, "arguments": {"agent": "json:JSONDecoder"}},
            r"algorithms.first \(in here\): .*'json:JSONDecoder' lacks the methods act, learn, state",
        ),
    ],
)
def test_agents_from_elsewhere_are_tried_before_training(algorithm, message):
    with pytest.raises(StudyError, match=f"(?s){message}"):
        resolved("Gymnasium", {"id": "CartPole-v1"}, algorithm)


def test_modules_that_arguments_name_are_sources_too():
    arguments = {
        "id": f"{__name__}:Unseeded",
        "wrappers": ["gymnasium.wrappers:FlattenObservation", "no_such_package.module:Wrapper"],
        "kwargs": {"text": "note: colons are no modules", "more": {"deep": "json:Reader-v0"}},
    }
    expected = [f"{__name__}:Unseeded", "gymnasium.wrappers:FlattenObservation", "json:Reader-v0"]
    assert mentioned(arguments) == expected
    entry = study("Gymnasium", arguments).environments["here"]
    assert entry.modules == ["seedbed.environments.external:GymnasiumEnvironment", *expected]


def test_registered_name_is_the_class():
    assert GymnasiumEnvironment("CartPole-v1").spec.actions == 2


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"targets": {"a": {"algorithm": "ppo"}}}, r"off_policy\.targets\.a: 'ppo' learns"),
        ({"targets": {"a": {"algorithm": "planner_index"}}}, r"targets\.a: .* hidden state"),
        (
            {"behaviour": {"algorithm": "random", "arguments": {"x": 1}}},
            r"off_policy\.behaviour: .* refuses its arguments",
        ),
        (
            {"environment": {"environment": "MockInterview", "arguments": {"preset": "huge"}}},
            r"off_policy\.environment: .* no preset 'huge'",
        ),
        (
            {"environment": {"environment": "Gymnasium", "arguments": {"id": "Acrobot-v1"}}},
            r"off_policy\.environment: needs a pure environment",
        ),
        ({"environment": {"environment": "CartPole"}, "behaviour": {"algorithm": "rule_based"}}, "CartPole"),
    ],
)
def test_off_policy_evaluation_is_tried_before_anything_runs(part, words):
    section = {
        "environment": {"environment": "MockInterview", "arguments": {"preset": "tiny"}},
        "behaviour": {"algorithm": "random"},
        "targets": {"a": {"algorithm": "rule_based"}},
        "episodes": 5,
        "repetitions": 2,
        "truth_episodes": 5,
    }
    given = study("CartPole", {}).model_dump()
    good = Study.model_validate(given | {"off_policy": section})
    assert resolve(good, 2)["study"]["off_policy"]["targets"]["a"]["epsilon"] == 0
    bad = Study.model_validate(given | {"off_policy": section | part})
    with pytest.raises(StudyError, match=words):
        resolve(bad, 2)

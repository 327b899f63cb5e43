"""The loop adapter for agents that know one seed."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from seedbed.algorithms.row_policy import PolicyError
from seedbed.algorithms.single_seed import AgentPolicy
from seedbed.artifacts import SeedbedError
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


def agent(name, **fields):
    return make("agent", {"agent": f"foreign_agents:{name}"} | fields, ALGORITHMS, "algorithm")


@pytest.mark.parametrize(
    "environment",
    [GymnasiumEnvironment("CartPole-v1", horizon=40), MockInterview(preset="tiny")],
    ids=["plain", "masked"],
)
def test_bits_do_not_depend_on_block_or_evaluation(environment, tmp_path):
    algorithm = agent("LinearSarsa", lanes=2, arguments={"rate": 0.02})
    algorithm.check(environment, [0, 1], 300)
    before = np.random.get_state(legacy=False)["state"]["pos"]  # noqa: NPY002
    both = train(algorithm, environment, [0, 1], 300, CurvePlan(100, 2, 2))
    alone = train(algorithm, environment, [1], 300, None)
    assert np.random.get_state(legacy=False)["state"]["pos"] == before  # noqa: NPY002
    assert both.policy.states[1]["weights"].tobytes() == alone.policy.states[0]["weights"].tobytes()
    assert both.policy.states[0]["weights"].tobytes() != alone.policy.states[0]["weights"].tobytes()
    assert both.policy.states[0]["steps"] == 300
    assert sorted(both.curve.steps.unique()) == [0, 100, 200, 300]
    both.policy.save(tmp_path / "policy.safetensors")
    policy = AgentPolicy.load(tmp_path / "policy.safetensors", environment)
    assert policy.states[0]["steps"].shape == ()
    for mode in policy.modes:
        tables = [
            evaluate(policy.in_mode(mode), environment, Purpose.TEST, 8, lanes=n, log_steps=True).steps
            for n in (1, 2, 3, 8)
        ]
        assert all(tables[0].equals(other) for other in tables[1:])


def test_what_is_learnt_from_is_the_episode_itself():
    from foreign_agents import Witness

    Witness.told.clear()
    pole = GymnasiumEnvironment("CartPole-v1", horizon=5)
    run = train(agent("Witness"), pole, [4, 5], 40, None)
    first = [told for told in Witness.told if told[0] == 4]
    assert len(first) == 40
    for one, following in itertools.pairwise(first):
        _, _, action, reward, terminated, truncated, after = one
        assert (action, reward) == (0, 1.0)
        ended = terminated or truncated
        assert np.array_equal(following[1], after) == (not ended), "the next step begins where this one ended"
    lengths = run.episodes[run.episodes.seed == 4].length
    assert lengths.max() == 5
    assert sum(told[5] for told in first) == run.episodes[run.episodes.seed == 4].truncated.sum() > 0


def test_array_actions_and_several_uniforms():
    car = GymnasiumEnvironment("MountainCarContinuous-v0", horizon=20)
    algorithm = agent("Pusher")
    algorithm.check(car, [0], 40)
    run = train(algorithm, car, [0], 40, None)
    steps = evaluate(run.policy, car, Purpose.TEST, 3, lanes=3, log_steps=True).steps
    assert steps.action_0.std() > 0.1


@pytest.mark.parametrize(
    "name, message",
    [
        ("Forgetful", "'foreign_agents:Forgetful' lacks the methods state, restore"),
        ("toward", "is no class"),
        ("Nobody", "has nothing called 'Nobody'"),
    ],
)
def test_what_is_no_agent_is_refused(name, message):
    with pytest.raises(SeedbedError, match=message):
        agent(name)


def test_unknown_arguments_and_bad_actions_are_found_before_training():
    pole = GymnasiumEnvironment("CartPole-v1")
    with pytest.raises(PolicyError, match=r"cannot be built for seed 3 .*unexpected keyword argument 'rat'"):
        agent("LinearSarsa", arguments={"rat": 1}).check(pole, [3], 100)
    with pytest.raises(PolicyError, match="seed 3: the action 99 is not between 0 and 1"):
        agent("OutOfRange").check(pole, [3], 100)


def test_learning_that_breaks_down_is_named():
    pole = GymnasiumEnvironment("CartPole-v1")
    with pytest.raises(PolicyError, match=r"state\(\)\['weights'\] of seed 8 holds NaN"):
        train(agent("Diverging"), pole, [8], 10, None)

"""Dynamics as Gymnasium environments: the checker, seeds, equality with Gymnasium's vector environment."""

import warnings
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from seedbed.environments.gymnasium_env import DynamicsEnv, DynamicsVectorEnv
from seedbed.environments.interview import MockInterview
from seedbed.environments.interview_content import PRESETS

NAME = "seedbed/MockInterview-v0"


@pytest.mark.parametrize("preset", PRESETS)
def test_passes_the_checker_without_a_warning(preset):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(NAME, preset=preset).unwrapped)


def test_can_be_made_without_an_import_of_its_module():
    environment = gymnasium.make(f"seedbed.environments.gymnasium_env:{NAME}", preset="tiny", horizon=7)
    environment.reset(seed=0)
    flags = [environment.step(0)[2:4] for _ in range(7)]
    assert flags == [(False, False)] * 6 + [(False, True)]


def test_cart_pole_is_gymnasiums():
    ours, theirs = gymnasium.make("seedbed/CartPole-v0"), gymnasium.make("CartPole-v1")
    np.testing.assert_array_equal(ours.reset(seed=4)[0], theirs.reset(seed=4)[0])
    for action in (0, 1, 1, 0, 1):
        np.testing.assert_array_equal(ours.step(action)[0], theirs.step(action)[0])


def test_a_reset_seed_draws_the_tape_and_the_next_reset_goes_on():
    dynamics, environment = MockInterview("tiny"), DynamicsEnv(MockInterview("tiny"))
    generator = np.random.default_rng(12)
    for seed in (12, None):
        initial, tape = dynamics.draw(generator)
        state = dynamics.initial(initial)
        observation, info = environment.reset(seed=seed)
        np.testing.assert_array_equal(observation, dynamics.observe(state))
        for t in range(5):
            action = 7 * t % 36
            expected = dynamics.step(state, np.array(action), tape[t])
            observation, reward, terminated, _, info = environment.step(action)
            state = expected.state
            np.testing.assert_array_equal(observation, dynamics.observe(state))
            assert (reward, terminated) == (expected.reward, expected.terminated)
            np.testing.assert_array_equal(info.pop("action_mask"), dynamics.action_mask(state))
            assert info == {name: fact.item() for name, fact in expected.facts.items()}


def test_mask_can_be_sampled_from():
    environment = DynamicsEnv(MockInterview("tiny"))
    _, info = environment.reset(seed=0)
    environment.action_space.seed(0)
    assert all(environment.action_space.sample(mask=info["action_mask"]) < 12 for _ in range(50))


def vector(mode, **arguments):
    return gymnasium.make_vec(NAME, 3, vectorization_mode=mode, preset="tiny", **arguments)


def test_vector_environment_equals_gymnasiums_own():
    ours, theirs = vector("vector_entry_point"), vector("sync")
    assert ours.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for one, other in zip(ours.reset(seed=5), theirs.reset(seed=5), strict=True):
        np.testing.assert_equal(one, other)
    generator = np.random.default_rng(0)
    ends = 0
    for _ in range(150):
        actions = generator.integers(0, 36, 3)
        *one, info = ours.step(actions)
        *other, expected = theirs.step(actions)
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)
        assert set(info) >= set(expected)
        for name in (name for name in expected if not name.startswith("_")):
            valid = expected[f"_{name}"]
            np.testing.assert_array_equal(info[f"_{name}"], valid)
            np.testing.assert_array_equal(info[name][valid], expected[name][valid])
        ends += (one[2] | one[3]).sum()
    assert ends > 3


def test_disabled_mode_resets_what_the_caller_names():
    ours = vector("vector_entry_point", autoreset_mode="Disabled", horizon=2)
    theirs = vector("sync", vector_kwargs={"autoreset_mode": "Disabled"}, horizon=2)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    mask = np.array([True, False, True])
    for environment in (ours, theirs):
        environment.reset(seed=1)
        environment.step(np.zeros(3, np.int64))
    seeds = [7, 8, 9]
    one, _ = ours.reset(seed=seeds, options={"reset_mask": mask})
    other, _ = theirs.reset(seed=seeds, options={"reset_mask": mask})
    np.testing.assert_array_equal(one, other)
    truncated = ours.step(np.zeros(3, np.int64))[3]
    np.testing.assert_array_equal(truncated, ~mask)
    with pytest.raises(RuntimeError, match=r"environments \[1\] are over: reset them"):
        ours.step(np.zeros(3, np.int64))


def test_errors():
    with pytest.raises(ValueError, match="not in SAME_STEP"):
        DynamicsVectorEnv(MockInterview("tiny"), 2, "SameStep")
    environment = DynamicsVectorEnv(MockInterview("tiny"), 2)
    with pytest.raises(ValueError, match="3 seeds were given for 2 environments"):
        environment.reset(seed=[1, 2, 3])
    for mask in (np.zeros(2, bool), np.ones(3, bool), np.ones(2)):
        with pytest.raises(ValueError, match="must be 2 booleans, at least one of them true"):
            environment.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="has 2 agents"):
        DynamicsEnv(SimpleNamespace(spec=SimpleNamespace(agents=2)))

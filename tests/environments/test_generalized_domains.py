"""The three domains against reference trajectories, and the same transitions as arrays and as scalars."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.artifacts import SeedbedError
from seedbed.environments.generalized import acrobot, mountain_car, puddle_world
from seedbed.environments.generalized.documents import canonical_environment
from seedbed.environments.generalized.domains import DOMAINS, transition
from seedbed.environments.generalized.dynamics import GeneralizedEnvironment
from seedbed.environments.generalized.samplers import TUNING, union
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose

REFERENCE = Path(__file__).parents[1] / "reference/generalized"


def reference(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())


def cases(name):
    return [pytest.param(case, id=case["id"]) for case in reference(name)["cases"]]


def turned(a, b):
    """Difference of angles modulo a whole turn."""
    return np.abs((np.asarray(a) - b + np.pi) % (2 * np.pi) - np.pi)


@pytest.mark.parametrize("case", cases("mountain_car"))
@pytest.mark.parametrize("variant, rewards", [(0, "reward_zero_at_goal"), (1, "reward_minus_one_always")])
def test_mountain_car_follows_the_reference(case, variant, rewards):
    state = case["start"]
    for t, action in enumerate(case["actions"]):
        *state, reward, terminated = mountain_car.transition(*state, action, case["noise"][t], variant)
        np.testing.assert_allclose(state, case["states"][t + 1], rtol=0, atol=1e-9)
        assert (reward, terminated) == (case[rewards][t], case["terminal"][t])


@pytest.mark.parametrize("case", cases("puddle_world"))
def test_puddle_world_follows_the_reference(case):
    state = case["start"]
    for t, action in enumerate(case["actions"]):
        *state, reward, terminated = puddle_world.transition(*state, action, *case["noise"][t], 0)
        np.testing.assert_allclose(state, case["states"][t + 1], rtol=0, atol=1e-9)
        assert reward == pytest.approx(case["reward"][t], abs=1e-9)
        assert terminated == case["terminal"][t]


def test_puddle_penalties_at_single_points():
    for point in reference("puddle_world")["penalty_points"]:
        values = list(point.values())
        (x, y), penalty = values[0], values[1]
        assert puddle_world.puddle_penalty(x, y) == pytest.approx(penalty, abs=1e-9)


def test_the_far_corner_is_in_the_closed_goal_and_not_in_the_open_one():
    assert puddle_world.in_goal(1.0, 0.97, 0)
    assert not puddle_world.in_goal(1.0, 0.97, 1)
    assert puddle_world.in_goal(0.97, 0.97, 1)


def test_acrobot_single_transitions_agree_with_the_reference():
    content = reference("acrobot")
    for case in content["one_step"]:
        variant = acrobot.VARIANTS.index(case["variant"])
        *state, reward, terminated = acrobot.transition(*case["state"], case["action"], 0.0, variant)
        tolerance = content["tolerance_one_step"]
        assert turned(state[:2], case["next_state"][:2]).max() <= tolerance
        np.testing.assert_allclose(state[2:], case["next_state"][2:], rtol=0, atol=tolerance)
        assert (reward, terminated) == (0.0 if case["terminal"] else -1.0, case["terminal"])


@pytest.mark.parametrize("case", cases("acrobot"))
def test_acrobot_follows_the_reference(case):
    state, variant = case["start"], acrobot.VARIANTS.index(case["variant"])
    for t, action in enumerate(case["actions"]):
        *state, reward, terminated = acrobot.transition(*state, action, case["noise"][t], variant)
        assert turned(state[:2], case["states"][t + 1][:2]).max() <= 1e-6
        np.testing.assert_allclose(state[2:], case["states"][t + 1][2:], rtol=0, atol=1e-6)
        assert (reward, terminated) == (case["reward"][t], case["terminal"][t])


@pytest.mark.parametrize("environment", union().environments(TUNING, 3, 6), ids=lambda e: e.domain)
def test_dynamics_take_the_kernels_transition(environment):
    dynamics = GeneralizedEnvironment(environment.__class__(**environment.__dict__ | {"noise": 0.3}))
    generator = np.random.default_rng(0)
    tapes = [dynamics.draw(generator) for _ in range(6)]
    first = np.stack([tape[0] for tape in tapes]).reshape(2, 3, -1)
    noise = np.stack([tape[1] for tape in tapes], 1).reshape(dynamics.spec.horizon, 2, 3, -1)
    state, world = dynamics.initial(first), dynamics.document.world()
    for t in range(20):
        action = generator.integers(0, dynamics.spec.actions, (2, 3))
        after = dynamics.step(state, action, noise[t])
        for lane in np.ndindex(2, 3):
            variables = [*state.variables[lane], 0.0, 0.0][:4]
            u, v = [*noise[t][lane], 0.0][:2]
            *expected, reward, terminated = transition(
                world.domain, world.variant, *variables, action[lane], u, v
            )
            assert after.state.variables[lane].tolist() == expected[: len(after.state.variables[lane])]
            assert (after.reward[lane], after.terminated[lane]) == (reward, terminated)
            alone = dynamics.step(type(state)(state.variables[lane]), action[lane], noise[t][lane])
            assert alone.state.variables.tolist() == after.state.variables[lane].tolist()
        spec, seen = dynamics.spec, dynamics.observe(after.state)
        assert seen.dtype == np.float32
        assert ((seen >= spec.observation_low) & (seen <= spec.observation_high)).all()
        state = after.state


@pytest.mark.parametrize("domain", list(DOMAINS))
def test_any_agents_lanes_run_the_domains(domain):
    lanes = DynamicsLanes(GeneralizedEnvironment(domain, horizon=30), Purpose.TRAINING, [0, 1], 3)
    ended = 0
    for _ in range(70):
        step = lanes.step(np.ones((2, 3), np.int64))
        ended += int((step.terminated | step.truncated).sum())
    assert ended == 12
    assert (step.reward < 0).all()


@given(st.floats(-1.2, 0.6), st.floats(-0.07, 0.07), st.integers(0, 2), st.floats(-0.5, 0.5))
@settings(max_examples=200, deadline=None)
def test_the_car_stays_in_its_valley(position, velocity, action, noise):
    p, v, reward, terminated = mountain_car.transition(position, velocity, action, noise, 0)
    assert -1.2 <= p <= 0.6
    assert -0.07 <= v <= 0.07
    assert terminated == (p >= 0.5) == (reward == 0)
    assert not (p == -1.2 and v < 0)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 3), st.floats(-1, 1), st.floats(-1, 1))
@settings(max_examples=200, deadline=None)
def test_puddle_rewards_are_bounded(x, y, action, u, v):
    x, y, reward, terminated = puddle_world.transition(x, y, action, u, v, 0)
    assert 0 <= x <= 1
    assert 0 <= y <= 1
    assert -81 - 1e-9 <= reward <= 0
    assert terminated == (x >= 0.95 and y >= 0.95)


def test_rllib_joints_stop_at_half_a_turn():
    *state, _, _ = acrobot.transition(3.1, -3.1, 4.0, -9.0, 1, 0.0, 2)
    assert np.abs(state[:2]).max() <= np.pi


def test_the_canonical_environment_shows_the_state_itself():
    for domain, module in DOMAINS.items():
        dynamics = GeneralizedEnvironment(domain)
        state = dynamics.initial(np.empty((5, 0)))
        np.testing.assert_allclose(dynamics.observe(state), state.variables, atol=1e-6)
        np.testing.assert_allclose(
            canonical_environment(domain).ranges, [module.LOW, module.HIGH], atol=1e-12
        )
        assert dynamics.spec.step_noise == dynamics.spec.initial_noise == 0


def test_bad_environments_are_refused():
    with pytest.raises(ValueError, match="domain is one of"):
        GeneralizedEnvironment("pendulum")
    with pytest.raises(ValueError, match="horizon"):
        GeneralizedEnvironment("acrobot", horizon=0)
    with pytest.raises(SeedbedError, match="keys"):
        GeneralizedEnvironment({"domain": "acrobot"})

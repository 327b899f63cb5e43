"""CartPole is Gymnasium's CartPole-v1, to the bit."""

import gymnasium
import numpy as np
import pytest

from seedbed.environments.cart_pole import CartPole, CartPoleState
from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose


def balancing(observation):
    """A controller good enough to reach the step limit from most starts."""
    return int(observation[2] + 0.3 * observation[3] + 0.03 * observation[0] + 0.05 * observation[1] > 0)


@pytest.mark.parametrize("controller", ["random", "balancing"])
def test_episodes_equal_gymnasium_bit_for_bit(controller):
    seeds = list(range(12))
    lanes = DynamicsLanes(CartPole(), Purpose.TEST, [0], lanes=len(seeds), episodes=seeds)
    peers = [gymnasium.make("CartPole-v1") for _ in seeds]
    theirs = np.stack([peer.reset(seed=seed)[0] for peer, seed in zip(peers, seeds, strict=True)])
    actions = np.random.default_rng(3)
    lengths = np.zeros(len(seeds), int)
    np.testing.assert_array_equal(lanes.observation[0], theirs)
    while lanes.active.any():
        running = np.flatnonzero(lanes.active[0])
        action = actions.integers(0, 2, len(seeds))
        if controller == "balancing":
            action = np.array([balancing(row) for row in lanes.observation[0]])
        step = lanes.step(action[None])
        for lane in running:
            observation, reward, terminated, truncated, _ = peers[lane].step(int(action[lane]))
            lengths[lane] += 1
            np.testing.assert_array_equal(step.final_observation[0, lane], observation)
            if not (terminated or truncated):
                exact = [value[0, lane] for value in lanes.state]
                np.testing.assert_array_equal(exact, peers[lane].unwrapped.state)
            assert step.reward[0, lane] == reward == 1.0
            assert step.terminated[0, lane] == terminated
            assert step.truncated[0, lane] == truncated
    assert (lengths == 500).any() == (controller == "balancing")
    assert lengths.min() >= 8


def test_a_step_is_the_same_alone_and_in_a_batch():
    dynamics = CartPole()
    noise = np.random.default_rng(0).uniform(-0.2, 0.2, (3, 5, 4))
    action = np.random.default_rng(1).integers(0, 2, (3, 5))
    batch = dynamics.step(dynamics.initial(noise), action, np.empty((3, 5, 0)))
    for index in np.ndindex(3, 5):
        alone = dynamics.step(dynamics.initial(noise[index]), action[index], np.empty(0))
        assert all(one == many[index] for one, many in zip(alone.state, batch.state, strict=True))
        np.testing.assert_array_equal(dynamics.observe(alone.state), dynamics.observe(batch.state)[index])


def test_a_step_leaves_its_arguments_alone():
    dynamics = CartPole()
    state = dynamics.initial(np.full((2, 4), 0.01))
    before = np.array(state)
    after = dynamics.step(state, np.array([0, 1]), np.empty((2, 0)))
    np.testing.assert_array_equal(np.array(state), before)
    assert not any(np.shares_memory(old, new) for old, new in zip(state, after.state, strict=True))


@pytest.mark.parametrize(
    "position, angle, fallen",
    [(2.4, 0.0, False), (2.5, 0.0, True), (-2.5, 0.0, True), (0.0, 0.2094, False), (0.0, -0.21, True)],
)
def test_an_episode_terminates_beyond_the_limits_only(position, angle, fallen):
    dynamics = CartPole()
    state = CartPoleState(*(np.array([value]) for value in (position, 0.0, angle, 0.0)))
    assert dynamics.step(state, np.array([1]), np.empty((1, 0))).terminated[0] == fallen

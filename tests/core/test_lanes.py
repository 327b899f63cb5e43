"""Lanes: each seed takes its episodes in order, whatever runs beside it."""

import numpy as np
import pytest

from seedbed.environments.lanes import DynamicsLanes
from seedbed.seeding import Purpose


def run(lanes, steps=10_000):
    """(seed, episode, t, reward, terminated) of all active steps until nothing is active."""
    rows = []
    for _ in range(steps):
        if not lanes.active.any():
            break
        step = lanes.step(np.zeros(lanes.active.shape, np.int64))
        for row, lane in np.argwhere(step.active):
            cell = row, lane
            rows.append(
                (lanes.seeds[row], int(step.episode[cell]), int(step.t[cell]), float(step.reward[cell]))
            )
    return sorted(rows)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_episodes_do_not_depend_on_lanes_or_neighbours(coin_walk, count):
    expected = run(DynamicsLanes(coin_walk(), Purpose.TEST, [3], 1, 20))
    assert {episode for _, episode, _, _ in expected} == set(range(20))
    together = run(DynamicsLanes(coin_walk(), Purpose.TEST, [1, 3, 9], count, 20))
    assert [row for row in together if row[0] == 3] == expected


def test_free_lane_takes_the_next_episode_lanes_ascending(coin_walk):
    lanes = DynamicsLanes(coin_walk(limit=1), Purpose.TRAINING, [0], 3)
    seen = [lanes.step(np.zeros((1, 3), np.int64)).episode[0].tolist() for _ in range(3)]
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_final_observation_is_before_the_reset(coin_walk):
    lanes = DynamicsLanes(coin_walk(limit=2), Purpose.TRAINING, [0], 2)
    action = np.zeros((1, 2), np.int64)
    step = lanes.step(action)
    assert not step.truncated.any()
    assert np.array_equal(step.observation, step.final_observation)
    step = lanes.step(action)
    assert step.truncated.all()
    assert not step.terminated.any()
    assert (step.final_observation[..., 0] == 2).all()
    assert (step.observation[..., 0] == 0).all()
    assert lanes.first.all()


def test_both_flags_may_be_true(coin_walk):
    lanes = DynamicsLanes(coin_walk(limit=3), Purpose.TRAINING, [0], 8)
    for _ in range(3):
        step = lanes.step(np.zeros((1, 8), np.int64))
    assert step.truncated.all()
    assert 0 < step.terminated.sum() < 8


def test_reset_seeds_are_the_episodes_of_every_seed(coin_walk):
    rows = run(DynamicsLanes(coin_walk(), Purpose.TEST, [0, 5], 2, [11, 12, 13]))
    one, other = ([row[1:] for row in rows if row[0] == seed] for seed in (0, 5))
    assert one == other
    initial, steps = coin_walk().draw(np.random.default_rng(12))
    expected = steps[: 9 if initial[0] < 0.5 else 3, 0].tolist()
    assert [row[2] for row in one if row[0] == 1] == expected


def test_bad_lanes_and_actions_are_refused(coin_walk):
    with pytest.raises(ValueError, match="at least one seed"):
        DynamicsLanes(coin_walk(), Purpose.TEST, [], 1)
    with pytest.raises(ValueError, match="one lane"):
        DynamicsLanes(coin_walk(), Purpose.TEST, [0], 0)
    lanes = DynamicsLanes(coin_walk(), Purpose.TEST, [4], 2, 2)
    with pytest.raises(ValueError, match=r"Action 2 of seed 4, episode 1, step 1 is not in \[0, 2\)"):
        lanes.step(np.array([[0, 2]]))


def test_idle_lanes_never_overrun_their_limit(coin_walk):
    class Watched(coin_walk):
        def step(self, state, action, noise):
            assert (state.t < 5).all()
            return super().step(state, action, noise)

    run(DynamicsLanes(Watched(limit=5), Purpose.TEST, [0, 1], 3, 40))

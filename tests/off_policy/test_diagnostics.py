"""Bad or thin data: refused, warned of, or undefined, always in words."""

import math

import numpy as np
import pytest

from seedbed.off_policy.diagnostics import overlap, verdict
from seedbed.off_policy.importance import (
    importance_sampling,
    weighted_importance_sampling,
    weighted_per_decision,
)
from seedbed.off_policy.intervals import percentile_interval
from seedbed.off_policy.trajectories import Trajectories


def test_a_step_that_one_episode_carries_is_refused_although_the_end_looks_healthy():
    target = np.array([[0.9, 0.01], *[[0.05, 0.18]] * 30])
    log = Trajectories(np.ones((31, 2)), np.full((31, 2), 0.1), target, np.full(31, 2))
    seen = overlap(log)
    assert seen.effective > 20
    assert seen.effective_by_step[0] == pytest.approx(24.0**2 / (81 + 30 * 0.25))
    assert "effective episodes of 31 at step 1" in verdict(seen).reason


def test_missing_likely_episodes_are_a_warning():
    log = Trajectories(np.ones((30, 1)), np.full((30, 1), 0.5), np.full((30, 1), 0.2), np.full(30, 1))
    judged = verdict(overlap(log))
    assert judged.accepted
    assert "mean weight is 0.40 where 1 is expected" in judged.reason


def test_support_violations_are_found():
    log = Trajectories(np.ones((2, 2)), np.ones((2, 2)), np.full((2, 2), 0.25), np.array([2, 1]))
    behaviour = np.tile([1.0, 0.0], (2, 2, 1))
    target = np.tile([0.25, 0.75], (2, 2, 1))
    seen = overlap(log, behaviour, target)
    assert seen.uncovered == pytest.approx(0.75)
    assert "75.0% of what the target policy does" in verdict(seen, least_effective=1).reason
    assert overlap(log, target, target).uncovered == 0


def test_all_weights_zero_is_undefined_not_zero():
    log = Trajectories(np.ones((3, 2)), np.full((3, 2), 0.5), np.zeros((3, 2)), np.array([2, 2, 1]))
    assert math.isnan(weighted_importance_sampling(log))
    assert math.isnan(weighted_per_decision(log))
    assert importance_sampling(log) == 0
    seen = overlap(log)
    assert seen.effective == 0
    assert seen.zero_share == 1
    assert math.isnan(seen.largest_share)
    assert "none of the 3 episodes" in verdict(seen).reason
    interval = percentile_interval(math.nan, np.full(100, math.nan), 3)
    assert math.isnan(interval.low)
    assert "every weight is zero" in interval.note


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"behaviour": np.array([[0.5, 0.0]])}, r"episode 0, step 2: the behaviour policy's probability"),
        ({"target": np.array([[0.5, 1.5]])}, "step 2: the target policy's probability"),
        ({"reward": np.array([[math.nan, 1.0]])}, "step 1: the reward is not finite"),
        ({"length": np.array([3])}, r"lengths must lie in 1\.\.2"),
        ({"discount": 0.0}, r"discount must lie in \(0, 1\]"),
        ({"reward": np.ones((2, 2))}, r"needs arrays \[N, T\]"),
    ],
)
def test_bad_logs_are_refused_in_words(change, words):
    fine = {
        "reward": np.ones((1, 2)),
        "behaviour": np.full((1, 2), 0.5),
        "target": np.full((1, 2), 0.5),
        "length": np.array([2]),
    }
    Trajectories(**fine)
    with pytest.raises(ValueError, match=words):
        Trajectories(**fine | change)

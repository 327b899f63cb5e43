"""Training: the curve watches and changes nothing; training episodes are logged as they end."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from seedbed.training import CurvePlan, train


@dataclass(frozen=True)
class CountingAlgorithm:
    """Takes action 0 and 'learns' the sum of rewards it saw, per seed."""

    policy_type: type
    lanes: int = 4

    def train(self, lanes, seeds, budget, recorder):
        policy = self.policy_type(seeds, lanes.dynamics)
        policy.learned = np.zeros(len(seeds))
        for steps in range(0, budget + 1, lanes.lanes):
            if recorder.due(steps):
                recorder.evaluate(steps, policy)
            if steps < budget:
                step = lanes.step(np.zeros(lanes.active.shape, np.int64))
                policy.learned += step.reward.sum(1)
                recorder.step(step)
        recorder.log(budget, learned=policy.learned)
        return policy


@pytest.mark.parametrize("every", [100, 37, 10_000])
def test_curve_changes_no_bit_of_training(coin_walk, noisy_policy, every):
    algorithm, seeds = CountingAlgorithm(noisy_policy), [2, 7]
    watched = train(algorithm, coin_walk(), seeds, 400, CurvePlan(every, 5, 3))
    unwatched = train(algorithm, coin_walk(), seeds, 400, None)
    assert np.array_equal(watched.policy.learned, unwatched.policy.learned)
    pd.testing.assert_frame_equal(watched.episodes, unwatched.episodes, check_exact=True)
    assert unwatched.curve.empty
    assert list(unwatched.curve.dtypes) == list(watched.curve.dtypes)


def test_curve_has_all_points_on_the_same_episodes(coin_walk, noisy_policy):
    curve = train(CountingAlgorithm(noisy_policy), coin_walk(), [2, 7], 400, CurvePlan(100, 5, 3)).curve
    assert sorted(set(curve.steps)) == [0, 100, 200, 300, 400]
    assert (curve.groupby(["seed", "steps"]).size() == 5).all()
    assert (curve.groupby(["seed", "episode"])["return"].nunique() == 1).all(), "the policy does not change"


def test_budget_that_is_no_multiple_still_ends_with_a_point(coin_walk, noisy_policy):
    curve = train(CountingAlgorithm(noisy_policy), coin_walk(), [0], 44, CurvePlan(40, 2, 1)).curve
    assert sorted(set(curve.steps)) == [0, 40, 44]


def test_a_curve_may_have_further_points(coin_walk, noisy_policy):
    plan = CurvePlan(100, 2, 1, at=[300, 42, 120, 9000])
    curve = train(CountingAlgorithm(noisy_policy), coin_walk(), [0], 400, plan).curve
    assert sorted(set(curve.steps)) == [
        0,
        44,
        100,
        120,
        200,
        300,
        400,
    ]  # four lanes: 44 is the first after 42


def test_training_episodes_are_logged(coin_walk, noisy_policy):
    run = train(CountingAlgorithm(noisy_policy), coin_walk(), [2, 7], 400, None)
    for seed, rows in run.episodes.groupby("seed"):
        assert set(rows.length) == {3, 9}
        assert rows.length.sum() <= 400, seed
        assert rows.steps.max() <= 400
        assert not rows.episode.duplicated().any()
    finished = run.episodes.groupby("seed")["return"].sum()
    assert (finished.to_numpy() <= run.policy.learned).all()
    assert run.diagnostics.set_index("seed")["value"].to_dict() == dict(
        zip([2, 7], run.policy.learned, strict=True)
    )

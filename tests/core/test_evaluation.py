"""Evaluation: the requested episodes, all of them, and the same table whatever runs beside what."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seedbed.algorithms.constant import ConstantPolicy
from seedbed.evaluation import EvaluationError, evaluate, fold
from seedbed.seeding import Purpose


def table(policy_class, dynamics, seeds=(0, 1, 2), episodes=50, lanes=4, purpose=Purpose.TEST):
    return evaluate(policy_class(seeds, dynamics), dynamics, purpose, episodes, lanes=lanes, log_steps=True)


@pytest.mark.parametrize("lanes", [2, 3, 8, 16, 100])
def test_same_tables_for_any_number_of_lanes(coin_walk, noisy_policy, lanes):
    one, other = (table(noisy_policy, coin_walk(), lanes=count) for count in (1, lanes))
    pd.testing.assert_frame_equal(one.episodes, other.episodes, check_exact=True)
    pd.testing.assert_frame_equal(one.steps, other.steps, check_exact=True)
    assert one.decisions == other.decisions == len(one.steps)


def test_no_more_lanes_than_are_of_use_to_the_policy(coin_walk, noisy_policy):
    class Slow(noisy_policy):
        most_lanes, seen = 3, set()

        def act(self, observation, *rest):
            self.seen.add(observation.shape[1])
            return super().act(observation, *rest)

    assert table(Slow, coin_walk(), lanes=8).episodes.equals(table(noisy_policy, coin_walk()).episodes)
    assert Slow.seen == {3}


@pytest.mark.parametrize("lanes", range(1, 17))
def test_no_bias_to_short_episodes(coin_walk, noisy_policy, lanes):
    """Half the episodes are short and fail; the first to finish would all be failures."""
    episodes = table(noisy_policy, coin_walk(), seeds=[0], episodes=400, lanes=lanes).episodes
    assert len(episodes) == 400
    assert set(episodes.length) == {3, 9}
    assert (episodes.success == (episodes.length == 9)).all()
    successes = int(episodes.success.sum())
    assert abs(successes - 200) < 4 * 10, "within 4 binomial standard errors of one half"


def test_episode_table_follows_from_the_step_table(coin_walk, noisy_policy):
    run = table(noisy_policy, coin_walk())
    groups = run.steps.groupby(["seed", "episode"])
    for name, expected in {
        "return": groups["reward"].apply(lambda rewards: float(np.add.accumulate(rewards.to_numpy())[-1])),
        "length": groups["t"].max(),
        "terminated": groups["terminated"].last(),
        "final_noise": groups["noise"].last(),
    }.items():
        assert (run.episodes[name].to_numpy() == expected.to_numpy()).all(), name


def test_seeds_meet_their_own_episodes_whoever_runs_beside_them(coin_walk, noisy_policy):
    together = table(noisy_policy, coin_walk(), seeds=[0, 1, 2]).episodes
    alone = table(noisy_policy, coin_walk(), seeds=[1]).episodes
    pd.testing.assert_frame_equal(
        together[together.seed == 1].reset_index(drop=True), alone, check_exact=True
    )
    assert (together[together.seed == 0]["return"].to_numpy() != alone["return"].to_numpy()).any()


@pytest.mark.parametrize("episodes", [40, list(range(900, 940))])
@pytest.mark.parametrize("lanes", [1, 7])
def test_a_set_that_begins_later_is_the_rest_of_the_whole(coin_walk, noisy_policy, episodes, lanes):
    policy = noisy_policy([0, 3], coin_walk())
    whole = evaluate(policy, coin_walk(), Purpose.TEST, episodes, lanes=3, log_steps=True)
    rest = episodes[15:] if isinstance(episodes, list) else 25
    later = evaluate(policy, coin_walk(), Purpose.TEST, rest, lanes=lanes, first=15, log_steps=True)
    for one, other in zip(whole[:2], later[:2], strict=True):
        expected = one[one.episode >= 15].reset_index(drop=True)
        pd.testing.assert_frame_equal(expected, other, check_exact=True)


def test_fingerprints_tell_which_episodes_are_the_same(coin_walk, noisy_policy):
    def prints(reset_seeds, lanes):
        policy = ConstantPolicy([0], coin_walk(), {"action": 1})
        return evaluate(
            policy, coin_walk(), Purpose.TEST, reset_seeds, lanes=lanes, fingerprints=True
        ).fingerprints[0]

    reset_seeds = [5, 6, 5, *range(100, 200), 6]
    for lanes in (1, 3, 8):
        found = prints(reset_seeds, lanes)
        assert [found.tolist().index(value) for value in found] == [reset_seeds.index(s) for s in reset_seeds]
    assert table(noisy_policy, coin_walk()).fingerprints is None


@given(st.integers(0, 2), st.integers(0, 3), st.floats(-1e9, 1e9))
def test_any_other_number_is_another_fingerprint(row, column, other):
    observation, action = np.arange(12.0).reshape(3, 4), np.array([1, 0, 1])
    before = np.array([0, 0, 9], np.uint64)
    expected = fold(before, [observation, action])
    assert (fold(before, [observation.astype(np.float32), action]) == expected).all()
    changed = observation.copy()
    changed[row, column] = other
    differs = fold(before, [changed, action]) != expected
    assert differs.tolist() == (changed != observation).any(1).tolist()
    assert (fold(before, [observation, 1 - action]) != expected).all()
    assert (fold(before, [observation[:, ::-1], action]) != expected).all()
    assert (fold(before + np.uint64(1), [observation, action]) != expected).all()


def test_purposes_have_different_episodes(coin_walk, noisy_policy):
    test, curve = (
        table(noisy_policy, coin_walk(), purpose=purpose).episodes
        for purpose in (Purpose.TEST, Purpose.EVALUATION)
    )
    assert (test["return"] != curve["return"]).all()


def test_truncated_episodes_fail(coin_walk, noisy_policy):
    episodes = table(noisy_policy, coin_walk(limit=5)).episodes
    truncated = episodes[episodes.truncated]
    assert len(truncated) > 0
    assert not truncated.success.any()
    assert (truncated.length == 5).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_reward_that_is_no_number_names_seed_episode_and_step(coin_walk, noisy_policy, value):
    with pytest.raises(EvaluationError, match=r"not finite in seed 0, episode 0, step 2"):
        table(noisy_policy, coin_walk(broken_at=(2, value)))


def test_environment_that_raises_is_named(coin_walk, noisy_policy):
    class Raising(coin_walk):
        def step(self, state, action, noise):
            if (state.t == 2).any():
                raise RuntimeError("the simulator fell over")
            return super().step(state, action, noise)

    with pytest.raises(
        EvaluationError, match=r"RuntimeError in seeds \[6\], episodes \[0\], steps \[3\]: the sim"
    ):
        table(noisy_policy, Raising(), seeds=[6], lanes=1)


def test_policy_that_raises_is_named(coin_walk, noisy_policy):
    class Raising(noisy_policy):
        def act(self, observation, mask, uniforms, memory, first):
            raise KeyError("what to do")

    with pytest.raises(EvaluationError, match=r"KeyError in seeds \[6\], episodes \[0\], steps \[1\]: 'what"):
        table(Raising, coin_walk(), seeds=[6], lanes=1)


def test_evaluation_core_does_not_import_torch():
    code = "import sys, seedbed.evaluation, seedbed.training, seedbed.study; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

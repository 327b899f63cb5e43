"""Replay: the sum tree, n-step returns, what can be sampled, and how often."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from seedbed.algorithms.replay import Replay, SumTree
from seedbed.environments.base import Spec
from seedbed.environments.lanes import LaneStep

ACTIONS = 3


@given(
    capacity=st.integers(1, 2000),
    seeds=st.integers(1, 3),
    rounds=st.integers(1, 4),
    draw=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_sum_tree_equals_a_running_sum(capacity, seeds, rounds, draw):
    generator = np.random.default_rng(draw)
    tree, naive = SumTree(seeds, capacity), np.zeros((seeds, capacity), np.float32)
    for _ in range(rounds):
        index = generator.integers(capacity, size=(seeds, generator.integers(1, 40)))
        priority = generator.exponential(size=index.shape).astype(np.float32)
        priority[generator.random(index.shape) < 0.3] = 0
        tree.set(index, priority)
        for seed in range(seeds):
            for i, p in zip(index[seed], priority[seed], strict=True):
                naive[seed, i] = p
    total = naive.sum(1, dtype=np.float64)
    fraction = generator.random((seeds, 50))
    found, priority = tree.sample(fraction)
    for seed in np.flatnonzero(total):
        np.testing.assert_array_equal(priority[seed], naive[seed, found[seed]])
        assert (priority[seed] > 0).all()
        upper = naive[seed].cumsum(dtype=np.float64)[found[seed]]
        x, slack = fraction[seed] * total[seed], 1e-5 * total[seed]
        assert (x <= upper + slack).all()
        assert (x >= upper - priority[seed] - slack).all()


def test_sum_tree_never_finds_an_empty_leaf_at_the_edges():
    tree = SumTree(1, 1000)
    filled = np.array([[0, 17, 255, 256, 700]])
    tree.set(filled, np.full(filled.shape, 0.1, np.float32))
    fraction = np.concatenate([np.arange(6) / 5, np.nextafter(np.arange(1, 6) / 5, 0), [1 - 2**-53]])
    found, priority = tree.sample(np.minimum(fraction, 1 - 2**-53)[None])
    assert set(found[0]) <= set(filled[0])
    assert (priority > 0).all()


def test_sum_tree_samples_in_proportion():
    generator = np.random.default_rng(0)
    tree, weights = SumTree(2, 300), generator.exponential(size=(2, 300)).astype(np.float32)
    tree.set(np.tile(np.arange(300), (2, 1)), weights)
    found, _ = tree.sample(generator.random((2, 200_000)))
    for seed in range(2):
        expected = weights[seed] / weights[seed].sum(dtype=np.float64) * found.shape[1]
        assert chisquare(np.bincount(found[seed], minlength=300), expected, sum_check=False).pvalue > 0.001


class Played:
    """Random episodes of S seeds x L lanes, put into a replay and kept in plain lists besides.

    Observations are (seed, lane, step, episode, t); ``masked`` gives masks that encode the final observation.
    """

    def __init__(self, replay: Replay, steps: int, seed: int, end: float, masked: bool):
        generator = np.random.default_rng(seed)
        shape = (replay.seeds, replay.lanes)
        self.steps = {(s, l): [] for s in range(shape[0]) for l in range(shape[1])}
        episode, t = np.zeros(shape, int), np.zeros(shape, int)
        for step in range(steps):
            observation, final = self._observe(step, episode, t), self._observe(step + 0.5, episode, t + 1)
            action, reward = generator.integers(ACTIONS, size=shape), generator.standard_normal(shape)
            terminated, truncated = generator.random(shape) < end, generator.random(shape) < end
            mask = (final.sum(-1).astype(int)[..., None] + np.arange(ACTIONS)) % 2 == 0 if masked else None
            replay.add(
                observation,
                action,
                LaneStep(None, None, reward, terminated, truncated, final, mask, episode, t, None, {}),
            )
            for s, l in self.steps:
                self.steps[s, l].append(
                    (observation[s, l], action[s, l], reward[s, l], terminated[s, l],
                     terminated[s, l] | truncated[s, l], final[s, l], mask[s, l] if masked else None)
                )  # fmt: skip
            ended = terminated | truncated
            episode, t = episode + ended, np.where(ended, 0, t + 1)

    @staticmethod
    def _observe(step, episode, t):
        s, l = np.indices(episode.shape)
        return np.stack([s, l, np.full(episode.shape, step), episode, t], -1).astype(np.float32)

    def transition(self, s, l, start, n, gamma):
        """Sum of up to n rewards, discount, final observation and mask, by the definition."""
        total = 0.0
        for k in range(n):
            _, _, reward, terminated, ended, final, mask = self.steps[s, l][start + k]
            total += gamma**k * reward
            if ended or k == n - 1:
                return total, 0.0 if terminated else gamma ** (k + 1), final, mask


def spec(masked=False):
    """Five observed numbers, three actions."""
    bound = np.full(5, np.inf, np.float32)
    return Spec(-bound, bound, ACTIONS, horizon=10, initial_noise=0, step_noise=0, masked=masked)


@given(
    seeds=st.integers(1, 3), lanes=st.integers(1, 3), capacity=st.integers(15, 80), n=st.integers(1, 4),
    steps=st.integers(5, 120), end=st.sampled_from([0.0, 0.1, 0.4]), prioritized=st.booleans(),
    masked=st.booleans(), draw=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_transitions_equal_their_definition(seeds, lanes, capacity, n, steps, end, prioritized, masked, draw):
    gamma, draws = 0.9, 90
    replay = Replay(spec(masked), seeds, lanes, capacity, n, gamma, 0.6 if prioritized else None)
    played = Played(replay, steps, draw, end, masked)
    kept = min(steps, -(-capacity // lanes))
    assert len(replay) == (kept - n + 1) * lanes
    spread = np.full(draws, 0.5) if prioritized else (np.arange(draws) + 0.5) / draws
    batch = replay.sample(np.tile(spread, (seeds, 1)))
    seen = set()
    for s in range(seeds):
        for b in range(draws):
            observation = batch.observation[s, b].numpy()
            seed, lane, start = observation[:3].astype(int)
            seen.add((seed, lane, start))
            assert seed == s
            assert steps - kept <= start <= steps - n
            np.testing.assert_array_equal(observation, played.steps[s, lane][start][0])
            total, discount, final, mask = played.transition(s, lane, start, n, gamma)
            assert batch.action[s, b] == played.steps[s, lane][start][1]
            assert batch.reward[s, b].item() == pytest.approx(total, abs=1e-5)
            assert batch.discount[s, b].item() == pytest.approx(discount, abs=1e-6)
            np.testing.assert_array_equal(batch.next_observation[s, b].numpy(), final)
            assert final[3] == observation[3], "a transition crossed an episode"
            if masked:
                np.testing.assert_array_equal(batch.next_mask[s, b].numpy(), mask)
    assert (batch.next_mask is None) is not masked
    assert len(seen) == len(replay) * seeds


@pytest.mark.parametrize("learn_every", [1, 7, 100])
def test_a_wrapped_ring_forgets_the_oldest_whenever_it_is_sampled(learn_every):
    replay = Replay(spec(), 2, 2, 40, n_step=3, alpha=0.6)
    generator = np.random.default_rng(3)
    shape, no = (2, 2), np.zeros((2, 2), bool)
    for step in range(200):
        observation = np.full((*shape, 5), step, np.float32)
        replay.add(
            observation,
            np.zeros(shape, int),
            LaneStep(None, None, np.ones(shape), no, no, observation + 1, None, None, None, None, {}),
        )
        if step >= 5 and step % learn_every == 0:
            batch = replay.sample(generator.random((2, 64), np.float32))
            start = batch.observation[..., 0].numpy()
            assert start.min() >= max(0, step - 19)
            assert start.max() <= step - 2
            np.testing.assert_array_equal(batch.next_observation[..., 0].numpy(), start + 3)
            replay.update(batch.index, generator.exponential(size=batch.index.shape).astype(np.float32))


def test_new_transitions_have_the_largest_priority_and_weights_follow_the_formula():
    replay = Replay(spec(), 1, 1, 50, n_step=1, alpha=0.7, epsilon=0.01)
    Played(replay, 10, 0, 0.1, masked=False)
    index, error = np.arange(10)[None], np.linspace(-3, 2, 10, dtype=np.float32)[None]
    replay.sample(np.zeros((1, 1), np.float32))
    replay.update(index, error)
    Played(replay, 2, 1, 0.1, masked=False)
    priority = (np.append(np.abs(error), [3.0, 3.0]) + 0.01) ** 0.7
    fraction = np.random.default_rng(1).random((1, 20_000)).astype(np.float32)
    batch = replay.sample(fraction, beta=0.5)
    share = np.bincount(batch.index[0], minlength=12) / 20_000
    np.testing.assert_allclose(share, priority / priority.sum(), atol=2e-4)
    weight = (12 * priority / priority.sum()) ** -0.5
    np.testing.assert_allclose(
        batch.weight[0].numpy(), (weight / weight[np.unique(batch.index)].max())[batch.index[0]], rtol=1e-4
    )


def test_alpha_is_applied_once():
    replay = Replay(spec(), 1, 1, 8, n_step=1, alpha=0.5, epsilon=1e-9)
    Played(replay, 2, 0, 0.0, masked=False)
    replay.sample(np.zeros((1, 1), np.float32))
    replay.update(np.array([[0, 1]]), np.array([[4.0, 1.0]], np.float32))
    batch = replay.sample(np.random.default_rng(0).random((1, 3000), np.float32))
    assert (batch.index == 0).mean() == pytest.approx(2 / 3, abs=1e-3)


def test_uniform_replay_samples_all_alike():
    replay = Replay(spec(), 1, 2, 60, n_step=2)
    Played(replay, 75, 0, 0.1, masked=False)
    batch = replay.sample(np.random.default_rng(0).random((1, 100_000), np.float32))
    counts = np.unique(batch.index, return_counts=True)[1]
    assert len(counts) == len(replay) == 58
    assert chisquare(counts).pvalue > 0.001
    assert (batch.weight == 1).all()
    replay.update(batch.index, np.zeros(batch.index.shape, np.float32))


def test_a_replay_too_small_or_empty_is_refused():
    with pytest.raises(ValueError, match="cannot hold 3-step"):
        Replay(spec(), 1, 4, 12, n_step=3)
    with pytest.raises(ValueError, match="no complete transition"):
        Replay(spec(), 1, 1, 12).sample(np.zeros((1, 4)))

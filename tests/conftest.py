"""Small environments and policies with known answers, for all tests."""

import os
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from seedbed.algorithms.base import StatelessPolicy
from seedbed.environments.base import Fact, Spec, Transition

settings.register_profile("seedbed", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("seedbed")


def pytest_collection_modifyitems(items):
    """The workflow's tests first: they take longest, and short ones at the end share out evenly."""
    items.sort(key=lambda item: item.path.parent.name != "workflow")


class CoinState(NamedTuple):
    t: np.ndarray
    lasts: np.ndarray
    wins: np.ndarray


class CoinWalk:
    """Episodes of which half last 3 steps and fail and half last 9 and succeed, decided by their noise.

    The reward of a step is its uniform noise; the step limit is ``limit``.
    """

    def __init__(self, limit: int = 20, broken_at: tuple[int, float] | None = None):
        self._limit, self._broken_at = limit, broken_at
        facts = (
            Fact("won", "bool", "the episode ended well"),
            Fact("noise", "float64", "the step's noise", final=True),
        )
        one = np.ones(2, np.float32)
        self.spec = Spec(-one, 100 * one, 2, limit, 1, 1, facts, success="won")

    def draw(self, generator):
        return generator.random(1), generator.random((self.spec.horizon, 1))

    def initial(self, noise):
        long = noise[..., 0] < 0.5
        return CoinState(np.zeros(long.shape, np.int64), np.where(long, 9, 3), long)

    def observe(self, state):
        return np.stack([state.t, state.lasts], -1).astype(np.float32)

    def action_mask(self, state):
        return np.ones((*state.t.shape, 2), bool)

    def limit(self, state):
        return np.full(state.t.shape, self._limit, np.int64)

    def step(self, state, action, noise):
        t = state.t + 1
        terminated = t >= state.lasts
        reward = noise[..., 0].copy()
        if self._broken_at:
            reward = np.where(t == self._broken_at[0], self._broken_at[1], reward)
        facts = {"won": terminated & state.wins, "noise": noise[..., 0].copy()}
        return Transition(CoinState(t, state.lasts.copy(), state.wins.copy()), reward, terminated, facts)

    def content_checksums(self):
        return {}


class NoisyPolicy(StatelessPolicy):
    """Takes action 1 where its uniform is above one half: needs randomness of its own."""

    modes = ("sampled",)
    uniforms = 2

    def act(self, observation, mask, uniforms, memory, first):
        return (uniforms[..., 1] > 0.5).astype(np.int64), None


@pytest.fixture
def coin_walk():
    """The class of coin-walk dynamics."""
    return CoinWalk


@pytest.fixture
def noisy_policy():
    """The class of a policy that needs random numbers."""
    return NoisyPolicy

"""The uniform random policy over allowed actions: the floor of every comparison."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Memory, Recorder, StatelessPolicy, train_nothing
from seedbed.environments.lanes import Lanes


class UniformRandomPolicy(StatelessPolicy):
    """Every allowed action with equal probability."""

    modes = ("sampled",)
    uniforms = 1

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """One uniform per decision picks among the allowed actions; see ``Policy.act``."""
        if mask is None:
            return (uniforms[..., 0] * self.dynamics.spec.actions).astype(np.int64), None
        allowed = np.cumsum(mask, -1)
        rank = (uniforms[..., 0] * allowed[..., -1]).astype(np.int64)
        return np.argmax(allowed > rank[..., None], -1), None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """1 / number of allowed actions; see ``Policy.probabilities``."""
        if mask is None:
            mask = np.ones((*first.shape, self.dynamics.spec.actions), bool)
        return mask / mask.sum(-1, keepdims=True)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class UniformRandom:
    """Uniform random choice among the allowed actions."""

    lanes: ClassVar[int] = 0
    policy_class: ClassVar = UniformRandomPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(UniformRandomPolicy(seeds, lanes.dynamics), recorder)

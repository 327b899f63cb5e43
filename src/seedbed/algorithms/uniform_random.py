"""The uniform random policy over allowed actions: the floor of every comparison."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Memory, Recorder, StatelessPolicy, train_nothing
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import Lanes


class UniformRandomPolicy(StatelessPolicy):
    """Every allowed action with equal probability; uniform between their bounds where actions are arrays.

    Raises:
        ValueError: an array's bounds are not finite.
    """

    modes = ("sampled",)

    def __init__(self, seeds: Sequence[int], dynamics: Dynamics, options: dict[str, Any] | None = None):
        super().__init__(seeds, dynamics, options)
        array = dynamics.spec.action_array
        if array is not None and not (np.isfinite(array.low) & np.isfinite(array.high)).all():
            raise ValueError(f"No action is uniform between the bounds {array.low} and {array.high}.")

    @property
    def uniforms(self) -> int:
        """One per decision, or one per entry of an array."""
        return math.prod(self.dynamics.spec.action_shape)

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """One uniform per decision picks among the allowed actions; see ``Policy.act``."""
        array = self.dynamics.spec.action_array
        if array is not None:
            share = uniforms.reshape(*first.shape, *array.low.shape)
            if np.issubdtype(array.low.dtype, np.integer):
                return array.low + (share * (array.high - array.low + 1)).astype(np.int64), None
            return (array.low + share * (array.high - array.low)).astype(array.low.dtype), None
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
    array_actions: ClassVar[bool] = True
    policy_class: ClassVar = UniformRandomPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(UniformRandomPolicy(seeds, lanes.dynamics), recorder)

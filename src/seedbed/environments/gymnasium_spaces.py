"""Gymnasium's spaces as float32 observations of one shape and as discrete or array actions."""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate

from seedbed.environments.base import ActionArray


class Observations:
    """How observations of a space become float32 arrays.

    A Box keeps its shape. Everything else becomes a vector by ``gymnasium.spaces.flatten``: Discrete and
    MultiDiscrete one-hot, Dict and Tuple one part behind the other.

    Args:
        space: the observation space of one environment.

    Raises:
        ValueError: its observations have no fixed size (Sequence, Graph, Text).
    """

    def __init__(self, space: gymnasium.Space):
        self.space, self._as_is = space, isinstance(space, spaces.Box)
        try:
            flat = space if self._as_is else spaces.flatten_space(space)
        except NotImplementedError:
            flat = None
        if not isinstance(flat, spaces.Box):
            raise ValueError(
                f"Observations of {space} have no fixed size. Wrap the environment so that it gives a Box, "
                "Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple of these."
            )
        self.low, self.high = flat.low.astype(np.float32), flat.high.astype(np.float32)

    def one(self, observation) -> np.ndarray:
        """One observation, float32.

        Raises:
            ValueError: it is not of the space's shape.
        """
        if not self._as_is:
            observation = spaces.flatten(self.space, observation)
        array = np.array(observation, np.float32)
        if array.shape != self.low.shape:
            raise ValueError(f"The observation's shape is {array.shape}; its space says {self.low.shape}.")
        return array

    def batch(self, observations, count: int) -> np.ndarray:
        """The observations of a vector environment, [count, *shape] float32, a copy."""
        if self._as_is:
            return np.array(observations, np.float32).reshape(count, *self.low.shape)
        return np.stack([self.one(part) for part in iterate(batch_space(self.space, count), observations)])


def actions_of(space: gymnasium.Space) -> tuple[int, ActionArray | None]:
    """``actions`` and ``action_array`` of the description of an action space; see ``Spec``.

    Raises:
        ValueError: it is neither Discrete nor Box, MultiDiscrete or MultiBinary.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n), None
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return 0, ActionArray(space.low, space.high)
    if isinstance(space, spaces.Box):
        return 0, ActionArray(space.low.astype(np.int64), space.high.astype(np.int64))
    if isinstance(space, spaces.MultiDiscrete):
        start = np.asarray(space.start, np.int64)
        return 0, ActionArray(start, start + space.nvec - 1)
    if isinstance(space, spaces.MultiBinary):
        return 0, ActionArray(np.zeros(space.shape, np.int64), np.ones(space.shape, np.int64))
    raise ValueError(
        f"Actions of {space} are not understood. Wrap the environment so that it takes Discrete, "
        "MultiDiscrete, MultiBinary or Box actions."
    )

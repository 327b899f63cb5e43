"""Always the same action: the plainest yardstick, such as doing nothing."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field, StrictFloat, StrictInt
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Memory, Recorder, StatelessPolicy, train_nothing
from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import Lanes


class ConstantPolicy(StatelessPolicy):
    """Takes ``options["action"]`` whatever it sees.

    Raises:
        ValueError: the environment has no such action.
    """

    def __init__(self, seeds: Sequence[int], dynamics: Dynamics, options: dict[str, Any] | None = None):
        super().__init__(seeds, dynamics, options)
        self._action = _allowed(self.options["action"], dynamics)

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """The action in every lane; see ``Policy.act``.

        Raises:
            SeedbedError: the mask forbids it. An idle lane only repeats its last episode, so none is blamed
                for what it shows while idle.
        """
        if mask is not None and not mask[..., self._action].all():
            row = np.argwhere(~mask[..., self._action])[0][0]
            raise SeedbedError(
                f"The action mask forbids action {self._action} in an episode of seed {self.seeds[row]}. "
                f"Choose an action that is always allowed."
            )
        return np.broadcast_to(self._action, (*first.shape, *self._action.shape)).copy(), None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """One for the action; see ``Policy.probabilities``."""
        certain = np.eye(self.dynamics.spec.actions)[self._action]
        return np.broadcast_to(certain, (*first.shape, certain.size)).copy()


def _allowed(action: float | list, dynamics: Dynamics) -> np.ndarray:
    """The action in the environment's type and shape; ValueError where it has no such action."""
    spec, array = dynamics.spec, dynamics.spec.action_array
    if array is None:
        if not isinstance(action, int) or not 0 <= action < spec.actions:
            raise ValueError(
                f"action is {action}; this environment's are whole numbers, 0 to {spec.actions - 1}"
            )
        return np.array(action, np.int64)
    given = np.array(action, np.float64)
    if given.size == 1:
        given = np.broadcast_to(given.ravel(), array.low.shape)
    taken = given.astype(array.low.dtype)
    whole = array.low.dtype.kind != "i" or (taken == given).all()
    within = given.shape == array.low.shape and ((taken >= array.low) & (taken <= array.high)).all()
    if not (whole and within):
        raise ValueError(
            f"action is {action}; this environment's are {array.low.dtype} arrays of shape "
            f"{list(array.low.shape)} between {array.low.tolist()} and {array.high.tolist()}"
        )
    return taken


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Constant:
    """The same action at every step."""

    action: StrictInt | StrictFloat | list = Field(
        description="Number of a discrete action; where actions are arrays, the array as a list, or one "
        "number for all its entries."
    )

    lanes: ClassVar[int] = 0
    array_actions: ClassVar[bool] = True
    policy_class: ClassVar = ConstantPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(ConstantPolicy(seeds, lanes.dynamics, {"action": self.action}), recorder)

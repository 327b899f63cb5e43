"""Greedy shortest path: the goal grid's reference policy, which knows all distances."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from seedbed.algorithms.base import Memory, Recorder, StatelessPolicy, train_nothing
from seedbed.environments.goal_grid import GoalGrid
from seedbed.environments.lanes import Lanes


class ShortestPathPolicy(StatelessPolicy):
    """Takes the action that leads nearest to the goal; of equal ones the lowest, so it stays on the goal.

    Raises:
        ValueError: the environment is not the goal grid.
    """

    needs_state = True

    def __init__(self, seeds, dynamics, options=None):
        if not isinstance(dynamics, GoalGrid):
            raise ValueError(
                f"{type(self).__name__} acts in the goal grid only, not in {type(dynamics).__name__}."
            )
        super().__init__(seeds, dynamics, options)

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """Takes the state; see ``Policy.act``."""
        state, grid = observation, self.dynamics
        return grid.distance[state.goal[..., None], grid.next_cell[state.cell]].argmin(-1), None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """One for the action taken; see ``Policy.probabilities``."""
        action, _ = self.act(observation, mask, None, memory, first)
        return np.eye(self.dynamics.spec.actions)[action]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ShortestPath:
    """Greedy descent of the shortest-path distance; an oracle, since learners never see distances."""

    lanes: ClassVar[int] = 0
    policy_class: ClassVar = ShortestPathPolicy

    def train(self, lanes: Lanes, seeds: Sequence[int], budget: int, recorder: Recorder):
        """Learn nothing."""
        return train_nothing(ShortestPathPolicy(seeds, lanes.dynamics), recorder)

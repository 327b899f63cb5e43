"""Goal grid: walk through rooms and doors to a goal that lies elsewhere in every episode."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from seedbed.environments.base import Fact, Spec, Transition

STAY, UP, DOWN, LEFT, RIGHT = range(5)
"""Actions; a move into a wall stays where it is."""
MOVES = np.array([(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)])
"""Change of (x, y) by action; x counts columns from the left, y rows from the top."""
WALL, FLOOR, DOOR = "#.+"

DEFAULT_MAP = """
#################
#.......#.......#
#.......#.......#
#.......#.......#
#.......+.......#
#.......#.......#
#.......#.......#
#.......#.......#
#+#######+#######
#.......#.......#
#.......#.......#
#.......#.......#
#.......#.......#
#.......#.......#
#.......#.......#
#.......#.......#
#################
"""
"""Four rooms in a horseshoe: the lower two touch, but no door joins them."""

FACTS = (
    Fact("x", "int16", "column after the step, from 0"),
    Fact("y", "int16", "row after the step, from 0 at the top"),
    Fact("distance", "int32", "steps of the shortest path to the goal after the step", final=True),
    Fact("shortest", "int32", "steps of the shortest path from start to goal", final=True),
    Fact("moved", "bool", "the step led to another cell"),
    Fact("reached", "bool", "the goal was held for as many steps as asked"),
)


class Settings(BaseModel):
    """Arguments of ``GoalGrid``; what cannot be is refused here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    map: str = Field(DEFAULT_MAP, description="Rows of '#' wall, '.' floor, '+' door, all of equal length.")
    minimum_distance: Annotated[int, Field(ge=1)] = Field(8, description="Shortest path of any episode.")
    hold: Annotated[int, Field(ge=1, le=4)] = Field(
        1, description="Consecutive steps that must end on the goal."
    )
    horizon: Annotated[int, Field(ge=1)] = Field(128, description="Step limit.")
    step_cost: Annotated[float, Field(ge=0)] = Field(0.01, description="Taken from the reward each step.")
    progress_weight: float = Field(1.0, description="Reward per step that the goal comes nearer.")
    goal_bonus: float = Field(5.0, description="Reward for reaching the goal.")

    @field_validator("map")
    @classmethod
    def _drawable(cls, text: str) -> str:
        rows = text.split()
        if not rows:
            raise ValueError("the map is empty; draw rows of '#' wall, '.' floor and '+' door")
        for number, row in enumerate(rows, 1):
            if len(row) != len(rows[0]):
                raise ValueError(f"row {number} of the map has {len(row)} cells, row 1 has {len(rows[0])}")
            if strange := sorted(set(row) - set(WALL + FLOOR + DOOR)):
                raise ValueError(f"row {number} of the map has {strange}; cells are '#', '.' or '+'")
        if "".join(rows).count(FLOOR) < 2:
            raise ValueError("the map needs two cells of floor at least, one to start from and one to reach")
        return "\n".join(rows)


class GoalState(NamedTuple):
    """A walker; leading shape [...], all int64. Cells are numbered over floor and doors, row by row."""

    cell: np.ndarray
    goal: np.ndarray
    held: np.ndarray
    """Consecutive steps, up to the last one, that ended on the goal."""
    shortest: np.ndarray
    """Steps of the shortest path from start to goal."""


class GoalGrid:
    """A grid world with walls and doors. Pure and deterministic but for where an episode starts and leads.

    The goal is uniform over the cells of floor that have a start, the start uniform over the cells of floor
    at least ``minimum_distance`` steps from the goal; nobody starts on a door and no door is a goal. Outside
    the map is wall. A step pays -step_cost + progress_weight x decrease of the shortest-path distance
    + goal_bonus when the goal is reached, that is when the last ``hold`` steps all ended on it; this
    terminates the episode.

    The observation, in [-1, 1], is made of one-hot column and row of the walker, whether each of the moves
    up, down, left, right is blocked, one-hot column and row of the goal, (goal - walker) / (largest extent of
    the map - 1) in x and y, and the share of ``hold`` that is done. Distances are never seen.

    Args:
        **arguments: fields of ``Settings``.

    Raises:
        pydantic.ValidationError: an argument that cannot be; each is named.
        ValueError: parts of the map cannot be reached from each other, or all cells are nearer to each other
            than ``minimum_distance``.
    """

    def __init__(self, **arguments: Any):
        self.settings = Settings(**arguments)
        cells = np.array([list(row) for row in self.settings.map.split()])
        self.height, self.width = cells.shape
        y, x = np.nonzero(cells != WALL)
        self.position = np.stack([x, y], -1)
        """(x, y) of each cell, [C, 2]"""
        self.next_cell = neighbours(cells != WALL)
        """Where each action leads, [C, 5]"""
        self.distance = shortest_paths(self.next_cell)
        """Steps from cell to cell, [C, C]"""
        if (self.distance < 0).any():
            (from_x, from_y), (to_x, to_y) = self.position[np.argwhere(self.distance < 0)[0]]
            raise ValueError(
                f"On the map no way leads from column {from_x}, row {from_y} to column {to_x}, row {to_y} "
                f"(both from 0). Open a door between them, or make one of them wall."
            )
        floor = cells[y, x] == FLOOR
        far = (self.distance >= self.settings.minimum_distance) & floor & floor[:, None]
        self._goals = np.flatnonzero(far.any(1))
        if not self._goals.size:
            raise ValueError(
                f"No two cells of floor are {self.settings.minimum_distance} steps apart (minimum_distance); "
                f"the most on this map is {self.distance[np.ix_(floor, floor)].max()}."
            )
        self._starts = np.nonzero(far)[1]
        self._start_count = far.sum(1)
        self._first_start = np.cumsum(self._start_count) - self._start_count
        self._tabulate_observations()
        entries = 2 * (self.width + self.height) + 7
        low = np.zeros(entries, np.float32)
        low[-3:-1] = -1
        self.spec = Spec(
            observation_low=low,
            observation_high=np.ones(entries, np.float32),
            actions=len(MOVES),
            horizon=self.settings.horizon,
            initial_noise=2,
            step_noise=0,
            facts=FACTS,
            success="reached",
        )

    def _tabulate_observations(self) -> None:
        """One row per cell: what is seen of a walker there, and of a goal there."""
        x, y = self.position.T
        place = np.concatenate([np.eye(self.width)[x], np.eye(self.height)[y]], 1)
        blocked = self.next_cell[:, 1:] == np.arange(len(x))[:, None]
        self._seen_walker = np.concatenate([place, blocked], 1).astype(np.float32)
        self._seen_goal = place.astype(np.float32)
        self._scaled = (self.position / max(self.width - 1, self.height - 1, 1)).astype(np.float32)

    def __repr__(self) -> str:
        return f"GoalGrid({self.width}x{self.height}, hold={self.settings.hold})"

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One episode's noise: uniforms for goal and start [2]; its steps take none, [horizon, 0]."""
        return generator.random(2), np.empty((self.settings.horizon, 0))

    def initial(self, noise: np.ndarray) -> GoalState:
        """Goal and start, from uniforms [..., 2]."""
        goal = np.asarray(self._goals[(noise[..., 0] * self._goals.size).astype(np.int64)])
        rank = (noise[..., 1] * self._start_count[goal]).astype(np.int64)
        cell = np.asarray(self._starts[self._first_start[goal] + rank])
        return GoalState(cell, goal, np.zeros(goal.shape, np.int64), np.asarray(self.distance[goal, cell]))

    def observe(self, state: GoalState) -> np.ndarray:
        """What is seen, [..., 2 (width + height) + 7] float32; see the class."""
        observation = np.empty((*np.shape(state.cell), *self.spec.observation_shape), np.float32)
        split = self.width + self.height + 4
        observation[..., :split] = self._seen_walker[state.cell]
        observation[..., split:-3] = self._seen_goal[state.goal]
        observation[..., -3:-1] = self._scaled[state.goal] - self._scaled[state.cell]
        observation[..., -1] = state.held / self.settings.hold
        return observation

    def action_mask(self, state: GoalState) -> np.ndarray:
        """Every action always, [..., 5] bool."""
        return np.ones((*np.shape(state.cell), len(MOVES)), bool)

    def limit(self, state: GoalState) -> np.ndarray:
        """The horizon, [...] int64."""
        return np.full(np.shape(state.cell), self.settings.horizon)

    def step(self, state: GoalState, action: np.ndarray, noise: np.ndarray) -> Transition:
        """Move, or stay; see the class."""
        s = self.settings
        cell = np.asarray(self.next_cell[state.cell, action])
        distance = np.asarray(self.distance[state.goal, cell])
        held = np.asarray((state.held + 1) * (distance == 0))
        reached = np.asarray(held >= s.hold)
        progress = self.distance[state.goal, state.cell] - distance
        reward = np.asarray(s.progress_weight * progress + s.goal_bonus * reached - s.step_cost)
        x, y = self.position[cell, 0], self.position[cell, 1]
        facts = {
            "x": np.asarray(x.astype(np.int16)),
            "y": np.asarray(y.astype(np.int16)),
            "distance": distance.astype(np.int32),
            "shortest": state.shortest.astype(np.int32),
            "moved": np.asarray(cell != state.cell),
            "reached": reached.copy(),
        }
        new = GoalState(cell, state.goal.copy(), held, state.shortest.copy())
        return Transition(new, reward, reached, facts)

    def content_checksums(self) -> dict[str, str]:
        """Nothing is fixed by a draw; the map is an argument."""
        return {}


def neighbours(free: np.ndarray) -> np.ndarray:
    """Where each action leads from each free cell.

    Args:
        free: [height, width] bool; its True cells are numbered row by row.

    Returns:
        [C, 5] int64, the cell itself where a wall is in the way.
    """
    number = np.full((free.shape[0] + 2, free.shape[1] + 2), -1)
    number[1:-1, 1:-1][free] = np.arange(free.sum())
    y, x = np.nonzero(free)
    there = number[y[:, None] + 1 + MOVES[:, 1], x[:, None] + 1 + MOVES[:, 0]]
    return np.where(there < 0, np.arange(len(x))[:, None], there)


def shortest_paths(next_cell: np.ndarray) -> np.ndarray:
    """Breadth-first search from all cells at once.

    Args:
        next_cell: [C, actions], a graph in which every move can be undone.

    Returns:
        [C, C] int64 steps from cell to cell; -1 where no path leads.
    """
    known = np.eye(len(next_cell), dtype=bool)
    distance = np.where(known, 0, -1)
    steps = 0
    while True:
        steps += 1
        reachable = known[:, next_cell].any(2)
        if (reachable == known).all():
            return distance
        distance[reachable & ~known] = steps
        known = reachable

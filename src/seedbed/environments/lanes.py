"""Lanes: several episodes of several seeds side by side, each from its own stream."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics, Spec
from seedbed.seeding import Purpose, streams

DRAWN_AHEAD = 128
"""Episodes whose noise is drawn at once."""


class EpisodeError(SeedbedError):
    """An episode went wrong; the message names seed, episode and step."""


class LaneStep(NamedTuple):
    """What one step of all lanes gave. S seeds, L lanes; rows with ``active`` False mean nothing."""

    observation: np.ndarray
    """[S, L, *observation_shape] float32, of the next episode where one ended"""
    mask: np.ndarray | None
    """[S, L, actions] bool for ``observation``; None where all actions are always allowed"""
    reward: np.ndarray
    """[S, L] float64"""
    terminated: np.ndarray
    """[S, L] bool: the episode reached an end of its own"""
    truncated: np.ndarray
    """[S, L] bool: the episode reached its step limit; both flags may be true"""
    final_observation: np.ndarray
    """[S, L, *observation_shape] float32, after this step and before any reset"""
    final_mask: np.ndarray | None
    """[S, L, actions] bool for ``final_observation``"""
    episode: np.ndarray
    """[S, L] int64: number of the episode this step belongs to"""
    t: np.ndarray
    """[S, L] int64: number of this step within its episode, from 1"""
    active: np.ndarray
    """[S, L] bool: the lane took this step; idle lanes have no episode left"""
    facts: dict[str, np.ndarray]
    """name -> [S, L]"""


def succeeded(step: LaneStep, spec: Spec) -> np.ndarray:
    """Whether each lane's episode ended in success with this step, [S, L] bool."""
    if spec.success is None:
        return np.zeros_like(step.terminated)
    ended = step.terminated | step.truncated if spec.truncated_success else step.terminated
    return ended & step.facts[spec.success]


class Lanes(Protocol):
    """S seeds x L lanes of one environment; the next episode starts where one ends."""

    spec: Spec
    seeds: list[int]
    lanes: int
    observation: np.ndarray
    mask: np.ndarray | None
    first: np.ndarray
    """[S, L] bool: the current observation is the first of its episode"""
    active: np.ndarray
    """[S, L] bool: the lane has an episode to run"""
    episode: np.ndarray
    """[S, L] int64: the episode each lane is in"""

    def step(self, action: np.ndarray) -> LaneStep:
        """Take actions [S, L, *action_shape] in the environment's units."""
        ...

    def close(self) -> None:
        """Release what the environment holds, such as processes; no step is taken afterwards."""
        ...


class ExternalEnvironment(Protocol):
    """An environment that is no pure dynamics but makes its own lanes."""

    spec: Spec

    def make_lanes(
        self,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ) -> Lanes:
        """See ``make_lanes``."""
        ...

    def content_checksums(self) -> dict[str, str]:
        """See ``Dynamics.content_checksums``."""
        ...

    def warnings(self) -> list[str]:
        """What limits conclusions from its episodes, as sentences; tried out before a study runs."""
        ...


def make_lanes(
    environment: Dynamics | ExternalEnvironment,
    purpose: Purpose,
    seeds: Sequence[int],
    lanes: int,
    episodes: int | Sequence[int] | None = None,
    first: int = 0,
) -> Lanes:
    """Lanes of any environment, by its own ``make_lanes`` if it has one; arguments as ``DynamicsLanes``."""
    if hasattr(environment, "make_lanes"):
        return environment.make_lanes(purpose, seeds, lanes, episodes, first)
    return DynamicsLanes(environment, purpose, seeds, lanes, episodes, first)


class DynamicsLanes:
    """Lanes over pure dynamics. A free lane takes its seed's next episode, lanes ascending.

    Args:
        dynamics: the environment.
        purpose: stream of the episodes.
        seeds: training seeds, [S].
        lanes: episodes side by side per seed, L.
        episodes: None for an endless stream, a number n for n episodes of each seed, or a list of plain reset
            seeds, the same for every seed (the k-th episode then draws from ``default_rng(episodes[k])``).
        first: number of the first episode; those before it are left out, and the others stay as they are.

    Raises:
        ValueError: no seed or no lane.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ):
        if not seeds or lanes < 1:
            raise ValueError(f"Lanes need at least one seed and one lane, got {len(seeds)} and {lanes}.")
        self.dynamics, self.spec, self.purpose = dynamics, dynamics.spec, purpose
        self.seeds, self.lanes = list(seeds), lanes
        self._reset_seeds = list(episodes) if isinstance(episodes, Sequence) else None
        count = len(self._reset_seeds) if self._reset_seeds is not None else episodes
        self._first_episode, self._end = first, None if count is None else first + count
        shape = (len(self.seeds), lanes)
        self._rows = np.arange(shape[0] * lanes).reshape(shape)
        self._tape = np.zeros((shape[0] * lanes, self.spec.horizon, self.spec.step_noise))
        self._steps = self._tape.reshape(self._rows.size * self.spec.horizon, self.spec.step_noise)
        self._first_step = self._rows * self.spec.horizon
        self._initial = np.zeros((*shape, self.spec.initial_noise))
        self._upcoming = np.full(shape[0], first, np.int64)
        self._drawn: list[deque] = [deque() for _ in self.seeds]
        self.t = np.zeros(shape, np.int64)
        self.episode = np.zeros(shape, np.int64)
        self.active = np.ones(shape, bool)
        self.first = np.ones(shape, bool)
        for row in range(shape[0]):
            for lane in range(lanes):
                self._begin(row, lane)
        self.state = dynamics.initial(self._initial)
        self._limit = dynamics.limit(self.state)
        self.observation = dynamics.observe(self.state)
        self.mask = dynamics.action_mask(self.state) if self.spec.masked else None

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, row: int, lane: int) -> None:
        episode = int(self._upcoming[row])
        self._upcoming[row] += 1
        self.t[row, lane] = 0
        self.first[row, lane] = True
        if self._end is not None and episode >= self._end:
            self.active[row, lane] = False
            return
        self.episode[row, lane] = episode
        if self.spec.initial_noise or self.spec.step_noise:
            if not self._drawn[row]:
                self._draw_ahead(row, episode)
            self._initial[row, lane], self._tape[self._rows[row, lane]] = self._drawn[row].popleft()

    def _draw_ahead(self, row: int, episode: int) -> None:
        """Draw the next episodes of one seed in one go, which is faster than one by one."""
        end = episode + DRAWN_AHEAD
        numbers = range(episode, end if self._end is None else min(end, self._end))
        if self._reset_seeds is None:
            generators = streams(self.purpose, self.seeds[row], numbers)
        else:
            generators = (np.random.default_rng(self._reset_seeds[n - self._first_episode]) for n in numbers)
        self._drawn[row].extend(
            self._draw(row, number, generator) for number, generator in zip(numbers, generators, strict=True)
        )

    def _draw(self, row: int, episode: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Noise of one episode; see ``Dynamics.draw``."""
        return self.dynamics.draw(generator)

    def step(self, action: np.ndarray) -> LaneStep:
        """Take actions [S, L]; lanes whose episode ends begin their next one.

        Raises:
            ValueError: an action of an active lane is not in [0, actions).
        """
        action = np.asarray(action)
        outside = (action < 0) | (action >= self.spec.actions)
        if outside.any():
            if (outside & self.active).any():
                row, lane = np.argwhere(outside & self.active)[0]
                raise ValueError(
                    f"Action {action[row, lane]} of seed {self.seeds[row]}, "
                    f"episode {self.episode[row, lane]}, step {self.t[row, lane] + 1} "
                    f"is not in [0, {self.spec.actions})."
                )
            action = np.where(outside, 0, action)  # idle lanes are stepped too; what they do means nothing
        noise = self._steps.take(self._first_step + np.minimum(self.t, self.spec.horizon - 1), 0)
        state, reward, terminated, facts = self.dynamics.step(self.state, action, noise)
        active, episode = self.active.copy(), self.episode.copy()
        self.t = self.t + 1
        t = self.t
        truncated = t >= self._limit
        final_observation = observation = self.dynamics.observe(state)
        final_mask = mask = self.dynamics.action_mask(state) if self.spec.masked else None
        ended = terminated | truncated  # idle lanes too: they start over, so no limit is ever overrun
        self.first = ended.copy()
        if ended.any():
            self.t = t.copy()
            rows = np.nonzero(ended)
            for row, lane in zip(*map(np.ndarray.tolist, rows), strict=True):
                self._begin(row, lane)
            fresh = self.dynamics.initial(self._initial[rows])
            for current, new in zip(state, fresh, strict=True):
                current[rows] = new
            self._limit = self.dynamics.limit(state)
            observation = final_observation.copy()
            observation[rows] = self.dynamics.observe(fresh)
            if mask is not None:
                mask = mask.copy()
                mask[rows] = self.dynamics.action_mask(fresh)
        self.state, self.observation, self.mask = state, observation, mask
        return LaneStep(
            observation,
            mask,
            reward,
            terminated,
            truncated,
            final_observation,
            final_mask,
            episode,
            t,
            active,
            facts,
        )

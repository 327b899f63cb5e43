"""Lanes in which every episode has an environment of its own, drawn from a distribution."""

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from seedbed.environments.base import State, Transition
from seedbed.environments.external import OneLane
from seedbed.environments.gymnasium_lanes import GymnasiumLanes
from seedbed.environments.gymnasium_spaces import Observations
from seedbed.environments.lanes import DynamicsLanes, EpisodeError, LaneStep
from seedbed.seeding import Purpose, stream

if TYPE_CHECKING:
    from seedbed.environments.distribution import Distribution, Drawn, Point

OPEN = 32
"""Gymnasium environments that a lane keeps open."""


class DrawnDynamics:
    """Pure dynamics whose rows are in different environments: each group of rows is stepped by its own.

    A state is (place [...], number [...], parameters [..., p], *state of the environment), where ``place``
    says which parameter set it is, in the order in which they came.

    Args:
        distribution: over pure dynamics.
    """

    def __init__(self, distribution: "Distribution"):
        self.spec, self._distribution = distribution.spec, distribution
        self._points: list[Point] = []
        self._places: dict[Point, int] = {}
        self._kind: Callable[..., State] = tuple
        self._place(distribution.first_point)  # a lane that never had an episode is in place 0

    def _place(self, point: "Point") -> int:
        if point not in self._places:
            self._places[point] = len(self._points)
            self._points.append(point)
        return self._places[point]

    def draw(self, drawn: "Drawn", generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One episode's noise; see ``Dynamics.draw``. The start is of the environment if it has a source."""
        dynamics = self._distribution.member(drawn.point)
        initial, steps = dynamics.draw(generator)
        if drawn.source is not None:
            initial, _ = dynamics.draw(drawn.source)
        where = [self._place(drawn.point), drawn.number, *self._distribution.numbers(drawn.point)]
        return np.concatenate([where, initial]), steps

    def initial(self, noise: np.ndarray) -> State:
        """See ``Dynamics.initial``."""
        count = len(self._distribution.first_point)
        place, number = noise[..., 0].astype(np.int64), noise[..., 1].astype(np.int64)

        def begin(dynamics, rest):
            state = dynamics.initial(rest)
            self._kind = type(state)._make
            return tuple(state)

        inner = self._each(place, begin, noise[..., 2 + count :])
        return place, number, noise[..., 2 : 2 + count].copy(), *inner

    def observe(self, state: State) -> np.ndarray:
        """See ``Dynamics.observe``."""
        return self._of_state("observe", state)

    def action_mask(self, state: State) -> np.ndarray:
        """See ``Dynamics.action_mask``."""
        return self._of_state("action_mask", state)

    def limit(self, state: State) -> np.ndarray:
        """See ``Dynamics.limit``."""
        return self._of_state("limit", state)

    def _of_state(self, method: str, state: State) -> np.ndarray:
        def ask(dynamics, *inner):
            return (getattr(dynamics, method)(self._kind(inner)),)

        return self._each(state[0], ask, *state[3:])[0]

    def step(self, state: State, action: np.ndarray, noise: np.ndarray) -> Transition:
        """See ``Dynamics.step``."""
        names: list[str] = []

        def move(dynamics, action, noise, *inner):
            moved = dynamics.step(self._kind(inner), action, noise)
            names[:] = moved.facts
            return (moved.reward, moved.terminated, *moved.facts.values(), *moved.state)

        place, number, parameters, *inner = state
        reward, terminated, *rest = self._each(place, move, action, noise, *inner)
        facts = dict(zip(names, rest, strict=False)) | self._distribution.facts(number, parameters)
        return Transition(
            (place.copy(), number.copy(), parameters.copy(), *rest[len(names) :]), reward, terminated, facts
        )

    def _each(
        self, place: np.ndarray, function: Callable[..., Sequence[np.ndarray]], *arrays: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """``function(dynamics, *arrays)`` for the rows of each environment, put together again."""
        present = np.unique(place)
        if present.size == 1:
            return tuple(function(self._at(present[0]), *arrays))
        results: list[np.ndarray] = []
        for one in present:
            rows = np.nonzero(place == one)
            parts = function(self._at(one), *(array[rows] for array in arrays))
            if not results:
                results = [np.empty((*place.shape, *part.shape[1:]), part.dtype) for part in parts]
            for result, part in zip(results, parts, strict=True):
                result[rows] = part
        return tuple(results)

    def _at(self, place: int) -> Any:
        return self._distribution.member(self._points[place])


class DrawnDynamicsLanes(DynamicsLanes):
    """``DynamicsLanes`` whose episodes have drawn environments.

    Args:
        distribution: over pure dynamics.
        purpose, seeds, lanes, episodes, first: see ``DynamicsLanes``.

    Raises:
        EpisodeError: an environment cannot be drawn or made; names seed and episode.
    """

    def __init__(
        self,
        distribution: "Distribution",
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ):
        self._distribution = distribution
        super().__init__(DrawnDynamics(distribution), purpose, seeds, lanes, episodes, first)

    def _draw(self, row: int, episode: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        seed = self.seeds[row]
        try:
            return self.dynamics.draw(
                self._distribution.drawn(self.purpose, seed, episode, generator), generator
            )
        except ValueError as error:
            raise EpisodeError(f"In seed {seed}, episode {episode}: {error}") from error


class SwitchingEnv(gymnasium.Env):
    """A Gymnasium environment that is another one after a reset if its parameter set has changed.

    Args:
        distribution: over Gymnasium environments.
    """

    def __init__(self, distribution: "Distribution"):
        self._distribution, self.point = distribution, distribution.first_point
        self._open: OrderedDict[Point, gymnasium.Env] = OrderedDict()
        self._env = self._opened()
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space

    def _opened(self) -> gymnasium.Env:
        if self.point in self._open:
            self._open.move_to_end(self.point)
            return self._open[self.point]
        if len(self._open) >= OPEN:
            self._open.popitem(last=False)[1].close()
        return self._open.setdefault(self.point, self._distribution.member(self.point).make())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin the episode of a seed in the environment of ``point``."""
        self._env = self._opened()
        return self._env.reset(seed=seed)

    def step(self, action):
        """Take one step."""
        return self._env.step(action)

    def close(self) -> None:
        """Close all environments."""
        while self._open:
            self._open.popitem()[1].close()


class DrawnGymnasiumLanes(GymnasiumLanes):
    """``GymnasiumLanes`` whose episodes have drawn environments, each reset with its episode's own seed.

    Args:
        distribution: over Gymnasium environments.
        switches: one per seed and lane, [S * L].
        purpose, seeds, lanes, episodes, first: see ``DynamicsLanes``.

    Raises:
        EpisodeError: as ``DrawnDynamicsLanes``.
    """

    def __init__(
        self,
        distribution: "Distribution",
        switches: list[SwitchingEnv],
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ):
        one = distribution.reference
        self._distribution, self._switches = distribution, switches
        self._numbers = np.full((len(seeds), lanes), -1)
        self._parameters = np.zeros((len(seeds), lanes, len(distribution.first_point)))
        ones = [functools.partial(OneLane, lambda switch=switch: switch, one.success) for switch in switches]
        envs = SyncVectorEnv(ones, autoreset_mode=AutoresetMode.DISABLED)
        encoding = Observations(envs.single_observation_space)
        super().__init__(
            distribution,
            envs,
            encoding,
            purpose,
            seeds,
            lanes,
            episodes,
            first,
            one.seed_bits,
            one.first_action,
        )

    def _begin(self, row: int, lane: int) -> int | None:
        reset_seed = super()._begin(row, lane)
        if reset_seed is None:
            return None
        seed, episode = self.seeds[row], int(self.episode[row, lane])
        if self._reset_seeds is not None:
            generator = np.random.default_rng(reset_seed)
        else:
            generator = stream(self.purpose, seed, episode)
        generator.integers(2**self._seed_bits)  # the reset seed itself
        try:
            drawn = self._distribution.drawn(self.purpose, seed, episode, generator)
        except ValueError as error:
            raise EpisodeError(f"In seed {seed}, episode {episode}: {error}") from error
        self._switches[row * self.lanes + lane].point = drawn.point
        self._numbers[row, lane] = drawn.number
        self._parameters[row, lane] = self._distribution.numbers(drawn.point)
        return reset_seed if drawn.source is None else int(drawn.source.integers(2**self._seed_bits))

    def step(self, action: np.ndarray) -> LaneStep:
        """See ``GymnasiumLanes.step``; the facts tell the episode's environment."""
        facts = self._distribution.facts(self._numbers, self._parameters)
        step = super().step(action)
        return step._replace(facts=step.facts | facts)


def drawn_gymnasium_lanes(
    distribution: "Distribution", purpose: Purpose, seeds: Sequence[int], lanes: int, *episodes: Any
) -> DrawnGymnasiumLanes:
    """Lanes with as many environments as they need; arguments as ``DynamicsLanes``."""
    switches = [SwitchingEnv(distribution) for _ in range(len(seeds) * lanes)]
    return DrawnGymnasiumLanes(distribution, switches, purpose, seeds, lanes, *episodes)

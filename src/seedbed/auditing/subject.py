"""What is audited: an environment by its name, the episodes that are played in it, and what a check finds."""

import contextlib
import functools
import hashlib
import math
import random
import tempfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from seedbed.algorithms.uniform_random import UniformRandomPolicy
from seedbed.artifacts import EPISODE_COLUMNS, STEP_COLUMNS, write_table
from seedbed.environments.base import ActionArray, Dynamics, Spec
from seedbed.environments.external import GymnasiumEnvironment, VectorEnvironment
from seedbed.environments.gymnasium_env import DynamicsEnv
from seedbed.environments.gymnasium_lanes import reset_seed
from seedbed.environments.gymnasium_spaces import Observations, actions_of
from seedbed.environments.lanes import ExternalEnvironment
from seedbed.environments.opening import open_environment
from seedbed.evaluation import Evaluation, evaluate
from seedbed.seeding import Purpose

PURPOSE = Purpose.EVALUATION
"""Stream of an audit's episodes; nothing is learned from them."""
KEPT = 64
"""Steps for which an observation is kept, to see whether later steps change it."""


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Args:
        check: its name.
        holds: whether what it looks at holds; None where it cannot be judged or is no question of right or
            wrong, for the reason in ``detail``.
        detail: what was seen.
        remedy: what to do; "" where nothing is to be done.
    """

    check: str
    holds: bool | None
    detail: str
    remedy: str = ""


class WatchfulRandomPolicy(UniformRandomPolicy):
    """Uniform random actions, each drawn number shifted by a checksum of the observation.

    So any bit of an observation that differs shows in all that follows, and in the tables. Infinite bounds of
    actions are taken as -1 and 1.
    """

    def __init__(self, seeds: Sequence[int], environment: Dynamics | ExternalEnvironment):
        super().__init__(seeds, SimpleNamespace(spec=_bounded(environment.spec)))

    def act(self, observation, mask, uniforms, memory, first):
        """See ``Policy.act``."""
        rows = np.ascontiguousarray(observation).reshape(first.size, -1)
        shift = np.array([zlib.crc32(row.tobytes()) for row in rows]) / 2**32
        return super().act(
            observation, mask, (uniforms + shift.reshape(*first.shape, 1)) % 1.0, memory, first
        )


def _bounded(spec: Spec) -> Spec:
    if spec.action_array is None:
        return spec
    return replace(spec, action_array=ActionArray(*_bounds(spec.action_array)))


def _bounds(array: ActionArray) -> tuple[np.ndarray, np.ndarray]:
    """Finite bounds of actions: -1 and 1 where there are none."""
    if np.issubdtype(array.low.dtype, np.integer):
        return array.low, array.high
    low = np.where(np.isfinite(array.low), array.low, np.minimum(-1.0, array.high))
    high = np.where(np.isfinite(array.high), array.high, np.maximum(1.0, low))
    return low.astype(array.low.dtype), high.astype(array.low.dtype)


def draw_action(space: gymnasium.Space, generator: np.random.Generator, mask: np.ndarray | None = None):
    """A random action of a space; where an action mask is known, an allowed one."""
    count, array = actions_of(space)
    if array is None:
        allowed = np.arange(count) if mask is None else np.flatnonzero(mask)
        return np.int64(space.start + allowed[generator.integers(len(allowed))])
    low, high = _bounds(array)
    if np.issubdtype(low.dtype, np.integer):
        return generator.integers(low, high, endpoint=True)
    return generator.uniform(low, high).astype(low.dtype)


@dataclass
class Play:
    """One episode of a single environment, and what was wrong in it; t counts steps, 0 is the reset."""

    seed: int
    seen: list[bytes] = field(default_factory=list)
    """SHA-256 of each observation, the reset's first."""
    rewards: list[Any] = field(default_factory=list)
    flags: list[tuple[Any, Any]] = field(default_factory=list)
    """(terminated, truncated), as they were returned."""
    info: Any = None
    """Of the last step."""
    not_finite: tuple[int, str] | None = None
    """The first t whose reward or observation is not finite, and how."""
    outside: tuple[int, str] | None = None
    """The first t whose observation is finite but not in its space, and how."""
    no_dictionary: tuple[int, str] | None = None
    """The first t whose info is no dictionary, and what it is."""
    changed_observation: int | None = None
    """A t whose observation was not the same any more some steps later."""
    changed_action: int | None = None
    """The first t that wrote to the action it was given."""
    error: str | None = None
    """What the environment raised, and after which step."""

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self.rewards)

    @property
    def ended(self) -> bool:
        """Whether it reached an end."""
        return bool(self.flags) and any(map(bool, self.flags[-1]))

    def fingerprint(self) -> list[tuple]:
        """All that was returned, step by step, comparable bit by bit."""
        steps = zip(self.seen[1:], self.rewards, self.flags, strict=False)  # an error may cut the last
        return [(*self.seen[:1], self.error), *((o, float(r), *map(bool, flags)) for o, r, flags in steps)]


def play(env: gymnasium.Env, seed: int, actions: int, steps: int) -> Play:
    """Play one episode, at most so many steps, under actions of a generator with the seed ``actions``."""
    episode, generator = Play(seed), np.random.default_rng(actions)
    encoding, kept = Observations(env.observation_space), deque(maxlen=KEPT)

    def look(observation: Any, info: Any) -> None:
        t, encoded = episode.length, encoding.one(observation)
        episode.seen.append(hashlib.sha256(encoded.tobytes()).digest())
        if not np.isfinite(encoded).all():
            episode.not_finite = episode.not_finite or (t, f"the observation is {observation}")
        elif episode.outside is None and not encoding.space.contains(observation):
            episode.outside = (t, _outside(encoding.space, observation))
        if not isinstance(info, dict):
            episode.no_dictionary = episode.no_dictionary or (t, type(info).__name__)
        if len(kept) == KEPT:
            check(*kept.popleft())
        kept.append((t, observation))

    def check(t: int, observation: Any) -> None:
        if hashlib.sha256(encoding.one(observation).tobytes()).digest() != episode.seen[t]:
            episode.changed_observation = t

    try:
        observation, info = env.reset(seed=seed)
        look(observation, info)
        while episode.length < steps and not episode.ended:
            masks = isinstance(env.action_space, gymnasium.spaces.Discrete) and isinstance(info, dict)
            action = draw_action(env.action_space, generator, info.get("action_mask") if masks else None)
            given = deepcopy(action)
            observation, reward, terminated, truncated, info = env.step(action)
            if not math.isfinite(float(reward)):
                episode.not_finite = episode.not_finite or (episode.length + 1, f"the reward is {reward}")
            episode.rewards.append(reward)
            episode.flags.append((terminated, truncated))
            episode.info = info
            if episode.changed_action is None and not np.array_equal(action, given):
                episode.changed_action = episode.length
            look(observation, info)
        for t, observation in kept:
            check(t, observation)
    except Exception as error:
        episode.error = f"{type(error).__name__} after step {episode.length}: {error}"
    return episode


def _outside(space: gymnasium.Space, observation: Any) -> str:
    if not isinstance(space, gymnasium.spaces.Box) or not isinstance(observation, np.ndarray):
        return f"{observation!r} is not in {space}"
    wrong = np.argwhere((observation < space.low) | (observation > space.high))
    if not len(wrong):
        return f"an array of {observation.dtype}, where the space says {space.dtype}"
    entry = tuple(map(int, wrong[0]))
    return f"entry {entry} is {observation[entry]}, not in [{space.low[entry]}, {space.high[entry]}]"


@dataclass(frozen=True)
class Subject:
    """The environment under audit.

    Args:
        name, arguments: see ``environments.opening``; a fresh process makes it again from them.
        episodes: number of episodes that checks play.
    """

    name: str
    arguments: dict[str, Any]
    episodes: int

    @functools.cached_property
    def environment(self) -> Dynamics | ExternalEnvironment:
        """As a study would have it.

        Raises:
            SeedbedError: it cannot be made.
        """
        return open_environment(self.name, self.arguments).environment

    @functools.cached_property
    def single(self) -> GymnasiumEnvironment | None:
        """As a single Gymnasium environment; None where it is none, such as a vector environment."""
        if isinstance(self.environment, GymnasiumEnvironment):
            return self.environment
        if hasattr(self.environment, "make_lanes") or self.environment.spec.agents is not None:
            return None
        spec = self.environment.spec
        return GymnasiumEnvironment(
            id=functools.partial(DynamicsEnv, self.environment),
            success=spec.success,
            truncated_success=spec.truncated_success,
            horizon=spec.horizon,
        )

    @property
    def kind(self) -> str:
        """What ``single`` is None for, in words."""
        if isinstance(self.environment, VectorEnvironment):
            return f"a vector environment that resets in mode {self.environment.autoreset_mode.name}"
        return "no single-agent Gymnasium environment"

    @functools.cached_property
    def seeds(self) -> list[int]:
        """Reset seeds of the episodes of ``plays``."""
        bits = self.single.seed_bits
        return [reset_seed(PURPOSE, 0, episode, bits) for episode in range(self.episodes)]

    @functools.cached_property
    def plays(self) -> list[Play]:
        """The episodes of all seeds, played one after the other in one environment."""
        with contextlib.closing(self.single.make()) as env:
            return [play(env, seed, seed, self.single.spec.horizon) for seed in self.seeds]

    def run(self, lanes: int, environment: Dynamics | ExternalEnvironment | None = None) -> Evaluation:
        """Evaluate random actions on the audit's episodes.

        Args:
            lanes: see ``evaluate``.
            environment: another form of the same environment.

        Raises:
            EvaluationError: see ``evaluate``.
        """
        environment = environment or self.environment
        policy = WatchfulRandomPolicy([0], environment)
        return evaluate(policy, environment, PURPOSE, self.episodes, lanes=lanes, log_steps=True)

    @functools.cached_property
    def reference(self) -> Evaluation:
        """``run`` with one lane and fixed global generators: what others are held against."""
        with global_generators(1):
            return self.run(1)


def digest(run: Evaluation) -> str:
    """SHA-256 of the bytes of the episode table's file and of the step table's."""
    total = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        for table, columns in ((run.episodes, EPISODE_COLUMNS), (run.steps, STEP_COLUMNS)):
            path = Path(folder, "table.parquet")
            write_table(path, table, columns)
            total.update(path.read_bytes())
    return total.hexdigest()


def difference(one: Evaluation, other: Evaluation) -> str | None:
    """Where the step tables first differ, in words; None where the files of both tables have equal bytes."""
    if digest(one) == digest(other):
        return None
    mine, theirs = (run.steps.drop(columns="policy_mode") for run in (one, other))
    rows = min(len(mine), len(theirs))
    unequal = mine[:rows].to_numpy() != theirs[:rows].to_numpy()
    if not unequal.any():
        return f"{len(mine)} and {len(theirs)} steps"
    row, column = np.argwhere(unequal)[0]
    name = mine.columns[column]
    first = mine.iloc[row]
    return (
        f"first in episode {first['episode']}, step {first['t']}: "
        f"{name} {first[name]} and {theirs.iloc[row][name]}"
    )


@contextlib.contextmanager
def global_generators(seed: int) -> Iterator[None]:
    """Python's and numpy's global generators as after seeding; afterwards as they were before."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - others may use it
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002


def global_state() -> tuple:
    """The state of Python's and numpy's global generators, comparable."""
    name, words, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), name, words.tobytes(), *rest

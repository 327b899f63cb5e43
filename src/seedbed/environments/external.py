"""Gymnasium environments, single or vectorised, as environments of a study."""

import functools
import importlib
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TimeLimit
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from seedbed.environments.base import Fact, Spec
from seedbed.environments.gymnasium_lanes import ERROR, SEED_BITS, GymnasiumLanes, autoreset_mode
from seedbed.environments.gymnasium_spaces import Observations, actions_of
from seedbed.seeding import Purpose

HARD_LIMIT = 100_000
"""Steps after which an episode without a step limit is an error: it would never end."""
CARRYING = ("NormalizeObservation", "NormalizeReward")
"""Wrappers that carry statistics from one episode into the next."""


class OneLane(gymnasium.Env):
    """One environment as a lane: float32 observations, and in ``info`` only what the lanes read.

    A reset without a seed means that no episode is left: the lane then stands still. What the environment
    raises is reported in ``info`` in place of being raised, so that the lanes can say in which episode.

    Args:
        make: constructs the environment.
        success: key of ``info`` to hand on; None for none.
    """

    def __init__(self, make: Callable[[], gymnasium.Env], success: str | None):
        self._env, self._success = make(), success
        self._encoding = Observations(self._env.observation_space)
        self.observation_space = gymnasium.spaces.Box(self._encoding.low, self._encoding.high)
        self.action_space = self._env.action_space
        self._last, self._idle = np.zeros(self.observation_space.shape, np.float32), True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin the episode of a seed; options are not passed on."""
        self._idle = seed is None
        if self._idle:
            return self._last, {}
        try:
            observation, _ = self._env.reset(seed=seed)
            self._last = self._encoding.one(observation)
        except Exception as error:
            return self._last, {ERROR: _described(error)}
        return self._last, {}

    def step(self, action):
        """Take one step; a lane that stands still gives its last observation and no reward."""
        if self._idle:
            return self._last, 0.0, False, False, {}
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
            self._last, reward = self._encoding.one(observation), float(reward)
        except Exception as error:
            return self._last, 0.0, True, False, {ERROR: _described(error)}
        if self._success is None:
            return self._last, reward, bool(terminated), bool(truncated), {}
        if self._success in info:
            told = {self._success: bool(info[self._success])}
        else:
            told = dict.fromkeys(map(str, info), False) if terminated or truncated else {}
        return self._last, reward, bool(terminated), bool(truncated), told

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def _described(error: Exception) -> str:
    """Kind and message of an error, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (raised in {place.filename}, line {place.lineno})"


@dataclass(config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))
class GymnasiumEnvironment:
    """A single-agent Gymnasium environment, each episode reset with a seed of its own.

    Episode k of training seed s is reset with a seed below 2**63 drawn from the stream (purpose, s, k), and
    depends on nothing else but its actions: not on lanes, order or algorithm. What an environment or a
    wrapper keeps from one episode to the next would break that; ``ignores_seed`` looks.

    Raises:
        ValueError: it cannot be constructed, its spaces are not understood, or a wrapper normalises by
            statistics of earlier episodes.
    """

    id: str | Callable[..., Any] = Field(
        description="Gymnasium id, such as CartPole-v1 or package.module:Name-v0; or package.module:Class."
    )
    kwargs: dict[str, Any] = Field({}, description="Keyword arguments of the environment.")
    wrappers: list[str | Callable[..., Any]] = Field(
        [], description="package.module:Wrapper, applied in this order, each called with the environment."
    )
    success: str | None = Field(
        None, description="Key of info that tells success, at the latest in the last step of an episode."
    )
    truncated_success: bool = Field(
        False, description="Whether an episode that is truncated may succeed, as in Gymnasium-Robotics."
    )
    horizon: int | None = Field(
        None, ge=1, description="Step limit in place of the environment's own, after which it truncates."
    )
    vectorisation: Literal["sync", "async"] = Field(
        "sync", description="Lanes one after the other, or each in a process of its own."
    )
    seed_bits: int = Field(
        SEED_BITS, ge=16, le=63, description="Reset seeds are below 2**seed_bits; some environments need 32."
    )

    def __post_init__(self):
        env = self.make()
        try:
            for layer in _layers(env):
                if type(layer).__name__ in CARRYING:
                    raise ValueError(
                        f"{type(layer).__name__} carries statistics from one episode into the next, so an "
                        "episode would depend on the lanes. Normalise by constants instead."
                    )
            limits = [layer._max_episode_steps for layer in _layers(env) if isinstance(layer, TimeLimit)]
            horizon = min(limits, default=HARD_LIMIT)
            self.spec = _spec(
                env.observation_space, env.action_space, horizon, self.success, self.truncated_success
            )
            self.first_action = _first_action(env.action_space)
        finally:
            env.close()

    def make(self) -> gymnasium.Env:
        """The environment, wrapped; nothing is rendered.

        Raises:
            ValueError: it cannot be constructed.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of ids that have a later version
                made = _located(self.id)
                if callable(made):
                    env = made(**self.kwargs)
                    if self.horizon is not None:
                        env = TimeLimit(env, self.horizon)
                else:
                    env = gymnasium.make(
                        made, max_episode_steps=self.horizon, disable_env_checker=True, **self.kwargs
                    )
                for wrapper in self.wrappers:
                    env = _located(wrapper)(env)
        except Exception as error:
            raise ValueError(
                f"{self.id} cannot be made with {self.kwargs} and the wrappers {self.wrappers}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return env

    def make_lanes(
        self,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ) -> GymnasiumLanes:
        """See ``lanes.make_lanes``; with ``async`` there are as many processes as seeds times lanes."""
        one = functools.partial(OneLane, self.make, self.success)
        vector = SyncVectorEnv if self.vectorisation == "sync" else AsyncVectorEnv
        envs = vector([one] * (len(seeds) * lanes), autoreset_mode=AutoresetMode.DISABLED)
        encoding = Observations(envs.single_observation_space)
        return GymnasiumLanes(
            self, envs, encoding, purpose, seeds, lanes, episodes, first, self.seed_bits, self.first_action
        )

    def content_checksums(self) -> dict[str, str]:
        """Nothing is known of the environment's material."""
        return {}

    def warnings(self) -> list[str]:
        """Whether its seeds are heeded; see ``ignores_seed``."""
        if not ignores_seed(self):
            return []
        return [
            "Equal reset seeds and actions gave different episodes, so algorithms do not meet the same "
            "episodes and a rerun gives other results."
        ]


@dataclass(config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))
class VectorEnvironment:
    """A Gymnasium vector environment that resets in its own way.

    What that means for its episodes is said in ``gymnasium_lanes``.

    Raises:
        ValueError: it cannot be constructed, does not say how it resets, or its spaces are not understood.
    """

    id: str | Callable[..., Any] = Field(
        description="package.module:Name of what makes it when called with num_envs, or a Gymnasium id."
    )
    kwargs: dict[str, Any] = Field({}, description="Further keyword arguments.")
    success: str | None = Field(None, description="Key of info that tells success.")
    truncated_success: bool = Field(False, description="Whether a truncated episode may succeed.")
    horizon: int = Field(
        HARD_LIMIT, ge=1, description="An upper bound of the length of an episode; a longer one is an error."
    )
    seed_bits: int = Field(SEED_BITS, ge=16, le=63, description="Reset seeds are below 2**seed_bits.")

    def __post_init__(self):
        envs = self._make(1)
        try:
            self.autoreset_mode = autoreset_mode(envs)
            self._observations = Observations(envs.single_observation_space)
            self.first_action = _first_action(envs.single_action_space)
            self.spec = _spec(
                envs.single_observation_space,
                envs.single_action_space,
                self.horizon,
                self.success,
                self.truncated_success,
            )
        finally:
            envs.close()

    def _make(self, num_envs: int) -> VectorEnv:
        try:
            made = _located(self.id)
            if callable(made):
                return made(num_envs=num_envs, **self.kwargs)
            return gymnasium.make_vec(made, num_envs, "vector_entry_point", **self.kwargs)
        except Exception as error:
            raise ValueError(
                f"{self.id} cannot be made with num_envs={num_envs} and {self.kwargs}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def make_lanes(
        self,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ) -> GymnasiumLanes:
        """See ``lanes.make_lanes``."""
        return GymnasiumLanes(
            self,
            self._make(len(seeds) * lanes),
            self._observations,
            purpose,
            seeds,
            lanes,
            episodes,
            first,
            self.seed_bits,
            self.first_action,
        )

    def content_checksums(self) -> dict[str, str]:
        """Nothing is known of the environment's material."""
        return {}

    def warnings(self) -> list[str]:
        """Whether it seeds its episodes itself."""
        if self.autoreset_mode is AutoresetMode.DISABLED:
            return []
        return [
            "The environment begins its episodes by itself, so which they are depends on the number of "
            "lanes, and algorithms do not meet the same ones."
        ]


def ignores_seed(environment: GymnasiumEnvironment, seed: int = 0, steps: int = 200) -> bool:
    """Whether an episode depends on more than its reset seed and its actions.

    The episode of one seed is played in a fresh environment, then twice more in the same one after an episode
    of another seed. They differ if the environment ignores its seed, draws from a global generator or the
    clock, or keeps something from one episode to the next. Equal episodes are no proof of the contrary.

    Args:
        environment: what to look at.
        seed: reset seed, also of the actions.
        steps: how far an episode is played.
    """
    env = environment.make()
    try:
        one, _, *again = (_played(environment, env, number, steps) for number in (seed, seed + 1, seed, seed))
        return any(other != one for other in again)
    finally:
        env.close()


def _played(environment: GymnasiumEnvironment, env: gymnasium.Env, seed: int, steps: int) -> list[tuple]:
    """Observation, reward and flags of each step under actions drawn from the seed."""
    generator, encoding = np.random.default_rng(seed), Observations(env.observation_space)
    array = environment.spec.action_array
    observation, _ = env.reset(seed=seed)
    played = [(encoding.one(observation).tobytes(),)]
    for _ in range(steps):
        if array is None:
            action = env.action_space.start + generator.integers(env.action_space.n)
        elif np.issubdtype(array.low.dtype, np.integer):
            action = generator.integers(array.low, array.high, endpoint=True)
        else:
            low, high = np.clip(array.low, -1.0, None), np.clip(array.high, None, 1.0)
            low, high = np.minimum(low, array.high), np.maximum(high, array.low)
            action = generator.uniform(low, high).astype(array.low.dtype)
        observation, reward, terminated, truncated, _ = env.step(action)
        played.append((encoding.one(observation).tobytes(), float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            break
    return played


def _layers(env: gymnasium.Env) -> list[gymnasium.Env]:
    """An environment and all that it wraps, outermost first."""
    layers = [env]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _first_action(space: gymnasium.Space) -> int:
    """The number of the first of several discrete actions; ours count from 0."""
    return int(space.start) if isinstance(space, gymnasium.spaces.Discrete) else 0


def _spec(
    observations: gymnasium.Space,
    actions: gymnasium.Space,
    horizon: int,
    success: str | None,
    truncated_success: bool,
) -> Spec:
    encoding, (count, array) = Observations(observations), actions_of(actions)
    facts = () if success is None else (Fact(success, "bool", f"info['{success}'] of the environment"),)
    return Spec(
        encoding.low,
        encoding.high,
        actions=count,
        horizon=horizon,
        initial_noise=0,
        step_noise=0,
        facts=facts,
        success=success,
        action_array=array,
        truncated_success=truncated_success,
    )


def _located(name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """The object behind "package.module:Name"; any other string as it is, such as a Gymnasium id."""
    if not isinstance(name, str):
        return name
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier():
        return name
    return getattr(importlib.import_module(module), attribute)

"""A distribution over environments, declared by a user over the parameters of one of their own."""

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics, Fact, Spec
from seedbed.environments.distribution_lanes import (
    DrawnDynamicsLanes,
    DrawnGymnasiumLanes,
    drawn_gymnasium_lanes,
)
from seedbed.environments.external import GymnasiumEnvironment
from seedbed.environments.opening import open_environment
from seedbed.environments.parameter_ranges import ParameterRange
from seedbed.seeding import Purpose, stream

TRIED = 16
"""Draws that are constructed before anything runs, beside the ends of each range."""
KEPT = 1024
"""Environments that are kept for later episodes; changes speed, never a result."""
NUMBER = Fact(
    "training_environment", "int64", "number of the training environment, from 0; -1 a fresh one", final=True
)

Point = tuple[float | int, ...]
"""One parameter set: a point of each range, in the order of the sorted names."""


class Drawn(NamedTuple):
    """The environment of one episode."""

    number: int
    """Of the training environment; -1 for a fresh one."""
    point: Point
    """Its parameters."""
    source: np.random.Generator | None
    """Where its start comes from, if that belongs to the environment and not to the episode."""


@dataclass(config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))
class Distribution:
    """A distribution over environments: every episode takes place in an environment drawn from it.

    The protocol is "frozen policy": a policy is trained in some environments and then evaluated as it is,
    without learning, half of its episodes (even numbers) in its training environments and half in fresh ones.
    The generalization gap is the score in training environments minus that in fresh ones. Without a number of
    training environments every episode, also in training, has a fresh one. The training environments differ
    between training seeds, so intervals over seeds include the luck of their draw.

    Raises:
        ValueError: an environment of the distribution cannot be made, has other spaces than another one, or
            is of a kind that makes its episodes by itself; the sampler leaves the declared ranges.
    """

    environment: str = Field(
        description="Registered name, Gymnasium id, or package.module:Name, as elsewhere."
    )
    arguments: dict[str, Any] = Field({}, description="Arguments that all environments share.")
    parameters: dict[str, ParameterRange] = Field(
        {}, description="Argument -> range; dots lead into mappings, as in kwargs.g for a Gymnasium id."
    )
    sampler: str | Callable[..., Any] | None = Field(
        None,
        description="package.module:Name, called with a generator, gives {argument: value} within "
        "the ranges; drawn independently if absent.",
    )
    train: int | None = Field(None, ge=1, lt=2**32, description="Training environments per training seed.")
    start: Literal["episode", "environment"] = Field(
        "episode",
        description="Whether a training environment's episodes all begin alike: with one noise of the start "
        "(one learner), or one reset seed for a Gymnasium environment.",
    )

    def __post_init__(self):
        self._names = sorted(self.parameters)
        self._sample = _located(self.sampler)
        for name in self._names:
            _refuse_twice(self.arguments, name)
        first = self.drawn_point(_trial(0))
        self.first_point, self.reference = first, self._opened(first)
        if not isinstance(self.reference, GymnasiumEnvironment) and not hasattr(self.reference, "draw"):
            raise ValueError(
                f"{self.environment} makes its episodes by itself, so none can be put into an environment of "
                "its own. Give a Gymnasium id or class, or pure dynamics."
            )
        if getattr(self.reference, "vectorisation", "sync") == "async":
            raise ValueError("vectorisation 'async' cannot change environments between episodes; use 'sync'.")
        inner = self.reference.spec
        ours = (NUMBER, *map(self._fact, self._names))
        taken = sorted({fact.name for fact in inner.facts} & {fact.name for fact in ours})
        if taken:
            raise ValueError(
                f"{', '.join(taken)} would name two columns: it is a fact of {self.environment}."
            )
        noise = inner.initial_noise
        if hasattr(self.reference, "draw"):
            noise += 2 + len(self._names)
        self.spec: Spec = replace(inner, facts=(*inner.facts, *ours), initial_noise=noise)
        self.member = functools.lru_cache(KEPT)(self._member)
        self._training = functools.lru_cache(KEPT)(self._training_point)
        self._try()

    def _fact(self, name: str) -> Fact:
        told = "" if self.parameters[name].numeric else "position in the list of "
        return Fact(
            f"parameter_{name}",
            "float64",
            f"{told}the parameter {name} of the episode's environment",
            final=True,
        )

    def _try(self) -> None:
        """Construct what can be drawn at the ends of each range, and some draws."""
        if self._sample is None:
            for i, name in enumerate(self._names):
                for end in self.parameters[name].ends():
                    self.member((*self.first_point[:i], end, *self.first_point[i + 1 :]))
        for number in range(TRIED if self._names else 0):
            point = self.drawn_point(_trial(number))
            if self.drawn_point(_trial(number)) != point:
                raise ValueError(
                    f"The sampler {self.sampler} gives other values for an equal generator, so that a rerun "
                    "would have other environments. Let it draw from the generator alone."
                )
            self.member(point)

    def drawn_point(self, generator: np.random.Generator) -> Point:
        """A parameter set.

        Raises:
            ValueError: the sampler raises, or gives other parameters or values than declared.
        """
        if self._sample is None:
            return tuple(self.parameters[name].draw(generator) for name in self._names)
        try:
            given = self._sample(generator)
        except Exception as error:
            raise ValueError(f"The sampler {self.sampler} raised {type(error).__name__}: {error}") from error
        if not isinstance(given, Mapping) or sorted(given) != self._names:
            raise ValueError(
                f"The sampler {self.sampler} gave {given}, but the declared parameters are "
                f"{', '.join(self._names) or 'none'}."
            )
        try:
            return tuple(self.parameters[name].point(given[name]) for name in self._names)
        except ValueError:
            outside = {
                name: f"{given[name]!r}, which is not in {self.parameters[name]}"
                for name in self._names
                if not _inside(self.parameters[name], given[name])
            }
            told = "; ".join(f"{name} = {problem}" for name, problem in outside.items())
            raise ValueError(f"The sampler {self.sampler} leaves its family: {told}.") from None

    def values(self, point: Point) -> dict[str, Any]:
        """Parameter -> value."""
        return {name: self.parameters[name].value(at) for name, at in zip(self._names, point, strict=True)}

    def numbers(self, point: Point) -> list[float]:
        """What tables hold for a parameter set."""
        return [self.parameters[name].number(at) for name, at in zip(self._names, point, strict=True)]

    def facts(self, number: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Facts of episodes [...], from the environments' numbers and their parameters [..., p]."""
        columns = {f"parameter_{name}": numbers[..., i].copy() for i, name in enumerate(self._names)}
        return {NUMBER.name: number.astype(np.int64)} | columns

    def training_values(self, seed: int) -> list[dict[str, Any]]:
        """Parameters of a training seed's environments, [train]; [] where all are fresh."""
        return [self.values(self._training(seed, number)) for number in range(self.train or 0)]

    def _training_point(self, seed: int, number: int) -> Point:
        return self.drawn_point(stream(Purpose.ENVIRONMENTS, seed, number))

    def drawn(self, purpose: Purpose, seed: int, episode: int, generator: np.random.Generator) -> Drawn:
        """The environment of one episode.

        Args:
            purpose, seed, episode: which one. In training all episodes are in training environments, drawn
                with equal odds; elsewhere those of even number are, and take them in turn.
            generator: of the episode; a fresh environment is drawn from it.
        """
        if self.train is None or (purpose is not Purpose.TRAINING and episode % 2):
            return Drawn(-1, self.drawn_point(generator), None)
        if purpose is Purpose.TRAINING:
            number = int(generator.integers(self.train))
        else:
            number = episode // 2 % self.train
        source = None
        if self.start == "environment":
            source = stream(Purpose.ENVIRONMENTS, seed, number)
            self.drawn_point(source)  # what follows in the stream is the start
        return Drawn(number, self._training(seed, number), source)

    def _opened(self, point: Point) -> Dynamics | GymnasiumEnvironment:
        values = self.values(point)
        try:
            return open_environment(self.environment, _merged(self.arguments, values)).environment
        except SeedbedError as error:
            told = ", ".join(f"{name} = {value}" for name, value in values.items()) or "its arguments"
            raise ValueError(f"{self.environment} cannot be made with {told}: {error}") from error

    def _member(self, point: Point) -> Dynamics | GymnasiumEnvironment:
        """The environment of a parameter set.

        Raises:
            ValueError: it cannot be made, or has other spaces than the others.
        """
        if point == self.first_point:
            return self.reference
        made = self._opened(point)
        different = _differences(self.reference.spec, made.spec)
        if different:
            raise ValueError(
                f"The environments of a distribution have equal spaces, but {self.environment} with "
                f"{self.values(self.first_point)} and with {self.values(point)} differ: {different}."
            )
        return made

    def make_lanes(
        self,
        purpose: Purpose,
        seeds: Sequence[int],
        lanes: int,
        episodes: int | Sequence[int] | None = None,
        first: int = 0,
    ) -> DrawnDynamicsLanes | DrawnGymnasiumLanes:
        """See ``lanes.make_lanes``."""
        make = DrawnDynamicsLanes if hasattr(self.reference, "draw") else drawn_gymnasium_lanes
        return make(self, purpose, seeds, lanes, episodes, first)

    def content_checksums(self) -> dict[str, str]:
        """Nothing is fixed but what is declared."""
        return {}

    def warnings(self) -> list[str]:
        """What limits conclusions from one of its environments."""
        return self.reference.warnings() if hasattr(self.reference, "warnings") else []


def _trial(number: int) -> np.random.Generator:
    """A generator for trying out; no episode's or training environment's."""
    return stream(Purpose.ENVIRONMENTS, number)


def _located(sampler: str | Callable[..., Any] | None) -> Callable[..., Any] | None:
    if sampler is None or callable(sampler):
        return sampler
    module, _, name = sampler.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise ValueError(
            f"The sampler {sampler} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ValueError(f"The sampler {sampler} is no function.")
    return found


def _inside(declared: ParameterRange, value: Any) -> bool:
    try:
        declared.point(value)
    except ValueError:
        return False
    return True


def _refuse_twice(arguments: Mapping[str, Any], name: str) -> None:
    """Refuse a parameter that the arguments give as well, or that leads into what is no mapping."""
    inner: Any = arguments
    for part in name.split("."):
        if not isinstance(inner, Mapping):
            raise ValueError(f"The parameter {name} leads into the argument {inner!r}, which has no keys.")
        if part not in inner:
            return
        inner = inner[part]
    raise ValueError(f"{name} is in both arguments and parameters; give it once.")


def _merged(arguments: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with values put at their dotted names; nothing given is changed."""
    merged = dict(arguments)
    for name, value in values.items():
        *path, last = name.split(".")
        inner = merged
        for part in path:
            inner[part] = dict(inner.get(part, {}))
            inner = inner[part]
        inner[last] = value
    return merged


def _differences(one: Spec, other: Spec) -> str:
    """In what two environments differ that an algorithm or a table relies on; "" if in nothing."""

    def described(spec: Spec) -> dict[str, Any]:
        low, high = spec.observation_low, spec.observation_high
        array = spec.action_array
        return {
            "observations": f"shape {low.shape}, from {low.tolist()} to {high.tolist()}",
            "actions": spec.actions if array is None else f"{array.low.tolist()} to {array.high.tolist()}",
            "step limit": spec.horizon,
            "noise": (spec.initial_noise, spec.step_noise),
            "agents": spec.agents,
            "facts": [fact.name for fact in spec.facts],
            "masks": spec.masked,
        }

    left, right = described(one), described(other)
    return "; ".join(f"{key} {left[key]} and {right[key]}" for key in left if left[key] != right[key])

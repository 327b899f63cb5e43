"""What an environment is: a pure transition function over arrays, and the description of its spaces."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

State = Any
"""A NamedTuple of arrays that share one leading shape (possibly empty) and hold all there is to know."""


@dataclass(frozen=True)
class Fact:
    """A scalar that an environment reports at each step, beside observation and reward.

    Args:
        name: column name in the step table.
        dtype: numpy type, such as "float64", "int8", "bool".
        meaning: what it says, with its unit.
        final: whether its last value of an episode enters the episode table as ``final_<name>``.
    """

    name: str
    dtype: str
    meaning: str
    final: bool = False


@dataclass(frozen=True)
class ActionArray:
    """Actions that are arrays: float for continuous ones, int64 for several discrete choices at once.

    Args:
        low, high: bounds per entry, both included, of the action's shape and type.
    """

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Spec:
    """The shapes an environment works in.

    Args:
        observation_low, observation_high: bounds per entry, float32 arrays of the observation's shape.
        actions: number of discrete actions; 0 where an action is an array.
        horizon: the largest step limit of any episode; the length of a noise tape.
        initial_noise, step_noise: numbers drawn for an episode's start (k0) and for each of its steps (k).
        facts: what ``step`` reports.
        success: name of a boolean fact; an episode succeeds if it holds at a terminated step.
        masked: whether ``action_mask`` forbids anything.
        agents: number of agents; None for one agent without an agent axis.
        action_array: bounds of actions that are arrays; None for discrete actions.
        truncated_success: whether ``success`` also counts at a truncated step.
    """

    observation_low: np.ndarray
    observation_high: np.ndarray
    actions: int
    horizon: int
    initial_noise: int
    step_noise: int
    facts: tuple[Fact, ...] = ()
    success: str | None = None
    masked: bool = False
    agents: int | None = None
    action_array: ActionArray | None = None
    truncated_success: bool = False

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Shape of one action; () for discrete ones."""
        return () if self.action_array is None else self.action_array.low.shape

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return self.observation_low.shape


class Transition(NamedTuple):
    """One step, leading shape [...]: all arrays fresh."""

    state: State
    reward: np.ndarray
    """[...] float64"""
    terminated: np.ndarray
    """[...] bool; the step limit is not its business"""
    facts: dict[str, np.ndarray]
    """name -> [...] of the fact's type"""


class Knowledge(Protocol):
    """What an environment says of itself in terms of observations, so that a model need not learn it.

    A dynamics may offer it as its attribute ``knowledge``; None where observations do not tell enough.
    """

    action_table: np.ndarray
    """[n_1, ..., n_F] int64: the action that F choices make together; every action occurs"""
    entries: np.ndarray
    """[actions, n] int64: the entries of the observation that matter to an action, all different"""
    learned: int
    """Of these the first so many are left to a model; the other changes are known"""
    outcome: str | None
    """A fact of each step, 0 or 1, and -1 where it says nothing, whose probability the reward needs"""

    def step(
        self, observation: np.ndarray, action: np.ndarray, predicted: np.ndarray, outcome: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What follows from a predicted change.

        Args:
            observation: [..., d] float32.
            action: [...] int64.
            predicted: [..., d] float32, ``observation`` with the changes that a model predicts.
            outcome: [...] float32, the predicted probability of ``self.outcome``.

        Returns:
            The next observation [..., d] float32, known changes included; the expected reward [...] float32;
            whether the episode terminated [...] bool.
        """
        ...

    def action_mask(self, observation: np.ndarray) -> np.ndarray:
        """Which actions are allowed where this is observed, [..., actions] bool."""
        ...

    def progress(self, observation: np.ndarray) -> np.ndarray:
        """How far an episode has come towards its goal, [...]."""
        ...

    def succeeded(self, observation: np.ndarray) -> np.ndarray:
        """Whether an episode that terminates here ends in success, [...] bool."""
        ...

    def promise(self, observation: np.ndarray, pace: float) -> np.ndarray:
        """Reward for reaching the goal that an episode [...] may still expect, if progress goes on at a pace
        (per step) above 0."""
        ...


class Dynamics(Protocol):
    """A pure environment: it holds no generator and no episode; any leading shape works, () included.

    All randomness of an episode is drawn before it begins, as one tape, so an episode depends on its seed and
    its actions alone: not on lanes, order, batch or algorithm.
    """

    spec: Spec

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One episode's noise: initial [k0] float64, steps [horizon, k] float64."""
        ...

    def initial(self, noise: np.ndarray) -> State:
        """First state, from initial noise [..., k0]."""
        ...

    def observe(self, state: State) -> np.ndarray:
        """Observation [..., *observation_shape] float32."""
        ...

    def action_mask(self, state: State) -> np.ndarray:
        """Which actions are allowed, [..., actions] bool; at least one is."""
        ...

    def limit(self, state: State) -> np.ndarray:
        """Step limit of this episode, [...] int64, at most ``spec.horizon``."""
        ...

    def step(self, state: State, action: np.ndarray, noise: np.ndarray) -> Transition:
        """Take action [...] int64 under noise [..., k] float64."""
        ...

    def content_checksums(self) -> dict[str, str]:
        """SHA-256 of fixed material, such as a question bank, by name; {} where there is none."""
        ...

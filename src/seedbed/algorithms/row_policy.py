"""What policies from elsewhere share: they act on one observation at a time, and every action is checked."""

import copy
from collections.abc import Sequence
from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np

from seedbed.algorithms.base import Memory
from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics, Spec
from seedbed.environments.lanes import ExternalEnvironment, make_lanes
from seedbed.seeding import Purpose


class PolicyError(SeedbedError):
    """A policy from elsewhere cannot be used or gave no legal action; the message names the seed."""


class RowPolicy:
    """A policy that decides row by row, so that a row's bits depend on neither seeds nor lanes.

    Subclasses write ``decide``, ``save`` and ``load``.

    Args:
        seeds: training seeds of the rows, [S].
        dynamics: the environment it acts in.
    """

    modes: tuple[str, ...] = ("greedy",)
    needs_state: ClassVar[bool] = False
    model_calls: ClassVar[int] = 0
    uniforms: int = 0

    def __init__(self, seeds: Sequence[int], dynamics: Dynamics | ExternalEnvironment):
        self.seeds, self.dynamics = list(seeds), dynamics
        self.mode = self.modes[0]

    def in_mode(self, mode: str) -> Self:
        """The same policy acting in another of its modes.

        Raises:
            ValueError: it has no such mode.
        """
        if mode not in self.modes:
            raise ValueError(f"{type(self).__name__} acts {' or '.join(self.modes)}, not '{mode}'.")
        other = copy.copy(self)
        other.mode = mode
        return other

    def decide(self, row: int, observation: np.ndarray, mask: np.ndarray | None, uniforms: np.ndarray) -> Any:
        """The action of one seed's policy for one observation.

        Args:
            row: which seed's.
            observation: [*observation_shape] float32, a copy.
            mask: [actions] bool, a copy; None where all actions are allowed.
            uniforms: [k] float64 in [0, 1).
        """
        raise TypeError(f"{type(self).__name__} does not say how it decides.")

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """See ``Policy.act``; array actions have the environment's shape and type.

        Raises:
            PolicyError: an action has another shape or type, is not finite, out of bounds or forbidden.
        """
        spec = self.dynamics.spec
        kind = np.int64 if spec.action_array is None else spec.action_array.low.dtype
        actions = np.zeros((*first.shape, *spec.action_shape), kind)
        for row, lane in np.ndindex(*first.shape):
            allowed = None if mask is None else mask[row, lane].copy()
            chosen = self.decide(row, observation[row, lane].copy(), allowed, uniforms[row, lane].copy())
            actions[row, lane] = legal_action(
                spec, self.seeds[row], chosen, None if mask is None else mask[row, lane]
            )
        return actions, None

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """One for the greedy action; see ``Policy.probabilities``.

        Raises:
            ValueError: the mode is another one, or actions are arrays.
        """
        if self.mode != "greedy" or self.dynamics.spec.action_array is not None:
            raise ValueError(f"{type(self).__name__} does not tell its probabilities ({self.mode}).")
        action, _ = self.act(observation, mask, np.zeros((*first.shape, 0)), memory, first)
        return np.eye(self.dynamics.spec.actions)[action]

    def _error(self, row: int, message: str) -> PolicyError:
        return PolicyError(f"The policy of seed {self.seeds[row]}: {message}.")


def legal_action(spec: Spec, seed: int, action: Any, mask: np.ndarray | None) -> np.ndarray:
    """An action as the environment takes it, of its shape and type.

    Args:
        spec: the environment's.
        seed: of the policy, for the message.
        action: what the policy gave.
        mask: [actions] bool, or None.

    Raises:
        PolicyError: it has another shape or type, is not finite, out of bounds or forbidden.
    """

    def refused(message: str) -> PolicyError:
        return PolicyError(f"The policy of seed {seed}: {message}.")

    try:
        given = np.asarray(action)
    except (ValueError, TypeError):
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise refused(f"the action {action!r} is not a number or an array of numbers")
    if given.shape != spec.action_shape:
        wanted = f"the shape {spec.action_shape}" if spec.action_shape else "one whole number"
        raise refused(f"an action of the shape {given.shape} was given; it takes {wanted}")
    if not np.isfinite(given).all():
        raise refused(f"the action {given} is not finite")
    array = spec.action_array
    low, high = (0, spec.actions - 1) if array is None else (array.low, array.high)
    kind = np.dtype(np.int64) if array is None else array.low.dtype
    if kind.kind == "i" and given.dtype.kind == "f":
        raise refused(f"the action {given} is of type {given.dtype}, not a whole number")
    given = given.astype(kind)
    if ((given < low) | (given > high)).any():
        raise refused(f"the action {given} is not between {low} and {high}")
    if mask is not None and not mask[given]:
        raise refused(f"the action {given} is not allowed now; allowed are {np.nonzero(mask)[0]}")
    return given


def try_out(policy: RowPolicy, environment: Dynamics | ExternalEnvironment) -> None:
    """Let each seed's policy act twice on a first observation, in each mode.

    Raises:
        PolicyError: it gives no legal action, or two different ones for one observation.
    """
    with closing(make_lanes(environment, Purpose.TUNING, policy.seeds[:1], 1, 1)) as lanes:
        observation, mask = lanes.observation.copy(), lanes.mask
    seeds = len(policy.seeds)
    observation = np.repeat(observation, seeds, 0)
    mask = None if mask is None else np.repeat(mask, seeds, 0)
    first = np.ones((seeds, 1), bool)
    for mode in policy.modes:
        acting = policy.in_mode(mode)
        uniforms = np.full((seeds, 1, acting.uniforms), 0.5)
        one, other = (acting.act(observation, mask, uniforms, None, first)[0] for _ in range(2))
        if one.tobytes() != other.tobytes():
            row = next(row for row in range(seeds) if one[row].tobytes() != other[row].tobytes())
            raise PolicyError(
                f"The policy of seed {policy.seeds[row]}: the same observation gave {one[row, 0]} and then "
                f"{other[row, 0]}. Acting must not draw random numbers of its own, nor remember."
            )


def refuse_several_agents(spec: Spec) -> None:
    """One policy, one agent.

    Raises:
        ValueError: the environment has several.
    """
    if spec.agents is not None:
        raise ValueError(f"This environment has {spec.agents} agents; the policy acts for one.")

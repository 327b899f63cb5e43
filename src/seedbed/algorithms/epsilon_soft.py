"""A policy that now and then acts at random, so that what it does can tell of other policies."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seedbed.algorithms.base import Memory, Policy
from seedbed.artifacts import SeedbedError
from seedbed.environments.base import Dynamics
from seedbed.environments.lanes import DynamicsLanes
from seedbed.registry import ALGORITHMS, make
from seedbed.seeding import Purpose


class EpsilonSoftPolicy:
    """With probability epsilon a uniform choice among the allowed actions, otherwise another policy's choice.

    It gives every allowed action at least epsilon / allowed actions, so that what it does can serve to
    evaluate any other policy (Sutton and Barto 2018, section 5.4). The other policy's memory takes its course
    as if its own choice had been carried out; it must not depend on which of several choices it draws, or the
    probabilities are not those of the whole.

    Args:
        policy: the other policy.
        epsilon: probability of the uniform choice, in [0, 1].

    Raises:
        ValueError: epsilon is outside [0, 1].
    """

    modes = ("sampled",)
    mode = "sampled"

    def __init__(self, policy: Policy, epsilon: float):
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], got {epsilon}")
        self.policy, self.epsilon = policy, epsilon

    @property
    def seeds(self) -> Sequence[int]:
        """See ``Policy.seeds``."""
        return self.policy.seeds

    @property
    def needs_state(self) -> bool:
        """See ``Policy.needs_state``."""
        return self.policy.needs_state

    @property
    def model_calls(self) -> int:
        """See ``Policy.model_calls``."""
        return self.policy.model_calls

    @property
    def uniforms(self) -> int:
        """Whether to choose uniformly, which action then, and what the other policy takes."""
        return 2 + self.policy.uniforms

    def in_mode(self, mode: str) -> "EpsilonSoftPolicy":
        """Itself: it acts in one way only."""
        if mode not in self.modes:
            raise ValueError(f"EpsilonSoftPolicy acts 'sampled' only, not '{mode}'.")
        return self

    def act(self, observation, mask, uniforms, memory, first) -> tuple[np.ndarray, Memory]:
        """See ``Policy.act``."""
        own, memory = self.policy.act(observation, mask, uniforms[..., 2:], memory, first)
        allowed = np.cumsum(self._allowed(mask, first), -1)
        rank = (uniforms[..., 1] * allowed[..., -1]).astype(np.int64)
        drawn = np.argmax(allowed > rank[..., None], -1)
        return np.where(uniforms[..., 0] < self.epsilon, drawn, own), memory

    def probabilities(self, observation, mask, memory, first) -> np.ndarray:
        """See ``Policy.probabilities``."""
        allowed = self._allowed(mask, first)
        own = self.policy.probabilities(observation, mask, memory, first)
        return self.epsilon * allowed / allowed.sum(-1, keepdims=True) + (1 - self.epsilon) * own

    def _allowed(self, mask: np.ndarray | None, first: np.ndarray) -> np.ndarray:
        return np.ones((*first.shape, self.policy.dynamics.spec.actions), bool) if mask is None else mask


class _Unwatched:
    """A recorder for policies that learn nothing."""

    def due(self, steps: int) -> bool:
        return False


def epsilon_soft(
    algorithm: str, arguments: dict[str, Any], epsilon: float, dynamics: Dynamics, seeds: Sequence[int]
) -> EpsilonSoftPolicy:
    """The epsilon-soft policy of an algorithm that learns nothing and acts on what it observes.

    Args:
        algorithm, arguments: registered name or package.module:Name, and its hyper-parameters.
        epsilon: see ``EpsilonSoftPolicy``.
        dynamics: where it acts; actions are discrete.
        seeds: what it is stacked over.

    Raises:
        SeedbedError: the algorithm refuses arguments or environment, learns, or needs the hidden state.
    """
    made = make(algorithm, arguments, ALGORITHMS, "algorithm")
    if made.lanes:
        raise SeedbedError(f"'{algorithm}' learns; off-policy evaluation takes policies that learn nothing.")
    try:
        lanes = DynamicsLanes(dynamics, Purpose.BEHAVIOUR, seeds, 1, 1)
        policy = made.train(lanes, seeds, 0, _Unwatched())
    except ValueError as error:
        raise SeedbedError(f"'{algorithm}' cannot act here: {error}") from None
    if policy.needs_state:
        raise SeedbedError(f"'{algorithm}' acts on the hidden state, which no log holds.")
    return EpsilonSoftPolicy(policy, epsilon)

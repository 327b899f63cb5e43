"""Logged episodes as padded arrays, and what a learned model says of them: the input of every estimator."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Trajectories:
    """N episodes of at most T steps, seen from one target policy. Entries after an episode's end are ignored.

    Args:
        reward: [N, T] float64.
        behaviour: [N, T], probability of the action taken under the policy that took it, as it was when it
            decided (after masking).
        target: [N, T], probability of the same action under the policy to be evaluated.
        length: [N] int64, steps of each episode, 1..T.
        discount: gamma in (0, 1].

    Raises:
        ValueError: shapes differ, a number is not finite, a probability is outside [0, 1], or an action was
            taken that the behaviour policy gives probability 0; names episode and step.
    """

    reward: np.ndarray
    behaviour: np.ndarray
    target: np.ndarray
    length: np.ndarray
    discount: float = 1.0

    def __post_init__(self):
        shapes = {name: np.shape(getattr(self, name)) for name in ("reward", "behaviour", "target")}
        episodes, horizon = self.reward.shape if self.reward.ndim == 2 else (0, 0)
        if len(set(shapes.values())) > 1 or episodes * horizon == 0 or self.length.shape != (episodes,):
            raise ValueError(f"needs arrays [N, T] and lengths [N], got {shapes} and {self.length.shape}")
        if not 0 < self.discount <= 1:
            raise ValueError(f"discount must lie in (0, 1], got {self.discount}")
        if self.length.min() < 1 or self.length.max() > horizon:
            raise ValueError(
                f"lengths must lie in 1..{horizon}, got {self.length.min()}..{self.length.max()}"
            )
        wrong = {
            "the reward is not finite": ~np.isfinite(self.reward),
            "the behaviour policy's probability of the action taken is not in (0, 1]": ~(
                (self.behaviour > 0) & (self.behaviour <= 1 + 1e-9)
            ),
            "the target policy's probability is not in [0, 1]": ~(
                (self.target >= 0) & (self.target <= 1 + 1e-9)
            ),
        }
        for message, where in wrong.items():
            if (where & self.alive).any():
                episode, step = np.argwhere(where & self.alive)[0]
                raise ValueError(f"episode {episode}, step {step + 1}: {message}")

    @cached_property
    def alive(self) -> np.ndarray:
        """Steps that were taken, [N, T] bool."""
        return np.arange(self.reward.shape[1]) < self.length[:, None]

    @cached_property
    def weight(self) -> np.ndarray:
        """Product of target / behaviour up to and with each step, [N, T]; constant after the end."""
        ratio = np.divide(self.target, self.behaviour, out=np.ones(self.reward.shape), where=self.alive)
        return np.cumprod(ratio, 1)

    @cached_property
    def discounted_reward(self) -> np.ndarray:
        """gamma^t r_t, [N, T]; 0 after the end."""
        return self.discounts * np.where(self.alive, self.reward, 0.0)

    @property
    def discounts(self) -> np.ndarray:
        """gamma^t, [T]."""
        return self.discount ** np.arange(self.reward.shape[1])

    @property
    def returns(self) -> np.ndarray:
        """Discounted return of each episode, [N]."""
        return self.discounted_reward.sum(1)

    def counts(self, counts: np.ndarray | None) -> np.ndarray:
        """How often each episode counts, [..., N]; once each for None."""
        return np.ones(len(self.reward)) if counts is None else np.asarray(counts, float)


@dataclass(frozen=True)
class ActionValues:
    """What a model expects of the target policy from each logged step to the horizon; 0 after the end.

    Args:
        taken: Q_t(s_t, a_t) of the logged actions, [..., N, T].
        state: V_t(s_t) = sum over a of target(a | s_t) Q_t(s_t, a), [..., N, T].
    """

    taken: np.ndarray
    state: np.ndarray

"""Whether logged data can say anything about a target policy, in numbers and in words."""

from dataclasses import dataclass

import numpy as np

from seedbed.off_policy.trajectories import Trajectories

LEAST_EFFECTIVE = 10.0
"""Effective number of episodes below which an estimate that uses weights is refused."""


@dataclass(frozen=True)
class Overlap:
    """How well the logged episodes cover what the target policy would do."""

    episodes: int
    effective: float
    """Effective number of episodes, one final weight per episode; 0 if all are 0."""
    effective_by_step: np.ndarray
    """The same with the weights up to each step, [T]."""
    largest_share: float
    """Share of the largest final weight in their sum; NaN if all are 0."""
    largest_weight: float
    mean_weight: float
    """Mean of the final weights; its expectation is 1."""
    mean_weight_error: float
    """Its standard error; NaN for one episode."""
    zero_share: float
    """Share of episodes that the target policy would never produce."""
    uncovered: float
    """Mean target probability of actions that the behaviour policy never takes; NaN if unknown."""


def effective_sample_size(weight: np.ndarray) -> np.ndarray:
    """(sum w)^2 / sum w^2 over episodes (Kish 1965), weight [N, ...] -> [...]; 0 where all weights are 0."""
    square = (weight**2).sum(0)
    return np.divide(weight.sum(0) ** 2, square, out=np.zeros(np.shape(square)), where=square > 0)


def overlap(
    log: Trajectories, behaviour: np.ndarray | None = None, target: np.ndarray | None = None
) -> Overlap:
    """Weights and support of logged episodes.

    Args:
        log: the episodes.
        behaviour, target: both policies' distributions at each step, [N, T, actions], if they were logged.
    """
    weight = log.weight[:, -1]
    total = float(weight.sum())
    uncovered = np.nan
    if behaviour is not None and target is not None:
        uncovered = float(np.where(behaviour > 0, 0.0, target).sum(-1)[log.alive].mean())
    return Overlap(
        episodes=len(weight),
        effective=float(effective_sample_size(weight)),
        effective_by_step=effective_sample_size(log.weight),
        largest_share=float(weight.max() / total) if total else np.nan,
        largest_weight=float(weight.max()),
        mean_weight=total / len(weight),
        mean_weight_error=float(weight.std(ddof=1) / len(weight) ** 0.5) if len(weight) > 1 else np.nan,
        zero_share=float((weight == 0).mean()),
        uncovered=uncovered,
    )


@dataclass(frozen=True)
class Verdict:
    """Whether an estimate may be used, and why, in words."""

    accepted: bool
    reason: str


def verdict(found: Overlap, *, weighted: bool = True, least_effective: float = LEAST_EFFECTIVE) -> Verdict:
    """Judge an estimate by the overlap of its data.

    The step with the fewest effective episodes counts: when the episode that carries a step dies out later,
    the final weights alone look healthy again. A mean weight more than three standard errors from 1 is a
    warning: the effective number looks at the episodes that are there, not at likely ones that are missing.

    Args:
        found: what ``overlap`` found.
        weighted: whether the estimator uses importance weights; the direct method does not.
        least_effective: effective number of episodes below which the data are refused.
    """
    if found.uncovered > 1e-9:
        return Verdict(
            False,
            f"refused: {found.uncovered:.1%} of what the target policy does, the behaviour policy never "
            "does, so no data can speak of it",
        )
    least = float(found.effective_by_step.min())
    if least >= least_effective:
        reason = f"accepted: at least {least:.1f} effective episodes of {found.episodes} at every step"
        if weighted and abs(found.mean_weight - 1) > 3 * found.mean_weight_error:
            reason += (
                f"; with care: the mean weight is {found.mean_weight:.2f} where 1 is expected, so episodes "
                "like the target policy's are missing"
            )
        return Verdict(True, reason)
    if least == 0:
        why = f"none of the {found.episodes} episodes could be the target policy's"
    else:
        why = (
            f"only {least:.1f} effective episodes of {found.episodes} at step "
            f"{1 + int(found.effective_by_step.argmin())}, at least {least_effective:g} are needed"
        )
    if not weighted:
        why += "; the model's value extrapolates and nothing checks it"
    return Verdict(False, f"refused: {why}")

"""All estimators on the same episodes and the same resamples."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from seedbed.off_policy.doubly_robust import (
    direct_method,
    doubly_robust,
    magic,
    partial_returns,
    weighted_doubly_robust,
)
from seedbed.off_policy.fitted_q import Features, fitted_q_evaluation
from seedbed.off_policy.importance import (
    importance_sampling,
    per_decision,
    weighted_importance_sampling,
    weighted_per_decision,
)
from seedbed.off_policy.intervals import percentile_interval, resample_counts
from seedbed.off_policy.trajectories import Trajectories
from seedbed.statistics.intervals import Interval

Estimator = Callable[..., np.ndarray]
WEIGHING: dict[str, Estimator] = {
    "IS": importance_sampling,
    "WIS": weighted_importance_sampling,
    "PDIS": per_decision,
    "WPDIS": weighted_per_decision,
}
MODELLING: dict[str, Estimator] = {
    "FQE": direct_method,
    "DR": doubly_robust,
    "WDR": weighted_doubly_robust,
}
ESTIMATORS = (*WEIGHING, *MODELLING, "MAGIC")
"""FQE is the direct method on fitted Q evaluation; DR, WDR and MAGIC correct the same values."""


class Estimate(NamedTuple):
    """One estimator's value of the target policy."""

    estimator: str
    interval: Interval


def estimate_all(
    log: Trajectories,
    features: Features,
    *,
    ridge: float,
    draws: int,
    generator: np.random.Generator,
    confidence: float = 0.95,
) -> list[Estimate]:
    """Every estimator of ``ESTIMATORS`` with its percentile bootstrap interval over episodes.

    The regression of fitted Q evaluation is repeated in every resample. The interval of MAGIC keeps the blend
    that the data themselves chose.

    Args:
        log: the episodes, seen from the target policy.
        features: of the same episodes, for fitted Q evaluation.
        ridge: its penalty.
        draws: bootstrap resamples.
        generator: their randomness.
        confidence: level.
    """
    episodes = len(log.reward)
    counts = resample_counts(episodes, draws, generator)
    values = fitted_q_evaluation(log, features, ridge=ridge)
    refitted = fitted_q_evaluation(log, features, counts, ridge)
    found = {name: (rule(log), rule(log, counts)) for name, rule in WEIGHING.items()}
    found |= {
        name: (rule(log, values), rule(log, refitted, counts))
        for name, rule in MODELLING.items()
        if name != "WDR"
    }
    partial = partial_returns(log, refitted, counts)
    found["WDR"] = weighted_doubly_robust(log, values), partial[:, -1]
    blend = magic(log, values, partial[:, -1])
    found["MAGIC"] = blend.estimate, partial @ blend.share
    return [
        Estimate(name, percentile_interval(float(found[name][0]), found[name][1], episodes, confidence))
        for name in ESTIMATORS
    ]

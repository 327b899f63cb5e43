"""Importance sampling: the logged returns, weighted by how much likelier the target policy makes them.

Every estimator takes counts [..., N], how often each episode is in a resample, and returns [...]; without
counts, the estimate itself. A weighted estimator whose weights are all zero is undefined: NaN.
"""

import numpy as np

from seedbed.off_policy.trajectories import Trajectories


def importance_sampling(log: Trajectories, counts: np.ndarray | None = None) -> np.ndarray:
    """IS: mean of w_T G (Precup, Sutton and Singh 2000). Unbiased, of very large variance."""
    counts = log.counts(counts)
    return counts @ (log.weight[:, -1] * log.returns) / counts.sum(-1)


def weighted_importance_sampling(log: Trajectories, counts: np.ndarray | None = None) -> np.ndarray:
    """WIS: sum of w_T G over sum of w_T (Precup, Sutton and Singh 2000). Biased, consistent."""
    counts, weight = log.counts(counts), log.weight[:, -1]
    return ratio(counts @ (weight * log.returns), counts @ weight)


def per_decision(log: Trajectories, counts: np.ndarray | None = None) -> np.ndarray:
    """PDIS: mean of sum_t gamma^t w_t r_t (Precup, Sutton and Singh 2000). Unbiased.

    A reward is weighted by the decisions before it alone.
    """
    counts = log.counts(counts)
    return counts @ (log.weight * log.discounted_reward).sum(1) / counts.sum(-1)


def weighted_per_decision(log: Trajectories, counts: np.ndarray | None = None) -> np.ndarray:
    """WPDIS: sum_t gamma^t (sum_i w_it r_it) / (sum_i w_it) (Thomas 2015, CWPDIS). Biased, consistent.

    The weight of an episode that has ended stays in the denominator: it goes on earning 0.
    """
    counts = log.counts(counts)
    return ratio(counts @ (log.weight * log.discounted_reward), counts @ log.weight).sum(-1)


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, NaN where the denominator is 0."""
    return np.divide(
        numerator, denominator, out=np.full(np.shape(numerator), np.nan), where=np.asarray(denominator) > 0
    )

"""Direct method and doubly robust estimators: a model's values, corrected by weighted surprises.

Counts [..., N] say how often each episode is in a resample; the estimates are [...]. Action values may be one
model for all resamples ([N, T]) or one for each ([..., N, T]).
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from seedbed.off_policy.importance import ratio
from seedbed.off_policy.trajectories import ActionValues, Trajectories


def direct_method(log: Trajectories, values: ActionValues, counts: np.ndarray | None = None) -> np.ndarray:
    """DM: mean of V(s_0) over the logged first states. As good as the model, and silent about its errors."""
    counts = log.counts(counts)
    return (counts * values.state[..., 0]).sum(-1) / counts.sum(-1)


def doubly_robust(log: Trajectories, values: ActionValues, counts: np.ndarray | None = None) -> np.ndarray:
    """DR: mean of V(s_0) + sum_t gamma^t w_t (r_t + gamma V(s_t+1) - Q(s_t, a_t)).

    Jiang and Li (2016), equation 10 unrolled. Unbiased if the values come from other data than the log.
    """
    counts = log.counts(counts)
    after = np.zeros(values.state.shape)
    after[..., :-1] = values.state[..., 1:]
    surprise = log.discounted_reward + log.discounts * (log.discount * after - values.taken)
    each = values.state[..., 0] + (log.weight * surprise).sum(-1)
    return (counts * each).sum(-1) / counts.sum(-1)


def weighted_doubly_robust(
    log: Trajectories, values: ActionValues, counts: np.ndarray | None = None
) -> np.ndarray:
    """WDR: as DR, with weights that sum to 1 at each step (Thomas and Brunskill 2016). Consistent."""
    return partial_returns(log, values, counts)[..., -1]


def partial_returns(log: Trajectories, values: ActionValues, counts: np.ndarray | None = None) -> np.ndarray:
    """g^(j), j = -1..T-1: weighted rewards up to step j, then the model (Thomas and Brunskill 2016).

    With weights w_t that sum to 1 over episodes at each step, and 1/N before the first,
    g^(j) = sum_{t<=j} gamma^t (w_t r_t - w_t Q(s_t, a_t) + w_t-1 V(s_t)) + gamma^(j+1) w_j V(s_j+1).

    Returns:
        [..., T + 1]; the first is the direct method, the last WDR.
    """
    counts = log.counts(counts)
    return (counts[..., None] * _partial_contributions(log, values, counts)).sum(-2)


def _partial_contributions(log: Trajectories, values: ActionValues, counts: np.ndarray) -> np.ndarray:
    """What each episode adds to each g^(j), [..., N, T + 1]; the sum with ``counts`` is g^(j)."""
    weight = ratio(
        np.broadcast_to(log.weight, (*counts.shape, log.weight.shape[1])), (counts @ log.weight)[..., None, :]
    )
    before = np.empty_like(weight)
    before[..., 0] = 1 / counts.sum(-1, keepdims=True)
    before[..., 1:] = weight[..., :-1]
    control = log.discounts * (weight * values.taken - before * values.state)
    paid = np.cumsum(weight * log.discounted_reward - control, -1)
    # The model's value of what follows step j; j = -1 is the start.
    result = np.zeros((*paid.shape[:-1], paid.shape[-1] + 1))
    result[..., :-1] = log.discounts * before * values.state
    result[..., 1:] += paid
    return result


class Blend(NamedTuple):
    """The MAGIC estimate and what it is blended from."""

    estimate: float
    share: np.ndarray
    """[T + 1] weight of each g^(j), j = -1..T-1; they sum to 1"""


def magic(log: Trajectories, values: ActionValues, resampled: np.ndarray) -> Blend:
    """MAGIC: the blend of g^(j) of least estimated mean squared error (Thomas and Brunskill 2016, alg. 1).

    The covariance of the g^(j) comes from the episodes' contributions; the bias of one is its distance to a
    percentile bootstrap interval of WDR, here the middle half (a choice: a wider one trusts the model more).
    The blend, on the simplex, is solved for exactly.

    Args:
        log, values: episodes and the model's values of them.
        resampled: WDR of bootstrap resamples of the episodes, [draws].

    Returns:
        The blend; NaN where WDR is undefined.
    """
    each = _partial_contributions(log, values, log.counts(None))
    returns = each.sum(0)
    resampled = resampled[np.isfinite(resampled)]
    if not np.isfinite(returns).all() or not resampled.size:
        return Blend(np.nan, np.full(returns.shape, np.nan))
    low, high = np.quantile(resampled, (0.25, 0.75))
    bias = np.maximum(0, np.maximum(low - returns, returns - high))
    episodes = len(each)
    error = episodes * np.atleast_2d(np.cov(each, rowvar=False, ddof=1)) if episodes > 1 else 0.0
    share = least_on_simplex(error + np.outer(bias, bias))
    return Blend(float(share @ returns), share)


def least_on_simplex(matrix: np.ndarray) -> np.ndarray:
    """The x >= 0 with sum 1 that makes x' M x least, for M [n, n] positive semidefinite.

    Least squares with x >= 0 of [root of M; 1] x = [0; 1] gives a multiple of it: whatever the sum of x, the
    best direction is the same, so dividing by the sum is exact (Lawson and Hanson 1974, chapter 23).
    """
    values, vectors = np.linalg.eigh(matrix)
    scale = max(float(values[-1]), np.finfo(float).tiny)
    root = np.sqrt(np.maximum(values, 0) / scale)[:, None] * vectors.T
    system = np.concatenate([root, np.ones((1, len(matrix)))])
    share, _ = optimize.nnls(system, np.append(np.zeros(len(matrix)), 1.0))
    return share / share.sum()

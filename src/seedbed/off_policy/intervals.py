"""Bootstrap intervals over episodes, for every estimator from the same resamples."""

import math

import numpy as np

from seedbed.statistics.intervals import Interval, check_confidence


def resample_counts(episodes: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """How often each episode is in each bootstrap resample, [draws, N] int64."""
    return generator.multinomial(episodes, np.full(episodes, 1 / episodes), draws)


def percentile_interval(
    estimate: float, resampled: np.ndarray, episodes: int, confidence: float = 0.95
) -> Interval:
    """Percentile bootstrap interval (Efron and Tibshirani 1993, chapter 13).

    Args:
        estimate: of the data themselves.
        resampled: of their resamples, [draws]; undefined ones (NaN) are set aside.
        episodes: number of episodes resampled.
        confidence: level.

    Returns:
        Bounds are NaN, and ``note`` says why, if the estimate or more than one tail of the resamples is
        undefined or all resamples agree.
    """
    tail = (1 - check_confidence(confidence)) / 2
    draws, usable = len(resampled), resampled[np.isfinite(resampled)]
    lost = draws - len(usable)
    note = ""
    if not math.isfinite(estimate):
        note = "not defined: every weight is zero"
    elif lost > draws * tail:
        note = f"not estimable: undefined in {lost} of {draws} resamples"
    elif np.ptp(usable) == 0:
        note = "not estimable: every resample gives the same value"
    if note:
        return Interval(float(estimate), math.nan, math.nan, episodes, note=note)
    low, high = np.quantile(usable, (tail, 1 - tail))
    return Interval(float(estimate), float(low), float(high), episodes, float(usable.std(ddof=1)))

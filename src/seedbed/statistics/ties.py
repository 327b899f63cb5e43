"""When are two floats the same number? Ranks, ties and zero variances must not hang on rounding.

0.3 - 0.2 and 0.7 - 0.6 differ in the last bit. Without care a tie becomes a rank, and a constant
difference gets a standard deviation of 1e-17 and an effect size of 1e16.
"""

import numpy as np


def rounding(*arrays: np.ndarray) -> float:
    """Largest gap that rounding alone can open between equal differences of these values."""
    largest = max((float(np.max(np.abs(a))) for a in arrays if np.size(a)), default=0.0)
    return 16 * np.finfo(float).eps * largest


def is_constant(values: np.ndarray) -> bool:
    """True when all values [n] are the same up to rounding (also for n = 0 and n = 1)."""
    values = np.asarray(values, float)
    return values.size < 2 or float(np.ptp(values)) <= rounding(values)


def merge_ties(values: np.ndarray, tolerance: float) -> np.ndarray:
    """Copy of values [n] in which neighbours no further apart than tolerance become equal."""
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values, float)[order]
    starts = np.concatenate((np.ones(min(1, ordered.size), bool), np.diff(ordered) > tolerance))
    merged = np.empty_like(ordered)
    merged[order] = ordered[starts][np.cumsum(starts) - 1]
    return merged


def midranks(values: np.ndarray) -> np.ndarray:
    """Ranks 1..n of values [n], smallest first; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]

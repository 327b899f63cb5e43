"""Equivalence of two algorithms on the same tasks: a test that can say "no difference that matters"."""

import math
from dataclasses import dataclass

from scipy import special

from seedbed.statistics.intervals import check_confidence, mean_t_interval
from seedbed.statistics.paired import paired_differences


@dataclass(frozen=True)
class EquivalenceResult:
    """pvalue: the larger of the two one-sided ones; low and high: interval of the mean difference.

    At level alpha the means are equivalent if pvalue < alpha, which is when the interval of confidence
    1 - 2 alpha lies within the margins.
    """

    mean_difference: float
    pvalue: float
    t_lower: float
    p_lower: float
    t_upper: float
    p_upper: float
    low: float
    high: float
    note: str = ""


def paired_equivalence_test(x, y, *, low: float, high: float, confidence: float = 0.9) -> EquivalenceResult:
    """Two one-sided paired t tests (Schuirmann 1987) of low < mean(x - y) < high, x, y [n].

    The margins are to be stated before the scores are seen. Constant differences: p is 0 within the margins
    and 1 elsewhere.

    Raises:
        ValueError: lengths differ, or not low < high.
    """
    check_confidence(confidence)
    if not low < high:
        raise ValueError(f"the margins need low < high, got {low} and {high}")
    pairs = paired_differences(x, y)
    nan = math.nan
    if pairs.obstacle:
        return EquivalenceResult(nan, nan, nan, nan, nan, nan, nan, nan, pairs.obstacle)
    mean = float(pairs.values.mean())
    interval = mean_t_interval(pairs.values, confidence)
    if pairs.constant or interval.standard_error == 0:
        p_lower, p_upper = float(mean <= low), float(mean >= high)
        t_lower, t_upper = (math.copysign(math.inf, mean - margin) for margin in (low, high))
        note = "zero variance: every difference is the same"
        return EquivalenceResult(
            mean, max(p_lower, p_upper), t_lower, p_lower, t_upper, p_upper, mean, mean, note
        )
    t_lower, t_upper = ((mean - margin) / interval.standard_error for margin in (low, high))
    df = pairs.values.size - 1
    p_lower, p_upper = float(special.stdtr(df, -t_lower)), float(special.stdtr(df, t_upper))
    return EquivalenceResult(
        mean, max(p_lower, p_upper), t_lower, p_lower, t_upper, p_upper, interval.low, interval.high
    )

"""Unpaired tests, for runs that share no seeds (imported ones above all): x against y, lengths may differ."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.intervals import as_sample, check_confidence
from seedbed.statistics.paired import check_alternative, count_extreme, tail_probability
from seedbed.statistics.ties import is_constant, merge_ties, midranks, rounding

PERMUTATION_EXACT_LIMIT = 200_000  # arrangements; ten against ten has 184,756
MANN_WHITNEY_EXACT_LIMIT = 50  # values in the larger group
_CELLS_PER_CHUNK = 2**21


@dataclass(frozen=True)
class WelchResult:
    """statistic: t; low and high: two-sided interval of mean(x) - mean(y)."""

    statistic: float
    pvalue: float
    df: float
    mean_difference: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class PermutationResult:
    """statistic: difference of means; arrangements: group assignments looked at."""

    statistic: float
    pvalue: float
    arrangements: int
    exact: bool
    note: str = ""


@dataclass(frozen=True)
class MannWhitneyResult:
    """statistic: pairs in which x is larger, ties one half; probability: the same as a share."""

    statistic: float
    pvalue: float
    u_y: float
    probability_x_greater: float
    exact: bool
    note: str = ""


def _groups(x, y, least: int) -> tuple[np.ndarray, np.ndarray, str]:
    x, y = as_sample(x), as_sample(y)
    missing = int(np.sum(~np.isfinite(x)) + np.sum(~np.isfinite(y)))
    if missing:
        return x, y, f"not testable: {missing} of {x.size + y.size} values are missing or not finite"
    if min(x.size, y.size) < least:
        return x, y, f"not testable: groups of {x.size} and {y.size}, each needs at least {least}"
    return x, y, ""


def welch_t_test(x, y, *, alternative: str = "two-sided", confidence: float = 0.95) -> WelchResult:
    """Welch (1947) t test of x [n] against y [m] with Satterthwaite degrees of freedom.

    No variance in either group: t is infinite and p 0 (or 1 against the alternative), NaN when the means
    are equal as well, and the interval is NaN.
    """
    return _t_test(x, y, alternative, confidence, pooled=False)


def student_t_test(x, y, *, alternative: str = "two-sided", confidence: float = 0.95) -> WelchResult:
    """Student (1908) t test of x [n] against y [m], which assumes one variance; otherwise as Welch's."""
    return _t_test(x, y, alternative, confidence, pooled=True)


def _t_test(x, y, alternative: str, confidence: float, pooled: bool) -> WelchResult:
    check_alternative(alternative)
    check_confidence(confidence)
    x, y, note = _groups(x, y, least=2)
    nan = math.nan
    if note:
        return WelchResult(nan, nan, nan, nan, nan, nan, note)
    difference = float(x.mean() - y.mean())
    if is_constant(x) and is_constant(y):
        if abs(difference) <= rounding(x, y):
            return WelchResult(nan, nan, nan, 0.0, nan, nan, "not testable: all values are equal")
        agrees = alternative == "two-sided" or (difference > 0) == (alternative == "greater")
        t, note = math.copysign(math.inf, difference), "zero variance in both groups"
        return WelchResult(t, 0.0 if agrees else 1.0, nan, difference, nan, nan, note)
    a, b = (0.0 if is_constant(v) else float(v.var(ddof=1)) / v.size for v in (x, y))
    if pooled:
        df = x.size + y.size - 2
        squares = a * x.size * (x.size - 1) + b * y.size * (y.size - 1)
        error = math.sqrt(squares / df * (1 / x.size + 1 / y.size))
    else:
        df = (a + b) ** 2 / (a**2 / (x.size - 1) + b**2 / (y.size - 1))
        error = math.sqrt(a + b)
    p = tail_probability(lambda q: special.stdtr(df, q), difference / error, alternative)
    half = float(special.stdtrit(df, 0.5 + confidence / 2)) * error
    return WelchResult(difference / error, p, df, difference, difference - half, difference + half)


def permutation_test(
    x,
    y,
    *,
    alternative: str = "two-sided",
    seed=None,
    draws: int = 99_999,
    exact_limit: int = PERMUTATION_EXACT_LIMIT,
) -> PermutationResult:
    """Permutation test of mean(x) - mean(y), x [n], y [m] (Pitman 1937).

    All C(n + m, n) group assignments up to exact_limit of them; beyond, `draws` random ones with
    p = (b + 1) / (B + 1), for which a seed is required. Two-sided: |difference| at least as large.
    """
    check_alternative(alternative)
    x, y, note = _groups(x, y, least=1)
    if note:
        return PermutationResult(math.nan, math.nan, 0, False, note)
    difference = float(x.mean() - y.mean())
    first, second, sign = (x, y, 1) if x.size <= y.size else (y, x, -1)
    pool, k = np.sort(np.concatenate((x, y))), first.size
    # mean(first) - mean(second), written as a function of the sum of the first group alone
    slope = 1 / k + 1 / second.size
    offset = float(pool.sum()) / second.size
    tolerance = 2 * rounding(pool)
    arrangements = math.comb(pool.size, k)
    exact = arrangements <= exact_limit
    note = "all values are equal" if is_constant(pool) else ""
    if exact:
        subsets = itertools.chain.from_iterable(itertools.combinations(range(pool.size), k))
        index = np.fromiter(subsets, int, arrangements * k).reshape(arrangements, k)
        differences = sign * (slope * pool[index].sum(axis=1) - offset)
        hits = count_extreme(differences, difference, tolerance, alternative)
        return PermutationResult(difference, hits / arrangements, arrangements, True, note)
    if seed is None:
        raise ValueError(
            f"{arrangements} assignments are beyond exact_limit = {exact_limit}: sampling needs a seed"
        )
    generator, hits, step = np.random.default_rng(seed), 0, max(1, _CELLS_PER_CHUNK // pool.size)
    for start in range(0, draws, step):
        order = np.argsort(generator.random((min(step, draws - start), pool.size)), axis=1)[:, :k]
        differences = sign * (slope * pool[order].sum(axis=1) - offset)
        hits += count_extreme(differences, difference, tolerance, alternative)
    return PermutationResult(difference, (hits + 1) / (draws + 1), draws, False, note)


def mann_whitney(
    x, y, *, alternative: str = "two-sided", method: str = "auto", correction: bool = True
) -> MannWhitneyResult:
    """Mann and Whitney (1947) U test of x [n] against y [m] with mid-ranks.

    method: "exact" goes through all group assignments of the mid-ranks (two-sided: at least as far from
    n m / 2), "asymptotic" is the normal approximation with tie and continuity correction, "auto" is exact
    up to 50 values a group.
    """
    check_alternative(alternative)
    if method not in ("auto", "exact", "asymptotic"):
        raise ValueError(f"method must be auto, exact or asymptotic, got {method!r}")
    x, y, note = _groups(x, y, least=1)
    if note:
        return MannWhitneyResult(math.nan, math.nan, math.nan, math.nan, False, note)
    n, m = x.size, y.size
    pool = np.concatenate((x, y))
    ranks = midranks(merge_ties(pool, rounding(pool)))
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    exact = method == "exact" or (method == "auto" and max(n, m) <= MANN_WHITNEY_EXACT_LIMIT)
    if np.ptp(ranks) == 0:
        p, note = 1.0, "all values are equal"
    elif exact:
        p = _exact_u_p(ranks, n, u, alternative)
    else:
        shift = u - n * m / 2
        if correction:
            shift -= {"two-sided": 0.5 * float(np.sign(shift)), "greater": 0.5, "less": -0.5}[alternative]
        total = n + m  # the variance of a rank sum drawn without replacement carries the tie correction
        error = math.sqrt(n * m / total * float(ranks.var(ddof=1)))
        p = tail_probability(special.ndtr, shift / error, alternative)
    return MannWhitneyResult(u, min(p, 1.0), n * m - u, u / (n * m), exact, note)


def _exact_u_p(ranks: np.ndarray, n: int, u: float, alternative: str) -> float:
    doubled = np.rint(2 * ranks).astype(int)  # mid-ranks are halves
    ways = np.zeros((n + 1, int(doubled.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    weights = ways[n] / ways[n].sum()
    centre = len(doubled) - n  # the other group's size; doubled U = doubled rank sum - n (n + 1)
    distance = np.arange(weights.size) - n * (n + 1) - n * centre
    observed = round(2 * u) - n * centre
    if alternative == "two-sided":
        return float(weights[np.abs(distance) >= abs(observed)].sum())
    return float(weights[distance >= observed if alternative == "greater" else distance <= observed].sum())

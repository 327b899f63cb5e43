"""Paired tests: two algorithms on the same seeds, differences x minus y.

The default is the sign-flip permutation test, with the paired t beside it. Missing values, n < 2 and
zero variance never crash: the p-value is NaN (or what the definition gives) and `note` says why.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.intervals import as_sample, check_confidence, mean_t_interval, obstacle
from seedbed.statistics.normality import NormalityResult, shapiro_wilk
from seedbed.statistics.ties import merge_ties, midranks, rounding

ALTERNATIVES = ("two-sided", "greater", "less")
SIGN_FLIP_EXACT_LIMIT = 16  # 2**16 sign patterns
WILCOXON_EXACT_LIMIT = 200
_CELLS_PER_CHUNK = 2**21


@dataclass(frozen=True)
class PairedDifferences:
    """values [n] = x - y, exact zeros where only rounding differs; `obstacle` is "" when usable."""

    values: np.ndarray
    tolerance: float
    obstacle: str

    @property
    def constant(self) -> bool:
        return self.values.size < 2 or float(np.ptp(self.values)) <= self.tolerance


@dataclass(frozen=True)
class SignFlipResult:
    """statistic: mean difference; arrangements: sign patterns looked at; smallest_pvalue: the floor."""

    statistic: float
    pvalue: float
    n: int
    arrangements: int
    exact: bool
    smallest_pvalue: float
    note: str = ""


@dataclass(frozen=True)
class PairedTResult:
    """statistic: t; low and high: interval of the mean difference."""

    statistic: float
    pvalue: float
    df: int
    mean_difference: float
    low: float
    high: float
    n: int
    note: str = ""


@dataclass(frozen=True)
class WilcoxonResult:
    """statistic: the smaller signed rank sum; estimate, low, high: Hodges-Lehmann pseudo-median."""

    statistic: float
    pvalue: float
    w_plus: float
    w_minus: float
    n: int
    zeros: int
    exact: bool
    estimate: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class SignTestResult:
    """statistic: wins of x over y. Ties are outside the test, and half a win in win_rate_half_ties."""

    statistic: int
    pvalue: float
    losses: int
    ties: int
    win_rate_excluding_ties: float
    win_rate_half_ties: float
    note: str = ""


def paired_differences(x, y) -> PairedDifferences:
    """x - y for x, y [n]; ValueError when their lengths differ (pair by seed first)."""
    x, y = as_sample(x), as_sample(y)
    if x.size != y.size:
        raise ValueError(f"paired values need one length, got {x.size} and {y.size}; keep the common seeds")
    with np.errstate(invalid="ignore"):
        d = x - y
    note = obstacle(d)
    if note:
        return PairedDifferences(d, 0.0, note.replace("not estimable", "not testable"))
    tolerance = rounding(x, y)
    return PairedDifferences(np.where(np.abs(d) <= tolerance, 0.0, d), tolerance, "")


def check_alternative(alternative: str) -> None:
    """ValueError unless alternative is "two-sided", "greater" or "less"."""
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative must be one of {', '.join(ALTERNATIVES)}, got {alternative!r}")


def tail_probability(cdf, statistic: float, alternative: str) -> float:
    """p of a statistic that is symmetric around 0 under the null, cdf its distribution function."""
    if alternative == "two-sided":
        return float(2 * cdf(-abs(statistic)))
    return float(cdf(-statistic if alternative == "greater" else statistic))


def count_extreme(sums: np.ndarray, observed: float, tolerance: float, alternative: str) -> int:
    """How many permuted statistics are at least as extreme as the observed one, rounding aside."""
    if alternative == "two-sided":
        return int(np.sum(np.abs(sums) >= abs(observed) - tolerance))
    sign = 1 if alternative == "greater" else -1
    return int(np.sum(sign * sums >= sign * observed - tolerance))


def smallest_attainable_p(n, test: str = "sign_flip", *, draws: int | None = None) -> float:
    """Smallest two-sided p that n pairs (or a pair of group sizes) can give; NaN when n < 2.

    "sign_flip", "wilcoxon" (exact), "sign_test": 2 / 2^n; "permutation", "mann_whitney" with
    n = (n_x, n_y): 2 / C(n_x + n_y, n_x), or 1 for the permutation of one against one; "t": 0.
    draws: Monte-Carlo draws of the sign flip, used beyond n = 16, where p cannot go below 1 / (draws + 1).
    """
    if test in ("permutation", "mann_whitney"):
        a, b = (int(k) for k in n)
        return math.nan if min(a, b) < 1 else min(1.0, 2 / math.comb(a + b, a))
    if test not in ("sign_flip", "wilcoxon", "sign_test", "t"):
        raise ValueError(
            f"unknown test {test!r}: sign_flip, wilcoxon, sign_test, t, permutation, mann_whitney"
        )
    if n < 2:
        return math.nan
    if test == "t":
        return 0.0
    floor = 2.0 ** (1 - int(n))
    sampled = test == "sign_flip" and draws is not None and n > SIGN_FLIP_EXACT_LIMIT
    return max(floor, 1 / (draws + 1)) if sampled else floor


def sign_flip_test(
    x,
    y,
    *,
    alternative: str = "two-sided",
    seed=None,
    draws: int = 99_999,
    exact_limit: int = SIGN_FLIP_EXACT_LIMIT,
) -> SignFlipResult:
    """Sign-flip permutation test of the mean difference of x, y [n] (Fisher 1935).

    All 2^n sign patterns up to exact_limit pairs; beyond, `draws` random ones with p = (b + 1) / (B + 1)
    (Phipson and Smyth 2010), for which a seed (integer, SeedSequence, Generator) is required. The result
    depends neither on the order of the pairs nor, two-sided, on which algorithm comes first.
    """
    check_alternative(alternative)
    pairs = paired_differences(x, y)
    n = pairs.values.size
    if pairs.obstacle:
        return SignFlipResult(math.nan, math.nan, n, 0, False, math.nan, pairs.obstacle)
    sizes = np.sort(np.abs(pairs.values))
    observed = float(np.sum(np.sort(pairs.values)))
    tolerance = n * pairs.tolerance + 1e-13 * float(sizes.sum())
    exact = n <= exact_limit
    if exact:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate((sums + size, sums - size))
        arrangements = sums.size
        p, floor = count_extreme(sums, observed, tolerance, alternative) / arrangements, 2.0 ** (1 - n)
    else:
        if seed is None:
            raise ValueError(f"{n} pairs are beyond exact_limit = {exact_limit}: sampling signs needs a seed")
        generator, arrangements, hits = np.random.default_rng(seed), draws, 0
        step = max(1, _CELLS_PER_CHUNK // n)
        for start in range(0, draws, step):
            signs = np.where(generator.random((min(step, draws - start), n)) < 0.5, -1.0, 1.0)
            hits += count_extreme(signs @ sizes, observed, tolerance, alternative)
        p, floor = (hits + 1) / (draws + 1), max(2.0 ** (1 - n), 1 / (draws + 1))
    note = "every difference is zero" if not np.any(sizes) else ""
    return SignFlipResult(float(pairs.values.mean()), p, n, arrangements, exact, floor, note)


def paired_t_test(x, y, *, alternative: str = "two-sided", confidence: float = 0.95) -> PairedTResult:
    """Paired t test of x, y [n], with the two-sided interval of the mean difference.

    Constant differences: t is infinite and p 0 (or 1 against the alternative), NaN when they are all zero,
    and the interval is NaN: nothing is known about their spread.
    """
    check_alternative(alternative)
    check_confidence(confidence)
    pairs = paired_differences(x, y)
    n, df = pairs.values.size, max(pairs.values.size - 1, 0)
    if pairs.obstacle:
        return PairedTResult(math.nan, math.nan, df, math.nan, math.nan, math.nan, n, pairs.obstacle)
    mean = float(pairs.values.mean())
    if pairs.constant:
        note = "zero variance: every difference is the same"
        if mean == 0:
            note = "not testable: zero variance, every difference is zero"
            return PairedTResult(math.nan, math.nan, df, 0.0, math.nan, math.nan, n, note)
        agrees = alternative == "two-sided" or (mean > 0) == (alternative == "greater")
        t, p = math.copysign(math.inf, mean), 0.0 if agrees else 1.0
        return PairedTResult(t, p, df, mean, math.nan, math.nan, n, note)
    interval = mean_t_interval(pairs.values, confidence)
    t = mean / interval.standard_error
    p = tail_probability(lambda q: special.stdtr(df, q), t, alternative)
    return PairedTResult(t, p, df, mean, interval.low, interval.high, n)


def wilcoxon_signed_rank(
    x,
    y,
    *,
    alternative: str = "two-sided",
    zero_method: str = "wilcox",
    method: str = "auto",
    correction: bool = False,
    confidence: float = 0.95,
) -> WilcoxonResult:
    """Wilcoxon (1945) signed-rank test of x, y [n] with mid-ranks, and the Hodges-Lehmann estimate.

    zero_method: "wilcox" drops zero differences, "pratt" ranks them and drops their ranks, "zsplit" gives
    half of their ranks to each side. method: "exact" goes through all sign patterns of the mid-ranks,
    "asymptotic" is the normal approximation with tie correction (`correction`: continuity), "auto" is
    exact up to 200 non-zero differences. The interval is of the pseudo-median; NaN when n is too small
    for the confidence (n = 5 cannot give 95 %).
    """
    check_alternative(alternative)
    if zero_method not in ("wilcox", "pratt", "zsplit") or method not in ("auto", "exact", "asymptotic"):
        raise ValueError(
            f"zero_method must be wilcox, pratt or zsplit and method auto, exact or asymptotic, "
            f"got {zero_method!r} and {method!r}"
        )
    pairs = paired_differences(x, y)
    d, n = pairs.values, pairs.values.size
    if pairs.obstacle:
        nan = math.nan
        return WilcoxonResult(nan, nan, nan, nan, n, 0, False, nan, nan, nan, pairs.obstacle)
    zeros = int(np.sum(d == 0))
    estimate, low, high, note = _hodges_lehmann(pairs, check_confidence(confidence))
    ranked = d[d != 0] if zero_method == "wilcox" else d
    ranks = midranks(merge_ties(np.abs(ranked), pairs.tolerance))
    half_zeros = float(ranks[ranked == 0].sum()) / 2 if zero_method == "zsplit" else 0.0
    plus = float(ranks[ranked > 0].sum()) + half_zeros
    minus = float(ranks[ranked < 0].sum()) + half_zeros
    flipped = ranks[ranked != 0]
    exact = method == "exact" or (method == "auto" and flipped.size <= WILCOXON_EXACT_LIMIT)
    if zeros == n:
        p, note = 1.0, "every difference is zero"
    elif exact:
        p = _exact_signed_rank_p(flipped, plus - half_zeros, minus - half_zeros, alternative)
    else:
        kept = ranks if zero_method == "zsplit" else flipped
        shift = plus - float(kept.sum()) / 2
        if correction:
            side = {"two-sided": np.sign(shift), "greater": 1, "less": -1}[alternative]
            shift -= 0.5 * float(side)
        p = tail_probability(special.ndtr, shift / (math.sqrt(float(np.sum(kept**2))) / 2), alternative)
    if 0 < zeros < n:
        note = "; ".join(filter(None, (f"{zeros} zero differences ({zero_method})", note)))
    return WilcoxonResult(
        min(plus, minus), min(p, 1.0), plus, minus, n, zeros, exact, estimate, low, high, note
    )


def _signed_rank_distribution(doubled: np.ndarray) -> np.ndarray:
    """P(sum = s), s = 0, 1, ...: each of the doubled (mid-)ranks enters with probability one half."""
    mass = np.zeros(int(doubled.sum()) + 1)
    mass[0] = 1.0
    for rank in doubled:
        mass[rank:] += mass[:-rank].copy()
        mass *= 0.5
    return mass


def _exact_signed_rank_p(ranks, plus, minus, alternative) -> float:
    mass = _signed_rank_distribution(np.rint(2 * np.sort(ranks)).astype(int))
    smaller = {"two-sided": min(plus, minus), "greater": minus, "less": plus}[alternative]
    tail = float(mass[: round(2 * smaller) + 1].sum())  # symmetric, so every tail is a lower one
    return min(1.0, 2 * tail) if alternative == "two-sided" else tail


def _hodges_lehmann(pairs: PairedDifferences, confidence: float) -> tuple[float, float, float, str]:
    """Median of the Walsh averages and the bounds that the signed-rank test does not reject."""
    d = np.sort(pairs.values)
    i, j = np.triu_indices(d.size)
    walsh = np.sort((d[i] + d[j]) / 2)
    estimate, n, tail = float(np.median(walsh)), d.size, (1 - confidence) / 2
    if n <= WILCOXON_EXACT_LIMIT:
        cdf = np.cumsum(_signed_rank_distribution(np.arange(1, n + 1)))
        k = int(np.searchsorted(cdf, tail * (1 + 1e-12), side="right"))
    else:
        k = int(n * (n + 1) / 4 + special.ndtri(tail) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    if k < 1:
        note = f"no {100 * confidence:g} % Hodges-Lehmann interval exists at n = {n}"
        return estimate, math.nan, math.nan, note
    if pairs.constant:
        return estimate, math.nan, math.nan, "zero variance: every difference is the same"
    return estimate, float(walsh[k - 1]), float(walsh[-k]), ""


def sign_test(x, y, *, alternative: str = "two-sided") -> SignTestResult:
    """Sign test of matched x, y [n]: binomial test of wins against losses, ties dropped."""
    check_alternative(alternative)
    pairs = paired_differences(x, y)
    if pairs.obstacle:
        return SignTestResult(0, math.nan, 0, 0, math.nan, math.nan, pairs.obstacle)
    wins, losses = int(np.sum(pairs.values > 0)), int(np.sum(pairs.values < 0))
    decided, n = wins + losses, pairs.values.size
    half_ties = (wins + (n - decided) / 2) / n
    if decided == 0:
        return SignTestResult(0, 1.0, 0, n, math.nan, half_ties, "every difference is zero")
    fewest = {"two-sided": min(wins, losses), "greater": losses, "less": wins}[alternative]
    tail = float(special.bdtr(fewest, decided, 0.5))
    p = min(1.0, 2 * tail) if alternative == "two-sided" else tail
    return SignTestResult(wins, p, losses, n - decided, wins / decided, half_ties)


def shapiro_on_differences(x, y) -> NormalityResult:
    """Shapiro-Wilk test of x - y: a diagnostic of the paired t, never a way to choose the test."""
    pairs = paired_differences(x, y)
    if not pairs.obstacle and pairs.constant:
        return NormalityResult(math.nan, math.nan, pairs.values.size, "not estimable: zero variance")
    return shapiro_wilk(pairs.values)

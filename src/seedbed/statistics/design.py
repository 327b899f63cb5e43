"""Before the runs: can this design succeed at all, and how often would it?"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.intervals import as_sample
from seedbed.statistics.paired import SIGN_FLIP_EXACT_LIMIT, smallest_attainable_p

CORRECTIONS = ("holm", "bonferroni", "bh", "none")
_CELLS_PER_CHUNK = 2**21


@dataclass(frozen=True)
class PowerEstimate:
    """Share of simulated experiments that reject, and its Monte-Carlo standard error."""

    power: float
    standard_error: float
    n: int
    simulations: int
    note: str = ""


def smallest_corrected_p(
    n, comparisons: int, *, test: str = "sign_flip", correction: str = "holm", draws: int | None = None
) -> float:
    """Smallest corrected p in a family of `comparisons` tests of n pairs each; NaN when n < 2.

    Holm and Bonferroni multiply the smallest p by the family's size. Benjamini-Hochberg does not when all
    tests reach their smallest p, which is its best case.
    """
    if correction not in CORRECTIONS or comparisons < 1:
        raise ValueError(
            f"needs comparisons >= 1 and a correction of {', '.join(CORRECTIONS)}, "
            f"got {comparisons} and {correction!r}"
        )
    factor = comparisons if correction in ("holm", "bonferroni") else 1
    floor = factor * smallest_attainable_p(n, test, draws=draws)
    return floor if math.isnan(floor) else min(1.0, floor)


def fewest_pairs(
    comparisons: int, *, alpha: float = 0.05, test: str = "sign_flip", correction: str = "holm"
) -> int:
    """Smallest number of pairs with which the family can reject anything at level alpha (exact tests)."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    n = 2
    while smallest_corrected_p(n, comparisons, test=test, correction=correction) > alpha:
        n += 1
    return n


def t_power(effect: float, n: int, *, alpha: float = 0.05, paired: bool = True) -> float:
    """Power of the two-sided t test at standardised effect: d_z with n pairs, or d with n in each group."""
    if n < 2 or not math.isfinite(effect):
        return math.nan
    df, shift = (n - 1, effect * math.sqrt(n)) if paired else (2 * n - 2, effect * math.sqrt(n / 2))
    critical = float(special.stdtrit(df, 1 - alpha / 2))
    near, far = (float(special.nctdtr(df, s, -critical)) for s in (-abs(shift), abs(shift)))
    # scipy gives NaN for some wrong-side tails far out; beyond a shift of 8 they are below 1e-10
    return near if math.isnan(far) and abs(shift) > 8 else near + far


def t_sample_size(effect: float, power: float, *, alpha: float = 0.05, paired: bool = True) -> float:
    """Pairs (or runs in each group) for the wanted power, a real number to be rounded up; at least 2."""
    if not (effect and math.isfinite(effect) and alpha < power < 1):
        raise ValueError(f"needs a non-zero effect and alpha < power < 1, got {effect} and {power}")

    from scipy import optimize  # wanted here only

    def shortfall(n: float) -> float:
        return t_power(effect, n, alpha=alpha, paired=paired) - power

    if shortfall(2.0) >= 0:
        return 2.0
    top = 4.0
    while shortfall(top) < 0:
        top *= 2
    return float(optimize.brentq(shortfall, 2.0, top, xtol=1e-10))


def simulated_power(
    n: int,
    effect: float,
    *,
    seed,
    test: str = "sign_flip",
    alpha: float = 0.05,
    comparisons: int = 1,
    pilot=None,
    simulations: int = 2_000,
    draws: int = 999,
) -> PowerEstimate:
    """Power of the paired sign flip or t test with n pairs, by simulation.

    effect: true mean difference in standard deviations of the differences. pilot: differences whose shape
    is resampled (centred, scaled to SD 1) in place of the normal; never differences of the seeds that the
    study itself will use. comparisons: power is at alpha / comparisons, the first step of Holm.
    draws: sign patterns beyond n = 16.
    """
    if test not in ("sign_flip", "t") or seed is None:
        raise ValueError(f"needs test sign_flip or t and a seed, got {test!r} and {seed!r}")
    level = alpha / comparisons
    if n < 2:
        return PowerEstimate(math.nan, math.nan, n, simulations, "not estimable: needs at least 2 pairs")
    if not smallest_attainable_p(n, test, draws=draws) <= level:
        note = f"the smallest attainable p is above {level:g}: this design cannot reject"
        return PowerEstimate(0.0, 0.0, n, simulations, note)
    generator = np.random.default_rng(seed)
    shape = None if pilot is None else _standardised(pilot)
    drawn = generator.standard_normal if shape is None else lambda size: generator.choice(shape, size)
    differences = drawn((simulations, n)) + effect
    p = _t_pvalues(differences) if test == "t" else _sign_flip_pvalues(differences, generator, draws)
    power = float(np.mean(p <= level))
    return PowerEstimate(power, math.sqrt(power * (1 - power) / simulations), n, simulations)


def _standardised(pilot) -> np.ndarray:
    pilot = as_sample(pilot)
    if pilot.size < 2 or not np.all(np.isfinite(pilot)) or np.ptp(pilot) == 0:
        raise ValueError("pilot differences need at least two finite values that vary")
    return (pilot - pilot.mean()) / pilot.std(ddof=0)  # ddof 0: the spread of what is resampled is then 1


def _t_pvalues(d: np.ndarray) -> np.ndarray:
    error = d.std(axis=1, ddof=1) / math.sqrt(d.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, np.abs(d.mean(axis=1)) / error, math.inf)
    return 2 * special.stdtr(d.shape[1] - 1, -t)


def _sign_flip_pvalues(d: np.ndarray, generator, draws: int) -> np.ndarray:
    """p of each row of d [simulations, n]; half of the exact patterns serve, the others mirror them."""
    n = d.shape[1]
    exact = n <= SIGN_FLIP_EXACT_LIMIT
    if exact:
        bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
        signs = 1.0 - 2.0 * bits
    else:
        signs = np.where(generator.random((draws, n)) < 0.5, -1.0, 1.0)
    observed = np.abs(d.sum(axis=1)) - 1e-12 * np.abs(d).sum(axis=1)
    hits, step = np.empty(len(d)), max(1, _CELLS_PER_CHUNK // len(signs))
    for start in range(0, len(d), step):
        rows = slice(start, start + step)
        hits[rows] = np.sum(np.abs(d[rows] @ signs.T) >= observed[rows, None], axis=1)
    return hits / len(signs) if exact else (hits + 1) / (draws + 1)

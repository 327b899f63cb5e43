"""Normality as a diagnostic. It never chooses the test: a pre-test distorts the level of what follows."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.intervals import as_sample, obstacle
from seedbed.statistics.ties import is_constant


@dataclass(frozen=True)
class NormalityResult:
    """Statistic and p-value; both NaN with a note when n < 3, values are missing or do not vary."""

    statistic: float
    pvalue: float
    n: int
    note: str = ""


def shapiro_wilk(x) -> NormalityResult:
    """Shapiro and Wilk (1965) test of x [n], n >= 3."""
    x = as_sample(x)
    note = obstacle(x, least=3) or ("not estimable: zero variance" if is_constant(x) else "")
    if note:
        return NormalityResult(math.nan, math.nan, x.size, note)
    from scipy import stats  # slow to import, and nothing else here needs it

    result = stats.shapiro(x)
    note = "p is approximate beyond n = 5000" if x.size > 5000 else ""
    return NormalityResult(float(result.statistic), float(result.pvalue), x.size, note)


def anderson_darling(x) -> NormalityResult:
    """Anderson and Darling (1954) A2 of x [n] against a normal with the sample's mean and SD (ddof 1).

    p by D'Agostino and Stephens (1986), table 4.9, from A2 (1 + 0.75 / n + 2.25 / n^2).
    """
    x = np.sort(as_sample(x))
    note = obstacle(x, least=3) or ("not estimable: zero variance" if is_constant(x) else "")
    if note:
        return NormalityResult(math.nan, math.nan, x.size, note)
    n, z = x.size, (x - x.mean()) / x.std(ddof=1)
    weights = 2 * np.arange(1, n + 1) - 1
    a2 = float(-n - np.mean(weights * (special.log_ndtr(z) + special.log_ndtr(-z[::-1]))))
    a = a2 * (1 + 0.75 / n + 2.25 / n**2)
    if a >= 0.6:
        p = math.exp(1.2937 - 5.709 * a + 0.0186 * a * a)
    elif a >= 0.34:
        p = math.exp(0.9177 - 4.279 * a - 1.38 * a * a)
    elif a >= 0.2:
        p = 1 - math.exp(-8.318 + 42.796 * a - 59.938 * a * a)
    else:
        p = 1 - math.exp(-13.436 + 101.14 * a - 223.73 * a * a)
    return NormalityResult(a2, p, n)

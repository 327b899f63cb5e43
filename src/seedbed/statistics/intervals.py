"""Interval estimates: of a mean, of any statistic by bootstrap, of a standard deviation, of a rate.

Where an interval cannot be had (no value, one value, missing values, no spread), the bounds are NaN
and `note` says why. A zero-width interval is never returned for want of information.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from seedbed.statistics.ties import is_constant

BOOTSTRAP_METHODS = ("percentile", "basic", "studentised", "bca")
PROPORTION_METHODS = ("wilson", "clopper_pearson", "agresti_coull", "jeffreys")
_CELLS_PER_CHUNK = 2**21  # 16 MB of float64 per array


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval; `low` and `high` are NaN when not estimable, `note` says why.

    `standard_error` is NaN where the method has none; `n` is the number of values used.
    """

    estimate: float
    low: float
    high: float
    n: int
    standard_error: float = math.nan
    note: str = ""


def check_confidence(confidence: float) -> float:
    """Return confidence; ValueError unless it lies strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1 (0.95 for 95 %), got {confidence}")
    return float(confidence)


def obstacle(x: np.ndarray, least: int = 2) -> str:
    """Why values [n] cannot give an interval ("" when they can): missing values or too few of them."""
    missing = int(np.sum(~np.isfinite(x)))
    if missing:
        return f"not estimable: {missing} of {x.size} values are missing or not finite"
    if x.size < least:
        return f"not estimable: n = {x.size}, needs at least {least}"
    return ""


def as_sample(x) -> np.ndarray:
    """The values as float64 [n]; ValueError for anything but one axis."""
    x = np.asarray(x, float)
    if x.ndim != 1:
        raise ValueError(f"expected one axis of values, got an array of shape {x.shape}")
    return x


def mean_t_interval(x, confidence: float = 0.95) -> Interval:
    """Student t interval of the mean of x [n]; NaN bounds for n < 2, missing values, no variance."""
    x, confidence = as_sample(x), check_confidence(confidence)
    note = obstacle(x)
    if note:
        clean = x.size and np.all(np.isfinite(x))
        return Interval(float(x.mean()) if clean else math.nan, math.nan, math.nan, x.size, note=note)
    mean = float(x.mean())
    if is_constant(x):
        note = f"not estimable: zero variance, all {x.size} values are equal"
        return Interval(mean, math.nan, math.nan, x.size, 0.0, note)
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    half = float(special.stdtrit(x.size - 1, 0.5 + confidence / 2)) * error
    return Interval(mean, mean - half, mean + half, x.size, error)


def sd_interval(x, confidence: float = 0.95) -> Interval:
    """Chi-square interval of the standard deviation (ddof 1) of x [n]; assumes normal values."""
    x, confidence = as_sample(x), check_confidence(confidence)
    note = obstacle(x)
    if note:
        return Interval(math.nan, math.nan, math.nan, x.size, note=note)
    if is_constant(x):
        note = f"not estimable: zero variance, all {x.size} values are equal"
        return Interval(0.0, math.nan, math.nan, x.size, note=note)
    df, tail, sd = x.size - 1, (1 - confidence) / 2, float(x.std(ddof=1))
    low, high = (sd * math.sqrt(df / special.chdtri(df, p)) for p in (tail, 1 - tail))
    return Interval(sd, low, high, x.size)


def wilson_bounds(share: float, n: float, confidence: float, df: float | None = None) -> tuple[float, float]:
    """Wilson (1927) score bounds of a share seen in n > 0 trials; n may be an effective, real size.

    df: degrees of freedom behind n where it is estimated; the quantile is then that of t, not of the normal.
    """
    tail = 0.5 + confidence / 2
    z2 = float(special.ndtri(tail) if df is None else special.stdtrit(df, tail)) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = 0.0 if share == 0 else max(0.0, centre - half)  # exactly 0 and 1: not a rounding below or above
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return low, high


def proportion_interval(successes: int, n: int, confidence: float = 0.95, method: str = "wilson") -> Interval:
    """Interval of a success rate, successes of n independent trials.

    Methods: Wilson (1927) score; Clopper and Pearson (1934), exact and conservative; Agresti and Coull
    (1998); Jeffreys (beta(1/2, 1/2) prior). Wald is not offered: it gives 0 of 20 a zero width.
    """
    check_confidence(confidence)
    if method not in PROPORTION_METHODS:
        raise ValueError(f"method must be one of {', '.join(PROPORTION_METHODS)}, got {method!r}")
    if not (float(successes).is_integer() and float(n).is_integer() and 0 <= successes <= n):
        raise ValueError(f"needs whole numbers with 0 <= successes <= n, got {successes} of {n}")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, note="not estimable: n = 0, no trial at all")
    share, tail = successes / n, (1 - confidence) / 2
    error = math.sqrt(share * (1 - share) / n)
    failures = n - successes
    if method == "wilson":
        low, high = wilson_bounds(share, n, confidence)
    elif method == "clopper_pearson":
        low = float(special.betaincinv(successes, failures + 1, tail)) if successes else 0.0
        high = float(special.betaincinv(successes + 1, failures, 1 - tail)) if failures else 1.0
    elif method == "jeffreys":
        low, high = (float(special.betaincinv(successes + 0.5, failures + 0.5, p)) for p in (tail, 1 - tail))
    else:
        z2 = float(special.ndtri(1 - tail)) ** 2
        centre = (successes + z2 / 2) / (n + z2)
        half = math.sqrt(z2 * centre * (1 - centre) / (n + z2))
        low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(share, low, high, int(n), error)


def bootstrap_interval(
    data,
    statistic: Callable[..., np.ndarray],
    *,
    seed,
    method: str = "bca",
    confidence: float = 0.95,
    draws: int = 10_000,
    chunk: int | None = None,
) -> Interval:
    """Bootstrap interval of a statistic (Efron and Tibshirani 1993, chapters 12 to 14).

    data: values [n], or a tuple of arrays [n] whose rows are resampled together (pairs).
    statistic(*arrays, axis=-1): maps arrays [..., n] to [...], as numpy.mean does; NaN where undefined.
    seed: an integer, SeedSequence or Generator; required, so that the same call gives the same bytes,
    whatever the chunk (resamples held at once). "studentised" takes its standard errors from the
    jackknife of each resample (for the mean: sd / sqrt(n)).

    Resamples without a defined statistic are set aside; when they are more than one tail, or when every
    resample gives the same value, the interval is not estimable. At n = 5 a nominal 95 % percentile
    interval of a mean covers about 83 %; prefer t, studentised or BCa there.
    """
    check_confidence(confidence)
    if method not in BOOTSTRAP_METHODS:
        raise ValueError(f"method must be one of {', '.join(BOOTSTRAP_METHODS)}, got {method!r}")
    if seed is None:
        raise ValueError("the bootstrap needs a seed (an integer, SeedSequence or Generator), got None")
    if draws < 100 or (chunk is not None and chunk < 1):
        raise ValueError(f"needs draws >= 100 and chunk >= 1, got draws = {draws}, chunk = {chunk}")
    arrays = tuple(as_sample(a) for a in (data if isinstance(data, tuple) else (data,)))
    n = arrays[0].size
    if any(a.size != n for a in arrays):
        raise ValueError(f"arrays resampled together must have one length, got {[a.size for a in arrays]}")
    note = next(filter(None, map(obstacle, arrays)), "")
    if n == 0 or "missing" in note:
        return Interval(math.nan, math.nan, math.nan, n, note=note)
    estimate = float(statistic(*arrays, axis=-1))
    if not note and not math.isfinite(estimate):
        note = "not estimable: the statistic is undefined on these values"
    if note:
        return Interval(estimate, math.nan, math.nan, n, note=note)

    values, errors = _resample(arrays, statistic, seed, draws, chunk, studentise=method == "studentised")
    usable = np.isfinite(values) & (errors > 0)
    lost = draws - int(usable.sum())
    values, errors = values[usable], errors[usable]
    if lost > draws * (1 - confidence) / 2:
        note = f"not estimable: the statistic is undefined in {lost} of {draws} resamples"
    elif is_constant(values):
        note = "not estimable: every resample gives the same value"
    if note:
        return Interval(estimate, math.nan, math.nan, n, note=note)
    bounds = _bounds(method, arrays, statistic, estimate, values, errors, (1 - confidence) / 2)
    if not np.all(np.isfinite(bounds)):
        note = "not estimable: bias or acceleration of the bootstrap is undefined"
        return Interval(estimate, math.nan, math.nan, n, note=note)
    note = f"{lost} of {draws} resamples undefined and set aside" if lost else ""
    return Interval(estimate, float(bounds[0]), float(bounds[1]), n, float(values.std(ddof=1)), note)


def _resample(arrays, statistic, seed, draws, chunk, studentise) -> tuple[np.ndarray, np.ndarray]:
    """Statistic and jackknife standard error (ones unless studentise) of each resample, both [draws]."""
    generator, n = np.random.default_rng(seed), arrays[0].size
    chunk = chunk or max(1, _CELLS_PER_CHUNK // (n * n if studentise else n))
    values, errors = np.empty(draws), np.ones(draws)
    for start in range(0, draws, chunk):
        rows = slice(start, min(start + chunk, draws))
        index = generator.integers(0, n, size=(rows.stop - rows.start, n))
        values[rows] = statistic(*(a[index] for a in arrays), axis=-1)
        if studentise:
            left_out = index[:, _leave_one_out(n)]
            folds = statistic(*(a[left_out] for a in arrays), axis=-1)
            error = np.sqrt((n - 1) * folds.var(axis=-1))
            errors[rows] = np.where(error > 1e-12 * np.abs(folds).max(axis=-1), error, 0.0)
    return values, errors


def _leave_one_out(n: int) -> np.ndarray:
    """Indices [n, n - 1]: row i is every position but i."""
    return np.array([np.delete(np.arange(n), i) for i in range(n)])


def _jackknife(arrays, statistic) -> np.ndarray:
    """Statistic with each row left out in turn, [n]; in chunks, as the indices grow with n squared."""
    n = arrays[0].size
    step, columns = max(1, _CELLS_PER_CHUNK // n), np.arange(n - 1)
    folds = []
    for start in range(0, n, step):
        left_out = np.arange(start, min(start + step, n))[:, None]
        index = columns + (columns >= left_out)
        folds.append(statistic(*(a[index] for a in arrays), axis=-1))
    return np.concatenate(folds)


def _bounds(method, arrays, statistic, estimate, values, errors, tail) -> np.ndarray:
    levels = np.array([tail, 1 - tail])
    if method == "percentile":
        return np.quantile(values, levels)
    if method == "basic":
        return 2 * estimate - np.quantile(values, levels)[::-1]
    folds = _jackknife(arrays, statistic)
    if method == "studentised":
        error = math.sqrt((folds.size - 1) * folds.var())
        return estimate - error * np.quantile((values - estimate) / errors, levels)[::-1]
    below = np.mean(values < estimate) / 2 + np.mean(values <= estimate) / 2
    deviations = folds.mean() - folds
    scale = float(np.sum(deviations**2))
    if not 0 < below < 1 or not scale > 0:
        return np.full(2, math.nan)
    bias = special.ndtri(below)
    acceleration = float(np.sum(deviations**3)) / (6 * scale**1.5)
    shifted = bias + special.ndtri(levels)
    if np.any(acceleration * shifted >= 1):  # the transformation folds over: no monotone map, no interval
        return np.full(2, math.nan)
    return np.quantile(values, special.ndtr(bias + shifted / (1 - acceleration * shifted)))

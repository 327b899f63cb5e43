"""Calibration: whether predicted probabilities come true as often as they say, and predicted returns."""

import math
from dataclasses import dataclass

import numpy as np

BINNINGS = ("equal_mass", "equal_width")


@dataclass(frozen=True)
class Reliability:
    """The table behind a reliability diagram, one row per bin that holds a prediction; arrays [bins]."""

    count: np.ndarray
    predicted: np.ndarray
    """Mean predicted probability."""
    observed: np.ndarray
    """Share of outcomes that came true."""


@dataclass(frozen=True)
class Calibration:
    """How well n predicted probabilities are calibrated; NaN where there are fewer predictions than bins."""

    expected_error: float
    """ECE: mean of |observed - predicted| over bins, weighted by their counts."""
    largest_error: float
    """MCE: the largest |observed - predicted| of a bin."""
    brier: float
    """Mean squared difference of prediction and outcome (Brier 1950)."""
    reliability: Reliability
    n: int


def brier_score(predicted, outcome) -> float:
    """Mean of (predicted - outcome)^2 (Brier 1950), predicted [n] in [0, 1] and outcome [n] 0 or 1."""
    predicted, outcome = _checked(predicted, outcome)
    return float(np.mean((predicted - outcome) ** 2))


def reliability(predicted, outcome, bins: int = 10, binning: str = "equal_mass") -> Reliability:
    """Predictions and outcomes by bin (DeGroot and Fienberg 1983).

    Args:
        predicted: probabilities [n] in [0, 1].
        outcome: [n], 0 or 1.
        bins: number of bins.
        binning: "equal_mass" cuts the sorted predictions into bins of nearly equal size, the first ones the
            larger (ties keep their order); "equal_width" takes [i / bins, (i + 1) / bins), 1 in the last.

    Raises:
        ValueError: another binning, no bin, other values, no or unequally many of them.
    """
    predicted, outcome = _checked(predicted, outcome)
    if bins < 1 or binning not in BINNINGS:
        raise ValueError(f"needs bins >= 1 and binning of {', '.join(BINNINGS)}, got {bins} and {binning!r}")
    order = np.argsort(predicted, kind="stable")
    if binning == "equal_mass":
        groups = np.array_split(order, bins)
    else:  # 0.29 x 100 is 28.999999999999996 in binary; what is printed on an edge belongs above it
        place = np.minimum(np.floor(predicted * bins + 1e-9).astype(np.int64), bins - 1)
        groups = [np.flatnonzero(place == number) for number in range(bins)]
    groups = [group for group in groups if group.size]
    return Reliability(
        np.array([group.size for group in groups]),
        np.array([predicted[group].mean() for group in groups]),
        np.array([outcome[group].mean() for group in groups]),
    )


def calibration(predicted, outcome, bins: int = 10, binning: str = "equal_mass") -> Calibration:
    """Expected and largest calibration error (Naeini, Cooper and Hauskrecht 2015) and Brier score.

    Arguments and errors as ``reliability``. With equal mass the errors are not defined for fewer predictions
    than bins. A bin's share of few outcomes is noisy, which alone makes the expected error positive: compare
    only equal n and equal bins.
    """
    table = reliability(predicted, outcome, bins, binning)
    n = int(table.count.sum())
    error = np.abs(table.observed - table.predicted)
    expected, largest = float(table.count @ error / n), float(error.max())
    if binning == "equal_mass" and n < bins:
        expected = largest = math.nan
    return Calibration(expected, largest, brier_score(predicted, outcome), table, n)


@dataclass(frozen=True)
class ReturnCalibration:
    """The line of realised on predicted values: calibrated predictions have slope 1 and intercept 0."""

    slope: float
    intercept: float
    n: int


def return_calibration(predicted, realised) -> ReturnCalibration:
    """Least-squares slope and intercept of realised [n] on predicted [n] (Mincer and Zarnowitz 1969).

    For returns, which are no probabilities: bins on [0, 1] do not fit them. Both must have the same horizon
    and discount. NaN for fewer than two different predictions.

    Raises:
        ValueError: unequally many values, or one that is not finite.
    """
    predicted, realised = np.asarray(predicted, float), np.asarray(realised, float)
    if predicted.ndim != 1 or predicted.shape != realised.shape:
        raise ValueError(f"needs two arrays [n], got shapes {predicted.shape} and {realised.shape}")
    if not (np.isfinite(predicted).all() and np.isfinite(realised).all()):
        raise ValueError("predicted and realised values must be finite; set missing ones aside first")
    if predicted.size < 2 or np.ptp(predicted) == 0:
        return ReturnCalibration(math.nan, math.nan, predicted.size)
    deviation = predicted - predicted.mean()
    slope = float(deviation @ realised / (deviation @ deviation))
    return ReturnCalibration(slope, float(realised.mean() - slope * predicted.mean()), predicted.size)


def _checked(predicted, outcome) -> tuple[np.ndarray, np.ndarray]:
    predicted, outcome = np.asarray(predicted, float), np.asarray(outcome, float)
    if predicted.ndim != 1 or predicted.shape != outcome.shape or not predicted.size:
        raise ValueError(f"needs two arrays [n], n >= 1, got shapes {predicted.shape} and {outcome.shape}")
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise ValueError("predicted probabilities must lie in [0, 1]; returns have return_calibration")
    if not np.isin(outcome, (0, 1)).all():
        raise ValueError("outcomes must be 0 or 1")
    return predicted, outcome

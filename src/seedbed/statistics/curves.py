"""Learning curves on a common grid of environment steps: mean over seeds with a pointwise band, and the area.

A band is pointwise: each point's interval holds for that point alone, not for the whole curve. No curve is
carried beyond its last evaluation, so the number of seeds n may differ along the grid and is always given.
"""

import math
from collections.abc import Collection

import numpy as np
import pandas as pd

from seedbed.statistics.intervals import check_confidence, mean_t_interval
from seedbed.statistics.rates import rate_interval

CURVE_COLUMNS = {
    "environment": "string",
    "algorithm": "string",
    "policy_mode": "string",
    "metric": "string",
    "steps": "int64",
    "n": "int64",
    "mean": "float64",
    "low": "float64",
    "high": "float64",
}
_CELL = ["environment", "algorithm", "policy_mode", "metric"]


def on_grid(steps, values, grid) -> np.ndarray:
    """A curve read at other steps: linear between its points, NaN before the first and after the last.

    Args:
        steps [k], increasing; values [k], NaN where missing; grid [g].

    Returns:
        values [g]; NaN also between two points of which one is missing.
    """
    steps, values, grid = (np.asarray(x, float) for x in (steps, values, grid))
    if steps.ndim != 1 or steps.shape != values.shape:
        raise ValueError(f"steps and values need one axis and one length, got {steps.shape}, {values.shape}")
    if np.any(np.diff(steps) <= 0):
        raise ValueError("the steps of a curve must increase; is one seed in the table twice?")
    if not steps.size:
        return np.full(grid.shape, math.nan)
    right = np.clip(np.searchsorted(steps, grid), 0, steps.size - 1)
    left = np.maximum(right - 1, 0)
    exact = steps[right] == grid
    span = np.where(right > left, steps[right] - steps[left], 1)
    between = values[left] + (values[right] - values[left]) * (grid - steps[left]) / span
    inside = (grid >= steps[0]) & (grid <= steps[-1])
    return np.where(exact, values[right], np.where(inside, between, math.nan))


def band(curve_scores: pd.DataFrame, confidence: float = 0.95, rates: Collection[str] = ()) -> pd.DataFrame:
    """Mean over seeds with a pointwise interval, on all steps at which a seed of the cell was evaluated.

    Args:
        curve_scores: score table with a column ``steps``; a value that is missing stays missing.
        confidence: level of the intervals.
        rates: metrics that are shares of episodes, with intervals of ``rates.rate_interval``, which stay in
            [0, 1]; others have t intervals.

    Returns:
        Table of CURVE_COLUMNS; n is the number of seeds at a point; the mean is NaN where n is 0, the bounds
        where n is below 2 or, but for rates, the seeds do not differ.

    Raises:
        ValueError: a seed has two values at one point.
    """
    check_confidence(confidence)
    rows = []
    for key, cell in curve_scores.groupby(_CELL, sort=True):
        grid, matrix = _matrix(cell, "value")
        episodes = _matrix(cell, "episodes")[1]
        for step, column, counts in zip(grid, matrix.T, episodes.T, strict=True):
            there = ~np.isnan(column)
            if key[-1] in rates:
                interval = rate_interval(column[there], counts[there], confidence)
            else:
                interval = mean_t_interval(column[there], confidence)
            rows.append((*key, step, there.sum(), interval.estimate, interval.low, interval.high))
    return pd.DataFrame(rows, columns=list(CURVE_COLUMNS)).astype(CURVE_COLUMNS)


def _matrix(cell: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The union of the seeds' steps [g], and each seed's curve of a column there [seeds, g]."""
    grid = np.unique(cell["steps"].to_numpy())
    parts = [part for _, part in cell.groupby("seed", sort=True)]
    return grid, np.array([on_grid(*_curve(part, column), grid) for part in parts])


def _curve(part: pd.DataFrame, column: str = "value") -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of one seed, in order."""
    order = np.argsort(part["steps"].to_numpy(), kind="stable")
    values = part[column].where(part["status"] == "ok").to_numpy(float)
    return part["steps"].to_numpy()[order], values[order]


def trapezoid(steps, values) -> float:
    """Area under a piecewise linear curve, values x steps; NaN for one point or a missing value."""
    steps, values = np.asarray(steps, float), np.asarray(values, float)
    return float(np.trapezoid(values, steps)) if steps.size > 1 else math.nan


def area_under_curve(
    curve_scores: pd.DataFrame, start: float | None = None, end: float | None = None
) -> pd.DataFrame:
    """The area under each seed's curve divided by its steps, in the metric's own unit: its mean height.

    Areas compare only over the same steps. So all curves of an environment are cut to one range: from the
    latest first point to the earliest last point among the algorithms that have a curve, unless given.

    Args:
        curve_scores: score table with a column ``steps``.
        start, end: range in environment steps.

    Returns:
        Score rows with ``area_under_<metric>`` as metric and the columns ``start`` and ``end``; missing, with
        the reason, where a curve has one point only, does not cover the range or lacks a value.
    """
    rows = []
    for _, environment in curve_scores.groupby("environment", sort=True):
        spans = environment.groupby(["algorithm", "policy_mode", "seed"])["steps"].agg(["min", "max"])
        spans = spans[spans["max"] > spans["min"]]
        first = (spans["min"].max() if len(spans) else math.nan) if start is None else start
        last = (spans["max"].min() if len(spans) else math.nan) if end is None else end
        keys = ["study", *_CELL, "seed"]
        for key, part in environment.groupby(keys, sort=True):
            value, status = _area(*_curve(part), first, last)
            cell = dict(zip(keys, key, strict=True))
            cell["metric"] = f"area_under_{cell['metric']}"
            episodes = int(part["episodes"].sum()) if status == "ok" else 0
            span = {"start": first, "end": last}
            rows.append(cell | {"value": value, "episodes": episodes, "status": status} | span)
    columns = [*("study", "environment", "algorithm", "seed", "policy_mode", "metric")]
    return pd.DataFrame(rows, columns=[*columns, "value", "episodes", "status", "start", "end"])


def _area(steps: np.ndarray, values: np.ndarray, start: float, end: float) -> tuple[float, str]:
    if steps.size < 2:
        return math.nan, "one point: no curve"
    if not start < end:
        return math.nan, "the curves of this environment share no range of steps"
    if steps[0] > start or steps[-1] < end:
        return math.nan, f"evaluated from {steps[0]:g} to {steps[-1]:g} steps only"
    grid = np.unique(np.concatenate(([start], steps[(steps > start) & (steps < end)], [end])))
    area = trapezoid(grid, on_grid(steps, values, grid)) / (end - start)
    return (area, "ok") if math.isfinite(area) else (math.nan, "a point of the curve is missing")

"""Sample efficiency: what is reached after a fixed number of environment steps, and how many a level takes.

A score is normalised between two policies that do not learn, on the episodes of the same training seed: 0 is
the floor (such as random), 1 the ceiling (such as a planner). Steps to a level are known at the points of the
learning curve only, so they are the first point at or above it, and censored at the last point.
"""

import math

import numpy as np
import pandas as pd

from seedbed.statistics.curves import area_under_curve, on_grid
from seedbed.statistics.intervals import check_confidence, mean_t_interval
from seedbed.statistics.survival import CENSORED, EVENT, kaplan_meier
from seedbed.study import SampleEfficiency

EFFICIENCY_COLUMNS = {
    "environment": "string",
    "algorithm": "string",
    "policy_mode": "string",
    "metric": "string",
    "quantity": "string",
    "at": "float64",
    "n": "int64",
    "reached": "float64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "note": "string",
}
"""quantity: "budget" (at: steps), "area" (at: the last step of the range) or "level" (at: the share of the
way from floor to ceiling; reached: seeds that did; estimate: median steps, NaN where fewer than half did)."""
_CELL = ["environment", "algorithm", "policy_mode", "metric"]


def normalised_name(metric: str) -> str:
    """The name under which a metric's normalised scores stand."""
    return f"normalised_{metric}"


def normalise(
    curve_scores: pd.DataFrame, metric: str, floor: str, ceiling: str, better: str = "higher"
) -> pd.DataFrame:
    """The rows of a metric as (value - floor) / (ceiling - floor), each seed by its own floor and ceiling.

    Args:
        curve_scores: score table with a column ``steps``; floor and ceiling have one point per seed.
        metric: what is normalised.
        floor, ceiling: labels of the algorithms that score 0 and 1.
        better: "lower" if the metric should be low.

    Returns:
        Those rows with ``normalised_<metric>`` as metric; missing, with the reason, where floor or ceiling is
        missing, and in the whole of an environment in which the ceiling is not better than the floor in every
        seed: a span about 0, or against the metric's direction, would turn noise into large scores.
    """
    rows = curve_scores[curve_scores["metric"] == metric].reset_index(drop=True)
    known = rows["value"].where(rows["status"] == "ok")
    ends = {}
    for name in (floor, ceiling):
        one = rows[rows["algorithm"] == name].assign(value=known)
        ends[name] = one.groupby(["environment", "seed"])["value"].mean()
    index = pd.MultiIndex.from_frame(rows[["environment", "seed"]])
    low, high = (ends[name].reindex(index).to_numpy(float) for name in (floor, ceiling))
    span = high - low
    wrong = (span >= 0) if better == "lower" else (span <= 0)
    no_scale = np.isnan(span) | pd.Series(wrong).groupby(rows["environment"]).transform("any").to_numpy()
    value = np.divide(known.to_numpy(float) - low, span, out=np.full(len(rows), math.nan), where=~no_scale)
    status = np.where(no_scale, f"{floor} and {ceiling} give no scale", rows["status"])
    return rows.assign(metric=normalised_name(metric), value=value, status=status)


def first_reached(steps, values, level: float) -> tuple[float, int]:
    """The first step of a curve at or above a level, and EVENT; or its last step, and CENSORED.

    Args:
        steps [k], increasing; values [k], NaN where missing, which never reach anything.
    """
    steps, values = np.asarray(steps, float), np.asarray(values, float)
    if not steps.size:
        raise ValueError("a curve without a point reaches nothing and is followed to nowhere")
    reached = np.flatnonzero(values >= level)
    return (float(steps[reached[0]]), EVENT) if reached.size else (float(steps[-1]), CENSORED)


def sample_efficiency(
    curve_scores: pd.DataFrame,
    plan: SampleEfficiency | None,
    confidence: float = 0.95,
    better: str = "higher",
) -> pd.DataFrame:
    """Scores at fixed budgets, mean heights of the curves, and steps to levels of the normalised score.

    Args:
        curve_scores: score table with a column ``steps``, each algorithm in one policy mode.
        plan: what the study asks for; None gives an empty table.
        confidence: level of the intervals.
        better: "lower" if the plan's metric should be low.

    Returns:
        Table of EFFICIENCY_COLUMNS over the algorithms that have a curve of two points or more. A budget is
        read off each seed's curve, linear between its points, and is missing beyond the last one. Intervals
        are t intervals over seeds; areas cover the steps that all curves of an environment share.
    """
    check_confidence(confidence)
    empty = pd.DataFrame(columns=list(EFFICIENCY_COLUMNS)).astype(EFFICIENCY_COLUMNS)
    if plan is None or curve_scores.empty:
        return empty
    normalised = normalise(curve_scores, plan.metric, plan.floor, plan.ceiling, better)
    own = curve_scores[curve_scores["metric"].isin([plan.metric, *plan.also])]
    table = pd.concat([own, normalised], ignore_index=True)
    points = table.groupby([*_CELL, "seed"])["steps"].transform("nunique")
    table = table[points > 1]
    if table.empty:
        return empty
    rows = [*_budget_rows(table, plan, confidence), *_area_rows(table, confidence)]
    rows += _level_rows(table[table["metric"] == normalised_name(plan.metric)], plan)
    found = pd.DataFrame(rows, columns=list(EFFICIENCY_COLUMNS)).astype(EFFICIENCY_COLUMNS)
    return found.sort_values([*_CELL, "quantity", "at"], ignore_index=True)


def _curves(cell: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps and values of each seed's curve, seeds ascending."""
    cell = cell.assign(value=cell["value"].where(cell["status"] == "ok")).sort_values(["seed", "steps"])
    return [(part["steps"].to_numpy(), part["value"].to_numpy(float)) for _, part in cell.groupby("seed")]


def _budget_rows(table: pd.DataFrame, plan: SampleEfficiency, confidence: float) -> list[tuple]:
    rows = []
    for key, cell in table.groupby(_CELL, sort=True):
        curves = _curves(cell)
        last = max(steps[-1] for steps, _ in curves)
        read = np.array([on_grid(steps, values, plan.budgets) for steps, values in curves])
        for budget, column in zip(plan.budgets, read.T, strict=True):
            there = column[~np.isnan(column)]
            interval = mean_t_interval(there, confidence)
            note = f"trained for {last} steps" if budget > last else interval.note
            if budget <= last and there.size < len(curves):
                note = _missing(len(curves) - there.size, len(curves), cell)
            numbers = (interval.estimate, interval.low, interval.high)
            rows.append((*key, "budget", budget, there.size, math.nan, *numbers, note))
    return rows


def _area_rows(table: pd.DataFrame, confidence: float) -> list[tuple]:
    areas, rows = area_under_curve(table), []
    for key, cell in areas.groupby(_CELL, sort=True):
        there = cell.loc[cell["status"] == "ok", "value"].to_numpy(float)
        interval = mean_t_interval(there, confidence)
        lost = int((cell["status"] != "ok").sum())
        note = _missing(lost, len(cell), cell) if lost else interval.note
        numbers = (interval.estimate, interval.low, interval.high)
        name = key[3].removeprefix("area_under_")
        rows.append((*key[:3], name, "area", cell["end"].iloc[0], there.size, math.nan, *numbers, note))
    return rows


def _level_rows(table: pd.DataFrame, plan: SampleEfficiency) -> list[tuple]:
    rows = []
    for key, cell in table.groupby(_CELL, sort=True):
        curves = [curve for curve in _curves(cell) if not np.isnan(curve[1]).all()]
        lost = cell["seed"].nunique() - len(curves)
        for level in plan.levels:
            found = [first_reached(*curve, level) for curve in curves]
            times, events = (np.array(part) for part in zip(*found, strict=True)) if found else ([], [])
            survival = kaplan_meier(times, events)
            median = math.nan if survival.median is None else survival.median
            note = _missing(lost, lost + len(curves), cell) if lost else survival.note
            reached = float(np.sum(np.asarray(events) == EVENT))
            rows.append((*key, "level", level, len(found), reached, median, math.nan, math.nan, note))
    return rows


def _missing(lost: int, of: int, cell: pd.DataFrame) -> str:
    """How many seeds are missing, and why, as far as the rows say it."""
    why = cell.loc[cell["status"] != "ok", "status"]
    return f"{lost} of {of} seeds missing" + (f" ({why.iloc[0]})" if len(why) else "")

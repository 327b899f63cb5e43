"""The table of sample efficiency: scores at fixed budgets, mean heights of curves, steps to levels."""

from typing import TYPE_CHECKING, Any

from seedbed.reporting.formatting import MISSING, NO_BREAK, finite, general, interval, number, one_line
from seedbed.reporting.layout import Cell, Notes, Row, Table
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.trace import Source
from seedbed.statistics.sample_efficiency import normalised_name
from seedbed.study import SampleEfficiency

if TYPE_CHECKING:
    from seedbed.metrics.base import Metric

NORMALISED_DECIMALS = 2


def efficiency_table(results: StudyResults, environment: str) -> Table:
    """Groups of rows per metric, one row per algorithm with a curve, one column per budget and level.

    Budgets that no algorithm was trained for are left out. Without a plan or a curve the table has no rows.
    """
    plan = results.study.statistics.sample_efficiency
    found = results.efficiency[results.efficiency.environment == environment]
    records = {(r["algorithm"], r["metric"], r["quantity"], r["at"]): r for r in found.to_dict("records")}
    areas = {(r["algorithm"], r["metric"]): r for r in records.values() if r["quantity"] == "area"}
    there = (found.quantity == "budget") & (found.n > 0)
    budgets = sorted(int(budget) for budget in found.loc[there, "at"].unique())
    levels = plan.levels if plan else []
    labels = [label for label in results.algorithms(environment) if label in set(found.algorithm)]
    notes, rows = Notes(), []
    for name in _metrics(plan) if labels else []:
        title, decimals = _heading(results, plan, name)
        rows.append(Row(name, (Cell(title),)))
        for label in labels:
            cells = [Cell(one_line(results.study.title_of(label)))]
            wanted = [records.get((label, name, "budget", float(budget))) for budget in budgets]
            cells += [
                _score_cell(results, row, decimals, notes) for row in [*wanted, areas.get((label, name))]
            ]
            for level in levels:
                cells.append(_level_cell(results, records.get((label, name, "level", level)), notes))
            rows.append(Row(f"{name}/{label}", tuple(cells)))
    header = ("Algorithm", *(f"{general(budget)} steps" for budget in budgets), "Mean height")
    header += tuple(f"Steps to {100 * level:g} %" for level in levels)
    keys = (
        "algorithm",
        *(f"at-{budget}" for budget in budgets),
        "area",
        *(f"to-{level:g}" for level in levels),
    )
    return Table(
        name=f"efficiency_{environment}",
        caption=_caption(results, environment, plan, areas) if rows else "",
        header=header,
        keys=keys,
        align="l" + "r" * (len(header) - 1),
        rows=tuple(rows),
        notes=tuple(notes.texts),
        values=found.reset_index(drop=True),
    )


def _metrics(plan: SampleEfficiency) -> list[str]:
    return [plan.metric, *plan.also, normalised_name(plan.metric)]


def _heading(results: StudyResults, plan: SampleEfficiency, name: str) -> tuple[str, int]:
    """What a group of rows is called, and its decimals."""
    if name == normalised_name(plan.metric):
        ends = (one_line(results.study.title_of(label)) for label in (plan.floor, plan.ceiling))
        title = results.metrics[plan.metric].title
        return f"{title}, normalised: 0 is {next(ends)}, 1 is {next(ends)}", NORMALISED_DECIMALS
    metric: Metric = results.metrics[name]
    return metric.title + (f" ({metric.unit})" if metric.unit else ""), metric.decimals


def _source(results: StudyResults, row: dict[str, Any], *columns: str) -> tuple[Source, ...]:
    key = {
        name: row[name] for name in ("environment", "algorithm", "policy_mode", "metric", "quantity", "at")
    }
    return (Source(f"{results.study.name}/statistics/sample_efficiency.parquet", key, columns),)


def _score_cell(results: StudyResults, row: dict[str, Any] | None, decimals: int, notes: Notes) -> Cell:
    if row is None:
        return Cell(MISSING)
    if not finite(row["estimate"]):
        return Cell(MISSING, note=notes.letter(one_line(row["note"])))
    bounds = ""
    if finite(row["low"]) and finite(row["high"]):
        bounds = interval(row["low"], row["high"], decimals).replace(" ", NO_BREAK)
    source = _source(results, row, "n", "estimate", "low", "high")
    lost = one_line(row["note"]) if "missing" in str(row["note"]) else ""
    return Cell(number(row["estimate"], decimals), bounds, note=notes.letter(lost), sources=source)


def _level_cell(results: StudyResults, row: dict[str, Any] | None, notes: Notes) -> Cell:
    """Median steps, and how many seeds got there; nothing for metrics that have no levels."""
    if row is None:
        return Cell("")
    if not row["n"]:
        return Cell(MISSING, note=notes.letter(one_line(row["note"])))
    count = f"{int(row['reached'])} of {int(row['n'])} seeds"
    text = general(round(row["estimate"])) if finite(row["estimate"]) else "not reached"
    note = notes.letter(one_line(row["note"])) if "missing" in str(row["note"]) else ""
    return Cell(text, count, note=note, sources=_source(results, row, "n", "reached", "estimate"))


def _caption(results: StudyResults, environment: str, plan: SampleEfficiency, areas: dict) -> str:
    end = max((row["at"] for row in areas.values()), default=float("nan"))
    until = f", over the first {general(int(end))} steps, which all curves cover" if finite(end) else ""
    mode = results.study.statistics.policy_mode
    title = one_line(results.study.title_of(environment))
    return (
        f"Sample efficiency in {title}: learning curves of the {mode} policy, read at fixed numbers of "
        f"environment steps; mean over seeds, {100 * results.settings.confidence:g} % interval below. Mean "
        f"height: area under the curve per step{until}. Steps to a level: median over seeds of the first "
        "point of the curve at or above it, censored at the last point; below, how many seeds got there."
    )

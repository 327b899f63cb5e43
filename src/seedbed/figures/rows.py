"""Panels with one row per algorithm: names at the left, shared by the panels beside each other."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from seedbed.figures import layout
from seedbed.figures.style import Mark
from seedbed.figures.tables import Tables, algorithms_in_order, cell, rows_of, why_missing
from seedbed.study import Study

ROW = 0.205
"""Least height of a row, inches."""
NAME_WIDTH = 1.55
_NOTE = 6.2  # points, of remarks within a panel


def names(study: Study, environment: str) -> list[str]:
    """Wrapped names of an environment's algorithms, in the order of rows."""
    return [
        layout.name(study.title_of(label), NAME_WIDTH) for label in algorithms_in_order(study, environment)
    ]


def name_gutter(wrapped: Sequence[str]) -> float:
    """Room that names need left of a panel, inches."""
    return 0.1 + max((layout.text_width(name) for name in wrapped), default=0.0) + 0.08


def height(wrapped: Sequence[str]) -> float:
    """Height of a panel whose rows all hold their names, inches."""
    tallest = max((layout.text_height(name) + 0.06 for name in wrapped), default=ROW)
    return max(ROW, tallest) * max(len(wrapped), 1)


def prepare(axes: Axes, study: Study, environment: str, wrapped: Sequence[str], with_names: bool) -> None:
    """Rows from the top, names at the left if wanted, rules between learners, baseline and references."""
    labels = algorithms_in_order(study, environment)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)))
    axes.set_yticklabels(wrapped if with_names else [], size=layout.LABEL_SIZE, linespacing=1.1)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    roles = [study.algorithms[label].role for label in labels]
    for row in range(1, len(labels)):
        if roles[row] != roles[row - 1]:
            axes.axhline(row - 0.5, color="0.6", lw=0.6)


def intervals(
    axes: Axes,
    tables: Tables,
    study: Study,
    environment: str,
    metric: str,
    marks: dict[str, Mark],
    bars: bool,
) -> None:
    """Mean, interval and seeds of each algorithm; who has no value says why.

    Args:
        bars: bars from zero with the seeds as points, or the mean's marker alone.
    """
    summary, scores = (rows_of(table, study, environment) for table in (tables.summary, tables.scores))
    absent, partial, reach = [], [], []
    for row, label in enumerate(algorithms_in_order(study, environment)):
        seeds, mark = cell(scores, label, metric), marks[label]
        values = seeds.sort_values("seed")["value"].dropna().to_numpy(float)
        if not values.size:
            absent.append((row, why_missing(seeds)))
            continue
        found = cell(summary, label, metric).iloc[0]
        _one_row(axes, row, values, found, mark, bars)
        reach += [*values, found["low"], found["high"]]
        if bars and len(seeds) > values.size:
            end = np.nanmax([*values, found["high"]])
            partial.append((row, end, f"{values.size} of {len(seeds)} seeds"))
    width = axes.get_position().width * axes.figure.get_size_inches()[0]
    room = max((layout.text_width(text, _NOTE) + 0.1 for *_, text in partial), default=0.0)
    _limits(axes, [value for value in reach if np.isfinite(value)], bars, min(room / width, 0.5))
    for row, end, text in partial:
        place = {"textcoords": "offset points", "va": "center"}
        axes.annotate(text, (end, row), (4, 0), size=_NOTE, color="0.3", **place)
    if not reach and len({reason for _, reason in absent}) < 2:  # one reason for all is said once
        absent = [(len(absent) // 2, absent[0][1] if absent else "no algorithm")]
    for row, reason in absent:
        text = layout.wrap(reason, width - 0.06, _NOTE, most=2)
        place = {"transform": axes.get_yaxis_transform(), "va": "center", "linespacing": 1.0}
        axes.text(0.03, row, text, size=_NOTE, style="italic", color="0.35", **place)


def _one_row(axes: Axes, row: int, values: np.ndarray, found: pd.Series, mark: Mark, bars: bool) -> None:
    if bars:
        axes.barh(row, found["mean"], height=0.66, color=mark.fill, edgecolor="0.35", lw=0.5, zorder=2)
        lift = np.linspace(-0.22, 0.22, values.size) if values.size > 1 else np.zeros(1)
        axes.plot(values, row + lift, "o", ms=2, mfc="white", mec="0.25", mew=0.5, ls="", zorder=4)
    else:
        face = mark.colour if mark.tested else "white"
        axes.plot(found["mean"], row, marker=mark.marker, ms=4, color=mark.colour, mfc=face, zorder=5)
    if np.isfinite(found["low"]):
        colour = "black" if bars else mark.colour
        axes.plot([found["low"], found["high"]], [row, row], color=colour, lw=1.3, zorder=3)
        for bound in (found["low"], found["high"]) if bars else ():
            axes.plot([bound, bound], [row - 0.16, row + 0.16], color=colour, lw=1.0, zorder=3)
    if bars:
        axes.plot([found["mean"]] * 2, [row - 0.33, row + 0.33], color="black", lw=1.2, zorder=3)


def _limits(axes: Axes, reach: Sequence[float], bars: bool, room: float) -> None:
    """Limits that hold all values, and a part ``room`` of the panel at the right for text; or no axis."""
    if not reach:
        axes.spines["bottom"].set_visible(False)
        axes.set_xticks([])
        return
    low, high = min(reach), max(reach)
    if bars:
        low, high = min(0.0, low), max(0.0, high)
    span = (high - low) or abs(high) or 1.0
    axes.set_xlim(low - (0.05 * span if low < 0 or not bars else 0), high + (0.07 + room / (1 - room)) * span)
    if bars and low < 0:
        axes.axvline(0, color="0.4", lw=0.6)

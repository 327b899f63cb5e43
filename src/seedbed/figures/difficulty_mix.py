"""Mix of question difficulties against the blueprint of 20/60/20, one stacked bar per algorithm."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seedbed.figures import layout, rows
from seedbed.figures.style import WIDTH, new_figure, style
from seedbed.figures.tables import Tables, algorithms_in_order, cell, rows_of, why_missing
from seedbed.metrics.interview import BLUEPRINT, DIFFICULTIES
from seedbed.study import Study

_FILLS = ("#E6EFF7", "#8DB9DD", "#1D4E89")  # light to dark: the order reads in grey
_INK = ("black", "black", "white")


def difficulty_mix(tables: Tables, study: Study) -> Figure:
    """Shares of easy, medium and hard questions in percent; dashed lines and the first bar: the target."""
    with style():
        wrapped = {environment: rows.names(study, environment) for environment in study.environments}
        left = rows.name_gutter([name for names in wrapped.values() for name in names] + ["blueprint"])
        width = WIDTH - left - 0.3
        heads = {
            environment: layout.title_height(study.title_of(environment), WIDTH - 0.2)
            for environment in study.environments
        }
        heights = {
            environment: rows.height(wrapped[environment]) * (1 + 1.3 / len(wrapped[environment]))
            for environment in study.environments
        }
        note = layout.wrap(_note(study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        total = 0.15 + layout.text_height(note, layout.NOTE_SIZE)
        total += sum(heads[e] + heights[e] + 0.55 for e in study.environments)
        figure, top = new_figure(total), 0.06
        for environment in study.environments:
            text = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
            layout.write(figure, 0.1, top, text, 9, weight="bold")
            axes = layout.panel(figure, left, top + heads[environment], width, heights[environment])
            rows.prepare(axes, study, environment, wrapped[environment], with_names=True)
            _draw(axes, tables, study, environment, wrapped[environment])
            top += heads[environment] + heights[environment] + 0.55
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _draw(axes: Axes, tables: Tables, study: Study, environment: str, wrapped: list[str]) -> None:
    summary, scores = (rows_of(table, study, environment) for table in (tables.summary, tables.scores))
    metrics = [f"difficulty_share_{difficulty}" for difficulty in DIFFICULTIES]
    axes.set_ylim(len(wrapped) - 0.5, -1.8)
    axes.set_yticks([-1.15, *range(len(wrapped))])
    axes.set_yticklabels(["blueprint", *wrapped], size=layout.LABEL_SIZE, linespacing=1.1)
    names = [f"{name} {100 * share:.0f}" for name, share in zip(DIFFICULTIES, BLUEPRINT, strict=True)]
    _stack(axes, -1.15, BLUEPRINT, names)
    axes.axhline(-0.5, color="0.6", lw=0.6)
    for row, label in enumerate(algorithms_in_order(study, environment)):
        found = [cell(summary, label, metric)["mean"] for metric in metrics]
        shares = [float(mean.iloc[0]) if len(mean) else np.nan for mean in found]
        if np.isfinite(shares).all():
            _stack(axes, row, shares, [f"{100 * share:.0f}" for share in shares])
        else:
            reason = why_missing(cell(scores, label, metrics[0]))
            axes.text(1, row, reason, va="center", size=7, style="italic", color="0.35")
    for edge in np.cumsum(BLUEPRINT)[:-1]:
        axes.axvline(100 * edge, color="white", lw=1.8, zorder=5)
        axes.axvline(100 * edge, color="black", lw=1.1, linestyle=(0, (4, 2)), zorder=5)
    axes.set_xlim(0, 100)
    axes.grid(False)
    axes.set_xlabel("share of questions (%)")


def _stack(axes: Axes, row: float, shares, texts) -> None:
    start = 0.0
    for share, text, fill, ink in zip(shares, texts, _FILLS, _INK, strict=True):
        axes.barh(row, 100 * share, left=start, height=0.7, color=fill, edgecolor="0.2", lw=0.6, zorder=2)
        if share >= 0.045:
            axes.text(
                _beside_target(start, start + 100 * share),
                row,
                text,
                ha="center",
                va="center",
                size=7,
                color=ink,
                zorder=6,
            )
        start += 100 * share


def _beside_target(start: float, end: float) -> float:
    """Where a number stands: the middle of its bar, or beside a target line that runs through it."""
    middle, room = (start + end) / 2, 2.2
    for edge in 100 * np.cumsum(BLUEPRINT)[:-1]:
        if abs(middle - edge) < room:
            left, right = edge - room, edge + room
            fits = [x for x in (left, right) if start + room <= x <= end - room]
            return min(fits, key=lambda x: abs(x - middle), default=middle)
    return middle


def _note(study: Study) -> str:
    seeds = f"n = {len(study.seeds)} training seeds" if len(study.seeds) > 1 else "one training seed"
    return (
        f"Mean share within an episode's questions over {seeds}; from left to right easy, medium, hard. "
        f"Dashed lines: the blueprint's 20/60/20."
    )

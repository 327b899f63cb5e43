"""All pairs on the primary metric: effect, corrected p and decision, one cell per pair."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from seedbed.figures import layout
from seedbed.figures.style import WIDTH, new_figure, style
from seedbed.figures.tables import Tables, algorithms_in_order, metrics_of
from seedbed.study import Study

_FAMILY = "pairs"
_LIMIT = 2.0
"""Effects beyond are drawn as this: the class "large" begins at 0.8."""
_SIGNS = {"row": "▲", "column": "▼", "undecided": "○", "not testable": "×"}
_MAP = LinearSegmentedColormap.from_list("effect", ["#E8A33D", "#FBFBFB", "#5BA3D9"])
_NAME_WIDTH = 1.5


def pairwise_tests(tables: Tables, study: Study) -> Figure:
    """One lower triangle per environment: rows against columns, effects signed so that + favours the row.

    The decision is a sign in each cell and a thick frame, so that nothing hangs on colour.
    """
    with style():
        plans = {environment: _tested(tables, study, environment) for environment in study.environments}
        wrapped = {
            label: layout.name(study.title_of(label), _NAME_WIDTH)
            for plan in plans.values()
            for label in plan
        }
        left = 0.2 + max((layout.text_width(name) for name in wrapped.values()), default=1.0)
        note = layout.wrap(_note(tables, study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        titles = {e: f"{study.title_of(e)}: {_metric_title(study, e)}" for e in study.environments}
        sizes = {e: _sizes(plan, wrapped, left) for e, plan in plans.items()}
        total = 0.15 + layout.text_height(note, layout.NOTE_SIZE)
        total += sum(
            layout.title_height(titles[e], WIDTH - 0.2)
            + sizes[e][2]
            + sizes[e][1] * max(len(plans[e]) - 1, 1)
            for e in plans
        )
        total += 0.85 * len(plans)
        figure, top = new_figure(total), 0.06
        for environment, plan in plans.items():
            text = layout.wrap(titles[environment], WIDTH - 0.2, 9, "bold")
            layout.write(figure, 0.1, top, text, 9, weight="bold")
            top += layout.title_height(titles[environment], WIDTH - 0.2)
            across, down, head = sizes[environment]
            count = max(len(plan) - 1, 1)
            axes = layout.panel(figure, left, top + head, across * count, down * count)
            if len(plan) < 2:
                layout.say(axes, "no pair was tested")
            else:
                _draw(axes, tables, environment, plan, wrapped, min(across, down))
                bar = layout.panel(
                    figure, left, top + head + down * count + 0.14, min(2.4, across * count), 0.1
                )
                _colour_bar(bar)
            top += head + down * count + 0.85
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _pairs(tables: Tables, environment: str) -> pd.DataFrame:
    rows = tables.comparisons
    return rows[(rows["environment"] == environment) & (rows["family"] == _FAMILY)]


def _tested(tables: Tables, study: Study, environment: str) -> list[str]:
    rows = _pairs(tables, environment)
    there = set(rows["algorithm_a"]) | set(rows["algorithm_b"])
    return [label for label in algorithms_in_order(study, environment) if label in there]


def _sizes(plan: list[str], wrapped: dict[str, str], left: float) -> tuple[float, float, float]:
    """Width and height of a cell, and room above the first, inches."""
    count = max(len(plan) - 1, 1)
    last = layout.text_width(wrapped[plan[-2]]) if len(plan) > 1 else 0.0
    across = min(1.05, (WIDTH - left - 0.1 - max(0.0, last - 0.45)) / count)
    names = max((layout.text_height(wrapped[label]) for label in plan), default=0.3)
    return (across, max(min(0.62, 0.75 * across), names + 0.06), names + 0.06) if plan else (4.0, 1.0, 0.0)


def _metric_title(study: Study, environment: str) -> str:
    metric = metrics_of(study)[study.statistics.primary[environment]]
    better = {"higher": " (more is better)", "lower": " (less is better)", "none": ""}[metric.better]
    return metric.title[0].lower() + metric.title[1:] + better


def _draw(
    axes: Axes, tables: Tables, environment: str, plan: list[str], wrapped: dict[str, str], cell: float
) -> None:
    place = {label: number for number, label in enumerate(plan)}
    size = float(np.clip(14 * cell, 4.6, 7.5))
    for row in _pairs(tables, environment).to_dict("records"):
        effect, decided, below, above = _oriented(row, place)
        x, y = place[above], place[below] - 1
        shown = (
            _MAP(0.5 + np.clip(effect, -_LIMIT, _LIMIT) / (2 * _LIMIT)) if np.isfinite(effect) else "white"
        )
        edge = {"edgecolor": "black", "lw": 1.6, "zorder": 3} if decided in ("row", "column") else {}
        style = {"edgecolor": "0.6", "lw": 0.6, "zorder": 2} | edge
        axes.add_patch(Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, facecolor=shown, **style))
        axes.text(
            x + 0.5,
            y + 0.5,
            _cell_text(row, effect, decided),
            ha="center",
            va="center",
            size=size,
            linespacing=1.15,
            zorder=4,
        )
    for label, number in place.items():
        if number < len(plan) - 1:  # the name of a column stands above its first cell, where nothing else is
            axes.text(
                number + 0.06,
                number - 0.06,
                wrapped[label],
                va="bottom",
                size=layout.LABEL_SIZE,
                linespacing=1.1,
            )
    axes.set_xlim(0, len(plan) - 1)
    axes.set_ylim(len(plan) - 1, 0)
    axes.set_xticks([])
    axes.set_yticks(np.arange(len(plan) - 1) + 0.5)
    axes.set_yticklabels([wrapped[label] for label in plan[1:]], size=layout.LABEL_SIZE, linespacing=1.1)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)


def _oriented(row: dict, place: dict[str, int]) -> tuple[float, str, str, str]:
    """Effect that favours the row where positive, decision, the row's algorithm and the column's."""
    a, b = row["algorithm_a"], row["algorithm_b"]
    effect = row["d_av"] if row["better_is"] == "higher" else -row["d_av"]
    below, above, sign = (a, b, 1) if place[a] > place[b] else (b, a, -1)
    winner = {"a better": a, "b better": b}.get(row["decision"])
    decided = row["decision"] if winner is None else "row" if winner == below else "column"
    return sign * effect, decided, below, above


def _cell_text(row: dict, effect: float, decided: str) -> str:
    if decided == "not testable":
        return f"{_SIGNS[decided]}\nnot\ntestable"
    p = row["p_corrected"]
    value = "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)
    size = f"{effect:+.2f}".replace("-", "−") if np.isfinite(effect) else "no effect size"
    return f"{_SIGNS[decided]} {size}\n{value}"


def _colour_bar(axes: Axes) -> None:
    bar = axes.figure.colorbar(
        ScalarMappable(Normalize(-_LIMIT, _LIMIT), _MAP), cax=axes, orientation="horizontal"
    )
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["≤ −2", "−1", "0", "1", "≥ 2"])
    bar.outline.set_linewidth(0.5)
    bar.ax.tick_params(labelsize=7, length=2)
    bar.set_label("effect d_av; + favours the row", size=7.5, labelpad=1)


def _note(tables: Tables, study: Study) -> str:
    rows = tables.comparisons[tables.comparisons["family"] == _FAMILY]
    text = "▲ the row's algorithm is better, ▼ the column's is (thick frame), ○ undecided, × not testable. "
    if not len(rows):
        return text
    n = (
        f"{rows['n'].min()}"
        if rows["n"].min() == rows["n"].max()
        else f"{rows['n'].min()} to {rows['n'].max()}"
    )
    names = {"holm": "Holm's", "bh": "Benjamini and Hochberg's", "bonferroni": "Bonferroni's"}
    corrections = " and ".join(names.get(name, name) for name in sorted(rows["correction"].unique()))
    return text + (
        f"p: paired sign-flip tests over n = {n} common seeds after {corrections} correction. "
        f"d_av: difference over the mean of both standard deviations.{_warnings(rows)}"
    )


def _warnings(rows: pd.DataFrame) -> str:
    """Why pairs were not testable, and whether the design could have succeeded at all; one reason of each."""
    notes = [part for note in rows["note"] for part in str(note).split("; ")]
    found = [
        next((n for n in notes if n.startswith(start)), "") for start in ("not testable", "cannot succeed")
    ]
    return "".join(f" {text[0].upper()}{text[1:]}." for text in found if text)

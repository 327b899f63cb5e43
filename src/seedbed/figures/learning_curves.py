"""Learning curves: return and final mastery against environment steps, with bands; the others as levels."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seedbed.figures import layout
from seedbed.figures.style import WIDTH, Mark, marks, new_figure, style
from seedbed.figures.tables import (
    Tables,
    algorithms_in_order,
    axis_label,
    cell,
    kinds_of_interval,
    metrics_of,
    rows_of,
)
from seedbed.study import Study

_PREFERRED = ("return", "final_mastery")
_LABEL_WIDTH = 1.45


def learning_curves(tables: Tables, study: Study) -> Figure:
    """One panel per environment and metric; x is environment steps per seed.

    Metrics are return and final mastery, or the primary metric where an environment has none of these.
    Policies that do not learn are level lines at their final score. Bands are pointwise.
    """
    with style():
        shown = [(e, m) for e in study.environments for m in _metrics_shown(tables, study, e)]
        names = {
            label: layout.name(study.title_of(label), _LABEL_WIDTH)
            + _ending(rows_of(tables.curves, study, environment), label)
            for environment in study.environments
            for label in study.algorithms_in(environment)
        }
        left, right = 0.72, layout.gutter(list(names.values()))
        width, titles = WIDTH - left - right, [_title(study, e, m) for e, m in shown]
        heads = [layout.title_height(title, WIDTH - 0.2) for title in titles]
        height = max(2.1, layout.labels_height(list(names.values())))
        note = layout.wrap(_note(tables, study, shown), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        step = height + 0.62
        total = sum(heads) + step * len(shown) + layout.text_height(note, layout.NOTE_SIZE) + 0.12
        figure, top = new_figure(total), 0.06
        for (environment, metric), title, head in zip(shown, titles, heads, strict=True):
            axes = layout.panel(figure, left, top + head, width, height)
            layout.write(figure, 0.1, top, layout.wrap(title, WIDTH - 0.2, 9, "bold"), 9, weight="bold")
            _draw(axes, tables, study, environment, metric, names)
            top += head + step
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _metrics_shown(tables: Tables, study: Study, environment: str) -> list[str]:
    rows = tables.curves[tables.curves["environment"] == environment]
    there = set(rows.loc[rows["n"] > 0, "metric"]) & set(metrics_of(study))
    shown = [metric for metric in (*_PREFERRED, study.statistics.primary[environment]) if metric in there]
    return list(dict.fromkeys(shown))[:2] or ["return"]


def _title(study: Study, environment: str, metric: str) -> str:
    return f"{study.title_of(environment)}: {metrics_of(study)[metric].title.lower()}"


def _curve(rows: pd.DataFrame, algorithm: str, metric: str) -> pd.DataFrame:
    """Points up to the last with a value, gaps included; one point alone is no curve."""
    points = cell(rows, algorithm, metric).sort_values("steps")
    known = points.loc[points["n"] > 0, "steps"]
    return points[points["steps"] <= known.max()] if known.nunique() > 1 else points.iloc[:0]


def _ending(rows: pd.DataFrame, algorithm: str) -> str:
    """For a learner trained shorter than others, how far it went."""
    last = rows[(rows["n"] > 0)].groupby("algorithm")["steps"].max()
    if algorithm in last and 0 < last[algorithm] < last.max():
        return f"\n(to {last[algorithm]:,} steps)"
    return ""


def _draw(axes: Axes, tables: Tables, study: Study, environment: str, metric: str, names: dict) -> None:
    drawn, curves = marks(study), rows_of(tables.curves, study, environment)
    summary = rows_of(tables.summary, study, environment)
    axes.set_ylabel(axis_label(metrics_of(study)[metric]))
    labels, levels = [], []
    last = curves.loc[curves["n"] > 0, "steps"].max() if len(curves) else np.nan
    for algorithm in algorithms_in_order(study, environment):
        mark, points = drawn[algorithm], _curve(curves, algorithm, metric)
        if len(points):
            _draw_curve(axes, points, mark)
            labels.append(
                layout.Label(
                    names[algorithm],
                    float(points["mean"].iloc[-1]),
                    mark,
                    at_edge=bool(points["steps"].iloc[-1] >= last),
                )
            )
            continue
        final = cell(summary, algorithm, metric)
        if len(final) and np.isfinite(final["mean"].iloc[0]):
            levels.append((algorithm, float(final["mean"].iloc[0])))
    if not labels:
        layout.say(axes, "no learning curve: nothing was evaluated while training")
        return
    for algorithm, level in levels:
        mark = drawn[algorithm]
        axes.axhline(level, color=mark.colour, linestyle=mark.line, lw=mark.width, zorder=mark.order)
        labels.append(layout.Label(names[algorithm], level, mark, with_marker=False))
    axes.set_xlim(0, last)
    if metrics_of(study)[metric].rate:
        axes.set_ylim(0, 1)
    axes.set_xlabel("environment steps per seed")
    layout.thousands(axes.xaxis)
    layout.label_lines(axes, labels)


def _draw_curve(axes: Axes, points: pd.DataFrame, mark: Mark) -> None:
    steps = points["steps"].to_numpy()
    axes.plot(
        steps,
        points["mean"],
        color=mark.colour,
        linestyle=mark.line,
        lw=mark.width,
        marker=mark.marker,
        markevery=max(1, len(steps) // 8),
        zorder=mark.order,
        clip_on=False,
    )
    low, high = points["low"].to_numpy(), points["high"].to_numpy()
    axes.fill_between(steps, low, high, where=np.isfinite(low), color=mark.colour, alpha=0.15, lw=0, zorder=1)
    for bound in (low, high):
        axes.plot(steps, bound, color=mark.colour, lw=0.4, alpha=0.7, zorder=1)


def _note(tables: Tables, study: Study, shown: list[tuple[str, str]]) -> str:
    text = "Level lines: final score of policies that do not learn."
    rows = pd.concat([rows_of(tables.curves, study, e).query("metric == @m") for e, m in shown])
    n = rows.loc[rows["n"] > 0, "n"]
    if not len(n):
        return text
    if n.max() == 1:
        return f"{text} One training seed: no band can be given."
    count = f"{n.max()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    kinds = kinds_of_interval({metrics_of(study)[metric].rate for _, metric in shown})
    return f"{text} Bands: pointwise {tables.percent} {kinds} over n = {count} training seeds."

"""Final scores: the primary metric and further main ones, bars with intervals and the seeds as points."""

from matplotlib.figure import Figure

from seedbed.figures import layout, rows
from seedbed.figures.style import WIDTH, marks, new_figure, style
from seedbed.figures.tables import Tables, kinds_of_interval, metrics_of
from seedbed.metrics.base import Metric
from seedbed.study import Study

_ACROSS = 3
_GAP = 0.22
_ARROWS = {"higher": "more is better →", "lower": "← less is better", "none": ""}


def bars(tables: Tables, study: Study) -> Figure:
    """One panel per metric, the primary one first, then secondary ones; one row per algorithm.

    Six metrics for a study with one environment, three for each of several.
    """
    with style():
        drawn, metrics = marks(study), metrics_of(study)
        most = 2 * _ACROSS if len(study.environments) == 1 else _ACROSS
        plan = study.statistics
        chosen = {
            environment: list(dict.fromkeys([plan.primary[environment], *plan.secondary]))[:most]
            for environment in study.environments
        }
        wrapped = {environment: rows.names(study, environment) for environment in study.environments}
        left = rows.name_gutter([name for names in wrapped.values() for name in names])
        width = (WIDTH - left - 0.15) / _ACROSS - _GAP
        note = layout.wrap(
            _note(tables, study, set().union(*chosen.values())), layout.NOTE_WIDTH, layout.NOTE_SIZE
        )
        blocks = [  # (environment, metrics side by side, whether the environment's title stands above)
            (environment, names[start : start + _ACROSS], start == 0)
            for environment, names in chosen.items()
            for start in range(0, len(names), _ACROSS)
        ]
        panel_head = max(
            layout.text_height(_panel_title(metrics[name], width), 8)
            for names in chosen.values()
            for name in names
        )
        total = 0.1 + layout.text_height(note, layout.NOTE_SIZE) + 0.1
        for environment, _, first in blocks:
            total += _head(study, environment) if first else 0.0
            total += panel_head + rows.height(wrapped[environment]) + 0.58
        figure, top = new_figure(total), 0.06
        for environment, names, first in blocks:
            if first:
                text = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
                layout.write(figure, 0.1, top, text, 9, weight="bold")
                top += _head(study, environment)
            height = rows.height(wrapped[environment])
            for column, name in enumerate(names):
                place = left + column * (width + _GAP)
                axes = layout.panel(figure, place, top + panel_head + 0.04, width, height)
                weight = "bold" if name == plan.primary[environment] else "normal"
                axes.set_title(_panel_title(metrics[name], width), size=8, weight=weight, pad=4)
                rows.prepare(axes, study, environment, wrapped[environment], with_names=column == 0)
                rows.intervals(axes, tables, study, environment, name, drawn, bars=True)
                axes.locator_params(axis="x", nbins=5)
                axes.xaxis.set_major_formatter("{x:g}")
                axes.set_xlabel(_x_label(metrics[name]), size=7.5)
            top += panel_head + height + 0.58
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _head(study: Study, environment: str) -> float:
    return layout.title_height(study.title_of(environment), WIDTH - 0.2)


def _panel_title(metric: Metric, width: float) -> str:
    return layout.wrap(metric.title, width, 8, "bold")


def _x_label(metric: Metric) -> str:
    arrow = _ARROWS[metric.better]
    return f"{metric.unit}   {arrow}".strip() if metric.unit else arrow


def _note(tables: Tables, study: Study, shown: set[str]) -> str:
    n = len(study.seeds)
    text = "Bold title: primary metric. Bars: mean over training seeds; circles: seeds. "
    if n == 1:
        return text + "One training seed: no interval can be given."
    kinds = kinds_of_interval({metrics_of(study)[metric].rate for metric in shown})
    return text + f"Whiskers: {tables.percent} {kinds}, n = {n}. Pale bars: references, not tested."

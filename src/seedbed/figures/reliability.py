"""Reliability of learned models: how often what they foretell with a probability comes true."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from seedbed.figures import layout
from seedbed.figures.style import WIDTH, Mark, marks, new_figure, style
from seedbed.figures.tables import Tables, algorithms_in_order, rows_of
from seedbed.study import Study

_EVENTS = {"outcome": "outcome of a step", "success": "success of an episode"}
_LEFT, _GAP, _LABEL_WIDTH = 0.62, 0.70, 1.45
_APART = 5.0
"""Points sideways between the first and the last learner, so that whiskers at one place can be told apart."""


def reliability(tables: Tables, study: Study) -> Figure:
    """Two square panels per environment: observed against predicted, of a step's outcome and of success.

    Only algorithms with forecasts are drawn; points are bins, the diagonal is a calibrated model.
    """
    with style():
        found = {e: rows_of(tables.reliability, study, e) for e in study.environments}
        present = {
            e: [a for a in algorithms_in_order(study, e) if (rows["algorithm"] == a).any()]
            for e, rows in found.items()
        }
        names = {
            label: layout.name(study.title_of(label), _LABEL_WIDTH)
            for labels in present.values()
            for label in labels
        }
        side = min(2.4, (WIDTH - _LEFT - _GAP - layout.gutter(list(names.values()))) / 2)
        heights = {e: max(side, layout.labels_height([names[label] for label in present[e]])) for e in found}
        note = layout.wrap(_note(tables, study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        heads = {e: layout.title_height(study.title_of(e), WIDTH - 0.2) for e in found}
        total = sum(heads[e] + 0.22 + heights[e] + 0.68 for e in found)
        figure, top = new_figure(total + layout.text_height(note, layout.NOTE_SIZE) + 0.12), 0.06
        drawn = marks(study)
        for environment, rows in found.items():
            text = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
            layout.write(figure, 0.1, top, text, 9, weight="bold")
            top += heads[environment] + 0.22
            lower = top + (heights[environment] - side) / 2
            for column, event in enumerate(_EVENTS):
                axes = layout.panel(figure, _LEFT + column * (side + _GAP), lower, side, side)
                axes.set_title(_EVENTS[event], size=8, weight="normal", pad=4)
                _draw(axes, rows, event, present[environment], drawn)
            labels = [
                layout.Label(names[label], 1.0, drawn[label], at_edge=False)
                for label in reversed(present[environment])
            ]
            layout.label_lines(axes, labels)
            top += heights[environment] + 0.68
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _draw(axes: Axes, rows: pd.DataFrame, event: str, present: list[str], drawn: dict[str, Mark]) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    shown = rows[rows["event"] == event]
    if not len(shown):
        everything = "no forecasts: no policy has a model of the environment, or none were asked for"
        layout.say(axes, "no forecasts of it" if present else everything)
        return
    ticks = (0, 0.25, 0.5, 0.75, 1)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.plot([0, 1], [0, 1], color="0.5", lw=0.8, linestyle=(0, (1, 1.5)), zorder=1)
    apart = min(2.0, _APART / max(len(present) - 1, 1))
    for number, label in enumerate(present):
        bins = shown[shown["algorithm"] == label].sort_values("bin")
        _draw_bins(axes, bins, drawn[label], (number - (len(present) - 1) / 2) * apart)
    axes.set_ylabel("observed share")
    axes.set_xlabel(f"predicted probability\n{_sizes(shown['count'])}")


def _draw_bins(axes: Axes, bins: pd.DataFrame, mark: Mark, aside: float) -> None:
    """Areas of points are their bins' shares of the predictions; all stands some points aside."""
    moved = axes.transData + ScaledTranslation(aside / 72, 0, axes.figure.dpi_scale_trans)
    place = {"color": mark.colour, "clip_on": False, "zorder": mark.order, "transform": moved}
    axes.plot(bins["predicted"], bins["observed"], linestyle=mark.line, lw=0.6 * mark.width, **place)
    for row in bins.itertuples():
        axes.plot([row.predicted] * 2, [row.low, row.high], lw=0.9, alpha=0.6, **place)
    area = 160 * bins["count"] / bins["count"].sum()
    axes.scatter(
        bins["predicted"], bins["observed"], s=area, marker=mark.marker, edgecolors="white", lw=0.4, **place
    )


def _sizes(count: pd.Series) -> str:
    low, high = count.min(), count.max()
    return f"bins of {low:,}" + (f" to {high:,}" if high > low else "") + " predictions"


def _note(tables: Tables, study: Study) -> str:
    rows = pd.concat([rows_of(tables.reliability, study, e) for e in study.environments])
    text = (
        "Outcome of a step: a correct answer, or the end of the episode where the environment names none. "
        "Dotted diagonal: calibrated. Points: bins of about equally many predictions, areas their shares; "
        "learners stand a little aside of each other."
    )
    if not len(rows):
        return text
    if rows["n"].max() == 1:
        return f"{text} One training seed: no interval can be given."
    n = rows["n"]
    count = f"{n.max()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    return (
        f"{text} Whiskers: {tables.percent} Wilson intervals over the n = {count} training seeds of a bin, "
        "at the effective number of predictions."
    )

"""Cumulative incidence of success, and of quitting, over the steps of an episode."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seedbed.figures import layout
from seedbed.figures.style import WIDTH, Mark, marks, new_figure, style
from seedbed.figures.tables import Tables, algorithms_in_order, kinds_of_interval, rows_of
from seedbed.study import Study

_LABEL_WIDTH = 1.45


@dataclass(frozen=True)
class _Words:
    """What success is called."""

    panels: tuple[tuple[str, str], ...]
    """Column of the incidence table, and what an episode has done."""
    nobody: str
    remark: str


_MASTERY = _Words(
    (("incidence", "mastered"), ("quit", "quit")),
    "no episode reached mastery",
    "Both shares count all episodes: who quits never masters.",
)
_GOAL = _Words(
    (("incidence", "at the goal"),),
    "no episode reached the goal",
    "The share counts all episodes, those that the step limit cuts as well.",
)


def mastery_incidence(tables: Tables, study: Study) -> Figure:
    """Two panels per environment: share of episodes that have mastered, and that have quit, by each step.

    Quitting competes with mastery, so both shares count all episodes.
    """
    return _incidence(tables, study, _MASTERY)


def success_incidence(tables: Tables, study: Study) -> Figure:
    """One panel per environment: share of episodes that have reached the goal by each step.

    An episode without success is censored at the step limit, so the share counts all episodes.
    """
    return _incidence(tables, study, _GOAL)


def _incidence(tables: Tables, study: Study, words: _Words) -> Figure:
    with style():
        names = {label: layout.name(study.title_of(label), _LABEL_WIDTH) for label in study.algorithms}
        left, right = 0.62, layout.gutter(list(names.values()))
        width = WIDTH - left - right
        height = max(1.9, layout.labels_height(list(names.values())))
        note = layout.wrap(_note(tables, study, words), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        heads = {e: layout.title_height(study.title_of(e), WIDTH - 0.2) for e in study.environments}
        step = height + 0.30
        total = sum(heads[e] + len(words.panels) * step + 0.32 for e in study.environments)
        figure, top = new_figure(total + layout.text_height(note, layout.NOTE_SIZE) + 0.18), 0.06
        for environment in study.environments:
            text = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
            layout.write(figure, 0.1, top, text, 9, weight="bold")
            top += heads[environment]
            rows = rows_of(tables.incidence, study, environment)
            for column, verb in words.panels:
                axes = layout.panel(figure, left, top + 0.05, width, height)
                axes.set_ylabel(f"share of episodes {verb}")
                _draw(axes, rows, study, environment, column, names, words)
                if column == words.panels[-1][0] and len(rows):
                    axes.set_xlabel("step within the episode")
                top += step
            top += 0.32
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _draw(
    axes: Axes,
    rows: pd.DataFrame,
    study: Study,
    environment: str,
    column: str,
    names: dict,
    words: _Words,
) -> None:
    if not len(rows):
        layout.say(axes, "no episodes")
        return
    drawn, labels = marks(study), []
    for algorithm in algorithms_in_order(study, environment):
        curve, mark = rows[rows["algorithm"] == algorithm].sort_values("t"), drawn[algorithm]
        if len(curve):
            _draw_curve(axes, curve, column, mark, len(labels))
            last = float(curve[column].iloc[-1])
            labels.append(layout.Label(names[algorithm], last, mark, with_marker=mark.tested))
    axes.set_xlim(0, rows["t"].max())
    axes.set_ylim(0, 1.0 if column == "incidence" else float(np.clip(1.1 * rows[column].max(), 0.2, 1.0)))
    if column == "incidence" and not rows["incidence"].any():
        place = {"ha": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, words.nobody, color="0.3", size=8, **place)
    layout.label_lines(axes, labels)


def _draw_curve(axes: Axes, curve: pd.DataFrame, column: str, mark: Mark, number: int) -> None:
    t, share = curve["t"].to_numpy(), curve[column].to_numpy()
    stride = max(1, len(t) // 7)
    axes.plot(
        t,
        share,
        drawstyle="steps-post",
        color=mark.colour,
        linestyle=mark.line,
        lw=mark.width if column == "incidence" else 0.8 * mark.width,
        marker=mark.marker if mark.tested else None,
        markevery=(5 * number % stride, stride),
        zorder=mark.order,
        clip_on=False,
    )
    low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
    if column == "incidence" and mark.tested:
        known = np.isfinite(low)
        axes.fill_between(
            t, low, high, where=known, step="post", color=mark.colour, alpha=0.12, lw=0, zorder=1
        )
        for bound in (low, high):
            axes.plot(t, bound, drawstyle="steps-post", color=mark.colour, lw=0.4, alpha=0.7, zorder=1)


def _note(tables: Tables, study: Study, words: _Words) -> str:
    rows = tables.incidence[tables.incidence["environment"].isin(list(study.environments))]
    n = rows["n"].max() if len(rows) else 0
    if n == 1:
        return words.remark + " One training seed: no band can be given."
    if n > 1:
        return (
            f"{words.remark} Bands (learners, baseline): pointwise {tables.percent} "
            f"{kinds_of_interval({True})} over n = {n} training seeds."
        )
    return words.remark

"""Example trajectories on the map: one column per algorithm, one row per test episode."""

import matplotlib.patheffects as effects
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seedbed.figures import layout
from seedbed.figures.style import WIDTH, Mark, marks, new_figure, style
from seedbed.figures.tables import Tables, algorithms_in_order, rows_of
from seedbed.figures.walks import grid_of
from seedbed.study import Study

_ABREAST = 6
_WIDEST = 1.7  # inches of a map
_GAP = 0.10
_SMALL = 6.2  # points, of what stands below a map
_LEFT, _RIGHT = 0.68, 0.06
_DRIFT = 0.4  # of a cell, from the start to the step limit


def trajectories(tables: Tables, study: Study) -> Figure:
    """Small maps of a few test episodes, the same for all algorithms, which are the columns.

    Walls are dark, doors grey. A line drifts a little to the lower right within a cell as time passes, so
    that cells walked again stay visible. Which episodes these are is fixed; see ``walks.FOLLOWED``.
    """
    with style():
        note = layout.wrap(_note(tables, study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        plans = [_Plan(tables, study, environment) for environment in study.environments]
        total = sum(plan.height for plan in plans) + layout.text_height(note, layout.NOTE_SIZE) + 0.14
        figure, top = new_figure(total), 0.06
        for plan in plans:
            plan.draw(figure, top)
            top += plan.height
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


class _Plan:
    """The maps of one environment and where they stand; lengths in inches."""

    def __init__(self, tables: Tables, study: Study, environment: str):
        self.study, self.environment = study, environment
        self.rows = pd.DataFrame() if tables.walks is None else rows_of(tables.walks, study, environment)
        self.episodes = sorted(self.rows["episode"].unique()) if len(self.rows) else []
        labels = algorithms_in_order(study, environment)
        count = -(-len(labels) // -(-len(labels) // _ABREAST))  # as few lines of maps as fit, equally full
        self.lines = [labels[first : first + count] for first in range(0, len(labels), count)]
        self.width = min(_WIDEST, (WIDTH - _LEFT - _RIGHT) / count - _GAP)
        self.title = layout.wrap(study.title_of(environment), WIDTH - 0.2, 9, "bold")
        self.title_height = layout.title_height(study.title_of(environment), WIDTH - 0.2)
        self.names = {label: layout.name(study.title_of(label), self.width) for label in labels}
        self.head = max(layout.text_height(name) for name in self.names.values()) + 0.06
        if self.episodes:
            self.grid = grid_of(study, environment)
            self.map_height = self.width * self.grid.height / self.grid.width
            walks = self.rows.groupby(["algorithm", "episode"])
            words = {key: layout.wrap(_outcome(walk), self.width, _SMALL) for key, walk in walks}
            self.words = words
            self.foot = max(layout.text_height(text, _SMALL) for text in words.values()) + 0.12
            self.line_height = self.head + len(self.episodes) * (self.map_height + self.foot) + 0.06
            self.height = self.title_height + len(self.lines) * self.line_height
        else:
            self.height = self.title_height + 1.0

    def draw(self, figure: Figure, top: float) -> None:
        layout.write(figure, 0.1, top, self.title, 9, weight="bold")
        top += self.title_height
        if not self.episodes:
            axes = layout.panel(figure, _LEFT, top, WIDTH - _LEFT - 0.3, 0.8)
            layout.say(axes, "no episode was followed")
            return
        drawn = marks(self.study)
        for labels in self.lines:
            for column, label in enumerate(labels):
                left = _LEFT + column * (self.width + _GAP)
                colour = "black" if drawn[label].tested else "0.25"
                layout.write(figure, left, top, self.names[label], color=colour)
                for row, episode in enumerate(self.episodes):
                    place = top + self.head + row * (self.map_height + self.foot)
                    if not column:
                        middle = place + self.map_height / 2 - 0.06
                        layout.write(figure, 0.1, middle, f"episode {episode}", color="0.25")
                    axes = layout.panel(figure, left, place, self.width, self.map_height)
                    self._map(axes)
                    chosen = (self.rows["algorithm"] == label) & (self.rows["episode"] == episode)
                    walk = self.rows[chosen].sort_values("t")
                    text = self.words.get((label, episode), "no episode")
                    if len(walk):
                        _draw_walk(axes, walk, drawn[label], self.grid.settings.horizon)
                    layout.write(figure, left, place + self.map_height + 0.03, text, _SMALL, color="0.25")
            top += self.line_height

    def _map(self, axes: Axes) -> None:
        """Walls, doors and floor; the outside is wall."""
        cells = np.array([list(row) for row in self.grid.settings.map.split()])
        shade = np.where(cells == "#", 0.35, np.where(cells == "+", 0.82, 1.0))
        axes.pcolormesh(
            np.arange(self.grid.width + 1) - 0.5,
            np.arange(self.grid.height + 1) - 0.5,
            shade,
            cmap="gray",
            vmin=0,
            vmax=1,
            zorder=0,
        )
        axes.set_xlim(-0.5, self.grid.width - 0.5)
        axes.set_ylim(self.grid.height - 0.5, -0.5)
        axes.grid(False)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(visible=True, color="0.35", linewidth=1.0)


def _draw_walk(axes: Axes, walk: pd.DataFrame, mark: Mark, horizon: int) -> None:
    x, y = walk["x"].to_numpy(float), walk["y"].to_numpy(float)
    drift = _DRIFT * walk["t"].to_numpy() / horizon
    halo = [effects.withStroke(linewidth=2.2, foreground="white")]
    axes.plot(
        x + drift,
        y + drift,
        color=mark.colour,
        lw=1.1,
        solid_joinstyle="round",
        zorder=2,
        path_effects=halo,
    )
    goal, ends = walk.iloc[0], {"ls": "", "mec": "black", "clip_on": False}
    axes.plot(goal["goal_x"], goal["goal_y"], marker="*", ms=8, mfc="white", mew=0.7, zorder=3, **ends)
    axes.plot(x[0], y[0], marker="o", ms=4, mfc="white", mew=0.8, zorder=4, **ends)
    if not walk["success"].iloc[0]:
        axes.plot(
            x[-1] + drift[-1],
            y[-1] + drift[-1],
            marker="x",
            ms=5,
            mew=1.4,
            zorder=5,
            path_effects=halo,
            **ends,
        )


def _outcome(walk: pd.DataFrame) -> str:
    """How long it took, or that it did not arrive."""
    steps, shortest = walk["t"].max(), walk["shortest"].iloc[0]
    end = f"{steps} steps" if walk["success"].iloc[0] else f"cut at {steps}"
    return f"{end} (shortest {shortest})"


def _note(tables: Tables, study: Study) -> str:
    text = (
        "Circle: start; star: goal; cross: where an episode was cut without reaching it. "
        "Dark: wall; grey: door. Lines drift to the lower right within a cell as time passes."
    )
    if tables.walks is None or not len(tables.walks):
        return text
    return (
        f"The first test episodes of training seed {tables.walks['seed'].iloc[0]}, chosen before the runs "
        f"and the same for all algorithms. {text}"
    )

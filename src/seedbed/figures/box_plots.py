"""Test scores of tuned agents as boxes side by side, one panel per generalized environment.

After figure 2 of Whiteson, Tanner, Taylor and Stone (2011); each panel has a score axis of its own.
"""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from seedbed.figures import layout
from seedbed.figures.style import LEARNER_COLOURS, WIDTH, new_figure, style
from seedbed.generalized_study import GeneralizedStudy

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = 3
HEIGHT = 2.3
"""Of a panel, inches."""
_LEFT, _RIGHT, _GAP = 0.62, 0.12, 0.18
_BEYOND = 1.5  # quartile ranges that an axis reaches beyond a box, at most


def box_plots(test: "pd.DataFrame", picks: "pd.DataFrame", study: GeneralizedStudy) -> Figure:
    """Boxes of the agents that the best tuning mean chose, on the same test environments.

    Args:
        test: trials with the column "label".
        picks: ``study_tables.picks_table`` of all labels.
        study: names, order, and which environments and agents are variations of others (left out).
    """
    shown = [label for label, entry in study.environments.items() if not (entry.single or entry.beside)]
    with style():
        columns = min(COLUMNS, len(shown)) or 1
        cell = WIDTH / columns
        width = cell - _LEFT - _RIGHT
        rows = -(-len(shown) // columns)
        heads = [layout.wrap(study.title_of(label), cell - _GAP, 9, "bold") for label in shown]
        head = max((layout.text_height(text, 9) for text in heads), default=0) + 0.1
        names = [_agents(study, label) for label in shown]
        foot = max((_names_height(study, agents, width) for agents in names), default=0.2) + 0.2
        note = layout.wrap(_note(study), layout.NOTE_WIDTH, layout.NOTE_SIZE)
        total = 0.1 + rows * (head + HEIGHT + foot) + layout.text_height(note, layout.NOTE_SIZE) + 0.1
        figure = new_figure(total)
        for place, label in enumerate(shown):
            left, top = place % columns * cell, 0.06 + place // columns * (head + HEIGHT + foot)
            layout.write(figure, left + 0.1, top, heads[place], 9, weight="bold")
            axes = layout.panel(figure, left + _LEFT, top + head, width, HEIGHT)
            scores = {agent: _scores(test, picks, label, agent) for agent in names[place]}
            if not any(values.size for values in scores.values()):
                layout.say(axes, "no test scores")
                continue
            _boxes(axes, scores)
            titles = [_name(study, agent, width, len(scores)) for agent in scores]
            axes.set_xticks(range(len(scores)), titles, size=layout.LABEL_SIZE, linespacing=1.1)
            if place % columns == 0:
                axes.set_ylabel("score (reward per episode)", size=8)
        top = 0.06 + rows * (head + HEIGHT + foot)
        layout.write(figure, 0.1, top, note, layout.NOTE_SIZE, color="0.25")
    return figure


def _agents(study: GeneralizedStudy, label: str) -> list[str]:
    return [name for name, agent in study.algorithms_in(label).items() if agent.beside is None]


def _name(study: GeneralizedStudy, agent: str, width: float, number: int) -> str:
    return layout.name(study.title_of(agent), width / max(number, 1) - 0.06)


def _names_height(study: GeneralizedStudy, agents: list[str], width: float) -> float:
    return max(layout.text_height(_name(study, agent, width, len(agents))) for agent in agents)


def _scores(test: "pd.DataFrame", picks: "pd.DataFrame", label: str, agent: str) -> np.ndarray:
    """Test scores [n] of the configuration with the best tuning mean."""
    rows = picks[(picks.label == label) & (picks.agent == agent) & (picks.reading == "score")]
    chosen = rows.loc[rows.method == "mean", "configuration"]
    trials = test[(test.label == label) & (test.agent == agent) & test.configuration.isin(chosen)]
    return trials.sort_values("position")["score"].to_numpy(float)


def _boxes(axes: Axes, scores: dict[str, np.ndarray]) -> None:
    """Boxes over the scores themselves; scores beyond the axis are counted at its edge."""
    low, high = _reach([values for values in scores.values() if values.size])
    pad = 0.08 * ((high - low) or abs(high) or 1.0)
    axes.set_ylim(low - pad, high + pad)
    axes.set_xlim(-0.6, len(scores) - 0.4)
    axes.grid(False, axis="x")
    for place, values in enumerate(scores.values()):
        if not values.size:
            axes.text(place, (low + high) / 2, "no\nscores", ha="center", va="center", size=6.5, color="0.35")
            continue
        colour = LEARNER_COLOURS[place % len(LEARNER_COLOURS)]
        tint = tuple((1 + channel) / 2 for channel in to_rgb(colour))
        axes.boxplot(
            values,
            positions=[place],
            widths=0.5,
            whis=(5, 95),
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": tint, "edgecolor": "0.2", "linewidth": 0.8},
            medianprops={"color": "black", "linewidth": 1.4},
            whiskerprops={"color": "0.2", "linewidth": 0.8},
            capprops={"color": "0.2", "linewidth": 0.8},
            manage_ticks=False,
        )
        seen = (values >= low) & (values <= high)
        across = place + np.linspace(-0.2, 0.2, values.size) if values.size > 1 else np.array([place])
        axes.plot(across[seen], values[seen], "o", ms=1.6, color="0.15", alpha=0.55, mew=0, zorder=4)
        for beyond, edge, side in ((values < low, 0.01, "bottom"), (values > high, 0.99, "top")):
            if beyond.any():
                arrow = "↓" if side == "bottom" else "↑"
                text = f"{arrow} {int(beyond.sum())}"
                spot = axes.get_xaxis_transform()
                axes.text(place + 0.28, edge, text, size=6.5, va=side, ha="left", color="0.2", transform=spot)
    layout.thousands(axes.yaxis)
    axes.tick_params(axis="x", length=0)


def _reach(several: list[np.ndarray]) -> tuple[float, float]:
    """Limits that hold every box and its surroundings, but no far-off score."""
    lows, highs = [], []
    for values in several:
        first, third = np.quantile(values, [0.25, 0.75])
        lows.append(max(values.min(), first - _BEYOND * (third - first)))
        highs.append(min(values.max(), third + _BEYOND * (third - first)))
    return min(lows), max(highs)


def _note(study: GeneralizedStudy) -> str:
    return (
        f"Each agent's configuration has the best mean over {study.tuning} tuning environments; points are "
        f"its scores in {study.test} further environments, the same for all agents. Boxes: quartiles and "
        "median; whiskers: 5 to 95 %. Arrows count scores beyond the axis. Score axes differ between panels."
    )

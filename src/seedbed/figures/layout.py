"""Where things stand, in inches from the top left corner: panels, labels beside lines, notes."""

import functools
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter

from seedbed.figures.style import WIDTH, Mark

LABEL_SIZE = 7.5
NOTE_SIZE = 6.8
NOTE_WIDTH = WIDTH - 0.4
"""Of notes below a figure, inches; small letters on a screen are wider than their outlines."""
LINE_HEIGHT = 1.25
"""Height of a line of text as a multiple of its size."""
_SAMPLE = 0.26  # width of the piece of line before a label, inches
_LEADER = 0.20  # width of the way from the panel's edge to that piece


@functools.lru_cache(maxsize=4096)
def _line_width(line: str, size: float, weight: str) -> float:
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] / 72


def text_width(text: str, size: float = LABEL_SIZE, weight: str = "normal") -> float:
    """Width of the widest line, inches."""
    return max((_line_width(line, size, weight) for line in text.split("\n") if line), default=0.0)


def text_height(text: str, size: float = LABEL_SIZE) -> float:
    """Height of all lines, inches."""
    return (text.count("\n") + 1) * size * LINE_HEIGHT / 72


def wrap(
    text: str, width: float, size: float = LABEL_SIZE, weight: str = "normal", most: int | None = None
) -> str:
    """Break a text into lines of at most ``width`` inches, inside a word only if it is too long alone.

    Args:
        most: more lines than this are cut, and an ellipsis says so.
    """
    text = re.sub(r"\s+", " ", text).strip()
    for characters in range(len(text), 0, -1):
        lines = textwrap.wrap(text, characters, max_lines=most, placeholder="…")
        if text_width("\n".join(lines), size, weight) <= width:
            return "\n".join(lines)
    return text


def name(text: str, width: float) -> str:
    """The name of an algorithm as labels show it: at most three lines of a width in inches."""
    return wrap(text, width, most=3)


def panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches, measured from the figure's top left corner."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def write(figure: Figure, left: float, top: float, text: str, size: float = LABEL_SIZE, **style) -> None:
    """Text whose upper left corner stands at a place in inches."""
    across, down = figure.get_size_inches()
    figure.text(left / across, 1 - top / down, text, size=size, va="top", linespacing=LINE_HEIGHT, **style)


def title_height(text: str, width: float, size: float = 9) -> float:
    """Room that a title of at most a width needs, inches."""
    return text_height(wrap(text, width, size, "bold"), size) + 0.10


def say(axes: Axes, text: str) -> None:
    """A panel without data says so in its middle."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    width = axes.get_position().width * axes.figure.get_size_inches()[0]
    lines = wrap(text, 0.9 * width, 8)
    axes.text(0.5, 0.5, lines, ha="center", va="center", transform=axes.transAxes, color="0.3", size=8)


def thousands(axis) -> None:
    """Write 50000 as 50,000."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace("-", "−")))


def spread(centres: Sequence[float], heights: Sequence[float], low: float, high: float) -> np.ndarray:
    """Centres of labels moved as little as possible (least squares) so that none overlap, in the same order.

    Args:
        centres [n]: where each label would like to be.
        heights [n]: how much room it needs.
        low, high: all labels stay between; if they cannot, they begin at ``low``.
    """
    centres, heights = np.asarray(centres, float), np.asarray(heights, float)
    order = np.argsort(centres, kind="stable")
    offsets = np.cumsum(heights[order]) - heights[order] / 2
    blocks: list[list[float]] = []  # [mean of centre - offset, size], increasing: pool adjacent violators
    for value in centres[order] - offsets:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            blocks[-1] = [
                (blocks[-1][0] * blocks[-1][1] + mean * size) / (blocks[-1][1] + size),
                blocks[-1][1] + size,
            ]
    start = np.concatenate([np.full(int(size), mean) for mean, size in blocks]) if blocks else offsets
    start = np.maximum(np.minimum(start, high - heights.sum()), low)
    placed = np.empty(len(centres))
    placed[order] = start + offsets
    return placed


@dataclass(frozen=True)
class Label:
    """The name of a line at the panel's right side.

    Args:
        text: the name, wrapped.
        y: where its line is, in data units.
        mark: how its line is drawn.
        at_edge: whether the line reaches the panel's right edge, so that a leader can join them.
        with_marker: whether the line bears markers.
    """

    text: str
    y: float
    mark: Mark
    at_edge: bool = True
    with_marker: bool = True


def gutter(texts: Sequence[str]) -> float:
    """Room that labels need beside a panel, inches."""
    return _LEADER + _SAMPLE + 0.08 + max((text_width(text) for text in texts), default=0.0) + 0.1


def labels_height(texts: Sequence[str]) -> float:
    """Room that labels need above each other, inches."""
    return sum(text_height(text) + 0.02 for text in texts)


def label_lines(axes: Axes, labels: Sequence[Label]) -> None:
    """Write each label beside its line, with a piece of the line; call it when the y-limits are final."""
    width, height = axes.figure.get_size_inches() * axes.get_position().size
    bottom, top = axes.get_ylim()
    wanted = [height * (label.y - bottom) / (top - bottom) for label in labels]
    heights = [text_height(label.text) + 0.02 for label in labels]
    slack = max(0.0, sum(heights) - height)
    places = spread(wanted, heights, -slack / 2, height + slack / 2)
    style = {"transform": axes.transAxes, "clip_on": False}
    for label, y, place in zip(labels, wanted, places, strict=True):
        if label.at_edge:
            across = np.array([0.02, _LEADER - 0.03])
            axes.plot(1 + across / width, np.array([y, place]) / height, color="0.6", lw=0.5, **style)
        across = 1 + np.array([_LEADER, _LEADER + _SAMPLE]) / width
        axes.plot(
            across,
            np.full(2, place / height),
            color=label.mark.colour,
            linestyle=label.mark.line,
            lw=label.mark.width,
            **style,
        )
        if label.with_marker:
            axes.plot(
                across.mean(), place / height, color=label.mark.colour, marker=label.mark.marker, **style
            )
        axes.text(
            1 + (_LEADER + _SAMPLE + 0.08) / width,
            place / height,
            label.text,
            va="center",
            size=LABEL_SIZE,
            linespacing=LINE_HEIGHT * 0.9,
            color="black" if label.mark.tested else "0.25",
            transform=axes.transAxes,
        )

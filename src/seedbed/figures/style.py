"""One look for all figures: style file, marks of algorithms, and files with the same bytes on every run."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from seedbed.artifacts import ArtifactError, atomic
from seedbed.study import Study

STYLE_FILE = Path(__file__).parents[3] / "report" / "seedbed.mplstyle"
FORMATS = ("pdf", "svg", "png")
WIDTH = 7.0
"""Width of a figure, inches: the text width of a page."""

LEARNER_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F5F00")
"""Okabe and Ito (2008), without yellow, which is too faint for a line; brown in its place."""
_LINES = ("solid", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1.2, 1.2)), (0, (9, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_REFERENCE_GREYS = ("0.40", "0.55", "0.62")
_REFERENCE_LINES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (2, 1)))


@dataclass(frozen=True)
class Mark:
    """How an algorithm is drawn: colour, line and marker all differ, so that none is needed alone.

    Args:
        colour: of line and marker.
        line: matplotlib line style.
        marker: matplotlib marker.
        width: of the line, points.
        fill: of bars.
        order: drawing order; higher lies above.
    """

    colour: str
    line: str | tuple
    marker: str
    width: float
    fill: str
    order: int

    @property
    def tested(self) -> bool:
        """Whether it takes part in the tests: a learner or the baseline, not a reference."""
        return self.order > 2


def marks(study: Study) -> dict[str, Mark]:
    """The mark of each algorithm, by label: learners coloured, the baseline black, references grey."""
    drawn, learners, references = {}, 0, 0
    for label, algorithm in study.algorithms.items():
        if algorithm.role == "learner":
            colour = LEARNER_COLOURS[learners % len(LEARNER_COLOURS)]
            line, marker = _LINES[learners % len(_LINES)], _MARKERS[learners % len(_MARKERS)]
            drawn[label] = Mark(colour, line, marker, 1.5, _tint(colour), 4)
            learners += 1
        elif algorithm.role == "baseline":
            drawn[label] = Mark("black", "solid", "o", 1.2, "0.72", 3)
        else:
            grey = _REFERENCE_GREYS[references % len(_REFERENCE_GREYS)]
            line = _REFERENCE_LINES[references % len(_REFERENCE_LINES)]
            drawn[label] = Mark(grey, line, "o", 0.9, "0.93", 2)
            references += 1
    return drawn


def _tint(colour: str) -> str:
    """The colour mixed half with white."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return matplotlib.colors.to_hex([(1 + channel) / 2 for channel in (red, green, blue)])


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Draw or save inside: matplotlib's defaults under Seedbed's style file, whatever the user has set.

    Raises:
        ArtifactError: the style file is missing.
    """
    if not STYLE_FILE.is_file():
        raise ArtifactError(f"{STYLE_FILE} is missing; figures are drawn from a checkout of Seedbed.")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rc_file(STYLE_FILE, use_default_template=False)
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure in inches, outside pyplot's global state."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


_METADATA = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": "Seedbed"},
    "svg": {"Date": None, "Creator": "Seedbed"},
    "png": {"Software": "Seedbed"},
}


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Write ``<stem>.pdf``, ``.svg`` and ``.png`` atomically; an equal figure gives equal bytes.

    Returns:
        The three paths.
    """
    paths = [Path(f"{stem}.{kind}") for kind in FORMATS]
    with style():
        for kind, path in zip(FORMATS, paths, strict=True):
            with atomic(path) as temporary:
                figure.savefig(temporary, format=kind, metadata=_METADATA[kind])
    return paths

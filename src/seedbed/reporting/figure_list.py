"""The figures of a study with their captions."""

import re
from collections.abc import Sequence
from pathlib import Path

from seedbed.reporting.formatting import Markdown, one_line


def figures_of(study: str, names: Sequence[str], captions: Path) -> list[dict[str, str]]:
    """Caption, path (from ``results/report``) and attributes of each figure.

    Args:
        study: its name, the folder below ``results``.
        names: figures without suffix.
        captions: folder of ``<name>.rst``; a caption whose name begins a figure's name serves it too.
    """
    return [
        {
            "caption": caption_of(name, captions),
            "path": Markdown(f"../{study}/figures/{name}.svg"),
            "attributes": Markdown(f"{{#fig-{study}-{name}}}"),
        }
        for name in names
    ]


def caption_of(name: str, captions: Path) -> str:
    """The caption with the longest name that begins the figure's; without one, the name in words."""
    fitting = [path for path in sorted(captions.glob("*.rst")) if name.startswith(path.stem)]
    if not fitting:
        return one_line(re.sub(r"[_-]+", " ", name))
    text = max(fitting, key=lambda path: len(path.stem)).read_text(encoding="utf-8")
    return one_line(re.sub(r"``([^`]*)``|\*\*([^*]+)\*\*|\*([^*]+)\*", _bare, text))


def _bare(match: re.Match) -> str:
    return next(part for part in match.groups() if part is not None)

"""paper.md becomes paper.tex, index.html and paper.pdf; equal sources give equal bytes, in any folder.

pandoc comes inside the wheel pypandoc-binary, typst inside the wheel typst: nothing but pip is needed.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from seedbed.artifacts import atomic, write_text
from seedbed.reporting.study_results import ReportError

READER = (
    "markdown-smart-raw_tex-tex_math_dollars-citations-example_lists-yaml_metadata_block+yaml_metadata_block"
)
OUTPUTS = ("paper.tex", "index.html", "paper.pdf")
_MEANINGS = {
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "↑": r"\ensuremath{\uparrow}",
    "↓": r"\ensuremath{\downarrow}",
    "Δ": r"\ensuremath{\Delta}",
    "δ": r"\ensuremath{\delta}",
    "λ": r"\ensuremath{\lambda}",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
}
_PAGE = ("--embed-resources", "--toc", "--toc-depth=3", "--number-sections")
_GROUP = re.compile(r"^( *)(table\.cell\(colspan: \d+, stroke: \(top: 0\.5pt\)\)\[.*\]),$", re.MULTILINE)
"""A row that heads a group; as a header it stays with its rows and stands again on their next page."""
_NOTHING_NEW = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "LC_ALL": "C.UTF-8"}


def render(paper: str | Path, templates: str | Path) -> None:
    """Write ``paper.tex``, ``index.html`` and ``paper.pdf`` beside ``paper.md``.

    Args:
        paper: ``results/report/paper.md``; its figures lie below ``results``.
        templates: folder with ``templates/`` and ``filters/``.

    Raises:
        ReportError: pandoc or typst is missing, a figure is missing, or one of them refuses the text.
    """
    paper, templates = Path(paper), Path(templates)
    if not paper.is_file():
        raise ReportError(f"{paper} is missing. Run the rule that writes the paper first.")
    write_text(paper.with_name("paper.tex"), latex_of(paper, templates))
    write_text(paper.with_name("index.html"), html_of(paper, templates))
    with atomic(paper.with_name("paper.pdf")) as temporary:
        temporary.write_bytes(pdf_of(paper, templates))


def latex_of(paper: Path, templates: Path) -> str:
    """The paper as a LaTeX document; figures as PDF, by their paths from ``paper.tex``."""
    text = paper.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        metadata = Path(folder) / "characters.json"
        metadata.write_text(json.dumps({"characters": _characters(text)}), encoding="utf-8")
        return _pandoc(paper, templates, "latex", "paper.tex", f"--metadata-file={metadata}")


def html_of(paper: Path, templates: Path) -> str:
    """The paper as one page that needs no other file; figures as SVG inside it."""
    return _pandoc(paper, templates, "html5", "page.html", *_PAGE)


def pdf_of(paper: Path, templates: Path) -> bytes:
    """The paper as PDF, through typst with its own fonts."""
    try:
        import typst
    except ImportError:
        raise ReportError("typst is not installed. Install it with: pip install typst==0.15.0") from None
    source = paper.with_name(f".paper.{os.getpid()}.typ")  # beside the paper, for its paths to the figures
    try:
        text = _GROUP.sub(r"\1table.header(level: 2, \2),", _pandoc(paper, templates, "typst", "paper.typ"))
        source.write_text(text, encoding="utf-8")
        root = paper.parent.parent
        return typst.compile(source, root=root, ignore_system_fonts=True, format="pdf", timestamp=0)
    except typst.TypstError as error:
        raise ReportError(f"typst cannot set {paper}: {error}") from None
    finally:
        source.unlink(missing_ok=True)


def _pandoc(paper: Path, templates: Path, target: str, template: str, *options: str) -> str:
    command = [
        _pandoc_path(),
        f"--from={READER}",
        f"--to={target}",
        "--standalone",
        f"--template={(templates / 'templates' / template).resolve()}",
        f"--lua-filter={(templates / 'filters/paper.lua').resolve()}",
        "--columns=100000",
        "--wrap=preserve",
        "--fail-if-warnings",
        *options,
        paper.name,
    ]
    run = subprocess.run(
        command, cwd=paper.parent, capture_output=True, encoding="utf-8", env=os.environ | _NOTHING_NEW
    )
    if run.returncode:
        raise ReportError(f"pandoc cannot turn {paper} into {target}: {run.stderr.strip()}")
    return run.stdout


def _pandoc_path() -> str:
    try:
        import pypandoc

        return pypandoc.get_pandoc_path()
    except (ImportError, OSError):
        raise ReportError(
            "pandoc is not installed. Install it with: pip install pypandoc_binary==1.17"
        ) from None


def _characters(text: str) -> list[dict[str, str]]:
    """What LaTeX is to set for the characters of a text beyond ASCII, if it does not know them itself."""
    return [
        {
            "character": character,
            "code": f"{ord(character):04X}",
            "meaning": f"`{_MEANINGS.get(character, f'[U+{ord(character):04X}]')}`{{=latex}}",
        }
        for character in sorted(set(text))
        if ord(character) > 127
    ]

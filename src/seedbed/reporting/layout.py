"""A table as plain data, and its forms: Markdown, LaTeX (booktabs), and values at full precision."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seedbed.reporting.formatting import Markdown, latex, markdown
from seedbed.reporting.trace import Register, Source

if TYPE_CHECKING:
    import pandas as pd

WIDEST = 96
"""Characters that fit side by side in the paper's table type; wider tables get columns that wrap."""
NAMES = 18
"""Characters that the first column of a wide table has at least, if it has a use for them."""

LONGEST = 45
"""Lines of a LaTeX table that fit on a page."""


@dataclass(frozen=True)
class Cell:
    """One cell in plain text.

    Args:
        text: its first line.
        below: its second line, in smaller type.
        bold: whether the first line is marked.
        note: letter of a footnote.
        sources: where its numbers stand.
    """

    text: str
    below: str = ""
    bold: bool = False
    note: str = ""
    sources: tuple[Source, ...] = ()

    @property
    def plain(self) -> str:
        """All its text on one line."""
        return " ".join(part for part in (self.text, self.below) if part)


@dataclass(frozen=True)
class Row:
    """One row.

    Args:
        key: names the row within its table, as part of trace ids.
        cells: one per column; a single cell makes a heading over the rows that follow, with a rule above.
    """

    key: str
    cells: tuple[Cell, ...]


@dataclass
class Notes:
    """Footnotes of one table, a letter per distinct text."""

    texts: list[str] = field(default_factory=list)

    def letter(self, text: str) -> str:
        """The letter of a footnote; "" for no text."""
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return _letter(self.texts.index(text))


def _letter(index: int) -> str:
    return ("" if index < 26 else _letter(index // 26 - 1)) + chr(ord("a") + index % 26)


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Args:
        name: file name without suffix; with the study's name it is unique in the paper.
        caption: plain text.
        header: column titles, plain text.
        keys: column names in trace ids.
        align: "l", "r" or "c" per column.
        rows: the body.
        notes: footnotes, in the order of their letters.
        values: the same at full precision.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    keys: tuple[str, ...]
    align: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    values: "pd.DataFrame"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) not in (1, len(self.header)):
                raise ValueError(f"Table {self.name}: row {row.key} has {len(row.cells)} cells.")


def widths(table: Table) -> list[int] | None:
    """Relative widths of the columns where they do not fit side by side; None where they do.

    Each column gets what its longest word needs, the first one NAMES, and a part of the rest by how much more
    it would fill.
    """
    bodies = [row.cells for row in table.rows if len(row.cells) > 1]
    natural, least = [], []
    for index, title in enumerate(table.header):
        # the second line is smaller, so it needs less
        lines = [(cells[index].text, 1.0) for cells in bodies] + [
            (cells[index].below, 0.8) for cells in bodies
        ]
        natural.append(2 + max(round(size * len(text)) for text, size in [(title, 1.0), *lines]))
        words = [(word, size) for text, size in [(title, 1.0), *lines] for word in text.split(" ")]
        least.append(2 + max(round(size * len(word)) for word, size in words))
    if sum(natural) <= WIDEST:
        return None
    least[0] = max(least[0], min(natural[0], NAMES))
    room = max(WIDEST - sum(least), 0)
    wanted = [whole - part for whole, part in zip(natural, least, strict=True)]
    return [part + room * more // max(sum(wanted), 1) for part, more in zip(least, wanted, strict=True)]


def to_markdown(table: Table, study: str = "", register: Register | None = None) -> Markdown:
    """A pipe table with its caption, id and footnotes.

    Args:
        table: what to write.
        study: its study's name, part of the id and of trace ids.
        register: notes every cell; without it the cells carry no trace ids.
    """
    prefix = f"{study}/{table.name}"

    def written(row: Row, key: str, cell: Cell) -> str:
        text = markdown(cell.text)
        text = f"**{text}**" if cell.bold and text else text
        text += f"^{cell.note}^" if cell.note else ""
        text += f"<br>[{markdown(cell.below)}]{{.below}}" if cell.below else ""
        if register is None or not cell.sources:
            return text
        return register.mark(f"{prefix}/{row.key}/{key}", cell.plain, cell.sources, text)

    lines = [_pipes(markdown(title) for title in table.header)]
    dashes = {"l": ":---", "r": "---:", "c": ":---:"}
    lines.append(_pipes(dashes[side] for side in table.align))
    for row in table.rows:
        if len(row.cells) == 1:
            heading = f"[*{markdown(row.cells[0].text)}*]{{.group}}"
            lines.append(_pipes([heading, *[""] * (len(table.header) - 1)]))
        else:
            pairs = zip(table.keys, row.cells, strict=True)
            lines.append(_pipes(written(row, key, cell) for key, cell in pairs))
    shares = widths(table)
    attributes = f"#tbl-{study}-{table.name}" + (
        f' widths="{" ".join(str(share) for share in shares)}"' if shares else ""
    )
    lines += ["", f": {markdown(table.caption)} {{{attributes}}}", ""]
    if table.notes:
        notes = " ".join(f"^{_letter(i)}^\u00a0{markdown(text)}." for i, text in enumerate(table.notes))
        lines += ["::: {.notes}", notes, ":::", ""]
    return Markdown("\n".join(lines))


def _pipes(cells) -> str:
    return "| " + " | ".join(cells) + " |"


def to_latex(table: Table) -> str:
    """A table with booktabs rules, to be read with \\input; needs booktabs, array and longtable."""
    shares = widths(table)
    if shares:
        total = sum(shares)
        sides = {"l": "raggedright", "r": "raggedleft", "c": "centering"}
        columns = "".join(
            rf">{{\{sides[side]}\arraybackslash}}"
            rf"p{{\dimexpr {share / total:.4f}\linewidth-2\tabcolsep\relax}}"
            for side, share in zip(table.align, shares, strict=True)
        )
    else:
        columns = table.align

    def written(cell: Cell) -> str:
        text = rf"\textbf{{{latex(cell.text)}}}" if cell.bold else latex(cell.text)
        text += rf"\textsuperscript{{{cell.note}}}" if cell.note else ""
        return text

    def line(cells: Sequence[str]) -> str:
        return " & ".join(cells) + r" \\"

    body: list[str] = []
    for row in table.rows:
        if len(row.cells) == 1:
            heading = rf"\multicolumn{{{len(table.header)}}}{{l}}{{\emph{{{latex(row.cells[0].text)}}}}} \\*"
            body += ([r"\midrule"] if body else []) + [heading]
            continue
        body.append(line([written(cell) for cell in row.cells]))
        if any(cell.below for cell in row.cells):
            body.append(line([rf"{{\scriptsize {latex(cell.below)}}}" for cell in row.cells]))
    notes = [
        rf"\par\smallskip\textsuperscript{{{_letter(index)}}}~{latex(text)}."
        for index, text in enumerate(table.notes)
    ]
    title = [rf"\caption{{{latex(table.caption)}}}", rf"\label{{tbl-{table.name}}}"]
    head = [r"\toprule", line([latex(title) for title in table.header]), r"\midrule"]
    if len(body) > LONGEST:  # a float cannot be longer than a page
        opening = [r"{\footnotesize", rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}", *title, r"\\", *head]
        closing = [r"\bottomrule", r"\end{longtable}", *notes, r"\par}"]
        return "\n".join([*opening, r"\endhead", *body, *closing, ""])
    opening = [
        r"\begin{table}",
        r"\centering\footnotesize",
        *title,
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
    ]
    closing = [r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]
    return "\n".join([*opening, *head, *body, *closing, ""])


def to_csv(table: Table) -> str:
    """The values at full precision, comma-separated; empty where there is none."""
    return table.values.to_csv(index=False, lineterminator="\n")

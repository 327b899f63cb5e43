"""How numbers look in the paper, and how plain text becomes Markdown or LaTeX without losing a character."""

import math
import re
import unicodedata
from collections.abc import Sized

MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"
NO_BREAK = "\N{NO-BREAK SPACE}"
NARROW = "\N{NARROW NO-BREAK SPACE}"

_MARKDOWN_SIGNS = frozenset("\\`*_{}[]<>#$%&~^|@")
# What would begin a list, a definition, a rule or a heading; its last character is escaped.
_MARKDOWN_START = re.compile(r"[-=:(]|[+](?=\s|$)|(?:\d+|[A-Za-z]|[ivxlcdm]+|[IVXLCDM]+)[.)](?=\s|$)")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "-{}",
    NARROW: "\\,",
    MINUS: "$-$",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    NO_BREAK: "~",
    MISSING: "--",
}


class Markdown(str):
    """Text that is Markdown already, so that nothing escapes it again."""

    __slots__ = ()


def finite(value: float | None) -> bool:
    """Whether there is a number at all."""
    return value is not None and math.isfinite(value)


def number(value: float, decimals: int = 2) -> str:
    """A number with a fixed count of decimals and a true minus sign; never a negative zero.

    Raises:
        ValueError: the value is not finite; what is shown in its place is the caller's to say.
    """
    if not finite(value):
        raise ValueError(f"{value} cannot be written as a number; show a reason in its place.")
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float, decimals: int = 2) -> str:
    """As ``number``, with a plus sign for positive values."""
    text = number(value, decimals)
    return "+" + text if float(text.replace(MINUS, "-")) > 0 else text


def spread(value: float, decimals: int = 2) -> str:
    """A standard deviation; one that is not zero is never shown as zero."""
    if value > 0 and float(f"{value:.{decimals}f}") == 0:
        return f"<{NO_BREAK}{10.0**-decimals:.{decimals}f}"
    return number(value, decimals)


def interval(low: float, high: float, decimals: int = 2) -> str:
    """An interval in brackets, which no line breaks."""
    return f"[{number(low, decimals)},{NO_BREAK}{number(high, decimals)}]"


def p_value(p: float) -> str:
    """A p-value to three decimals; never 0."""
    return f"<{NO_BREAK}0.001" if p < 0.001 else number(p, 3)


def p_equals(p: float) -> str:
    """A p-value with its sign of relation: ``p = 0.012`` or ``p < 0.001``."""
    return f"p{NO_BREAK}<{NO_BREAK}0.001" if p < 0.001 else f"p{NO_BREAK}={NO_BREAK}{number(p, 3)}"


def general(value: float, digits: int = 4) -> str:
    """A number of unknown size: plain where that is short, in powers of ten otherwise."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", NARROW).replace("-", MINUS)
    return f"{value:.{digits}g}".replace("-", MINUS)


def with_unit(unit: str) -> str:
    """A unit as it follows a number, with its space; nothing for a pure number."""
    return f"{NO_BREAK}{unit}" if unit else ""


def several(count: int, noun: str) -> str:
    """``1 seed``, ``8 seeds``."""
    return f"{general(count)}{NO_BREAK}{plural(range(count), noun)}"


def plural(things: Sized, noun: str) -> str:
    """A noun in the number of its things."""
    return noun if len(things) == 1 else f"{noun}s"


def listed(items: list[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f" {last} ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def one_line(text: str) -> str:
    """Text without line breaks and control characters; runs of blanks become one."""
    spaced = re.sub(r"[ \t\r\n\f\v]+", " ", str(text)).strip(" ")
    return "".join(character for character in spaced if unicodedata.category(character) != "Cc")


def markdown(text: str) -> Markdown:
    """Plain text as Markdown that comes out literally, on one line.

    Everything that Markdown, LaTeX or HTML would read as a sign of its own is escaped with a backslash; so is
    what would make a list, heading or definition of a line, if it stands at its beginning.
    """
    line = one_line(text)
    start = _MARKDOWN_START.match(line)
    opening = start.end() - 1 if start else -1
    return Markdown(
        "".join(
            "\\" + character if character in _MARKDOWN_SIGNS or index == opening else character
            for index, character in enumerate(line)
        )
    )


def latex(text: str) -> str:
    """Plain text as LaTeX that comes out literally, on one line."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))

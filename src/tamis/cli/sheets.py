"""Tables for other programs and for papers: CSV, Markdown, LaTeX.

Names come from files of anybody, so each way of writing takes the power from every character that
would have one.
"""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tamis.cli.output import FORMULA
from tamis.cli.printing import harmless

#: What a cell may hold; None stands for nothing.
Value = str | int | float | None

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "–": "--",
}
_MARKDOWN = "\\`*_{}[]<>|#~&$"


class Sheet(NamedTuple):
    """A table with a title; numbers are written in full in CSV, and as texts elsewhere."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Value]]


def csv_text(sheet: Sheet, *, safe: bool = True) -> str:
    """One sheet as CSV; ``safe`` puts an apostrophe before what spreadsheets run as a formula."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow([_safe(name) if safe else name for name in sheet.headings])
    for row in sheet.rows:
        writer.writerow(["" if v is None else _safe(v) if safe else v for v in row])
    return made.getvalue()


def _safe(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


def markdown_text(sheets: Sequence[Sheet]) -> str:
    """Sheets as tables of Markdown.

    >>> print(markdown_text([Sheet("a|b", ["x", "y"], [["p|q", 1.5]])]))
    **a\\|b**
    <BLANKLINE>
    | x | y |
    |:--|--:|
    | p\\|q | 1.5 |
    <BLANKLINE>
    """
    return "\n".join(_markdown(sheet) for sheet in sheets)


def _markdown(sheet: Sheet) -> str:
    lines = [
        f"**{_escaped_markdown(harmless(sheet.title))}**",
        "",
        _row(sheet.headings, _escaped_markdown, "| ", " | ", " |"),
        "|" + "|".join("--:" if right else ":--" for right in _numeric(sheet)) + "|",
        *(_row(row, _escaped_markdown, "| ", " | ", " |") for row in sheet.rows),
    ]
    return "\n".join(lines) + "\n"


def latex_text(sheets: Sequence[Sheet]) -> str:
    r"""Sheets as tabulars of LaTeX, which need no package.

    >>> print(latex_text([Sheet("Errors", ["x_1", "y"], [["50 %", 1]])]))
    % Errors
    \begin{tabular}{lr}
    \hline
    x\_1 & y \\
    \hline
    50 \% & 1 \\
    \hline
    \end{tabular}
    <BLANKLINE>
    """
    return "\n".join(_latex(sheet) for sheet in sheets)


def _latex(sheet: Sheet) -> str:
    columns = "".join("r" if right else "l" for right in _numeric(sheet))
    lines = [
        f"% {harmless(sheet.title)}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\hline",
        _row(sheet.headings, _escaped_latex, "", " & ", r" \\"),
        r"\hline",
        *(_row(row, _escaped_latex, "", " & ", r" \\") for row in sheet.rows),
        r"\hline",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _row(
    values: Sequence[Value], escaped: Callable[[str], str], left: str, between: str, right: str
) -> str:
    texts = (escaped("" if value is None else harmless(_shown(value))) for value in values)
    return f"{left}{between.join(texts)}{right}"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _numeric(sheet: Sheet) -> list[bool]:
    """Which columns are set to the right: those with a digit first in every cell."""
    return [
        j > 0
        and all(not str(row[j] or "")[:1].isalpha() for row in sheet.rows)
        and any(row[j] is not None for row in sheet.rows)
        for j in range(len(sheet.headings))
    ]


def _escaped_markdown(words: str) -> str:
    return "".join(f"\\{c}" if c in _MARKDOWN else c for c in words)


def _escaped_latex(words: str) -> str:
    return "".join(_LATEX.get(c, c) for c in words)

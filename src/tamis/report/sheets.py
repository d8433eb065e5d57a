"""Tables as CSV, JSON, Markdown and LaTeX.

Names in files may be hostile, so all special characters of a format are escaped.
"""

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis._format import mask_control

#: Value of a cell. None is an empty cell.
Value = str | int | float | None
#: First character of a cell that a spreadsheet would run as a formula, or remove.
FORMULA = re.compile(r"[=+\-@\x00-\x1f\x7f-\x9f]")
ESCAPES = {
    ".md": str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>|#~&$"}),
    ".tex": str.maketrans(
        {
            **{sign: f"\\{sign}" for sign in "{}&%$#_"},
            "\\": r"\textbackslash{}",
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
    ),
}


class Sheet(NamedTuple):
    """A table with a title. Numbers have all digits in CSV, and four digits in other formats."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Value]]

    def is_numeric(self, column: int) -> bool:
        """Return whether a column is shown as numbers, aligned to the right.

        This is the case if no cell begins with a letter. The first column is never numeric.
        """
        cells = [row[column] for row in self.rows]
        letters = (str(cell or "")[:1].isalpha() for cell in cells)
        return column > 0 and not any(letters) and any(cell is not None for cell in cells)

    @property
    def heads(self) -> list[tuple[str, str]]:
        """Headings, with the CSS classes of their columns."""
        return [(head, "num" * self.is_numeric(j)) for j, head in enumerate(self.headings)]

    def texts(self) -> list[list[str]]:
        """Return the cells as text."""
        return [
            [
                "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
                for cell in row
            ]
            for row in self.rows
        ]


def csv_text(sheet: Sheet, *, safe: bool = True) -> str:
    """Return a sheet as CSV. ``safe`` puts an apostrophe before cells that look like formulas."""

    def text(value: Any) -> Any:
        if isinstance(value, bool):
            return str(value).lower()
        if value is None or value != value:
            return ""
        return quote_formula(value) if safe and isinstance(value, str) else value

    lines = []
    for row in (sheet.headings, *sheet.rows):
        line = io.StringIO()
        csv.writer(line).writerow(map(text, row))  # the default quotes both kinds of line ends
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def quote_formula(name: str) -> str:
    """Put an apostrophe before a name that a spreadsheet would run as a formula."""
    return f"'{name}" if FORMULA.match(name) else name


def json_text(facts: Any) -> str:
    """Return facts as JSON text."""
    return json.dumps(to_plain(facts), indent=1, allow_nan=False) + "\n"


def to_plain(value: Any) -> Any:
    """Convert arrays, tuples and numpy numbers to types that JSON supports.

    Keys whose value is NaN, which means "unknown", are dropped. Other NaN and infinity become null.
    """
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, dict):
        unknown = {k for k, v in value.items() if isinstance(v, float) and math.isnan(v)}
        return {k: to_plain(v) for k, v in value.items() if k not in unknown}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table_text(sheet: Sheet, ending: str) -> str:
    r"""Return a sheet as a Markdown table (".md"), or as a LaTeX tabular (".tex").

    >>> print(table_text(Sheet("a|b", ["x", "y"], [["p|q", 1.5]]), ".md"))
    **a\|b**
    <BLANKLINE>
    | x | y |
    |:--|--:|
    | p\|q | 1.5 |
    <BLANKLINE>
    >>> print(table_text(Sheet("Errors", ["x_1", "y"], [["50 %", 1]]), ".tex"))
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
    title, head, *rows = (
        [mask_control(cell).translate(ESCAPES[ending]) for cell in line]
        for line in ([sheet.title], sheet.headings, *sheet.texts())
    )
    right = [sheet.is_numeric(column) for column in range(len(head))]
    if ending == ".md":
        rule = "|".join("--:" if one else ":--" for one in right)
        lines = [f"**{title[0]}**", "", f"| {' | '.join(head)} |", f"|{rule}|"]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
    columns = "".join("r" if one else "l" for one in right)
    body = [rf"{' & '.join(row)} \\" for row in rows]
    lines = [f"% {mask_control(sheet.title)}", rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
    lines += [rf"{' & '.join(head)} \\", r"\hline", *body, r"\hline", r"\end{tabular}"]
    return "\n".join(lines) + "\n"

"""A table in words: one line per column that deserves one, then what to know."""

from collections.abc import Iterator
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tamis._format import format_count
from tamis.table.target import spoken_task

if TYPE_CHECKING:
    from tamis.table.table import Table

#: Columns up to which each has its line; of wider tables those that are special have.
ALL_SHOWN, SPECIAL_SHOWN = 40, 25
#: Characters of a name and of the values beside it.
NAME, VALUES = 24, 26
#: Characters of the whole, where the terminal is not narrower.
WIDTH = 100

#: What stands in one of the columns.
ALONE = (
    "alone: share of the errors of a constant guess that the column does away with by itself, "
    "cross-validated."
)


def shown(table: "Table", width: int | None = None) -> str:
    """Kinds and alerts of a table as text."""
    width = width or min(WIDTH, get_terminal_size().columns)
    lines = [_heading(table), "", *_lines(table)]
    if table.y is not None:
        lines += ["", *wrap(ALONE, width)]
    for alert in table.alerts:
        mark = "! " if alert.grave else "- "
        lines += ["", *wrap(alert.sentence, width, initial_indent=mark, subsequent_indent="  ")]
    if not table.alerts:
        lines += ["", "Nothing in it calls for a word."]
    return "\n".join(lines)


def _heading(table: "Table") -> str:
    seen = table.profile.columns
    what = f"{table.name}: " if table.name else ""
    size = f"{format_count(table.frame.height, 'row')}, {format_count(len(seen.names), 'column')}"
    if table.y is None:
        return f"{what}{size}, no target"
    return f"{what}{size}, target {table.target} ({spoken_task(table.y, table.task)})"


def _lines(table: "Table") -> Iterator[str]:
    seen = table.profile.columns
    picked = _picked(table)
    rows = [("column", "kind", "gaps", "alone", "values", "")]
    for j in picked:
        gaps = seen.n_missing[j] / table.frame.height
        power = table.profile.power[j]
        rows.append(
            (
                _cut(seen.names[j], NAME),
                seen.kind[j],
                f"{100 * gaps:.0f} %" if gaps else "",
                "" if np.isnan(power) else f"{max(power, 0.0):.2f}",
                _cut(_values(table.column(seen.names[j]), seen.kind[j]), VALUES),
                "left out" if seen.names[j] in table.aside else "",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for i, row in enumerate(rows):
        yield "  ".join(
            cell.rjust(w) if k in (2, 3) else cell.ljust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        if i == 0:
            yield "  ".join("-" * w for w in widths if w)
    yield from _others(table, set(picked))


def _picked(table: "Table") -> list[int]:
    """Columns with a line of their own: all of a narrow table, else what is special."""
    seen = table.profile.columns
    if len(seen.names) <= ALL_SHOWN:
        return list(range(len(seen.names)))
    named = {name for alert in table.alerts if alert.sort != "gaps" for name in alert.columns}
    ordinary = np.isin(seen.kind, ("number", "constant")) & ~np.isin(seen.names, list(named))
    return np.flatnonzero(~ordinary)[:SPECIAL_SHOWN].tolist()


def _others(table: "Table", picked: set[int]) -> Iterator[str]:
    """The columns that have no line, counted by kind."""
    seen = table.profile.columns
    for kind in dict.fromkeys(seen.kind):
        left = [j for j in seen.of_kind(kind) if j not in picked]
        if left:
            names = ", ".join(_cut(seen.names[j], NAME) for j in left[:3])
            gaps = int((seen.n_missing[left] > 0).sum())
            with_gaps = f", {gaps} of them with gaps" if gaps else ""
            more = ", ..." if len(left) > 3 else ""
            yield f"and {len(left)} more of kind {kind} ({names}{more}){with_gaps}"


def _values(column: pl.Series, kind: str) -> str:
    held = column.drop_nulls()
    if not len(held) or column.dtype.is_nested():
        return ""
    if kind in ("number", "identifier") and column.dtype.is_numeric():
        ends: tuple[Any, Any] = held.min(), held.max()
        return "{:.4g} to {:.4g}".format(*ends)
    if kind == "date":
        return f"{held.min()!s} to {held.max()!s}"
    if kind in ("category", "boolean"):
        levels = held.cast(pl.String).value_counts(sort=True).to_series(0)
        return f"{len(levels)}: {', '.join(levels.head(4))}"
    return str(held[0])


def _cut(words: Any, most: int) -> str:
    words = str(words)
    return words if len(words) <= most else words[: most - 1] + "…"

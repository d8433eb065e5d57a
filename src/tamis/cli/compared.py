"""A comparison for people: tables, and in words who cannot be told from the best."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tamis.cli.comparison_sheets import (
    Compared,
    curve_sheet,
    heading,
    summary_sheet,
    with_curves,
)
from tamis.cli.printing import bare_table, stdout, text
from tamis.cli.sheets import Value
from tamis.evaluation import Standing, Standings
from tamis.report.standing_words import (
    BASELINES,
    Failed,
    failed_words,
    rank_words,
    verdict_of,
    verdict_words,
)

#: Columns of a terminal that one method takes in the table of sizes, and the sizes themselves.
WIDE, NARROW = 14, 10
#: What stands above one row per method.
LEGEND = (
    "at its best number of columns, chosen on the other resamples; p: against the 1st\n"
    "enough: the smallest number within one standard error of the best"
)


def print_compared(one: Compared, standing: Standings, *, several: bool) -> None:
    """The comparison on one table; of several, without the errors at every size."""
    console, rows = stdout(), standing.of(one.data)
    for line, style in zip(heading(one, standing), ("bold", "", ""), strict=True):
        console.print(text(line, style=style))
    console.print()
    if not several:
        console.print(text(curve_sheet(rows, standing).title, style="dim"))
        for table in _curves(rows, standing, console.width):
            console.print(table)
            console.print()
    for line in LEGEND.split("\n"):
        console.print(text(line, style="dim"))
    console.print(_summary(rows, standing, one.failed))
    console.print()
    said = verdict_words(verdict_of(rows, standing), standing)
    for line in (*said, *map(failed_words, one.failed)):
        console.print(text(line))
    console.print()


def print_ranks(standing: Standings) -> None:
    """Mean ranks over the tables, with the critical difference."""
    console = stdout()
    for line in rank_words(standing):
        console.print(text(line))


def _curves(rows: Sequence[Standing], standing: Standings, width: int) -> list[Table]:
    """The errors at every size, as many methods beside each other as there is room for."""
    shown, tables = with_curves(rows), []
    most = max((width - NARROW) // WIDE, 1)
    for start in range(0, len(shown), most):
        sheet = curve_sheet(shown[start : start + most], standing)
        table = bare_table()
        for name in sheet.headings:
            table.add_column(text(name), justify="right", overflow="fold")
        for row in sheet.rows:
            table.add_row(*(_starred(value) for value in row))
        tables.append(table)
    return tables


def _starred(value: Value) -> Text:
    """A cell with room for its star, so that numbers stand below each other."""
    words = "" if value is None else str(value)
    best = words.endswith(" *")
    return text(words.removesuffix(" *") + ("*" if best else " "), style="bold" if best else "")


def _summary(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> Table:
    sheet = summary_sheet(rows, standing, failed)
    table = bare_table()
    table.padding = (0, 1, 0, 0)  # room for names of methods on 80 columns
    for name in sheet.headings:
        left = name == "method"
        table.add_column(
            text(name),
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=not left,
            min_width=len(BASELINES[0]) if left else None,
        )
    for row in sheet.rows:
        style = "dim" if row[0] in BASELINES or row[1] == "failed" else ""
        table.add_row(*(text("" if v is None else v) for v in row), style=style)
    return table

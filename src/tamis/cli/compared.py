"""A comparison for people: tables, and in words who cannot be told from the best."""

import re
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tamis._wording import counted
from tamis.cli.comparison_sheets import (
    SHARES,
    Compared,
    Failed,
    curve_sheet,
    heading,
    spoken_p,
    spoken_size,
    summary_sheet,
    with_curves,
    with_error,
)
from tamis.cli.contest import BASELINES, GUESS
from tamis.cli.printing import bare_table, stdout, text
from tamis.cli.sheets import Value
from tamis.evaluation import Standing, Standings

#: Columns of a terminal that one method takes in the table of sizes, and the sizes themselves.
WIDE, NARROW = 14, 10
#: Letters of what a method says of its failure.
LONGEST = 240
#: Resamples below which even a clear difference may stay unseen.
FEW = 10
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
    for line in _words(rows, standing, one.failed):
        console.print(text(line))
    console.print()


def print_ranks(standing: Standings) -> None:
    """Mean ranks over the tables, with the critical difference."""
    console = stdout()
    for line in _rank_words(standing):
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


def _words(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> list[str]:
    """Who is best, and who cannot be told from it."""
    methods = [row for row in rows if row.method not in BASELINES]
    lines = [_failed_words(one) for one in failed]
    if not methods:
        return lines
    best, *others = methods
    same = [row for row in others if not row.p_value < standing.level]
    worse = [row for row in others if row.p_value < standing.level]
    said = [_best_words(best, standing)]
    if same:
        said.append(f"Not distinguishable from it: {_with_p(same)}.")
    if worse:
        said.append(f"Worse: {_with_p(worse)}.")
    beside = [row for row in rows if row.method in BASELINES]
    said += [_beside(row, best, standing) for row in beside]
    if any(row.method == GUESS and not _is_beaten(row, best, standing) for row in beside):
        few = "; more --resamples may tell" if best.n_realizations < FEW else ""
        said.append(f"So no method is shown to find anything on this table{few}.")
    return [*said, *lines]


def _best_words(best: Standing, standing: Standings) -> str:
    size = f"{spoken_size(best.size)} column{'s' * (best.size != 1)}"
    few = ""
    if best.curve and best.enough < best.size:
        few = f"; {best.enough:.0f} {'are' if best.enough != 1 else 'is'} hardly worse"
    number = with_error(best.mean, best.error, standing)
    unit = " %" if standing.metric in SHARES else ""
    return f"{best.method} is best: {number}{unit} with {size}{few}."


def _with_p(rows: Sequence[Standing]) -> str:
    return ", ".join(f"{row.method} (p {spoken_p(row.p_value)})" for row in rows)


def _beside(row: Standing, best: Standing, standing: Standings) -> str:
    verdict = "not distinguishable"
    if row.p_value < standing.level:
        verdict = "worse" if _is_worse(row, best, standing) else "better"
    name = row.method[0].upper() + row.method[1:]
    unit = " %" if standing.metric in SHARES else ""
    number = with_error(row.mean, row.error, standing)
    return f"{name}: {number}{unit}, {verdict} (p {spoken_p(row.p_value)})."


def _is_beaten(row: Standing, best: Standing, standing: Standings) -> bool:
    return row.p_value < standing.level and _is_worse(row, best, standing)


def _is_worse(row: Standing, best: Standing, standing: Standings) -> bool:
    return (row.mean < best.mean) == standing.greater_is_better


def _failed_words(one: Failed) -> str:
    where = f" in {counted(one.times, 'resample')}" if one.times else ""
    return f"{one.method} failed{where}: {_begun(one.sentence)}"


def _begun(sentences: str) -> str:
    """As many of the sentences as are soon read; the files have all of them."""
    said = ""
    for sentence in re.split(r"(?<=[.?]) (?=[A-Z])", sentences):
        if said and len(said) + len(sentence) > LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return said


def _rank_words(standing: Standings) -> list[str]:
    ranks = standing.ranks
    if ranks is None:
        return ["Ranks need two methods or more with scores on every table."]
    frame = sorted(zip(ranks.ranks.tolist(), ranks.methods, strict=True))
    lines = [
        "Mean ranks over "
        f"{ranks.n_rows} tables: " + ", ".join(f"{name} {rank:.2f}" for rank, name in frame) + ".",
        f"Friedman's test: p {spoken_p(ranks.p_value)}; ranks further apart than "
        f"{ranks.critical_difference:.2f} differ (Nemenyi, {ranks.level:.0%}).",
    ]
    first = next((group for group in ranks.groups if frame[0][1] in group), None)
    if first is not None:
        others = [name for name in first if name != frame[0][1]]
        lines.append(f"Not distinguishable from {frame[0][1]}: {', '.join(others)}.")
    return lines

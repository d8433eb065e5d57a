"""A comparison for people: tables, and in words who cannot be told from the best."""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from tamis._wording import counted
from tamis.cli.contest import BASELINES, GUESS, Rules
from tamis.cli.output import plain
from tamis.cli.printing import bare_table, harmless, stdout, text
from tamis.cli.sheets import Sheet, Value, csv_text, latex_text, markdown_text
from tamis.evaluation import Standing, Standings
from tamis.spec import write
from tamis.table import Alert

#: Metrics that are shares, which people read in percent.
SHARES = ("error", "ber")
SPOKEN = {"ber": "balanced error", "rmse": "RMSE", "mse": "mean squared error", "auc": "AUC"}
#: Columns of a terminal that one method takes in the table of sizes, and the sizes themselves.
WIDE, NARROW = 14, 10
#: What stands above one row per method.
LEGEND = (
    "at the best number of columns, chosen on the other resamples; p against the first;\n"
    "enough: the smallest number within one standard error of the best"
)
#: The least p-value that is printed.
LEAST = 0.001


class Failed(NamedTuple):
    """A method that could not be used at all (``times`` 0), or failed in some resamples."""

    method: str
    times: int
    sentence: str


class Compared(NamedTuple):
    """What was compared on one table."""

    data: str
    target: str
    rules: Rules
    failed: tuple[Failed, ...]
    alerts: Sequence[Alert]


def print_compared(one: Compared, standing: Standings, *, several: bool) -> None:
    """The comparison on one table; of several, without the errors at every size."""
    console, rows = stdout(), standing.of(one.data)
    for line, style in zip(_heading(one, standing), ("bold", "", ""), strict=True):
        console.print(text(line, style=style))
    console.print()
    if not several:
        console.print(text(_curve_sheet(rows, standing).title, style="dim"))
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


def _heading(one: Compared, standing: Standings) -> list[str]:
    rules, n_rows = one.rules, one.rules.shape[0]
    n_train = round(rules.plan.train * n_rows)
    n = len(rules.plan)
    return [
        f"{one.data}: {rules.spoken}",
        f"{counted(n, 'resample')}: chosen and trained on {n_train} rows, measured on the other "
        f"{n_rows - n_train}",
        f"{spoken_metric(standing)} of {write(rules.estimator, strict=False)}",
    ]


def spoken_metric(standing: Standings) -> str:
    """The metric as people call it, with its unit."""
    name = SPOKEN.get(standing.metric, standing.metric)
    return f"{name} %" if standing.metric in SHARES else name


def _number(value: float, standing: Standings) -> str:
    if math.isnan(value):
        return "–"
    return f"{100 * value:.1f}" if standing.metric in SHARES else f"{value:.3g}"


def _with_error(mean: float, error: float, standing: Standings) -> str:
    """``12.3 ± 1.4``; an error of nothing, or none, is not written."""
    if math.isnan(error) or error == 0:
        return _number(mean, standing)
    return f"{_number(mean, standing)} ± {_number(error, standing)}"


def _measured(rows: Sequence[Standing]) -> list[Standing]:
    """Methods with a curve."""
    return [row for row in rows if row.curve]


def _curve_sheet(rows: Sequence[Standing], standing: Standings) -> Sheet:
    """Sizes by methods; the best of each method has a star."""
    shown = _measured(rows)
    sizes = sorted({point.size for row in shown for point in row.curve})
    cells = {
        (point.size, row.method): _with_error(point.mean, point.error, standing)
        + (" *" if point.size == row.size else "")
        for row in shown
        for point in row.curve
    }
    return Sheet(
        f"{spoken_metric(standing)} by number of columns ± one standard error; * the best",
        ["columns", *(row.method for row in shown)],
        [[size, *(cells.get((size, row.method)) for row in shown)] for size in sizes],
    )


def _curves(rows: Sequence[Standing], standing: Standings, width: int) -> list[Table]:
    """The errors at every size, as many methods beside each other as there is room for."""
    shown, tables = _measured(rows), []
    most = max((width - NARROW) // WIDE, 1)
    for start in range(0, len(shown), most):
        sheet = _curve_sheet(shown[start : start + most], standing)
        table = bare_table()
        for heading in sheet.headings:
            table.add_column(text(heading), justify="right", overflow="fold")
        for row in sheet.rows:
            table.add_row(*(_starred(value) for value in row))
        tables.append(table)
    return tables


def _starred(value: Value) -> Text:
    """A cell with room for its star, so that numbers stand below each other."""
    words = "" if value is None else str(value)
    best = words.endswith(" *")
    return text(words.removesuffix(" *") + ("*" if best else " "), style="bold" if best else "")


def _summary_sheet(
    rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]
) -> Sheet:
    """One row per method, the best first; methods without any score last."""
    best = rows[0].method
    made: list[list[Value]] = [
        [
            row.method,
            "0" if row.method == GUESS else _spoken_size(row.size),
            _spoken_size(row.enough) if row.curve else None,
            _with_error(row.mean, row.error, standing),
            None if row.method == best else spoken_p(row.p_value),
            _spoken_stability(row),
            spoken_seconds(row.seconds),
        ]
        for row in rows
    ]
    made += [
        [one.method, "failed", *[None] * 5]
        for one in failed
        if one.method not in {row.method for row in rows}
    ]
    return Sheet(
        f"{spoken_metric(standing)} of each method at its best number of columns",
        [
            "method",
            "columns",
            "enough",
            spoken_metric(standing),
            "p",
            "stability",
            "per fit",
        ],
        made,
    )


def _summary(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> Table:
    sheet = _summary_sheet(rows, standing, failed)
    table = bare_table()
    for heading in sheet.headings:
        left = heading == "method"
        table.add_column(
            text(heading), justify="left" if left else "right", overflow="fold", no_wrap=not left
        )
    for row in sheet.rows:
        style = "dim" if row[0] in BASELINES or row[1] == "failed" else ""
        table.add_row(*(text("" if v is None else v) for v in row), style=style)
    return table


def _spoken_size(size: float) -> str:
    """A number of columns, or the mean of several."""
    return f"{size:.0f}" if size == round(size) else f"{size:.1f}"


def spoken_p(p: float) -> str:
    """A p-value with two digits.

    >>> spoken_p(0.0312), spoken_p(0.00001), spoken_p(1.0)
    ('0.031', '< 0.001', '1')
    """
    if math.isnan(p):
        return "–"
    return f"< {LEAST:g}" if p < LEAST else f"{p:.2g}"


def spoken_seconds(seconds: float) -> str:
    """A time of a fit.

    >>> spoken_seconds(0.00042), spoken_seconds(0.0312), spoken_seconds(12.3), spoken_seconds(600)
    ('0.4 ms', '31 ms', '12 s', '10 min')
    """
    if seconds < 0.001:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _spoken_stability(row: Standing) -> str | None:
    if row.stability is None:
        return None
    one = row.stability
    low, high = max(one.low, -1.0), min(one.high, 1.0)
    # the zero is added because rounding may leave a minus before nothing
    return f"{one.nogueira + 0.0:.2f} ({low + 0.0:.2f} to {high + 0.0:.2f})"


def _words(rows: Sequence[Standing], standing: Standings, failed: Sequence[Failed]) -> list[str]:
    """Who is best, and who cannot be told from it."""
    methods = [row for row in rows if row.method not in BASELINES]
    lines = []
    if methods:
        best = methods[0]
        lines.append(_best_words(best, standing))
        same = [row for row in methods[1:] if not row.p_value < standing.level]
        worse = [row for row in methods[1:] if row.p_value < standing.level]
        if same:
            lines.append(f"Not distinguishable from it: {_with_p(same)}.")
        if worse:
            lines.append(f"Worse: {_with_p(worse)}.")
        lines += [_beside(row, best, standing) for row in rows if row.method in BASELINES]
        guess = next((row for row in rows if row.method == GUESS), None)
        beaten = guess is None or (
            guess.p_value < standing.level and _is_worse(guess, best, standing)
        )
        if not beaten:
            lines.append("So no method is shown to find anything on this table.")
    lines += [_failed_words(one) for one in failed]
    return lines


def _best_words(best: Standing, standing: Standings) -> str:
    size = f"{_spoken_size(best.size)} column{'s' * (best.size != 1)}"
    few = ""
    if best.curve and best.enough < best.size:
        few = f"; {best.enough:.0f} {'are' if best.enough != 1 else 'is'} hardly worse"
    with_error = _with_error(best.mean, best.error, standing)
    unit = " %" if standing.metric in SHARES else ""
    return f"{best.method} is best: {with_error}{unit} with {size}{few}."


def _with_p(rows: Sequence[Standing]) -> str:
    return ", ".join(f"{row.method} (p {spoken_p(row.p_value)})" for row in rows)


def _beside(row: Standing, best: Standing, standing: Standings) -> str:
    verdict = "not distinguishable"
    if row.p_value < standing.level:
        verdict = "worse" if _is_worse(row, best, standing) else "better"
    name = row.method[0].upper() + row.method[1:]
    unit = " %" if standing.metric in SHARES else ""
    number = _with_error(row.mean, row.error, standing)
    return f"{name}: {number}{unit}, {verdict} (p {spoken_p(row.p_value)})."


def _is_worse(row: Standing, best: Standing, standing: Standings) -> bool:
    return (row.mean < best.mean) == standing.greater_is_better


def _failed_words(one: Failed) -> str:
    where = f" in {counted(one.times, 'resample')}" if one.times else ""
    return f"{one.method} failed{where}: {one.sentence}"


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


# -- what is written ------------------------------------------------------------------------------

LONG = (
    "data",
    "method",
    "rule",
    "columns",
    "mean",
    "standard_error",
    "resamples",
    "p_adjusted",
    "stability",
    "stability_low",
    "stability_high",
    "seconds",
)


def written(
    ending: str, found: Sequence[Compared], standing: Standings, *, safe: bool = True
) -> str:
    """The comparison in the way that an ending stands for."""
    if ending == ".json":
        return json.dumps(plain(_facts(found, standing)), indent=1, allow_nan=False) + "\n"
    if ending == ".csv":
        return csv_text(_long(standing), safe=safe)
    sheets = [sheet for one in found for sheet in _sheets(one, standing)]
    return markdown_text(sheets) if ending == ".md" else latex_text(sheets)


def _sheets(one: Compared, standing: Standings) -> list[Sheet]:
    rows = standing.of(one.data)
    title = "; ".join(_heading(one, standing)[:2])
    summary, curve = _summary_sheet(rows, standing, one.failed), _curve_sheet(rows, standing)
    tests = [pair for pair in standing.pairs if pair.data == one.data]
    sheets = [
        summary._replace(title=f"{title}; {summary.title}"),
        curve,
        Sheet(
            "corrected t-test of every pair, p-values adjusted by Holm's rule",
            ["first", "second", "difference", "p", "adjusted p"],
            [[p.first, p.second, p.difference, p.p_value, p.p_adjusted] for p in tests],
        ),
    ]
    return [sheet for sheet in sheets if sheet.rows]


def _long(standing: Standings) -> Sheet:
    """One row per method and size, and one at the number of columns that is chosen."""
    made: list[list[Value]] = []
    for row in standing.rows:
        for point in row.curve:
            n = row.n_realizations
            cells = [row.data, row.method, "given", point.size, point.mean, point.error, n]
            made.append([*cells, *[None] * 5])
        one = row.stability
        made.append(
            [
                row.data,
                row.method,
                "best" if row.curve else "own",
                row.size,
                row.mean,
                row.error,
                row.n_realizations,
                row.p_value,
                *((one.nogueira, one.low, one.high) if one else (None,) * 3),
                row.seconds,
            ]
        )
    return Sheet("", LONG, [[None if v != v else v for v in cells] for cells in made])


def _facts(found: Sequence[Compared], standing: Standings) -> dict[str, Any]:
    ranks = standing.ranks
    return {
        "metric": standing.metric,
        "tables": [_table_facts(one, standing) for one in found],
        "ranks": None
        if ranks is None
        else {
            "ranks": dict(zip(ranks.methods, ranks.ranks.tolist(), strict=True)),
            "p_value": ranks.p_value,
            "critical_difference": ranks.critical_difference,
            "level": ranks.level,
        },
    }


def _table_facts(one: Compared, standing: Standings) -> dict[str, Any]:
    rules = one.rules
    return {
        "data": one.data,
        "rows": rules.shape[0],
        "columns": rules.shape[1],
        "target": one.target,
        "task": rules.task,
        "estimator": write(rules.estimator, strict=False),
        "resamples": len(rules.plan),
        "train": rules.plan.train,
        "seed": rules.plan.seed,
        "sizes": list(rules.sizes),
        "alerts": [harmless(alert) for alert in one.alerts],
        "methods": [_row_facts(row) for row in standing.of(one.data)],
        "tests": [pair._asdict() for pair in standing.pairs if pair.data == one.data],
        "failed": [failed._asdict() for failed in one.failed],
    }


def _row_facts(row: Standing) -> dict[str, Any]:
    one = row.stability
    return {
        "method": row.method,
        "columns": row.size,
        "enough": row.enough,
        "mean": row.mean,
        "standard_error": row.error,
        "resamples": row.n_realizations,
        "failed": row.n_failed,
        "p_adjusted": row.p_value,
        "stability": one and {"value": one.nogueira, "low": one.low, "high": one.high},
        "seconds": row.seconds,
        "curve": [point._asdict() for point in row.curve],
        "scores": {str(i): score for i, score in row.scores.items()},
    }

"""``tamis compare``: comparison of methods on resamples of tables."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tamis._format import format_count
from tamis.cli.app import leave
from tamis.cli.folder import TABLES, check_outputs, replace_file, write_tables
from tamis.cli.options import CompareOptions, file_name
from tamis.cli.progress import ProgressBar
from tamis.cli.table import check_target
from tamis.cli.terminal import is_watched, make_table, notify, print_alerts, stdout, text
from tamis.contract.record import installed_versions
from tamis.contract.units import resolve_units
from tamis.evaluation import Realizations, Results, Standing, standings
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes import method as find_method
from tamis.report.comparison import (
    BASELINES,
    ComparisonReport,
    MeasuredTable,
    TableOutcome,
    compared,
)
from tamis.report.contest import (
    DEFAULTS,
    MOST,
    Rules,
    contest,
    contestants,
    estimator_for,
    failed_methods,
    join_results,
    metric_for,
    size_grid,
)
from tamis.report.sheets import Sheet, Value
from tamis.spec import write
from tamis.table.files import read_file
from tamis.table.rows import resampled
from tamis.table.table import Table, table_of

#: File names in ``--folder``: the stem of the tables and of the report, and the file that stores
#: finished fits.
WRITTEN, FITS = "comparison", "fits.sqlite"
#: Widths in characters in the printed table of scores: of a method, and of the column of sizes.
WIDE, NARROW = 14, 10
#: Explanation printed above the table of methods.
LEGEND = (
    "scores: with the number of columns that is best on the other resamples\n"
    "enough: smallest number of columns within one standard error of the best\n"
    "p: p-value of the difference from the first method"
)
#: Column names of the CSV file.
LONG = (
    "data", "method", "rule", "columns", "mean", "standard_error", "resamples", "p_adjusted",
    "stability", "stability_low", "stability_high", "seconds",
)  # fmt: skip


class Compared(NamedTuple):
    """A table, the settings of its comparison, and the results."""

    table: MeasuredTable
    rules: Rules
    words: str
    results: list[Results]

    @property
    def split(self) -> str:
        """Sentence on the number of resamples, and on their numbers of training and test rows."""
        n_rows, plan = self.table.n_rows or 0, self.rules.plan
        n_train = round(plan.train * n_rows)
        return (
            f"{format_count(len(plan), 'resample')}: selected and trained on {n_train} rows, "
            f"measured on the other {n_rows - n_train}"
        )


def run_compare(asked: CompareOptions) -> None:
    """Compare methods. Files that cannot be read or written raise an error before any work."""
    files = asked.files
    _check(asked, files)
    tables = {file: _read_table(asked, file) for file in files}
    if asked.folder is not None:
        asked.folder.mkdir(parents=True, exist_ok=True)
    found: list[Compared] = []
    for file, table in tables.items():
        watched = is_watched(quiet=asked.quiet)
        if watched:
            print_alerts(table.alerts)
        # several files may have the same name
        unique = str(file) == "-" or [f.name for f in files].count(file.name) == 1
        found.append(_compare(asked, file_name(file) if unique else str(file), table))
        if not (asked.quiet or watched):
            print_alerts(table.alerts)
    names = asked.methods or [name for task in DEFAULTS.values() for name in task.methods]
    results = join_results([results for one in found for results in one.results], names)
    standing = standings(results, baselines=BASELINES)
    if all(row.method in BASELINES for row in standing.rows):
        first = next(failed for one in found for failed in one.table.failed)
        raise InvalidParameter(f"No method could be measured. {first.method}: {first.sentence}")
    rules = found[0].rules
    details = [
        ("Estimator", write(rules.estimator, strict=False)),
        ("Sizes", ", ".join(map(str, rules.sizes))),
        ("Seed", str(rules.plan.seed)),
        *((one.table.data, one.split) for one in found),
        ("Versions", ", ".join(f"{name} {v}" for name, v in installed_versions().items())),
    ]
    command = asked.command_line(asked.apart)
    report = compared(standing, [one.table for one in found], details=details, command=command)
    for one, outcome in zip(found, report.outcomes, strict=True):
        _print_outcome(one, outcome, report)
    if len(found) > 1:
        for line in report.rank_words():
            stdout().print(text(line))
    _write(asked, found, report)


def _check(asked: CompareOptions, files: Sequence[Path]) -> None:
    if not files:
        raise InvalidTable(
            f"tamis compare needs a table, and {asked.words[0]!r} is not a file. Write tamis "
            "compare data.csv --target y mrmr svm-rfe."
        )
    if asked.time is not None or asked.event is not None:
        raise InvalidParameter(
            "tamis compare needs classes or numbers as target, and has no metric for censored "
            "times. Write tamis select with --time and --event for the ranking, and compare with "
            "scikit-survival in Python."
        )
    check_outputs(asked, files[0])
    folder = asked.folder
    if folder is not None and (folder / f"{WRITTEN}.json").exists() and not asked.force:
        raise InvalidParameter(
            f"{folder} already holds a comparison. Write --force to replace it, or --folder with "
            "another name."
        )
    for name in asked.methods:
        if name != "auto":
            find_method(name)


def _read_table(asked: CompareOptions, file: Path) -> Table:
    content = read_file(file, asked.format, **asked.layout)
    check_target(asked.target or content.target, content.frame.columns, content.hint)
    how: dict[str, Any] = {"name": file_name(file), "calendar": asked.calendar}
    return table_of(content, asked.target, asked.drop, asked.keep, asked.task.value, **how)


def _compare(asked: CompareOptions, name: str, table: Table) -> Compared:
    """Return the results on a single table."""
    plain, task = table.is_plain, table.task
    data = table.labelled()
    source = resampled(name, data, plain=plain, keep=asked.keep)
    groups, fixed = asked.units.values()
    units = resolve_units("tamis compare", groups, fixed, len(data.names), data.names)
    most = min(MOST if asked.features is None else asked.features, units.n_units)
    rules = Rules(
        task,
        tuple(size for size in size_grid(most) if size >= len(units.fixed)) or (most,),
        estimator_for(asked.estimator, task),
        metric_for(asked.metric, task),
        Realizations(
            asked.resamples,
            train=1.0 - asked.test_share,
            stratify=task == "classification",
            seed=asked.seed,
        ),
    )
    rules.plan.split(data.y, name, 0)  # raises an error if there are too few rows
    names = asked.methods or DEFAULTS[task].methods
    methods, failed = contestants(names, data.y, task, units, most)
    store = asked.store
    if store is None and asked.folder is not None:
        store = asked.folder / FITS
    done = count(1)

    def finished(method: str) -> None:
        """Print a line if there is no progress bar."""
        if not (asked.quiet or is_watched(quiet=False)):
            notify(f"{name}: {method} is finished ({next(done)} of {len(methods)} methods).")

    with ProgressBar(f"comparing on {name}", "fits", quiet=asked.quiet) as bar:
        how = {"n_jobs": asked.jobs, "cluster": asked.dask, "store": store}
        results = contest(source, methods, rules, bar, finished, **how)
    if bar.stop:
        stopped = f"stopped after {bar.main.done} of {bar.main.total} fits"
        leave(stopped, store, "they are lost. Write --store FILE to save finished fits.")
    order = [*names, *BASELINES]
    failed = sorted([*failed, *failed_methods(results)], key=lambda one: order.index(one.method))
    shape = len(data.y), len(data.names)
    measured = MeasuredTable(name, table.target or "", *shape, failed, table.alerts)
    return Compared(measured, rules, str(data), results)


# -- printing -------------------------------------------------------------------------------------


def _print_outcome(one: Compared, outcome: TableOutcome, report: ComparisonReport) -> None:
    """Print the comparison on a table. A single table also has its scores at every size."""
    console, measure = stdout(), report.measure
    console.print(text(f"{one.table.data}: {one.words}", style="bold"))
    console.print(text(one.split))
    estimator = write(one.rules.estimator, strict=False)
    console.print(text(f"{measure.short or measure.title} of {estimator}"))
    console.print()
    if len(report.outcomes) == 1:
        console.print(text(report.curve_sheet(outcome.rows).title, style="dim"))
        for sheet in _curve_sheets(outcome.rows, report, console.width):
            table = make_table(sheet.headings, right=sheet.headings)
            for row in sheet.texts():  # a blank instead of a star aligns the numbers
                cells = [cell.replace(" *", "*") if "*" in cell else f"{cell} " for cell in row]
                table.add_row(*(text(cell, "bold" * cell.endswith("*")) for cell in cells))
            console.print(table)
            console.print()
    for line in LEGEND.split("\n"):
        console.print(text(line, style="dim"))
    sheet = report.summary_sheet(outcome)
    table = make_table(sheet.headings, right=sheet.headings[1:], no_wrap=True)
    table.padding = (0, 1, 0, 0)  # leaves room for method names in 80 columns
    table.columns[0].no_wrap, table.columns[0].min_width = False, len(BASELINES[0])
    for cells in sheet.texts():
        quiet = cells[0] in BASELINES or cells[1] == "failed"
        table.add_row(*map(text, cells), style="dim" if quiet else "")
    console.print(table)
    console.print()
    for words in (*report.verdict_words(outcome.verdict), *outcome.table.failed):
        console.print(text(words))
    console.print()


def _curve_sheets(
    rows: Sequence[Standing], report: ComparisonReport, width: int
) -> Iterator[Sheet]:
    """Yield tables of the scores at every size, with as many methods as fit the terminal width."""
    rows = [row for row in rows if row.curve]
    most = max((width - NARROW) // WIDE, 1)
    for start in range(0, len(rows), most):
        yield report.curve_sheet(rows[start : start + most])


# -- writing --------------------------------------------------------------------------------------


def _write(asked: CompareOptions, found: Sequence[Compared], report: ComparisonReport) -> None:
    """Write all output files, and print where they are."""
    output, pages = list(asked.output), [] if asked.report is None else [asked.report]
    if asked.folder is not None:
        output += [asked.folder / f"{WRITTEN}{ending}" for ending in TABLES]
        pages.append(asked.folder / f"{WRITTEN}.html")
    facts, sheet = partial(_facts, found, report), partial(_long_sheet, report)
    for path in output:
        write_tables(path, facts, sheet, partial(_tables, found, report), safe=asked.safe_csv)
    page = report.html() if pages else ""
    for path in pages:
        replace_file(path, page)
    if asked.quiet:
        return
    for path in asked.output:
        notify(f"the comparison is in {path}.")
    if asked.report is not None:
        notify(f"the report is {asked.report}.")
    if asked.folder is not None:
        notify(f"the report is {asked.folder / WRITTEN}.html; CSV, Markdown, LaTeX and JSON are in "
               "the same folder.")  # fmt: skip


def _tables(found: Sequence[Compared], report: ComparisonReport) -> Iterator[Sheet]:
    """Yield the tables of a comparison for Markdown and LaTeX."""
    for one, outcome in zip(found, report.outcomes, strict=True):
        summary = report.summary_sheet(outcome)
        yield summary._replace(title=f"{one.table.data}: {one.words}; {one.split}; {summary.title}")
        yield report.curve_sheet(outcome.rows)
        yield report.pair_sheet(one.table.data)


def _long_sheet(report: ComparisonReport) -> Sheet:
    """Return one row per method and size, and one row per method with its chosen size."""
    made: list[list[Value]] = []
    for row in report.standing.rows:
        for size, mean, error in row.curve:
            given: list[Value] = [row.data, row.method, "given", size, mean, error]
            made.append([*given, row.n_realizations, *[None] * 5])
        rule, one = "best" if row.curve else "own", row.stability
        stable = (None,) * 3 if one is None else (one.nogueira, one.low, one.high)
        score = [row.size, row.mean, row.error, row.n_realizations, row.p_value]
        made.append([row.data, row.method, rule, *score, *stable, row.seconds])
    return Sheet("", LONG, made)


def _facts(found: Sequence[Compared], report: ComparisonReport) -> dict[str, Any]:
    ranks = report.standing.ranks
    return {
        "metric": report.standing.metric,
        "tables": [_table_facts(one, report) for one in found],
        "ranks": None
        if ranks is None
        else {
            "ranks": dict(zip(ranks.methods, ranks.ranks.tolist(), strict=True)),
            "p_value": ranks.p_value,
            "critical_difference": ranks.critical_difference,
            "level": ranks.level,
        },
    }


def _table_facts(one: Compared, report: ComparisonReport) -> dict[str, Any]:
    table, rules, standing = one.table, one.rules, report.standing
    return {
        "data": table.data,
        "rows": table.n_rows,
        "columns": table.n_columns,
        "target": table.target,
        "task": rules.task,
        "estimator": write(rules.estimator, strict=False),
        "resamples": len(rules.plan),
        "train": rules.plan.train,
        "seed": rules.plan.seed,
        "sizes": list(rules.sizes),
        "alerts": [str(alert) for alert in table.alerts],
        "methods": [_row_facts(row) for row in standing.of(table.data)],
        "tests": [pair._asdict() for pair in standing.pairs if pair.data == table.data],
        "failed": [failed._asdict() for failed in table.failed],
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

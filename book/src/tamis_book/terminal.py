"""Implementation of ``tamis reproduce``: run experiments, print and write their tables."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from tamis._format import format_count, mask_control
from tamis.cli.app import leave
from tamis.cli.folder import TABLES, check_outputs, replace_file, write_tables
from tamis.cli.progress import ProgressBar
from tamis.cli.terminal import PIPED, make_table, notify, stdout, text
from tamis.evaluation import Store
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.report.charts.style import LIGHT, PADDING
from tamis.report.sheets import Sheet, Value
from tamis.report.svg import to_svg
from tamis_book.cells import Cell, mark_words
from tamis_book.chart import cells_of, draw_published
from tamis_book.command import ReproduceOptions
from tamis_book.experiment import Experiment
from tamis_book.files import by_cost, names, read, titles
from tamis_book.layout import (
    SIGNS,
    SUMMARY_LEGEND,
    contrasts,
    footnotes,
    format_cell,
    lay_out,
    legend,
    summarize,
)
from tamis_book.report import reproduced, tests_sheet, without_empty
from tamis_book.reproduction import Reproduction
from tamis_book.result_files import stored_results
from tamis_book.runner import reproduce

#: Width of a chart in pixels: twice the width of a column in a paper.
CHART = 480
CELLS = ("part", "method", "columns", "ours", "deviation", "realizations", "published", "mark")


def run_reproduce(asked: ReproduceOptions) -> None:
    """Run the experiments, and print and write the results of each when it is finished."""
    if asked.list_names:
        for name, title in titles().items():
            typer.echo(mask_control(f"{name}  {title}"))
        return
    everything = asked.everything or (asked.summary and not asked.experiments)
    chosen = names() if everything else asked.experiments
    _check(asked, len(chosen))
    experiments = [read(name) for name in chosen]  # a wrong name raises an error before any work
    if asked.summary:
        _print_summary(summarize((one, stored_results(one)) for one in experiments), asked.output)
        return
    if asked.everything:
        experiments = by_cost(experiments)  # short experiments first
    done: list[Reproduction] = []
    # a single store, because tables share tasks
    with Store(asked.store) as store, warnings.catch_warnings():
        # joblib restarts large processes without losing a task
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        for experiment in experiments:
            with ProgressBar(experiment.name, "tasks", quiet=asked.quiet) as bar:
                found = reproduce(
                    experiment,
                    realizations=asked.realizations,
                    tune=asked.tune,
                    n_jobs=asked.jobs,
                    cluster=asked.dask,
                    store=store,
                    progress=bar,
                )
            if bar.stop:
                write_store = "write --store FILE to resume it the next time."
                leave(f"{experiment.name} was stopped", store.path, write_store)
            if len(experiments) == 1 and not found.cells and found.missing:
                raise InvalidTable(f"{experiment.name}: {found.missing[0]}")
            _print(found)
            done.append(found)
            if asked.folder is not None:
                _write_folder(asked.folder, found)
    for path in asked.output:
        _write_tables(path, done)
    if asked.report is not None:
        replace_file(asked.report, reproduced(done[0], command=_command(done[0])).html())
    if asked.quiet:
        return
    for path in asked.output:
        notify(f"wrote the table to {path}.")
    if asked.report is not None:
        notify(f"wrote the report to {asked.report}.")
    if asked.folder is not None:
        several = format_count(len(done), "experiment")
        notify(f"wrote reports, tables and charts of {several} to {asked.folder}.")


def _check(asked: ReproduceOptions, n_experiments: int) -> None:
    """Raise an error before any work if output files cannot be written."""
    if not n_experiments:
        raise InvalidParameter(
            "tamis reproduce needs the name of an experiment. tamis reproduce --list lists them."
        )
    if asked.summary and (asked.report is not None or asked.folder is not None):
        raise InvalidParameter(
            "--summary needs --output to write files, got --report or --folder. Write "
            "--output summary.csv."
        )
    check_outputs(asked, None)
    if asked.report is not None and n_experiments > 1:
        raise InvalidParameter(
            f"--report needs one experiment, got {n_experiments}. Write --folder for a page of "
            "each."
        )


def _command(found: Reproduction) -> str:
    """Return the command line that runs the same experiment."""
    n = max((cell.n_realizations for cell in found.cells), default=None)
    name = found.experiment.name
    known = [name if name in names() else f"{name}.toml"]
    fewer = None if n == found.experiment.realizations else n
    return ReproduceOptions(experiments=known, realizations=fewer).command_line()


# -- writing --------------------------------------------------------------------------------------


def _write_folder(folder: Path, found: Reproduction) -> None:
    """Write the page, tables and charts of an experiment, in files named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    name = found.experiment.name
    replace_file(folder / f"{name}.html", reproduced(found, command=_command(found)).html())
    for ending in TABLES:
        _write_tables(folder / f"{name}{ending}", [found])
    for number, part in enumerate(found.parts, 1):
        cells = cells_of(found, part)
        chart = draw_published(cells, found.experiment, LIGHT, CHART, CHART // 2)
        replace_file(folder / f"{name}-{number}.svg", to_svg({"padding": PADDING, **chart}))


def _write_tables(path: Path, several: Sequence[Reproduction]) -> None:
    """Write the tables of several experiments in the format of a file extension."""
    write_tables(
        path,
        lambda: {"experiments": [_facts(found) for found in several]},
        lambda: _long_sheet(several),
        lambda: (one for found in several for one in (_cells_sheet(found), tests_sheet(found))),
    )


def _cells_sheet(found: Reproduction) -> Sheet:
    """Return a table with one row per cell."""
    experiment = found.experiment
    rows: list[list[Value]] = []
    for cell in found.cells:
        method = cell.method if cell.beside is None else f"{cell.method} next to {cell.beside}"
        rows.append([cell.part, method, *_numbers(cell), cell.mark])
    title = f"{experiment.name}: {experiment.title}; {experiment.metric}"
    return without_empty(Sheet(title, CELLS, rows))


def _long_sheet(several: Sequence[Reproduction]) -> Sheet:
    """Return the numbers of all experiments as a table, with the p-values of their tests."""
    rows: list[list[Value]] = []
    for found in several:
        tests = {(part, one.method, one.size): one for part, one in contrasts(found)}
        for cell in found.cells:
            test = tests.get((cell.part, cell.method, cell.size)) if cell.beside is None else None
            named = (found.experiment.name, cell.part, cell.method)
            tested = (None, None) if test is None else (test.p_value, test.p_adjusted)
            # words, because spreadsheets would read signs as formulas
            mark = mark_words(found.experiment).get(cell.mark)
            rows.append([*named, *_numbers(cell), mark, *tested])
    return Sheet("", ("experiment", *CELLS, "p", "adjusted_p"), rows)


def _numbers(cell: Cell) -> tuple[Value, ...]:
    return cell.size, cell.ours, cell.deviation, cell.n_realizations, cell.published


def _facts(found: Reproduction) -> dict[str, Any]:
    experiment = found.experiment
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "metric": experiment.metric,
        "cells": [cell._asdict() for cell in found.cells],
        "tests": [one._asdict() for _, one in contrasts(found)],
        "missing": list(found.missing),
        "settings": list(found.settings),
    }


# -- printing -------------------------------------------------------------------------------------


def _print(found: Reproduction) -> None:
    """Print the table on stdout, and missing methods or tables on stderr."""
    experiment, console = found.experiment, stdout()
    console.print(text(f"{experiment.name}  {experiment.title}", style="bold"))
    if experiment.source:
        console.print(text(experiment.source, style="dim"))
    compared = found.is_published
    for laid in lay_out(found):
        right = [] if experiment.baselines else ["columns"]
        shown = make_table((*laid.labels, *laid.heads), title=laid.title, right=right)
        for labels, cells in laid.rows:
            shown.add_row(*map(text, labels), *(_cell(cell, experiment) for cell in cells))
        if not console.is_terminal:
            console.width = max(PIPED, 30 * len(shown.columns))
        console.print(shown)
    if compared:
        console.print(text(legend(experiment), style="dim"))
    elif (sheet := tests_sheet(found)).rows:
        console.print()
        console.print(text(sheet.title, style="dim"))
        table = make_table(sheet.headings, right=("columns", "difference", "p", "adjusted p"))
        for row in sheet.rows:
            table.add_row(*(text(f"{v:.2g}" if isinstance(v, float) else v) for v in row))
        console.print(table)
    if any(cell.sign is not None for cell in found.cells):
        console.print(text(SIGNS.format(experiment.reference), style="dim"))
    for line in (*found.settings, *found.remarks, *footnotes(found)):
        console.print(text(line))
    if compared or not found.cells:
        counted = ", ".join(f"{n} {mark}" for mark, n in found.counts().items())
        if not counted:  # a single realization has no standard deviation
            single = max((cell.n_realizations for cell in found.cells), default=0) == 1
            more = ": a comparison needs --realizations 2 or more"
            counted = f"nothing could be compared{more * single}"
        console.print(text(f"{counted}."))
    console.print()
    for sentence in found.missing:
        notify(f"{experiment.name}: {sentence}")


def _print_summary(sheet: Sheet, paths: Sequence[Path]) -> None:
    """Print a summary of stored results, and write it to files."""
    console = stdout()
    table = make_table(sheet.headings, right=sheet.headings[3:])
    for row in sheet.texts():
        table.add_row(*map(text, row))
    if not console.is_terminal:
        console.width = max(PIPED, 14 * len(sheet.headings))
    console.print(table)
    console.print(text(SUMMARY_LEGEND, style="dim"))
    rows = [dict(zip(sheet.headings, row, strict=True)) for row in sheet.rows]
    for path in paths:
        write_tables(path, lambda: {"experiments": rows}, lambda: sheet, lambda: [sheet])


def _cell(cell: Cell | None, experiment: Experiment) -> Any:
    """Format a cell as ``ours (published) mark``."""
    if cell is None:
        return text("")
    style = {"-": "red", "+": "green"}.get(cell.mark, "")
    return text(format_cell(cell, experiment), style=style)

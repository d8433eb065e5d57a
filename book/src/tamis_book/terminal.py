"""The command ``reproduce``: published tables, computed again."""

import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tamis._format import format_count
from tamis.cli.answer import command_of
from tamis.cli.failing import INTERRUPTED
from tamis.cli.output import check_output, check_place, replace_file
from tamis.cli.printing import PIPED, bare_table, harmless, say, stderr, stdout, text
from tamis.evaluation import Store
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.plot.style import LIGHT
from tamis.report.drawing import svg_of
from tamis_book.cells import Cell
from tamis_book.chart import cells_of, draw_published
from tamis_book.experiment import Experiment
from tamis_book.files import by_cost, names, read, titles
from tamis_book.layout import SIGNS, CellTable, footnotes, format_cell, lay_out, legend
from tamis_book.report import reproduced
from tamis_book.reproduction import Reproduction
from tamis_book.runner import reproduce
from tamis_book.sheets import ENDINGS, tests_sheet, written

#: Pixels of a picture in a folder: the width of a column of a paper, twice.
PICTURE = 480


def list_experiments() -> None:
    """One name per line, with its title behind it."""
    for name, title in titles().items():
        typer.echo(harmless(f"{name}  {title}"))


def run_experiments(
    asked: Sequence[str],
    *,
    everything: bool,
    output: Sequence[Path] = (),
    report: Path | None = None,
    folder: Path | None = None,
    quiet: bool = False,
    **options: Any,
) -> None:
    """Compute the experiments of these names, or all, and print each as it is done.

    A folder gets a page, the tables and the pictures of each as soon as it is done.
    """
    chosen = names() if everything else list(asked)
    if not chosen:
        raise InvalidParameter("Name an experiment; tamis reproduce --list lists them.")
    for path in output:
        check_output(path, None, endings=ENDINGS)
    _check_pages(report, folder, len(chosen))
    read_all = [read(name) for name in chosen]  # all names are looked up before any work
    if everything:
        read_all = by_cost(read_all)  # so that most are done when a run is stopped
    done = []
    # one store, since tables share tasks
    with Store(options.pop("store", None)) as store, warnings.catch_warnings():
        # joblib renews a process that has grown, and no task is lost by it
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        for experiment in read_all:
            try:
                with _bar(experiment, quiet) as progress:
                    found = reproduce(experiment, **options, store=store, progress=progress)
            except KeyboardInterrupt:
                _leave(experiment, store.path)
            if len(read_all) == 1 and not found.cells and found.missing:
                raise InvalidTable(f"{experiment.name}: {found.missing[0]}")
            show(found)
            done.append(found)
            if folder is not None:
                write_experiment(folder, found)
    for path in output:
        replace_file(path, written(path.suffix.lower(), done))
        if not quiet:
            say(f"the table is in {path}.")
    if report is not None:
        replace_file(report, reproduced(done[0], command=_command(done[0])).html())
        if not quiet:
            say(f"the page is {report}.")
    if folder is not None and not quiet:
        of = format_count(len(done), "experiment")
        say(f"{folder} holds a page, tables and pictures of {of}.")


def _check_pages(report: Path | None, folder: Path | None, n_experiments: int) -> None:
    """Refuse pages that could not be written, before any work."""
    check_output(report, None, endings=(".html",))
    if report is not None and n_experiments > 1:
        raise InvalidParameter(
            f"--report is the page of one experiment, and {n_experiments} are asked for. Write "
            "--folder, which has a page of each."
        )
    if folder is not None:
        check_place(folder)


def write_experiment(folder: Path, found: Reproduction) -> None:
    """A page, tables and a picture of each part, as files of the experiment's name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = found.experiment.name
    page = reproduced(found, command=_command(found)).html()
    replace_file(folder / f"{name}.html", page)
    for ending in ENDINGS:
        replace_file(folder / f"{name}{ending}", written(ending, [found]))
    for number, part in enumerate(found.parts, 1):
        cells = cells_of(found, part)
        chart = draw_published(cells, found.experiment, LIGHT, PICTURE, PICTURE // 2)
        replace_file(folder / f"{name}-{number}.svg", svg_of(chart))


def _command(found: Reproduction) -> str:
    """What computes the same again."""
    n = max((cell.n_realizations for cell in found.cells), default=None)
    asked = None if n == found.experiment.realizations else n
    name = found.experiment.name
    known = name if name in names() else f"{name}.toml"
    return command_of({"": known, "--realizations": asked}, "reproduce")


def _leave(experiment: Experiment, store: Path | None) -> NoReturn:
    """Say what is kept, and how to go on."""
    if store is None:
        say(f"{experiment.name} was stopped; nothing is kept. With --store FILE it can go on.")
    else:
        again = shlex.join(["tamis", *sys.argv[1:]])
        say(f"{experiment.name} was stopped; finished tasks are in {store}. To go on:", again)
    raise typer.Exit(INTERRUPTED)


@contextmanager
def _bar(experiment: Experiment, quiet: bool) -> Any:
    """A bar on stderr; without a terminal nothing is shown."""
    console: Console = stderr()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    off = quiet or not console.is_terminal
    bar = Progress(*columns, console=console, transient=True, disable=off)
    with bar:
        task = bar.add_task(harmless(experiment.name))

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield told


def show(found: Reproduction) -> None:
    """Print the table on stdout, what is missing on stderr."""
    experiment = found.experiment
    console = stdout()
    console.print(text(f"{experiment.name}  {experiment.title}", style="bold"))
    if experiment.source:
        console.print(text(experiment.source, style="dim"))
    compared = found.is_published
    if found.cells:
        for laid in lay_out(found):
            one = _table(laid, experiment)
            if not console.is_terminal:
                console.width = max(PIPED, 30 * len(one.columns))
            console.print(one)
        if compared:
            console.print(text(legend(experiment), style="dim"))
        else:
            _print_tests(found, console)
        if any(cell.sign is not None for cell in found.cells):
            console.print(text(SIGNS.format(experiment.reference), style="dim"))
    for line in (*found.settings, *found.remarks, *footnotes(found)):
        console.print(text(line))
    counted = ", ".join(f"{n} {mark}" for mark, n in found.counts().items())
    if compared or not found.cells:
        console.print(text(f"{counted or _uncompared(found)}."))
    console.print()
    for sentence in found.missing:
        say(f"{experiment.name}: {sentence}")


def _uncompared(found: Reproduction) -> str:
    """Why no number is marked: one realization has no spread by which to tell chance."""
    single = max((cell.n_realizations for cell in found.cells), default=0) == 1
    more = ": one realization has no spread, give --realizations 2 or more" if single else ""
    return f"nothing could be compared{more}"


def _print_tests(found: Reproduction, console: Console) -> None:
    """P-values of the first method, or the reference, against the others."""
    sheet = tests_sheet(found)
    if not sheet.rows:
        return
    console.print()
    console.print(text(sheet.title, style="dim"))
    table = bare_table()
    for name in sheet.headings:
        numeric = name in ("columns", "difference", "p", "adjusted p")
        table.add_column(text(name), justify="right" if numeric else "left", overflow="fold")
    for row in sheet.rows:
        shown = (f"{v:.2g}" if isinstance(v, float) else "" if v is None else v for v in row)
        table.add_row(*map(text, shown))
    console.print(table)


def _table(laid: CellTable, experiment: Experiment) -> Table:
    """One block of the table."""
    shown = bare_table(laid.title or None)
    for name in (*laid.labels, *laid.heads):
        right = name == "columns" and not experiment.baselines
        shown.add_column(text(name), justify="right" if right else "left")
    for labels, cells in laid.rows:
        shown.add_row(*map(text, labels), *(_styled(cell, experiment) for cell in cells))
    return shown


def _styled(cell: Cell | None, experiment: Experiment) -> Text:
    """``ours (published) mark``."""
    if cell is None:
        return text("")
    style = {"-": "red", "+": "green"}.get(cell.mark, "")
    return text(format_cell(cell, experiment), style=style)

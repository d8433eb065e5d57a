"""The command ``reproduce``: published tables, computed again."""

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tamis.cli.failing import INTERRUPTED
from tamis.cli.output import check_output, replace_file
from tamis.cli.printing import PIPED, bare_table, harmless, say, stderr, stdout, text
from tamis.cli.reproduced import ENDINGS, tests_sheet, written
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.reproduction import Cell, Experiment, Reproduction, names, read, reproduce, titles

LEGENDS = {
    "chance": "ours (published)  = equal within chance",
    "range": "range of ours (published)  = published within ours",
}
INTERVAL = "ours [interval] (published)  = published within the interval"
NEAR = "ours (published)  = no more than {:g} apart"
LEGEND = "  + ours better  - ours worse  ? unsound in print"

SIGNS = "./+: paired t-test, ours / published; + where {} wins"


def list_experiments() -> None:
    """One name per line, with its title behind it."""
    for name, title in titles().items():
        typer.echo(harmless(f"{name}  {title}"))


def run_experiments(
    asked: Sequence[str],
    *,
    everything: bool,
    output: Sequence[Path] = (),
    quiet: bool = False,
    **options: Any,
) -> None:
    """Compute the experiments of these names, or all, and print each as it is done."""
    chosen = names() if everything else list(asked)
    if not chosen:
        raise InvalidParameter("Name an experiment; tamis reproduce --list lists them.")
    for path in output:
        check_output(path, None, endings=ENDINGS)
    read_all = [read(name) for name in chosen]  # all names are looked up before any work
    done = []
    for experiment in read_all:
        try:
            with _bar(experiment, quiet) as progress:
                found = reproduce(experiment, **options, progress=progress)
        except KeyboardInterrupt:
            _leave(experiment, options.get("store"))
        if len(read_all) == 1 and not found.cells and found.missing:
            raise InvalidTable(f"{experiment.name}: {found.missing[0]}")
        show(found)
        done.append(found)
    for path in output:
        replace_file(path, written(path.suffix.lower(), done))
        if not quiet:
            say(f"the table is in {path}.")


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
    compared = any(cell.published is not None for cell in found.cells)
    if found.cells:
        shown = _layout(found)(found)
        for one in shown:
            if not console.is_terminal:
                console.width = max(PIPED, 30 * len(one.columns))
            console.print(one)
        if compared:
            console.print(text(_legend(experiment) + LEGEND, style="dim"))
        else:
            _print_tests(found, console)
        if any(cell.sign is not None for cell in found.cells):
            console.print(text(SIGNS.format(experiment.reference), style="dim"))
    for line in (*found.settings, *found.remarks, *_footnotes(found)):
        console.print(text(line))
    counted = ", ".join(f"{n} {mark}" for mark, n in found.counts().items())
    if compared or not found.cells:
        console.print(text(f"{counted or 'nothing could be compared'}."))
    console.print()
    for sentence in found.missing:
        say(f"{experiment.name}: {sentence}")


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


def _footnotes(found: Reproduction) -> list[str]:
    experiment = found.experiment
    shown = {cell.method for cell in found.cells if cell.mark == "?"}
    unsound = [f"? {name}: {why}" for name, why in experiment.unsound.items() if name in shown]
    run = {cell.part for cell in found.cells}
    unsound += [f"? {p.name}: {p.unsound}" for p in experiment.parts if p.unsound and p.name in run]
    parts = [f"{part.name}: {part.note}" for part in experiment.parts if part.note]
    return [*unsound, *experiment.notes, *parts]


def _legend(experiment: Experiment) -> str:
    if experiment.metric == "stability":
        return INTERVAL
    if isinstance(experiment.agreement, float):
        return NEAR.format(experiment.agreement)
    return LEGENDS[experiment.agreement]


def _layout(found: Reproduction) -> Callable[[Reproduction], list[Table]]:
    if found.experiment.baselines:
        return _by_baseline
    return _by_part if found.cells[0].size is None else _by_size


def _by_baseline(found: Reproduction) -> list[Table]:
    """For each part one row per method and size, with the baselines beside."""
    made = []
    for part in found.experiment.parts:
        cells = [cell for cell in found.cells if cell.part == part.name]
        if not cells:
            continue
        shown = bare_table(part.name)
        steps = ["step"] if part.steps else []
        for name in ("", *steps, "columns", found.experiment.metric, *found.experiment.baselines):
            shown.add_column(text(name))
        beside = {(c.beside, c.size, c.method): c for c in cells if c.beside is not None}
        for cell in [cell for cell in cells if cell.beside is None]:
            others = [beside.get((cell.method, cell.size, n)) for n in found.experiment.baselines]
            shown.add_row(
                text(cell.method),
                *([str(cell.size)] if part.steps else []),
                _columns(cell),
                *(_written(c, found.experiment) for c in (cell, *others)),
            )
        made.append(shown)
    return made


def _columns(cell: Cell) -> str:
    published = cell.published_n_features
    return f"{cell.n_features:.1f}" + ("" if published is None else f" ({published:.1f})")


def _by_part(found: Reproduction) -> list[Table]:
    """Methods by parts, one number each: the fewer of them are the columns."""
    shown = bare_table()
    parts = list(dict.fromkeys(cell.part for cell in found.cells))
    methods = list(dict.fromkeys(cell.method for cell in found.cells))
    n = found.cells[0].n_realizations
    shown.add_column(f"hits of {n}" if found.experiment.metric == "hit" else "")
    turned = len(parts) > len(methods) and found.experiment.metric != "hit"
    across, down = (methods, parts) if turned else (parts, methods)
    for name in across:
        shown.add_column(text(name))
    cells = {(c.part, c.method) if turned else (c.method, c.part): c for c in found.cells}
    for name in down:
        row = [_written(cells.get((name, other)), found.experiment) for other in across]
        shown.add_row(text(name), *row)
    return [shown]


def _by_size(found: Reproduction) -> list[Table]:
    """For each part one row per number of columns, one column per method."""
    made = []
    for part in dict.fromkeys(cell.part for cell in found.cells):
        cells = [cell for cell in found.cells if cell.part == part]
        made.append(_curves(part, cells, found.experiment))
    return made


def _curves(part: str, cells: Sequence[Cell], experiment: Experiment) -> Table:
    shown = bare_table(part)
    shown.add_column("columns", justify="right")
    methods = list(dict.fromkeys(cell.method for cell in cells))
    for method in methods:
        shown.add_column(text(method))
    at = {(cell.size, cell.method): cell for cell in cells}
    for size in dict.fromkeys(cell.size for cell in cells):
        row = [_written(at.get((size, method)), experiment) for method in methods]
        shown.add_row(str(size), *row)
    return shown


def _written(cell: Cell | None, experiment: Experiment) -> Text:
    """``ours (published) mark``."""
    if cell is None:
        return text("")
    digits = 0 if experiment.metric == "hit" else max(2, experiment.decimals)
    published = "" if cell.published is None else f" ({cell.published:.{digits}f})"
    style = {"-": "red", "+": "green"}.get(cell.mark, "")
    signs = "" if cell.sign is None else f" {cell.sign or '.'}/{cell.published_sign or '.'}"
    ours = f"{cell.ours:.{digits}f}"
    if experiment.agreement == "range":
        ours = f"{cell.low:.{digits}f}-{cell.high:.{digits}f}"
    if experiment.metric == "stability":
        ours += f" [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"
    return text(f"{ours}{published} {cell.mark}{signs}", style=style)

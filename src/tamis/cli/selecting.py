"""What ``tamis select`` does: read, select, write, print."""

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from numpy.typing import NDArray

from tamis import spec
from tamis._wording import listed
from tamis.auto import Auto
from tamis.choice import HonestSize
from tamis.cli.answer import (
    PAGE,
    RANKING,
    RECORD,
    SELECTED,
    AnswerParts,
    check_folder,
    command_of,
    dense_frame,
    folder_name,
    free_folder,
    write_folder,
)
from tamis.cli.censored import check_censored, events_of, with_events
from tamis.cli.counting import counted_bar
from tamis.cli.output import check_output, ranking_json, write_ranking
from tamis.cli.parts import (
    LabelledParts,
    drawn_alerts,
    drawn_table,
    is_automatic,
    is_read_in_parts,
    opened_parts,
    place,
)
from tamis.cli.printing import (
    is_watched,
    print_lines,
    print_pairs,
    print_ranking,
    say,
    say_alerts,
    stdout,
)
from tamis.cli.ranking import ranked_columns
from tamis.cli.running import (
    Interrupted,
    feature_groups,
    leave,
    load_record,
    names_in,
    number_of_features,
    run,
    selector_for,
)
from tamis.cli.trying import tried_out
from tamis.contract import SURVIVAL, Record, Selection
from tamis.contract.drawn import on_rows_drawn
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes import prepare
from tamis.table import Alert, Table, TableSelector
from tamis.table.files import FileTable, read_file
from tamis.table.labelled import LabelledTable
from tamis.table.showing import shown
from tamis.table.sources import STDIN
from tamis.table.table import table_of

#: How often a method that does not measure itself is repeated for a page: enough for two digits.
RESAMPLES = 20


class Request(NamedTuple):
    """The arguments of the command."""

    file: Path
    method: str | None
    target: str | None
    n_features_to_select: str | None
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    dry_run: bool
    task: str
    output: Path | None
    rows: int
    seed: int
    n_jobs: int | None
    save_record: Path | None
    resume: Path | None
    format: str | None
    header: bool
    safe_csv: bool
    groups: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    time: str | None = None
    event: str | None = None
    folder: Path | None = None
    force: bool = False
    report: bool = False
    resamples: int | None = None
    budget: str | None = None
    quiet: bool = False
    json: bool = False
    dask: str | None = None
    device: str | None = None

    @property
    def answer_folder(self) -> Path | None:
        """Where a whole answer is written, None where only files that are named are."""
        if self.folder is not None:
            return self.folder
        own = folder_name(self.file)
        if self.method is None and self.resume is not None:
            begun = self.resume.parent.name.startswith(own.name)  # an answer that Ctrl-C stopped
            return self.resume.parent if begun else None
        return own if self.report or self.method is None else None

    def command(self, **others: Any) -> str:
        """What to write for the same, with other options where these are given."""
        asked = {
            "": (place(self.file), self.method),
            "--target": self.target,
            "--time": self.time,
            "--event": self.event,
            "--features": self.n_features_to_select,
            "--drop": self.drop,
            "--keep": self.keep,
            "--group": self.groups,
            "--fixed": self.fixed,
            "--task": None if self.task == "auto" else self.task,
            "--seed": self.seed or None,
            "--jobs": self.n_jobs,
            "--budget": self.budget,
            "--dask": self.dask,
            "--device": self.device,
            "--report": self.report,
            "--resamples": self.resamples,
            "--output": self.output,
            "--save-record": self.save_record,
            "--resume": self.resume,
            "--folder": self.folder,
            "--format": self.format,
            "--no-header": not self.header,
        }
        return command_of(asked | {f"--{name}": value for name, value in others.items()})


def run_select(asked: Request) -> None:
    """Select columns of a file as asked; what cannot be written is refused before any work."""
    _check(asked)
    drawn = None
    if not is_read_in_parts(asked):
        content = read_file(asked.file, asked.format, header=asked.header)
    elif is_automatic(asked):
        content, drawn = drawn_table(asked)
    else:
        _select_in_parts(asked)
        return
    happened = None if asked.event is None else events_of(content.frame, asked.event)
    table = _table(asked, content)
    if asked.dry_run:
        print_lines(shown(table, width=stdout().width))
        return
    alerts = (*drawn_alerts(drawn), *table.alerts)
    if happened is not None:
        with_events(table, happened)
    record = None if asked.resume is None else load_record(asked.resume)
    selector = _selector(asked, table, record)
    data = table.labelled(sparse=selector.__sklearn_tags__().input_tags.sparse)
    watched = is_watched(quiet=asked.quiet)
    if watched:
        say(f"{_spoken(asked.file)}: {data}")
        say_alerts(alerts)
    with on_rows_drawn(drawn):
        selection = run(
            selector,
            data,
            record,
            asked.save_record,
            interrupted=_interrupted(asked),
            quiet=asked.quiet,
            device=asked.device,
        )
    if not (asked.quiet or watched):
        say_alerts(alerts)
    _tell(asked, data, selection, alerts)
    _write(asked, data, selection, alerts)


def _select_in_parts(asked: Request) -> None:
    """Select columns of a table that is read in blocks of rows."""
    refused = {
        "report": asked.report,
        "folder": asked.folder,
        "time": asked.time,
        "event": asked.event,
        "dry-run": asked.dry_run,
    }
    with opened_parts(asked, **refused) as data:
        record = None if asked.resume is None else load_record(asked.resume)
        selection = run(
            _prepared(asked, data.table.labels.values, record),
            data,
            record,
            asked.save_record,
            interrupted=_interrupted(asked),
            quiet=asked.quiet,
            device=asked.device,
        )
    _tell(asked, data, selection, ())
    _write(asked, data, selection, ())


def _check(asked: Request) -> None:
    check_output(asked.output, asked.file)
    check_output(asked.save_record, asked.file, endings=(".json",))
    check_censored(asked.target, asked.time, asked.event, asked.task)
    if asked.answer_folder is not None and not asked.dry_run:
        check_folder(asked.answer_folder, asked.force, asked.resume)
    if asked.budget is not None and asked.method is not None:
        raise InvalidParameter(
            f"--budget is for the automatic selection, and {asked.method} takes what it takes. "
            "Leave one of the two out."
        )
    if asked.resamples is not None and asked.answer_folder is None:
        raise InvalidParameter("--resamples is for the page. Write --report as well.")


def _selector(asked: Request, table: Table, record: Record | None) -> Selection:
    """The selector that was asked for, made ready for the table."""
    assert table.y is not None
    selector = _prepared(asked, table.y, record)
    if not table.is_plain and not isinstance(selector, TableSelector):
        selector = TableSelector(selector, keep=asked.keep)
    return selector


def _prepared(asked: Request, y: NDArray[Any], record: Record | None) -> Selection:
    """The selector that was asked for, made ready for a target."""
    selector = selector_for(
        asked.method,
        y,
        record,
        n_features_to_select=number_of_features(asked.n_features_to_select),
        task=asked.task,
        n_jobs=asked.n_jobs,
        feature_groups=feature_groups(asked.groups),
        fixed_features=names_in(asked.fixed) or None,
    )
    if asked.budget is not None and isinstance(selector, Auto):
        selector.set_params(budget=seconds_of(asked.budget))
    if asked.method is not None or record is None:  # a record has the seeds that it began with
        selector = prepare(selector, y, task=asked.task, random_state=asked.seed)
    return selector


def seconds_of(text: str) -> float:
    """``60``, ``60s``, ``5m`` or ``1h`` in seconds.

    >>> seconds_of("5m")
    300.0
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidParameter(f"--budget needs a time such as 60s, 5m or 1h, not {text!r}.")
    return seconds


def _interrupted(asked: Request) -> Interrupted:
    """Where the steps go after Ctrl-C, and the command that goes on from there."""
    path = asked.save_record
    if path is None:
        folder = asked.answer_folder or free_folder(folder_name(asked.file))
        path = folder / RECORD
    return Interrupted(path, asked.command(resume=path))


def _tell(
    asked: Request,
    data: LabelledTable | LabelledParts,
    selection: Selection,
    alerts: Sequence[Alert],
) -> None:
    """Print the answer."""
    ranking = ranked_columns(selection, data.names)
    facts = partial(_facts, asked.file, data, selection, alerts)
    if asked.output is not None:
        write_ranking(asked.output, ranking, facts, safe=asked.safe_csv)
    if asked.json:
        print_lines(ranking_json(ranking, partial(facts, record=False)))
        return
    heading = [f"{_spoken(asked.file)}: {data}", spec.write(selection, strict=False)]
    if isinstance(getattr(selection, "search_", selection), Auto):
        first, *others = selection.summary().split("\n")
        heading[1:] = ["", first.partition(":")[0] + ":", *(f"  {line}" for line in others)]
    print_ranking(ranking, heading, asked.rows)
    print_pairs(selection, data.names)


def _write(
    asked: Request,
    data: LabelledTable | LabelledParts,
    selection: Selection,
    alerts: Sequence[Alert],
) -> None:
    """Write the folder, and say where everything is."""
    folder = asked.answer_folder
    if folder is not None and isinstance(data, LabelledTable):
        page = partial(write_page, asked, data, selection, alerts)
        answer = AnswerParts(selection, data, ranked_columns(selection, data.names), page)
        try:
            write_folder(folder, answer, safe=asked.safe_csv)
        except KeyboardInterrupt:
            leave(selection, _interrupted(asked))
    if asked.quiet:
        return
    for what, path in (("ranking", asked.output), ("record", asked.save_record)):
        if path is not None:
            say(f"the {what} is in {path}.")
    if folder is not None:
        say(f"the page is {folder / PAGE}; {SELECTED}, {RANKING} and {RECORD} are beside it.")


def write_page(
    asked: Request,
    data: LabelledTable,
    selection: Selection,
    alerts: Sequence[Alert],
    path: Path,
) -> None:
    """Write the page of a selection."""
    from tamis.report import report, write_report

    X = data.X if isinstance(data.X, pl.DataFrame) else dense_frame(data.X)
    results = _resampled(asked, X, data, selection)
    told = report(
        selection,
        X,
        data.y,
        results=results,
        source=_spoken(asked.file),
        target=data.target,
        task=data.task,
        alerts=alerts,
        command=asked.command(),
        **tried_out(selection, X, data, seed=asked.seed, n_jobs=asked.n_jobs, quiet=asked.quiet),
    )
    write_report(told, path)


def _resampled(
    asked: Request, X: pl.DataFrame, data: LabelledTable, selection: Selection
) -> Results | None:
    """What the method does on rows it has not seen, where nothing else tells it."""
    from tamis.report import resampled

    measured = isinstance(getattr(selection, "search_", selection), Auto | HonestSize)
    units = selection.units_
    by_name = not units.plain or bool(len(units.fixed))  # which the numbers alone do not have
    own = measured or by_name
    n = asked.resamples if asked.resamples is not None else 0 if own else RESAMPLES
    if n == 0 or data.task == SURVIVAL or not selection.support_.any():
        return None
    if by_name:
        raise InvalidParameter(
            "--resamples needs columns that are taken one by one, and --group or --fixed ties "
            "some. Leave it out."
        )
    bar = counted_bar("repeating the selection", "resamples", quiet=asked.quiet)
    with bar as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said at the selection itself
        return resampled(
            selection, X, data.y, n, n_jobs=asked.n_jobs, seed=asked.seed, progress=progress
        )


def _table(asked: Request, content: FileTable) -> Table:
    """The file, looked through; of a censored target the times, with the events set aside."""
    named = asked.target or asked.time or content.target
    if not asked.dry_run and named is None:
        raise InvalidTable(
            "Which column is the target? Write --target with one of "
            f"{listed(content.frame.columns[::-1])}."
        )
    name, drop = _spoken(asked.file), asked.drop
    if asked.time is None:
        return table_of(content, asked.target, drop, asked.keep, asked.task, name=name)
    drop = (*drop, str(asked.event))
    return table_of(content, asked.time, drop, asked.keep, "regression", name=name)


def _spoken(file: Path) -> str:
    return "standard input" if str(file) == STDIN else file.name


def _facts(
    file: Path,
    data: LabelledTable | LabelledParts,
    selection: Selection,
    alerts: Sequence[Alert],
    *,
    record: bool = True,
) -> dict[str, Any]:
    """What a ranking written as JSON says beside the ranking."""
    return {
        "file": place(file),
        "target": data.target,
        "task": data.task,
        "method": spec.write(selection, strict=False),
        "alerts": [str(alert) for alert in alerts],
        "selected": selection.get_feature_names_out().tolist(),
        "summary": selection.summary().splitlines(),
        **({"record": selection.record_.to_dict()} if record else {}),
    }

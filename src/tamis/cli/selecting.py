"""What ``tamis select`` does: read, select, write, print."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tamis import spec
from tamis._format import format_names
from tamis.auto import Auto
from tamis.choice import Fraction, Size
from tamis.choice.inner_search import walk_of
from tamis.cli.answer import (
    PAGE,
    RANKING,
    RECORD,
    SELECTED,
    AnswerParts,
    check_folder,
    folder_name,
    free_folder,
    write_folder,
)
from tamis.cli.censored import check_censored, events_of, with_events
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
from tamis.cli.request import Request, seconds_of
from tamis.cli.rows import folds_of, row_metadata, sort_by_time
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
from tamis.cli.selection_page import write_page
from tamis.contract import Record, Selection
from tamis.contract.drawn import on_rows_drawn
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes import prepare
from tamis.table import Alert, Table, TableSelector
from tamis.table.files import FileTable, read_file
from tamis.table.summary import shown
from tamis.table.table import table_of
from tamis.table.target import LabelledTable


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
    sort_by_time(content, asked.cv)
    happened = None if asked.event is None else events_of(content.frame, asked.event)
    metadata = row_metadata(content.frame, asked.row_groups, asked.weights)
    with on_rows_drawn(drawn):
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
        say(f"{asked.spoken}: {data}")
        say_alerts(alerts)
    with on_rows_drawn(drawn):
        selection = _run(asked, selector, data, record, metadata)
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
        "groups": asked.row_groups,
        "weights": asked.weights,
        "calendar": asked.calendar,
    }
    with opened_parts(asked, **refused) as data:
        record = None if asked.resume is None else load_record(asked.resume)
        selector = _prepared(asked, data.table.labels.values, record)
        selection = _run(asked, selector, data, record)
    _tell(asked, data, selection, ())
    _write(asked, data, selection, ())


def _run(
    asked: Request,
    selector: Selection,
    data: LabelledTable | LabelledParts,
    record: Record | None,
    metadata: dict[str, Any] | None = None,
) -> Selection:
    """Fit the selector, or resume it, as asked."""
    return run(
        selector,
        data,
        record,
        asked.save_record,
        metadata=metadata,
        interrupted=_interrupted(asked),
        quiet=asked.quiet,
        device=asked.device,
    )


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
        scoring=asked.scoring,
        cv=folds_of(asked.cv),
        class_weight=asked.class_weight,
    )
    if asked.budget is not None and isinstance(selector, Auto):
        selector.set_params(budget=seconds_of(asked.budget))
    if asked.method is not None or record is None:  # a record has the seeds that it began with
        selector = prepare(selector, y, task=asked.task, random_state=asked.seed)
    return selector


def _interrupted(asked: Request) -> Interrupted:
    """Where the steps go after Ctrl-C, and the commands that go on from there."""
    path = asked.save_record
    if path is None:
        folder = asked.answer_folder or free_folder(folder_name(asked.file))
        path = folder / RECORD
    again, here = asked.command(resume=path), asked.command(resume=path, device=None)
    return Interrupted(path, again, here)


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
    heading = [f"{asked.spoken}: {data}", spec.write(selection, strict=False)]
    if isinstance(getattr(selection, "search_", selection), Auto):
        first, *others = selection.summary().split("\n")
        heading[1:] = ["", first.partition(":")[0] + ":", *(f"  {line}" for line in others)]
    elif not _is_told(selection):
        heading.append(selection.choice_.reason)
    if places := selection.record_.places:
        heading.append(places)
    print_ranking(ranking, heading, asked.rows)
    print_pairs(selection, data.names)


def _is_told(selection: Selection) -> bool:
    """Whether it was told how many columns to keep, so that there is no reason to give."""
    walk = walk_of(getattr(selection, "search_", selection))
    return isinstance(walk._choice(), Size | Fraction)


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


def _table(asked: Request, content: FileTable) -> Table:
    """The file, looked through; of a censored target the times, with the events set aside."""
    named = asked.target or asked.time or content.target
    if not asked.dry_run and named is None:
        raise InvalidTable(
            "Which column is the target? Write --target with one of "
            f"{format_names(content.frame.columns[::-1])}."
        )
    drop = (*asked.drop, *filter(None, dict.fromkeys((asked.row_groups, asked.weights))))
    given = asked.target, drop, asked.keep, asked.task
    if asked.time is not None:
        given = asked.time, (*drop, str(asked.event)), asked.keep, "regression"
    return table_of(content, *given, name=asked.spoken, calendar=asked.calendar)


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

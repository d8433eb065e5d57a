"""What ``tamis select`` does: read, select, write, print."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tamis import spec
from tamis._wording import listed
from tamis.auto import Auto
from tamis.cli.censored import check_censored, events_of, with_events
from tamis.cli.output import check_output, write_ranking
from tamis.cli.printing import print_lines, print_ranking, say, say_alerts, stdout
from tamis.cli.ranking import ranked_columns
from tamis.cli.running import (
    feature_groups,
    load_record,
    names_in,
    number_of_features,
    run,
    selector_for,
)
from tamis.contract import Selection
from tamis.exceptions import InvalidTable
from tamis.recipes import prepare
from tamis.table import Alert, Table, TableSelector
from tamis.table.files import FileTable, read_file
from tamis.table.labelled import LabelledTable
from tamis.table.showing import shown
from tamis.table.sources import STDIN
from tamis.table.table import table_of


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


def run_select(asked: Request) -> None:
    """Select columns of a file as asked; what cannot be written is refused before any work."""
    check_output(asked.output, asked.file)
    check_output(asked.save_record, asked.file, endings=(".json",))
    check_censored(asked.target, asked.time, asked.event, asked.task)
    content = read_file(asked.file, asked.format, header=asked.header)
    happened = None if asked.event is None else events_of(content.frame, asked.event)
    table = _table(asked, content)
    if asked.dry_run:
        print_lines(shown(table, width=stdout().width))
        return
    alerts = table.alerts
    if happened is not None:
        with_events(table, happened)
    assert table.y is not None
    record = None if asked.resume is None else load_record(asked.resume)
    selector = selector_for(
        asked.method,
        table.y,
        record,
        n_features_to_select=number_of_features(asked.n_features_to_select),
        task=asked.task,
        n_jobs=asked.n_jobs,
        feature_groups=feature_groups(asked.groups),
        fixed_features=names_in(asked.fixed) or None,
    )
    expression = spec.write(selector, strict=False)
    if asked.method is not None or record is None:  # a record has the seeds that it began with
        selector = prepare(selector, table.y, task=asked.task, random_state=asked.seed)
    if not table.is_plain and not isinstance(selector, TableSelector):
        selector = TableSelector(selector, keep=asked.keep)
    data = table.labelled(sparse=selector.__sklearn_tags__().input_tags.sparse)
    selection = run(selector, data, record, asked.save_record)
    ranking = ranked_columns(selection, data.names)
    if asked.output is not None:
        facts = partial(_facts, asked.file, data, selection, alerts)
        write_ranking(asked.output, ranking, facts, safe=asked.safe_csv)
    say_alerts(alerts)
    print_ranking(ranking, [f"{_spoken(asked.file)}: {data}", expression], asked.rows)
    if isinstance(found := getattr(selection, "search_", selection), Auto):
        print_lines("\n" + found.summary().partition("\n")[2])
    for what, path in (("ranking", asked.output), ("record", asked.save_record)):
        if path is not None:
            say(f"the {what} is in {path}.")


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
    file: Path, data: LabelledTable, selection: Selection, alerts: Sequence[Alert]
) -> dict[str, Any]:
    """What a ranking written as JSON says beside the ranking."""
    return {
        "file": str(file),
        "target": data.target,
        "task": data.task,
        "method": spec.write(selection, strict=False),
        "alerts": [str(alert) for alert in alerts],
        "selected": selection.get_feature_names_out().tolist(),
        "record": selection.record_.to_dict(),
    }

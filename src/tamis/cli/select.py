"""``tamis select``: selection of columns from a table."""

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from numpy.typing import NDArray

from tamis import spec
from tamis._format import format_count, format_p_value
from tamis._namespace import computing_on
from tamis._parallel import listening
from tamis.blocks.device_arrays import warn_of_device
from tamis.blocks.dispatch import on_rows_drawn
from tamis.choice import Fraction, Size
from tamis.cli.app import INTERRUPTED
from tamis.cli.blocks import (
    LabelledBlocks,
    draw_alerts,
    draw_table,
    is_automatic,
    is_read_in_blocks,
    open_blocks,
)
from tamis.cli.folder import (
    PAGE,
    RANKING,
    RECORD,
    SELECTED,
    SelectionResult,
    check_output,
    check_results_folder,
    free_folder,
    ranking_sheet,
    write_results,
    write_tables,
)
from tamis.cli.options import (
    SelectOptions,
    default_folder,
    parse_cost_limit,
    parse_seconds,
    written_path,
)
from tamis.cli.progress import ProgressBar
from tamis.cli.table import (
    check_censored,
    check_target,
    events_of,
    parse_folds,
    row_metadata,
    set_events,
    sort_by_time,
)
from tamis.cli.terminal import (
    PIPED,
    is_watched,
    make_table,
    notify,
    print_alerts,
    print_lines,
    print_warnings,
    stdout,
    text,
    wrap_line,
)
from tamis.contract import Record, Selection
from tamis.contract.costs import FeatureCosts
from tamis.exceptions import ClusterLost, InvalidParameter, NotEnoughMemory
from tamis.meta.inner_search import walk_of
from tamis.recipes import prepare
from tamis.report.sheets import json_text
from tamis.report.units import (
    Q_MEANING,
    ChosenUnits,
    chosen_units,
    describe_slopes,
    inner_selection,
    strongest_pairs,
)
from tamis.table import Table, TableSelector
from tamis.table.files import FileTable, read_file
from tamis.table.table import shown, table_of
from tamis.table.target import LabelledTable

#: Number of strongest interactions to print. The report shows more.
PAIRS = 5
#: Greatest length of a bar next to a score, in characters.
BAR = 12


def run_select(asked: SelectOptions) -> None:
    """Select columns from a file. Output that cannot be written raises an error before any work."""
    _check(asked)
    drawn = None
    if not is_read_in_blocks(asked):
        content = read_file(asked.file, asked.format, **asked.layout)
    elif is_automatic(asked):
        content, drawn = draw_table(asked)
    else:
        with open_blocks(asked) as blocks:
            record = None if asked.resume is None else Record.load(asked.resume)
            selector = _prepare(asked, blocks.table.labels.values, record)
            selection = _fit(asked, selector, blocks, record)
        ranking = chosen_units(selection, blocks.names)
        _finish(SelectionResult(asked, blocks, selection, ranking, ()))
        return
    sort_by_time(content, asked.cv)
    happened = None if asked.event is None else events_of(content.frame, asked.event)
    labels = {"groups": asked.groups, "environments": asked.environments}
    metadata = row_metadata(content.frame, labels, asked.weights)
    with on_rows_drawn(drawn):
        table = _read_table(asked, content)
    if happened is not None:
        set_events(table, happened)
    if asked.dry_run:
        print_lines(shown(table, width=stdout().width))
        return
    alerts = (*draw_alerts(drawn), *table.alerts)
    assert table.y is not None
    record = None if asked.resume is None else Record.load(asked.resume)
    selector = _prepare(asked, table.y, record)
    if not table.is_plain and not isinstance(selector, TableSelector):
        selector = TableSelector(selector, keep=asked.keep)
    data = table.labelled(sparse=selector.__sklearn_tags__().input_tags.sparse)
    watched = is_watched(quiet=asked.quiet)
    if watched:
        notify(f"{asked.name}: {data}")
        print_alerts(alerts)
    with on_rows_drawn(drawn):
        selection = _fit(asked, selector, data, record, metadata)
    if not (asked.quiet or watched):
        print_alerts(alerts)
    ranking = chosen_units(selection, data.names)
    _finish(SelectionResult(asked, data, selection, ranking, alerts))


def _check(asked: SelectOptions) -> None:
    check_output(asked.output, asked.file)
    check_output(asked.save_record, asked.file, endings=(".json",))
    check_censored(asked)
    if asked.results_folder is not None and not asked.dry_run:
        check_results_folder(asked.results_folder, asked.force, asked.resume)
    if asked.budget is not None and asked.method is not None:
        raise InvalidParameter(
            f"--budget is for the automatic selection, and {asked.method} has no time limit. "
            "Leave one of the two out."
        )
    if asked.cost_limit is not None and asked.costs is None and asked.resume is None:
        raise InvalidParameter("--cost-limit needs the prices of the columns. Write --costs FILE.")
    if asked.resamples is not None and asked.results_folder is None:
        raise InvalidParameter("--resamples is for the HTML report. Write --report as well.")


def _read_table(asked: SelectOptions, content: FileTable) -> Table:
    """Return the table of a file. For censored data, the target is the time."""
    named = asked.target or asked.time or content.target
    if not asked.dry_run:
        check_target(named, content.frame.columns, content.hint)
    drop = [*asked.drop, *asked.id_columns]
    for option in ("groups", "environments", "weights"):
        column = getattr(asked, option)
        if column is not None and column == named:
            raise InvalidParameter(
                f"--{option} {column} is the target. Name another column, or leave --{option} out."
            )
        if column not in (None, *drop):
            drop.append(column)
    target, task = asked.target, asked.task.value
    if asked.time is not None:
        target, task = asked.time, "regression"
        drop.append(str(asked.event))
    elif task == "auto" and _is_read_by_auto(asked):
        from tamis.auto.target import reads_as_numbers  # methods start without the models of Auto

        column = content.frame.to_dict().get(str(target or content.target))
        if column is not None and reads_as_numbers(column.to_numpy()):
            task = "regression"
    how: dict[str, Any] = {"name": asked.name, "calendar": asked.calendar}
    return table_of(content, target, drop, asked.keep, task, **how)


def _is_read_by_auto(asked: SelectOptions) -> bool:
    """Return whether the automatic selection decides how to read the target."""
    if not is_automatic(asked):
        return False
    return asked.resume is None or "task=" not in Record.load(asked.resume).expression


def _prepare(asked: SelectOptions, y: NDArray[Any], record: Record | None) -> Selection:
    """Return the selector for a target, with all options set."""
    resumed = asked.method is None and record is not None
    selector = prepare(
        record.expression if resumed and record is not None else asked.method,
        y,
        n_features_to_select=_parse_features(asked.features),
        task=asked.task.value,
        n_jobs=asked.jobs,
        **asked.units,
        feature_costs=None if asked.costs is None else FeatureCosts.read(asked.costs),
        cost_limit=parse_cost_limit(asked.cost_limit),
        scoring=asked.scoring,
        cv=parse_folds(asked.cv),
        class_weight=asked.class_weight,
        confirm=asked.confirm or None,
    )
    if asked.budget is not None and "budget" in selector.get_params(deep=False):
        selector.set_params(budget=parse_seconds(asked.budget))
    if not resumed:  # a record contains its own seeds
        selector = prepare(selector, y, task=asked.task.value, random_state=asked.seed)
    return selector


def _parse_features(text: str | None) -> Any:
    """Parse ``--features``: an int, a fraction, "best" or a choice such as Threshold(0.1)."""
    if text is None or text == "best":
        return text
    try:
        return spec.parse(text)
    except ValueError as error:
        raise InvalidParameter(
            f"--features needs a number of columns, a fraction such as 0.5, best, or a choice such "
            f"as 'Threshold(0.1)', not {text!r}."
        ) from error


def _fit(
    asked: SelectOptions,
    selector: Any,
    data: LabelledTable | LabelledBlocks,
    record: Record | None,
    metadata: dict[str, Any] | None = None,
) -> Selection:
    """Fit a selector, or continue from a record. Warnings are printed only after success.

    ``metadata`` holds groups, environments and weights of the rows.
    """
    bar = ProgressBar(quiet=asked.quiet)
    if not getattr(selector, "search", selector).scores_alone:  # a ranking has only a single step
        selector.set_callbacks(bar)
    try:
        heard = warnings.catch_warnings(record=True, action="always")
        with heard as caught, bar, listening(bar.count_step):
            if asked.device is not None:
                warn_of_device(selector, f"device={asked.device!r}")
            with computing_on(asked.device):
                if record is None:
                    selector.fit(data.X, data.y, **metadata or {})
                else:
                    selector.resume(data.X, data.y, record=record, **metadata or {})
    except NotEnoughMemory:
        _keep_record(asked, selector, "out of memory", device=None)
        raise
    except ClusterLost:
        _keep_record(asked, selector, "the cluster was lost")
        raise
    finally:
        selector.set_callbacks()
    if bar.stop:
        _leave(asked, selector)
    if asked.save_record is not None:
        selector.record_.save(asked.save_record)
    if not asked.quiet:
        print_warnings(caught)
    fitted: Selection = selector
    return fitted


def _leave(asked: SelectOptions, selector: Any) -> NoReturn:
    """Save the steps so far, print how to continue, and exit."""
    if not _keep_record(asked, selector, "stopped"):
        notify("stopped; nothing was written.")
    raise typer.Exit(INTERRUPTED)


def _keep_record(asked: SelectOptions, selector: Any, why: str, **others: Any) -> bool:
    """Save the steps so far and print how to continue. Return False if there are no steps."""
    record = getattr(selector, "record_", None)
    if record is None or not (len(record.trace) or record.parts or record.trace.state):
        return False
    path = asked.save_record
    if path is None:
        path = (asked.results_folder or free_folder(default_folder(asked.file))) / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    record.save(path)
    n = len(record.trace)
    done = f"{format_count(n, 'step')} {'is' if n == 1 else 'are'}"
    if not n:
        done = f"the state after {selector.progress()[2]} is"
    again = asked.command_line(resume=path, **others)
    notify(f"{why}; {done} in {path}. To continue, write:", again)
    return True


# -- results --------------------------------------------------------------------------------------


def _finish(result: SelectionResult) -> None:
    """Print and write the results, and print where the files are."""
    asked, selection = result.asked, result.selection
    if asked.output is not None:
        write_tables(
            asked.output,
            lambda: _facts(result) | {"record": selection.record_.to_dict()},
            lambda: ranking_sheet(result.ranking),
            safe=asked.safe_csv,
        )
    if asked.json:
        print_lines(json_text(_facts(result)).rstrip("\n"))
    else:
        _print_results(result)
    folder = asked.results_folder
    if folder is not None and isinstance(result.data, LabelledTable):
        try:
            write_results(result, folder)
        except KeyboardInterrupt:
            _leave(asked, selection)
    if asked.quiet:
        return
    for what, path in (("ranking", asked.output), ("record", asked.save_record)):
        if path is not None:
            notify(f"the {what} is in {path}.")
    if folder is not None:
        notify(f"the report is {folder / PAGE}; see also {SELECTED}, {RANKING} and {RECORD}.")


def _facts(result: SelectionResult) -> dict[str, Any]:
    """Return the results as a dictionary for JSON."""
    asked, data, selection, ranking, alerts = result
    sheet = ranking_sheet(ranking)
    return {
        "file": written_path(asked.file),
        "target": data.target,
        "task": data.task,
        "method": spec.write(selection, strict=False),
        "alerts": [str(alert) for alert in alerts],
        **({"cost": selection.cost_} if hasattr(selection, "cost_") else {}),
        "selected": selection.get_feature_names_out().tolist(),
        "summary": selection.summary().splitlines(),
        "ranking": [dict(zip(sheet.headings, row, strict=True)) for row in sheet.rows],
    }


def _print_results(result: SelectionResult) -> None:
    asked, data, selection, ranking, _ = result
    heading = [f"{asked.name}: {data}", spec.write(selection, strict=False)]
    inner = inner_selection(selection)
    if hasattr(inner, "error_guess_"):  # an automatic selection has its own summary
        first, *others = selection.summary().split("\n")
        heading[1:] = ["", first.partition(":")[0] + ":", *(f"  {line}" for line in others)]
    else:
        if not isinstance(walk_of(inner)._choice(), Size | Fraction):  # the method chose the number
            heading.append(selection.choice_.reason)
            heading += describe_slopes(selection)
        heading += selection.describe_price()
    if selection.record_.places:
        heading.append(selection.record_.places)
    moved = ranking.kept.copy()
    moved[selection.trace_.moves().unit] = True
    tried = ranking.order[moved[ranking.order]].tolist()
    print_ranking(ranking, tried, heading, asked.rows)
    pairs = strongest_pairs(selection, PAIRS)
    console = stdout()
    if pairs:
        console.print()
        console.print(text("strongest interactions: information beyond both columns alone (nats)"))
    for first_unit, second, information, p in pairs:
        names = f"{ranking.names[first_unit]} and {ranking.names[second]}"
        chance = "" if p is None else f" (p {p:.2g})"
        console.print(text(f"  {information:.3f}  {names}{chance}"))


def print_ranking(
    ranking: ChosenUnits, tried: Sequence[int], heading: Sequence[str], n_rows: int
) -> None:
    """Print the first units of the ranking, and mark the selected ones.

    A unit is a single column, or a group of columns that are selected together.
    """
    shown, word = tried[:n_rows], ranking.units.word
    scores = [float(ranking.scores[unit]) for unit in shown]
    scored = any(score == score for score in scores)  # some methods have only an order
    q = ranking.q_values
    heads = [
        "rank",
        word,
        *(["score", ""] if scored else []),
        *([] if q is None else ["q"]),
        "kept",
    ]
    table, console = make_table(heads, right=("rank", "score", "q")), stdout()
    top = max((score for score in scores if abs(score) < float("inf")), default=0.0)
    for rank, (unit, score) in enumerate(zip(shown, scores, strict=True), 1):
        kept = bool(ranking.kept[unit])
        cells = [text(rank), text(ranking.names[unit])]
        if scored:
            share = score / top if top > 0 and score == score else 0.0
            bar = _bar(share, fine=console.encoding.startswith("utf"))
            cells += [text("" if score != score else f"{score:.4g}"), text(bar, "blue")]
        if q is not None:
            cells.append(text("" if q[unit] != q[unit] else format_p_value(float(q[unit]))))
        table.add_row(*cells, text("yes" if kept else ""), style="" if kept else "dim")
    if not console.is_terminal:  # wide enough for all names
        console.width = max(
            PIPED, 50 + max((len(ranking.names[unit]) for unit in shown), default=0)
        )
    for line in heading:
        indent = len(line) - len(line.lstrip()) + 2
        for part in wrap_line(line, console.width, indent):
            console.print(text(part, style="bold" if line is heading[0] else ""))
    n_kept, n_units = int(ranking.kept.sum()), len(ranking.names)
    notes = [f"{n_kept} of {n_units} {word}s kept"]
    if q is not None:
        notes.append(Q_MEANING)
    if len(tried) > len(shown):
        notes.append(f"the first {len(shown)} are shown (--rows, --output)")
    if n_units > len(tried):
        others = "the other " if len(tried) == n_kept else ""
        notes.append(f"{others}{n_units - len(tried)} were never added")
    console.print("", table, "", text("; ".join(notes) + "."), sep="\n")


def _bar(share: float, fine: bool) -> str:
    whole, rest = divmod(round(8 * BAR * min(max(share, 0.0), 1.0)), 8)
    if not fine:  # the encoding lacks block characters
        return "#" * whole
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]

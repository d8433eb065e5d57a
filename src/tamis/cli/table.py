"""Options that name columns of the table: target, events, groups, weights and time order."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from sklearn.model_selection import TimeSeriesSplit

from tamis._format import format_names
from tamis.blocks.survival import SURVIVAL, censored_columns
from tamis.cli.options import SelectOptions
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes.request import TIME
from tamis.table import Table
from tamis.table.files import FileTable
from tamis.table.kinds import read_columns
from tamis.table.target import check_column, check_complete


def check_target(target: str | None, columns: Sequence[str], hint: str = "") -> None:
    """Raise an error if no target is named. Its message ends with ``hint``."""
    if target is None:
        raise InvalidTable(
            f"Which column is the target? Write --target with one of {format_names(columns[::-1])}."
            f"{hint}"
        )


def check_censored(asked: SelectOptions) -> None:
    """Raise an error unless ``--time`` and ``--event`` are given together, and without a target."""
    if asked.time is None and asked.event is None:
        return
    if asked.time is None or asked.event is None:
        given, other = ("event", "time") if asked.time is None else ("time", "event")
        raise InvalidParameter(f"--{given} needs --{other} too: a censored target has both.")
    if asked.target is not None or asked.task != "auto":
        also = "--target" if asked.target is not None else "--task"
        raise InvalidParameter(f"--time and --event are the target: leave {also} out.")


def events_of(frame: pl.DataFrame, event: str) -> pl.Series:
    """Return the column that contains 1 for events and 0 for censored rows."""
    check_column(event, frame.columns)
    happened = frame.get_column(event)
    if not (happened.dtype.is_numeric() or happened.dtype == pl.Boolean):
        raise InvalidTable(
            f"The column {event!r} of --event holds values such as {str(happened[0])!r}. Write 1 "
            "if the event was observed and 0 if not."
        )
    return happened.cast(pl.Float64)


def set_events(table: Table, happened: pl.Series) -> None:
    """Combine a table's target, which is a time, with the observed events."""
    columns: Any = pl.DataFrame({"time": pl.Series(table.y), "event": happened}).to_numpy()
    table.y, table.task = censored_columns("tamis select", columns), SURVIVAL


def parse_folds(cv: str | None) -> Any:
    """Parse ``--cv`` as a number of folds or a time series split."""
    if cv is None or cv.isdecimal():
        return None if cv is None else int(cv)
    if cv.startswith(TIME):
        return TimeSeriesSplit()
    raise InvalidParameter(f"--cv needs a number of folds or {TIME}COLUMN, not {cv!r}.")


def sort_by_time(content: FileTable, cv: str | None) -> None:
    """Sort the rows of a file by the column that ``--cv`` names."""
    if cv is None or not cv.startswith(TIME):
        return
    name = cv.removeprefix(TIME)
    check_column(name, content.frame.columns)
    times = read_columns(content.frame.get_column(name).to_frame())[0].to_series()
    if times.dtype == pl.String:
        raise InvalidTable(
            f"--cv {cv} needs dates or numbers, but {name!r} holds values such as {times[0]!r}."
        )
    check_complete(times)
    content.frame = content.frame[times.arg_sort()]


def row_groups(frame: pl.DataFrame, groups: str) -> Any:
    """Return the group of each row. Rows without a label form a single group."""
    check_column(groups, frame.columns)
    return frame.get_column(groups).cast(pl.String).fill_null("").to_numpy()


def row_metadata(
    frame: pl.DataFrame, labels: Mapping[str, str | None], weights: str | None
) -> dict[str, Any]:
    """Return the columns named by ``--groups``, ``--environments`` and ``--weights`` for ``fit``.

    ``labels`` maps "groups" and "environments" to the names of columns.
    """
    found: dict[str, Any] = {
        name: row_groups(frame, column) for name, column in labels.items() if column is not None
    }
    if (environments := labels.get("environments")) is not None:
        check_complete(frame.get_column(environments))
    if weights is not None:
        check_column(weights, frame.columns)
        column = frame.get_column(weights)
        if not column.dtype.is_numeric():
            raise InvalidTable(
                f"--weights needs numbers, but {weights!r} holds values such as {str(column[0])!r}."
            )
        check_complete(column)
        found["sample_weight"] = column.cast(pl.Float64).to_numpy()
    return found

"""A censored target of a file: the column of times and the column of events."""

from typing import Any

import polars as pl

from tamis.contract import SURVIVAL, censored_columns
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.table import Table
from tamis.table.target import check_column


def check_censored(target: str | None, time: str | None, event: str | None, task: str) -> None:
    """Refuse one half of a censored target, and two targets."""
    if time is None and event is None:
        return
    if time is None or event is None:
        given, other = ("--event", "--time") if time is None else ("--time", "--event")
        raise InvalidParameter(f"{given} needs {other} too: a censored target is made of both.")
    if target is not None or task != "auto":
        also = "--target" if target is not None else "--task"
        raise InvalidParameter(f"--time and --event are the target: leave {also} out.")


def refuse_censored(command: str, time: str | None, event: str | None) -> None:
    """Refuse a censored target where a command has no measure for it."""
    if time is not None or event is not None:
        raise InvalidParameter(
            f"{command} measures classes and numbers, and has no measure for times that are "
            "censored. Write tamis select with --time and --event for the ranking, and compare by "
            "scikit-survival in Python."
        )


def events_of(frame: pl.DataFrame, event: str) -> pl.Series:
    """The column of a file that tells which events were seen."""
    check_column(event, frame.columns)
    happened = frame.get_column(event)
    if not (happened.dtype.is_numeric() or happened.dtype == pl.Boolean):
        raise InvalidTable(
            f"The column {event!r} of --event holds values such as {str(happened[0])!r}. Write 1 "
            "where the event was seen and 0 where it was not."
        )
    return happened.cast(pl.Float64)


def with_events(table: Table, happened: pl.Series) -> None:
    """Give a table whose target is a time the events that were seen."""
    columns: Any = pl.DataFrame({"time": pl.Series(table.y), "event": happened}).to_numpy()
    table.y, table.task = censored_columns("tamis select", columns), SURVIVAL

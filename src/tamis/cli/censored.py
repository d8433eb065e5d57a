"""A censored target of a file: the column of times and the column of events."""

from typing import Any

import polars as pl

from tamis.cli.tables import LabelledTable
from tamis.contract import SURVIVAL, censored_columns
from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.spec import did_you_mean


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


def with_events(data: LabelledTable, event: str) -> LabelledTable:
    """The table whose target is a time, with the events that one of its columns tells."""
    if event not in data.X.columns:
        raise InvalidTable(
            f"There is no column {event!r} for --event.{did_you_mean(event, data.X.columns)}"
        )
    happened = data.X.get_column(event).cast(pl.Float64).to_numpy()
    columns: Any = pl.DataFrame({"time": data.y, "event": happened}).to_numpy()
    y = censored_columns("tamis select", columns)
    return data._replace(X=data.X.drop(event), y=y, task=SURVIVAL)

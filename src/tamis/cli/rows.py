"""Options of ``tamis select`` about rows: folds, groups and weights."""

from typing import Any

import polars as pl
from sklearn.model_selection import TimeSeriesSplit

from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.recipes.choosing import TIME
from tamis.table.files import FileTable
from tamis.table.kinds import as_dates, columns_of
from tamis.table.target import check_column, check_complete


def folds_of(cv: str | None) -> Any:
    """Return ``--cv`` as a number of folds, or as folds that follow the rows."""
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
    column = content.frame.get_column(name)
    written = columns_of(column.to_frame()).written.get(0)
    times = as_dates(column, written) if written is not None else column
    if times.dtype == pl.String:
        raise InvalidTable(
            f"--cv {cv} needs dates or numbers, but {name!r} holds values such as {times[0]!r}."
        )
    check_complete(times, "")
    content.frame = content.frame[times.arg_sort()]


def row_metadata(frame: pl.DataFrame, groups: str | None, weights: str | None) -> dict[str, Any]:
    """Return what ``--groups`` and ``--weights`` name, as ``fit`` takes it."""
    found: dict[str, Any] = {}
    if groups is not None:
        check_column(groups, frame.columns)
        # a missing label is a group of its own
        found["groups"] = frame.get_column(groups).cast(pl.String).fill_null("").to_numpy()
    if weights is not None:
        check_column(weights, frame.columns)
        column = frame.get_column(weights)
        if not column.dtype.is_numeric():
            raise InvalidTable(
                f"--weights needs numbers, but {weights!r} holds values such as {str(column[0])!r}."
            )
        check_complete(column, "")
        found["sample_weight"] = column.cast(pl.Float64).to_numpy()
    return found

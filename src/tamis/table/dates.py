"""Parts of the calendar as columns of their own."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.table.frames import as_polars, library_of
from tamis.table.kinds import as_dates, columns_of
from tamis.table.target import check_column

#: Parts of the calendar; the year is left to the number of days.
PARTS = ("month", "day", "weekday", "hour")


def add_calendar(frame: Any, columns: Sequence[str] | None = None) -> Any:
    """Add the calendar parts of dates to a frame, as columns of their own.

    A selection uses a date as its position in time, one number of days. Where the target may
    follow the season, the weekday or the hour, add these as columns before the selection: each is
    then ranked and selected by itself. On the command line the option is ``--calendar``.

    Parameters
    ----------
    frame : frame of pandas, polars or pyarrow
    columns : list of str, optional
        The columns of dates; by default all of them, texts that are dates included.

    Returns
    -------
    frame
        A frame of the same library with ``NAME_month``, ``NAME_day`` (of the month),
        ``NAME_weekday`` (Monday is 1) and ``NAME_hour`` behind the other columns, as far as they
        vary.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"sold": ["2024-01-31", "2024-02-01"], "price": [3.5, 4.0]})
    >>> add_calendar(frame).row(0, named=True)
    {'sold': '2024-01-31', 'price': 3.5, 'sold_month': 1, 'sold_day': 31, 'sold_weekday': 3}
    """
    if isinstance(columns, str):
        raise InvalidParameter(
            f"add_calendar needs a list of columns, not {columns!r}. Write columns=[{columns!r}]."
        )
    table = as_polars(frame)
    seen = columns_of(table)
    dates = seen.of_kind("date")
    if columns is not None:
        for name in columns:
            check_column(name, seen.names)
            if (kind := seen.kind[seen.names.index(name)]) != "date":
                raise InvalidTable(
                    f"add_calendar needs columns of dates, but {name!r} is of kind {kind}. Convert "
                    "it to dates, or leave it out."
                )
        dates = [j for j in dates if seen.names[j] in columns]
    added = [
        part for j in dates for part in _parts(as_dates(table.to_series(j), seen.written.get(j)))
    ]
    for part in added:
        if part.name in seen.names:
            raise InvalidTable(
                f"add_calendar adds the column {part.name!r}, which the table has. Rename it, or "
                "name other columns."
            )
    return _with(frame, added)


def _parts(dates: pl.Series) -> list[pl.Series]:
    """The parts of a column of dates that vary."""
    if dates.dtype == pl.Duration:  # a span has no place in the calendar
        return []
    parts = ("hour",) if dates.dtype == pl.Time else PARTS[: 3 if dates.dtype == pl.Date else 4]
    found = [getattr(dates.dt, part)().alias(f"{dates.name}_{part}") for part in parts]
    return [part for part in found if part.drop_nulls().n_unique() > 1]


def _with(frame: Any, added: list[pl.Series]) -> Any:
    """A frame with more columns, in its own library."""
    library = library_of(frame)
    if library == "pandas":
        return frame.assign(**{part.name: part.to_numpy() for part in added})
    if library == "pyarrow":
        for part in added:
            frame = frame.append_column(part.name, part.to_arrow())
        return frame
    return frame.hstack(added)

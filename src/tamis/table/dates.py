"""Calendar parts of dates as separate columns."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from tamis.exceptions import InvalidParameter, InvalidTable
from tamis.table.frames import as_polars, library_of
from tamis.table.kinds import columns_of, read_columns
from tamis.table.target import check_column

#: Parts of a date that become columns. The year is omitted, because the date itself is already used
#: as a number of days.
PARTS = ("month", "day", "weekday", "hour")


def add_calendar(frame: Any, columns: Sequence[str] | None = None) -> Any:
    """Add month, day, weekday and hour of dates to a frame, as separate columns.

    By default, a selection uses each date as a single number of days. If the target may depend on
    the season, the weekday or the hour, add these columns before the selection. Each added column
    is ranked and selected separately. The command-line option is ``--calendar``.

    Parameters
    ----------
    frame : frame of pandas, polars or pyarrow
        The table.
    columns : list of str, optional
        The columns of dates. By default, all of them, including text columns that hold dates.

    Returns
    -------
    frame
        A frame of the same library with ``NAME_month``, ``NAME_day`` (of the month),
        ``NAME_weekday`` (Monday is 1) and ``NAME_hour`` after the other columns. Parts that do not
        vary are left out.

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
    table, _ = read_columns(as_polars(frame))
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
    added = [part for j in dates for part in _parts(table.to_series(j))]
    for part in added:
        if part.name in seen.names:
            raise InvalidTable(
                f"add_calendar adds the column {part.name!r}, which the table already has. Rename "
                "it, or give other columns."
            )
    return _with(frame, added)


def _parts(dates: pl.Series) -> list[pl.Series]:
    """Return the calendar parts of a date column that are not constant."""
    if dates.dtype == pl.Duration:  # durations have no calendar parts
        return []
    parts = ("hour",) if dates.dtype == pl.Time else PARTS[: 3 if dates.dtype == pl.Date else 4]
    found = [getattr(dates.dt, part)().alias(f"{dates.name}_{part}") for part in parts]
    return [part for part in found if part.drop_nulls().n_unique() > 1]


def _with(frame: Any, added: list[pl.Series]) -> Any:
    """Return a frame of the same library with the columns added."""
    library = library_of(frame)
    if library == "pandas":
        return frame.assign(**{part.name: part.to_numpy() for part in added})
    if library == "pyarrow":
        for part in added:
            frame = frame.append_column(part.name, part.to_arrow())
        return frame
    return frame.hstack(added)

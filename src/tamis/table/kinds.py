"""Kinds of columns: number, category, boolean, date, text, identifier or constant.

A kind states how a column is used, not how it is stored.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tamis._arrays import Array, Mask

if TYPE_CHECKING:
    from tamis.table.alerts import Alert

#: Number of cells in a block of columns. It is large enough for polars and numpy to do most of the
#: work, and small enough (1 MB) for the processor's cache. On 10^5 columns, this is 4 times as fast
#: as blocks of 32 MB.
CELLS = 1 << 17
#: Types that numpy has too. Casting 10^5 columns in polars would take longer than all other steps.
OF_NUMPY = {
    pl.Float32, pl.Float64, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32,
    pl.UInt64,
}  # fmt: skip
#: With at most this number of levels, text is a category even if most levels are rare. With more,
#: text is a category only if levels have ten rows on average. skrub uses the same limit of 40.
FEW_LEVELS, ROWS_PER_LEVEL = 40, 10
#: Distinct integers that number the rows, or have a name like "id", are treated as an identifier if
#: the table has at least this number of rows. In a shorter table, this may happen by chance.
COUNTED_ROWS = 20
#: Number of strings that are parsed first to find out whether a column holds dates.
FIRST_LOOK = 50
#: Date formats, unambiguous ones first. If both orders are possible, the day precedes the month.
DATE_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%b-%Y", "%d %b %Y",
)  # fmt: skip
#: Seconds in a day. Dates are encoded in days.
DAY = 86_400
#: Pattern for names of identifiers: id, patient_id, PassengerId, SampleID, uuid, row.names.
CALLED_ID = re.compile(
    r"(?i:(^|[\W_])(id|ids|uuid|guid|index|idx|rownames|row\.names)$)|[a-z](Id|ID)$"
)

#: Pattern for codes such as C-0017, after letters are replaced by a and digits by 0.
CODE_SHAPE = re.compile(r"(?=.*a)\S*000\S*")


@dataclass(frozen=True)
class TableProfile:
    """Properties of all columns of a table, as arrays.

    Attributes
    ----------
    names : list of str
    kind : array of str
    n_missing, n_infinite, n_levels : array of int
        Counts for each column. ``n_levels`` is 0 if levels were not counted, as for real numbers.
    mixed : array of bool
        Whether a column holds both numbers and text.
    written : dict of int to str
        Date format of each text column that holds dates, by column index.
    power : array of float
        Share of the baseline's errors that the column avoids on its own. NaN if not measured.
    aside : dict of str to str
        Columns that are excluded, and why.
    alerts : tuple of Alert
    """

    names: list[str]
    kind: np.ndarray
    n_missing: np.ndarray
    n_infinite: np.ndarray
    n_levels: np.ndarray
    mixed: Mask
    written: dict[int, str]
    power: Array = field(default_factory=lambda: np.empty(0))
    aside: dict[str, str] = field(default_factory=dict)
    alerts: "tuple[Alert, ...]" = ()

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column by its name."""
        return dict(zip(self.names, self.kind.tolist(), strict=True))

    @property
    def used(self) -> list[int]:
        """Indices of the columns that are not excluded."""
        return [j for j, name in enumerate(self.names) if name not in self.aside]

    def of_kind(self, *kinds: str) -> list[int]:
        """Return the indices of the columns that have one of these kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds)).tolist()


def columns_of(frame: pl.DataFrame, unnamed: Collection[str] = ()) -> TableProfile:
    """Return the kinds of a frame's columns. Columns in ``unnamed`` have no name in the file."""
    kind = np.full(frame.width, "number", dtype=object)
    missing, infinite, levels = np.zeros((3, frame.width), dtype=np.int64)
    mixed = np.zeros(frame.width, dtype=bool)
    seen = TableProfile(frame.columns, kind, missing, infinite, levels, mixed, {})
    numeric = holds_numbers(frame)
    for block in blocks(frame.height, np.flatnonzero(numeric).tolist()):
        _examine_numbers(frame, block, seen, unnamed)
    for j in np.flatnonzero(~numeric).tolist():
        _examine_other(frame.to_series(j), j, seen)
    return seen


def holds_numbers(frame: pl.DataFrame) -> Mask:
    """Return a mask of the columns that have a numeric type."""
    return np.array([dtype.is_numeric() for dtype in frame.dtypes], dtype=bool)


def blocks(n_rows: int, columns: Any) -> Iterator[Any]:
    """Yield the columns in blocks that are small enough to copy."""
    width = max(1, CELLS // max(n_rows, 1))
    for start in range(0, len(columns), width):
        yield columns[start : start + width]


def numbers(frame: pl.DataFrame, block: list[int]) -> Array:
    """Return a block of columns as a new array, with NaN for values that are not numbers."""
    if not block:
        return np.empty((frame.height, 0))
    return all_numbers(frame if len(block) == frame.width else frame[:, block])


def all_numbers(frame: pl.DataFrame) -> Array:
    """Return all columns as a new array, with NaN for values that are not numbers."""
    if not {type(dtype) for dtype in frame.dtypes} <= OF_NUMPY:
        frame = frame.cast(pl.Float64, strict=False)
    X = frame.to_numpy(order="fortran", writable=True)
    return np.asarray(X, dtype=np.float64, order="F")


def _examine_numbers(
    frame: pl.DataFrame, block: list[int], seen: TableProfile, unnamed: Collection[str]
) -> None:
    X = numbers(frame, block)
    missing, infinite = np.isnan(X), np.isinf(X)
    seen.n_missing[block], seen.n_infinite[block] = missing.sum(axis=0), infinite.sum(axis=0)
    low = np.where(missing, np.inf, X).min(axis=0)
    high = np.where(missing, -np.inf, X).max(axis=0)
    constant = (low > high) | ((low == high) & ~missing.any(axis=0))
    seen.kind[np.array(block)[constant]] = "constant"
    integers: Mask = np.all(np.where(missing | infinite, 0, X) % 1 == 0, axis=0)
    for i in np.flatnonzero(integers & ~constant).tolist():
        name = seen.names[block[i]]
        if counts_rows(X[:, i], name, name in unnamed):
            seen.kind[block[i]] = "identifier"


def counts_rows(x: Array, name: str, made_up: bool) -> bool:
    """Return whether integers number the rows, or are distinct and have an identifier's name."""
    x = x[~np.isnan(x)]
    if len(x) < (2 if made_up else COUNTED_ROWS):
        return False
    steps = np.diff(x)
    in_order = steps[0] != 0 and bool((steps == steps[0]).all())
    named = made_up or is_called_id(name)
    return in_order or (named and len(np.unique(x)) == len(x))


def is_called_id(name: str) -> bool:
    """Return whether a column is named like an identifier.

    >>> [is_called_id(name) for name in ("customer_id", "PatientID", "acid")]
    [True, True, False]
    """
    return CALLED_ID.search(name) is not None


def are_codes(texts: pl.Series) -> bool:
    """Return whether all strings have the same shape, with letters and three digits in a row.

    >>> are_codes(pl.Series(["C-0017", "C-0423"])), are_codes(pl.Series(["Ulm 1000", "Bonn 1"]))
    (True, False)
    """
    shapes = texts.str.replace_all(r"\d", "0").str.replace_all(r"[a-zA-Z]", "a").unique()
    return len(shapes) == 1 and CODE_SHAPE.fullmatch(shapes[0]) is not None


def _examine_other(column: pl.Series, j: int, seen: TableProfile) -> None:
    seen.n_missing[j] = column.null_count()
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        seen.kind[j] = "text"
        return
    values = column.drop_nulls()
    seen.n_levels[j] = n_levels = values.n_unique() if len(values) else 0
    if n_levels == 0 or (n_levels == 1 and not seen.n_missing[j]):
        seen.kind[j] = "constant"
    elif column.dtype == pl.Boolean:
        seen.kind[j] = "boolean"
    elif column.dtype.is_temporal():
        seen.kind[j] = "date"
    elif column.dtype in (pl.Categorical, pl.Enum):
        seen.kind[j] = "category"
    else:
        seen.kind[j] = _text_kind(values.cast(pl.String), j, n_levels, seen)


def _text_kind(texts: pl.Series, j: int, n_levels: int, seen: TableProfile) -> str:
    if (written := date_format(texts)) is not None:
        seen.written[j] = written
        return "date"
    n_numbers = int(texts.cast(pl.Float64, strict=False).is_not_null().sum())
    seen.mixed[j] = 0 < n_numbers < len(texts)
    is_prose = 2 * int(texts.str.strip_chars().str.contains(r"\s").sum()) > len(texts)
    if n_levels == len(texts) and not is_prose:
        return "identifier"
    few = n_levels <= FEW_LEVELS and n_levels <= max(2, len(texts) // 2)
    return "category" if few or ROWS_PER_LEVEL * n_levels <= len(texts) else "text"


def date_format(texts: pl.Series) -> str | None:
    """Return the date format that all strings have, or None if there is none."""
    first = texts.head(FIRST_LOOK)
    if not len(first) or not first.str.contains(r"^\s*\d").all():
        return None
    for written in DATE_FORMATS:
        if not _dates(first, written).null_count() and not _dates(texts, written).null_count():
            return written
    return None


def _dates(texts: pl.Series, written: str) -> pl.Series:
    kind = pl.Datetime if "%H" in written else pl.Date
    return texts.str.strip_chars().str.strptime(kind, written, strict=False)


def as_dates(column: pl.Series, written: str | None) -> pl.Series:
    """Convert strings of the format ``written`` to dates. If it is None, they are dates already."""
    return column if written is None else _dates(column.cast(pl.String), written)


def days_of(dates: pl.Series) -> Array:
    """Return dates as days since 1970, and durations and times of day as a number of days."""
    if dates.dtype == pl.Date:
        days: Array = dates.to_physical().cast(pl.Float64).to_numpy()
        return days
    if dates.dtype == pl.Duration:
        seconds = dates.dt.total_microseconds().cast(pl.Float64) / 1e6
    elif dates.dtype == pl.Time:
        seconds = dates.to_physical().cast(pl.Float64) / 1e9
    else:
        seconds = dates.dt.epoch("us").cast(pl.Float64) / 1e6
    return (seconds / DAY).to_numpy()

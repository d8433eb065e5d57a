"""The kind of each column: what its values are for, not how they are stored."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tamis._arrays import Array, Mask

if TYPE_CHECKING:
    from tamis.table.alerts import Alert

#: What a column can be.
KINDS = ("number", "category", "boolean", "date", "text", "identifier", "constant")

#: Cells that are looked at together: enough that polars and numpy have more to do than Python, few
#: enough (1 MB) to stay in the processor's cache: 4 times as fast as 32 MB on 10^5 columns.
CELLS = 1 << 17
#: Numbers that numpy has too: polars' own casts of 10^5 columns take longer than all else.
OF_NUMPY = {
    pl.Float32, pl.Float64, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32,
    pl.UInt64,
}  # fmt: skip
#: Levels up to which words are a category even if most of them are seen few times; beyond it only
#: if each is seen ten times on average. skrub draws the same line at 40.
FEW_LEVELS, ROWS_PER_LEVEL = 40, 10
#: Rows from which whole numbers that are all different, and count the rows or are called an
#: identifier, are taken for one: in a shorter table that happens by chance.
COUNTED_ROWS = 20
#: Texts that are read to see whether a column holds dates, before all of them are.
FIRST_LOOK = 50
#: How dates are written, the unmistakable first; day first where both orders would do.
DATE_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%b-%Y", "%d %b %Y",
)  # fmt: skip
#: Seconds of a day: the number of a date is in days.
DAY = 86_400
#: Names that people give to identifiers: id, patient_id, PassengerId, SampleID, uuid, row.names.
CALLED_ID = re.compile(
    r"(?i:(^|[\W_])(id|ids|uuid|guid|index|idx|rownames|row\.names)$)|[a-z](Id|ID)$"
)

#: Codes such as C-0017, with a for letters and 0 for digits.
CODE_SHAPE = re.compile(r"(?=.*a)\S*000\S*")


@dataclass(frozen=True)
class TableProfile:
    """What is known of the columns of a table, as arrays.

    Attributes
    ----------
    names : list of str
    kind : array of str
    n_missing, n_infinite, n_levels : array of int
        ``n_levels`` is 0 where it was not counted, as of real numbers.
    mixed : array of bool
        Whether a few words stand among numbers.
    written : dict of int to str
        The format of the dates in columns of text.
    power : array of float
        How much of the errors of a constant guess a column does away with alone; nan: not asked.
    aside : dict of str to str
        Columns that no search is offered, and why.
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
        """Indices of the columns that a search is offered."""
        return [j for j, name in enumerate(self.names) if name not in self.aside]

    def of_kind(self, *kinds: str) -> list[int]:
        """Indices of the columns of these kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds)).tolist()


def columns_of(frame: pl.DataFrame, unnamed: Collection[str] = ()) -> TableProfile:
    """The kinds of the columns of a frame; ``unnamed`` are those whose name was made up."""
    d = frame.width
    seen = TableProfile(
        frame.columns,
        np.full(d, "number", dtype=object),
        np.zeros(d, dtype=np.int64),
        np.zeros(d, dtype=np.int64),
        np.zeros(d, dtype=np.int64),
        np.zeros(d, dtype=bool),
        {},
    )
    numeric = holds_numbers(frame)
    for block in blocks(frame.height, np.flatnonzero(numeric).tolist()):
        _look_at_numbers(frame, block, seen, unnamed)
    for j in np.flatnonzero(~numeric).tolist():
        _look_at_others(frame.to_series(j), j, seen)
    return seen


def holds_numbers(frame: pl.DataFrame) -> Mask:
    """Whether each column is of a numeric type."""
    return np.array([dtype.is_numeric() for dtype in frame.dtypes], dtype=bool)


def blocks(n_rows: int, columns: Any) -> Iterator[Any]:
    """Yield a list or array of columns in pieces of which a copy may be held."""
    width = max(1, CELLS // max(n_rows, 1))
    for start in range(0, len(columns), width):
        yield columns[start : start + width]


def numbers(frame: pl.DataFrame, block: list[int]) -> Array:
    """Some columns as one new array of numbers, NaN where there is none."""
    if not block:
        return np.empty((frame.height, 0))
    return all_numbers(frame if len(block) == frame.width else frame[:, block])


def all_numbers(frame: pl.DataFrame) -> Array:
    """All columns as one new array of numbers, NaN where there is none."""
    if not {type(dtype) for dtype in frame.dtypes} <= OF_NUMPY:
        frame = frame.cast(pl.Float64, strict=False)
    X = frame.to_numpy(order="fortran", writable=True)
    return np.asarray(X, dtype=np.float64, order="F")


def _look_at_numbers(
    frame: pl.DataFrame, block: list[int], seen: TableProfile, unnamed: Collection[str]
) -> None:
    X = numbers(frame, block)
    missing, infinite = np.isnan(X), np.isinf(X)
    seen.n_missing[block], seen.n_infinite[block] = missing.sum(axis=0), infinite.sum(axis=0)
    low = np.where(missing, np.inf, X).min(axis=0)
    high = np.where(missing, -np.inf, X).max(axis=0)
    constant = (low > high) | ((low == high) & ~missing.any(axis=0))
    seen.kind[np.array(block)[constant]] = "constant"
    whole: Mask = np.all(np.where(missing | infinite, 0, X) % 1 == 0, axis=0)
    for i in np.flatnonzero(whole & ~constant).tolist():
        name = seen.names[block[i]]
        if counts_rows(X[:, i], name, name in unnamed):
            seen.kind[block[i]] = "identifier"


def counts_rows(x: Array, name: str, made_up: bool) -> bool:
    """Whether whole numbers that are all different number the rows, or are said to."""
    x = x[~np.isnan(x)]
    if len(x) < (2 if made_up else COUNTED_ROWS):
        return False
    steps = np.diff(x)
    in_order = steps[0] != 0 and bool((steps == steps[0]).all())
    named = made_up or is_called_id(name)
    return in_order or (named and len(np.unique(x)) == len(x))


def is_called_id(name: str) -> bool:
    """Whether a column is named as identifiers are.

    >>> [is_called_id(name) for name in ("customer_id", "PatientID", "acid")]
    [True, True, False]
    """
    return CALLED_ID.search(name) is not None


def are_codes(words: pl.Series) -> bool:
    """Whether all texts have one shape, of letters and at least three digits in a row.

    >>> are_codes(pl.Series(["C-0017", "C-0423"])), are_codes(pl.Series(["Ulm 1000", "Bonn 1"]))
    (True, False)
    """
    shapes = words.str.replace_all(r"\d", "0").str.replace_all(r"[a-zA-Z]", "a").unique()
    return len(shapes) == 1 and CODE_SHAPE.fullmatch(shapes[0]) is not None


def _look_at_others(column: pl.Series, j: int, seen: TableProfile) -> None:
    seen.n_missing[j] = column.null_count()
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        seen.kind[j] = "text"
        return
    held = column.drop_nulls()
    seen.n_levels[j] = n_levels = held.n_unique() if len(held) else 0
    if n_levels == 0 or (n_levels == 1 and not seen.n_missing[j]):
        seen.kind[j] = "constant"
    elif column.dtype == pl.Boolean:
        seen.kind[j] = "boolean"
    elif column.dtype.is_temporal():
        seen.kind[j] = "date"
    elif column.dtype in (pl.Categorical, pl.Enum):
        seen.kind[j] = "category"
    else:
        seen.kind[j] = _kind_of_words(held, j, n_levels, seen)


def _kind_of_words(held: pl.Series, j: int, n_levels: int, seen: TableProfile) -> str:
    words = held.cast(pl.String)
    if (written := date_format(words)) is not None:
        seen.written[j] = written
        return "date"
    are_numbers = int(words.cast(pl.Float64, strict=False).is_not_null().sum())
    seen.mixed[j] = 0 < are_numbers < len(words)
    if n_levels == len(words) and not _reads_as_prose(words):
        return "identifier"
    few = n_levels <= FEW_LEVELS and n_levels <= max(2, len(words) // 2)
    return "category" if few or ROWS_PER_LEVEL * n_levels <= len(words) else "text"


def _reads_as_prose(words: pl.Series) -> bool:
    """Whether most of the texts are of several words."""
    return 2 * int(words.str.strip_chars().str.contains(r"\s").sum()) > len(words)


def date_format(words: pl.Series) -> str | None:
    """The one format in which all the texts are dates."""
    first = words.head(FIRST_LOOK)
    if not len(first) or not first.str.contains(r"^\s*\d").all():
        return None
    for written in DATE_FORMATS:
        if not _dates(first, written).null_count() and not _dates(words, written).null_count():
            return written
    return None


def _dates(words: pl.Series, written: str) -> pl.Series:
    kind = pl.Datetime if "%H" in written else pl.Date
    return words.str.strip_chars().str.strptime(kind, written, strict=False)


def as_dates(column: pl.Series, written: str | None) -> pl.Series:
    """A column of dates, from one that holds dates or texts of them."""
    return column if written is None else _dates(column.cast(pl.String), written)


def days_of(dates: pl.Series) -> Array:
    """Days since 1970, or of a span or a time of day."""
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

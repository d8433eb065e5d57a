"""Kinds of columns: number, category, boolean, date, text, identifier or constant.

A kind states how a column is used, not how it is stored.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
#: A column of distinct integers is treated as an identifier if it numbers the rows or is named like
#: an identifier, and if it has at least this number of rows. In a shorter table, a column may
#: number the rows by chance.
COUNTED_ROWS = 20
#: Only this number of strings is parsed first, to find out whether a column may hold dates.
FIRST_LOOK = 50
#: In a column of at most this number of rows, Python counts values faster than polars.
FEW_ROWS = 10_000
#: Types of text. Categories have codes for missing values, but are never dates or numbers.
TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)
#: Pattern that every date and every number contains.
DIGIT = re.compile("[0-9]")
#: Pattern that every text contains if polars can read it as a number.
MAYBE_NUMBER = re.compile("(?i)[0-9]|inf|nan")
#: Date formats, unambiguous ones first. If both orders are possible, the day precedes the month.
#: The format %+ is ISO 8601 with an offset from UTC.
DATE_FORMATS = (
    "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%+", "%Y/%m/%d",
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%y",
    "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y",
)  # fmt: skip
#: Patterns that a date must match, for years of four and of two digits. Without them, the version
#: number 1.2.3 would be a date in the year 3.
FOUR_DIGITS, TWO_DIGITS = r"\d{4}", r"^(\d\d\.\d\d\.\d\d|\d\d?/\d\d?/\d\d|\d\d?-[A-Za-z]{3}-\d\d)$"
#: Strings that are read as missing values.
MISSING = [
    "", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None",
]  # fmt: skip
#: Words that are read as missing values, in any case, if all other values are numbers or dates.
MISSING_WORDS = {
    *map(str.lower, MISSING), "-", "--", "–", ".", "n.a.", "nil", "missing", "unknown", "#value!",
    "#ref!", "#div/0!",
}  # fmt: skip
#: Numbers that often stand for a missing value: 99, -99, 999, -999, 9999 and so on.
CODES = np.array([sign * (10.0**k - 1) for k in range(2, 10) for sign in (-1, 1)])
#: The same numbers as text. Even in a column of percentages, they have no percent sign.
CODE_TEXTS = [f"{code:.0f}" for code in CODES]
#: Such a number is read as missing if its distance from the other values is at least this multiple
#: of their range. At least FEWEST_OTHERS other values are needed.
FAR_RANGES, FEWEST_OTHERS = 3.0, 10
#: Percent sign, and symbols and abbreviations of currencies.
UNITS = (
    r"%|[A-Z]{0,2}\p{Sc}|(?i:EURO?|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF)"
    r"|Fr\.|kr\.?|zł|Kč|Ft"
)
#: A number in a text: parentheses or a sign, a unit, and digits with separators.
WRITTEN_NUMBER = (
    rf"^\(?\s*[-+−]?\s*(?:{UNITS})?\s*[-+−]?\s*([.,]?[0-9](?:[0-9.,'’]|\s[0-9])*(?:[eE][-+]?[0-9]+)?)"
    rf"\s*(?:{UNITS})?\s*\)?$"
)
#: Separators of decimals and of thousands, in the order in which they are tried. Apostrophes are
#: replaced by spaces first.
SEPARATORS = [(".", ""), (".", ","), (".", " "), (",", ""), (",", "."), (",", " ")]
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
        Names of the columns.
    kind : array of str
        Kind of each column: number, category, boolean, date, text, identifier or constant.
    n_missing, n_infinite, n_levels : array of int
        Counts for each column. ``n_levels`` is 0 if levels were not counted, as for real numbers.
    mixed : array of bool
        Whether a column holds both numbers and text.
    readings : dict of str to Reading
        How the values were read, for columns in which they differ from the stored values.
    power : array of float
        Share of the baseline's errors that the column avoids on its own. NaN if not measured.
    alone : array of float
        Rank-based strength of the column on its own; see :class:`tamis.table.leaks.Strength`. NaN
        if not measured.
    aside : dict of str to str
        Columns that are excluded, and why.
    alerts : tuple of Alert
        Findings about the table.
    """

    names: list[str]
    kind: np.ndarray
    n_missing: np.ndarray
    n_infinite: np.ndarray
    n_levels: np.ndarray
    mixed: Mask
    readings: "Mapping[str, Reading]" = field(default_factory=dict)
    power: Array = field(default_factory=lambda: np.empty(0))
    alone: Array = field(default_factory=lambda: np.empty(0))
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
    """Return the kinds of a frame's columns. Columns in ``unnamed`` have no name in the file.

    Text columns are not parsed here; see :func:`read_columns`.
    """
    kind = np.full(frame.width, "number", dtype=object)
    missing, infinite, levels = np.zeros((3, frame.width), dtype=np.int64)
    mixed = np.zeros(frame.width, dtype=bool)
    seen = TableProfile(frame.columns, kind, missing, infinite, levels, mixed)
    numeric = holds_numbers(frame)
    for block in blocks(frame.height, np.flatnonzero(numeric).tolist()):
        _examine_numbers(frame, block, seen, unnamed)
    for j in np.flatnonzero(~numeric).tolist():
        _examine_other(frame.to_series(j), j, seen)
    return seen


def nameless(column: pl.Series) -> pl.Series:
    """Return a column without its name. polars uses names such as ^a.*$ as a pattern."""
    return column.alias("")


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
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values have no steps
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
    values = nameless(column)
    values = values.drop_nulls() if seen.n_missing[j] else values
    if column.dtype == pl.String and len(values) <= FEW_ROWS:
        seen.n_levels[j] = n_levels = len(set(values.to_list()))
    else:
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
    n_numbers, n_prose = _count_numbers_and_prose(texts)
    seen.mixed[j] = 0 < n_numbers < len(texts)
    if n_levels == len(texts) and 2 * n_prose <= len(texts):
        return "identifier"
    few = n_levels <= FEW_LEVELS and n_levels <= max(2, len(texts) // 2)
    return "category" if few or ROWS_PER_LEVEL * n_levels <= len(texts) else "text"


def _count_numbers_and_prose(texts: pl.Series) -> tuple[int, int]:
    """Return how many texts are numbers, and how many consist of several words."""
    if len(texts) > FEW_ROWS:
        numbers = texts.cast(pl.Float64, strict=False).is_not_null()
        return int(numbers.sum()), int(texts.str.strip_chars().str.contains(r"\s").sum())
    counts = Counter(texts.to_list())
    maybe = [text for text in counts if MAYBE_NUMBER.search(text)]
    values = pl.Series(maybe, dtype=pl.String).cast(pl.Float64, strict=False).to_list()
    sure = [text for text, value in zip(maybe, values, strict=True) if value is not None]
    n_prose = sum(n for text, n in counts.items() if len(text.split()) > 1)
    return sum(counts[text] for text in sure), n_prose


# -- values to convert: dates, amounts, codes for missing values ----------------------------------


class NumberFormat(NamedTuple):
    """The way in which numbers are written in a text column.

    Attributes
    ----------
    decimal, group : str
        Separator of decimals, and separator of thousands ("" if there is none).
    example : str
        An example of a value that is not a plain number, "" if there is none.
    doubtful : bool
        Whether the meaning of a separator is unknown, because no value shows it, as in 1,234.
    """

    decimal: str
    group: str
    example: str
    doubtful: bool = False

    def parse(self, texts: pl.Series) -> pl.Series:
        """Return the numbers. Strings in other formats become missing."""
        digits = _digits(texts)
        digits = digits.set(~digits.str.contains(_pattern(self.decimal, self.group)), None)
        digits = digits.str.replace_all(self.group, "", literal=True) if self.group else digits
        values = digits.str.replace(self.decimal, ".", literal=True).cast(pl.Float64)
        negative = texts.str.contains(r"^\(|^[^\d.,]*[-−]")
        return values * (1 - 2 * negative.cast(pl.Int8))


@dataclass(frozen=True)
class Reading:
    """How the stored values of a column are read.

    Attributes
    ----------
    dates : str or None
        Date format of a text column that holds dates.
    numbers : NumberFormat or None
        Number format of a text column that holds numbers.
    codes : dict of str or float to int
        Values that stand for a missing value, and the number of rows that have each.
    """

    dates: str | None = None
    numbers: NumberFormat | None = None
    codes: Mapping[Any, int] = field(default_factory=dict)

    def read(self, column: pl.Series) -> pl.Series:
        """Return the values that the stored values mean. Columns of other types are unchanged."""
        name, column = column.name, nameless(column)
        words = [code for code in self.codes if isinstance(code, str)]
        if isinstance(column.dtype, pl.Categorical | pl.Enum):
            column = column.set(column.cast(pl.String).is_in(words), None)
        if column.dtype == pl.String:
            column = column.str.strip_chars()
            column = column.set(column.is_in(words), None)
            if self.dates is not None:
                return _dates(column, self.dates).alias(name)
            column = column if self.numbers is None else self.numbers.parse(column)
        if column.dtype.is_numeric():
            codes = [code for code in self.codes if isinstance(code, float)]
            column = column.set(column.cast(pl.Float64).is_in(codes), None)
        return column.alias(name)


def read_columns(
    frame: pl.DataFrame, decimal: str | None = None, keep: Collection[str] = ()
) -> tuple[pl.DataFrame, dict[str, Reading]]:
    """Return a frame with converted columns, and how each converted column was read.

    Text columns that hold dates, percentages, amounts or numbers with thousands separators are
    converted. Codes for missing values, such as "n/a" or -999, become missing. In columns of
    ``keep``, only dates are converted. ``decimal`` is the decimal separator of the file, if known.
    """
    texts = [name for name, dtype in frame.schema.items() if isinstance(dtype, TEXT_TYPES)]
    found = {name: _read_text(nameless(frame.get_column(name))) for name in texts}
    found = {
        name: own for name, own in found.items() if name not in keep or own[0].dates is not None
    }
    clear = [formats[0].decimal for _, formats in found.values() if len(formats) == 1]
    if decimal is None and clear:
        decimal = max(".,", key=clear.count)
    readings = {
        name: replace(reading, numbers=_decide(formats, decimal))
        for name, (reading, formats) in found.items()
        if formats or reading != Reading()
    }
    frame = apply_readings(frame, readings)
    codes = {name: codes for name, codes in _number_codes(frame) if name not in keep}
    for name, own in codes.items():
        reading = readings.get(name, Reading())
        readings[name] = replace(reading, codes={**reading.codes, **own})
    return apply_readings(frame, {name: readings[name] for name in codes}), readings


def apply_readings(frame: pl.DataFrame, readings: Mapping[str, Reading]) -> pl.DataFrame:
    """Return a frame whose columns are read in the given ways."""
    read = [readings[name].read(frame.get_column(name)) for name in readings]
    return frame.with_columns(read) if read else frame


def _read_text(texts: pl.Series) -> tuple[Reading, list[NumberFormat]]:
    """Return how a text column is read, and the formats that its numbers may have."""
    if texts.dtype != pl.String:
        counts = _count_values(texts.cast(pl.String))
        return Reading(codes={word: n for word, n in counts.items() if word in MISSING}), []
    counts = _count_values(texts)
    codes = {word: n for word, n in counts.items() if word.lower() in MISSING_WORDS}
    words = [word for word in counts if word not in codes]
    dates, formats = None, list[NumberFormat]()
    if words and DIGIT.search(words[0]):  # every date and number has a digit
        values = pl.Series(words)
        dates = date_format(values)
        formats = _number_formats(values, plain=bool(codes)) if dates is None else []
    if dates is None and not formats:
        codes = {word: n for word, n in codes.items() if word in MISSING}
    return Reading(dates=dates, codes=codes), formats


def _count_values(texts: pl.Series) -> dict[str, int]:
    """Return the number of rows of each stripped value, in the order of the rows."""
    if len(texts) <= FEW_ROWS:
        return Counter(text.strip() for text in texts.to_list() if text is not None)
    texts = texts.str.strip_chars().drop_nulls()
    return dict(texts.to_frame().group_by(pl.all(), maintain_order=True).len().iter_rows())


def _number_formats(texts: pl.Series, *, plain: bool) -> list[NumberFormat]:
    """Return the formats that all strings have, at most one for each decimal separator.

    Strings of digits may be codes of a category, so they have a format only if ``plain``.
    """
    if not len(texts) or not texts.head(FIRST_LOOK).str.contains(WRITTEN_NUMBER).all():
        return []
    units = texts.filter(~texts.is_in(CODE_TEXTS)).str.extract(f"({UNITS})")
    alike = units.n_unique() == 1 or (units.drop_nulls().n_unique() == 1 and units.max() != "%")
    closed = (texts.str.starts_with("(") == texts.str.ends_with(")")).all()
    if not (alike and closed and (plain or texts.str.contains(r"\D").any())):
        return []
    digits, odd = _digits(texts), texts.filter(texts.cast(pl.Float64, strict=False).is_null())
    shown = digits.str.contains("[.,]")
    formats = []
    for decimal, group in SEPARATORS:
        if digits.str.contains(_pattern(decimal, group)).fill_null(value=False).all():
            # with separators of thousands, even 1.234 is not a plain number
            examples = odd if len(odd) or not group else texts.filter(shown)
            example = max(examples.head(FIRST_LOOK), key=len, default="")
            formats.append(NumberFormat(decimal, group, example))
    formats = list({each.decimal: each for each in reversed(formats)}.values())[::-1]
    if len(formats) == 2 and len(odd) and shown.any() and not shown.all():
        # in 950 and 1,234, only numbers from 1000 on have a separator, so it separates thousands
        formats = [each for each in formats if each.group]
    doubtful = len(formats) == 2 and bool(shown.any())
    return [each._replace(doubtful=doubtful) for each in formats]


def _digits(texts: pl.Series) -> pl.Series:
    return texts.str.extract(WRITTEN_NUMBER).str.replace_all(r"[\s'’]", " ")


def _pattern(decimal: str, group: str) -> str:
    """Return a pattern for digits with optional thousands separators, decimals and exponent."""
    decimal = re.escape(decimal)
    plain = f"(?:(?:0|[1-9][0-9]*)(?:{decimal}[0-9]+)?|{decimal}[0-9]+)(?:[eE][-+]?[0-9]+)?"
    if not group:
        return f"^{plain}$"
    return f"^(?:[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+(?:{decimal}[0-9]+)?|{plain})$"


def _decide(formats: list[NumberFormat], decimal: str | None) -> NumberFormat | None:
    """Return the format that uses this decimal separator, or the first one if there is none."""
    if not formats or decimal is None:
        return formats[0] if formats else None
    found = [each for each in formats if each.decimal == decimal]
    return found[0]._replace(doubtful=False) if found else formats[0]


def _number_codes(frame: pl.DataFrame) -> Iterator[tuple[str, dict[float, int]]]:
    """Yield numeric columns with codes for missing values, and the number of rows of each code."""
    if not frame.height:
        return
    for block in blocks(frame.height, np.flatnonzero(holds_numbers(frame)).tolist()):
        X = numbers(frame, block)
        ends = np.isin(np.fmin.reduce(X), CODES) | np.isin(np.fmax.reduce(X), CODES)
        for i in np.flatnonzero(ends).tolist():
            if codes := missing_codes(X[:, i]):
                yield frame.columns[block[i]], codes


def missing_codes(x: Array) -> dict[float, int]:
    """Return the numbers that stand for missing values, with their counts.

    Such a number consists of nines. It lies far outside the range of the other values, or it is the
    only negative value and occurs more than once.

    >>> missing_codes(np.array([*range(40, 60), -999.0])), missing_codes(np.arange(90.0, 100.0))
    ({-999.0: 1}, {})
    """
    is_code = np.isin(x, CODES)
    others = x[np.isfinite(x) & ~is_code]
    if len(others) < FEWEST_OTHERS:
        return {}
    low, high = others.min(), others.max()
    found = {}
    for code, n in zip(*np.unique(x[is_code], return_counts=True), strict=True):
        far = max(low - code, code - high) >= FAR_RANGES * (high - low)
        least = 2 if abs(code) == 99 or not far else 1  # a single 99 may be an outlier
        if n >= least and high > low and (far or code < 0 <= low):
            found[float(code)] = int(n)
    return found


def date_format(texts: pl.Series) -> str | None:
    """Return the date format that all strings have, or None if there is none."""
    first = texts.head(FIRST_LOOK)
    if not len(first) or not first.str.contains(r"^\s*(\d|[A-Z][a-z]{2,8} \d)").all():
        return None
    for written in DATE_FORMATS:
        if not _dates(first, written).null_count() and not _dates(texts, written).null_count():
            return written
    return None


def _dates(texts: pl.Series, written: str) -> pl.Series:
    kind = pl.Datetime if "%M" in written or written == "%+" else pl.Date
    texts = texts.str.strip_chars()
    digits = TWO_DIGITS if "%y" in written else FOUR_DIGITS
    texts = texts.set(~texts.str.contains(digits), None)
    return texts.str.strptime(kind, written, strict=False)


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

"""Reader of CSV and TSV files.

Python's csv module reads the column names, because quoted names may contain any character. polars
reads the rows. A line ends only at a line feed or carriage return. :meth:`str.splitlines` also
splits at other characters, such as the vertical tab, but these may be part of a name.
"""

import csv
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl

from tamis._format import first_line
from tamis.exceptions import InvalidTable
from tamis.table.frames import check_unique
from tamis.table.kinds import FEW_ROWS, MAYBE_NUMBER, MISSING, nameless, numbers
from tamis.table.sources import TableSource

#: Supported separators and their names in messages.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
#: Number of bytes that are read to find the separator. More are read if the first lines are longer.
SAMPLE = 1 << 16
#: To find the separator, at least FEW lines are read, however long they are, and at most MANY lines
#: are used.
FEW, MANY = 3, 20
#: Column types are inferred from this number of rows. If later rows have other types, they are
#: inferred from all rows.
GUESSED_FROM = 1000
#: A point separates thousands, as in 950 and 1.234, if a column has at least this number of values
#: with and without a point, and no column shows a point for decimals.
POINTS = 10


def read_csv(
    source: TableSource, separator: str | None, header: bool
) -> tuple[pl.DataFrame, dict[str, int], str | None]:
    """Read a text file. Return its columns, the positions of columns without a name, and the
    decimal separator if it is known.

    If ``separator`` is None, the one that fits the first lines is used.
    """
    sample = _read_beginning(source)
    end = "\n" if "\n" in sample else "\r"
    separator = separator or _find_separator(sample, end)
    fields, n_lines = _read_header(source, separator, end, header)
    names = [f"x{j}" for j in range(1, len(fields) + 1)]
    unnamed: dict[str, int] = {}
    if header:
        names, unnamed = _names(source, fields)
    below = "".join(sample.split(end)[n_lines:])
    # spreadsheets with a decimal comma separate values by semicolons, as in 1,5;2,3
    decimal_comma = separator == ";" and bool(re.search(r"\d,\d", below))
    frame = _read_rows(source, separator, end, n_lines, decimal_comma)
    if frame.height and frame.width != len(names):
        raise InvalidTable(
            f"{source} has {len(names)} names in its first line but rows of {frame.width} values. "
            "Give every column one name, and every row one value for each."
        )
    decimal = "," if decimal_comma else None
    frame = parse_text(frame, decimal)
    if not decimal_comma and (texts := _thousands(frame, source, separator, end, n_lines)):
        frame, decimal = frame.with_columns(texts), ","
    frame.columns = names[: frame.width]
    # blank lines are dropped; usually only the first column has to be checked, which is quick
    if frame.width and frame.to_series(0).null_count():
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame, unnamed, decimal


def _read_beginning(source: TableSource) -> str:
    """Return the first lines of a text file: at least three complete lines, if it has three."""
    decoder = getincrementaldecoder("utf-8-sig")()
    parts: list[str] = []
    n_lines = 0
    with source.path.open("rb") as stream:
        while n_lines <= FEW and (raw := stream.read(SAMPLE)):
            parts.append(decoder.decode(raw))
            n_lines += raw.count(b"\n") + raw.count(b"\r")
    return "".join(parts)


def _find_separator(sample: str, end: str) -> str:
    """Return the separator that splits most of the first lines into the same number of fields."""
    lines = [line + end for line in sample.split(end)[: MANY + 1]]
    lines = lines[:-1] or lines  # the last line may be cut off

    def merit(separator: str) -> tuple[int, int]:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:  # a field is too long
            return 0, 0
        widths = Counter(len(row) for row in rows if row)
        width, times = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        return (times if width > 1 else 0), width

    return max(SEPARATORS, key=merit)


def _read_header(
    source: TableSource, separator: str, end: str, present: bool
) -> tuple[list[str], int]:
    """Return the fields of the first non-blank record, and the number of lines to skip.

    The lines to skip are blank lines, and the header if there is one.
    """
    above = 0
    with source.path.open(encoding="utf-8-sig", newline=end) as stream:
        reader = csv.reader(stream, delimiter=separator)
        try:
            for record in reader:
                if record:
                    return record, reader.line_num if present else above
                above = reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidTable(
                f"{source} has no readable names in its first line: {error}."
            ) from error
    return [], above


def _names(source: TableSource, fields: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Return unique column names, and the position of each column that has no name in the file.

    Columns without a name are called unnamed_1, unnamed_2 and so on.
    """
    if fields and all(map(is_number, fields)):
        raise InvalidTable(
            f"{source} begins with numbers, not with names. Write --no-header: its columns are "
            f"then called x1 to x{len(fields)}."
        )
    unnamed = {f"unnamed_{j}": j for j, name in enumerate(fields, 1) if not name.strip(" \t")}
    names = [name if name.strip(" \t") else f"unnamed_{j}" for j, name in enumerate(fields, 1)]
    check_unique(names, source)
    return names, unnamed


def is_number(text: str) -> bool:
    """Return whether a string is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_rows(
    source: TableSource,
    separator: str,
    end: str,
    n_lines: int,
    decimal_comma: bool,
    texts: list[int] | None = None,
) -> pl.DataFrame:
    """Read the rows. If types inferred from the first rows do not fit, infer them from all rows.

    If ``texts`` is given, only these columns are read, as text.
    """
    for n_rows in (GUESSED_FROM, None) if texts is None else (0,):
        try:
            return pl.read_csv(
                source.path.absolute(),
                glob=False,
                separator=separator,
                has_header=False,
                skip_lines=n_lines,
                eol_char=end,
                null_values=MISSING,
                infer_schema_length=n_rows,
                decimal_comma=decimal_comma,
                raise_if_empty=False,
                columns=texts,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            if not n_rows or not isinstance(error, pl.exceptions.ComputeError):
                raise InvalidTable(
                    f"{source} cannot be read as a table with {SEPARATORS[separator]}: "
                    f"{first_line(error)}."
                ) from error
    raise AssertionError("the second attempt returns or raises")


def _thousands(
    frame: pl.DataFrame, source: TableSource, separator: str, end: str, n_lines: int
) -> list[pl.Series]:
    """Return columns in which points separate thousands, as text.

    The list is empty unless all columns with points are of this kind.
    """
    floats = [j for j, dtype in enumerate(frame.dtypes) if dtype == pl.Float64]
    X = numbers(frame[:GUESSED_FROM], floats)
    with np.errstate(invalid="ignore", over="ignore"):
        point, whole = X % 1 > 0, X % 1 == 0  # infinite and missing values are neither
        digits = np.abs(1000 * X)
        possible = (np.abs(X) >= 1) & (digits < 1e6) & (np.abs(digits - np.rint(digits)) < 1e-6)
    n_points, n_whole = point.sum(axis=0), whole.sum(axis=0)
    if not possible[point].all() or not (np.minimum(n_points, n_whole) >= POINTS).any():
        return []
    columns = np.array(floats)[n_points > 0].tolist()
    texts = parse_text(_read_rows(source, separator, end, n_lines, False, columns), ",")
    found = [texts.to_series(i).alias(frame.columns[j]) for i, j in enumerate(columns)]
    fits = (text.str.contains(r"^[-+]?(0|[1-9]\d{0,2}(\.\d{3})?)$").all() for text in found)
    # blank lines may be counted differently if only some columns are read
    return found if texts.height == frame.height and all(fits) else []


def parse_text(frame: pl.DataFrame, decimal: str | None = None) -> pl.DataFrame:
    """Strip whitespace in text columns, and convert those that hold only numbers to numbers.

    If ``decimal`` is a comma, columns with points remain text.
    """
    for j, dtype in enumerate(frame.dtypes):  # in place: a new frame of 10^5 columns is slow
        if isinstance(dtype, pl.String):
            column = frame.to_series(j)
            if frame.height <= FEW_ROWS and _is_clean_text({*column.to_list()} - {None}):
                continue
            text = nameless(column).str.strip_chars()
            text = text.set(text.is_in(MISSING), None)
            values = text.cast(pl.Float64, strict=False)
            same = values.null_count() == text.null_count()
            if same and decimal == "," and text.str.contains(".", literal=True).any():
                same = False
            frame.replace_column(j, (values if same else text).alias(column.name))
    return frame


def _is_clean_text(levels: set[str]) -> bool:
    """Return whether a value is not a number, and nothing is to be stripped or read as missing.

    >>> _is_clean_text({"low", "1"}), _is_clean_text({"1", "2"}), _is_clean_text({"low", "NA"})
    (True, False, False)
    """
    clean = all(text == text.strip() and text not in MISSING for text in levels)
    return clean and not all(MAYBE_NUMBER.search(text) for text in levels)

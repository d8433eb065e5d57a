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

import polars as pl

from tamis._format import first_line
from tamis.exceptions import InvalidTable
from tamis.table.frames import check_unique
from tamis.table.kinds import MISSING, nameless
from tamis.table.sources import TableSource

#: Supported separators and their names in messages.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
#: Number of bytes that are read to find the separator. More are read if the first lines are longer.
SAMPLE = 1 << 16
#: To find the separator, at least FEW lines are read, however long they are, and at most MANY lines
#: are used.
FEW, MANY = 3, 20
#: Column types are inferred from this number of rows. If later rows have other types, they are
#: inferred from all rows.
GUESSED_FROM = 1000


def read_csv(
    source: TableSource, separator: str | None, header: bool
) -> tuple[pl.DataFrame, dict[str, int], str | None]:
    """Read a text file. Return its columns, the positions of columns without a name, and the
    decimal separator if it is known.

    If ``separator`` is None, the comma, semicolon or tab that fits the first lines is used.
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
    frame.columns = names[: frame.width]
    frame = parse_text(frame)
    # blank lines are dropped; usually only the first column has to be checked, which is quick
    if frame.width and frame.to_series(0).null_count():
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame, unnamed, "," if decimal_comma else None


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
    source: TableSource, separator: str, end: str, n_lines: int, decimal_comma: bool
) -> pl.DataFrame:
    """Read the rows. If types inferred from the first rows do not fit, infer them from all rows."""
    for n_rows in (GUESSED_FROM, None):
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
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            if n_rows is None or not isinstance(error, pl.exceptions.ComputeError):
                raise InvalidTable(
                    f"{source} cannot be read as a table with {SEPARATORS[separator]}: "
                    f"{first_line(error)}."
                ) from error
    raise AssertionError("the second attempt returns or raises")


def parse_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip whitespace in text columns, and convert those that hold only numbers to numbers."""
    for j, dtype in enumerate(frame.dtypes):  # in place: a new frame of 10^5 columns is slow
        if isinstance(dtype, pl.String):
            column = frame.to_series(j)
            text = nameless(column).str.strip_chars()
            text = text.set(text.is_in(MISSING), None)
            numbers = text.cast(pl.Float64, strict=False)
            same = numbers.null_count() == text.null_count()
            frame.replace_column(j, (numbers if same else text).alias(column.name))
    return frame

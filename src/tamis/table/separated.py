"""Reading CSV and TSV: names of any kind on top, numbers and words below.

The names are read by Python's csv module, which knows where a quoted name ends whatever is in it;
all below by polars. Only line feeds and carriage returns end a line: the other characters that
:meth:`str.splitlines` cuts at (vertical tab, file separator, next line, line separator) may stand
in a name.
"""

import csv
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import polars as pl

from tamis.exceptions import InvalidTable
from tamis.table.sources import TableSource

#: How much of a text file is looked at to find its separator, if its first lines are not longer.
SAMPLE = 1 << 16
#: Lines that tell the separator, those of a wide table being long, and the most that are asked.
FEW, MANY = 3, 20
#: Rows that tell the kinds of the columns; where later ones contradict, all are looked at.
GUESSED_FROM = 1000


class Header(NamedTuple):
    """The first record of a file: its fields, and the lines above the first row."""

    fields: list[str]
    n_lines: int


def read_separated(
    source: TableSource, separator: str | None, missing: Sequence[str], header: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Columns of a text file, and those of them that have no name there, with their numbers.

    Without a separator the one of comma, semicolon and tab is taken that fits the first lines.
    """
    sample = beginning(source)
    end = "\n" if "\n" in sample else "\r"
    separator = separator or _separator(sample, end)
    head = _header(source, separator, end, header)
    if header:
        names, unnamed = _names(source, head.fields)
    else:
        names, unnamed = [f"x{j}" for j in range(1, len(head.fields) + 1)], {}
    frame = _body(source, separator, missing, end, head.n_lines, sample)
    if frame.height and frame.width != len(names):
        raise InvalidTable(
            f"{source} has {len(names)} names in its first line but rows of {frame.width} values. "
            "Give every column one name, and every row one value for each."
        )
    frame.columns = names[: frame.width]
    return _without_blank_lines(tidied(frame, missing)), unnamed


def beginning(source: TableSource) -> str:
    """The first lines of a text file, a few of them whole however long they are."""
    decoder = getincrementaldecoder("utf-8-sig")()
    parts: list[str] = []
    n_lines = 0
    with source.open("rb") as stream:
        while raw := stream.read(SAMPLE):
            if b"\0" in raw:
                raise InvalidTable(
                    f"{source} is no text. Give a table as CSV, or say with --format what it is."
                )
            try:
                parts.append(decoder.decode(raw))
            except UnicodeDecodeError as error:
                position = stream.tell() - len(raw) + error.start
                raise InvalidTable(
                    f"{source} is not written in UTF-8 (byte {position + 1}). Convert it, for "
                    "example with iconv -f latin1 -t utf8."
                ) from None
            n_lines += raw.count(b"\n") + raw.count(b"\r")
            if n_lines > FEW:
                break
    return "".join(parts)


def _separator(sample: str, end: str) -> str:
    """Of comma, semicolon and tab the one that cuts the first lines into most equal fields."""
    lines = [line + end for line in sample.split(end)[: MANY + 1]]
    lines = lines[:-1] or lines  # the last may be cut

    def merit(separator: str) -> tuple[int, int]:
        try:
            rows = list(csv.reader(lines, delimiter=separator))
        except csv.Error:  # a field that is too long to be one
            return 0, 0
        widths = Counter(len(row) for row in rows if row)
        width, times = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        return (times if width > 1 else 0), width

    return max((",", ";", "\t"), key=merit)


def _header(source: TableSource, separator: str, end: str, present: bool) -> Header:
    """The first record that is not blank; where it is a row, the lines above it are counted."""
    read: list[str] = []

    def lines(stream: Iterator[str]) -> Iterator[str]:
        for line in stream:
            read.append(line)
            yield line

    with source.open(encoding="utf-8-sig", newline="") as stream:
        records = csv.reader(lines(stream), delimiter=separator)
        above = 0
        try:
            for record in records:
                if record:
                    n_lines = sum(line.count(end) for line in read) if present else above
                    return Header([field.strip(" \t") for field in record], n_lines)
                above = sum(line.count(end) for line in read)
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidTable(
                f"{source} has no names in its first line that can be read: {error}."
            ) from error
    return Header([], above)


def _names(source: TableSource, fields: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Names of the columns, each once; one without a name is called unnamed_1 and so on."""
    if fields and all(_is_number(field) for field in fields):
        raise InvalidTable(
            f"{source} begins with numbers, not with names. Write --no-header: its columns are "
            f"then called x1 to x{len(fields)}."
        )
    unnamed = {f"unnamed_{j}": j for j, name in enumerate(fields, 1) if not name}
    names = [name or f"unnamed_{j}" for j, name in enumerate(fields, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidTable(
            f"{source} has more than one column called {' and '.join(map(repr, twice[:5]))}. Give "
            "every column a name of its own."
        )
    return names, unnamed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _body(
    source: TableSource, separator: str, missing: Sequence[str], end: str, n_lines: int, sample: str
) -> pl.DataFrame:
    """The rows below the names, read by polars."""
    below = "".join(islice(sample.split(end), n_lines, None))
    try:
        for looked_at in (GUESSED_FROM, None):
            try:
                return pl.read_csv(
                    source.path.absolute(),
                    glob=False,
                    separator=separator,
                    has_header=False,
                    skip_lines=n_lines,
                    eol_char=end,
                    null_values=list(missing),
                    infer_schema_length=looked_at,
                    # 1,5;2,3 is how a spreadsheet in half of the world writes it
                    decimal_comma=separator == ";" and bool(re.search(r"\d,\d", below)),
                    raise_if_empty=False,
                )
            except pl.exceptions.ComputeError:
                if looked_at is None:
                    raise
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        spoken = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
        raise InvalidTable(
            f"{source} cannot be read as a table with {spoken}: {first_line(error)}."
        ) from error
    raise AssertionError("the second look returns or raises")


def first_line(error: Exception) -> str:
    """The first line of what a library says of its error."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


def tidied(frame: pl.DataFrame, missing: Sequence[str]) -> pl.DataFrame:
    """Text without the blanks around it; numbers where nothing else was in the way."""
    for j, dtype in enumerate(frame.dtypes):  # in place: a frame of 10^5 columns is slow to make
        if isinstance(dtype, pl.String):
            frame.replace_column(j, _numbers_or_text(frame.to_series(j), missing))
    return frame


def _numbers_or_text(column: pl.Series, missing: Sequence[str]) -> pl.Series:
    text = column.str.strip_chars()
    text = text.set(text.is_in(list(missing)), None)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == text.null_count() else text


def _without_blank_lines(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows that hold anything; most tables have no gap in their first column."""
    if not frame.width or not frame.to_series(0).null_count():
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))

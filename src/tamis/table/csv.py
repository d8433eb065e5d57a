"""Reading CSV and TSV: names of any kind on top, numbers and words below.

The names are read by Python's csv module, which knows where a quoted name ends whatever is in it;
the rows by polars. Only line feeds and carriage returns end a line: the other characters that
:meth:`str.splitlines` cuts at (vertical tab, file separator, next line, line separator) may stand
in a name.
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
from tamis.table.sources import TableSource

#: What is read as a missing value in text formats.
MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
#: Separators, and what they are called.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
#: How much of a text file is read to find its separator, if its first lines are not longer.
SAMPLE = 1 << 16
#: Lines that tell the separator, those of a wide table being long, and the most that are read.
FEW, MANY = 3, 20
#: Rows that tell the kinds of the columns; if later ones contradict, all are read.
GUESSED_FROM = 1000


def read_csv(
    source: TableSource, separator: str | None, header: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Read the columns of a text file, and those that have no name there, with their numbers.

    Without a separator the one of comma, semicolon and tab is taken that fits the first lines.
    """
    sample = read_beginning(source)
    end = "\n" if "\n" in sample else "\r"
    separator = separator or _find_separator(sample, end)
    fields, n_lines = _read_header(source, separator, end, header)
    names = [f"x{j}" for j in range(1, len(fields) + 1)]
    unnamed: dict[str, int] = {}
    if header:
        names, unnamed = _names(source, fields)
    below = "".join(sample.split(end)[n_lines:])
    # 1,5;2,3 is how a spreadsheet in half of the world writes it
    decimal_comma = separator == ";" and bool(re.search(r"\d,\d", below))
    frame = _read_rows(source, separator, end, n_lines, decimal_comma)
    if frame.height and frame.width != len(names):
        raise InvalidTable(
            f"{source} has {len(names)} names in its first line but rows of {frame.width} values. "
            "Give every column one name, and every row one value for each."
        )
    frame.columns = names[: frame.width]
    frame = read_words(frame)
    # blank lines; most tables have no missing value in their first column
    if frame.width and frame.to_series(0).null_count():
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame, unnamed


def read_beginning(source: TableSource) -> str:
    """Read the first lines of a text file, a few of them whole however long they are."""
    decoder = getincrementaldecoder("utf-8-sig")()
    parts: list[str] = []
    n_lines = 0
    with source.path.open("rb") as stream:
        while n_lines <= FEW and (raw := stream.read(SAMPLE)):
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
    return "".join(parts)


def _find_separator(sample: str, end: str) -> str:
    """Return the separator that cuts the first lines into the most equal fields."""
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

    return max(SEPARATORS, key=merit)


def _read_header(
    source: TableSource, separator: str, end: str, present: bool
) -> tuple[list[str], int]:
    """Return the fields of the first record that is not blank, and the number of lines above rows.

    A header is counted among these lines.
    """
    above = 0
    with source.path.open(encoding="utf-8-sig", newline=end) as stream:
        reader = csv.reader(stream, delimiter=separator)
        try:
            for record in reader:
                if record:
                    names = [field.strip(" \t") for field in record]
                    return names, reader.line_num if present else above
                above = reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidTable(
                f"{source} has no names in its first line that can be read: {error}."
            ) from error
    return [], above


def _names(source: TableSource, fields: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Names of the columns, each once; one without a name is called unnamed_1 and so on."""
    if fields and all(map(is_number, fields)):
        raise InvalidTable(
            f"{source} begins with numbers, not with names. Write --no-header: its columns are "
            f"then called x1 to x{len(fields)}."
        )
    unnamed = {f"unnamed_{j}": j for j, name in enumerate(fields, 1) if not name}
    names = [name or f"unnamed_{j}" for j, name in enumerate(fields, 1)]
    check_unique(names, source)
    return names, unnamed


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_rows(
    source: TableSource, separator: str, end: str, n_lines: int, decimal_comma: bool
) -> pl.DataFrame:
    """Read the rows below the names; all of them are looked at if the first mislead."""
    for looked_at in (GUESSED_FROM, None):
        try:
            return pl.read_csv(
                source.path.absolute(),
                glob=False,
                separator=separator,
                has_header=False,
                skip_lines=n_lines,
                eol_char=end,
                null_values=MISSING,
                infer_schema_length=looked_at,
                decimal_comma=decimal_comma,
                raise_if_empty=False,
            )
        except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            if looked_at is None or not isinstance(error, pl.exceptions.ComputeError):
                raise InvalidTable(
                    f"{source} cannot be read as a table with {SEPARATORS[separator]}: "
                    f"{first_line(error)}."
                ) from error
    raise AssertionError("the second look returns or raises")


def read_words(frame: pl.DataFrame) -> pl.DataFrame:
    """Strip text, and make numbers of it if it holds nothing else."""
    for j, dtype in enumerate(frame.dtypes):  # in place: a frame of 10^5 columns is slow to make
        if isinstance(dtype, pl.String):
            text = frame.to_series(j).str.strip_chars()
            text = text.set(text.is_in(MISSING), None)
            numbers = text.cast(pl.Float64, strict=False)
            same = numbers.null_count() == text.null_count()
            frame.replace_column(j, numbers if same else text)
    return frame

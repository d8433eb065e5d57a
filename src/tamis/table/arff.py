"""Reader of Weka's ARFF format: numbers, nominal values and text, in dense or sparse rows."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from tamis._format import format_name
from tamis.exceptions import InvalidTable
from tamis.table.csv import is_number
from tamis.table.frames import check_unique
from tamis.table.kinds import MISSING
from tamis.table.sources import TableSource

# a backslash can match in only one way; with two ways, the search would take exponential time
_ATTRIBUTE = re.compile(
    r"@attribute\s+('(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\S+)\s+(.+)", re.IGNORECASE
)
_NUMERIC = {"numeric", "real", "integer"}
#: Maximum number of characters of an error that a message quotes.
MOST_SHOWN = 80


class Attribute(NamedTuple):
    """A column of an ARFF file: its name, type, and the value that sparse rows omit.

    ``levels`` lists the values of a nominal column in the order of the file.
    """

    name: str
    numeric: bool
    default: str
    levels: tuple[str, ...] = ()


def read_arff(source: TableSource) -> pl.DataFrame:
    """Read the columns of an ARFF file. Nominal columns whose values are numbers become numeric."""
    with source.path.open(encoding="utf-8-sig") as stream:
        lines = ((n, line.strip()) for n, line in enumerate(stream, 1))
        lines = ((n, line) for n, line in lines if line and not line.startswith("%"))
        attributes = _read_header(source, lines)
        rows = [_row(source, n, line, attributes) for n, line in lines]
    columns = zip(*rows, strict=True) if rows else [[] for _ in attributes]
    found = zip(attributes, columns, strict=True)
    return pl.DataFrame([_series(source, attribute, values) for attribute, values in found])


def _read_header(source: TableSource, lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    """Return the attributes that are declared before the line ``@data``."""
    found: list[Attribute] = []
    for n, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            found.append(_attribute(source, n, line))
        elif word != "@relation":
            raise InvalidTable(
                f"{source} is not an ARFF file: line {n} is {line[:30]!r}, but @relation, "
                "@attribute or @data was expected."
            )
    else:
        raise InvalidTable(f"{source} is not an ARFF file: it has no line @data.")
    if not found:
        raise InvalidTable(f"{source} is not an ARFF file: it declares no @attribute.")
    check_unique([attribute.name for attribute in found], source)
    return found


def _attribute(source: TableSource, n: int, line: str) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise InvalidTable(
            f"{source}, line {n}: {line[:40]!r} declares no column. Write @attribute NAME TYPE."
        )
    name, kind = _unquote(match[1]), match[2].strip()
    if not kind.startswith("{"):
        numeric = kind.split()[0].lower() in _NUMERIC
        return Attribute(name, numeric, "0" if numeric else "")
    values = _fields(kind.strip("{}"))
    numeric = all(map(is_number, values))
    return Attribute(name, numeric, values[0], () if numeric else tuple(dict.fromkeys(values)))


def _row(source: TableSource, n: int, line: str, attributes: list[Attribute]) -> list[str]:
    """Return the values of a row.

    A sparse row such as ``{1 0.5, 3 yes}`` omits zeros, and the first level of nominal columns.
    """
    if not line.startswith("{"):
        row = _fields(line)
        if len(row) != len(attributes):
            raise InvalidTable(
                f"{source}, line {n}, has {len(row)} values for {len(attributes)} columns."
            )
        return row
    row = [attribute.default for attribute in attributes]
    try:
        for pair in filter(None, _fields(line.strip("{} "))):
            index, value = pair.split(None, 1)
            if not index.isdecimal():  # a negative index would count from the last column
                raise ValueError
            row[int(index)] = _unquote(value)
    except (ValueError, IndexError):
        raise InvalidTable(
            f"{source}, line {n}, is not a sparse row: write {{index value, ...}}, counting from 0."
        ) from None
    return row


def _fields(line: str) -> list[str]:
    """Split a line at commas. Commas within single or double quotes do not split it."""
    if "'" not in line and '"' not in line:
        return [field.strip() for field in line.split(",")]
    quote = '"' if '"' in line and "'" not in line else "'"
    rows = csv.reader([line], quotechar=quote, escapechar="\\", skipinitialspace=True)
    return [field.strip() for field in next(rows)]


def _unquote(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if quoted else text


def _series(source: TableSource, attribute: Attribute, values: Sequence[str]) -> pl.Series:
    cells = [None if value in MISSING else value for value in values]
    if not attribute.numeric:
        foreign = set(cells) - {None, *attribute.levels}
        dtype = pl.String if foreign or not attribute.levels else pl.Enum(attribute.levels)
        return pl.Series(attribute.name, cells, dtype=dtype)
    try:
        numbers = [None if value is None else float(value) for value in cells]
    except ValueError as error:
        raise InvalidTable(
            f"{source} declares the column {attribute.name!r} as numbers, but: "
            f"{format_name(error, MOST_SHOWN)}."
        ) from None
    return pl.Series(attribute.name, numbers, dtype=pl.Float64)

"""Reading files: every format becomes one frame whose columns have names."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from tamis.cli.arff import read_arff
from tamis.cli.formats import EXTENSIONS
from tamis.exceptions import InvalidTable
from tamis.spec import did_you_mean

#: What is read as a missing value in text formats.
MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
#: Most values of a sparse file, which become 8 bytes each.
LARGEST = 10**9
#: How much of a text file is looked at to find its separator.
SAMPLE = 1 << 16


class FileTable(NamedTuple):
    """What a file holds: columns, and the name of the target where the format has one."""

    frame: pl.DataFrame
    target: str | None = None


def read(path: Path, kind: str | None = None, *, header: bool = True) -> FileTable:
    """Columns of a file.

    Parameters
    ----------
    path : Path
    kind : {"csv", "tsv", "parquet", "arff", "libsvm"}, optional
        The format, where the extension does not tell.
    header : bool, default=True
        Whether the first line of a CSV or TSV file has the names; if not they are x1, x2, ...
    """
    kind = kind or _kind(path)
    if kind not in READERS:
        raise InvalidTable(
            f"There is no format {kind!r}.{did_you_mean(kind, READERS)} Write --format with one of "
            f"{', '.join(READERS)}."
        )
    if not path.exists():
        raise InvalidTable(f"There is no file {path}.{_near_files(path)}")
    if path.is_dir():
        raise InvalidTable(f"{path} is a folder. Give the file with the table.")
    try:
        if path.stat().st_size == 0:
            raise InvalidTable(f"{path} is empty. Give a file with a table.")
        table = READERS[kind](path, header)
    except OSError as error:
        raise InvalidTable(f"{path} cannot be read: {error.strerror or error}.") from error
    if table.frame.height == 0:
        raise InvalidTable(f"{path} has no rows below its header. Give a file with data.")
    return table


def _kind(path: Path) -> str:
    kind = EXTENSIONS.get(path.suffix.lower())
    if kind is None:
        shown = f"the extension {path.suffix!r}" if path.suffix else "no extension"
        raise InvalidTable(
            f"{path} has {shown}, which says nothing about its format. Write --format with one of "
            f"{', '.join(READERS)}, or name it {', '.join(f'*{end}' for end in EXTENSIONS)}."
        )
    return kind


def _near_files(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    return did_you_mean(path.name, (file.name for file in folder.iterdir() if file.is_file()))


def _read_csv(path: Path, header: bool) -> FileTable:
    sample = _sample(path)
    return _read_separated(path, _separator(sample), sample, header)


def _read_tsv(path: Path, header: bool) -> FileTable:
    return _read_separated(path, "\t", _sample(path), header)


def _read_separated(path: Path, separator: str, sample: str, header: bool) -> FileTable:
    text = sample.lstrip("\r\n")
    first = _fields(text, separator)
    names = _names(path, first) if header else [f"x{j}" for j in range(1, len(first) + 1)]
    # 1,5;2,3 is how a spreadsheet in half of the world writes it
    decimal_comma = separator == ";" and bool(re.search(r"\d,\d", sample))
    try:
        with path.open("rb") as stream:
            frame = pl.read_csv(
                stream,
                separator=separator,
                has_header=header,
                skip_lines=len(sample[: len(sample) - len(text)].splitlines()),
                eol_char="\n" if "\n" in sample else "\r",
                null_values=MISSING,
                infer_schema_length=None,
                decimal_comma=decimal_comma,
                raise_if_empty=False,
            )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise InvalidTable(
            f"{path} cannot be read as a table with {_spoken(separator)}: {_first_line(error)}."
        ) from error
    if frame.width != len(names):
        raise InvalidTable(
            f"{path} has {len(names)} names in its first line but {frame.width} columns. Give "
            "every column one name."
        )
    frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    frame = frame.with_columns(_tidied(column) for column in frame)
    return FileTable(frame.filter(~pl.all_horizontal(pl.all().is_null())))  # blank lines


def _tidied(column: pl.Series) -> pl.Series:
    """Text without the blanks around it; numbers where nothing else was in the way."""
    if column.dtype != pl.String:
        return column
    text = column.str.strip_chars()
    text = text.set(text.is_in(MISSING), None)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == text.null_count() else text


def _sample(path: Path) -> str:
    """The beginning of a text file."""
    with path.open("rb") as stream:
        raw = stream.read(SAMPLE)
    if b"\0" in raw:
        raise InvalidTable(
            f"{path} is no text. Give a table as CSV, or say with --format what it is."
        )
    if len(raw) == SAMPLE:
        raw = raw[: raw.rfind(b"\n") + 1] or raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidTable(
            f"{path} is not written in UTF-8 (byte {error.start + 1}). Convert it, for example "
            "with iconv -f latin1 -t utf8."
        ) from None


def _separator(sample: str) -> str:
    """Of comma, semicolon and tab the one that cuts the first lines into most equal fields."""

    def merit(separator: str) -> tuple[int, int]:
        rows = list(csv.reader(sample.splitlines()[:20], delimiter=separator))
        widths = Counter(len(row) for row in rows if row)
        width, lines = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        return (lines if width > 1 else 0), width

    return max((",", ";", "\t"), key=merit)


def _fields(sample: str, separator: str) -> list[str]:
    rows = csv.reader(sample.splitlines(), delimiter=separator)
    return [field.strip() for field in next(rows, [])]


def _names(path: Path, first: Sequence[str]) -> list[str]:
    """Names of the columns, each once; one without a name is called unnamed_1 and so on."""
    if first and all(_is_number(field) for field in first):
        raise InvalidTable(
            f"{path} begins with numbers, not with names. Write --no-header: its columns are then "
            f"called x1 to x{len(first)}."
        )
    names = [name or f"unnamed_{j}" for j, name in enumerate(first, 1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidTable(
            f"{path} has more than one column called {' and '.join(map(repr, twice[:5]))}. Give "
            "every column a name of its own."
        )
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path, header: bool) -> FileTable:
    try:
        with path.open("rb") as stream:
            return FileTable(pl.read_parquet(stream))
    except pl.exceptions.PolarsError as error:
        raise InvalidTable(f"{path} is no Parquet file: {_first_line(error)}.") from error


def _read_arff(path: Path, header: bool) -> FileTable:
    _sample(path)
    return FileTable(read_arff(path, MISSING))


def _read_libsvm(path: Path, header: bool) -> FileTable:
    """Columns are called by their index in the file, whether it counts from 0 or from 1."""
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InvalidTable(
            f"{path} is no LIBSVM file, whose lines read 'target index:value ...': "
            f"{_first_line(error)}."
        ) from error
    if not len(y) or not X.shape[1]:
        raise InvalidTable(f"{path} holds no values. Give a LIBSVM file with data.")
    if X.shape[0] * X.shape[1] > LARGEST:
        raise InvalidTable(
            f"{path} has {X.shape[0]} rows and {X.shape[1]} columns, more than fit into the memory "
            "with their zeros. Leave out rows or columns."
        )
    start = 0 if X[:, [0]].nnz else 1
    dense = X[:, start:].toarray()
    if not dense.shape[1]:
        raise InvalidTable(f"{path} holds no values. Give a LIBSVM file with data.")
    names = [f"x{j}" for j in range(start, X.shape[1])]
    target = y.astype(np.int64) if (y == np.rint(y)).all() else y
    frame = pl.DataFrame(dense, schema=names)
    return FileTable(frame.with_columns(pl.Series("target", target)), "target")


def _spoken(separator: str) -> str:
    return {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


READERS: dict[str, Callable[[Path, bool], FileTable]] = {
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
    "arff": _read_arff,
    "libsvm": _read_libsvm,
}

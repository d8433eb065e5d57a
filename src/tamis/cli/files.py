"""Reading files: every format becomes one frame whose columns have names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from tamis.cli.arff import read_arff
from tamis.cli.formats import EXTENSIONS
from tamis.cli.separated import beginning, first_line, read_separated
from tamis.datasets.memory import NUMBER, check_fits
from tamis.exceptions import InvalidTable
from tamis.spec import did_you_mean

#: What is read as a missing value in text formats.
MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]


@dataclass
class FileTable:
    """What a file holds.

    Attributes
    ----------
    frame : polars.DataFrame
        Its columns.
    target : str or None
        The name of the target, where the format has one.
    unnamed : dict of str to int
        Columns without a name in the file, under the name they were given, and their numbers.
    """

    frame: pl.DataFrame
    target: str | None = None
    unnamed: Mapping[str, int] = field(default_factory=dict)

    def take(self) -> pl.DataFrame:
        """The frame, which is then the caller's alone: its columns can be freed one by one."""
        frame, self.frame = self.frame, pl.DataFrame()
        return frame


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


def _read_parquet(path: Path, header: bool) -> FileTable:
    try:
        lazy = pl.scan_parquet(path.absolute(), glob=False)
        n_rows, n_columns = lazy.select(pl.len()).collect().item(), len(lazy.collect_schema())
        check_fits(str(path), NUMBER * n_rows * n_columns)  # a few bytes may stand for any number
        with path.open("rb") as stream:
            return FileTable(pl.read_parquet(stream))
    except pl.exceptions.PolarsError as error:
        raise InvalidTable(f"{path} is no Parquet file: {first_line(error)}.") from error


def _read_arff(path: Path, header: bool) -> FileTable:
    beginning(path)
    return FileTable(read_arff(path, MISSING))


def _read_libsvm(path: Path, header: bool) -> FileTable:
    """Columns are called by their index in the file, whether it counts from 0 or from 1."""
    try:
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InvalidTable(
            f"{path} is no LIBSVM file, whose lines read 'target index:value ...': "
            f"{first_line(error)}."
        ) from error
    if not len(y) or not X.shape[1]:
        raise InvalidTable(f"{path} holds no values. Give a LIBSVM file with data.")
    check_fits(f"{path}, its zeros included,", NUMBER * X.shape[0] * X.shape[1])
    start = 0 if X[:, [0]].nnz else 1
    dense = X[:, start:].toarray()
    if not dense.shape[1]:
        raise InvalidTable(f"{path} holds no values. Give a LIBSVM file with data.")
    names = [f"x{j}" for j in range(start, X.shape[1])]
    target = y.astype(np.int64) if (y == np.rint(y)).all() else y
    frame = pl.DataFrame(dense, schema=names)
    return FileTable(frame.with_columns(pl.Series("target", target)), "target")


def _read_csv(path: Path, header: bool) -> FileTable:
    frame, unnamed = read_separated(path, None, MISSING, header)
    return FileTable(frame, unnamed=unnamed)


def _read_tsv(path: Path, header: bool) -> FileTable:
    frame, unnamed = read_separated(path, "\t", MISSING, header)
    return FileTable(frame, unnamed=unnamed)


READERS: dict[str, Callable[[Path, bool], FileTable]] = {
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
    "arff": _read_arff,
    "libsvm": _read_libsvm,
}

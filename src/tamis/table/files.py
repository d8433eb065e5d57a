"""Reading files: every format becomes one frame whose columns have names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from tamis._format import did_you_mean
from tamis._sparse import canonical
from tamis.contract import SparseColumns
from tamis.datasets.memory import NUMBER, check_fits
from tamis.exceptions import InvalidTable, MissingExtra
from tamis.table.arff import read_arff
from tamis.table.formats import EXTENSIONS
from tamis.table.separated import beginning, first_line, read_separated, tidied
from tamis.table.sources import TableSource, opened

#: Bytes of a column of a sparse table that holds nothing: its name and what is known of it.
NAME = 200
#: What is read as a missing value in text formats.
MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]


@dataclass
class FileTable:
    """What a file holds.

    Attributes
    ----------
    frame : polars.DataFrame
        Its columns; of a sparse format the target alone.
    target : str or None
        The name of the target, where the format has one.
    unnamed : dict of str to int
        Columns without a name in the file, under the name they were given, and their numbers.
    sparse : SparseColumns or None
        The features of a sparse format.
    """

    frame: pl.DataFrame
    target: str | None = None
    unnamed: Mapping[str, int] = field(default_factory=dict)
    sparse: SparseColumns | None = None

    def take(self) -> pl.DataFrame:
        """The frame, which is then the caller's alone: its columns can be freed one by one."""
        frame, self.frame = self.frame, pl.DataFrame()
        return frame


def read_file(where: str | Path, kind: str | None = None, *, header: bool = True) -> FileTable:
    """Columns of a file.

    Parameters
    ----------
    where : str or Path
        A file, compressed (.gz, .zst, .bz2) or not; "-" stands for standard input.
    kind : {"csv", "tsv", "parquet", "arrow", "excel", "arff", "libsvm"}, optional
        The format, where the extension does not tell.
    header : bool, default=True
        Whether the first line of a CSV or TSV file has the names; if not they are x1, x2, ...
    """
    if kind is not None:
        _check_kind(kind)
    try:
        with opened(where) as source:
            table = READERS[kind or source.format or _no_format(source)](source, header)
    except OSError as error:
        raise InvalidTable(f"{where} cannot be read: {error.strerror or error}.") from error
    if table.frame.height == 0:
        raise InvalidTable(f"{where} has no rows below its header. Give a file with data.")
    return table


def _check_kind(kind: str) -> None:
    if kind not in READERS:
        raise InvalidTable(
            f"There is no format {kind!r}.{did_you_mean(kind, READERS)} Write --format with one of "
            f"{', '.join(READERS)}."
        )


def _no_format(source: TableSource) -> str:
    suffix = Path(str(source)).suffix
    shown = f"the extension {suffix!r}" if suffix else "no extension"
    raise InvalidTable(
        f"{source} has {shown}, which says nothing about its format. Write --format with one of "
        f"{', '.join(READERS)}, or name it {', '.join(f'*{end}' for end in EXTENSIONS)}."
    )


def _read_parquet(source: TableSource, header: bool) -> FileTable:
    try:
        _check_size(source, pl.scan_parquet(source.path.absolute(), glob=False))
        with source.open("rb") as stream:
            return FileTable(pl.read_parquet(stream))
    except pl.exceptions.PolarsError as error:
        raise InvalidTable(f"{source} is no Parquet file: {first_line(error)}.") from error


def _read_arrow(source: TableSource, header: bool) -> FileTable:
    try:
        _check_size(source, pl.scan_ipc(source.path.absolute(), glob=False))
        with source.open("rb") as stream:
            return FileTable(pl.read_ipc(stream))
    except pl.exceptions.PolarsError as error:
        raise InvalidTable(f"{source} is no Arrow or Feather file: {first_line(error)}.") from error


def _check_size(source: TableSource, lazy: pl.LazyFrame) -> None:
    """Refuse by the header alone: a few compressed bytes may stand for any number."""
    n_rows, n_columns = lazy.select(pl.len()).collect().item(), len(lazy.collect_schema())
    check_fits(str(source), NUMBER * n_rows * n_columns)


def _read_excel(source: TableSource, header: bool) -> FileTable:
    if find_spec("fastexcel") is None:
        raise MissingExtra(
            f"{source} is an Excel file, and fastexcel, which reads those, is not installed. Write "
            "pip install 'tamis[app]', or save the sheet as CSV."
        )
    try:
        frame = pl.read_excel(source.path, has_header=header)
    except Exception as error:  # fastexcel has errors of its own
        raise InvalidTable(
            f"{source} is no Excel file whose first sheet holds a table: {first_line(error)}."
        ) from error
    if not header:
        frame.columns = [f"x{j}" for j in range(1, frame.width + 1)]
    return FileTable(tidied(frame, MISSING))


def _read_arff(source: TableSource, header: bool) -> FileTable:
    beginning(source)
    return FileTable(read_arff(source, MISSING))


def _read_libsvm(source: TableSource, header: bool) -> FileTable:
    """Columns are called by their index in the file, whether it counts from 0 or from 1."""
    try:
        X, y = load_svmlight_file(str(source.path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InvalidTable(
            f"{source} is no LIBSVM file, whose lines read 'target index:value ...': "
            f"{first_line(error)}."
        ) from error
    check_fits(f"{source}, with a name for each column,", NAME * X.shape[1])
    start = 0 if X.shape[1] and X[:, [0]].nnz else 1
    if not len(y) or X.shape[1] <= start:
        raise InvalidTable(f"{source} holds no values. Give a LIBSVM file with data.")
    names = [f"x{j}" for j in range(start, X.shape[1])]
    target = y.astype(np.int64) if (y == np.rint(y)).all() else y
    table = SparseColumns(canonical(X[:, start:]), names)
    return FileTable(pl.DataFrame({"target": target}), "target", sparse=table)


def _read_csv(source: TableSource, header: bool) -> FileTable:
    frame, unnamed = read_separated(source, None, MISSING, header)
    return FileTable(frame, unnamed=unnamed)


def _read_tsv(source: TableSource, header: bool) -> FileTable:
    frame, unnamed = read_separated(source, "\t", MISSING, header)
    return FileTable(frame, unnamed=unnamed)


READERS: dict[str, Callable[[TableSource, bool], FileTable]] = {
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "excel": _read_excel,
    "arff": _read_arff,
    "libsvm": _read_libsvm,
}

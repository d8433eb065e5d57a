"""Readers for all file formats. They return a frame with named columns."""

import csv
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from tamis._format import did_you_mean, first_line, format_names, quote_for_shell
from tamis._memory import NUMBER, check_fits, free_memory
from tamis._sparse import canonical
from tamis.blocks.inputs import SparseColumns
from tamis.exceptions import InvalidTable, MissingExtra
from tamis.table.alerts import Alert
from tamis.table.csv import parse_text, read_csv
from tamis.table.sources import EXTENSIONS, TableSource, as_utf8, open_source

#: Program that reads a sheet. A small file may declare a huge sheet. If the memory for it cannot be
#: allocated, the reader ends its process, so it runs in a separate process.
_SHEET = """
import sys, polars
path, sheet, header, target, most = sys.argv[1:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_DATA, (int(most), resource.RLIM_INFINITY))
except (ImportError, ValueError, OSError):
    pass
try:
    frame = polars.read_excel(path, sheet_name=sheet, has_header=header == "True")
    frame.write_ipc(target)
except BaseException as error:
    sys.exit(str(error).strip())
"""


@dataclass
class FileTable:
    """Content of a table file.

    Attributes
    ----------
    frame : polars.DataFrame
        The columns. For a sparse format, only the target.
    target : str or None
        Name of the target column, if the format defines one.
    unnamed : dict of str to int
        Columns that have no name in the file. Maps the name that they were given to their position.
    sparse : SparseColumns or None
        Features of a sparse format, otherwise None.
    decimal : str or None
        Decimal separator of the file, if it is known.
    alerts : tuple of Alert
        Findings about the file.
    """

    frame: pl.DataFrame
    target: str | None = None
    unnamed: Mapping[str, int] = field(default_factory=dict)
    sparse: SparseColumns | None = None
    decimal: str | None = None
    alerts: tuple[Alert, ...] = ()

    @property
    def hint(self) -> str:
        """Sentence about other sheets of the file, for errors about columns that are missing."""
        return "".join(f" {alert.sentence}" for alert in self.alerts if alert.sort == "sheets")

    def take(self) -> pl.DataFrame:
        """Return the frame and drop the reference to it, so that columns can be freed singly."""
        frame, self.frame = self.frame, pl.DataFrame()
        return frame


def read_file(
    where: str | Path,
    kind: str | None = None,
    *,
    header: bool = True,
    sheet: str | int | None = None,
    encoding: str | None = None,
) -> FileTable:
    """Read the columns of a file in any supported format.

    Parameters
    ----------
    where : str or Path
        A file, compressed (.gz, .zst, .bz2) or not. "-" means standard input.
    kind : {"csv", "tsv", "parquet", "arrow", "excel", "arff", "libsvm"}, optional
        The format. By default, it follows from the extension.
    header : bool, default=True
        Whether the first line of a CSV or TSV file holds the names. If not, they are x1, x2, ...
    sheet : str or int, optional
        Name or number of the sheet of an Excel file. The default is the first one.
    encoding : str, optional
        Encoding of a text file. By default, it is UTF-8, or Windows-1252 if that is unambiguous.
    """
    if kind is not None and kind not in READERS:
        raise InvalidTable(
            f"There is no format {kind!r}.{did_you_mean(kind, READERS)} Write --format with one of "
            f"{', '.join(READERS)}."
        )
    try:
        with open_source(where) as source:
            kind = kind or source.format or _refuse(source)
            for option, value, fits in (("sheet", sheet, {"excel"}), ("encoding", encoding, TEXT)):
                if value is not None and kind not in fits:
                    raise InvalidTable(
                        f"--{option} is for {', '.join(sorted(fits))} files, and {where} is "
                        f"{kind}. Leave it out."
                    )
            detected = None
            if kind in TEXT:
                source, detected = as_utf8(source, encoding)
            read = partial(_read_excel, sheet=sheet) if kind == "excel" else READERS[kind]
            table = read(source, header)
    except OSError as error:
        raise InvalidTable(f"{where} cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, csv.Error, pl.exceptions.PanicException) as error:
        raise InvalidTable(
            f"{where} is damaged: {first_line(error)}. Write the file again."
        ) from error
    if table.frame.height == 0:
        raise InvalidTable(
            f"{where} has no rows below its header. Give a file with data.{table.hint}"
        )
    if detected is not None:
        sentence = (
            f"{where} is not in UTF-8, and is read as {detected} (Western European). Write "
            "encoding=... (--encoding NAME) if letters are wrong."
        )
        table.alerts += (Alert("encoding", (), sentence),)
    return table


def _refuse(source: TableSource) -> str:
    suffix = Path(str(source)).suffix
    shown = f"the extension {suffix!r}" if suffix else "no extension"
    raise InvalidTable(
        f"{source} has {shown}, so its format is unknown. Write --format with one of "
        f"{', '.join(READERS)}, or name it {', '.join(f'*{end}' for end in EXTENSIONS)}."
    )


def _read_columnar(
    source: TableSource, header: bool, *, scan: Any, read: Any, called: str
) -> FileTable:
    """Read a columnar format, such as Parquet, whose header states its size."""
    try:
        # the header is checked first, because a small compressed file may hold a huge table
        lazy = scan(source.path.absolute(), glob=False)
        n_rows = lazy.select(pl.len()).collect().item()
        check_fits(str(source), NUMBER * n_rows * len(lazy.collect_schema()))
        with source.path.open("rb") as stream:
            return FileTable(read(stream))
    except pl.exceptions.PolarsError as error:
        raise InvalidTable(f"{source} is not {called} file: {first_line(error)}.") from error


def _read_excel(source: TableSource, header: bool, sheet: str | int | None = None) -> FileTable:
    if find_spec("fastexcel") is None:
        raise MissingExtra(
            f"{source} is an Excel file, which needs fastexcel, and that is not installed. Write "
            "pip install 'tamis[app]', or save the sheet as CSV."
        )
    import fastexcel

    try:
        sheets = fastexcel.read_excel(source.path).sheet_names
    except Exception as error:  # fastexcel raises its own errors
        raise InvalidTable(f"{source} is not an Excel file: {first_line(error)}.") from error
    chosen = _find_sheet(source, sheets, sheet)
    with TemporaryDirectory() as folder:
        target = Path(folder) / "sheet.arrow"
        most = int(free_memory() or sys.maxsize)
        arguments = [str(source.path), chosen, str(header), str(target), str(most)]
        done = subprocess.run(
            [sys.executable, "-c", _SHEET, *arguments], capture_output=True, check=False
        )
        if done.returncode:
            why = done.stderr.decode(errors="replace").strip().partition("\n")[0].rstrip(".:")
            if done.returncode != 1:  # the reader was aborted
                why = "the sheet needs more memory than is free, or the file is damaged"
            known = format_names([each for each in sheets if each != chosen])
            other = f", or write --sheet for another one: {known}" if len(sheets) > 1 else ""
            raise InvalidTable(
                f"{source} is not an Excel file whose sheet {chosen!r} holds a table: {why}. Save "
                f"the sheet as CSV{other}."
            )
        frame = pl.read_ipc(target.read_bytes())
    if not header:
        frame.columns = [f"x{j}" for j in range(1, frame.width + 1)]
    table = FileTable(parse_text(frame))
    others = [each for each in sheets if each != chosen]
    if others and sheet is None:
        sentence = (
            f"The sheet {chosen!r} is read. {source} also has {format_names(others)}. Write "
            f"sheet={others[0]!r} (--sheet {quote_for_shell(others[0])}) for another sheet."
        )
        table.alerts = (Alert("sheets", (), sentence),)
    return table


def _find_sheet(source: TableSource, sheets: list[str], sheet: str | int | None) -> str:
    """Return the name of a sheet that is given by name or by number."""
    if sheet is None or sheet in sheets:
        return sheets[0] if sheet is None else str(sheet)
    if str(sheet).isdecimal() and 1 <= int(sheet) <= len(sheets):
        return sheets[int(sheet) - 1]
    raise InvalidTable(
        f"{source} has no sheet {sheet!r}.{did_you_mean(str(sheet), sheets)} Write --sheet with "
        f"one of {format_names(sheets)}, or a number from 1 to {len(sheets)}."
    )


def _read_arff(source: TableSource, header: bool) -> FileTable:
    from tamis.table.arff import read_arff  # rarely needed

    return FileTable(read_arff(source))


def _read_libsvm(source: TableSource, header: bool) -> FileTable:
    """Read a LIBSVM file. Its columns are the indices that occur in it, and are named by them."""
    from sklearn.datasets import load_svmlight_file  # slow to import, and rarely needed

    try:
        X, y = load_svmlight_file(str(source.path), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise InvalidTable(
            f"{source} is not a LIBSVM file with lines 'target index:value ...': "
            f"{first_line(error)}."
        ) from error
    # indices that never occur are not columns, because a short file may contain the index 10^9
    found, columns = np.unique(X.indices, return_inverse=True)
    if not len(y) or not len(found):
        raise InvalidTable(f"{source} holds no values. Give a LIBSVM file with data.")
    names = [f"x{j}" for j in found.tolist()]
    X = csr_array((X.data, columns, X.indptr), shape=(len(y), len(names)))
    whole = np.abs(y).max() < 2**53 and (y == np.rint(y)).all()
    target = y.astype(np.int64) if whole else y
    table = SparseColumns(canonical(X), names)
    return FileTable(pl.DataFrame({"target": target}), "target", sparse=table)


def _read_csv(source: TableSource, header: bool, *, separator: str | None = None) -> FileTable:
    frame, unnamed, decimal = read_csv(source, separator, header)
    return FileTable(frame, unnamed=unnamed, decimal=decimal)


PARQUET: dict[str, Any] = {"scan": pl.scan_parquet, "read": pl.read_parquet, "called": "a Parquet"}
ARROW: dict[str, Any] = {"scan": pl.scan_ipc, "read": pl.read_ipc, "called": "an Arrow or Feather"}
#: Formats that are text.
TEXT = {"csv", "tsv", "arff"}
READERS: dict[str, Callable[[TableSource, bool], FileTable]] = {
    "csv": _read_csv,
    "tsv": partial(_read_csv, separator="\t"),
    "parquet": partial(_read_columnar, **PARQUET),
    "arrow": partial(_read_columnar, **ARROW),
    "excel": _read_excel,
    "arff": _read_arff,
    "libsvm": _read_libsvm,
}

"""Row blocks of Parquet files: row groups, and only the columns that are asked for."""

from collections.abc import Iterator, Sequence
from copy import copy
from hashlib import sha256
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import times_as_days
from tamis._format import did_you_mean, first_line, format_names
from tamis.blocks.local import BLOCK_NUMBERS, LocalBlocks
from tamis.blocks.source import RowBlock
from tamis.exceptions import InvalidTable, InvalidTarget, MissingExtra

#: Arrow's type of a column in which a file has no value at all: it may be of any kind.
NOTHING_THERE = "null"
#: How the types begin of what is neither a class nor a number.
NOT_A_TARGET = ("list", "large_list", "fixed_size_list", "struct", "map")


class RowGroup(NamedTuple):
    """Where a row group stands, its first row in the table, and rows and bytes that it claims."""

    file: str
    number: int
    start: int
    n_rows: int
    n_bytes: int

    def __str__(self) -> str:
        return f"row group {self.number} of {self.file}"


class Parquet(LocalBlocks):
    """Row groups of a Parquet file, or of all files of a folder in the order of their names.

    Parameters
    ----------
    where : str or Path
        A file, a folder, or an address that fsspec opens, such as ``s3://bucket/folder``.
    target : str or None, default=None
        The column that is the target.
    columns : sequence of str or None, default=None
        The columns to choose among; None is all but the target.

    Examples
    --------
    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> source = Parquet("visits.parquet", target="stroke")         # doctest: +SKIP
    >>> Forward(MRMR(), n_features_to_select=5).fit(source).columns  # doctest: +SKIP
    """

    names: list[str]

    def __init__(
        self, where: Any, *, target: str | None = None, columns: Sequence[str] | None = None
    ):
        if find_spec("pyarrow") is None:
            raise MissingExtra(
                "Parquet files need pyarrow, which is not installed. Write "
                "pip install 'tamis[app]'."
            )
        self.where, self.target, self._columns = fspath(where), target, columns
        self._filesystem, self._files = _files_of(self.where)
        self._groups = self._listed()
        self.names = self._names(columns)
        self.n_columns = len(self.names)
        self.n_chunks = len(self._groups)

    def targeted(self, target: str) -> Self:
        """The same source with another column for the target."""
        return type(self)(self.where, target=target, columns=self._columns)

    def narrowed(self, columns: NDArray[Any]) -> Self:
        """The same rows with some of the columns, which alone are read."""
        other = copy(self)  # of whose files nothing is to be looked up anew
        other._columns = other.names = [self.names[j] for j in columns]
        other.n_columns = len(other.names)
        return other

    def _listed(self) -> list[RowGroup]:
        """All row groups; files whose columns differ are refused."""
        groups: list[RowGroup] = []
        self._kinds: dict[str, str] = {}
        start = 0
        for file in self._files:
            with self._open(file) as opened:
                self._check_columns(file, opened.schema_arrow)
                footer = opened.metadata
                for number in range(footer.num_row_groups):
                    told = footer.row_group(number)
                    size = told.num_rows, told.total_byte_size
                    groups.append(RowGroup(file, number, start, *size))
                    start += told.num_rows
        return groups

    def _check_columns(self, file: str, schema: Any) -> None:
        found = {field.name: _kind(field.type) for field in schema}
        if len(found) < len(schema):
            twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
            raise InvalidTable(
                f"{file} has several columns of the name {format_names(twice)}. Write the file "
                "with a name for each column."
            )
        if not self._kinds:
            self._kinds = found
        for name in self._kinds.keys() | found.keys():
            expected, kind = self._kinds.get(name), found.get(name)
            if expected == NOTHING_THERE and kind is not None:
                self._kinds[name] = kind
            elif expected != kind and (expected is None or kind != NOTHING_THERE):
                raise InvalidTable(
                    f"{file} has {kind or 'nothing'} as column {name!r}, but {self._files[0]} has "
                    f"{expected or 'nothing'}. Write the files with the same columns, or move this "
                    "one out of the folder."
                )

    def _names(self, columns: Sequence[str] | None) -> list[str]:
        known = list(self._kinds)
        asked = known if columns is None else list(columns)
        for name in [*asked, *([] if self.target is None else [self.target])]:
            if name not in self._kinds:
                raise InvalidTable(
                    f"{self.where} has no column {name!r}.{did_you_mean(str(name), known)} Write "
                    "one of "
                    f"{format_names(known)}."
                )
        self._check_target()
        names = [name for name in asked if name != self.target]
        wrong = [name for name in names if self._kinds[name] not in ("numbers", NOTHING_THERE)]
        if wrong and self.target is not None:
            raise InvalidTable(
                f"{self.where} is read in blocks of rows, which takes numbers, but column(s) "
                f"{format_names(wrong)} hold {self._kinds[wrong[0]]}. Leave them out "
                "(--drop, or Parquet(..., columns=[...])), or write them as numbers."
            )
        if not names:
            raise InvalidTable(f"{self.where} has no columns to choose among.")
        return names

    def _check_target(self) -> None:
        kind = "" if self.target is None else self._kinds[self.target]
        if kind.startswith(NOT_A_TARGET):
            raise InvalidTarget(
                f"The target {self.target!r} of {self.where} holds {kind}. Write one class or "
                "number for each row."
            )

    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        group = self._groups[index]
        if self.target is None:
            raise InvalidTarget(
                f"Which column of {self.where} is the target? Write target= with one of "
                f"{format_names(list(self._kinds)[::-1])}."
            )
        names = [self.target] if target_only else [*self.names, self.target]
        start = group.start
        for batch in self._batches(group, names):
            y = _values(batch.column(self.target))
            columns = [] if target_only else [_numbers(batch.column(name)) for name in self.names]
            yield RowBlock(_table(columns, len(y)), y, start, str(group))
            start += len(y)

    @property
    def n_rows(self) -> int:
        """Rows of all files, by what they say of themselves."""
        return sum(group.n_rows for group in self._groups)

    def rows(self, numbers: NDArray[np.intp]) -> Any:
        """Rows of some numbers, rising, as a pyarrow Table of the columns as the files have them.

        Text, dates and gaps stay what they are; one pass over the row groups that hold them.
        """
        import pyarrow as pa

        names = [*self.names, *([] if self.target is None else [self.target])]
        found = []
        for group in self._groups:
            start, last = group.start, group.start + group.n_rows
            if np.searchsorted(numbers, start) == np.searchsorted(numbers, last):
                continue
            for batch in self._batches(group, names):
                first, end = np.searchsorted(numbers, [start, start + len(batch)])
                own = batch.take(pa.array(numbers[first:end] - start))
                found.append(own if isinstance(own, pa.Table) else pa.table(own))
                start += len(batch)
        return pa.concat_tables(_alike(found), promote_options="permissive")

    def _batches(self, group: RowGroup, names: list[str]) -> Iterator[Any]:
        """Batches of a row group; damage is said with its place."""
        from pyarrow import ArrowException

        rows = max(1, BLOCK_NUMBERS // len(names))
        try:
            with self._open(group.file) as opened:
                self._check_unchanged(group, opened.metadata)
                if group.n_rows <= 2 * rows:  # at once is faster than in batches
                    yield opened.read_row_group(group.number, columns=names)
                else:
                    yield from opened.iter_batches(rows, row_groups=[group.number], columns=names)
        except (ArrowException, OSError) as error:
            column = self._damaged_column(group, names)
            raise InvalidTable(
                f"{group} cannot be read{column}: {first_line(error)}. Write the file anew, or "
                "move it out of the folder."
            ) from error

    def _check_unchanged(self, group: RowGroup, footer: Any) -> None:
        """Refuse a file that was written anew between two passes, which would count other rows."""
        if group.number < footer.num_row_groups:
            now = footer.row_group(group.number)
            if (now.num_rows, now.total_byte_size) == (group.n_rows, group.n_bytes):
                return
        raise InvalidTable(
            f"{group.file} has changed since it was opened: row group {group.number} is not what "
            "it was. Start again, once nothing writes to it."
        )

    def _damaged_column(self, group: RowGroup, names: list[str]) -> str:
        from pyarrow import ArrowException

        for name in names:
            try:
                with self._open(group.file) as opened:
                    opened.read_row_group(group.number, columns=[name])
            except (ArrowException, OSError, InvalidTable):
                return f", column {name!r}"
        return ""

    def _open(self, file: str) -> Any:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            if self._filesystem is None:
                return ParquetFile(file, pre_buffer=False)
            # each request to a store takes as long as some megabytes: few large ones
            return ParquetFile(self._filesystem.open(file, "rb"), pre_buffer=True)
        except (ArrowException, OSError) as error:
            raise InvalidTable(
                f"{file} is no Parquet file: {first_line(error)}. Tables of another kind are not "
                "read in blocks of rows: write them as Parquet, or give the table itself."
            ) from error

    def identity(self) -> str:
        told = [(group.n_rows, group.n_bytes) for group in self._groups]
        return sha256(f"{self.names} {self.target} {told}".encode()).hexdigest()

    def __str__(self) -> str:
        return str(self.where)


def _files_of(where: str) -> tuple[Any, list[str]]:
    """The file system, None for that of this machine, and the files of a place."""
    if "://" in where:
        return _remote_files(where)
    path = Path(where)
    if path.is_dir():
        there = [file for file in path.rglob("*.parquet") if _is_data(file, path)]
        # programs call a folder of parts table.parquet too, whose files stand here by themselves
        found = sorted(str(file) for file in there if not file.is_dir())
        if not found:
            raise InvalidTable(f"{where} is a folder without *.parquet files.")
        return None, found
    if not path.exists():
        raise InvalidTable(f"There is no file {where}.")
    return None, [where]


def _is_data(file: PurePath, folder: PurePath) -> bool:
    """Whether a file of a folder holds rows: what begins with . or _ is put there by programs.

    >>> _is_data(Path("visits/_temporary/part-0.parquet"), Path("visits"))
    False
    """
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _remote_files(where: str) -> tuple[Any, list[str]]:
    if find_spec("fsspec") is None:
        raise MissingExtra(
            f"{where} needs fsspec, which is not installed. Write pip install 'tamis[dask]'."
        )
    from fsspec.core import url_to_fs

    try:
        filesystem, path = url_to_fs(where)
        if path.endswith(".parquet") and filesystem.isfile(path):
            return filesystem, [path]
        # not by a pattern, which what stands in [] of an address would be part of
        found = sorted(name for name in filesystem.find(path) if name.endswith(".parquet"))
        there = bool(found) or filesystem.exists(path)
        is_folder = there and filesystem.isdir(path)
    except ImportError as error:
        raise MissingExtra(
            f"{where} needs a package that is not installed: {first_line(error)}. Write "
            "pip install with its name."
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidTable(f"{where} cannot be reached: {first_line(error)}.") from error
    if not there:
        raise InvalidTable(f"There is nothing at {where}. Check the address.")
    if not is_folder:
        return filesystem, [path]
    found = [file for file in found if _is_data(PurePosixPath(file), PurePosixPath(path))]
    if not found:
        raise InvalidTable(f"{where} is a folder without *.parquet files.")
    return filesystem, found


def _kind(arrow_type: Any) -> str:
    """What a column holds, as far as it matters here."""
    import pyarrow.types as kinds

    numbers = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    if any(is_kind(arrow_type) for is_kind in numbers):
        return "numbers"
    text = (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_dictionary)
    return "text" if any(is_kind(arrow_type) for is_kind in text) else str(arrow_type)


def _numbers(column: Any) -> NDArray[Any]:
    """A column as an array; what is missing is NaN."""
    import pyarrow.types as kinds

    if kinds.is_decimal(column.type) or (column.null_count and not kinds.is_floating(column.type)):
        column = column.cast("float64")
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False)
    if values.dtype == np.float16:
        return np.asarray(values, dtype=np.float32)  # the narrowest that loops are compiled for
    return np.asarray(values.view(np.uint8) if values.dtype == bool else values)


def _values(column: Any) -> NDArray[Any]:
    """A target as an array: numbers, or text."""
    import pyarrow.types as kinds

    if kinds.is_decimal(column.type):
        column = column.cast("float64")
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False)
    return np.asarray(times_as_days(values))


def _alike(tables: list[Any]) -> list[Any]:
    """Tables whose columns can be put one below the other: their categories may be others.

    Truth becomes 0 and 1, and a category its text, where another file has these.
    """
    import pyarrow.types as kinds

    for name in tables[0].column_names:
        found = {table.schema.field(name).type for table in tables}
        if len(found) == 1:
            continue
        for number, table in enumerate(tables):
            kind = table.schema.field(name).type
            if kinds.is_boolean(kind) and not all(map(_is_truth, found)):
                kind = "uint8"
            elif kinds.is_dictionary(kind):
                kind = kind.value_type
            place = table.column_names.index(name)
            tables[number] = table.set_column(place, name, table.column(place).cast(kind))
    return tables


def _is_truth(arrow_type: Any) -> bool:
    """Whether a type is that of truth, or of nothing that is there."""
    import pyarrow.types as kinds

    return bool(kinds.is_boolean(arrow_type) or kinds.is_null(arrow_type))


def _table(columns: list[NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Columns beside each other, in the narrowest type that holds all of them."""
    if not columns:
        return np.empty((n_rows, 0))
    kind = np.result_type(*{column.dtype for column in columns})
    table = np.empty((n_rows, len(columns)), dtype=kind, order="F")
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def is_path(X: Any) -> bool:
    """Whether something is written as a place in a file system."""
    return isinstance(X, str | PathLike)

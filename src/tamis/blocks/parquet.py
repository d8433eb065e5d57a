"""Row blocks of Parquet files, which are read by row group and by column."""

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

#: Name of Arrow's type for a column without any value. It is compatible with every other type.
NOTHING_THERE = "null"
#: Beginnings of the names of Arrow types that a target cannot have.
NOT_A_TARGET = ("list", "large_list", "fixed_size_list", "struct", "map")


class RowGroup(NamedTuple):
    """A row group: its file, its number in the file, its first row in the table, and its size."""

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
        A file, a folder, or an address that fsspec can open, such as ``s3://bucket/folder``.
    target : str or None, default=None
        Name of the target column.
    columns : sequence of str or None, default=None
        Names of the columns to select from. None means all columns except the target.

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
        self._groups = self._list_groups()
        self.names = self._names(columns)
        self.n_columns = len(self.names)
        self.n_chunks = len(self._groups)

    def targeted(self, target: str) -> Self:
        """Return the same source with a different target column."""
        return type(self)(self.where, target=target, columns=self._columns)

    def narrowed(self, columns: NDArray[Any]) -> Self:
        """Return a source with the same rows and only the given columns. Others are not read."""
        other = copy(self)  # avoids reading the metadata of the files again
        other._columns = other.names = [self.names[j] for j in columns]
        other.n_columns = len(other.names)
        return other

    def _list_groups(self) -> list[RowGroup]:
        """Return all row groups. Refuse files whose columns differ."""
        groups: list[RowGroup] = []
        self._kinds: dict[str, str] = {}
        start = 0
        for file in self._files:
            with self._open(file) as opened:
                self._check_columns(file, opened.schema_arrow)
                footer = opened.metadata
                for number in range(footer.num_row_groups):
                    group = footer.row_group(number)
                    size = group.num_rows, group.total_byte_size
                    groups.append(RowGroup(file, number, start, *size))
                    start += group.num_rows
        return groups

    def _check_columns(self, file: str, schema: Any) -> None:
        found = {field.name: _kind(field.type) for field in schema}
        if len(found) < len(schema):
            twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
            raise InvalidTable(
                f"{file} has more than one column named {format_names(twice)}. Rename the columns "
                "so that every name is unique."
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
        names = known if columns is None else list(columns)
        for name in [*names, *([] if self.target is None else [self.target])]:
            if name not in self._kinds:
                raise InvalidTable(
                    f"{self.where} has no column {name!r}.{did_you_mean(str(name), known)} Write "
                    f"one of {format_names(known)}."
                )
        self._check_target()
        names = [name for name in names if name != self.target]
        wrong = [name for name in names if self._kinds[name] not in ("numbers", NOTHING_THERE)]
        if wrong and self.target is not None:
            raise InvalidTable(
                f"{self.where} is read in row blocks, which need numbers, but column(s) "
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
        """Total number of rows of all files, from their metadata."""
        return sum(group.n_rows for group in self._groups)

    def rows(self, numbers: NDArray[np.intp]) -> Any:
        """Return the rows with the given increasing row numbers as a pyarrow Table.

        Text, dates and missing values keep their types. Only row groups that contain such rows are
        read.
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
        return pa.concat_tables(_unify(found), promote_options="permissive")

    def _batches(self, group: RowGroup, names: list[str]) -> Iterator[Any]:
        """Yield the batches of a row group. Errors about damaged data name the file and column."""
        from pyarrow import ArrowException

        rows = max(1, BLOCK_NUMBERS // len(names))
        try:
            with self._open(group.file) as opened:
                self._check_unchanged(group, opened.metadata)
                if group.n_rows <= 2 * rows:  # reading all at once is faster than in batches
                    yield opened.read_row_group(group.number, columns=names)
                else:
                    yield from opened.iter_batches(rows, row_groups=[group.number], columns=names)
        except (ArrowException, OSError) as error:
            column = self._damaged_column(group, names)
            raise InvalidTable(
                f"{group} cannot be read{column}: {first_line(error)}. Write the file again, or "
                "move it out of the folder."
            ) from error

    def _check_unchanged(self, group: RowGroup, footer: Any) -> None:
        """Refuse a file that was rewritten between two passes."""
        if group.number < footer.num_row_groups:
            now = footer.row_group(group.number)
            if (now.num_rows, now.total_byte_size) == (group.n_rows, group.n_bytes):
                return
        raise InvalidTable(
            f"{group.file} has changed since it was opened: row group {group.number} is different. "
            "Start again when no other program writes to it."
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
            # a request to an object store takes as long as reading megabytes, so make few large
            # requests
            return ParquetFile(self._filesystem.open(file, "rb"), pre_buffer=True)
        except (ArrowException, OSError) as error:
            raise InvalidTable(
                f"{file} is not a Parquet file: {first_line(error)}. Only Parquet files are read "
                "in row blocks: write the table as Parquet, or pass the table itself."
            ) from error

    def identity(self) -> str:
        sizes = [(group.n_rows, group.n_bytes) for group in self._groups]
        return sha256(f"{self.names} {self.target} {sizes}".encode()).hexdigest()

    def __str__(self) -> str:
        return str(self.where)


def _files_of(where: str) -> tuple[Any, list[str]]:
    """Return the file system (None for the local one), and the files at a path or address."""
    if "://" in where:
        return _remote_files(where)
    path = Path(where)
    if path.is_dir():
        there = [file for file in path.rglob("*.parquet") if _is_data(file, path)]
        # some programs write a folder named table.parquet, whose files are found as well
        found = sorted(str(file) for file in there if not file.is_dir())
        if not found:
            raise InvalidTable(f"{where} is a folder without *.parquet files.")
        return None, found
    if not path.exists():
        raise InvalidTable(f"There is no file {where}.")
    return None, [where]


def _is_data(file: PurePath, folder: PurePath) -> bool:
    """Return whether a file contains rows.

    Names that begin with . or _ are metadata of other programs.

    >>> _is_data(Path("visits/_temporary/part-0.parquet"), Path("visits"))
    False
    """
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _remote_files(where: str) -> tuple[Any, list[str]]:
    if find_spec("fsspec") is None:
        raise MissingExtra(
            f"{where} needs fsspec, which is not installed. Run pip install 'tamis[dask]'."
        )
    from fsspec.core import url_to_fs

    try:
        filesystem, path = url_to_fs(where)
        if path.endswith(".parquet") and filesystem.isfile(path):
            return filesystem, [path]
        # not a glob pattern, because an address may contain []
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
    """Return "numbers" or "text" for an Arrow type, or the name of any other type."""
    import pyarrow.types as kinds

    numbers = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    if any(is_kind(arrow_type) for is_kind in numbers):
        return "numbers"
    text = (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_dictionary)
    return "text" if any(is_kind(arrow_type) for is_kind in text) else str(arrow_type)


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column as an array, with NaN for missing values."""
    import pyarrow.types as kinds

    if kinds.is_decimal(column.type) or (column.null_count and not kinds.is_floating(column.type)):
        column = column.cast("float64")
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False)
    if values.dtype == np.float16:
        # the narrowest type for which loops are compiled
        return np.asarray(values, dtype=np.float32)
    return np.asarray(values.view(np.uint8) if values.dtype == bool else values)


def _values(column: Any) -> NDArray[Any]:
    """Return a target as an array of numbers or text."""
    import pyarrow.types as kinds

    if kinds.is_decimal(column.type):
        column = column.cast("float64")
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False)
    return np.asarray(times_as_days(values))


def _unify(tables: list[Any]) -> list[Any]:
    """Convert columns whose types differ between files, so that the tables can be concatenated.

    Booleans become 0 and 1 if another file has numbers. Categories become text.
    """
    import pyarrow.types as kinds

    for name in tables[0].column_names:
        found = {table.schema.field(name).type for table in tables}
        if len(found) == 1:
            continue
        for number, table in enumerate(tables):
            kind = table.schema.field(name).type
            numeric = not all(kinds.is_boolean(one) or kinds.is_null(one) for one in found)
            if kinds.is_boolean(kind) and numeric:
                kind = "uint8"
            elif kinds.is_dictionary(kind):
                kind = kind.value_type
            position = table.column_names.index(name)
            tables[number] = table.set_column(position, name, table.column(position).cast(kind))
    return tables


def _table(columns: list[NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Return columns as a single array of the narrowest common type."""
    if not columns:
        return np.empty((n_rows, 0))
    kind = np.result_type(*{column.dtype for column in columns})
    table = np.empty((n_rows, len(columns)), dtype=kind, order="F")
    for j, column in enumerate(columns):
        table[:, j] = column
    return table


def is_path(X: Any) -> bool:
    """Return whether an object is a path, either text or path-like."""
    return isinstance(X, str | PathLike)

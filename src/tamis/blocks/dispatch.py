"""Conversion of paths and collections to sources of row blocks, and random samples of rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._checks import check_values, integer
from tamis._frame import frame
from tamis._seeds import stream
from tamis.blocks.dask_cluster import ClusterBlocks
from tamis.blocks.labels import Labels, TargetLabels
from tamis.blocks.memory_map import MemoryMap
from tamis.blocks.parquet import Parquet, is_path
from tamis.blocks.source import BlockSource, SampledRows
from tamis.blocks.table import SAMPLE, BlockTable
from tamis.exceptions import InvalidParameter, InvalidTable

#: Maximum number of entries in a sample (1 gigabyte of float64), and minimum number of rows. The
#: sample of a table with very many columns has fewer rows, but never fewer than this minimum.
DRAWN_NUMBERS, FEWEST_DRAWN = 1 << 27, 500


def as_blocks(X: Any, y: Any = None, target: str | None = None) -> BlockSource:
    """Return a source of row blocks for a path, a Dask collection or another source.

    Parameters
    ----------
    X : str, Path, BlockSource, dask Array or DataFrame
        The path of a Parquet file or folder or of a ``.npy`` file, a Dask collection, or a source.
        A source is returned unchanged.
    y : path, array or dask collection
        The target of a ``.npy`` file or a Dask collection.
    target : str or None, default=None
        Name of the target column of a Parquet file or a DataFrame.

    Examples
    --------
    >>> as_blocks("table.npy", "answers.npy")
    Traceback (most recent call last):
    tamis.exceptions.InvalidTable: table.npy cannot be mapped as a .npy file: ...
    """
    if isinstance(X, BlockSource):
        if y is not None:
            raise InvalidParameter(f"{X} already has a target. Leave y out.")
        return X if target in (None, X.target) else X.targeted(target)
    if hasattr(X, "__dask_graph__"):
        from tamis.blocks.dask_collections import collection_blocks

        return collection_blocks(X, y, target)
    if not is_path(X):
        raise InvalidTable(
            f"Row blocks come from a path or a source of tamis.blocks, not {type(X).__name__}."
        )
    if fspath(X).endswith(".npy"):
        if y is None:
            raise InvalidParameter(
                f"{fspath(X)} has no column names, so the target must be passed separately. Write "
                "fit('X.npy', 'y.npy') or fit('X.npy', y) with an array y."
            )
        return MemoryMap(X, y)
    if y is not None:
        raise InvalidParameter(
            f"The target of {fspath(X)} is one of its columns. Write target='name' in place of y."
        )
    return Parquet(X, target=target)


def read_blocks(name: str, X: Any, y: Any, target: str | None) -> BlockTable:
    """Return a table in row blocks, together with the distinct values of its target.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    X : str, Path, BlockSource or Dask collection
        The table, as in :func:`as_blocks`.
    y : Dask collection, or path of a memory map
        The target, if it is not a column of ``X``.
    target : str or None
        Name of the target column.
    """
    source = as_blocks(X, y, target)
    labels: Labels = source.reduce(TargetLabels(name), target_only=True)
    if labels.n_rows < 2:
        raise InvalidTable(f"{name} needs at least 2 rows, but {source} has {labels.n_rows}.")
    return BlockTable(source, labels, name)


def sample(
    source: Any, *, n_rows: int = SAMPLE, random_state: int = 0, target: str | None = None
) -> tuple[Any, NDArray[Any]]:
    """Draw a random sample of rows from a table in row blocks.

    The sample fits into memory, so any criterion can be used.

    Parameters
    ----------
    source : str, Path or BlockSource
        The table, as in :func:`as_blocks`.
    n_rows : int, default=20000
        Number of rows. A smaller table is returned completely.
    random_state : int, default=0
        Seed. The sample does not depend on how the rows are divided into blocks.
    target : str or None, default=None
        Name of the target column.

    Returns
    -------
    tuple of (frame or array, array)
        ``X`` and ``y``. ``X`` is a data frame if the columns have names.

    Examples
    --------
    >>> source = MemoryMap(np.arange(20.0).reshape(10, 2), np.arange(10), block_rows=3)
    >>> sample(source, n_rows=2)[1]
    array([0, 8])
    """
    check_values("sample", {"n_rows": integer(1)}, n_rows=n_rows)
    blocks = as_blocks(source, None, target)
    total = blocks.reduce(TargetLabels("sample"), target_only=True).n_rows
    if not total:
        raise InvalidParameter("sample needs a source with rows, but this one has none.")
    size = min(n_rows, total)
    X, y = blocks.reduce(SampledRows(_draw_numbers(total, size, random_state)))
    if blocks.names is not None:
        X = frame({name: X[:, j] for j, name in enumerate(blocks.names)})
    return X, y


def _draw_numbers(total: int, size: int, seed: int) -> NDArray[np.intp]:
    return np.sort(stream(seed, "sample").choice(total, size=size, replace=False))


class RowDraw(NamedTuple):
    """The number of rows in a sample, the number of rows of its table, and the seed.

    >>> str(RowDraw(20_000, 30_000_000, 0))
    '20000 of 30000000 rows, drawn at random with seed 0'
    """

    n_rows: int
    n_table: int
    seed: int

    def __str__(self) -> str:
        return f"{self.n_rows} of {self.n_table} rows, drawn at random with seed {self.seed}"


_DRAWN: ContextVar[RowDraw | None] = ContextVar("drawn", default=None)


@contextmanager
def on_rows_drawn(drawn: RowDraw | None) -> Iterator[None]:
    """Mark the table of every selection inside this context as a sample of a larger table."""
    before = _DRAWN.set(drawn)
    try:
        yield
    finally:
        _DRAWN.reset(before)


def rows_drawn() -> RowDraw | None:
    """Return the size and seed of the current sample, or None if the table is not a sample."""
    return _DRAWN.get()


class DrawnRows(NamedTuple):
    """A sample of a table in row blocks. ``drawn`` is None if it contains all rows."""

    X: Any
    y: NDArray[Any] | None
    target: str | None
    drawn: RowDraw | None


def draw_rows(X: Any, y: Any = None, target: str | None = None, *, seed: int = 0) -> DrawnRows:
    """Draw a sample of rows for methods that need their table in memory.

    Columns of Parquet files keep their types, including text and dates, and the target is one of
    these columns.

    Parameters
    ----------
    X, y, target
        As in :func:`as_blocks`.
    seed : int, default=0
        Seed. The sample does not depend on how the rows are divided into blocks.
    """
    source: Any = X.source if isinstance(X, ClusterBlocks) else X
    if is_path(source) and not fspath(source).endswith(".npy") and y is None:
        source = Parquet(source)
    if not isinstance(source, Parquet):
        blocks = as_blocks(X, y, target)
        total = blocks.reduce(TargetLabels("select"), target_only=True).n_rows
        drawn = _plan_draw(total, blocks.n_columns, seed)
        table, values = sample(blocks, n_rows=drawn.n_rows, random_state=seed)
        return DrawnRows(table, values, None, drawn if drawn.n_rows < total else None)
    drawn = _plan_draw(source.n_rows, source.n_columns, seed)
    rows = source.rows(_draw_numbers(source.n_rows, drawn.n_rows, seed))
    named = source.target if target is None else target
    return DrawnRows(rows, None, named, drawn if drawn.n_rows < source.n_rows else None)


def _plan_draw(n_rows: int, n_columns: int, seed: int) -> RowDraw:
    """Return the size of a sample that fits into memory."""
    if n_rows < 2:
        raise InvalidTable(f"A selection needs at least 2 rows, but the files have {n_rows}.")
    size = min(n_rows, SAMPLE, max(FEWEST_DRAWN, DRAWN_NUMBERS // n_columns))
    return RowDraw(size, n_rows, seed)

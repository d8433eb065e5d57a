"""Sources of row blocks from paths and collections, and samples of their rows."""

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

#: Numbers of a draw at most, 1 gigabyte of float64: of very many columns there are fewer rows, but
#: not so few that nothing could be learnt from them.
DRAWN_NUMBERS, FEWEST_DRAWN = 1 << 27, 500


def as_blocks(X: Any, y: Any = None, target: str | None = None) -> BlockSource:
    """A source of row blocks.

    Parameters
    ----------
    X : str, Path, BlockSource, dask Array or DataFrame
        The path of a Parquet file or folder, that of a ``.npy`` file, a collection of Dask, or a
        source, which is returned.
    y : path, array or dask collection
        The target of a ``.npy`` file or a collection.
    target : str or None, default=None
        The column of a Parquet file or a DataFrame that is the target.

    Examples
    --------
    >>> as_blocks("table.npy", "answers.npy")
    Traceback (most recent call last):
    tamis.exceptions.InvalidTable: table.npy cannot be mapped as a .npy file: ...
    """
    if isinstance(X, BlockSource):
        return _targeted(X, y, target)
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
                f"{fspath(X)} has no names, so that its target must be given apart. Write "
                "fit('X.npy', 'y.npy'), or an array in place of the second."
            )
        return MemoryMap(X, y)
    if y is not None:
        raise InvalidParameter(
            f"The target of {fspath(X)} is one of its columns. Write target='name' in place of y."
        )
    return Parquet(X, target=target)


def _targeted(source: BlockSource, y: Any, target: str | None) -> BlockSource:
    if y is not None:
        raise InvalidParameter(f"{source} has its target with it. Leave y out.")
    return source if target in (None, source.target) else source.targeted(target)


def read_blocks(name: str, X: Any, y: Any, target: str | None) -> BlockTable:
    """A table in blocks of rows, with what its target holds.

    Parameters
    ----------
    name : str
        Who reads it, for sentences.
    X : str, Path, BlockSource or Dask collection
    y : Dask collection, or path of a memory map
        Its target, where that is not a column of it.
    target : str or None
        The column that is the target.
    """
    source = as_blocks(X, y, target)
    labels: Labels = source.reduce(TargetLabels(name), target_only=True)
    if labels.n_rows < 2:
        raise InvalidTable(f"{name} needs at least 2 rows, but {source} has {labels.n_rows}.")
    return BlockTable(source, labels, name)


def sample(
    source: Any, *, n_rows: int = SAMPLE, random_state: int = 0, target: str | None = None
) -> tuple[Any, NDArray[Any]]:
    """Some rows of a table in parts, which any criterion can learn from.

    Parameters
    ----------
    source : str, Path or BlockSource
    n_rows : int, default=20000
        How many; all of a table that has no more.
    random_state : int, default=0
        Seed of the draw, which does not depend on the blocks.
    target : str or None, default=None
        The column that is the target.

    Returns
    -------
    tuple of (frame or array, array)
        ``X``, a frame where the columns have names, and ``y``.

    Examples
    --------
    >>> source = MemoryMap(np.arange(20.0).reshape(10, 2), np.arange(10), block_rows=3)
    >>> sample(source, n_rows=2)[1]
    array([0, 8])
    """
    check_values("sample", {"n_rows": integer(1)}, n_rows=n_rows)
    parts = as_blocks(source, None, target)
    total = parts.reduce(TargetLabels("sample"), target_only=True).n_rows
    if not total:
        raise InvalidParameter("sample needs a source with rows, and this one has none.")
    size = min(n_rows, total)
    X, y = parts.reduce(SampledRows(numbers_drawn(total, size, random_state)))
    if parts.names is not None:
        X = frame({name: X[:, j] for j, name in enumerate(parts.names)})
    return X, y


def numbers_drawn(total: int, size: int, seed: int) -> NDArray[np.intp]:
    """Numbers of some rows of a table, rising."""
    return np.sort(stream(seed, "sample").choice(total, size=size, replace=False))


class RowDraw(NamedTuple):
    """How many rows of how many were drawn, and the seed.

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
    """Let selections made inside know that their table is a draw from a larger one."""
    before = _DRAWN.set(drawn)
    try:
        yield
    finally:
        _DRAWN.reset(before)


def rows_drawn() -> RowDraw | None:
    """What the table of a selection was drawn from; None where it is the whole."""
    return _DRAWN.get()


class DrawnRows(NamedTuple):
    """Rows of a table in parts, and what they were drawn from: None where they are all."""

    X: Any
    y: NDArray[Any] | None
    target: str | None
    drawn: RowDraw | None


def draw_rows(X: Any, y: Any = None, target: str | None = None, *, seed: int = 0) -> DrawnRows:
    """Rows for what must hold its table at once; of Parquet as the files have them.

    Parameters
    ----------
    X, y, target
        As of :func:`as_blocks`; the columns of Parquet may be text and dates too, and its target
        stands among them.
    seed : int, default=0
        Seed of the draw, which does not depend on the blocks.
    """
    source: Any = X.source if isinstance(X, ClusterBlocks) else X
    if is_path(source) and not fspath(source).endswith(".npy") and y is None:
        source = Parquet(source)
    if not isinstance(source, Parquet):
        parts = as_blocks(X, y, target)
        total = parts.reduce(TargetLabels("select"), target_only=True).n_rows
        size = _fitting(total, parts.n_columns)
        table, answers = sample(parts, n_rows=size, random_state=seed)
        return DrawnRows(table, answers, None, _draw(size, total, seed))
    size = _fitting(source.n_rows, source.n_columns)
    rows = source.rows(numbers_drawn(source.n_rows, size, seed))
    drawn = _draw(size, source.n_rows, seed)
    return DrawnRows(rows, None, source.target if target is None else target, drawn)


def _fitting(n_rows: int, n_columns: int) -> int:
    """Rows of a draw that fits into memory."""
    if n_rows < 2:
        raise InvalidTable(f"A selection needs at least 2 rows, and the files have {n_rows}.")
    return min(n_rows, SAMPLE, max(FEWEST_DRAWN, DRAWN_NUMBERS // n_columns))


def _draw(size: int, total: int, seed: int) -> RowDraw | None:
    return RowDraw(size, total, seed) if size < total else None

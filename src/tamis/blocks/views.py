"""Some columns, or some rows, of a table in blocks of rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic


class OnColumns(RowStatistic):
    """A statistic of some columns.

    Parameters
    ----------
    inner : RowStatistic
    columns : array of int
    """

    def __init__(self, inner: RowStatistic, columns: Subset):
        self.inner, self.columns = inner, columns
        self.is_small = inner.is_small

    def empty(self) -> Any:
        return self.inner.empty()

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        return self.inner.learn_part(state, _taken(block, self.columns))

    def merge(self, state: Any, other: Any) -> Any:
        return self.inner.merge(state, other)

    def finish(self, state: Any) -> Any:
        return self.inner.finish(state)


def _taken(block: RowBlock, columns: Subset) -> RowBlock:
    """Some columns of a block, in the same layout."""
    return block._replace(X=np.asfortranarray(block.X[:, columns]))


def _made(make: Callable[[RowBlock], Any], columns: Subset, block: RowBlock) -> Any:
    return make(_taken(block, columns))


class SomeColumns(BlockSource):
    """Some columns of a source, which reads all of them.

    Parameters
    ----------
    source : BlockSource
    columns : array of int
    """

    def __init__(self, source: BlockSource, columns: Subset):
        self.source, self.columns = source, np.asarray(columns, dtype=np.intp)
        self.names = None if source.names is None else [source.names[j] for j in self.columns]
        self.n_columns = len(self.columns)

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        if target_only:
            return self.source.reduce(statistic, target_only=True)
        return self.source.reduce(OnColumns(statistic, self.columns))

    def kept(self, make: Callable[[RowBlock], Any], n_bytes: float) -> Reducible:
        return self.source.kept(partial(_made, make, self.columns), n_bytes)

    def first_rows(self, n_rows: int) -> NDArray[Any]:
        return np.asarray(self.source.first_rows(n_rows)[:, self.columns])

    def identity(self) -> str:
        return f"{self.source.identity()} {self.columns.tolist()}"

    def __str__(self) -> str:
        return str(self.source)


class Sampled(RowStatistic):
    """Rows of given numbers.

    Parameters
    ----------
    rows : array of int
        Rising.
    """

    def __init__(self, rows: NDArray[np.intp]):
        self.rows = rows

    def empty(self) -> Any:
        return {}

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        first, last = np.searchsorted(self.rows, [block.start, block.start + len(block.X)])
        if first < last:
            own = self.rows[first:last] - block.start
            assert block.y is not None
            state[block.start] = np.asarray(block.X[own], dtype=float), block.y[own]
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return state | other

    def finish(self, state: Any) -> Any:
        found = [state[start] for start in sorted(state)]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

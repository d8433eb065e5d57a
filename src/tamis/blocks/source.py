"""Tables in row blocks, and statistics that are computed block by block.

A :class:`BlockSource` is a table that need not fit into memory. A :class:`RowStatistic` computes
the state of a block and merges two states. The source decides where that happens: in this process
or on the workers of a cluster. Merging is associative, so the result does not depend on how the
rows are divided into blocks. Integers are exactly equal, and sums of floats are equal up to
rounding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.exceptions import InvalidParameter


class RowBlock(NamedTuple):
    """Consecutive rows of a table.

    Attributes
    ----------
    X : array of shape (n_rows, n_columns)
        Numbers of any type. There are no columns if only the target was requested.
    y : array of shape (n_rows,) or None
        The target.
    start : int
        Position of the first row of the block in the table.
    where : str
        Name of the block in error messages.
    """

    X: NDArray[Any]
    y: Any
    start: int
    where: str


class RowStatistic(ABC):
    """Statistic of rows that is computed for each block and merged over blocks.

    An instance has only parameters, so that it can be sent to the worker that has a block. The
    intermediate result for a set of rows is called a state. :meth:`learn_block` and :meth:`merge`
    may change it in place.

    Examples
    --------
    >>> import numpy as np
    >>> class Total(RowStatistic):
    ...     def empty(self):
    ...         return 0.0
    ...     def learn_block(self, state, block):
    ...         return state + block.X.sum()
    >>> total, block = Total(), RowBlock(np.ones((3, 2)), None, 0, "block 0")
    >>> total.finish(total.merge(total.learn_block(total.empty(), block), total.empty()))
    np.float64(6.0)
    """

    #: Whether a state is small compared with a block. If so, threads compute a state for each
    #: block, and states are merged in order, so that sums do not depend on the number of threads.
    is_small: bool = False

    @abstractmethod
    def empty(self) -> Any:
        """Return the initial state, before any rows."""

    @abstractmethod
    def learn_block(self, state: Any, block: Any) -> Any:
        """Return the state after the rows of another block."""

    def merge(self, state: Any, other: Any) -> Any:
        """Return the state for the rows of both states together.

        By default states are added. Named tuples are added field by field, and dictionaries are
        united.
        """
        if isinstance(state, tuple):
            return type(state)(*map(add, state, other))
        return state | other if isinstance(state, dict) else state + other

    def finish(self, state: Any) -> Any:
        """Return the statistic from the state of all rows."""
        return state


class Together(RowStatistic):
    """Several statistics that are computed in a single pass.

    Parameters
    ----------
    members : sequence of RowStatistic
        The statistics.
    """

    def __init__(self, members: Sequence[RowStatistic]):
        self.members = tuple(members)
        self.is_small = all(member.is_small for member in self.members)

    def empty(self) -> Any:
        return [member.empty() for member in self.members]

    def learn_block(self, state: Any, block: Any) -> Any:
        return [m.learn_block(own, block) for m, own in zip(self.members, state, strict=True)]

    def merge(self, state: Any, other: Any) -> Any:
        pairs = zip(self.members, state, other, strict=True)
        return [member.merge(one, two) for member, one, two in pairs]

    def finish(self, state: Any) -> Any:
        return [m.finish(own) for m, own in zip(self.members, state, strict=True)]


class OfChangedBlocks(RowStatistic):
    """A statistic of transformed blocks.

    Parameters
    ----------
    inner : RowStatistic
        The statistic.
    change : callable
        Function that transforms a block.
    """

    def __init__(self, inner: RowStatistic, change: Callable[[RowBlock], RowBlock]):
        self.inner, self.change = inner, change
        self.is_small = inner.is_small

    def empty(self) -> Any:
        return self.inner.empty()

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        return self.inner.learn_block(state, self.change(block))

    def merge(self, state: Any, other: Any) -> Any:
        return self.inner.merge(state, other)

    def finish(self, state: Any) -> Any:
        return self.inner.finish(state)


@dataclass(eq=False, repr=False)
class SampledRows(RowStatistic):
    """The rows with the given row numbers, and their target.

    Parameters
    ----------
    rows : array of int
        Increasing row numbers.
    """

    rows: NDArray[np.intp]

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        first, last = np.searchsorted(self.rows, [block.start, block.start + len(block.X)])
        if first < last:
            own = self.rows[first:last] - block.start
            state[block.start] = np.asarray(block.X[own], dtype=float), block.y[own]
        return state

    def finish(self, state: Any) -> Any:
        found = [state[start] for start in sorted(state)]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


class Reducible(ABC):
    """Collection of items, possibly distributed, for which a statistic can be computed."""

    @abstractmethod
    def reduce(self, statistic: RowStatistic) -> Any:
        """Compute a statistic of all items."""


class BlockSource(Reducible):
    """A table in row blocks, with its target.

    :mod:`tamis.blocks` has sources for Parquet, memory maps, iterators and Dask.

    Attributes
    ----------
    names : list of str or None
        Names of the columns, without the target.
    n_columns : int
        Number of columns, without the target.
    """

    names: list[str] | None
    n_columns: int
    #: Name of the target column, if the target is a column of the source.
    target: str | None = None

    def targeted(self, target: str) -> Self:
        """Return the same source with a different target column."""
        raise InvalidParameter(f"{self} already has a target. Leave target out.")

    @abstractmethod
    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        """Compute a statistic of all rows. With ``target_only`` only the target is read."""

    @abstractmethod
    def kept(self, make: Callable[[RowBlock], Any], n_bytes: float) -> Reducible:
        """Apply a function to each block, and keep the results for further passes.

        The results stay in the process that read the block: this process or a worker of a cluster.

        Parameters
        ----------
        make : callable
            Function that returns an array for a block.
        n_bytes : float
            Estimated size of all results in bytes.
        """

    @abstractmethod
    def first_rows(self, n_rows: int) -> NDArray[Any]:
        """Return the first ``n_rows`` rows of the table, or all rows if there are fewer."""

    def narrowed(self, columns: NDArray[Any]) -> "BlockSource":
        """Return a source with the same rows and only the columns at the given positions."""
        return SomeColumns(self, columns)

    @abstractmethod
    def identity(self) -> str:
        """Return text that identifies the data, without reading all of it."""

    def __str__(self) -> str:
        return type(self).__name__


class SomeColumns(BlockSource):
    """A subset of the columns of a source that always reads all columns.

    Parameters
    ----------
    source : BlockSource
        The source.
    columns : array of int
        Positions of the columns in the source.
    """

    def __init__(self, source: BlockSource, columns: Subset):
        self.source, self.columns = source, np.asarray(columns, dtype=np.intp)
        self.names = None if source.names is None else [source.names[j] for j in self.columns]
        self.n_columns = len(self.columns)
        self._take = partial(take_columns, self.columns)

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        if target_only:
            return self.source.reduce(statistic, target_only=True)
        return self.source.reduce(OfChangedBlocks(statistic, self._take))

    def kept(self, make: Callable[[RowBlock], Any], n_bytes: float) -> Reducible:
        return self.source.kept(partial(_make_of, make, self._take), n_bytes)

    def first_rows(self, n_rows: int) -> NDArray[Any]:
        return np.asarray(self.source.first_rows(n_rows)[:, self.columns])

    def identity(self) -> str:
        return f"{self.source.identity()} {self.columns.tolist()}"

    def __str__(self) -> str:
        return str(self.source)


def take_columns(columns: Subset, block: RowBlock) -> RowBlock:
    """Return a block with only the given columns, in the same memory layout."""
    return block._replace(X=np.asfortranarray(block.X[:, columns]))


def _make_of(
    make: Callable[[RowBlock], Any], change: Callable[[RowBlock], RowBlock], block: RowBlock
) -> Any:
    return make(change(block))

"""Tables in blocks of rows, and statistics of rows that add up.

A :class:`BlockSource` is a table that is never held at once. A :class:`RowStatistic` says what a
block of rows adds to what is known, and how two such states become one; a source decides where that
is done. Merging is associative, so that the answer does not depend on how the rows are cut into
blocks: to the last bit where states are integers, to rounding where they are sums of floats.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Subset
from tamis.exceptions import InvalidParameter


class RowBlock(NamedTuple):
    """Some rows of a table that follow each other.

    Attributes
    ----------
    X : array of shape (n_rows, n_columns)
        Numbers of any width; no column where only the target was asked for.
    y : array of shape (n_rows,) or None
        Their target.
    start : int
        Number of the first of them in the table.
    where : str
        What to call the block in a sentence.
    """

    X: NDArray[Any]
    y: NDArray[Any] | None
    start: int
    where: str


class RowStatistic(ABC):
    """A statistic of rows that adds up over blocks.

    It holds parameters alone, and travels to where the blocks are; what is known of some rows is a
    state, which :meth:`learn_block` and :meth:`merge` may change in place.

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

    #: Whether a state is small beside a block. Blocks are then learnt each by itself, in threads,
    #: and merged in their order, so that sums of floats do not depend on the number of threads.
    is_small: bool = False

    @abstractmethod
    def empty(self) -> Any:
        """What is known of no rows."""

    @abstractmethod
    def learn_block(self, state: Any, block: Any) -> Any:
        """The state once a block is known too."""

    def merge(self, state: Any, other: Any) -> Any:
        """What is known of the rows of two states: their sum, that of named tuples by field."""
        if isinstance(state, tuple):
            return type(state)(*map(add, state, other))
        return state + other

    def finish(self, state: Any) -> Any:
        """The statistic, from the state of all rows."""
        return state


class Together(RowStatistic):
    """Several statistics from one pass.

    Parameters
    ----------
    members : sequence of RowStatistic
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
    """A statistic of blocks that are changed first.

    Parameters
    ----------
    inner : RowStatistic
    change : callable
        Makes the block that is learnt from a block.
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


class SampledRows(RowStatistic):
    """Rows of given numbers, with their target.

    Parameters
    ----------
    rows : array of int
        Rising.
    """

    def __init__(self, rows: NDArray[np.intp]):
        self.rows = rows

    def empty(self) -> Any:
        return {}

    def learn_block(self, state: Any, block: RowBlock) -> Any:
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


class Reducible(ABC):
    """Things that lie in several places, and can be asked for a statistic of all of them."""

    @abstractmethod
    def reduce(self, statistic: RowStatistic) -> Any:
        """The statistic of everything."""


class BlockSource(Reducible):
    """A table in blocks of rows, with its target.

    :mod:`tamis.blocks` has sources of this kind: Parquet, memory maps, iterators, Dask.

    Attributes
    ----------
    names : list of str or None
        Names of the columns, without the target.
    n_columns : int
    """

    names: list[str] | None
    n_columns: int
    #: The column that is the target, if it can be another one.
    target: str | None = None

    def targeted(self, target: str) -> Self:
        """The same source with another column for the target."""
        raise InvalidParameter(f"{self} has its target with it. Leave target out.")

    @abstractmethod
    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        """The statistic of all rows, of the target alone where nothing else needs to be read."""

    @abstractmethod
    def kept(self, make: Callable[[RowBlock], Any], n_bytes: float) -> Reducible:
        """What a function makes of each block, kept where the blocks are.

        Parameters
        ----------
        make : callable
            Makes an array of a block.
        n_bytes : float
            How large all of them will be, about.
        """

    @abstractmethod
    def first_rows(self, n_rows: int) -> NDArray[Any]:
        """The first rows of the columns, as many as there are up to a number."""

    def narrowed(self, columns: NDArray[Any]) -> "BlockSource":
        """The same rows with some of the columns, by their positions."""
        return SomeColumns(self, columns)

    @abstractmethod
    def identity(self) -> str:
        """Text that other data would not have, made without reading all of it."""

    def __str__(self) -> str:
        return type(self).__name__


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
    """Some columns of a block, in the same layout."""
    return block._replace(X=np.asfortranarray(block.X[:, columns]))


def _make_of(
    make: Callable[[RowBlock], Any], change: Callable[[RowBlock], RowBlock], block: RowBlock
) -> Any:
    return make(change(block))

"""Tables in blocks of rows, and statistics of rows that add up.

A :class:`BlockSource` is a table that is never held at once. A :class:`RowStatistic` says what a
block of rows adds to what is known, and how two such states become one; a source decides where that
is done. Merging is associative, so that the answer does not depend on how the rows are cut into
blocks: to the last bit where states are integers, to rounding where they are sums of floats.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray


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
    state, which :meth:`learn_part` and :meth:`merge` may change in place.

    Examples
    --------
    >>> import numpy as np
    >>> class Total(RowStatistic):
    ...     def empty(self):
    ...         return 0.0
    ...     def learn_part(self, state, block):
    ...         return state + block.X.sum()
    ...     def merge(self, state, other):
    ...         return state + other
    >>> total, block = Total(), RowBlock(np.ones((3, 2)), None, 0, "block 0")
    >>> total.finish(total.merge(total.learn_part(total.empty(), block), total.empty()))
    np.float64(6.0)
    """

    #: Whether a state is small beside a block. Blocks are then learnt each by itself, in threads,
    #: and merged in their order, so that sums of floats do not depend on the number of threads.
    is_small: bool = False

    @abstractmethod
    def empty(self) -> Any:
        """What is known of no rows."""

    @abstractmethod
    def learn_part(self, state: Any, block: Any) -> Any:
        """The state once a block is known too."""

    @abstractmethod
    def merge(self, state: Any, other: Any) -> Any:
        """What is known of the rows of two states."""

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

    def learn_part(self, state: Any, block: Any) -> Any:
        return [m.learn_part(own, block) for m, own in zip(self.members, state, strict=True)]

    def merge(self, state: Any, other: Any) -> Any:
        pairs = zip(self.members, state, other, strict=True)
        return [member.merge(one, two) for member, one, two in pairs]

    def finish(self, state: Any) -> Any:
        return [m.finish(own) for m, own in zip(self.members, state, strict=True)]


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
        from tamis.blocks.views import SomeColumns  # views are sources themselves

        return SomeColumns(self, columns)

    @abstractmethod
    def identity(self) -> str:
        """Text that other data would not have, made without reading all of it."""

    def __str__(self) -> str:
        return type(self).__name__

"""Row blocks that this process reads one by one. Results are kept in memory or in a file."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import times_as_days
from tamis._memory import free_memory
from tamis._parallel import in_flight, in_threads, own_threads
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget

#: Number of entries in a block (32 megabytes of float64). Two blocks are in memory at a time. They
#: are small compared with the results that are kept, but large enough that the overhead of a call
#: does not matter.
BLOCK_NUMBERS = 1 << 22
#: Share of the free memory above which kept results are written to a file.
HELD_SHARE = 0.5
#: Approximate number of values that an entry of a kept array encodes. The arrays contain bit
#: planes.
WORD = 16

Item = TypeVar("Item")


class LocalBlocks(BlockSource):
    """Source whose blocks are read by the calling process.

    A subclass divides the rows into chunks of a few blocks each, which can be read in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.blocks import LocalBlocks
    >>> from tamis.blocks.source import RowBlock
    >>> class TwoHalves(LocalBlocks):
    ...     n_chunks = 2
    ...     def __init__(self, X, y):
    ...         self.X, self.y, self.n_rows, self.n_columns = X, y, *X.shape
    ...     def chunk(self, index, *, target_only=False):
    ...         rows = np.array_split(np.arange(self.n_rows), 2)[index]
    ...         yield RowBlock(self.X[rows], self.y[rows], rows[0], f"half {index}")
    ...     def identity(self):
    ...         return "two halves of an array"
    >>> TwoHalves(np.eye(4), np.arange(4)).first_rows(3).shape
    (3, 4)
    """

    #: Number of chunks.
    n_chunks: int

    @abstractmethod
    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        """Yield the blocks of a chunk."""

    def blocks(self, *, target_only: bool = False) -> Iterator[RowBlock]:
        """Yield all blocks in the order of the rows."""
        for index in range(self.n_chunks):
            yield from self.chunk(index, target_only=target_only)

    def reduce(self, statistic: RowStatistic, *, target_only: bool = False) -> Any:
        blocks = ahead(self.blocks(target_only=target_only))
        if statistic.is_small and not target_only:
            return statistic.finish(_each_alone(statistic, blocks))
        return statistic.finish(reduced(statistic, blocks))

    def first_rows(self, n_rows: int) -> NDArray[Any]:
        found, held = [np.empty((0, self.n_columns))], 0
        for block in self.blocks():
            found.append(block.X[: n_rows - held])
            held += len(found[-1])
            if held == n_rows:
                break
        return np.concatenate(found)

    def kept(self, make: Callable[[RowBlock], NDArray[Any]], n_bytes: float) -> Reducible:
        free = free_memory()
        on_disk = free is not None and n_bytes > HELD_SHARE * free
        return KeptHere((make(block) for block in ahead(self.blocks())), on_disk=on_disk)


class KeptHere(Reducible):
    """Arrays in memory, or in an anonymous temporary file.

    Parameters
    ----------
    arrays : iterable of array
        The one-dimensional arrays to keep.
    on_disk : bool, default=False
        Whether the arrays are written to a file and memory-mapped.

    Examples
    --------
    >>> [array.tolist() for array in KeptHere([np.arange(2), np.arange(3)], on_disk=True).arrays]
    [[0, 1], [0, 1, 2]]
    """

    def __init__(self, arrays: Iterable[NDArray[Any]], *, on_disk: bool = False):
        self.arrays = _mapped(arrays) if on_disk else list(arrays)

    def reduce(self, statistic: RowStatistic) -> Any:
        """Compute a statistic of all arrays in threads. The statistic must be a sum of integers."""

        def part(some: slice) -> Any:
            return reduced(statistic, self.arrays[some])

        size = sum(len(array) for array in self.arrays) * WORD
        states = in_threads(part, len(self.arrays), size)
        return statistic.finish(reduce(statistic.merge, states, statistic.empty()))


def check_names(who: str, names: Sequence[str] | None, n_columns: int) -> list[str] | None:
    """Return the column names as a list. Refuse duplicate names or a wrong number of names."""
    if not n_columns:
        raise InvalidTable(f"{who} needs columns to choose among, but there are none.")
    if names is None:
        return None
    found = [str(name) for name in names]
    if len(found) != n_columns or len(set(found)) < n_columns:
        raise InvalidParameter(
            f"{who} needs a unique name for each of {n_columns} columns, but names= has "
            f"{len(found)}, of which {len(set(found))} are different."
        )
    return found


def make_block(
    X: NDArray[Any],
    y: NDArray[Any],
    start: int,
    where: str,
    *,
    target_only: bool = False,
    n_columns: int | None = None,
) -> RowBlock:
    """Return a validated block of rows and their target. Dates become numbers of days."""
    check_rows(X, y, where, n_columns)
    X = X[:, :0] if target_only else plain_numbers(X)
    return RowBlock(X, times_as_days(y), start, where)


def check_rows(X: NDArray[Any], y: NDArray[Any], where: str, n_columns: int | None = None) -> None:
    """Refuse rows that are not numeric, and a target of a different length."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or n_columns not in (None, X.shape[1]):
        expected = "columns" if n_columns is None else f"{n_columns} columns"
        raise InvalidTable(
            f"{where} needs rows and {expected} of numbers, but has the shape {X.shape} and type "
            f"{X.dtype}. Leave other columns out."
        )
    if y.shape != X.shape[:1]:
        raise InvalidTarget(
            f"{where} has {len(X)} rows, but its target has the shape {y.shape}. Give one value "
            "for each row, in the same blocks."
        )


def plain_numbers(X: NDArray[Any]) -> NDArray[Any]:
    """Return a column-major copy or view of a type that compiled loops accept.

    Half precision becomes single, extended precision becomes double, and booleans become 0 and 1.

    >>> plain_numbers(np.ones((2, 1), dtype=">f2")).dtype
    dtype('float32')
    """
    kind = X.dtype.newbyteorder("=")
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    if kind.kind == "b":
        kind = np.dtype(np.uint8)
    # read-only arrays would make the loops compile again
    return np.require(X, dtype=kind, requirements=["F", "W"])


def reduced(statistic: RowStatistic, blocks: Iterable[Any]) -> Any:
    """Return the state of a statistic after the given blocks."""
    return reduce(statistic.learn_block, blocks, statistic.empty())


def _each_alone(statistic: RowStatistic, blocks: Iterator[Any]) -> Any:
    """Return the state of a statistic after all blocks.

    Threads compute a state for each block, and the states are merged in the order of the blocks.
    """

    def learn(block: Any) -> Any:
        return statistic.learn_block(statistic.empty(), block)

    return reduce(statistic.merge, in_flight(learn, blocks, own_threads()), statistic.empty())


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items while a thread already prepares the next one.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    nothing = object()
    with ThreadPoolExecutor(1) as pool:
        coming: Any = pool.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = pool.submit(next, items, nothing)
            yield item


def _mapped(arrays: Iterable[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the arrays as views of a single temporary file, which exists as long as they do."""
    places = []
    with TemporaryFile(prefix="tamis-") as file:
        for array in arrays:
            places.append((file.tell(), array.dtype, len(array)))
            file.write(np.ascontiguousarray(array).data)
        file.flush()
        return [_view(file, *place) for place in places]


def _view(file: IO[bytes], offset: int, dtype: Any, length: int) -> NDArray[Any]:
    if not length:
        return np.empty(0, dtype=dtype)
    # read-only arrays would make the loops compile again
    return np.asarray(np.memmap(file, dtype=dtype, mode="r+", offset=offset, shape=(length,)))

"""Row blocks that this process reads, one after the other, and what it keeps of them."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import times_as_days
from tamis._memory import free_memory
from tamis._parallel import in_flight, in_threads, own_threads
from tamis.blocks.source import BlockSource, Reducible, RowBlock, RowStatistic
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget

#: Numbers of a block that is read at a time: 32 megabytes of float64, of which two are held, so
#: that what is read is small beside what is kept, and large beside the overhead of a call.
BLOCK_NUMBERS = 1 << 22
#: Share of the free memory that what is kept of the blocks may take before it goes to a file.
HELD_SHARE = 0.5
#: Numbers that a word of what is kept stands for, about: a bit is read for many of them.
WORD = 16

Item = TypeVar("Item")


class LocalBlocks(BlockSource):
    """A source whose blocks are read by whoever asks for them.

    A subclass has chunks that can be read in any order, each a few blocks long.
    """

    #: Number of chunks.
    n_chunks: int

    @abstractmethod
    def chunk(self, index: int, *, target_only: bool = False) -> Iterator[RowBlock]:
        """The blocks of a chunk."""

    def blocks(self, *, target_only: bool = False) -> Iterator[RowBlock]:
        """All blocks, in the order of the rows."""
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
    """Arrays in memory, or in a file without a name that ends with the process.

    Parameters
    ----------
    arrays : iterable of array
        One-dimensional.
    on_disk : bool, default=False
        Whether they are written to a file and mapped.
    """

    def __init__(self, arrays: Iterable[NDArray[Any]], *, on_disk: bool = False):
        self.arrays = _mapped(arrays) if on_disk else list(arrays)

    def reduce(self, statistic: RowStatistic) -> Any:
        """The statistic of all arrays, dealt out to threads: it is to be of integers."""

        def part(some: slice) -> Any:
            return reduced(statistic, self.arrays[some])

        size = sum(len(array) for array in self.arrays) * WORD
        first, *others = in_threads(part, len(self.arrays), size) or [statistic.empty()]
        for state in others:
            first = statistic.merge(first, state)
        return statistic.finish(first)


def check_names(who: str, names: Sequence[str] | None, n_columns: int) -> list[str] | None:
    """Return names of columns as a list; refuse it unless each column has a name of its own."""
    if not n_columns:
        raise InvalidTable(f"{who} needs columns to choose among, and there are none.")
    if names is None:
        return None
    found = [str(name) for name in names]
    if len(found) != n_columns or len(set(found)) < n_columns:
        raise InvalidParameter(
            f"{who} needs a name of its own for each of {n_columns} columns, but names= has "
            f"{len(found)}, {len(set(found))} of them different."
        )
    return found


def make_block(
    X: NDArray[Any], y: NDArray[Any], start: int, where: str, *, target_only: bool = False
) -> RowBlock:
    """Make a block of rows and their target, with plain numbers and dates as days."""
    check_rows(X, y, where)
    X = X[:, :0] if target_only else plain_numbers(X)
    return RowBlock(X, times_as_days(y), start, where)


def check_rows(X: NDArray[Any], y: NDArray[Any], where: str, n_columns: int | None = None) -> None:
    """Refuse rows that are not numbers, and a target of another length."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or n_columns not in (None, X.shape[1]):
        expected = "columns" if n_columns is None else f"{n_columns} columns"
        raise InvalidTable(
            f"{where} needs rows and {expected} of numbers, but has the shape {X.shape} and holds "
            f"{X.dtype}. Leave other columns out."
        )
    if y.shape != X.shape[:1]:
        raise InvalidTarget(
            f"{where} has {len(X)} rows, but its target has the shape {y.shape}. Give one value "
            "for each row, in the same blocks."
        )


def plain_numbers(X: NDArray[Any]) -> NDArray[Any]:
    """Rows of numbers column-major, in a type of this machine that compiled loops read.

    Half precision becomes single, what is wider than double becomes double, truth 0 or 1.

    >>> plain_numbers(np.ones((2, 1), dtype=">f2")).dtype
    dtype('float32')
    """
    kind = X.dtype.newbyteorder("=")
    if kind.kind == "f" and kind.itemsize not in (4, 8):
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    if kind.kind == "b":
        kind = np.dtype(np.uint8)
    # what must not be written to would have the loops compiled anew
    return np.require(X, dtype=kind, requirements=["F", "W"])


def reduced(statistic: RowStatistic, blocks: Iterable[Any]) -> Any:
    """The state of a statistic that has seen some blocks."""
    state = statistic.empty()
    for block in blocks:
        state = statistic.learn_block(state, block)
    return state


def _each_alone(statistic: RowStatistic, blocks: Iterator[Any]) -> Any:
    """The state of all blocks, learnt by threads and merged in the order of the blocks."""

    def learnt(block: Any) -> Any:
        return statistic.learn_block(statistic.empty(), block)

    state = statistic.empty()
    for own in in_flight(learnt, blocks, own_threads()):
        state = statistic.merge(state, own)
    return state


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, of which a thread makes the next one while one is in use.

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
    """The arrays as views of one temporary file, which stays as long as they do."""
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
    # writable as all arrays are, so that loops need not be compiled anew
    return np.asarray(np.memmap(file, dtype=dtype, mode="r+", offset=offset, shape=(length,)))

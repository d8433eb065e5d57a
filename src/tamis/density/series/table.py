"""Columns scaled for a kernel, the number of terms in their series, and strips of exponents."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from math import factorial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._namespace import (
    free_memory,
    host,
    is_out_of_memory,
    move,
    namespace,
    note,
    on_host,
    taken,
)
from tamis._parallel import in_order, own_threads

#: Truncation error of the series, relative to the largest change by its column. The key is the
#: number of bytes per number. In double precision, the error is a tenth of 1e-10, the guaranteed
#: accuracy of scores. In single precision, it is the rounding error.
LEFT_OUT = {8: 1e-11, 4: 1e-7}
#: Largest reach of a column (``ScaledColumns.reach``) for which the series is used. Beyond it,
#: elementwise computation is faster.
STEEP = 3.0
#: Largest exponent of a single column (twice its reach) for which the column is removed by dividing
#: the kernel. With a larger exponent, the kernel may have underflowed. The exponent is then
#: subtracted before the kernel is computed. The key is the number of bytes per number.
FAR = {8: 300.0, 4: 40.0}
#: On a CPU: smallest and largest number of rows in a strip, number of strips, and size of a stack
#: (count of numbers). Matrix products are then large enough for full speed. With few
#: strips, little is computed twice. With many strips, more of the redundant half of a symmetric
#: kernel is left out.
ROWS, PIECES, STACK = (128, 512), 32, 1 << 23
#: Up to this total size (count of numbers, 256 MB), all stacks are kept from one strip to the next.
#: Larger stacks are computed again for each strip.
KEPT = 1 << 25
#: On a GPU or other device: number of strips, and largest size of a strip and of a stack (count of
#: numbers).
PARTS, DEVICE_STRIP, DEVICE_STACK = 4, 1 << 29, 1 << 27
#: Factor by which strips and stacks are reduced on a device with too little memory, and the largest
#: such factor. With it, strips and stacks no longer dominate the memory.
_SMALLER: ContextVar[int] = ContextVar("smaller", default=1)
SMALLEST = 256
Found = TypeVar("Found")


def ranks(reach: Array, left_out: float = LEFT_OUT[8]) -> NDArray[np.intp]:
    """Return the number of terms in the series of columns, given their reach.

    For reach r it is the smallest p with r^p / p! e^(2r) at most ``left_out`` times min(r, 1).

    >>> ranks(np.array([0.0, 0.005, 0.1, 1.0, 3.0]))
    array([ 1,  5,  8, 15, 26])
    """
    r = np.minimum(np.asarray(reach, dtype=float), STEEP * 4)
    term = np.exp(2 * r) * np.maximum(r, 1.0)  # r^p / p! e^(2r) / min(r, 1) for p = 1
    found = np.ones(len(r), dtype=np.intp)
    # a constant column (r = 0) changes nothing
    while (short := (term > left_out) & (r > 0)).any():
        found[short] += 1
        term = np.where(short, term * r / found, term)
    return found


class Alteration(NamedTuple):
    """Columns that are removed from a subset (sign -1) or added to it (sign 1), one at a time."""

    members: Subset
    altered: Subset
    sign: int


class ColumnBatch(NamedTuple):
    """Columns whose series have the same number of terms (the rank)."""

    columns: Subset
    rank: int


class ScaledColumns:
    """Columns scaled so that the kernel is exp(-|z - z'|² / 2), with their ranges centred on 0.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        The table, as an array of any library.
    gamma : float
        The kernel's γ.
    """

    def __init__(self, X: Any, gamma: float):
        xp = namespace(X)
        # one transfer for all ranges, so that the device is synchronised once
        low, high = host(xp.stack([xp.min(X, axis=0), xp.max(X, axis=0)])).astype(float)
        self.unit, self.middle = float(np.sqrt(2 * gamma)), low / 2 + high / 2
        self.Z = self.scaled(X)
        #: 2γ times the squared half range of each column, which is the largest |z z'|.
        self.reach = (self.unit * (high - low) / 2) ** 2
        self.digits = 4 if "float32" in str(X.dtype) else 8

    def scaled(self, X: Any) -> Any:
        """Return other values of the same columns, centred and scaled in the same way."""
        return (X - move(self.middle, X)) * self.unit

    def ranks(self, columns: Subset) -> NDArray[np.intp]:
        """Return the number of terms in the series of each given column."""
        return ranks(self.reach[columns], LEFT_OUT[self.digits])

    def plan(self, columns: Subset) -> tuple[list[ColumnBatch], Subset]:
        """Return batches of columns for the series, and the positions of steep columns."""
        steep = self.reach[columns] > STEEP
        together = np.flatnonzero(~steep)
        numbers = stack_size(self.Z) // self.Z.shape[0]
        found = in_batches(self.ranks(columns), together, lambda rank: numbers // rank)
        return found, np.flatnonzero(steep)


def in_batches(
    need: NDArray[np.intp], among: Subset, most: Callable[[int], int]
) -> list[ColumnBatch]:
    """Split the columns ``among`` into batches of equal rank.

    ``need`` has the rank of every column. ``most`` returns the largest batch size for a rank.
    """
    batches = []
    for rank in map(int, np.unique(need[among])):
        same, size = among[need[among] == rank], max(1, most(rank))
        batches += [ColumnBatch(same[i : i + size], rank) for i in range(0, len(same), size)]
    return batches


class Exponents:
    """Exponents of the kernel of the member columns, for a strip of rows at a time.

    Columns with a very large range are summed separately and without rounding errors, so that
    removing one of them loses no digits.
    """

    def __init__(self, table: ScaledColumns, members: Subset, Z: Any = None, reach: Any = None):
        """Prepare exponents of the kernel between the rows of ``Z`` and the rows of the table.

        By default, ``Z`` is the table itself.
        """
        self.table, self.Z = table, table.Z if Z is None else Z
        #: Mask of the columns whose exponents are summed separately.
        self.is_far = 2 * (table.reach if reach is None else reach) > FAR[table.digits]
        far = self.is_far[members]
        self.far = members[far]
        self.near = taken(table.Z, members[~far])
        self.near_rows = self.near if Z is None else taken(Z, members[~far])
        self.halves = _half_squares(self.near)
        self.half_rows = self.halves if Z is None else _half_squares(self.near_rows)

    def strip(self, rows: slice, columns: slice) -> "KernelStrip":
        """Return the exponents of the kernel between two slices of rows."""
        xp = namespace(self.near)
        exponents = self.near_rows[rows, :] @ self.near[columns, :].T
        exponents -= self.half_rows[rows][:, None]
        exponents -= self.halves[columns][None, :]
        high = low = None
        for j in self.far:
            own = self.apart(int(j), rows, columns)
            if high is None:
                high, low = own, xp.zeros_like(own)
            else:
                high, low = _add_exactly(high, low, own)
        return KernelStrip(rows, columns, exponents, high, low)

    def apart(self, column: int, rows: slice, columns: slice) -> Any:
        """Return the negative exponents of a single column, for two slices of rows."""
        apart = self.Z[rows, column][:, None] - self.table.Z[columns, column][None, :]
        return apart * apart / 2


class KernelStrip(NamedTuple):
    """Exponents of the kernel for a strip of rows, separately for near and far columns.

    Far columns have a very large range. ``high`` and ``low`` are two parts of the sum of their
    negative exponents: the rounded sum and its rounding error.
    """

    rows: slice
    columns: slice
    near: Any
    high: Any
    low: Any

    def exponents(self) -> Any:
        """Return the exponents of the kernel, summed over near and far columns."""
        return self.near if self.high is None else self.near - self.high - self.low

    def without(self, apart: Any) -> Any:
        """Return the exponents of the kernel without a far column.

        ``apart`` has the negative exponents of that column.
        """
        return self.near - ((self.high - apart) + self.low)

    def same(self) -> Any:
        """Return a mask of the pairs of a row with itself, for the strip's own rows."""
        xp = namespace(self.near)
        index = move(np.arange(self.rows.stop - self.rows.start), self.near, exact=True)
        return xp.reshape(index, (-1, 1)) == xp.reshape(index, (1, -1))


def _half_squares(Z: Any) -> Any:
    return namespace(Z).sum(Z * Z, axis=1) / 2


def _add_exactly(high: Any, low: Any, term: Any) -> tuple[Any, Any]:
    """Return high + low + term as a rounded sum and its rounding error (Knuth)."""
    total = high + term
    back = total - high
    return total, low + ((high - (total - back)) + (term - back))


class Stacks:
    """Terms [v, w_1, ..., w_(rank-1)] of the series of columns, in batches.

    They are cached between strips if they fit into memory. With ``split``, late terms are in single
    precision, whose products take half the time. Late terms are so small that their rounding error
    is below the truncation error of the series.
    """

    def __init__(
        self,
        table: ScaledColumns,
        altered: Subset,
        batches: list[ColumnBatch],
        way: int,
        *,
        split: bool = False,
    ):
        self.Z, self.altered, self.batches, self.way = table.Z, altered, batches, way
        split = split and isinstance(table.Z, np.ndarray) and table.digits == 8
        #: Number of leading terms of each batch, which have the precision of the table.
        self.leading = [
            _leading(table.reach[altered[b.columns]], b.rank) if split else b.rank for b in batches
        ]
        size = table.Z.shape[0] * sum(len(batch.columns) * batch.rank for batch in batches)
        few = size <= (KEPT if on_host(table.Z) else DEVICE_STACK)
        self.cache = [self._compute(index, 0) for index in range(len(batches))] if few else None

    def both(self, index: int, first: int = 0) -> tuple[Any, Any]:
        """Return the leading terms and the late terms of a batch, from the row ``first`` on.

        An array of terms has the shape (rows, terms * columns). Late terms are in single precision.
        They are None if there are none.
        """
        if self.cache is None:
            return self._compute(index, first)
        leading, late = self.cache[index]
        return leading[first:, :], None if late is None else late[first:, :]

    def _compute(self, index: int, first: int) -> tuple[Any, Any]:
        batch, n_leading = self.batches[index], self.leading[index]
        z = taken(self.Z, self.altered[batch.columns])[first:, :]
        xp = namespace(z)
        v = xp.expm1(z * z * (self.way / 2))
        parts, w = [v], v + 1
        for _ in range(batch.rank - 1):
            w = w * z
            parts.append(w)
        late = None
        if n_leading < batch.rank:
            late = np.concatenate(parts[n_leading:], axis=1, dtype=np.float32)
        leading = parts[:n_leading]
        return xp.concat(leading, axis=1) if len(leading) > 1 else v, late


def _leading(reach: Array, rank: int) -> int:
    """Return the number of terms that need double precision."""
    roundings = LEFT_OUT[8] / float(np.finfo(np.float32).eps)
    return min(rank, int(ranks(reach, roundings).max(initial=1)))


def coefficients(rank: int, way: int) -> Array:
    """Return the coefficients of the series: 1, followed by (-way)^k / k! for k = 1, 2, ..."""
    return np.array([1.0] + [(-way) ** k / factorial(k) for k in range(1, rank)])


class StripPass(ABC):
    """Pass over strips of rows that computes sums of a kernel and their changes by columns.

    Parameters
    ----------
    table : ScaledColumns
        The table.
    change : Alteration
        Columns of the kernel, and columns that are removed or added.
    split : bool
        Whether late terms are in single precision, see :class:`Stacks`.
    """

    def __init__(self, table: ScaledColumns, change: Alteration, *, split: bool = False):
        self.table, self.altered, self.way = table, change.altered, -change.sign
        self.exponents = Exponents(table, change.members)
        self.batches, self.steep = table.plan(self.altered)
        self.stacks = Stacks(table, self.altered, self.batches, self.way, split=split)

    @abstractmethod
    def strip(self, rows: slice) -> Any:
        """Return the sums of a strip, then their changes by the columns of ``order``."""

    @property
    def order(self) -> Subset:
        """Positions of the altered columns in the order of the results of a strip."""
        return np.concatenate([*(batch.columns for batch in self.batches), self.steep])

    def run(self) -> tuple[Array, Array]:
        """Return the sums over all strips, and the change by each altered column."""
        note("scores", self.table.Z)
        sums, changes = host(added_up(self.strip, self.table.Z)), np.zeros(len(self.altered))
        n_sums = len(sums) - len(changes)
        changes[self.order] = sums[n_sums:]
        return sums[:n_sums], changes


def stack_size(x: Any) -> int:
    """Return the largest size of a stack (count of numbers) on the device of an array."""
    return (STACK if on_host(x) else DEVICE_STACK) // _SMALLER.get()


def strip_size(x: Any) -> int:
    """Return the number of rows in a strip of an array."""
    n_rows = x.shape[0]
    if not on_host(x):
        return max(1, min(-(-n_rows // PARTS), DEVICE_STRIP // n_rows) // _SMALLER.get())
    return max(1, min(max(-(-n_rows // PIECES), ROWS[0]), ROWS[1]) // _SMALLER.get())


def strips(x: Any) -> Iterator[slice]:
    """Iterate over strips of the rows of an array."""
    n_rows, size = x.shape[0], strip_size(x)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def in_memory(work: Callable[[], Found]) -> Found:
    """Call a function. If the device runs out of memory, call it again with smaller strips."""
    smaller = 1
    while True:
        token = _SMALLER.set(smaller)
        try:
            return work()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or smaller >= SMALLEST:
                raise
        finally:
            _SMALLER.reset(token)
        smaller *= 4
        free_memory()


def added_up(function: Callable[[slice], Any], x: Any) -> Any:
    """Sum a function over strips in their order, so that the number of threads has no effect."""
    n_threads = own_threads() if isinstance(x, np.ndarray) else 1
    total = None
    for part in in_order(function, list(strips(x)), n_threads, blas=True):
        total = part if total is None else total + part
    return total

"""Columns in the units of a kernel, how many terms each needs, and strips of kernel exponents."""

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
    on_host,
    taken,
)
from tamis._parallel import in_order, own_threads

#: What the series may leave out, beside the largest change that its column can make: a tenth of
#: the 1e-10 to which scores are promised, and the rounding of single precision.
LEFT_OUT = {8: 1e-11, 4: 1e-7}
#: Largest reach of a column for the series: beyond, it has more terms than a column is worth.
STEEP = 3.0
#: Largest exponent of a single column, 2 reach, up to which a kernel value is multiplied back when
#: the column leaves; beyond, it may have vanished, and exponents are subtracted first.
FAR = {8: 300.0, 4: 40.0}
#: Least and most rows of a strip, one of PIECES, and numbers of a stack on a processor: products
#: large enough for their full speed, strips few enough that little is made anew for each, and so
#: many that the half of a symmetric kernel that is not needed is nearly all left out.
ROWS, PIECES, STACK = (128, 512), 32, 1 << 23
#: Numbers of stacks that are kept from one strip to the next (256 MB); more are made anew.
KEPT = 1 << 25
#: On a device: a quarter of the rows but at most so many numbers of a strip, and of a stack. One
#: strip, or 32 of them, took half as long again; so did stacks of 2^24 numbers.
PARTS, DEVICE_STRIP, DEVICE_STACK = 4, 1 << 29, 1 << 27
#: How many times smaller strips and stacks are than they should be, on a device that is too small
#: for those; beyond the largest they are no longer what fills it.
_SMALLER: ContextVar[int] = ContextVar("smaller", default=1)
SMALLEST = 256
Found = TypeVar("Found")


def ranks(reach: Array, left_out: float = LEFT_OUT[8]) -> NDArray[np.intp]:
    """Least p with r^p / p! e^(2r) at most ``left_out`` of min(r, 1), for each reach r.

    >>> ranks(np.array([0.0, 0.005, 0.1, 1.0, 3.0]))
    array([ 1,  5,  8, 15, 26])
    """
    r = np.minimum(np.asarray(reach, dtype=float), STEEP * 4)
    term = np.exp(2 * r) * np.maximum(r, 1.0)  # r^p / p! e^(2r) over min(r, 1), of p = 1
    found = np.ones(len(r), dtype=np.intp)
    # a column that does not vary has no change to be exact to
    while (short := (term > left_out) & (r > 0)).any():
        found[short] += 1
        term = np.where(short, term * r / found, term)
    return found


class ColumnBatch(NamedTuple):
    """Columns that need equally many terms."""

    columns: Subset
    rank: int


class ScaledColumns:
    """Columns in units in which the kernel is exp(-|z - z'|² / 2), centred on their ranges.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        Of any library.
    gamma : float
    """

    def __init__(self, X: Any, gamma: float):
        xp = namespace(X)
        # all ranges come to the host as one array: a device is waited for once
        low, high = host(xp.stack([xp.min(X, axis=0), xp.max(X, axis=0)])).astype(float)
        self.unit, self.middle = float(np.sqrt(2 * gamma)), low / 2 + high / 2
        self.Z = self.scaled(X)
        #: 2γ times the squared half of each range: the largest |z z'|.
        self.reach = (self.unit * (high - low) / 2) ** 2
        self.digits = 4 if "float32" in str(X.dtype) else 8

    def scaled(self, X: Any) -> Any:
        """Values of the same columns, in these units."""
        return (X - move(self.middle, X)) * self.unit

    def ranks(self, columns: Subset) -> NDArray[np.intp]:
        """Terms that each of some columns needs."""
        return ranks(self.reach[columns], LEFT_OUT[self.digits])

    def plan(self, columns: Subset) -> tuple[list[ColumnBatch], Subset]:
        """Batches by the series, and the positions of columns that are too steep for it."""
        steep = self.reach[columns] > STEEP
        together = np.flatnonzero(~steep)
        numbers = stack_size(self.Z) // self.Z.shape[0]
        found = in_batches(self.ranks(columns), together, lambda rank: numbers // rank)
        return found, np.flatnonzero(steep)


def in_batches(
    need: NDArray[np.intp], among: Subset, most: Callable[[int], int]
) -> list[ColumnBatch]:
    """Columns of equal need together, as many as a function of it allows."""
    found = []
    for rank in map(int, np.unique(need[among])):
        alike, size = among[need[among] == rank], max(1, most(rank))
        found += [ColumnBatch(alike[i : i + size], rank) for i in range(0, len(alike), size)]
    return found


class Exponents:
    """Exponents of the kernel of some columns, a strip of rows at a time.

    Columns that reach very far are kept apart from the others, in sums that lose no digit, so that
    what is left when one of them leaves is known as well as if it had never been there.
    """

    def __init__(self, table: ScaledColumns, members: Subset, Z: Any = None, reach: Any = None):
        """Of the rows of ``Z`` with those of the table, or of these among themselves."""
        self.table, self.Z = table, table.Z if Z is None else Z
        #: Of every column, whether its exponents are kept apart.
        self.is_far = 2 * (table.reach if reach is None else reach) > FAR[table.digits]
        far = self.is_far[members]
        self.far = members[far]
        self.near = taken(table.Z, members[~far])
        self.near_rows = self.near if Z is None else taken(Z, members[~far])
        self.halves = _half_squares(self.near)
        self.half_rows = self.halves if Z is None else _half_squares(self.near_rows)

    def strip(self, rows: slice, columns: slice) -> "KernelStrip":
        """Exponents of some rows with others."""
        xp = namespace(self.near)
        exponents = self.near_rows[rows, :] @ self.near[columns, :].T
        exponents -= self.half_rows[rows][:, None]
        exponents -= self.halves[columns][None, :]
        high = low = None
        for j in self.far:
            part = self.apart(int(j), rows, columns)
            if high is None:
                high, low = part, xp.zeros_like(part)
            else:
                high, low = _added(high, low, part)
        return KernelStrip(rows, columns, exponents, high, low)

    def apart(self, column: int, rows: slice, columns: slice) -> Any:
        """Minus the exponent of one column alone."""
        apart = self.Z[rows, column][:, None] - self.table.Z[columns, column][None, :]
        return apart * apart / 2


class KernelStrip(NamedTuple):
    """Exponents of near columns, and what far ones take away as an unevaluated sum of two."""

    rows: slice
    columns: slice
    near: Any
    high: Any
    low: Any

    def exponents(self) -> Any:
        """Those of the kernel."""
        return self.near if self.high is None else self.near - self.high - self.low

    def without(self, part: Any) -> Any:
        """Those of the kernel without a far column, whose part was added before."""
        return self.near - ((self.high - part) + self.low)

    def same(self) -> Any:
        """Where a row meets itself, among the columns of the strip's own rows."""
        xp = namespace(self.near)
        index = move(np.arange(self.rows.stop - self.rows.start), self.near, exact=True)
        return xp.reshape(index, (-1, 1)) == xp.reshape(index, (1, -1))


def _half_squares(Z: Any) -> Any:
    return namespace(Z).sum(Z * Z, axis=1) / 2


def _added(high: Any, low: Any, part: Any) -> tuple[Any, Any]:
    """high + low + part, the rounding of the sum kept in the second (two-sum of Knuth)."""
    total = high + part
    back = total - high
    return total, low + ((high - (total - back)) + (part - back))


class Stacks:
    """[v, w_1, ..., w_(rank-1)] of batches of columns, kept from one strip to the next or not.

    With ``split`` those late terms that are so small that the rounding of single precision is no
    more than what the series leaves out are kept in it, whose products take half the time.
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
        #: Of each batch, how many terms are in the precision of the table.
        self.leading = [
            _leading(table.reach[altered[b.columns]], b.rank) if split else b.rank for b in batches
        ]
        size = table.Z.shape[0] * sum(len(batch.columns) * batch.rank for batch in batches)
        few = size <= (KEPT if on_host(table.Z) else DEVICE_STACK)
        self.kept = [self._made(index, 0) for index in range(len(batches))] if few else None

    def of(self, index: int, first: int = 0) -> Any:
        """That of one batch from a row on, of shape (rows, rank * columns)."""
        return self.both(index, first)[0]

    def both(self, index: int, first: int = 0) -> tuple[Any, Any]:
        """Its leading terms, and its late ones in single precision, None where there are none."""
        if self.kept is None:
            return self._made(index, first)
        leading, late = self.kept[index]
        return leading[first:, :], None if late is None else late[first:, :]

    def _made(self, index: int, first: int) -> tuple[Any, Any]:
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
    """Terms of columns that single precision would spoil."""
    roundings = LEFT_OUT[8] / float(np.finfo(np.float32).eps)
    return min(rank, int(ranks(reach, roundings).max(initial=1)))


def coefficients(rank: int, way: int) -> Array:
    """1, then (-way)^k / k!."""
    return np.array([1.0] + [(-way) ** k / factorial(k) for k in range(1, rank)])


def stack_size(x: Any) -> int:
    """Numbers of a stack where an array is."""
    return (STACK if on_host(x) else DEVICE_STACK) // _SMALLER.get()


def strip_size(x: Any) -> int:
    """Rows of a strip of an array."""
    n_rows = x.shape[0]
    if not on_host(x):
        return max(1, min(-(-n_rows // PARTS), DEVICE_STRIP // n_rows) // _SMALLER.get())
    return max(1, min(max(-(-n_rows // PIECES), ROWS[0]), ROWS[1]) // _SMALLER.get())


def strips(x: Any) -> Iterator[slice]:
    """Strips of the rows of an array."""
    n_rows, size = x.shape[0], strip_size(x)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def in_memory(work: Callable[[], Found]) -> Found:
    """What a function of strips and stacks finds, with smaller ones where a device is too small."""
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
        smaller *= 4  # what the failed attempt held is let go before the next
        free_memory()


def added_up(function: Callable[[slice], Any], x: Any) -> Any:
    """Sum of a function of each strip, in their order, whatever the number of threads."""
    n_threads = own_threads() if isinstance(x, np.ndarray) else 1
    total = None
    for part in in_order(function, list(strips(x)), n_threads, blas=True):
        total = part if total is None else total + part
    return total

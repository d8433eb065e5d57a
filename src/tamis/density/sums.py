"""Sums of Gaussian kernels over the rows of each class, for several subsets of columns at once.

The first result is for the given subset, whose columns are the members. There is one more result
for each altered column, which is removed from the members (sign -1) or added to them (sign +1). For
small tables, all distances are kept in memory. For large tables, compiled loops compute a row of
distances at a time.
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Mask, Subset
from tamis._namespace import taken
from tamis._parallel import in_order, own_threads
from tamis.compiled import thresholds
from tamis.density.series.table import KEPT, ROWS, Alteration, ScaledColumns

#: NumPy type for each precision.
PRECISIONS: dict[str, Any] = {"double": np.float64, "single": np.float32}
# Size of a block of results (count of numbers, 32 MB). It is small compared with a large table, and
# large enough that computing the distances again for each block costs little.
BLOCK = 4_000_000
#: Largest ratio of the distances in a removed column to the remaining distances for which the
#: remaining distances are computed by subtraction, which loses at most ten bits. Above this ratio,
#: they are computed from scratch.
DOMINATES = 1024.0
#: Largest exponent of a column that compiled loops may subtract from the exponent of all columns,
#: with a rounding error of 1e-12. Columns with larger exponents are computed by matrix products,
#: which keep them separate.
FARTHEST = 1e4
#: Smallest number of columns for which matrix products are faster. Computing the kernel matrix for
#: these products takes as long as computing a few dozen columns one by one.
LEAST_TOGETHER = 64
#: Smallest number of columns per thread. Every thread computes the distances of a row again, which
#: is not worthwhile for fewer columns.
FEWEST_SHARED = 8


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether a table is large enough for compiled loops."""
    n_samples, n_features = shape
    return n_samples**2 * n_features >= thresholds.KERNEL_TERMS


def columns_in_use(X: Any, change: Alteration, gamma: float) -> tuple[ScaledColumns, Alteration]:
    """Scale the members and altered columns of a table for a kernel, and renumber them."""
    used = np.union1d(change.members, change.altered)
    members, altered = (np.searchsorted(used, some) for some in change[:2])
    return ScaledColumns(taken(X, used), gamma), Alteration(members, altered, change.sign)


def in_products(table: ScaledColumns, altered: Subset, most_terms: int) -> Mask:
    """Return a mask of the altered columns to compute together by matrix products.

    These are columns whose series has at most ``most_terms`` terms (if there are enough of them)
    and columns with very large exponents. On a GPU or other device these are all columns.
    """
    if not isinstance(table.Z, np.ndarray):  # there are no compiled loops on a device
        return np.ones(len(altered), dtype=bool)
    few = table.ranks(altered) <= most_terms
    found = few if np.count_nonzero(few) >= LEAST_TOGETHER else np.zeros_like(few)
    return np.asarray(found | (2 * table.reach[altered] > FARTHEST))


def altered_distances(X: Array, change: Alteration) -> Iterator[Array]:
    """Iterate over arrays of squared distances between all pairs of rows, ordered as in ``pdist``.

    The first array is for the members, the others are for each altered column.
    """
    members, altered, sign = change
    distances = pdist(X[:, members], "sqeuclidean")
    yield distances
    for j in altered:
        own = pdist(X[:, [j]], "sqeuclidean")
        changed = distances + sign * own
        if sign < 0 and own.max() > DOMINATES * changed.max():
            changed = pdist(X[:, members[members != j]], "sqeuclidean")
        yield changed


def class_sums(
    X: Array, codes: NDArray[np.intp], precision: str = "double"
) -> "PlainClassSums | CompiledClassSums":
    """Return the kernel sums of a table, computed by compiled loops if the table is large.

    Single precision halves the time for a large table; sums are then accurate to about 1e-6.
    """
    return CompiledClassSums(X, codes, precision) if is_large(X.shape) else PlainClassSums(X, codes)


def class_sums_cost(n_samples: int, n_features: int, *, others: bool) -> float:
    """Estimate the memory in bytes that the kernel sums need if each column is altered."""
    size = n_samples * n_features
    if not is_large((n_samples, n_features)):
        return 24.0 * n_samples**2 + 16 * size
    block = max(n_samples * 2, min(BLOCK, 2 * size))
    held = (60 if others else 24) * block + products_bytes(n_samples, n_features)
    return 16.0 * size + held


def products_bytes(n_samples: int, n_features: int) -> float:
    """Estimate the memory in bytes that matrix products need.

    They need the terms of the columns, and a strip of the kernel matrix.
    """
    if n_features < LEAST_TOGETHER:
        return 0.0
    # about eight terms of each column, and half a dozen arrays of a strip
    return 8.0 * min(KEPT, 8 * n_samples * n_features) + 48.0 * n_samples * min(n_samples, ROWS[1])


class PlainClassSums:
    """Kernel sums computed from full distance matrices, for small tables.

    Arrays of results have the shape (results, classes, samples), with samples sorted by class.
    ``order`` contains the indices that sort the samples by class.
    """

    def __init__(self, X: Array, codes: NDArray[np.intp]):
        self.order = np.argsort(codes, kind="stable")
        self._X = X[self.order]
        self._counts = np.bincount(codes)
        self._starts = np.cumsum(self._counts) - self._counts

    def sums(self, change: Alteration, gamma: float) -> Array:
        """Return the kernel sums of each sample over each class.

        The sample itself adds 1 to the sum of its own class.
        """
        sums = []
        for distances in map(squareform, altered_distances(self._X, change)):
            distances *= -gamma
            sums.append(np.add.reduceat(np.exp(distances, out=distances), self._starts, axis=0))
        return np.array(sums)

    def log_sums_of_others(self, change: Alteration, gamma: float) -> Array:
        """Return the logarithms of the sums over all other samples, computed without underflow."""
        logs = []
        for distances in map(squareform, altered_distances(self._X, change)):
            np.fill_diagonal(distances, np.inf)
            least = np.minimum.reduceat(distances, self._starts, axis=0)
            distances -= np.repeat(least, self._counts, axis=0)
            distances *= -gamma
            total = np.add.reduceat(np.exp(distances, out=distances), self._starts, axis=0)
            logs.append(np.log(total) - gamma * least)
        return np.array(logs)


def _by_columns(rows: list[slice], n_columns: int) -> list[list[tuple[slice, slice]]]:
    """Return pairs of slices of rows and of columns, in lists that threads share.

    Each list has one slice of rows, so the rows of a column are added up in order. The result
    therefore does not depend on the number of threads. An interrupt takes effect at the end of a
    list.
    """
    n_threads = max(1, min(own_threads(), n_columns // FEWEST_SHARED))
    bounds = [n_columns * k // n_threads for k in range(n_threads + 1)]
    return [[(some, slice(*ends)) for ends in pairwise(bounds)] for some in rows]


class CompiledClassSums:
    """The sums of :class:`PlainClassSums`, computed by compiled loops for any number of samples."""

    def __init__(self, X: Array, codes: NDArray[np.intp], precision: str = "double"):
        from tamis.compiled.kernel_sums import PAD

        self.order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)
        sizes = -(-counts // PAD) * PAD
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])
        inside = np.arange(len(X)) - np.repeat(np.cumsum(counts) - counts, counts)
        self._rows = np.repeat(self._bounds[:-1], counts) + inside
        dtype = PRECISIONS[precision]
        self._columns = np.zeros((X.shape[1], self._bounds[-1]), dtype=dtype)
        self._columns[:, self._rows] = X[self.order].T
        self._far = np.full(self._bounds[-1], np.inf, dtype=dtype)
        self._far[self._rows] = 0

    def sums(self, change: Alteration, gamma: float) -> Array:
        """Return the same as :meth:`PlainClassSums.sums`."""
        from tamis.compiled.kernel_sums import class_sums

        # each pair is computed once and added to both of its samples, so threads split the columns
        return self._blocks(class_sums, change, gamma, symmetric=True)

    def log_sums_of_others(self, change: Alteration, gamma: float) -> Array:
        """Return the same as :meth:`PlainClassSums.log_sums_of_others`."""
        from tamis.compiled.kernel_sums import log_class_sums_of_others

        return self._blocks(log_class_sums_of_others, change, gamma, symmetric=False)

    def _blocks(self, function: Any, change: Alteration, gamma: float, *, symmetric: bool) -> Array:
        """Call a compiled loop for a block of columns at a time. The results fit into memory."""
        size = max(1, BLOCK // (len(self._far) * (len(self._bounds) - 1)))
        table = (self._bounds, self._far)
        # scaled so that the kernel is a power of 2
        columns = self._columns * float(np.sqrt(gamma / np.log(2)))
        members, sign = change.members, change.sign
        altered = np.append(members[:1], change.altered)
        signs = np.full(len(altered), sign, dtype=columns.dtype)
        signs[0] = 0  # the first result is for the members themselves
        blocks = []
        for i in range(0, len(altered), size):
            some, sides = altered[i : i + size], signs[i : i + size]
            out = np.zeros((len(some), len(self._bounds) - 1, len(self._far)), columns.dtype)
            terms = len(self._far) * float(len(members) + len(some))
            rows = list(thresholds.in_calls(len(self._rows), terms, shared=not symmetric))
            work = _by_columns(rows, len(some)) if symmetric else [[(r, slice(None)) for r in rows]]

            def call(block: Any, some: Any = some, sides: Any = sides, out: Any = out) -> None:
                these, own = block
                inputs = columns, members, some[own], sides[own], *table
                function(*inputs, self._rows[these], out[own])

            for shared in work:
                deque(in_order(call, shared, own_threads()))
            blocks.append(out[:, :, self._rows])
        return np.concatenate(blocks).astype(float)

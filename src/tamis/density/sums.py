"""Sums of Gaussian kernels over the classes, for a subset of columns and each change of it.

Answers are for the members of the subset first, then for the members without (sign -1) or with (+1)
each altered column. Small tables hold all their distances; of large ones compiled loops make a row
at a time.
"""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Mask, Subset
from tamis._namespace import taken
from tamis._parallel import in_order, own_threads
from tamis.compiled import thresholds
from tamis.density.series import ScaledColumns
from tamis.density.series.table import KEPT, ROWS

#: Types of number by their names.
PRECISIONS: dict[str, Any] = {"double": np.float64, "single": np.float32}
# Numbers that a block of results may hold: 32 megabytes, small beside the table of a large problem
# and large enough that the distances between samples, made anew for each, cost little.
BLOCK = 4_000_000
#: How much more than all others a column may make of the distances for these to be told from what
#: is left without it: ten bits are lost. Beyond, they are made anew.
DOMINATES = 1024.0
#: Largest exponent of a column that compiled loops may take away from that of all columns, whose
#: rounding is then 1e-12. Products keep columns that reach farther apart.
FARTHEST = 1e4
#: Columns from which products of strips pay for the kernel that is made for them, which costs as
#: much as some dozen columns by themselves.
LEAST_TOGETHER = 64
#: Columns of a thread from which it pays to make the distances of a row for it alone, which cost a
#: tenth of as many exponentials.
FEWEST_SHARED = 8


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether altering each column of such a table once is worth a compiled loop."""
    n_samples, n_features = shape
    return n_samples**2 * n_features >= thresholds.KERNEL_TERMS


class ColumnsInUse(NamedTuple):
    """The columns of a question in the units of a kernel; members and altered ones among them."""

    table: ScaledColumns
    members: Subset
    altered: Subset

    def together(self, most_terms: int) -> Mask:
        """Which altered columns are to be found together, by series of so many terms at most."""
        if not isinstance(self.table.Z, np.ndarray):  # there are no compiled loops on a device
            return np.ones(len(self.altered), dtype=bool)
        few = self.table.ranks(self.altered) <= most_terms
        found = few if np.count_nonzero(few) >= LEAST_TOGETHER else np.zeros_like(few)
        return np.asarray(found | (2 * self.table.reach[self.altered] > FARTHEST))


def columns_in_use(X: Any, members: Subset, altered: Subset, gamma: float) -> ColumnsInUse:
    """Members and altered columns of a table, scaled for a kernel."""
    used = np.union1d(members, altered)
    table = ScaledColumns(taken(X, used), gamma)
    return ColumnsInUse(table, np.searchsorted(used, members), np.searchsorted(used, altered))


def altered_distances(X: Array, members: Subset, altered: Subset, sign: int) -> Iterator[Array]:
    """Squared distances of all pairs of rows, as ``pdist`` gives them, for each answer."""
    distances = pdist(X[:, members], "sqeuclidean")
    yield distances
    for j in altered:
        part = pdist(X[:, [j]], "sqeuclidean")
        moved = distances + sign * part
        if sign < 0 and part.max() > DOMINATES * moved.max():
            moved = pdist(X[:, members[members != j]], "sqeuclidean")
        yield moved


class ClassSums(Protocol):
    """Kernel sums of every sample over every class.

    The answers are arrays of (answer, class, sample in class order).
    """

    #: Index in the data of each of the sums' samples.
    order: NDArray[np.intp]

    def sums(self, members: Subset, altered: Subset, sign: int, gamma: float) -> Array:
        """Sums to which every sample contributes 1 for itself."""
        ...

    def log_sums_of_others(
        self, members: Subset, altered: Subset, sign: int, gamma: float
    ) -> Array:
        """Logarithm of the sums without the sample itself, safe where all terms underflow."""
        ...


def class_sums(X: Array, codes: NDArray[np.intp], precision: str = "double") -> ClassSums:
    """The sums for a table, by numpy or compiled as its size asks for.

    In single precision a large table takes half the time; sums are then right to about 1e-6.
    """
    return CompiledClassSums(X, codes, precision) if is_large(X.shape) else PlainClassSums(X, codes)


def class_sums_cost(n_samples: int, n_features: int, *, others: bool) -> float:
    """Estimate the bytes held by the sums for each column."""
    size = n_samples * n_features
    if not is_large((n_samples, n_features)):
        return 24.0 * n_samples**2 + 16 * size
    block = max(n_samples * 2, min(BLOCK, 2 * size))
    held = (60 if others else 24) * block + products_bytes(n_samples, n_features)
    return 16.0 * size + held


def products_bytes(n_samples: int, n_features: int) -> float:
    """What products hold where columns are found together: their terms, and a strip of kernels."""
    if n_features < LEAST_TOGETHER:
        return 0.0
    # about eight terms of each column, and half a dozen arrays of a strip
    return 8.0 * min(KEPT, 8 * n_samples * n_features) + 48.0 * n_samples * min(n_samples, ROWS[1])


class PlainClassSums:
    """Whole matrices of distances: for small tables."""

    def __init__(self, X: Array, codes: NDArray[np.intp]):
        self.order = np.argsort(codes, kind="stable")
        self._X = X[self.order]
        self._counts = np.bincount(codes)
        self._starts = np.cumsum(self._counts) - self._counts

    def sums(self, members: Subset, altered: Subset, sign: int, gamma: float) -> Array:
        found = self._empty(altered)
        for index, moved in enumerate(self._distances(members, altered, sign)):
            moved *= -gamma
            found[index] = np.add.reduceat(np.exp(moved, out=moved), self._starts, axis=0)
        return found

    def log_sums_of_others(
        self, members: Subset, altered: Subset, sign: int, gamma: float
    ) -> Array:
        found = self._empty(altered)
        for index, moved in enumerate(self._distances(members, altered, sign)):
            np.fill_diagonal(moved, np.inf)
            least = np.minimum.reduceat(moved, self._starts, axis=0)
            moved -= np.repeat(least, self._counts, axis=0)
            moved *= -gamma
            total = np.add.reduceat(np.exp(moved, out=moved), self._starts, axis=0)
            found[index] = np.log(total) - gamma * least
        return found

    def _empty(self, altered: Subset) -> Array:
        return np.empty((len(altered) + 1, len(self._starts), len(self._X)))

    def _distances(self, members: Subset, altered: Subset, sign: int) -> Iterator[Array]:
        return map(squareform, altered_distances(self._X, members, altered, sign))


def _by_columns(rows: list[slice], n_columns: int) -> list[list[tuple[slice, slice]]]:
    """For each thread all rows of some of the columns; no sum depends on which these are."""
    n_parts = max(1, min(own_threads(), n_columns // FEWEST_SHARED))
    bounds = [n_columns * k // n_parts for k in range(n_parts + 1)]
    return [[(part, slice(*ends)) for part in rows] for ends in pairwise(bounds)]


class CompiledClassSums:
    """Rows of distances made as needed: any number of samples."""

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

    def sums(self, members: Subset, altered: Subset, sign: int, gamma: float) -> Array:
        from tamis.compiled.kernel_sums import class_sums

        # each pair is computed once and added to both of its samples: threads share the columns
        return self._blocks(class_sums, members, altered, sign, gamma, symmetric=True)

    def log_sums_of_others(
        self, members: Subset, altered: Subset, sign: int, gamma: float
    ) -> Array:
        from tamis.compiled.kernel_sums import log_class_sums_of_others

        everything = members, altered, sign, gamma
        return self._blocks(log_class_sums_of_others, *everything, symmetric=False)

    def _blocks(
        self,
        function: Any,
        members: Subset,
        altered: Subset,
        sign: int,
        gamma: float,
        *,
        symmetric: bool,
    ) -> Array:
        """The function's answers, so many columns at a time that they fit into memory."""
        size = max(1, BLOCK // (len(self._far) * (len(self._bounds) - 1)))
        table = (self._bounds, self._far)
        columns = self._columns * float(np.sqrt(gamma / np.log(2)))  # the kernel as a power of 2
        altered = np.append(members[:1], altered)
        signs = np.full(len(altered), sign, dtype=columns.dtype)
        signs[0] = 0  # the members themselves
        parts = []
        for i in range(0, len(altered), size):
            some, way = altered[i : i + size], signs[i : i + size]
            out = np.zeros((len(some), len(self._bounds) - 1, len(self._far)), columns.dtype)
            terms = len(self._far) * float(len(members) + len(some))
            rows = list(thresholds.in_calls(len(self._rows), terms, shared=not symmetric))
            work = _by_columns(rows, len(some)) if symmetric else [[(r, slice(None))] for r in rows]

            def share(calls: Any, some: Any = some, way: Any = way, out: Any = out) -> None:
                for part, own in calls:
                    own_work = columns, members, some[own], way[own], *table
                    function(*own_work, self._rows[part], out[own])

            deque(in_order(share, work, own_threads()))
            parts.append(out[:, :, self._rows])
        return np.concatenate(parts).astype(float)

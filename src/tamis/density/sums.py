"""Sums of Gaussian kernels over samples, for a subset of columns with one altered at a time."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Subset
from tamis.exceptions import InvalidParameter

# Exponentials of one call below which numpy is done before compiled code is loaded.
COMPILED_FROM = 4_000_000
#: Types of number by their names.
PRECISIONS: dict[str, Any] = {"double": np.float64, "single": np.float32}
# Numbers that a block of results may hold.
BLOCK = 4_000_000


def check_precision(who: str, precision: Any) -> None:
    """Refuse a precision that does not exist."""
    if precision not in PRECISIONS:
        raise InvalidParameter(f"{who} needs precision='double' or 'single', not {precision!r}.")


class ClassSums(Protocol):
    """Kernel sums of every sample over every class.

    The answers are arrays of (altered column, class, sample in class order). The distances are
    those of ``members`` without (sign -1), with (+1) or not altered by (0) each altered column.
    """

    #: Place of each of the sums' samples in the data.
    order: NDArray[np.intp]

    def sums(self, members: Subset, altered: Subset, signs: Array, gamma: float) -> Array:
        """Sums to which every sample contributes 1 for itself."""
        ...

    def log_sums_of_others(
        self, members: Subset, altered: Subset, signs: Array, gamma: float
    ) -> Array:
        """Logarithm of the sums without the sample itself, safe where all terms underflow."""
        ...


def class_sums(X: Array, codes: NDArray[np.intp], precision: str = "double") -> ClassSums:
    """The sums for a table, by numpy or compiled as its size asks for.

    In single precision a large table takes half the time; sums are then right to about 1e-6.
    """
    large = len(X) ** 2 * X.shape[1] >= COMPILED_FROM
    return CompiledClassSums(X, codes, precision) if large else PlainClassSums(X, codes)


class PlainClassSums:
    """Whole matrices of distances: for small tables."""

    def __init__(self, X: Array, codes: NDArray[np.intp]):
        self.order = np.argsort(codes, kind="stable")
        self._X = X[self.order]
        self._counts = np.bincount(codes)
        self._starts = np.cumsum(self._counts) - self._counts

    def sums(self, members: Subset, altered: Subset, signs: Array, gamma: float) -> Array:
        found = self._empty(altered)
        for place, moved in enumerate(self._distances(members, altered, signs)):
            moved *= -gamma
            found[place] = np.add.reduceat(np.exp(moved, out=moved), self._starts, axis=0)
        return found

    def log_sums_of_others(
        self, members: Subset, altered: Subset, signs: Array, gamma: float
    ) -> Array:
        found = self._empty(altered)
        for place, moved in enumerate(self._distances(members, altered, signs)):
            np.fill_diagonal(moved, np.inf)
            least = np.minimum.reduceat(moved, self._starts, axis=0)
            moved -= np.repeat(least, self._counts, axis=0)
            moved *= -gamma
            total = np.add.reduceat(np.exp(moved, out=moved), self._starts, axis=0)
            found[place] = np.log(total) - gamma * least
        return found

    def _empty(self, altered: Subset) -> Array:
        return np.empty((len(altered), len(self._starts), len(self._X)))

    def _distances(self, members: Subset, altered: Subset, signs: Array) -> Iterator[Array]:
        distances = pdist(self._X[:, members], "sqeuclidean")
        for j, sign in zip(altered, signs, strict=True):
            yield squareform(distances + sign * pdist(self._X[:, [j]], "sqeuclidean"))


class CompiledClassSums:
    """Rows of distances made as needed: any number of samples."""

    def __init__(self, X: Array, codes: NDArray[np.intp], precision: str = "double"):
        from tamis.density._rows import PAD

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

    def sums(self, members: Subset, altered: Subset, signs: Array, gamma: float) -> Array:
        from tamis.density._rows import class_sums

        return self._blocks(class_sums, members, altered, signs, gamma)

    def log_sums_of_others(
        self, members: Subset, altered: Subset, signs: Array, gamma: float
    ) -> Array:
        from tamis.density._rows import log_class_sums_of_others

        return self._blocks(log_class_sums_of_others, members, altered, signs, gamma)

    def _blocks(
        self, function: Any, members: Subset, altered: Subset, signs: Array, gamma: float
    ) -> Array:
        """The function's answers, so many columns at a time that they fit into memory."""
        size = max(1, BLOCK // (len(self._far) * (len(self._bounds) - 1)))
        table = (self._bounds, self._rows, self._far)
        columns = self._columns * float(np.sqrt(gamma / np.log(2)))  # the kernel as a power of 2
        signs = signs.astype(columns.dtype)
        parts = [
            function(columns, members, altered[i : i + size], signs[i : i + size], *table)
            for i in range(0, len(altered), size)
        ]
        return np.concatenate([part[:, :, self._rows] for part in parts]).astype(float)

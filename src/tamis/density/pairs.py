"""Sums of a Gaussian kernel over pairs of samples, weighted by a kernel of their targets.

The first result is for the members of a subset. The other results are for the members after
removing (sign -1) or adding (sign +1) each altered column, as in :mod:`tamis.density.sums`.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from tamis._arrays import Array, Subset, class_codes, in_range
from tamis._namespace import namespace, placed
from tamis._parallel import in_order, own_threads
from tamis.compiled.thresholds import in_calls
from tamis.density.series.pairs import pair_changes
from tamis.density.series.table import Alteration
from tamis.density.sums import altered_distances, columns_in_use, in_products, products_bytes

#: Kinds of target kernels: equality of classes, Gaussian (of a scaled target), product.
EQUALITY, GAUSSIAN, PRODUCT = range(3)
#: Largest number of terms in the series of a column for which matrix products are used. They need
#: one multiplication per pair and term. With more terms, a compiled exponential per pair is faster.
MOST_TERMS = 8
# Number of rows of the target's kernel matrix that are in memory at a time. For ten thousand
# samples they take a few megabytes.
_ROWS = 256
# Largest number of target values from which the median rule computes a kernel width.
_MOST = 4000


class TargetKernel:
    """Weights W of pairs of samples, computed from the kernel L of their targets.

    With the kernel K of the columns, HSIC is the sum of 2 K_ij W_ij over all pairs, plus a
    constant. For the biased and the unbiased estimate, W_ij = scale (L_ij - offset_i - offset_j).
    """

    def __init__(self, y: NDArray[Any], task: str, kernel: str, unbiased: bool):
        if task == "classification":
            self.y, self.kind = class_codes(y)[1].astype(float), EQUALITY
        elif kernel == "linear":
            self.y, self.kind = y - y.mean(), PRODUCT
        else:
            y = in_range(y.astype(float)[:, None])[:, 0]  # the median rule ignores the scale
            gamma = median_gamma(pdist(_thin_out(y)[:, None], "sqeuclidean"))
            self.y, self.kind = y * np.sqrt(gamma / np.log(2)), GAUSSIAN
        n, own = len(y), self.y**2 if self.kind == PRODUCT else np.ones(len(y))
        blocks = [slice(i, i + _ROWS) for i in range(0, n, _ROWS)]
        rows = np.concatenate([self.rows(block).sum(axis=1) for block in blocks])
        if unbiased:
            rows -= own
            self.scale = 1 / (n * (n - 3))
            self.offset = rows / (n - 2) - rows.sum() / (2 * (n - 1) * (n - 2))
            self.diagonal = 0.0
        else:
            self.scale = 1 / n**2
            self.offset = rows / n - rows.sum() / (2 * n**2)
            self.diagonal = float(self.scale * (own - 2 * self.offset).sum())

    def rows(self, rows: slice) -> Array:
        """Return the kernel between the targets of a slice of samples and all targets."""
        return np.asarray(target_kernel(self.kind, self.y[rows, None], self.y))


def target_kernel(kind: int, own: Any, others: Any) -> Any:
    """Return the kernel between two arrays of targets, which may be of any array library."""
    xp = namespace(own, others)
    if kind == EQUALITY:
        return xp.astype(own == others, own.dtype)
    if kind == GAUSSIAN:
        apart = own - others
        return xp.exp(apart * apart * -float(np.log(2)))
    return own * others


def pair_sums_cost(n_samples: int, n_features: int, *, compiled: bool) -> float:
    """Estimate the memory in bytes that the target's kernel and the sums of all columns need."""
    pairs, size = float(n_samples) ** 2, n_samples * n_features
    if not compiled:
        return 24 * pairs + 16 * size
    held = 10.0 * n_samples * min(n_samples, _ROWS) + products_bytes(n_samples, n_features)
    return held + 16 * size


class PlainPairSums:
    """Kernel sums over all pairs of rows at once, for small tables and for the median rule."""

    def __init__(self, X: Array, target: TargetKernel):
        self._X, self.target = X, target
        first, second = np.triu_indices(len(X), 1)
        offsets = target.offset[first] + target.offset[second]
        self._weights = 2 * target.scale * (target.rows(slice(None))[first, second] - offsets)

    def __call__(self, change: Alteration, before: float, after: float) -> Array:
        """Return the sums for the members and for each altered column.

        ``before`` is gamma for the members, ``after`` is gamma for each altered column.
        """
        distances = altered_distances(self._X, change)
        own = self._sum(next(distances), before)
        return np.array([own, *(self._sum(moved, after) for moved in distances)])

    def _sum(self, distances: Array, gamma: float) -> float:
        exponents = distances * -(median_gamma(distances) if np.isnan(gamma) else gamma)
        return float(np.exp(exponents, out=exponents) @ self._weights)


class StripPairSums:
    """Kernel sums over pairs of rows, computed in strips of rows, for any number of samples.

    Columns whose series has few terms are computed together by matrix products, the others by
    compiled loops over the rows.
    """

    def __init__(self, X: Array, target: TargetKernel, dtype: Any):
        self.target = target
        self._X, self._y, self._offset = (
            placed(np.asarray(values, dtype=dtype)) for values in (X, target.y, target.offset)
        )

    def __call__(self, change: Alteration, before: float, after: float) -> Array:
        """Return the sums for the members and for each altered column.

        ``before`` is gamma for the members, ``after`` is gamma for each altered column.
        """
        table, used = columns_in_use(self._X, change, after)
        together = in_products(table, used.altered, MOST_TERMS)
        found = np.empty(len(together) + 1)
        if together.any() or not len(together):
            some = used._replace(altered=used.altered[together])
            sums = pair_changes(table, some, self._weights, widening=before / after)
            found[0], found[1:][together] = sums.other, sums.base + sums.changes
            found *= self.target.scale
        if not together.all():
            others = change._replace(altered=change.altered[~together])
            rest = self._by_rows(others, before, after)
            found[0], found[1:][~together] = rest[0], rest[1:]
        return found

    def _weights(self, rows: slice, columns: slice) -> Any:
        """Return L_ij - offset_i - offset_j for two slices of samples i and j."""
        own, others = self._y[rows][:, None], self._y[columns][None, :]
        found = target_kernel(self.target.kind, own, others)
        found -= self._offset[rows][:, None]
        found -= self._offset[columns][None, :]
        return found

    @cached_property
    def _columns(self) -> Any:
        """Transposed table for the compiled loops, padded with zeros."""
        from tamis.compiled.kernel_sums import PAD

        n_rows, n_columns = self._X.shape
        columns = np.zeros((n_columns, -(-n_rows // PAD) * PAD), dtype=self._X.dtype)
        columns[:, :n_rows] = self._X.T
        return columns

    def _by_rows(self, change: Alteration, before: float, after: float) -> Array:
        from tamis.compiled.kernel_sums import pair_sums

        target, (members, altered, sign) = self.target, change
        # scaled so that the kernel is a power of 2
        columns = self._columns * float(np.sqrt(after / np.log(2)))
        number = columns.dtype.type
        numbers = number(sign), number(before / after), target.y, target.kind, target.offset
        sums = np.zeros(len(altered) + 1)
        for some in in_calls(max(1, len(altered)), columns.shape[1]):
            chosen = altered[some]

            def of_rows(rows: slice, chosen: Subset = chosen) -> Array:
                out = np.zeros(len(chosen) + 1)
                pair_sums(columns, members, chosen, *numbers, rows.start, rows.stop, out)
                return out

            terms = columns.shape[1] * float(len(members) + len(chosen) + 1)
            slices = list(in_calls(len(target.y), terms, shared=True))
            found = np.sum(list(in_order(of_rows, slices, own_threads())), axis=0)
            sums[0], sums[1:][some] = found[0], found[1:]
        return 2 * target.scale * sums


def _thin_out(y: Array) -> Array:
    """Return the values, or a sorted and evenly spaced selection whose pairs fit in memory."""
    if len(y) <= _MOST:
        return y
    return np.sort(y)[np.linspace(0, len(y) - 1, _MOST).round().astype(np.intp)]


def median_gamma(distances: Array) -> float:
    """Return 1/(2 median) of squared distances.

    If most distances are 0, return 1/(2 mean). If all are 0, return 1.

    >>> median_gamma(np.array([1.0, 2.0, 9.0])), median_gamma(np.array([0.0, 0.0, 3.0]))
    (0.25, 0.5)
    """
    if not len(distances):
        return 1.0
    middle = float(np.median(distances))
    # tiny distances are rounding errors of equal numbers
    if middle <= 1e-12 * distances.max():
        middle = float(np.maximum(distances, 0).mean())
    return 1 / (2 * middle) if middle > 0 else 1.0

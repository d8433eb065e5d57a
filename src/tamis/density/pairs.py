"""Sums over pairs of samples of a Gaussian kernel, weighted by how alike the targets of a pair are.

Answers are for the members of a subset, then for them without (sign -1) or with (+1) each altered
column, as in :mod:`tamis.density.sums`.
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
from tamis.density.series import pair_changes
from tamis.density.sums import altered_distances, columns_in_use, products_bytes

#: Kernels of the target: whether classes agree, a Gaussian (of a scaled target), a product.
EQUALITY, GAUSSIAN, PRODUCT = range(3)
#: Terms of the series of a column up to which products, which cost one for each pair and term, are
#: faster than a compiled exponential for each pair.
MOST_TERMS = 8
# Rows of the target's kernel held at a time: a few megabytes for ten thousand samples.
_ROWS = 256


class TargetKernel:
    """The target's side of HSIC: weights W with HSIC = sum over pairs of 2 K W, plus a constant.

    Expanding either estimate, W_ij = scale (L_ij - offset_i - offset_j).
    """

    def __init__(self, y: NDArray[Any], task: str, kernel: str, unbiased: bool):
        if task == "classification":
            self.y, self.kind = class_codes(y)[1].astype(float), EQUALITY
        elif kernel == "linear":
            self.y, self.kind = y - y.mean(), PRODUCT
        else:
            y = in_range(y.astype(float)[:, None])[:, 0]  # the width follows the scale
            gamma = median_gamma(pdist(_spread(y)[:, None], "sqeuclidean"))
            self.y, self.kind = y * np.sqrt(gamma / np.log(2)), GAUSSIAN
        n, own = len(y), self._own()
        rows = self._row_sums() - (own if unbiased else 0)
        if unbiased:
            self.scale = 1 / (n * (n - 3))
            self.offset = rows / (n - 2) - rows.sum() / (2 * (n - 1) * (n - 2))
            self.diagonal = 0.0
        else:
            self.scale = 1 / n**2
            self.offset = rows / n - rows.sum() / (2 * n**2)
            self.diagonal = float(self.scale * (own - 2 * self.offset).sum())

    def rows(self, rows: slice) -> Array:
        """Kernel of some samples' targets with all."""
        return np.asarray(target_kernel(self.kind, self.y[rows, None], self.y))

    def _own(self) -> Array:
        return self.y**2 if self.kind == PRODUCT else np.ones(len(self.y))

    def _row_sums(self) -> Array:
        blocks = [slice(i, i + _ROWS) for i in range(0, len(self.y), _ROWS)]
        return np.concatenate([self.rows(block).sum(axis=1) for block in blocks])


def target_kernel(kind: int, own: Any, others: Any) -> Any:
    """Kernel of targets with others, on any array library."""
    xp = namespace(own, others)
    if kind == EQUALITY:
        return xp.astype(own == others, own.dtype)
    if kind == GAUSSIAN:
        apart = own - others
        return xp.exp(apart * apart * -float(np.log(2)))
    return own * others


def pair_sums_cost(n_samples: int, n_features: int, *, compiled: bool) -> float:
    """Estimate the bytes held by the kernel of the target and the sums for each column."""
    pairs, size = float(n_samples) ** 2, n_samples * n_features
    if not compiled:
        return 24 * pairs + 16 * size
    held = 10.0 * n_samples * min(n_samples, _ROWS) + products_bytes(n_samples, n_features)
    return held + 16 * size


class PlainPairSums:
    """All pairs at once: for small tables, and where each subset has a width of its own."""

    def __init__(self, X: Array, target: TargetKernel):
        self._X, self.target = X, target
        first, second = np.triu_indices(len(X), 1)
        offsets = target.offset[first] + target.offset[second]
        self._weights = 2 * target.scale * (target.rows(slice(None))[first, second] - offsets)

    def __call__(
        self, members: Subset, altered: Subset, sign: int, before: float, after: float
    ) -> Array:
        """Sums with one gamma for the members and another for each change."""
        distances = altered_distances(self._X, members, altered, sign)
        own = self._sum(next(distances), before)
        return np.array([own, *(self._sum(moved, after) for moved in distances)])

    def _sum(self, distances: Array, gamma: float) -> float:
        exponents = distances * -(median_gamma(distances) if np.isnan(gamma) else gamma)
        return float(np.exp(exponents, out=exponents) @ self._weights)


class StripPairSums:
    """A strip of distances and weights at a time, made as needed: any number of samples.

    Columns that need few terms of their series are found together by matrix products, the others
    by compiled loops over the rows.
    """

    def __init__(self, X: Array, target: TargetKernel, dtype: Any):
        self.target = target
        self._X, self._y, self._offset = (
            placed(np.asarray(part, dtype=dtype)) for part in (X, target.y, target.offset)
        )

    def __call__(
        self, members: Subset, altered: Subset, sign: int, before: float, after: float
    ) -> Array:
        """Sums with one gamma for the members and another for each change."""
        used = columns_in_use(self._X, members, altered, after)
        together = used.together(MOST_TERMS)
        found = np.empty(len(altered) + 1)
        if together.any() or not len(altered):
            which = used.members, used.altered[together], -sign
            sums = pair_changes(used.table, *which, self._weights, widening=before / after)
            found[0], found[1:][together] = sums.other, sums.base + sums.changes
            found *= self.target.scale
        if not together.all():
            rest = self._by_rows(members, altered[~together], sign, before, after)
            found[0], found[1:][~together] = rest[0], rest[1:]
        return found

    def _weights(self, rows: slice, columns: slice) -> Any:
        """L_ij - offset_i - offset_j of some samples with others."""
        own, others = self._y[rows][:, None], self._y[columns][None, :]
        found = target_kernel(self.target.kind, own, others)
        found -= self._offset[rows][:, None]
        found -= self._offset[columns][None, :]
        return found

    @cached_property
    def _columns(self) -> Any:
        """Column by column, padded for the compiled loops."""
        from tamis.compiled.kernel_sums import PAD

        n_rows, n_columns = self._X.shape
        columns = np.zeros((n_columns, -(-n_rows // PAD) * PAD), dtype=self._X.dtype)
        columns[:, :n_rows] = self._X.T
        return columns

    def _by_rows(
        self, members: Subset, altered: Subset, sign: int, before: float, after: float
    ) -> Array:
        from tamis.compiled.kernel_sums import pair_sums

        target = self.target
        columns = self._columns * float(np.sqrt(after / np.log(2)))  # the kernel as a power of 2
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
            parts = list(in_calls(len(target.y), terms, shared=True))
            found = np.sum(list(in_order(of_rows, parts, own_threads())), axis=0)
            sums[0], sums[1:][some] = found[0], found[1:]
        return 2 * target.scale * sums


def _spread(y: Array, most: int = 4000) -> Array:
    """The values, or so many evenly spaced ones in their order: all pairs must fit into memory."""
    if len(y) <= most:
        return y
    return np.sort(y)[np.linspace(0, len(y) - 1, most).round().astype(np.intp)]


def median_gamma(distances: Array) -> float:
    """1/(2 median) of squared distances; where most are 0, of their mean; 1 where all are.

    >>> median_gamma(np.array([1.0, 2.0, 9.0])), median_gamma(np.array([0.0, 0.0, 3.0]))
    (0.25, 0.5)
    """
    if not len(distances):
        return 1.0
    middle = float(np.median(distances))
    # what is left of a difference of equal numbers is not a distance
    if middle <= 1e-12 * distances.max():
        middle = float(np.maximum(distances, 0).mean())
    return 1 / (2 * middle) if middle > 0 else 1.0

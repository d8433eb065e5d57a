"""Moments of columns in classes, added up over blocks of rows.

All rows are shifted by one vector near the mean, and plain sums are added: they lose no digits to a
large mean, and any cut into blocks gives the same to about 1e-14.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from tamis._arrays import FARTHEST, Array
from tamis.blocks.column_summary import Surveyed
from tamis.blocks.labels import Labels
from tamis.blocks.moments import ClassMoments, TargetMoments, with_ridge
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable
from tamis.exceptions import InvalidTable

#: Rows that are squared at a time: of a hundred columns three megabytes, which stay in the cache
#: between the shift and the product.
AT_ONCE = 4096
#: Numbers of products that each thread has its own of: as many as a block of rows has. Threads that
#: hold more would need more memory for what they know than for what they read.
SMALL = 1 << 22
#: Sum of squares of a target below which it may have lost digits to underflow.
TINY = 2.0 ** (-2 * FARTHEST)


class Sums(NamedTuple):
    """What blocks of rows add up to, of rows that are shifted: by class, and products of all."""

    counts: NDArray[np.int64]
    sums: Array  # (classes, columns)
    products: Array  # see ShiftedSums


class ShiftedSums(RowStatistic):
    """Counts, sums and products of shifted columns, by class.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    labels : Labels
        The classes.
    products : {"columns", "total", "classes"}
        Squares of each column in each class (classes, columns); products of all pairs over all rows
        (columns, columns); or those in each class (classes, columns, columns). Of matrices the
        upper half is filled.
    """

    def __init__(self, shift: Array, labels: Labels, products: str):
        self.shift, self.labels, self.products = shift, labels, products
        self.is_small = prod(self._shape()) <= SMALL

    def _shape(self) -> tuple[int, ...]:
        c, d = len(self.labels.values), len(self.shift)
        return {"columns": (c, d), "total": (d, d), "classes": (c, d, d)}[self.products]

    def empty(self) -> Any:
        c, d = len(self.labels.values), len(self.shift)
        products = np.zeros(self._shape())
        if products.ndim == 3:  # each matrix column-major, as it is added to in place
            products = products.transpose(0, 2, 1)
        elif self.products == "total":
            products = np.asfortranarray(products)
        return Sums(np.zeros(c, dtype=np.int64), np.zeros((c, d)), products)

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        codes = self.labels.codes(block.y)
        state.counts[:] += np.bincount(codes, minlength=len(state.counts))
        if self.products == "classes":
            order = np.argsort(codes, kind="stable")
        for start in range(0, len(codes), AT_ONCE):
            rows: Any = slice(start, start + AT_ONCE)
            if self.products == "classes":
                rows = order[rows]
            with np.errstate(over="ignore", invalid="ignore"):  # refused once the range is known
                Z = np.subtract(block.X[rows], self.shift, order="F", dtype=float)
                self._add(state, Z, codes[rows])
        return state

    def _add(self, state: Any, Z: Array, codes: NDArray[np.intp]) -> None:
        member = (np.arange(len(state.counts))[:, None] == codes).astype(float)
        state.sums[:] += member @ Z
        if self.products == "columns":
            state.products[:] += member @ Z**2
        elif self.products == "total":
            dsyrk(1.0, Z, 1.0, state.products, trans=1, overwrite_c=1)
        else:
            for k in np.unique(codes):  # sorted by class, all but one or two are empty
                dsyrk(1.0, Z[codes == k], 1.0, state.products[k], trans=1, overwrite_c=1)

    def merge(self, state: Any, other: Any) -> Any:
        return Sums(*(one + two for one, two in zip(state, other, strict=True)))


class TargetSums(RowStatistic):
    """Sums, squares and products of shifted columns and a shifted real target.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    target_shift : float
    target_exponent : int, default=0
        Power of two by which the target is divided first, the shift is already.
    """

    is_small = True

    def __init__(self, shift: Array, target_shift: float, target_exponent: int = 0):
        self.shift, self.target_shift = shift, target_shift
        self.target_exponent = target_exponent

    def empty(self) -> Any:
        # rows: sums, squares, products with the target; last column: the target itself
        return np.zeros((3, len(self.shift) + 1))

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        y = np.ldexp(block.y.astype(float), -self.target_exponent) - self.target_shift
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            with np.errstate(over="ignore", invalid="ignore"):  # refused once the range is known
                Z = np.column_stack([block.X[rows].astype(float) - self.shift, y[rows]])
                state += [Z.sum(axis=0), (Z**2).sum(axis=0), y[rows] @ Z]
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return state + other


class Scale(NamedTuple):
    """What columns are divided by; infinity makes those that do not vary nothing."""

    deviation: Array
    size: Array

    @classmethod
    def of(cls, standardize: bool, told: Surveyed, mean: Array, variance: Array) -> Self:
        """The scale on which a table is taken: its own, or that of standardised columns."""
        if not standardize:
            return cls(np.ones(len(mean)), told.size)
        deviation = np.sqrt(variance)
        constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
        deviation = np.where(constant | (told.low == told.high), np.inf, deviation)
        return cls(deviation, np.maximum(told.high - mean, mean - told.low) / deviation)


class Ranged(RowStatistic):
    """A statistic of columns that are divided by powers of two.

    Parameters
    ----------
    inner : RowStatistic
    exponent : array of int
    """

    def __init__(self, inner: RowStatistic, exponent: NDArray[Any]):
        self.inner, self.exponent = inner, exponent
        self.is_small = inner.is_small

    def empty(self) -> Any:
        return self.inner.empty()

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        X = np.ldexp(block.X.astype(float), -self.exponent)
        return self.inner.learn_part(state, block._replace(X=X))

    def merge(self, state: Any, other: Any) -> Any:
        return self.inner.merge(state, other)

    def finish(self, state: Any) -> Any:
        return self.inner.finish(state)


class TargetSize(RowStatistic):
    """The greatest absolute value of a real target."""

    def empty(self) -> Any:
        return 0.0

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        return max(state, float(np.abs(block.y.astype(float)).max(initial=0.0)))

    def merge(self, state: Any, other: Any) -> Any:
        return max(state, other)


class Summed(NamedTuple):
    """What blocks add up to, and how the columns were taken: divided by powers of two, shifted."""

    found: Any
    shift: Array
    told: Surveyed  # of the columns as they were taken
    exponent: NDArray[Any]


def summed(table: BlockTable, make: Callable[[Array], RowStatistic], *, each_alone: bool) -> Summed:
    """What blocks add up to.

    Columns whose squares over- or underflow are brought in range by powers of two, which takes one
    more pass, where each column is read alone; elsewhere those that overflow are refused.
    """
    shift = table.shift()
    found = table.reduce(make(shift))
    told = table.survey
    exponent = np.frexp(told.size)[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if each_alone and exponent.any():
        shift = np.ldexp(shift, -exponent)
        found = table.reduce(Ranged(make(shift), exponent))
        low, high = np.ldexp(told.low, -exponent), np.ldexp(told.high, -exponent)
        return Summed(found, shift, told._replace(low=low, high=high), exponent)
    if (far := exponent > 0).any():
        j = int(far.argmax())
        column = str(j) if table.names is None else repr(table.names[j])
        raise InvalidTable(
            f"{table.name} squares the columns, and column {column} reaches {told.size[j]:.3g}, "
            "too far to be squared. Scale it, as a search does with standardize=True."
        )
    return Summed(found, shift, told, np.zeros_like(exponent))


def class_moments_of_blocks(table: BlockTable) -> ClassMoments:
    """Mean and variance of each column in each class, from one pass over blocks of rows."""
    make = partial(ShiftedSums, labels=table.labels, products="columns")
    (counts, sums, squares), shift, told, _ = summed(table, make, each_alone=True)
    means = sums / counts[:, None]
    variances = np.maximum(squares / counts[:, None] - means**2, 0.0)
    overall = sums.sum(axis=0) / counts.sum()
    total = counts @ (variances + (means - overall) ** 2) / counts.sum()
    by, size = Scale.of(table.standardize, told, shift + overall, total)
    return ClassMoments(counts, means / by, variances / by**2, overall / by, size)


def target_moments_of_blocks(table: BlockTable) -> TargetMoments:
    """Products of the columns with a real target, from one pass over blocks of rows."""
    values, n_rows = table.labels.values, table.shape[0]
    middle = float(values[len(values) // 2])
    found, shift, told, _ = summed(table, partial(TargetSums, target_shift=middle), each_alone=True)
    if not (np.isfinite(found).all() and found[1, -1] > TINY):
        size = table.source.reduce(TargetSize(), target_only=True)
        power = int(np.frexp(size)[1])
        near = partial(
            TargetSums, target_shift=float(np.ldexp(middle, -power)), target_exponent=power
        )
        found, shift, told, _ = summed(table, near, each_alone=True)
    sums, squares, products = found
    squares = np.maximum(squares - sums**2 / n_rows, 0.0)
    products = products - sums * sums[-1] / n_rows
    mean, variance = shift + sums[:-1] / n_rows, squares[:-1] / n_rows
    by, size = Scale.of(table.standardize, told, mean, variance)
    return TargetMoments(n_rows, products[:-1] / by, squares[:-1] / by**2, squares[-1], size)


class SummedSpread:
    """The spread of a table in blocks of rows, from one pass.

    Parameters
    ----------
    table : BlockTable
    products : {"columns", "total", "classes"}
        What is needed: ``variances``, ``within`` or ``covariances``.
    """

    def __init__(self, table: BlockTable, products: str):
        make = partial(ShiftedSums, labels=table.labels, products=products)
        added, shift, told, _ = summed(table, make, each_alone=table.standardize)
        self.counts, sums, found = added
        n_rows = self.counts.sum()
        self.priors = self.counts / n_rows
        means = sums / self.counts[:, None]
        overall = sums.sum(axis=0) / n_rows
        if products == "columns":
            own = np.maximum(found / self.counts[:, None] - means**2, 0.0)
            variance = self.priors @ own
        elif products == "total":
            own = mirrored(found) / n_rows - (means.T * self.priors) @ means
            variance = own.diagonal()
        else:
            own = np.array([mirrored(one) for one in found]) / self.counts[:, None, None]
            own -= means[:, :, None] * means[:, None, :]
            variance = np.einsum("k,kjj->j", self.priors, own)
        variance = np.maximum(variance + self.priors @ (means - overall) ** 2, 0.0)
        by, self.size = Scale.of(table.standardize, told, shift + overall, variance)
        self.means = (means - overall) / by
        self._own: Array = own / by**2 if products == "columns" else own / by / by[:, None]

    def variances(self) -> Array:
        """Variance of each column in each class."""
        return self._own

    def within(self, ridge: float) -> Array:
        """Covariance within classes."""
        within: Array = with_ridge(self._own[None].copy(), np.ones(1), ridge)[0]
        return within

    def covariances(self, ridge: float) -> Array:
        """Covariance in each class."""
        return with_ridge(self._own.copy(), self.priors, ridge)


def mirrored(upper: Array) -> Array:
    """A symmetric matrix from its upper half."""
    return np.triu(upper) + np.triu(upper, 1).T

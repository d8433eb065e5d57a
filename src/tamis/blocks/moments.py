"""Moments of columns in classes and with a real target, of any table.

A table held at once is centred on its means. Row blocks are all
shifted by one vector near the mean, and plain sums are added: they lose no digits to a large mean,
and any cut into blocks gives the same to about 1e-14.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from tamis import _sparse
from tamis._arrays import FARTHEST, Array, class_codes, in_range
from tamis._sparse import is_sparse
from tamis.blocks.column_summary import Surveyed
from tamis.blocks.labels import Labels
from tamis.blocks.source import OfChangedBlocks, RowBlock, RowStatistic
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


class FoldRule(Protocol):
    """In which fold each row is left out."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""

    def of(self, start: int, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The folds of rows that follow each other, of given classes."""


class GroupSums(NamedTuple):
    """What shifted rows add up to, by group."""

    counts: NDArray[np.int64]  # (groups,)
    sums: Array  # (groups, columns)
    products: Array  # see ShiftedSums


class ShiftedSums(RowStatistic):
    """Counts, sums and products of shifted columns, by group of rows.

    The groups are the classes or, with a rule of folds, the classes in the first fold, then those
    in the second.

    Parameters
    ----------
    shift : array of shape (n_columns,)
    labels : Labels
        The classes.
    n_matrices : int
        0 is squares of each column in each group, (groups, columns). Else products of all pairs of
        columns, (n_matrices, columns, columns), of which the upper half is filled: the groups share
        the matrices evenly, in their order.
    rule : FoldRule or None, default=None
    """

    def __init__(self, shift: Array, labels: Labels, n_matrices: int, rule: FoldRule | None = None):
        self.shift, self.labels, self.n_matrices, self.rule = shift, labels, n_matrices, rule
        self.n_groups = len(labels.values) * (1 if rule is None else rule.n_folds)
        n_columns = len(shift)
        self._shape = (
            (n_matrices, n_columns, n_columns) if n_matrices else (self.n_groups, n_columns)
        )
        self.is_small = int(np.prod(self._shape)) <= SMALL

    def empty(self) -> Any:
        # each matrix column-major, as it is added to in place
        products = np.zeros(self._shape).transpose(0, *range(len(self._shape) - 1, 0, -1))
        sums = np.zeros((self.n_groups, len(self.shift)))
        return GroupSums(np.zeros(self.n_groups, dtype=np.int64), sums, products)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        codes = self.labels.codes(block.y)
        if self.rule is not None:
            codes = self.rule.of(block.start, codes) * len(self.labels.values) + codes
        state.counts[:] += np.bincount(codes, minlength=self.n_groups)
        matrix = codes * self.n_matrices // self.n_groups
        order = np.argsort(matrix, kind="stable") if self.n_matrices > 1 else None
        for start in range(0, len(codes), AT_ONCE):
            rows: Any = slice(start, start + AT_ONCE)
            if order is not None:
                rows = _span(order[rows])
            with np.errstate(over="ignore", invalid="ignore"):  # refused once the range is known
                Z = np.subtract(block.X[rows], self.shift, order="F", dtype=float)
                self._add(state, Z, codes[rows], matrix[rows])
        return state

    def _add(self, state: Any, Z: Array, codes: NDArray[Any], matrix: NDArray[Any]) -> None:
        member = (np.arange(self.n_groups)[:, None] == codes).astype(float)
        state.sums[:] += member @ Z
        if not self.n_matrices:
            state.products[:] += member @ Z**2
            return
        for m in np.unique(matrix):  # in which the rows are sorted
            first, last = np.searchsorted(matrix, [m, m + 1])
            dsyrk(1.0, Z[first:last], 1.0, state.products[m], trans=1, overwrite_c=1)


def _span(rows: NDArray[np.intp]) -> Any:
    """The rows as a slice where they follow each other, which copies nothing."""
    return slice(rows[0], rows[-1] + 1) if (np.diff(rows) == 1).all() else rows


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

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        y = np.ldexp(block.y.astype(float), -self.target_exponent) - self.target_shift
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            Z = np.empty((len(y[rows]), state.shape[1]), order="F")
            with np.errstate(over="ignore", invalid="ignore"):  # refused once the range is known
                np.subtract(block.X[rows], self.shift, out=Z[:, :-1], dtype=float)
                Z[:, -1] = y[rows]
                state += [Z.sum(axis=0), np.einsum("ij,ij->j", Z, Z), y[rows] @ Z]
        return state


class TargetSize(RowStatistic):
    """The greatest absolute value of a real target."""

    def empty(self) -> Any:
        return 0.0

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        return max(state, float(np.abs(block.y.astype(float)).max(initial=0.0)))

    def merge(self, state: Any, other: Any) -> Any:
        return max(state, other)


def scale_columns(exponent: NDArray[Any], block: RowBlock) -> RowBlock:
    """The columns of a block divided by powers of two."""
    return block._replace(X=np.ldexp(block.X.astype(float), -exponent))


class Summed(NamedTuple):
    """What blocks add up to, and how the columns were taken: divided by powers of two, shifted."""

    found: Any
    shift: Array
    told: Surveyed  # of the columns as they were taken
    exponent: NDArray[Any]


def sum_blocks(
    table: BlockTable, make: Callable[[Array], RowStatistic], *, each_alone: bool
) -> Summed:
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
        found = table.reduce(OfChangedBlocks(make(shift), partial(scale_columns, exponent)))
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


def _scale(standardize: bool, told: Surveyed, mean: Array, variance: Array) -> tuple[Array, Array]:
    """What columns are divided by, infinity for those that do not vary; and their sizes then."""
    if not standardize:
        return np.ones(len(mean)), told.size
    deviation = np.sqrt(variance)
    constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
    deviation = np.where(constant | (told.low == told.high), np.inf, deviation)
    return deviation, np.maximum(told.high - mean, mean - told.low) / deviation


class ClassMoments:
    """Counts and means of classes, and how the columns vary inside them.

    Attributes
    ----------
    counts, priors : array of shape (n_classes,)
    means : array of shape (n_classes, n_columns)
        Up to one constant for each column.
    size : array of shape (n_columns,)
        The greatest absolute value.
    rows : tuple of table and codes, or None
        The table, if it is held at once.
    """

    def __init__(
        self, counts: NDArray[Any], means: Array, own: Array, size: Array, rows: Any = None
    ):
        self.counts, self.means, self.size, self.rows = counts, means, size, rows
        self.priors = counts / counts.sum()
        self._own = own  # variances (classes, columns), or one or more covariances

    @classmethod
    def of(cls, X: Array, y: NDArray[Any], n_matrices: int | None = 0) -> Self:
        """Those of a table held at once, in range; one covariance a class where the number is None.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        n_matrices : int or None, default=0
            0 is variances, 1 the covariance within classes, None that in each class.
        """
        codes = class_codes(y)[1]
        counts = np.bincount(codes)
        if is_sparse(X):
            low, high = _sparse.extremes(X)
            return cls(counts, *_sparse.class_moments(X, codes), np.maximum(high, -low))
        groups = [X[codes == k] for k in range(len(counts))]
        means, size = np.array([g.mean(axis=0) for g in groups]), np.abs(X).max(axis=0)
        if n_matrices == 0:  # numpy's own is faster where nothing is multiplied
            return cls(counts, means, np.array([g.var(axis=0) for g in groups]), size)
        own = np.zeros((n_matrices or len(counts), X.shape[1], X.shape[1]))
        for k, group in enumerate(groups):
            centred = group - means[k]
            own[k % len(own)] += centred.T @ centred
        own /= len(y) if n_matrices else counts[:, None, None]
        return cls(counts, means, own, size, (X, codes))

    @classmethod
    def of_blocks(
        cls, table: BlockTable, n_matrices: int | None = 0, *, each_alone: bool = True
    ) -> Self:
        """Those of row blocks, from one pass.

        Parameters
        ----------
        table : BlockTable
        n_matrices : int or None, default=0
            As in :meth:`of`.
        each_alone : bool, default=True
            Whether nothing depends on the scale of a column beside the others.
        """
        n_matrices = len(table.labels.values) if n_matrices is None else n_matrices
        make = partial(ShiftedSums, labels=table.labels, n_matrices=n_matrices)
        sums, shift, told, _ = sum_blocks(table, make, each_alone=each_alone)
        means, own = _centred(sums)
        found = cls(sums.counts, means, own, told.size)
        overall = found.priors @ means
        variance = np.maximum(found._within_variance() + found.priors @ (means - overall) ** 2, 0.0)
        by, size = _scale(table.standardize, told, shift + overall, variance)
        own = own / by / by[:, None] if own.ndim == 3 else own / by**2
        return cls(sums.counts, (means - overall) / by, own, size)

    def variances(self) -> Array:
        """Variance of each column in each class."""
        return self._own

    def _within_variance(self) -> Array:
        if self._own.ndim == 2:
            return np.asarray(self.priors @ self._own)
        return np.asarray(self._weights @ np.diagonal(self._own, axis1=1, axis2=2))

    @property
    def _weights(self) -> Array:
        """Shares of the covariances."""
        return self.priors if len(self._own) == len(self.priors) else np.ones(1)

    def within(self, ridge: float) -> Array:
        """Covariance within classes, with a ridge in units of its mean variance."""
        return np.asarray(self.covariances(ridge)[0])

    def covariances(self, ridge: float) -> Array:
        """Covariance in each class, with a ridge in units of the mean variance within classes."""
        added = ridge * self._within_variance().mean() * np.eye(self._own.shape[1])
        return self._own + added if ridge else self._own

    def scatters(self) -> tuple[Array, Array]:
        """Sum of squares of each column between and within the classes."""
        counts = self.counts[:, None]
        between = (counts * (self.means - self.priors @ self.means) ** 2).sum(axis=0)
        within = (counts * self.variances()).sum(axis=0)
        # what is rounding of a large mean must not pass for variation
        noise = self.counts.sum() * (10 * np.finfo(float).eps * self.size) ** 2
        return np.where(between <= noise, 0, between), np.where(within <= noise, 0, within)

    def explained(self) -> Array:
        """Share of each column's variance that the classes explain, in [0, 1]."""
        between, within = self.scatters()
        return ratio(between, between + within)


def _centred(sums: GroupSums) -> tuple[Array, Array]:
    """Means of groups less their shifts; and variances, or covariances, around them."""
    counts, totals, products = sums
    means = totals / counts[:, None]
    if products.ndim == 2:
        return means, np.maximum(products / counts[:, None] - means**2, 0.0)
    own = np.empty(products.shape)
    shares = np.split(counts, len(products))
    for k, (count, mean) in enumerate(zip(shares, np.split(means, len(products)), strict=True)):
        n_rows = count.sum()
        own[k] = mirrored(products[k] / n_rows)
        own[k] -= (mean.T * (count / n_rows)) @ mean
    return means, own


def mirrored(upper: Array) -> Array:
    """A symmetric matrix from its upper half."""
    both = upper + upper.T
    np.fill_diagonal(both, upper.diagonal())
    return both


def ratio(above: Array, below: Array) -> Array:
    """above / below, with 0/0 = 0 and x/0 = infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above == 0, 0.0, above / below)


class TargetMoments(NamedTuple):
    """Sums of centred products of each column with a real target, and of squares of both."""

    n_rows: int
    products: Array
    squares: Array
    target_square: float
    size: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any]) -> Self:
        """Those of a table held at once, in range."""
        y = in_range(y.astype(float)[:, None])[:, 0]
        if is_sparse(X):
            target, (low, high) = y - y.mean(), _sparse.extremes(X)
            products, squares = target @ X, _sparse.moments(X)[1]
            return cls(len(y), products, squares, (target**2).sum(), np.maximum(high, -low))
        summing = TargetSums(X.mean(axis=0), float(y.mean()))
        sums = summing.learn_block(summing.empty(), RowBlock(X, y, 0, "the table"))
        return cls._centred(sums, len(y), np.abs(X).max(axis=0))

    @classmethod
    def of_blocks(cls, table: BlockTable) -> Self:
        """Those of row blocks, from one pass."""
        values, n_rows = table.labels.values, table.shape[0]
        middle = float(values[len(values) // 2])
        make = partial(TargetSums, target_shift=middle)
        found, shift, told, _ = sum_blocks(table, make, each_alone=True)
        if not (np.isfinite(found).all() and found[1, -1] > TINY):
            power = int(np.frexp(table.source.reduce(TargetSize(), target_only=True))[1])
            near = float(np.ldexp(middle, -power))
            make = partial(TargetSums, target_shift=near, target_exponent=power)
            found, shift, told, _ = sum_blocks(table, make, each_alone=True)
        sums = cls._centred(found, n_rows, told.size)
        mean = shift + found[0, :-1] / n_rows
        by, size = _scale(table.standardize, told, mean, sums.squares / n_rows)
        return sums._replace(products=sums.products / by, squares=sums.squares / by**2, size=size)

    @classmethod
    def _centred(cls, found: Array, n_rows: int, size: Array) -> Self:
        sums, squares, products = found
        squares = np.maximum(squares - sums**2 / n_rows, 0.0)
        products = products - sums * sums[-1] / n_rows
        return cls(n_rows, products[:-1], squares[:-1], squares[-1], size)

    def explained(self) -> Array:
        """Share of each column's variance that the target explains, in [0, 1]."""
        norms = self.squares * self.target_square
        noise = (10 * np.finfo(float).eps * self.n_rows * self.size) ** 2
        norms[self.squares <= noise] = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.minimum(np.where(norms > 0, self.products**2 / norms, 0.0), 1.0)

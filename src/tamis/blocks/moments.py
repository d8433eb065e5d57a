"""Means, variances and covariances of columns, per class or with a numeric target.

They are computed for tables in memory and in row blocks. A table in memory is centred on its means.
In row blocks, the same vector near the mean is subtracted from every block before sums are added
up. A large mean therefore does not reduce the precision. The way in which rows are divided into
blocks changes the result only by about 1e-14.
"""

from collections.abc import Callable
from dataclasses import dataclass
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

#: Number of rows that are squared at a time. With a hundred columns these are three megabytes,
#: which stay in the CPU cache between the shift and the product.
AT_ONCE = 4096
#: Maximum number of entries in a state that is copied for every thread. A row block has the same
#: number of entries. Larger states would take more memory than the blocks of the threads.
SMALL = 1 << 22
#: Sum of squares of a target below which underflow may reduce the precision.
TINY = 2.0 ** (-2 * FARTHEST)


class FoldRule(Protocol):
    """Rule that assigns each row to the fold in which it is held out."""

    @property
    def n_folds(self) -> int:
        """Number of folds."""

    def of(self, start: int, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the folds of consecutive rows, given the first row number and the class codes."""


class GroupSums(NamedTuple):
    """Counts, sums and products of shifted rows for each group."""

    counts: NDArray[np.int64]  # (groups,)
    sums: Array  # (groups, columns)
    products: Array  # see ShiftedSums


class ShiftedSums(RowStatistic):
    """Statistic of the counts, sums and products of shifted columns for each group of rows.

    The groups are the classes. With folds, there is a group for each class in each fold: first the
    classes in the first fold, then the classes in the second, and so on.

    Parameters
    ----------
    shift : array of shape (n_columns,)
        Number that is subtracted from each column.
    labels : Labels
        The classes.
    n_matrices : int
        If 0, the squares of each column are summed for each group, with the shape (groups,
        columns). Otherwise the products of all pairs of columns are summed in the upper halves of
        matrices, with the shape (n_matrices, columns, columns). Each matrix is the sum over the
        same number of consecutive groups.
    rule : FoldRule or None, default=None
        The folds.
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
        # column-major, because BLAS adds to such matrices in place
        products = np.zeros(self._shape).transpose(0, *range(len(self._shape) - 1, 0, -1))
        sums = np.zeros((self.n_groups, len(self.shift)))
        return GroupSums(np.zeros(self.n_groups, dtype=np.int64), sums, products)

    def learn_block(self, state: Any, block: RowBlock) -> Any:
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
            # overflow is refused later, once the range is known
            with np.errstate(over="ignore", invalid="ignore"):
                Z = np.subtract(block.X[rows], self.shift, order="F", dtype=float)
                self._add(state, Z, codes[rows], matrix[rows])
        return state

    def _add(self, state: Any, Z: Array, codes: NDArray[Any], matrix: NDArray[Any]) -> None:
        member = (np.arange(self.n_groups)[:, None] == codes).astype(float)
        state.sums[:] += member @ Z
        if not self.n_matrices:
            state.products[:] += member @ Z**2
            return
        for m in np.unique(matrix):  # rows are sorted by matrix
            first, last = np.searchsorted(matrix, [m, m + 1])
            dsyrk(1.0, Z[first:last], 1.0, state.products[m], trans=1, overwrite_c=1)


def _span(rows: NDArray[np.intp]) -> Any:
    """Return row numbers as a slice if they are consecutive, which avoids a copy."""
    return slice(rows[0], rows[-1] + 1) if (np.diff(rows) == 1).all() else rows


@dataclass(eq=False, repr=False)
class TargetSums(RowStatistic):
    """Sums, squares and products of shifted columns and a shifted numeric target.

    Parameters
    ----------
    shift : array of shape (n_columns,)
        Number that is subtracted from each column.
    target_shift : float
        Shift that is subtracted from the target after the division by a power of 2.
    target_exponent : int, default=0
        The target is divided by 2 to this power.
    """

    is_small = True

    shift: Array
    target_shift: float
    target_exponent: int = 0

    def empty(self) -> Any:
        # the rows are sums, squares and products with the target; the last column is the target
        return np.zeros((3, len(self.shift) + 1))

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        y = np.ldexp(block.y.astype(float), -self.target_exponent) - self.target_shift
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            Z = np.empty((len(y[rows]), state.shape[1]), order="F")
            # overflow is refused later, once the range is known
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(block.X[rows], self.shift, out=Z[:, :-1], dtype=float)
                Z[:, -1] = y[rows]
                state += [Z.sum(axis=0), np.einsum("ij,ij->j", Z, Z), y[rows] @ Z]
        return state


class TargetSize(RowStatistic):
    """Largest absolute value of a numeric target."""

    def empty(self) -> Any:
        return 0.0

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        return max(state, float(np.abs(block.y.astype(float)).max(initial=0.0)))

    def merge(self, state: Any, other: Any) -> Any:
        return max(state, other)


def scale_columns(exponent: NDArray[Any], block: RowBlock) -> RowBlock:
    """Divide the columns of a block by powers of two."""
    return block._replace(X=np.ldexp(block.X.astype(float), -exponent))


class Summed(NamedTuple):
    """Result of a statistic over all blocks, with the shift and scale of the columns."""

    found: Any
    shift: Array
    survey: Surveyed  # summary of the scaled columns
    exponent: NDArray[Any]


def sum_blocks(
    table: BlockTable, make: Callable[[Array], RowStatistic], *, each_alone: bool
) -> Summed:
    """Compute a statistic of shifted columns.

    If ``each_alone`` is true, columns whose squares overflow or underflow are divided by powers of
    two in a second pass. Otherwise columns that overflow are refused.
    """
    shift = table.shift()
    found = table.reduce(make(shift))
    survey = table.survey
    exponent = np.frexp(survey.size)[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if each_alone and exponent.any():
        shift = np.ldexp(shift, -exponent)
        found = table.reduce(OfChangedBlocks(make(shift), partial(scale_columns, exponent)))
        low, high = np.ldexp(survey.low, -exponent), np.ldexp(survey.high, -exponent)
        return Summed(found, shift, survey._replace(low=low, high=high), exponent)
    if (far := exponent > 0).any():
        j = int(far.argmax())
        column = str(j) if table.names is None else repr(table.names[j])
        raise InvalidTable(
            f"{table.name} squares the columns, but column {column} reaches {survey.size[j]:.3g}, "
            "which is too large to be squared. Scale it, for example by standardize=True."
        )
    return Summed(found, shift, survey, np.zeros_like(exponent))


def _scale(
    standardize: bool, survey: Surveyed, mean: Array, variance: Array
) -> tuple[Array, Array]:
    """Return the divisor of each column (infinity if constant), and its scaled largest value."""
    if not standardize:
        return np.ones(len(mean)), survey.size
    deviation = np.sqrt(variance)
    constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
    deviation = np.where(constant | (survey.low == survey.high), np.inf, deviation)
    return deviation, np.maximum(survey.high - mean, mean - survey.low) / deviation


class ClassMoments:
    """Counts, means, and variances or covariances of the columns in each class.

    Attributes
    ----------
    counts, priors : array of shape (n_classes,)
        Number and share of the rows of each class.
    means : array of shape (n_classes, n_columns)
        Class means, up to a constant per column.
    size : array of shape (n_columns,)
        Largest absolute value of each column.
    rows : tuple of table and codes, or None
        The table and the class codes of its rows if the table is in memory, else None.
    """

    def __init__(
        self, counts: NDArray[Any], means: Array, own: Array, size: Array, rows: Any = None
    ):
        self.counts, self.means, self.size, self.rows = counts, means, size, rows
        self.priors = counts / counts.sum()
        self._own = own  # variances (classes, columns), or covariance matrices

    @classmethod
    def of(cls, X: Array, y: NDArray[Any], n_matrices: int | None = 0) -> Self:
        """Compute the moments of a table in memory, whose squares must not overflow.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        n_matrices : int or None, default=0
            0 computes variances, 1 the pooled within-class covariance matrix, None a covariance
            matrix for each class.
        """
        codes = class_codes(y)[1]
        counts = np.bincount(codes)
        if is_sparse(X):
            low, high = _sparse.extremes(X)
            return cls(counts, *_sparse.class_moments(X, codes), np.maximum(high, -low))
        groups = [X[codes == k] for k in range(len(counts))]
        means, size = np.array([g.mean(axis=0) for g in groups]), np.abs(X).max(axis=0)
        if n_matrices == 0:  # numpy's variance is faster
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
        """Compute the moments of row blocks in one pass, or two if columns have to be scaled.

        Parameters
        ----------
        table : BlockTable
        n_matrices : int or None, default=0
            As in :meth:`of`.
        each_alone : bool, default=True
            Whether each column may be scaled independently of the others, to avoid overflow.
        """
        n_matrices = len(table.labels.values) if n_matrices is None else n_matrices
        make = partial(ShiftedSums, labels=table.labels, n_matrices=n_matrices)
        sums, shift, survey, _ = sum_blocks(table, make, each_alone=each_alone)
        means, own = _centre(sums)
        found = cls(sums.counts, means, own, survey.size)
        overall = found.priors @ means
        variance = np.maximum(found._within_variance() + found.priors @ (means - overall) ** 2, 0.0)
        by, size = _scale(table.standardize, survey, shift + overall, variance)
        own = own / by / by[:, None] if own.ndim == 3 else own / by**2
        return cls(sums.counts, (means - overall) / by, own, size)

    def variances(self) -> Array:
        """Return the variance of each column in each class."""
        return self._own

    def _within_variance(self) -> Array:
        own = self._own if self._own.ndim == 2 else np.diagonal(self._own, axis1=1, axis2=2)
        return np.asarray(self.priors @ own if len(own) == len(self.priors) else own[0])

    def within(self, ridge: float) -> Array:
        """Return the within-class covariance matrix.

        ``ridge`` times its mean variance is added to the diagonal.
        """
        return np.asarray(self.covariances(ridge)[0])

    def covariances(self, ridge: float) -> Array:
        """Return the covariance matrix of each class.

        ``ridge`` times the mean variance is added to the diagonal.
        """
        added = ridge * self._within_variance().mean() * np.eye(self._own.shape[1])
        return self._own + added if ridge else self._own

    def scatters(self) -> tuple[Array, Array]:
        """Return the sums of squares of each column between and within the classes."""
        counts = self.counts[:, None]
        between = (counts * (self.means - self.priors @ self.means) ** 2).sum(axis=0)
        within = (counts * self.variances()).sum(axis=0)
        # the rounding of a large mean must not be treated as variation
        noise = self.counts.sum() * (10 * np.finfo(float).eps * self.size) ** 2
        return np.where(between <= noise, 0, between), np.where(within <= noise, 0, within)

    def explained(self) -> Array:
        """Return the share of each column's variance that the classes explain, in [0, 1]."""
        between, within = self.scatters()
        return ratio(between, between + within)


def _centre(sums: GroupSums) -> tuple[Array, Array]:
    """Return the means of the shifted rows in each group, and the variances or covariances."""
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
    """Return a symmetric matrix from its upper half."""
    both = upper + upper.T
    np.fill_diagonal(both, upper.diagonal())
    return both


def ratio(above: Array, below: Array) -> Array:
    """Return above / below, with 0/0 = 0 and x/0 = infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above == 0, 0.0, above / below)


class TargetMoments(NamedTuple):
    """Sums of centred products of each column with a numeric target, and their sums of squares."""

    n_rows: int
    products: Array
    squares: Array
    target_square: float
    size: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any]) -> Self:
        """Compute the moments of a table in memory, whose squares must not overflow."""
        y = in_range(y.astype(float)[:, None])[:, 0]
        if is_sparse(X):
            target, (low, high) = y - y.mean(), _sparse.extremes(X)
            products, squares = target @ X, _sparse.moments(X)[1]
            return cls(len(y), products, squares, (target**2).sum(), np.maximum(high, -low))
        summing = TargetSums(X.mean(axis=0), float(y.mean()))
        sums = summing.learn_block(summing.empty(), RowBlock(X, y, 0, "the table"))
        return cls._centre(sums, len(y), np.abs(X).max(axis=0))

    @classmethod
    def of_blocks(cls, table: BlockTable) -> Self:
        """Compute the moments of row blocks in one pass, or two if columns have to be scaled."""
        values, n_rows = table.labels.values, table.shape[0]
        middle = float(values[len(values) // 2])
        make = partial(TargetSums, target_shift=middle)
        found, shift, survey, _ = sum_blocks(table, make, each_alone=True)
        if not (np.isfinite(found).all() and found[1, -1] > TINY):
            power = int(np.frexp(table.source.reduce(TargetSize(), target_only=True))[1])
            near = float(np.ldexp(middle, -power))
            make = partial(TargetSums, target_shift=near, target_exponent=power)
            found, shift, survey, _ = sum_blocks(table, make, each_alone=True)
        sums = cls._centre(found, n_rows, survey.size)
        mean = shift + found[0, :-1] / n_rows
        by, size = _scale(table.standardize, survey, mean, sums.squares / n_rows)
        return sums._replace(products=sums.products / by, squares=sums.squares / by**2, size=size)

    @classmethod
    def _centre(cls, found: Array, n_rows: int, size: Array) -> Self:
        sums, squares, products = found
        squares = np.maximum(squares - sums**2 / n_rows, 0.0)
        products = products - sums * sums[-1] / n_rows
        return cls(n_rows, products[:-1], squares[:-1], squares[-1], size)

    def explained(self) -> Array:
        """Return the share of each column's variance that the target explains, in [0, 1]."""
        norms = self.squares * self.target_square
        noise = (10 * np.finfo(float).eps * self.n_rows * self.size) ** 2
        norms[self.squares <= noise] = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.minimum(np.where(norms > 0, self.products**2 / norms, 0.0), 1.0)

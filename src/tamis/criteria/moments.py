"""Moments of columns in classes: from a table held at once, or added up over blocks of rows.

Criteria compute scores from :class:`ClassMoments`, :class:`Spread` or :class:`TargetMoments`, and
do not see where these come from. Over blocks all rows are shifted by one vector near the mean, and
plain sums are added: they lose no digits to a large mean, and any cut into blocks gives the same to
about 1e-14.
"""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from tamis import _sparse
from tamis._arrays import FARTHEST, Array, class_codes, in_range
from tamis._sparse import is_sparse
from tamis.contract import RowBlock, RowStatistic, TableInParts
from tamis.contract.parted import Labels
from tamis.exceptions import InvalidTable

#: Rows that are squared at a time: of a hundred columns three megabytes, which stay in the cache
#: between the shift and the product.
AT_ONCE = 4096


class ClassMoments(NamedTuple):
    """Counts of the classes, and mean and variance of each column in each.

    ``means`` and ``overall``, the mean of all rows, are up to one constant for each column;
    ``size`` is the greatest absolute value.
    """

    counts: NDArray[np.intp]
    means: Array
    variances: Array
    overall: Array
    size: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any]) -> Self:
        """Those of a table held at once."""
        X, codes = in_range(X), class_codes(y)[1]
        means, variances = class_moments(X, codes)
        overall = _sparse.moments(X)[0] if is_sparse(X) else X.mean(axis=0)
        return cls(np.bincount(codes), means, variances, overall, sizes(X))

    def scatters(self) -> tuple[Array, Array]:
        """Sum of squares of each column between and within the classes."""
        counts = self.counts[:, None]
        between = (counts * (self.means - self.overall) ** 2).sum(axis=0)
        within = (counts * self.variances).sum(axis=0)
        # what is rounding of a large mean must not pass for variation
        noise = self.counts.sum() * (10 * np.finfo(float).eps * self.size) ** 2
        return np.where(between <= noise, 0, between), np.where(within <= noise, 0, within)


def class_moments(X: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Mean and variance of each column in each class, of columns in range."""
    if is_sparse(X):
        return _sparse.class_moments(X, codes)
    groups = [X[codes == k] for k in range(codes.max() + 1)]
    return np.array([g.mean(axis=0) for g in groups]), np.array([g.var(axis=0) for g in groups])


def sizes(X: Array) -> Array:
    """The greatest absolute value of each column."""
    if is_sparse(X):
        low, high = _sparse.extremes(X)
        return np.maximum(high, -low)
    return np.asarray(np.abs(X).max(axis=0))


class TargetMoments(NamedTuple):
    """Sums of centred products of each column with a real target, and of squares of both."""

    n_rows: int
    products: Array
    squares: Array
    target_square: float
    size: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any]) -> Self:
        """Those of a table held at once."""
        X, y = in_range(X), in_range(y.astype(float)[:, None])[:, 0]
        target = y - y.mean()
        if is_sparse(X):
            products, squares = target @ X, _sparse.moments(X)[1]
        else:
            centred = X - X.mean(axis=0)
            products, squares = target @ centred, (centred**2).sum(axis=0)
        return cls(len(y), products, squares, (target**2).sum(), sizes(X))

    def explained(self) -> Array:
        """Share of each column's variance that the target explains, in [0, 1]."""
        norms = self.squares * self.target_square
        noise = (10 * np.finfo(float).eps * self.n_rows * self.size) ** 2
        norms[self.squares <= noise] = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.minimum(np.where(norms > 0, self.products**2 / norms, 0.0), 1.0)


class Spread(Protocol):
    """Priors and means of classes, and how the columns vary together inside them."""

    counts: NDArray[np.intp]
    priors: Array
    means: Array
    size: Array

    def variances(self) -> Array:
        """Variance of each column in each class."""

    def within(self, ridge: float) -> Array:
        """Covariance within classes, with a ridge in units of its mean variance."""

    def covariances(self, ridge: float) -> Array:
        """Covariance in each class, with a ridge in units of the mean variance within classes."""


class HeldSpread:
    """The spread of a table held at once, in range.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    codes : array of int
        Class of each row, from 0.
    """

    def __init__(self, X: Array, codes: NDArray[np.intp]):
        self.X, self.codes = X, codes
        self.counts = np.bincount(codes)
        self.priors = self.counts / len(codes)
        self.means = np.array([X[codes == k].mean(axis=0) for k in range(len(self.counts))])
        self.size = np.maximum(X.max(axis=0), -X.min(axis=0))

    def variances(self) -> Array:
        """Variance of each column in each class."""
        return np.array([self.X[self.codes == k].var(axis=0) for k in range(len(self.counts))])

    def within(self, ridge: float) -> Array:
        """Covariance within classes."""
        return np.tensordot(self.priors, self.covariances(ridge), axes=1)

    def covariances(self, ridge: float) -> Array:
        """Covariance in each class."""
        found = np.empty((len(self.means), self.X.shape[1], self.X.shape[1]))
        for k, mean in enumerate(self.means):
            centred = self.X[self.codes == k] - mean
            found[k] = centred.T @ centred
            found[k] /= len(centred)
        return with_ridge(found, self.priors, ridge)


def with_ridge(covariances: Array, priors: Array, ridge: float) -> Array:
    """The covariances, changed: a ridge stands on their diagonals."""
    diagonals = np.einsum("kjj->kj", covariances)
    diagonals += ridge * (priors @ diagonals).mean()
    return covariances


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

    def empty(self) -> Any:
        c, d = len(self.labels.values), len(self.shift)
        shape = {"columns": (c, d), "total": (d, d), "classes": (c, d, d)}[self.products]
        products = np.zeros(shape)
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
    """

    def __init__(self, shift: Array, target_shift: float):
        self.shift, self.target_shift = shift, target_shift

    def empty(self) -> Any:
        # rows: sums, squares, products with the target; last column: the target itself
        return np.zeros((3, len(self.shift) + 1))

    def learn_part(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
        y = block.y.astype(float) - self.target_shift
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
    def of(cls, table: TableInParts, mean: Array, variance: Array) -> Self:
        """The scale on which a table is taken: its own, or that of standardised columns."""
        told = table.survey
        if not table.standardize:
            return cls(np.ones(len(mean)), told.size)
        deviation = np.sqrt(variance)
        constant = deviation <= 10 * np.finfo(float).eps * np.abs(mean)
        deviation = np.where(constant | (told.low == told.high), np.inf, deviation)
        return cls(deviation, np.maximum(told.high - mean, mean - told.low) / deviation)


def _summed(table: TableInParts, statistic: RowStatistic) -> Any:
    """What blocks add up to; columns whose squares overflow are refused."""
    found, told = table.reduce(statistic), table.survey
    far = np.frexp(told.size)[1] > FARTHEST
    if far.any():
        j = int(far.argmax())
        column = str(j) if table.names is None else repr(table.names[j])
        raise InvalidTable(
            f"{table.name} squares the columns, and column {column} reaches {told.size[j]:.3g}, "
            "too far to be squared. Scale it."
        )
    return found


def class_moments_in_parts(table: TableInParts) -> ClassMoments:
    """Mean and variance of each column in each class, from one pass over blocks of rows."""
    shift = table.shift()
    counts, sums, squares = _summed(table, ShiftedSums(shift, table.labels, "columns"))
    means = sums / counts[:, None]
    variances = np.maximum(squares / counts[:, None] - means**2, 0.0)
    overall = sums.sum(axis=0) / counts.sum()
    total = counts @ (variances + (means - overall) ** 2) / counts.sum()
    by, size = Scale.of(table, shift + overall, total)
    return ClassMoments(counts, means / by, variances / by**2, overall / by, size)


def target_moments_in_parts(table: TableInParts) -> TargetMoments:
    """Products of the columns with a real target, from one pass over blocks of rows."""
    shift, values = table.shift(), table.labels.values
    middle = float(values[len(values) // 2])
    sums, squares, products = _summed(table, TargetSums(shift, middle))
    n_rows = table.shape[0]
    squares = np.maximum(squares - sums**2 / n_rows, 0.0)
    products = products - sums * sums[-1] / n_rows
    by, size = Scale.of(table, shift + sums[:-1] / n_rows, squares[:-1] / n_rows)
    return TargetMoments(n_rows, products[:-1] / by, squares[:-1] / by**2, squares[-1], size)


class SummedSpread:
    """The spread of a table in blocks of rows, from one pass.

    Parameters
    ----------
    table : TableInParts
    products : {"columns", "total", "classes"}
        What is needed: ``variances``, ``within`` or ``covariances``.
    """

    def __init__(self, table: TableInParts, products: str):
        shift = table.shift()
        self.counts, sums, found = _summed(table, ShiftedSums(shift, table.labels, products))
        n_rows = self.counts.sum()
        self.priors = self.counts / n_rows
        means = sums / self.counts[:, None]
        overall = sums.sum(axis=0) / n_rows
        if products == "columns":
            own = np.maximum(found / self.counts[:, None] - means**2, 0.0)
            variance = self.priors @ own
        elif products == "total":
            own = _mirrored(found) / n_rows - (means.T * self.priors) @ means
            variance = own.diagonal()
        else:
            own = np.array([_mirrored(one) for one in found]) / self.counts[:, None, None]
            own -= means[:, :, None] * means[:, None, :]
            variance = np.einsum("k,kjj->j", self.priors, own)
        variance = np.maximum(variance + self.priors @ (means - overall) ** 2, 0.0)
        by, self.size = Scale.of(table, shift + overall, variance)
        self.means = (means - overall) / by
        self._own = own / by**2 if products == "columns" else own / by / by[:, None]

    def variances(self) -> Array:
        """Variance of each column in each class."""
        return self._own

    def within(self, ridge: float) -> Array:
        """Covariance within classes."""
        return with_ridge(self._own[None].copy(), np.ones(1), ridge)[0]

    def covariances(self, ridge: float) -> Array:
        """Covariance in each class."""
        return with_ridge(self._own.copy(), self.priors, ridge)


def _mirrored(upper: Array) -> Array:
    """A symmetric matrix from its upper half."""
    return np.triu(upper) + np.triu(upper, 1).T

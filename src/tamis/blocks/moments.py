"""Moments of columns in classes, from a table held at once.

Criteria compute scores from :class:`ClassMoments`, :class:`Spread` or :class:`TargetMoments`, and
do not see where these come from: :mod:`tamis.blocks.block_moments` adds them up over blocks.
"""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tamis import _sparse
from tamis._arrays import Array, class_codes, in_range
from tamis._sparse import is_sparse


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

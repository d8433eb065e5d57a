"""Updates of kernel matrices when a column is removed or scaled.

Let K be the kernel matrix of the rows of X, and x a column of X. K₋ is the kernel matrix after this
column is removed. K' is the derivative of K with respect to v at v = 1, if the column is multiplied
by v. The symbol ∘ denotes the product entry by entry:

* Gaussian kernel: K₋ = K ∘ exp(γ (xᵢ - xₖ)²), K' = -2γ (xᵢ - xₖ)² ∘ K;
* polynomial kernel of degree p (including the linear kernel), with B = γ XX' + r, K = Bᵖ:
  K₋ = (B - γ xx')ᵖ, K' = 2pγ xx' ∘ Bᵖ⁻¹.

For N rows, computing a quadratic form β'K₋β directly takes N² exponentials for each column. The
form can also be written as a sum of forms u'Ku. This sum takes a few matrix products for all
columns together. For Gaussian kernels, :mod:`tamis.density.series` computes the sum. For polynomial
kernels, the sum is the binomial expansion of (B - γ xx')ᵖ.
"""

from copy import copy
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances

from tamis._arrays import Array
from tamis._namespace import is_elsewhere, move, placed, rows_taken
from tamis.density.series.pairs import pair_changes
from tamis.density.series.table import Alteration, ScaledColumns
from tamis.svm.kernels import Kernel, power


class ColumnKernel:
    """Kernel matrix of the rows of a table, with updates for removed or scaled columns.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, linear or polynomial kernel.
    X : array of shape (n_rows, n_columns)
        The table. For an array on a GPU, only :meth:`lost` with a Gaussian kernel is supported.

    Examples
    --------
    >>> rows = ColumnKernel(Kernel("linear"), np.array([[1.0, 2.0], [3.0, 1.0]]))
    >>> rows.K
    array([[ 5.,  5.],
           [ 5., 10.]])
    >>> rows.without(1)
    array([[1., 3.],
           [3., 9.]])
    >>> rows.lost(np.array([1.0, -1.0]))  # of the squared distance, 5
    array([4., 1.])
    """

    def __init__(self, kernel: Kernel, X: Any):
        self.kernel, self.X = kernel, X
        if kernel.name == "rbf" and X.shape[0] and not is_elsewhere(X):
            # a shift does not change distances, and values near 0 lose fewer digits
            self.X = X - (X.max(axis=0) + X.min(axis=0)) / 2

    @cached_property
    def base(self) -> Array:
        """Squared distances between the rows (Gaussian kernel), or their inner products."""
        if self.kernel.name == "rbf" and len(self.X):
            return np.maximum(euclidean_distances(self.X, squared=True), 0)
        return self.X @ self.X.T

    @cached_property
    def K(self) -> Array:
        """The kernel matrix of all columns."""
        return self.kernel.values(self.base)

    @cached_property
    def slope(self) -> Array:
        """Derivative of K with respect to :attr:`base`, entry by entry."""
        if self.kernel.name == "rbf":
            return -self.kernel.gamma * self.K
        if self.kernel.name == "linear":
            return np.ones_like(self.base)
        gamma, degree = self.kernel.gamma, self.kernel.degree
        return degree * gamma * power(gamma * self.base + self.kernel.coef0, max(degree - 1, 0))

    def without(self, j: int | NDArray[np.intp], kernel: Kernel | None = None) -> Array:
        """Return the kernel matrix without column j, or without several columns.

        ``kernel`` may be a kernel of the same kind with different parameters.
        """
        X = self.X[:, np.atleast_1d(j)]
        if self.kernel.name == "rbf":
            base = cdist(X, X, "sqeuclidean")
            np.subtract(self.base, base, out=base)
            np.maximum(base, 0, out=base)
        else:
            base = self.base - X @ X.T
        return (kernel or self.kernel).values(base)

    def restricted(self, rows: NDArray[np.intp]) -> "ColumnKernel":
        """Return the kernel matrix of a subset of the rows, without computing its entries again."""
        part = copy(self)
        known = part.__dict__
        for name in ("K", "slope"):
            known.pop(name, None)
        part.X = rows_taken(self.X, rows) if is_elsewhere(self.X) else self.X[rows]
        if "base" in known:
            part.base = self.base[np.ix_(rows, rows)]
        return part

    def lost(self, beta: Array) -> Array:
        """Return β'Kβ - β'K₋β for each column, where K₋ is the kernel matrix without the column.

        The differences are computed without cancellation.
        """
        if not beta.any():
            return np.zeros(self.X.shape[1])
        part = self if beta.all() else self.restricted(np.flatnonzero(beta))
        beta = beta[beta != 0]
        if self.kernel.name == "linear":
            return np.square(beta @ part.X)
        return part._lost_gaussian(beta) if self.kernel.name == "rbf" else part._lost_poly(beta)

    def _lost_gaussian(self, beta: Array) -> Array:
        everything, table = np.arange(self.X.shape[1]), placed(self.X)
        beta, table = move(beta, table), ScaledColumns(table, self.kernel.gamma)
        removed = Alteration(everything, everything, -1)
        sums = pair_changes(table, removed, lambda i, k: beta[i][:, None] * beta[k][None, :])
        return -sums.changes

    def _lost_poly(self, beta: Array) -> Array:
        """Return the result of :meth:`lost` for a polynomial kernel of degree p.

        For a column x, it is -Σ_(q>0) C(p, q) (-γ)^q u_q'B^(p-q)u_q with u_q = β ∘ x^q, where
        C(p, q) is a binomial coefficient.
        """
        gamma, degree, coef0 = self.kernel.gamma, self.kernel.degree, self.kernel.coef0
        B = gamma * self.base + coef0
        u, lost = np.empty(self.X.shape, order="F"), np.zeros(self.X.shape[1])
        u[:] = beta[:, None]
        for q in range(1, degree + 1):
            u *= self.X
            sign = comb(degree, q) * (-gamma) ** q
            lost -= sign * _forms(power(B, degree - q), u)
        return lost

    def slopes(self, weights: Array) -> Array:
        """Return the sum over all entries of K' ∘ ``weights`` for each column.

        The matrix ``weights`` must be symmetric.
        """
        B = weights * self.slope
        crossed = np.einsum("ij,ij->j", self.X, B @ self.X)
        if self.kernel.name != "rbf":
            return 2 * crossed
        return 4 * (B.sum(axis=1) @ self.X**2 - crossed)

    def slope_times(self, beta: Array) -> Array:
        """Return an array whose columns are the vectors K'β, one for each column of the table."""
        X, crossed = self.X, self.slope @ (beta[:, None] * self.X)
        if self.kernel.name != "rbf":
            return 2 * X * crossed
        plain, squared = self.slope @ beta, self.slope @ (beta[:, None] * X**2)
        return 2 * (plain[:, None] * X**2 - 2 * X * crossed + squared)


def _forms(K: Array, u: Array) -> Array:
    """Return u'Ku for each column u of an array.

    Only the lower triangle of the symmetric K is used, which halves the time.
    """
    half = np.array(K, order="F")  # column-major for BLAS
    half[np.diag_indices_from(half)] /= 2
    return 2 * np.einsum("ij,ij->j", u, dtrmm(1.0, half, u, lower=1))

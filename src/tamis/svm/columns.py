"""Kernel matrices when one column leaves or is scaled: updated, never built anew.

With K the kernel matrix of the rows of X and x a column of it, let K₋ be the matrix without the
column, and K' the derivative of K by the scale v of the column (x becomes v x) at v = 1:

* Gaussian: K₋ = K ∘ exp(γ (xᵢ - xₖ)²), K' = -2γ (xᵢ - xₖ)² ∘ K;
* polynomial (the linear kernel among them), with B = γ XX' + r, K = Bᵖ:
  K₋ = (B - γ xx')ᵖ, K' = 2pγ xx' ∘ Bᵖ⁻¹.

A quadratic form β'K₋β costs N² exponentials for each column. As a sum of forms u'Ku it costs a few
matrix products for all columns: e^(-2γ xᵢ xₖ) is a short power series where γ x² is small, and
(B - γ xx')ᵖ is a binomial sum.
"""

from copy import copy
from functools import cached_property
from math import comb, exp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, strmm
from sklearn.metrics.pairwise import euclidean_distances

from tamis._arrays import Array
from tamis.svm.kernels import Kernel

#: Columns that are handled by one matrix product.
BLOCK = 256
#: Largest 2γx² of a column for the series to be used: beyond, its terms cancel too many digits.
REACH = 6.0
#: Share of the largest possible kernel value that the series may leave out.
LEFT_OUT = 1e-13
#: Rounding of a number of seven digits.
SINGLE = float(np.finfo(np.float32).eps) / 2


class ColumnKernel:
    """Kernel matrix of some rows, and what becomes of it when a column leaves or is scaled.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, linear or polynomial, its numbers resolved.
    X : array of shape (n_rows, n_columns)

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

    def __init__(self, kernel: Kernel, X: Array):
        self.kernel = kernel
        if kernel.name == "rbf" and len(X):
            # distances do not see a shift, and the middle of the range makes the series shortest
            middle = (X.max(axis=0) + X.min(axis=0)) / 2
            self.X = X - middle
            self.base = np.maximum(euclidean_distances(self.X, squared=True), 0)
        else:
            self.X = X
            self.base = X @ X.T

    @cached_property
    def K(self) -> Array:
        """The kernel matrix with all columns."""
        return kernel_of(self.kernel, self.base)

    @cached_property
    def slope(self) -> Array:
        """What multiplies the column's part of the base in K': the derivative of K by the base."""
        if self.kernel.name == "rbf":
            return -self.kernel.gamma * self.K
        if self.kernel.name == "linear":
            return np.ones_like(self.base)
        gamma, degree = self.kernel.gamma, self.kernel.degree
        return degree * gamma * _power(gamma * self.base + self.kernel.coef0, max(degree - 1, 0))

    def without(self, j: int | NDArray[np.intp], kernel: Kernel | None = None) -> Array:
        """Kernel matrix without column j, or without several columns.

        By another kernel of the same family if one is given.
        """
        if np.ndim(j) and np.size(j) > 1:
            return kernel_of(kernel or self.kernel, self._base_without(np.asarray(j)))
        x = self.X[:, np.atleast_1d(j)[0]]
        if self.kernel.name == "rbf":
            base = np.subtract.outer(x, x)
            np.multiply(base, base, out=base)
            np.subtract(self.base, base, out=base)
            np.maximum(base, 0, out=base)
        else:
            base = self.base - np.multiply.outer(x, x)
        return kernel_of(kernel or self.kernel, base)

    def _base_without(self, columns: NDArray[np.intp]) -> Array:
        """Squared distances or inner products of the other columns."""
        X = self.X[:, columns]
        if self.kernel.name != "rbf":
            return self.base - X @ X.T
        return np.maximum(self.base - euclidean_distances(X, squared=True), 0)

    def restricted(self, rows: NDArray[np.intp]) -> "ColumnKernel":
        """The same for some of the rows, without computing anything again."""
        part = copy(self)
        part.__dict__.pop("K", None)
        part.__dict__.pop("slope", None)
        part.X, part.base = self.X[rows], self.base[np.ix_(rows, rows)]
        return part

    def lost(self, beta: Array) -> Array:
        """β'Kβ - β'K₋β for every column, to the digits of this difference and not of its parts."""
        if not beta.any():
            return np.zeros(self.X.shape[1])
        part = self if beta.all() else self.restricted(np.flatnonzero(beta))
        beta = beta[beta != 0]
        if self.kernel.name == "linear":
            return np.square(beta @ part.X)
        return part._lost_gaussian(beta) if self.kernel.name == "rbf" else part._lost_poly(beta)

    def _lost_gaussian(self, beta: Array) -> Array:
        """Columns of small reach by the series, the others by exponentials."""
        X = np.sqrt(2 * self.kernel.gamma) * self.X  # so that exp(-xᵢxₖ) is what is expanded
        reach = np.abs(X).max(axis=0) ** 2
        lost = np.empty(X.shape[1])
        near = np.flatnonzero(reach <= REACH)
        # neighbours in reach need equally many terms
        near = near[np.argsort(reach[near], kind="stable")]
        halves = [_half(self.K, np.float64), _half(self.K, np.float32)] if len(near) else []
        outputs = self.K @ beta
        for first in range(0, len(near), BLOCK):
            block = near[first : first + BLOCK]
            lost[block] = _series(halves, outputs, X[:, block], beta)
        for j in np.flatnonzero(reach > REACH):
            lost[j] = beta @ ((self.K - self.without(int(j))) @ beta)
        return lost

    def _lost_poly(self, beta: Array) -> Array:
        """-Σ_(q>0) C(p, q) (-γ)^q u_q'B^(p-q)u_q with u_q = β ∘ x^q, for every column x."""
        gamma, degree, coef0 = self.kernel.gamma, self.kernel.degree, self.kernel.coef0
        B = gamma * self.base + coef0
        u, lost = np.empty(self.X.shape, order="F"), np.zeros(self.X.shape[1])
        u[:] = beta[:, None]
        for q in range(1, degree + 1):
            u *= self.X
            sign = comb(degree, q) * (-gamma) ** q
            lost -= sign * _forms(_half(_power(B, degree - q), np.float64), u)
        return lost

    def slopes(self, weights: Array) -> Array:
        """Sum of the entries of a symmetric matrix of weights times K', for every column."""
        B = weights * self.slope
        crossed = np.einsum("ij,ij->j", self.X, B @ self.X)
        if self.kernel.name != "rbf":
            return 2 * crossed
        return 4 * (B.sum(axis=1) @ self.X**2 - crossed)

    def slope_times(self, beta: Array) -> Array:
        """The vectors K'β, one for every column, as columns of an array."""
        X, crossed = self.X, self.slope @ (beta[:, None] * self.X)
        if self.kernel.name != "rbf":
            return 2 * X * crossed
        plain, squared = self.slope @ beta, self.slope @ (beta[:, None] * X**2)
        return 2 * (plain[:, None] * X**2 - 2 * X * crossed + squared)


def kernel_of(kernel: Kernel, base: Array) -> Array:
    """Kernel matrix of squared distances (Gaussian) or of inner products (the others)."""
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * base)
    if kernel.name == "linear":
        return base
    return _power(kernel.gamma * base + kernel.coef0, kernel.degree)


def _power(base: Array, degree: int) -> Array:
    """Whole powers by multiplication, ten times faster than ``**`` on an array."""
    result = np.ones_like(base)
    for _ in range(degree):
        result *= base
    return result


def terms(reach: float) -> list[float]:
    """Bounds of the terms of the series of exp(z), |z| <= reach, that are worth adding.

    >>> len(terms(0.1)), len(terms(1.0)), len(terms(6.0))
    (9, 17, 39)
    """
    term = exp(reach)
    bounds: list[float] = []
    while term > LEFT_OUT or not bounds:
        bounds.append(term)
        term *= reach / len(bounds)
    return bounds


def _series(halves: list[Any], outputs: Array, X: Array, beta: Array) -> Array:
    """-Σ_q (-1)^q / q! u_q'Ku_q + β'Kβ for every column x, in units of γ; outputs are Kβ.

    u_q = β ∘ exp(x²/2) ∘ x^q, and the first term less β'Kβ is a'Ka + 2a'Kβ with a = u_0 - β.
    """
    grown = np.asfortranarray(beta[:, None] * np.expm1(X**2 / 2))
    total = _forms(halves[0], grown) + 2 * outputs @ grown
    u, coefficient = grown + beta[:, None], 1.0
    for q, bound in enumerate(terms(float(np.abs(X).max()) ** 2)[1:], start=1):
        u *= X
        coefficient /= -q
        # a late term is so small that its first seven digits are enough
        total += coefficient * _forms(halves[bound * SINGLE < LEFT_OUT], u)
    return -total


def _half(K: Array, kind: Any) -> Any:
    """The triangle T of a symmetric matrix with u'Ku = 2u'Tu, column-major for LAPACK."""
    half = np.array(K, dtype=kind, order="F")
    half[np.diag_indices_from(half)] /= 2
    return half


def _forms(half: Any, u: Array) -> Array:
    """u'Ku for every column u, at half the cost of the product Ku, in the precision of K."""
    if half.dtype == np.float64:
        return 2 * np.einsum("ij,ij->j", u, dtrmm(1.0, half, u, lower=1))
    return 2 * np.einsum("ij,ij->j", u, strmm(1.0, half, u.astype(np.float32), lower=1))

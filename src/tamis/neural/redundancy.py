"""How far columns say the same: the dependence phi between each two of them."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, standardised
from tamis.exceptions import InvalidParameter

#: Measures of dependence.
KINDS = ("pearson", "squared", "information")
#: Columns up to which a matrix of all pairs is kept.
MOST_COLUMNS = 20_000
#: Where a standardised column is cut into three levels for its mutual information.
CUTS = (-0.5, 0.5)
#: From here on the matrix is kept in single precision: each step of a fit reads the whole of it.
SINGLE_FROM = 1000


class Redundancy(Protocol):
    """Symmetric matrix of dependences with zeros on its diagonal."""

    def times(self, shares: Array) -> Array:
        """The matrix times each row of ``shares``."""

    @property
    def mean(self) -> float:
        """Mean dependence of two different columns."""


class PairMatrix:
    """Dependence of every two columns, held."""

    def __init__(self, phi: Array):
        np.fill_diagonal(phi, 0)
        self.phi = phi

    def times(self, shares: Array) -> Array:
        product: Array = shares.astype(self.phi.dtype, copy=False) @ self.phi
        return product.astype(shares.dtype, copy=False)

    @property
    def mean(self) -> float:
        pairs = len(self.phi) * (len(self.phi) - 1)
        return float(self.phi.sum(dtype=float) / max(pairs, 1))


class SquaredCorrelation:
    """Squared correlations through the columns themselves, never held as a matrix of pairs.

    With standardised columns z of length 1,
    sum_j (z_i . z_j)^2 s_j = z_i' (sum_j s_j z_j z_j') z_i,
    so that each row of shares needs n^2 numbers in place of F^2.
    """

    def __init__(self, columns: Array):
        self._columns = columns
        self._own = np.einsum("ij,ij->j", columns, columns) ** 2  # 1, or 0 without variance

    def times(self, shares: Array) -> Array:
        z = self._columns
        product = [np.einsum("ij,ij->j", z, (z * s) @ z.T @ z) - self._own * s for s in shares]
        return np.array(product, dtype=shares.dtype).reshape(shares.shape)

    @property
    def mean(self) -> float:
        n_columns = self._columns.shape[1]
        total = float(((self._columns @ self._columns.T) ** 2).sum() - self._own.sum())
        return total / max(n_columns * (n_columns - 1), 1)


def redundancy(kind: str, X: Array, codes: NDArray[np.intp] | None = None) -> list[Redundancy]:
    """Dependence of the columns: over all rows, or inside each class where ``codes`` are given.

    Parameters
    ----------
    kind : {"pearson", "squared", "information"}
        The absolute correlation; its square; or the mutual information of the columns cut into
        three levels at half a standard deviation from the mean, divided by the geometric mean of
        their entropies. All are 1 for copies and 0 where a column does not vary.
    """
    return [_dependence(kind, rows) for rows in _parts(X, codes)]


def _parts(X: Array, codes: NDArray[np.intp] | None) -> Iterator[Array]:
    if codes is None:
        yield X
    else:
        yield from (X[codes == c] for c in range(codes.max() + 1))


def _dependence(kind: str, X: Array) -> Redundancy:
    columns = standardised(X) / np.sqrt(len(X))
    dtype = np.float32 if X.shape[1] >= SINGLE_FROM else np.float64
    if kind == "squared" and len(X) < X.shape[1]:
        return SquaredCorrelation(columns)
    if X.shape[1] > MOST_COLUMNS:
        raise InvalidParameter(
            f"redundancy={kind!r} holds a number for every two columns, too many for "
            f"{X.shape[1]} columns ({MOST_COLUMNS} can be held). Use redundancy='squared', or drop "
            "the weakest columns first, for example by Ranking(FisherScore())."
        )
    if kind == "information":
        return PairMatrix(_information(columns * np.sqrt(len(X))).astype(dtype, copy=False))
    correlation: Any = columns.astype(dtype, copy=False)
    correlation = correlation.T @ correlation
    return PairMatrix(np.abs(correlation) if kind == "pearson" else correlation**2)


def mean_redundancy(parts: list[Redundancy]) -> list[Redundancy]:
    """Mean over the classes, phi_CL, for gates that all classes share."""
    return [_Mean(parts)] if len(parts) > 1 else parts


class _Mean:
    """Mean of several dependences."""

    def __init__(self, parts: list[Redundancy]):
        self._parts = parts

    def times(self, shares: Array) -> Array:
        met: Array = np.mean([part.times(shares) for part in self._parts], axis=0)
        return met

    @property
    def mean(self) -> float:
        return float(np.mean([part.mean for part in self._parts]))


def _information(columns: Array) -> Array:
    """Normalised mutual information of every two columns of three levels."""
    levels = np.digitize(columns, CUTS)
    marks = np.stack([levels == level for level in range(len(CUTS) + 1)]).astype(float)
    share = marks.mean(axis=1)  # of each level in each column
    entropy = -_x_log_x(share).sum(axis=0)
    joint_entropy = np.zeros((columns.shape[1], columns.shape[1]))
    for one in marks:
        for other in marks:
            joint_entropy -= _x_log_x(one.T @ other / len(columns))
    information = np.maximum(entropy[:, None] + entropy - joint_entropy, 0)
    scale = np.sqrt(np.outer(entropy, entropy))
    return np.divide(information, scale, out=np.zeros_like(scale), where=scale > 1e-12)


def _x_log_x(share: Array) -> Array:
    return share * np.log(share, where=share > 0, out=np.zeros_like(share))

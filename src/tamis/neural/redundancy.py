"""Redundancy: the dependence phi between each two columns, or units of columns."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset, standardised
from tamis._checks import NONE, Constraints, one_of
from tamis.exceptions import InvalidParameter

#: Measures of dependence.
KINDS = ("pearson", "squared", "information")
#: Columns up to which a matrix of all pairs is kept: 256 MB, for each class and fold.
MOST_COLUMNS = 8_000
#: Where a standardised column is cut into three levels for its mutual information.
CUTS = (-0.5, 0.5)
#: From here on the matrix is kept in single precision: each step of a fit reads the whole of it.
SINGLE_FROM = 1000


class Redundancy(BaseEstimator):
    """How far two columns say the same, for a :class:`GateSelector`.

    Parameters
    ----------
    kind : {"pearson", "squared", "information"}, default="pearson"
        The absolute correlation of two columns, its square, or their normalised mutual
        information; 0 where a column does not vary.
    level : {"global", "class"} or None, default=None
        Whether it is taken over all rows or inside each class; None is over all rows for gates of
        scope "global", and inside each class for others.

    Examples
    --------
    >>> from tamis.neural import GateSelector, Redundancy
    >>> selector = GateSelector(scope="class", redundancy=Redundancy("squared", level="global"))
    >>> selector.get_params()["redundancy__level"]
    'global'
    """

    _constraints: ClassVar[Constraints] = {
        "kind": one_of(*KINDS),
        "level": one_of("global", "class") | NONE,
    }

    def __init__(self, kind: str = "pearson", *, level: str | None = None):
        self.kind = kind
        self.level = level

    def inside_classes(self, scope: str) -> bool:
        """Whether the rows of each class are looked at alone."""
        level = self.level or ("global" if scope == "global" else "class")
        return level == "class"

    def between(
        self, X: Array, codes: NDArray[np.intp], n_classes: int, scope: str
    ) -> "list[Dependence]":
        """Dependence of the columns: one for all rows of gates, or one for each."""
        if not self.inside_classes(scope):
            return dependences(self.kind, X)
        inside = dependences(self.kind, X, codes, n_classes)
        return [MeanDependence(inside)] if scope == "global" and len(inside) > 1 else inside


class Dependence(ABC):
    """Symmetric matrix of dependences with zeros on its diagonal."""

    @abstractmethod
    def times(self, shares: Array) -> Array:
        """The matrix times each row of ``shares``."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Mean dependence of two different columns."""


class PairMatrix(Dependence):
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


class SquaredCorrelation(Dependence):
    """Squared correlations through the columns themselves, never held as a matrix of pairs.

    With standardised columns z of length 1,
    sum_j (z_i . z_j)^2 s_j = z_i' (sum_j s_j z_j z_j') z_i,
    so that each row of shares needs n^2 numbers in place of F^2.
    """

    def __init__(self, columns: Array):
        self._columns = columns
        self._own = np.einsum("ij,ij->j", columns, columns) ** 2  # 1, or 0 without variance

    def times(self, shares: Array) -> Array:
        product = [self._times(s) - self._own * s for s in shares]
        return np.array(product, dtype=shares.dtype).reshape(shares.shape)

    def _times(self, share: Array) -> Array:
        z = self._columns
        product: Array = np.einsum("ij,ij->j", z, ((z * share) @ z.T) @ z)
        return product

    @property
    def mean(self) -> float:
        n_columns = self._columns.shape[1]
        total = float(((self._columns @ self._columns.T) ** 2).sum() - self._own.sum())
        return total / max(n_columns * (n_columns - 1), 1)


def dependences(
    kind: str, X: Array, codes: NDArray[np.intp] | None = None, n_classes: int = 0
) -> list[Dependence]:
    """Dependence of the columns: over all rows, or inside each class where ``codes`` are given.

    Inside a class of no or one row no two columns depend on each other.

    Parameters
    ----------
    kind : {"pearson", "squared", "information"}
        The absolute correlation; its square; or the mutual information of the columns cut into
        three levels at half a standard deviation from the mean, divided by the geometric mean of
        their entropies. All are 1 for copies and 0 where a column does not vary.
    """
    check_columns(kind, X.shape[1])
    if codes is None:
        return [_dependence(kind, X)]
    return [_dependence(kind, X[codes == c]) for c in range(n_classes)]


def check_columns(
    kind: str, n_columns: int, fewer: str = "Ranking(FisherScore(), n_features_to_select={})"
) -> None:
    """Refuse a table too wide for a number for every two columns, before any work.

    ``fewer`` is the expression that leaves as many columns as can be had.
    """
    if kind != "squared" and n_columns > MOST_COLUMNS:
        raise InvalidParameter(
            f"redundancy={kind!r} holds a number for every two columns, too many for "
            f"{n_columns} columns ({MOST_COLUMNS} can be held). Use redundancy='squared', or leave "
            f"the weakest columns out first, as by {fewer.format(MOST_COLUMNS)}."
        )


def through_columns(kind: str, n_rows: int, n_columns: int) -> bool:
    """Whether squares go through the columns: where that is less work, or the only way."""
    return kind == "squared" and (2 * n_rows**2 < n_columns or n_columns > MOST_COLUMNS)


def _dependence(kind: str, X: Array) -> Dependence:
    n_rows, n_columns = X.shape
    dtype = np.float32 if n_columns >= SINGLE_FROM else np.float64
    columns = standardised(X) / np.sqrt(n_rows) if n_rows > 1 else np.zeros((1, n_columns))
    if n_rows < 2 or through_columns(kind, n_rows, n_columns):  # without rows all is 0
        return SquaredCorrelation(columns)
    if kind == "information":
        return PairMatrix(_information(columns * np.sqrt(n_rows)).astype(dtype, copy=False))
    short: Any = columns.astype(dtype, copy=False)
    correlation = short.T @ short
    return PairMatrix(np.abs(correlation) if kind == "pearson" else correlation**2)


class MeanDependence(Dependence):
    """Mean over the classes, phi_CL, for gates that all classes share."""

    def __init__(self, parts: list[Dependence]):
        self._parts = parts

    def times(self, shares: Array) -> Array:
        met: Array = np.mean([part.times(shares) for part in self._parts], axis=0)
        return met

    @property
    def mean(self) -> float:
        return float(np.mean([part.mean for part in self._parts]))


class GateUnits:
    """Columns that share a gate: the unit of each column.

    >>> pairs = GateUnits(np.array([0, 1, 0, 1]))
    >>> pairs.spread(np.array([2.0, 3.0])), pairs.sum(np.arange(4.0))
    (array([2., 3., 2., 3.]), array([2., 4.]))
    """

    def __init__(self, unit_of: Subset):
        self.unit_of = unit_of
        self.sizes = np.bincount(unit_of)
        self._order = np.argsort(unit_of, kind="stable")
        self._starts = np.cumsum(self.sizes) - self.sizes

    def spread(self, values: Array) -> Array:
        """Repeat values of the units, along the last axis, for each of their columns."""
        return values[..., self.unit_of]

    def sum(self, values: Array) -> Array:
        """Add up values of the columns, along the last axis, for each unit."""
        total: Array = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return total


class GroupedDependence(Dependence):
    """Dependence of two units: the mean over the pairs of their columns."""

    def __init__(self, between: Dependence, units: GateUnits):
        self._between, self._units = between, units
        self._inside = np.zeros(len(units.sizes))
        for unit in np.flatnonzero(units.sizes > 1):
            alone = np.zeros(len(units.sizes))
            alone[unit] = 1
            self._inside[unit] = self._times(alone[None])[0, unit]

    def _times(self, shares: Array) -> Array:
        sizes = self._units.sizes
        mean: Array = self._units.sum(self._between.times(self._units.spread(shares / sizes)))
        return mean / sizes

    def times(self, shares: Array) -> Array:
        met: Array = self._times(shares) - self._inside * shares
        return met

    @property
    def mean(self) -> float:
        n_units = len(self._inside)
        total = float(self.times(np.ones((1, n_units))).sum())
        return total / max(n_units * (n_units - 1), 1)


def group_dependences(between: list[Dependence], units: GateUnits) -> list[Dependence]:
    """Dependences of the units, from those of the columns."""
    if (units.sizes == 1).all():
        return between
    return [GroupedDependence(phi, units) for phi in between]


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

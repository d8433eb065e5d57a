"""Redundancy, measured by the dependence phi of each pair of columns or units.

A unit is a column, or a group of columns that are selected together.
"""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset, standardised
from tamis._checks import NONE, Constraints, one_of
from tamis.exceptions import InvalidParameter

#: Names of the measures of dependence.
KINDS = ("pearson", "squared", "information")
#: Largest number of columns for which a matrix of all pairs is stored. At this size, the matrix
#: takes 256 MB for each class and fold.
MOST_COLUMNS = 8_000
#: Cuts that divide a standardised column into three levels, from which mutual information is
#: computed.
CUTS = (-0.5, 0.5)
#: From this many columns on, the matrix of all pairs is stored in single precision. Each step of a
#: fit reads the whole matrix, so a smaller matrix saves time.
SINGLE_FROM = 1000


@dataclass(eq=False, repr=False)
class Redundancy(BaseEstimator):
    """Measure of the redundancy of two columns, for a :class:`GateSelector`.

    Parameters
    ----------
    kind : {"pearson", "squared", "information"}, default="pearson"
        Measure of two columns: the absolute correlation, the squared correlation, or the normalised
        mutual information. Constant columns have redundancy 0.
    level : {"global", "class"} or None, default=None
        "global" computes redundancy over all rows, and "class" inside each class. None means
        "global" for gates of scope "global", and "class" for other scopes.

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

    kind: str = "pearson"
    _: KW_ONLY
    level: str | None = None

    def inside_classes(self, scope: str) -> bool:
        """Return whether redundancy is computed inside each class."""
        return scope != "global" if self.level is None else self.level == "class"

    def between(
        self, X: Array, codes: NDArray[np.intp], n_classes: int, scope: str
    ) -> "list[Dependence]":
        """Return the dependence matrices of the columns.

        The list contains one matrix for all rows of gates, or one matrix for each row of gates.
        """
        if not self.inside_classes(scope):
            return dependences(self.kind, X)
        inside = dependences(self.kind, X, codes, n_classes)
        return [MeanDependence(inside)] if scope == "global" and len(inside) > 1 else inside


class Dependence(ABC):
    """Symmetric matrix of the dependence of each pair of columns, with a zero diagonal."""

    @abstractmethod
    def times(self, shares: Array) -> Array:
        """Multiply each row of ``shares`` by the matrix."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """Mean dependence over all pairs of different columns."""


class PairMatrix(Dependence):
    """Dependence that is stored as a matrix of all pairs."""

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
    """Squared correlations, computed from the columns without a matrix of all pairs.

    For standardised columns z of length 1,
    sum_j (z_i . z_j)^2 s_j = z_i' (sum_j s_j z_j z_j') z_i.
    So each row of shares s needs an n x n matrix for n rows, instead of F x F for F columns.
    """

    def __init__(self, columns: Array):
        self._columns = columns
        self._own = np.einsum("ij,ij->j", columns, columns) ** 2  # 1, or 0 for constant columns

    def times(self, shares: Array) -> Array:
        z = self._columns
        product = [np.einsum("ij,ij->j", z, ((z * s) @ z.T) @ z) - self._own * s for s in shares]
        return np.array(product, dtype=shares.dtype).reshape(shares.shape)

    @property
    def mean(self) -> float:
        n_columns = self._columns.shape[1]
        total = float(((self._columns @ self._columns.T) ** 2).sum() - self._own.sum())
        return total / max(n_columns * (n_columns - 1), 1)


def dependences(
    kind: str, X: Array, codes: NDArray[np.intp] | None = None, n_classes: int = 0
) -> list[Dependence]:
    """Return the dependence matrix over all rows or, if ``codes`` is given, one for each class.

    ``codes`` are class numbers. The dependence in a class with fewer than two rows is 0.

    Parameters
    ----------
    kind : {"pearson", "squared", "information"}
        The absolute correlation, the squared correlation, or the normalised mutual information. For
        mutual information, columns are cut into three levels at half a standard deviation from the
        mean, and the result is divided by the geometric mean of the entropies. All measures are 1
        for duplicate columns and 0 for constant ones.
    """
    check_columns(kind, X.shape[1])
    if codes is None:
        return [_dependence(kind, X)]
    return [_dependence(kind, X[codes == c]) for c in range(n_classes)]


def check_columns(
    kind: str, n_columns: int, fewer: str = "Ranking(FisherScore(), n_features_to_select={})"
) -> None:
    """Raise an error if a table has too many columns for a matrix of all pairs.

    ``fewer`` is the code that the message recommends for selecting fewer columns first. The braces
    are replaced by the largest possible number of columns.
    """
    if kind != "squared" and n_columns > MOST_COLUMNS:
        raise InvalidParameter(
            f"redundancy={kind!r} computes a matrix of all pairs of columns, so it accepts at most "
            f"{MOST_COLUMNS} columns, got {n_columns}. Use redundancy='squared', or select columns "
            f"first, for example with {fewer.format(MOST_COLUMNS)}."
        )


def through_columns(kind: str, n_rows: int, n_columns: int) -> bool:
    """Return whether dependence is computed without a matrix of all pairs.

    This is possible only for squared correlations. It is used if it takes fewer operations than the
    matrix, or if the matrix would be too large.
    """
    return kind == "squared" and (2 * n_rows**2 < n_columns or n_columns > MOST_COLUMNS)


def _dependence(kind: str, X: Array) -> Dependence:
    n_rows, n_columns = X.shape
    dtype = np.float32 if n_columns >= SINGLE_FROM else np.float64
    columns = standardised(X) / np.sqrt(n_rows) if n_rows > 1 else np.zeros((1, n_columns))
    if n_rows < 2 or through_columns(kind, n_rows, n_columns):
        return SquaredCorrelation(columns)
    if kind == "information":
        return PairMatrix(_information(columns * np.sqrt(n_rows)).astype(dtype, copy=False))
    short: Any = columns.astype(dtype, copy=False)
    correlation = short.T @ short
    return PairMatrix(np.abs(correlation) if kind == "pearson" else correlation**2)


class MeanDependence(Dependence):
    """Mean of the dependence inside each class, for gates that all classes share."""

    def __init__(self, parts: list[Dependence]):
        self._parts = parts

    def times(self, shares: Array) -> Array:
        met: Array = np.mean([part.times(shares) for part in self._parts], axis=0)
        return met

    @property
    def mean(self) -> float:
        return float(np.mean([part.mean for part in self._parts]))


class GateUnits:
    """Assignment of columns to units. The columns of a unit share a gate.

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
        """Repeat the value of each unit for all its columns. Units are the last axis."""
        return values[..., self.unit_of]

    def sum(self, values: Array) -> Array:
        """Sum the values of the columns of each unit. Columns are the last axis."""
        total: Array = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return total


class GroupedDependence(Dependence):
    """Dependence of two units: the mean over all pairs with one column of each unit."""

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
    """Return the dependence matrices of units, given the matrices of columns."""
    if (units.sizes == 1).all():
        return between
    return [GroupedDependence(phi, units) for phi in between]


def _information(columns: Array) -> Array:
    """Cut columns into levels, and return the normalised mutual information of each pair."""
    levels = np.digitize(columns, CUTS)
    marks = np.stack([levels == level for level in range(len(CUTS) + 1)]).astype(float)
    share = marks.mean(axis=1)  # share of each level in each column
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

"""One gate for several columns: from units to columns and back."""

import numpy as np

from tamis._arrays import Array, Subset
from tamis.neural.redundancy import Dependence


class Sharing:
    """Columns that share a gate: the unit of each column.

    >>> pairs = Sharing(np.array([0, 1, 0, 1]))
    >>> pairs.spread(np.array([2.0, 3.0])), pairs.summed(np.arange(4.0))
    (array([2., 3., 2., 3.]), array([2., 4.]))
    """

    def __init__(self, unit_of: Subset):
        self.unit_of = unit_of
        self.sizes = np.bincount(unit_of)
        self._order = np.argsort(unit_of, kind="stable")
        self._starts = np.cumsum(self.sizes) - self.sizes

    def spread(self, values: Array) -> Array:
        """Values of the units, along the last axis, for each of their columns."""
        return values[..., self.unit_of]

    def summed(self, values: Array) -> Array:
        """Values of the columns, along the last axis, added up for each unit."""
        total: Array = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return total


class GroupedDependence:
    """Dependence of two units: the mean over the pairs of their columns."""

    def __init__(self, between: Dependence, sharing: Sharing):
        self._between, self._sharing = between, sharing
        self._inside = np.zeros(len(sharing.sizes))
        for unit in np.flatnonzero(sharing.sizes > 1):
            alone = np.zeros(len(sharing.sizes))
            alone[unit] = 1
            self._inside[unit] = self._times(alone[None])[0, unit]

    def _times(self, shares: Array) -> Array:
        sharing = self._sharing
        met = self._between.times(sharing.spread(shares / sharing.sizes))
        mean: Array = sharing.summed(met) / sharing.sizes
        return mean

    def times(self, shares: Array) -> Array:
        """The matrix, with zeros on its diagonal, times each row of ``shares``."""
        met: Array = self._times(shares) - self._inside * shares
        return met

    @property
    def mean(self) -> float:
        """Mean dependence of two different units."""
        n_units = len(self._inside)
        total = float(self.times(np.ones((1, n_units))).sum())
        return total / max(n_units * (n_units - 1), 1)


def grouped(between: list[Dependence], sharing: Sharing | None) -> list[Dependence]:
    """Dependences of the units, from those of the columns."""
    if sharing is None:
        return between
    return [GroupedDependence(phi, sharing) for phi in between]

"""Units: columns that are perturbed together, one by one in a plain table."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tamis._arrays import Array, Subset


class Units(NamedTuple):
    """Columns of a table that a model sees, and which of them belong together.

    ``members`` are positions among the columns, unit after unit; ``sizes`` says how many of them
    each unit has.

    >>> units = Units.of(lambda subset: np.array([4, 6, 7]) if len(subset) == 2 else
    ...                  np.array([[4, 7], [6]][subset[0]]), np.array([0, 1]))
    >>> units.without(0)
    array([6])
    >>> [(which.tolist(), columns.tolist()) for which, columns in units.by_size()]
    [([1], [[1]]), ([0], [[0, 2]])]
    """

    columns: Subset
    members: Subset
    sizes: Subset

    @classmethod
    def single(cls, columns: Subset) -> "Units":
        """Every column by itself."""
        return cls(columns, np.arange(len(columns)), np.ones(len(columns), dtype=np.intp))

    @classmethod
    def of(cls, columns_of: Callable[[Subset], Subset], subset: Subset) -> "Units":
        """The units of a subset, whose columns a function tells."""
        columns = columns_of(subset)
        if len(columns) == len(subset):
            return cls.single(columns)
        parts = [columns_of(unit) for unit in subset[:, None]]
        order = np.argsort(columns)
        members = order[np.searchsorted(columns, np.concatenate(parts), sorter=order)]
        return cls(columns, members, np.array([len(part) for part in parts]))

    def with_copies(self, n_columns: int) -> "Units":
        """The units and, behind them, those of a copy of the table, ``n_columns`` further on."""
        return Units(
            np.r_[self.columns, self.columns + n_columns],
            np.r_[self.members, self.members + len(self.columns)],
            np.r_[self.sizes, self.sizes],
        )

    @property
    def _starts(self) -> Subset:
        return np.cumsum(self.sizes) - self.sizes

    def without(self, index: int) -> Subset:
        """Columns of all units but one."""
        return np.delete(self.columns, self.positions(index))

    def positions(self, index: int) -> Subset:
        """Where the columns of a unit stand among all."""
        start = self._starts[index]
        return self.members[start : start + self.sizes[index]]

    def summed(self, values: Array) -> Array:
        """Values of the columns, along the first axis, added up for each unit."""
        if len(values) == len(self.sizes):
            return values
        return np.asarray(np.add.reduceat(values[self.members], self._starts, axis=0))

    def by_size(self) -> list[tuple[Subset, Subset]]:
        """Units of one size at a time: which they are, and positions of shape (units, size)."""
        starts, found = self._starts, []
        for size in np.unique(self.sizes):
            which = np.flatnonzero(self.sizes == size)
            found.append((which, self.members[starts[which][:, None] + np.arange(size)]))
        return found

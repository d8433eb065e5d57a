"""Criteria that value a subset and each change of it by one column in a single pass."""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from tamis._arrays import EMPTY, Array, Subset
from tamis.contract.criterion import with_unit


class SingleChanges:
    """Values of kernel sums, whose distances a column that comes or goes alters by its own.

    A subset criterion that inherits from it computes these. The empty subset is worth 0.
    """

    columns: Callable[[Subset], Subset]
    _unit_columns: tuple[Subset, ...] | None

    @abstractmethod
    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        """Value of the members, then without (-1) or with (+1) each altered column."""

    def value(self, subset: Subset) -> float:
        return float(self._values(self.columns(subset), EMPTY, 0)[0]) if len(subset) else 0.0

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset) or not len(candidates):
            return np.array([self.value(candidates[[i]]) for i in range(len(candidates))])
        return self._changes(subset, candidates, +1)

    def loss(self, subset: Subset) -> Array:
        if len(subset) < 2:
            return np.array([self.value(subset) for _ in subset])
        return -self._changes(subset, subset, -1)

    def _changes(self, subset: Subset, altered: Subset, sign: int) -> Array:
        """Changes by units that are one column in a single pass, by groups one after the other."""
        units = self._unit_columns
        if units is None:
            before, *after = self._values(subset, altered, sign)
            return np.array(after) - before
        single = np.array([len(units[j]) == 1 for j in altered])
        columns = np.array([units[j][0] for j in altered[single]], dtype=np.intp)
        before, *after = self._values(self.columns(subset), columns, sign)
        changed = np.empty(len(altered))
        changed[single] = after
        for index in np.flatnonzero(~single):
            unit = altered[index]
            other = with_unit(subset, unit) if sign > 0 else subset[subset != unit]
            changed[index] = self.value(other)
        return changed - before

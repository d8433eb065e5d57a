"""Criteria that value a subset and each change of it by one column in a single pass."""

from abc import abstractmethod

import numpy as np

from tamis._arrays import EMPTY, Array, Subset
from tamis.contract import SubsetCriterion


class AlteredCriterion(SubsetCriterion):
    """Criterion of kernel sums, whose distances a column that comes or goes alters by its own.

    The empty subset is worth 0.
    """

    @abstractmethod
    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        """Value of the members, then without (-1) or with (+1) each altered column."""

    def value(self, subset: Subset) -> float:
        return float(self._values(self.columns(subset), EMPTY, 0)[0]) if len(subset) else 0.0

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset) or not len(candidates):
            return np.array([self.value(candidates[[i]]) for i in range(len(candidates))])
        return self._changes(self.columns(subset), self.columns(candidates), +1)

    def loss(self, subset: Subset) -> Array:
        if len(subset) < 2:
            return np.array([self.value(subset) for _ in subset])
        columns = self.columns(subset)
        return -self._changes(columns, columns, -1)

    def _changes(self, members: Subset, altered: Subset, sign: int) -> Array:
        before, *after = self._values(members, altered, sign)
        return np.array(after) - before

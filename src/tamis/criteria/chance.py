"""Losses of units compared with chance: those of a copy whose rows are permuted."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse

from tamis._arrays import Array, Subset
from tamis._checks import BOOLEAN, Constraints, one_of
from tamis._seeds import stream
from tamis.response.units import Units


class ChanceAdjusted:
    """Criteria whose losses may be compared with those of a permuted copy of the columns.

    In a trained model columns that say nothing have losses above 0, which add up over the columns
    of a unit. The copy has the same columns with their rows permuted, all in one way, so that their
    correlations stay. The model is trained on both, and the loss of a unit is how far it exceeds
    that of its copy: about 0 for noise, however many columns there are.

    A criterion calls :meth:`_with_copies` on the table it learns, scores :meth:`_units`, and
    returns :meth:`_above_chance`.
    """

    adjusted: Any
    n_features_in_: int
    _unit_columns: tuple[Subset, ...] | None
    columns: Callable[[Subset], Subset]
    _constraints: ClassVar[Constraints] = {"adjusted": one_of("auto") | BOOLEAN}

    @property
    def _is_adjusted(self) -> bool:
        """Whether units have copies: "auto" adjusts if one has more than one column."""
        if self.adjusted != "auto":
            return bool(self.adjusted)
        return any(len(columns) > 1 for columns in self._unit_columns or ())

    def _with_copies(self, X: Any, y: NDArray[Any] | None) -> Any:
        """The table to train on: with a permuted copy behind its columns if losses are adjusted."""
        # without a target a block and its copy are equally important
        self._has_copies = self._is_adjusted and y is not None
        if not self._has_copies:
            return X
        # always the same order: a score does not depend on when, or how often, it is asked for
        order = stream(0, "permuted copy").permutation(X.shape[0])
        if issparse(X):
            return hstack([X, X.tocsr()[order]], format=X.format)
        return np.asfortranarray(np.hstack([X, X[order]]))

    def _n_trained(self, n_features: int) -> int:
        """Columns that a model of so many features is trained on."""
        return 2 * n_features if self._is_adjusted else n_features

    def _units(self, subset: Subset) -> Units:
        """The units of a subset, followed by their copies if losses are adjusted."""
        units = Units.of(self.columns, subset)
        return units.with_copies(self.n_features_in_) if self._has_copies else units

    def _above_chance(self, losses: Array) -> Array:
        """Losses of the units, less those of their copies if there are any."""
        if not self._has_copies:
            return losses
        own, copies = np.split(losses, 2, axis=-1)
        return np.asarray(own - copies)

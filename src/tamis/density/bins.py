"""Base class of criteria that cut columns into levels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array, class_codes
from tamis._checks import BOOLEAN, NONE, Constraints, integer, one_of
from tamis.blocks.table import BlockTable
from tamis.contract.criterion import Criterion
from tamis.density.discrete import Coded, category_mask, coded_columns, number_of_bins
from tamis.density.levels import (
    JoinedPacking,
    Packing,
    cuts_of_blocks,
    joined_cuts,
    target_cuts,
)
from tamis.density.planes import BlockLevels

#: Constraint on how missing values are treated.
MISSING_CONSTRAINT = one_of("level", "pairs")


@dataclass(eq=False, repr=False, kw_only=True)
class BinnedCriterion(Criterion):
    """Base class of criteria computed from the information of columns cut into levels."""

    n_bins: int | None = None
    binning: str = "frequency"
    categories: ArrayLike | None = None
    adjusted: bool | str = "auto"
    task: str = "auto"

    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    runs_on_device: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "n_bins": integer(2) | NONE,
        "binning": one_of("frequency", "width", "codes"),
        "adjusted": one_of("auto") | BOOLEAN,
    }

    def _adjusts(self, n_columns: int | None = None) -> bool:
        """Return whether information is corrected for chance.

        "auto" corrects if there are categories or groups of several columns. If ``n_columns`` is
        None, it corrects for any ``categories`` except None.
        """
        if self.adjusted != "auto":
            return bool(self.adjusted)
        if any(len(columns) > 1 for columns in self._unit_columns or ()):
            return True
        if n_columns is None or self.categories is None:
            return self.categories is not None
        return bool(np.any(self._category_mask(n_columns)))

    def _category_mask(self, n_columns: int) -> Any:
        return category_mask(type(self).__name__, self.categories, n_columns)

    @property
    def _by_pairs(self) -> bool:
        """Whether rows with missing values are left out, instead of forming a level."""
        return getattr(self, "missing", "level") == "pairs"

    def _cut(self, X: Array) -> Coded:
        """Cut the units of a table into levels."""
        self._adjusted = self._adjusts(X.shape[1])
        coded = coded_columns(X, self.n_bins, self.binning, self._category_mask(X.shape[1]))
        units = self._unit_columns
        return coded if units is None else coded.joined(units, by_pairs=self._by_pairs)

    def _cut_target(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return class codes, or the levels of a numeric target, which is cut like a column."""
        if self.task_ == "classification":
            return class_codes(y)[1]
        return coded_columns(y.astype(float)[:, None], self.n_bins, self.binning).column(0)

    def _cut_blocks(self, table: BlockTable) -> BlockLevels:
        """Cut the units and the target of a table in row blocks into levels."""
        n_rows, n_columns = table.shape
        self._adjusted = self._adjusts(n_columns)
        n_bins = number_of_bins(n_rows, self.n_bins)
        cuts = cuts_of_blocks(table, n_bins, self.binning, self._category_mask(n_columns))
        joined: Any = ()
        if self._unit_columns is not None:
            cuts, *joined = joined_cuts(table, cuts, self._unit_columns, self._by_pairs)
        labels = table.labels if self.task_ == "classification" else None
        if labels is not None:
            cuts = cuts.with_column(np.arange(1.0, len(labels.values)))
        else:
            cuts = cuts.with_column(target_cuts(table, n_bins, self.binning))
        packing = JoinedPacking(cuts, labels, *joined) if joined else Packing(cuts, labels)
        planes = table.source.kept(packing, n_rows / 8.0 * int(cuts.first_plane[-1]))
        return BlockLevels(planes, cuts, n_rows)

"""Composition of two searches that run one after the other."""

from collections.abc import Hashable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array, Subset
from tamis.blocks.table import BlockTable
from tamis.contract import Progress, Record, Selection, Trace
from tamis.contract.composition import Composed, PartRuns, combine_tags
from tamis.contract.costs import FeatureCosts
from tamis.contract.explain import explained, unit_index
from tamis.contract.record import outside_pairs
from tamis.contract.steps import Event
from tamis.contract.units import Fixed, Groups
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTable,
    NothingSelected,
)
from tamis.search.categories import for_columns


@dataclass(eq=False, repr=False)
class Then(Composed):
    """Two searches, one after the other: ``second`` gets the columns that ``first`` selects.

    Use it for a fast filter before a slower search. For the columns that ``second`` gets,
    ``order_``, ``ranking_`` and ``scores_`` come from ``second``. All other columns are ranked
    last, and their values come from ``first``. ``trace_`` contains the steps of ``second``. The
    steps of ``first`` are in ``first_.trace_`` and ``record_.parts``.

    With row blocks, ``second`` reads row blocks of the remaining columns if its criterion accepts
    them. Otherwise these columns are read into memory, provided that three copies of them fit into
    half of the free memory.

    Parameters
    ----------
    first, second : Search, Then or an embedded selector
        The two searches. In both, the ``categories`` of a criterion are column positions in the
        full table. This also holds for ``second``, although it gets fewer columns.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, for both
        searches; see :class:`Forward`.

    Attributes
    ----------
    first_, second_ : selector
        The fitted clones. The column indices of ``second_`` count only the columns that ``first_``
        selected.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tamis.criteria import FisherScore, Scatter
    >>> from tamis.search import Exhaustive, Ranking
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = Then(Ranking(FisherScore(), n_features_to_select=10),
    ...               Exhaustive(Scatter("J3"), n_features_to_select=3))
    >>> search.fit(X, y).get_support(indices=True)
    array([20, 23, 27])
    """

    first: Selection
    second: Selection
    _: KW_ONLY
    feature_groups: Groups = None
    fixed_features: Fixed = None
    feature_costs: FeatureCosts | None = None

    part_names = ("first", "second")

    def _steps(
        self, criterion: PartRuns, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        for_first, for_second = self._shares(criterion.params)
        X, y, grouping = criterion.X, criterion.y, criterion.grouping
        # the fingerprint of row blocks depends on the columns that are read
        table = X.narrowed(np.arange(X.shape[1])) if isinstance(X, BlockTable) else X
        first = criterion.begin(self.first, table, y, for_first, grouping)
        for _ in first:
            yield Progress({})
        record = first.settled()
        units = record.kept_units
        if not len(units):
            raise NothingSelected(
                f"Then: nothing is left for {type(self.second).__name__}, as "
                f"{type(self.first).__name__} keeps no column: {record.reason}"
            )
        columns = grouping.columns(units)
        second = for_columns(self.second, columns, X.shape[1])
        X = _of_columns(X, columns)
        if isinstance(X, BlockTable) and not second.takes_blocks:
            X, y = X.held(type(second).__name__)
        run = criterion.begin(second, X, y, for_second, grouping.restricted(units))
        yield from run.on(units, done, record.n_evaluations)

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        if len(record.parts) < 2:
            return
        first, second, *others = record.parts
        if others or second.trace.n_units != len(first.kept_units):
            raise InvalidTable(
                "This is a damaged record: its 'parts' do not fit together. Start the search again."
            )
        self.first_ = _restore(self.first, first, X, y)
        self.second_ = _restore(self.second, second, _of_columns(X, first.kept), y)
        seen, before, after = self.first_.unit_support_, self.first_, self.second_
        self.order_ = np.r_[np.flatnonzero(seen)[after.order_], before.order_[seen.sum() :]]
        self.ranking_ = before.ranking_ + after.ranking_.max() - 1
        self.ranking_[seen] = after.ranking_
        self.scores_ = before.scores_.copy()
        self.scores_[seen] = after.scores_
        inside = outside_pairs(after.interactions_, np.flatnonzero(seen))
        self.interactions_ = inside or before.interactions_

    def explain(self, column: Hashable) -> str:
        """Explain why a column was selected or not, according to the search that decided it.

        Parameters
        ----------
        column : int or str
            The index or name of a column, or the name of a group of columns.
        """
        names = self.record_.feature_names
        unit = unit_index(type(self).__name__, column, names, self.units_)
        if self.first_.unit_support_[unit]:
            return explained(self, column)
        return "The first search did not pass it on to the second. In the first, " + explained(
            self.first_, column, names
        )

    def _check(self) -> None:
        """Refuse parts that cannot work, before any of them runs."""
        for part in (self.first, self.second):
            if not isinstance(part, Selection):
                raise IncompatibleCriterion(
                    f"Then needs two searches, not {part!r}. Write Then(Ranking(FisherScore(), "
                    "n_features_to_select=50), Forward(...))."
                )
            for name in ("feature_groups", "fixed_features", "feature_costs"):
                if getattr(part, name, None) is not None:
                    raise InvalidParameter(
                        f"Then needs {name} for both searches, not for "
                        f"{type(part).__name__} alone. Write Then(..., {name}=...)."
                    )
            part.check()

    def _size(self, n_units: int) -> int | None:
        """Return the number of units to select, or None if it depends on the data."""
        size = self.first._size(n_units)
        return None if size is None else self.second._size(size)

    @property
    def takes_categories(self) -> bool:
        """Whether both searches accept columns of category codes."""
        return bool(self.first.takes_categories and self.second.takes_categories)

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the first search accepts row blocks.

        The second search need not accept them, because its columns can be read into memory.
        """
        return bool(self.first.takes_blocks)

    def _check_blocks(self) -> None:
        self.first._check_blocks()

    def __sklearn_tags__(self) -> Tags:
        return combine_tags(super().__sklearn_tags__(), self._parts)


def _of_columns(X: Any, columns: Subset) -> Any:
    """Return a table with only the given columns, whether it is in memory or in row blocks."""
    return X.narrowed(columns) if isinstance(X, BlockTable) else X[:, columns]


def _restore(selection: Selection, record: Record, X: Array, y: Any) -> Selection:
    """Return a clone of a selection that is fitted from its record."""
    fitted: Selection = clone(selection)
    fitted.n_features_in_ = record.grouping.n_columns
    if len(record.trace):
        fitted._settle(record, X, y)
    return fitted

"""A search on what another search kept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array, Subset
from tamis.blocks.table import BlockTable
from tamis.contract import Progress, Record, Selection, Trace
from tamis.contract.composition import Composed, PartRuns, combine_tags
from tamis.contract.explain import explained, unit_index
from tamis.contract.record import outside_pairs
from tamis.contract.steps import Event
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NothingSelected
from tamis.search.categories import for_columns


class Then(Composed):
    """Run ``second`` on the columns that ``first`` kept, and speak of the original columns.

    A fast filter before a careful search. ``order_``, ``ranking_`` and ``scores_`` have what
    ``second`` says of the columns it saw, and behind them what ``first`` says of those it dropped.
    ``trace_`` holds the steps of ``second``; those of ``first`` are in ``first_.trace_`` and
    ``record_.parts``.

    From blocks of rows the first part selects as its criterion does. The second reads blocks of the
    columns kept where its criterion takes parts; any other gets these columns of all rows at once,
    if three copies of them fit into half of the free memory, and refuses otherwise.

    Parameters
    ----------
    first, second : Search, Then or an embedded selector
        ``categories`` of their criteria speak of the columns of the table, in both.
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, for both parts; see
        :class:`Forward`.

    Attributes
    ----------
    first_, second_ : selector
        Fitted clones; ``second_`` counts the columns that ``first_`` kept.

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

    def __init__(
        self, first: Any, second: Any, *, feature_groups: Any = None, fixed_features: Any = None
    ):
        self.first = first
        self.second = second
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features

    part_names = ("first", "second")

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> PartRuns:
        return PartRuns(X, y, params, done)

    def _steps(
        self, criterion: PartRuns, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        for_first, for_second = self._shares(criterion.params)
        X, y, grouping = criterion.X, criterion.y, criterion.grouping
        # records name a table in blocks by the columns that are read of it
        whole = X.narrowed(np.arange(X.shape[1])) if isinstance(X, BlockTable) else X
        first = criterion.begin(self.first, whole, y, for_first, grouping)
        for _ in first:
            yield Progress({})
        kept = first.settled()
        units = kept.kept_units
        if not len(units):
            raise NothingSelected(
                f"Then: nothing is left for {type(self.second).__name__}, as "
                f"{type(self.first).__name__} keeps no column: {kept.reason}"
            )
        columns = grouping.columns(units)
        second = for_columns(self.second, columns, X.shape[1])
        X = _of_columns(X, columns)
        if isinstance(X, BlockTable) and not second.takes_blocks:
            X, y = X.held(type(second).__name__)
        run = criterion.begin(second, X, y, for_second, grouping.restricted(units))
        yield from run.on(units, done, kept.n_evaluations)

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        if len(record.parts) < 2:
            return
        first, second = record.parts
        self.first_ = _settled(self.first, first, X, y)
        self.second_ = _settled(self.second, second, _of_columns(X, first.kept), y)
        seen, before, after = self.first_.unit_support_, self.first_, self.second_
        self.order_ = np.r_[np.flatnonzero(seen)[after.order_], before.order_[seen.sum() :]]
        self.ranking_ = before.ranking_ + after.ranking_.max() - 1
        self.ranking_[seen] = after.ranking_
        self.scores_ = before.scores_.copy()
        self.scores_[seen] = after.scores_
        inside = outside_pairs(after.interactions_, np.flatnonzero(seen))
        self.interactions_ = inside or before.interactions_

    def explain(self, column: Any) -> str:
        """Say in words what became of a column, in the part that decided it; see Selection."""
        names = self.record_.feature_names
        unit = unit_index(type(self).__name__, column, names, self.units_)
        if self.first_.unit_support_[unit]:
            return explained(self, column)
        return "The second search never saw it. In the first, " + explained(
            self.first_, column, names
        )

    def _check(self) -> None:
        """Whether both parts can do their work, before any of it."""
        for part in (self.first, self.second):
            if not isinstance(part, Selection):
                raise IncompatibleCriterion(
                    f"Then needs two searches, not {part!r}. Write Then(Ranking(FisherScore(), "
                    "n_features_to_select=50), Forward(...))."
                )
            for name in ("feature_groups", "fixed_features"):
                if getattr(part, name, None) is not None:
                    raise InvalidParameter(
                        f"Then needs {name} for both of its parts, not for "
                        f"{type(part).__name__} alone. Write Then(..., {name}=...)."
                    )
            part.check()

    def _size(self, n_units: int) -> int | None:
        """Number of units kept by both, None where only the data can tell."""
        kept = self.first._size(n_units)
        return None if kept is None else self.second._size(kept)

    @property
    def takes_categories(self) -> bool:
        """Where both parts do."""
        return bool(self.first.takes_categories and self.second.takes_categories)

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """As the first part does: what it keeps is few, and read for the second where need be."""
        return bool(self.first.takes_blocks)

    def _check_blocks(self) -> None:
        self.first._check_blocks()

    def __sklearn_tags__(self) -> Tags:
        return combine_tags(super().__sklearn_tags__(), self._parts)


def _of_columns(X: Any, columns: Subset) -> Any:
    """Some columns of a table, held at once or in blocks of rows."""
    return X.narrowed(columns) if isinstance(X, BlockTable) else X[:, columns]


def _settled(selection: Selection, record: Record, X: Array, y: Any) -> Selection:
    """A fitted clone, from its record."""
    fitted: Selection = clone(selection)
    fitted.n_features_in_ = record.grouping.n_columns
    if len(record.trace):
        fitted._settle(record, X, y)
    return fitted

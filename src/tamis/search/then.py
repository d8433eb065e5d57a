"""A search on what another search kept."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from tamis._arrays import Array, Subset
from tamis.blocks.table import BlockTable
from tamis.contract import Choice, Chosen, Progress, Record, Selection, Trace
from tamis.contract.explain import explained, unit_index
from tamis.contract.record import outside_pairs
from tamis.contract.run import Run
from tamis.contract.search import FITTING
from tamis.contract.steps import Event
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NothingSelected
from tamis.search.categories import for_columns


class PartRuns:
    """Two selections on their way, the second on what the first kept."""

    #: A composition has no criterion of its own.
    criterion = None

    def __init__(
        self,
        selections: "tuple[Selection, Selection]",
        X: Array,
        y: NDArray[Any] | None,
        shares: list[dict[str, Any]],
        done: tuple[Record, ...],
        grouping: Grouping,
    ):
        self._selections, self._X, self._y, self._shares = selections, X, y, shares
        self._done, self._grouping = done, grouping
        self._runs: list[Run] = []

    def run(self, index: int, units: Subset) -> Run:
        """One part on some units, from where its record left it."""
        done = self._done[index] if index < len(self._done) else None
        columns, left = self._grouping.columns(units), self._grouping.restricted(units)
        selection = for_columns(self._selections[index], columns, self._X.shape[1])
        X, y = _of_columns(self._X, columns), self._y
        if isinstance(X, BlockTable) and not selection.takes_blocks:
            X, y = X.held(type(selection).__name__)
        run = Run(selection, X, y, self._shares[index], done, left)
        self._runs.append(run)
        return run

    @property
    def parts(self) -> tuple[Record, ...]:
        """The records of the parts begun, now or in the run that is resumed."""
        return (*(run.record for run in self._runs), *self._done[len(self._runs) :])

    @property
    def n_evaluations(self) -> int:
        """Scores asked for by all parts."""
        return sum(part.n_evaluations for part in self.parts)


class Then(MetaEstimatorMixin, Selection):
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

    def _steps(
        self, criterion: PartRuns, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Event]:
        first = criterion.run(0, np.arange(n_units))
        for _ in first:
            yield Progress({})
        kept = first.settled()
        units = kept.kept_units
        if not len(units):
            raise NothingSelected(
                f"Then: nothing is left for {type(self.second).__name__}, as "
                f"{type(self.first).__name__} keeps no column: {kept.reason}"
            )
        yield from criterion.run(1, units).on(units, done, kept.n_evaluations)

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> PartRuns:
        parts, shares = (self.first, self.second), self._shares(params)
        return PartRuns(parts, X, y, shares, done.parts, done.grouping)

    def _seeded(self, seeds: dict[str, int] | None) -> "tuple[Then, dict[str, int]]":
        return clone(self), {}  # each part has seeds, and a record, of its own

    def _unsized(self, bare: Any) -> Any:
        return bare.set_params(second=bare.second._unsized(bare.second))

    @property
    def extends(self) -> bool:  # type: ignore[override]
        """As the second search does."""
        return bool(self.second.extends)

    def _choice(self) -> Choice:
        choice: Choice = self.second._choice()
        return choice

    def _picked(self, run: Run) -> Chosen:
        """What the second search keeps of the columns that it saw."""
        assert run.source is not None
        second = run.source.parts[-1]
        return Chosen(second.chosen, second.reason)

    def _enough(self, run: Run) -> bool:
        return False  # the second search asks its own choice

    def _complete(self, trace: Trace) -> bool:
        return bool(self.second._complete(trace))

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
            part._check()

    def _size(self, n_units: int) -> int | None:
        """Number of units kept by both, None where only the data can tell."""
        kept = self.first._size(n_units)
        return None if kept is None else self.second._size(kept)

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Where both parts do."""
        return bool(self.first.takes_categories and self.second.takes_categories)

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """As the first part does: what it keeps is few, and read for the second where need be."""
        return bool(self.first.takes_blocks)

    def _check_blocks(self) -> None:
        self.first._check_blocks()

    @property
    def _takes_metadata(self) -> bool:
        return bool(self.first._takes_metadata or self.second._takes_metadata)

    def _shares(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Metadata for each part: by requests if routing is enabled, else where they are of use."""
        if get_config()["enable_metadata_routing"] and params:
            routed = process_routing(self, "fit", **params)
            return [dict(routed.first.fit), dict(routed.second.fit)]
        if not self._takes_metadata:
            return [params, params]  # the first part says why not
        return [params if p._takes_metadata else {} for p in (self.first, self.second)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to both searches."""
        return MetadataRouter(owner=self).add(
            first=self.first, second=self.second, method_mapping=FITTING
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        parts = [part.__sklearn_tags__() for part in (self.first, self.second)]
        tags.target_tags.required = any(part.target_tags.required for part in parts)
        tags.target_tags.multi_output = all(part.target_tags.multi_output for part in parts)
        tags.input_tags.allow_nan = all(part.input_tags.allow_nan for part in parts)
        tags.input_tags.sparse = all(part.input_tags.sparse for part in parts)
        return tags


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

"""A search on what another search kept."""

from dataclasses import replace
from itertools import zip_longest
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from tamis._arrays import Subset
from tamis.contract import check_data
from tamis.exceptions import IncompatibleCriterion
from tamis.record import Record
from tamis.search.base import FITTING
from tamis.selection import Selection
from tamis.trace import Trace


class Then(MetaEstimatorMixin, CallbackSupportMixin, Selection):
    """Run ``second`` on the columns that ``first`` kept, and speak of the original columns.

    A fast filter before a careful search. ``order_``, ``ranking_`` and ``scores_`` have what
    ``second`` says of the columns it saw, and behind them what ``first`` says of those it dropped.
    ``trace_`` holds the steps of ``second``; those of ``first`` are in ``first_.trace_`` and
    ``record_.parts``.

    Parameters
    ----------
    first, second : Search, Then or an embedded selector

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

    def __init__(self, first: Any, second: Any):
        self.first = first
        self.second = second

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Fit both searches, one after the other; metadata go to the parts that can use them."""
        return self._run(X, y, params, None)

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: "Record | str", **params: Any
    ) -> Self:
        """Continue from the record of a fit that was stopped, or its file, on the same data."""
        return self._run(X, y, params, record)

    def _run(self, X: Any, y: Any, params: dict[str, Any], record: Any) -> Self:
        self._forget()
        self._check()
        done = None if record is None else Record.of(record)
        X, y = check_data(self, X, y)
        self._size(X.shape[1])
        params = {name: value for name, value in params.items() if value is not None}
        fresh = Record.begin(self, X, y, params)
        if done is not None:
            done.check_continues(fresh)
        self._fit_parts(X, y, self._shares(params), list(done.parts) if done else [], fresh)
        return self

    def _fit_parts(
        self, X: Any, y: Any, shares: list[dict[str, Any]], done: list[Record], fresh: Record
    ) -> None:
        """Fit one part after the other; where the first is stopped, the second is not begun."""
        columns = np.arange(X.shape[1])
        searches = [clone(self.first), clone(self.second)]
        parts: list[Record] = []
        for search, share, known in zip_longest(searches, shares, done[:2]):
            search.set_callbacks(*getattr(self, "_skl_callbacks", []))
            try:
                if known is None:
                    search.fit(X[:, columns], y, **share)
                else:
                    search.resume(X[:, columns], y, record=known, **share)
            finally:
                if hasattr(search, "record_"):
                    parts.append(search.record_)
                    self.record_ = _joined(fresh, parts, columns)
            self._settle(self.record_)
            if not search.record_.finished and search is searches[0]:
                return
            columns = columns[search.support_]
        self.first_, self.second_ = searches
        self._rank_what_was_dropped()

    def _rank_what_was_dropped(self) -> None:
        """Behind the columns that the second search saw come the others, as the first left them."""
        seen, first, second = self.first_.support_, self.first_, self.second_
        self.order_ = np.r_[np.flatnonzero(seen)[second.order_], first.order_[first.n_features_ :]]
        self.ranking_ = first.ranking_ + second.ranking_.max() - 1
        self.ranking_[seen] = second.ranking_
        self.scores_ = first.scores_.copy()
        self.scores_[seen] = second.scores_

    def _check(self) -> None:
        """Whether both parts can do their work, before any of it."""
        for part in (self.first, self.second):
            if not isinstance(part, Selection):
                raise IncompatibleCriterion(
                    f"Then needs two searches, not {part!r}. Write Then(Ranking(FisherScore(), "
                    "n_features_to_select=50), Forward(...))."
                )
            part._check()

    def _size(self, n_units: int) -> int | None:
        """Number of units kept by both, None where only the data can tell."""
        kept = self.first._size(n_units)
        return None if kept is None else self.second._size(kept)

    @property
    def _takes_metadata(self) -> bool:
        return self.first._takes_metadata or self.second._takes_metadata

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
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags


def _joined(fresh: Record, parts: list[Record], columns: Subset) -> Record:
    """The record of the last search begun, in the original columns, with those of both inside."""
    last = parts[-1]
    steps = (s._replace(subset=columns[s.subset], moved=columns[s.moved]) for s in last.trace)
    return replace(
        fresh,
        trace=Trace(fresh.trace.n_units, steps),
        chosen=last.chosen,
        n_evaluations=sum(part.n_evaluations for part in parts),
        finished=len(parts) == 2 and last.finished,
        parts=tuple(parts),
    )

"""A search on what another search kept."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Subset, fingerprint
from tamis._expression import write
from tamis.contract import check_data
from tamis.exceptions import IncompatibleCriterion
from tamis.record import Record
from tamis.search.base import Search
from tamis.selection import Selection
from tamis.trace import Trace, changed


class Then(MetaEstimatorMixin, CallbackSupportMixin, Selection):
    """Run ``second`` on the columns that ``first`` kept, and speak of the original columns.

    A fast filter before a careful search. ``order_`` has the columns of ``second`` first, then
    those that ``first`` dropped, in its order. The trace holds the steps of both.

    Parameters
    ----------
    first, second : Search or Then

    Attributes
    ----------
    first_, second_ : Search or Then
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

    def __init__(self, first: "Search | Then", second: "Search | Then"):
        self.first = first
        self.second = second

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Fit both searches, one after the other; metadata go to both."""
        return self._run(X, y, params, None)

    def resume(
        self, X: ArrayLike, y: ArrayLike | None = None, *, record: Record, **params: Any
    ) -> Self:
        """Continue from the record of a fit that was stopped, on the same data."""
        return self._run(X, y, params, record)

    def _run(self, X: Any, y: Any, params: dict[str, Any], record: Record | None) -> Self:
        for part in (self.first, self.second):
            if not isinstance(part, Search | Then):
                raise IncompatibleCriterion(
                    f"Then needs two searches, not {part!r}. Write Then(Ranking(FisherScore(), "
                    "n_features_to_select=50), Forward(...))."
                )
        X, y = check_data(self, X, y)
        draft = Record(
            expression=write(self, strict=False),
            data=fingerprint(X, y),
            n_samples=len(X),
            feature_names=tuple(getattr(self, "feature_names_in_", ())) or None,
            seeds={},
            trace=Trace(X.shape[1]),
            chosen=0,
            n_evaluations=0,
            finished=False,
        )
        parts = list(record.parts) if record is not None else []
        if record is not None:
            record.check_matches(draft.expression, draft.data)
        self._fit_parts(X, y, params, parts, draft)
        return self

    def _fit_parts(
        self, X: Any, y: Any, params: dict[str, Any], parts: list[Record], draft: Record
    ) -> None:
        """Fit one part after the other; stopped in the first, the second is not begun."""
        kept = np.arange(X.shape[1])
        fitted: list[Search | Then] = []
        for place, part in enumerate((self.first, self.second)):
            search = clone(part)
            search.set_callbacks(*getattr(self, "_skl_callbacks", []))
            fitted.append(search)
            try:
                if place < len(parts):
                    search.resume(X[:, kept], y, record=parts[place], **params)
                else:
                    search.fit(X[:, kept], y, **params)
            finally:
                if hasattr(search, "record_"):
                    parts[place:] = [search.record_]
                    self._settle(_joined(draft, parts))
            if not search.record_.finished:
                return
            kept = kept[search.support_]
        self.first_, self.second_ = fitted
        self.order_ = np.r_[
            np.flatnonzero(self.first_.support_)[self.second_.order_],
            self.first_.order_[self.first_.n_features_ :],
        ]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to both searches."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(
            first=self.first, second=self.second, method_mapping=mapping
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        parts = [part.__sklearn_tags__() for part in (self.first, self.second)]
        tags.target_tags.required = any(part.target_tags.required for part in parts)
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = False
        return tags


def _joined(draft: Record, parts: list[Record]) -> Record:
    """One record of both searches, in the original columns.

    The second starts from what the first kept, so the steps of the first beyond its chosen one
    are left out.
    """
    trace = Trace(draft.trace.n_units)
    columns = np.arange(draft.trace.n_units)
    before: Subset | None = None
    for part in parts:
        end = len(part.trace) if part is parts[-1] else part.chosen + 1
        for place, step in enumerate(part.trace[:end]):
            subset, moved = columns[step.subset], columns[step.moved]
            if before is not None and place == 0:
                moved = changed(before, subset)
            trace.append(step._replace(subset=subset, moved=moved))
            before = subset
        columns = columns[part.trace[part.chosen].subset]
    last = parts[-1]
    return replace(
        draft,
        trace=trace,
        chosen=len(trace) - len(last.trace) + last.chosen,
        n_evaluations=sum(part.n_evaluations for part in parts),
        finished=len(parts) == 2 and last.finished,
        parts=tuple(parts),
    )

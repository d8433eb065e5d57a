"""The best individual features."""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import EMPTY, Array, best_first
from tamis.contract import (
    BackwardCriterion,
    Counted,
    Criterion,
    Entries,
    ForwardCriterion,
    Scores,
    Search,
    SizeLike,
    Trace,
)
from tamis.exceptions import IncompatibleCriterion, InvalidParameter


class Ranking(Search):
    """Sort the features by one score each and keep the first: naive, and hard to beat for speed.

    Parameters
    ----------
    criterion : ForwardCriterion or BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    by : {"alone", "removal"} or None, default=None
        ``"alone"`` is the gain over the empty set, ``"removal"`` the loss from the full set (the
        scheme called INIT in the literature). None takes the first where the criterion can.
    standardize : bool, default=True

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore
    >>> X, y = load_iris(return_X_y=True)
    >>> Ranking(FisherScore(), n_features_to_select=2).fit(X, y).order_
    array([2, 3, 0, 1])
    """

    needs = (ForwardCriterion, BackwardCriterion)
    nested = True
    scores_alone = True

    def __init__(
        self,
        criterion: Criterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        by: str | None = None,
        standardize: bool = True,
    ):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
        self.by = by

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Entries]:
        if len(done):  # all at once, or not yet
            return
        everything = np.arange(n_units)
        if self._by() == "alone":
            scores, errors = criterion.gain(EMPTY, everything), criterion.errors(EMPTY)
        else:
            scores, errors = criterion.loss(everything), criterion.errors(everything)
        order = best_first(scores)
        values = self._values(criterion, scores[order])
        yield Entries(order, Scores(everything, scores, errors), values)

    def _values(self, criterion: Counted, falling: Array) -> Array:
        """Values of the nested subsets, where they follow from the scores."""
        if getattr(criterion.criterion, "additive", False):
            with np.errstate(invalid="ignore"):  # infinity less infinity is no value
                return np.cumsum(falling)
        return np.full(len(falling), np.nan)

    def _n_rounds(self, n_units: int, size: int | None) -> int:
        return 1

    def _by(self) -> str:
        if self.by is not None:
            return self.by
        return "alone" if isinstance(self.criterion, ForwardCriterion) else "removal"

    def _check(self) -> None:
        super()._check()
        if self.by not in (None, "alone", "removal"):
            raise InvalidParameter(f"Ranking needs by='alone' or by='removal', not {self.by!r}.")
        need = ForwardCriterion if self._by() == "alone" else BackwardCriterion
        if not isinstance(self.criterion, need):
            scored_by = type(self.criterion).__name__
            other = "removal" if self._by() == "alone" else "alone"
            raise IncompatibleCriterion(
                f"Ranking(by={self._by()!r}) cannot be scored by {scored_by}. Use "
                f"Ranking({scored_by}(...), by={other!r})."
            )

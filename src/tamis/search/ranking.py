"""The best individual features."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, best_first, snapped
from tamis._checks import NONE, Constraints, one_of
from tamis.contract import BackwardCriterion, Entries, ForwardCriterion, Scores, Search, Step, Trace
from tamis.contract.choice import SizeLike
from tamis.contract.criterion import Criterion
from tamis.contract.search import Counted
from tamis.exceptions import IncompatibleCriterion
from tamis.search.greedy import from_fixed, others


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
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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

    _constraints: ClassVar[Constraints] = {"by": one_of("alone", "removal") | NONE}

    def __init__(
        self,
        criterion: Criterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        by: str | None = None,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
        self.by = by

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step | Entries]:
        value = 0.0
        if len(criterion.fixed):
            if not len(done):
                yield (start := from_fixed(criterion))
            value = done[0].value if len(done) else start.value
        free = others(criterion.fixed, n_units)
        if len(done) > min(len(criterion.fixed), 1) or not len(free):  # all at once, or not yet
            return
        scores, errors = self._scores(criterion, free, np.arange(n_units))
        order = self._ordered(criterion, free, scores, n_units)
        values = self._values(criterion, scores[order], value)
        yield Entries(free[order], Scores(free, scores, errors), values)

    def _scores(self, criterion: Counted, free: Subset, everything: Subset) -> tuple[Array, Array]:
        """Scores of the units that are not fixed, and their standard errors where known."""
        if self._by() == "alone":
            return criterion.gain(EMPTY, free), criterion.errors(EMPTY)
        scores, errors = criterion.loss(everything)[free], criterion.errors(everything)
        return scores, errors[free] if len(errors) else errors

    def _ordered(self, criterion: Counted, free: Subset, scores: Array, n_units: int) -> Subset:
        """Positions from the best score to the worst; of equals the best by opinion, or first.

        Constant columns come last: they score 0, and noise scores less where scores may be
        negative.
        """
        order = self._by_score(criterion, free, scores, n_units)
        constant = (np.isin(free, criterion.idle) & (scores == 0))[order]
        return np.concatenate([order[~constant], order[constant]])

    def _by_score(self, criterion: Counted, free: Subset, scores: Array, n_units: int) -> Subset:
        """Positions from the best score to the worst; of equals the best by opinion, or first."""
        if not criterion.has_opinion:
            return best_first(scores)
        cut = snapped(scores)
        _, group, count = np.unique(cut, return_inverse=True, return_counts=True)
        tied = np.flatnonzero(count[group] > 1)
        opinions = np.zeros(len(free))
        alone = self._by() == "alone"
        opinions[tied] = criterion.opinions(EMPTY if alone else np.arange(n_units), free[tied])
        # where removal is scored, a column is good that the opinion cannot do without
        return np.lexsort((-opinions if alone else opinions, -cut))

    def _values(self, criterion: Counted, falling: Array, start: float) -> Array:
        """Values of the nested subsets, where they follow from the scores."""
        if getattr(criterion.criterion, "additive", False):
            with np.errstate(invalid="ignore"):  # infinity less infinity is no value
                return np.cumsum(np.append(start, falling))[1:] if start else np.cumsum(falling)
        return np.full(len(falling), np.nan)

    def _by(self) -> str:
        if self.by is not None:
            return self.by
        return "alone" if isinstance(self.criterion, ForwardCriterion) else "removal"

    def _check(self) -> None:
        super()._check()
        need = ForwardCriterion if self._by() == "alone" else BackwardCriterion
        if not isinstance(self.criterion, need):
            scored_by = type(self.criterion).__name__
            other = "removal" if self._by() == "alone" else "alone"
            raise IncompatibleCriterion(
                f"Ranking(by={self._by()!r}) cannot be scored by {scored_by}. Use "
                f"Ranking({scored_by}(...), by={other!r})."
            )

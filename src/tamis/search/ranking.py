"""Ranking of the features by individual scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, best_first, snapped
from tamis._checks import NONE, Constraints, one_of
from tamis.contract import BackwardCriterion, Entries, ForwardCriterion, Scores, Search, Step, Trace
from tamis.contract.search import Counted
from tamis.exceptions import IncompatibleCriterion
from tamis.search.greedy import from_fixed, others


@dataclass(eq=False, repr=False, kw_only=True)
class Ranking(Search):
    """Sort the features by individual scores and select the first ones.

    Parameters
    ----------
    criterion : ForwardCriterion or BackwardCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    by : {"alone", "removal"} or None, default=None
        The score to sort by. ``"alone"`` is the gain of adding the feature to the empty set.
        ``"removal"`` is the loss of removing it from the full set (called INIT in the literature).
        None means ``"alone"`` if the criterion can score additions, else ``"removal"``.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

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

    by: str | None = None

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step | Entries]:
        value = 0.0
        if len(criterion.fixed):
            if not len(done):
                yield (start := from_fixed(criterion))
            value = done[0].value if len(done) else start.value
        free = others(criterion.fixed, n_units)
        if len(done) > min(len(criterion.fixed), 1) or not len(free):  # nothing left to rank
            return
        scores, errors = self._scores(criterion, free, np.arange(n_units))
        order = self._ordered(criterion, free, scores, n_units)
        values = self._values(criterion, scores[order], value)
        yield Entries(free[order], Scores(free, scores, errors), values)

    def _scores(self, criterion: Counted, free: Subset, everything: Subset) -> tuple[Array, Array]:
        """Return the scores of the units that are not fixed, and their standard errors if known."""
        if self._by() == "alone":
            return criterion.gain(EMPTY, free), criterion.errors(EMPTY)
        scores, errors = criterion.loss(everything)[free], criterion.errors(everything)
        return scores, errors[free] if len(errors) else errors

    def _ordered(self, criterion: Counted, free: Subset, scores: Array, n_units: int) -> Subset:
        """Return the positions of the scores, from the best to the worst.

        Constant columns come last, even if other columns have negative scores.
        """
        order = self._by_score(criterion, free, scores, n_units)
        constant = (np.isin(free, criterion.idle) & (scores == 0))[order]
        return np.concatenate([order[~constant], order[constant]])

    def _by_score(self, criterion: Counted, free: Subset, scores: Array, n_units: int) -> Subset:
        """Return the positions in order of score.

        Ties go to the best tie-breaking score, then to the first unit.
        """
        if not criterion.has_opinion:
            return best_first(scores)
        cut = snapped(scores)
        _, group, count = np.unique(cut, return_inverse=True, return_counts=True)
        tied = np.flatnonzero(count[group] > 1)
        opinions = np.zeros(len(free))
        alone = self._by() == "alone"
        opinions[tied] = criterion.opinions(EMPTY if alone else np.arange(n_units), free[tied])
        # for a removal, a high score of the other columns means that this column is dispensable
        return np.lexsort((-opinions if alone else opinions, -cut))

    def _values(self, criterion: Counted, falling: Array, start: float) -> Array:
        """Return the values of the nested subsets, or NaN if the scores do not determine them."""
        if getattr(criterion.criterion, "additive", False):
            with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN
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

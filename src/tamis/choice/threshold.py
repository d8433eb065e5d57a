"""Choices by a bound on the score of one move after the other."""

from typing import Any, ClassVar

import numpy as np

from tamis._checks import Constraints, number
from tamis.contract.choice import Choice, Chosen, Context, Walker, spoken
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion, NothingSelected


class Threshold(Choice):
    """Add while the score is at least ``minimum``; remove while it is less.

    Parameters
    ----------
    minimum : float
        The least score at which a column is worth its place.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> X, y = load_iris(return_X_y=True)
    >>> Ranking(Correlation(), n_features_to_select=Threshold(0.9)).fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    needs_nested = True

    _constraints: ClassVar[Constraints] = {"minimum": number()}

    def __init__(self, minimum: float):
        self.minimum = minimum

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        moves = trace.moves()
        wrong = moves.entered == (moves.score < self.minimum)
        first = int(moves.step[wrong].min()) if wrong.any() else len(trace)
        if first == 0:
            raise NothingSelected(
                f"No feature reaches the threshold {self.minimum}: the best score is "
                f"{trace[0].score[0]:.4g}. Lower the threshold, or ask for a number of features."
            )
        index = first - 1
        verb = "stays" if trace.growing is False else "enters"
        return Chosen(
            index,
            f"{context.counted(trace.sizes[index])}: each {verb} by a score of {self.minimum:g} or "
            f"more.{context.beside_fixed}",
        )


class FalseDiscovery(Choice):
    """As many features as keep the false discovery rate at ``q`` (Benjamini and Hochberg 1995).

    For ``Ranking(PValue())``: the largest k with p_(k) <= q k / d, of the d features that are not
    fixed.

    Parameters
    ----------
    q : float, default=0.05
        The rate, between 0 and 1.
    """

    needs_nested = True

    _constraints: ClassVar[Constraints] = {"q": number(above=0, below=1)}

    def __init__(self, q: float = 0.05):
        self.q = q

    def check(self, search: Walker, criterion: Any) -> None:
        if not (search.scores_alone and getattr(criterion, "scores_are_log_p", False)):
            raise IncompatibleCriterion(
                f"FalseDiscovery needs the p-value of every feature; {spoken(search, criterion)} "
                "has none. Use Ranking(PValue(), n_features_to_select=FalseDiscovery(0.05))."
            )
        super().check(search, criterion)

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        moves = trace.moves()
        p_values = np.exp(-moves.score)
        allowed = self.q * np.arange(1, len(p_values) + 1) / len(p_values)
        passing = np.flatnonzero(p_values <= allowed)
        if not len(passing) and trace.start.any():  # what is fixed is not asked
            return Chosen(
                0, f"No feature passes a false discovery rate of {self.q:g}: what is fixed."
            )
        if not len(passing):
            raise NothingSelected(
                f"No feature passes a false discovery rate of {self.q}: the smallest p-value is "
                f"{p_values[0]:.3g}, {allowed[0]:.3g} was needed. Raise q, or ask for a number of "
                "features."
            )
        step, n_passing = int(moves.step[passing[-1]]), int(passing[-1]) + 1
        passes = "passes" if n_passing == 1 else "pass"
        return Chosen(
            step,
            f"{context.counted(n_passing)} {passes}: at most a share of {self.q:g} of them is "
            "expected to be unrelated to the target, if the p-values are right."
            f"{context.beside_fixed}",
        )

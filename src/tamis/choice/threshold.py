"""Choices that set a limit on the score, or the p-value, of each selected column."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis._checks import Constraints, number
from tamis.contract.choice import Choice, Chosen, Context, Walker, describe_search
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion, NothingSelected

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion


@dataclass(eq=False, repr=False)
class Threshold(Choice):
    """The columns whose score is at least a minimum.

    A forward search adds columns while their scores are at least ``minimum``. A backward search
    removes columns while their scores are less than ``minimum``.

    Parameters
    ----------
    minimum : float
        Minimum score of a selected column.

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

    minimum: float

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


@dataclass(eq=False, repr=False)
class FalseDiscovery(Choice):
    """The largest number of features at a false discovery rate of ``q``.

    It is used with ``Ranking(PValue())``. The d features that are not fixed are sorted by their
    p-values. The first k of them are selected, where k is the largest number with p_(k) <= q k / d
    (Benjamini and Hochberg 1995).

    Parameters
    ----------
    q : float, default=0.05
        The false discovery rate, between 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tamis.criteria import PValue
    >>> from tamis.search import Ranking
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ranking(PValue(), n_features_to_select=FalseDiscovery(0.01)).fit(X, y).n_features_
    9
    """

    needs_nested = True

    _constraints: ClassVar[Constraints] = {"q": number(above=0, below=1)}

    q: float = 0.05

    def check(self, search: Walker, criterion: "Criterion") -> None:
        if not (search.scores_alone and getattr(criterion, "scores_are_log_p", False)):
            raise IncompatibleCriterion(
                "FalseDiscovery needs the p-value of every feature; "
                f"{describe_search(search, criterion)} has none. Use "
                "Ranking(PValue(), n_features_to_select=FalseDiscovery(0.05))."
            )
        super().check(search, criterion)

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        moves = trace.moves()
        p_values = np.exp(-moves.score)
        allowed = self.q * np.arange(1, len(p_values) + 1) / len(p_values)
        passing = np.flatnonzero(p_values <= allowed)
        if not len(passing) and trace.start.any():  # fixed columns are selected without a test
            return Chosen(0, f"Only fixed features: no other passes a rate of {self.q:g}.")
        if not len(passing):
            raise NothingSelected(
                f"No feature passes a false discovery rate of {self.q}: the smallest p-value is "
                f"{p_values[0]:.3g}, but it must be at most {allowed[0]:.3g}. Raise q, or set "
                "n_features_to_select."
            )
        step, n_passing = int(moves.step[passing[-1]]), int(passing[-1]) + 1
        passes = "passes" if n_passing == 1 else "pass"
        return Chosen(
            step,
            f"{context.counted(n_passing)} {passes}: at most a share of {self.q:g} of them is "
            "expected to be unrelated to the target, if the p-values are right."
            f"{context.beside_fixed}",
        )

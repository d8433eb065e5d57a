"""Choices by the curve of the values, or of the gains, of a walk."""

from typing import Any, ClassVar

import numpy as np

from tamis._arrays import Array, improves
from tamis._checks import Constraints, integer
from tamis.contract.choice import Choice, Chosen, Context, Walker, check_values
from tamis.contract.criterion import SubsetCriterion
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion

#: How much too good the accuracy of the best subset is before patience is lost, on classes of pure
#: noise: 0.126 with three steps of patience.
TOO_GOOD = 0.13


class Patience(Choice):
    """Stop once the value has not been bettered for ``steps`` steps, and keep the best seen.

    It ends the walk: what lies beyond was never looked at, and the reason says so. A walk that
    removes columns goes on while the value is at least as good, one that adds them while it is
    better: of equals the smaller subset is kept. On classes of pure noise it keeps some 6 of 50
    columns, whose accuracy seems 0.13 better than it is.

    :class:`~tamis.criteria.ScoreSensitivity` gives no values, but its losses are falls of a score:
    the value is then minus the sum of the losses of the columns removed. Other sensitivities are
    never negative, so that every removal costs, and they are refused.

    Parameters
    ----------
    steps : int, default=3

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from tamis.criteria import CrossValidated
    >>> from tamis.search import Backward
    >>> search = Backward(CrossValidated(KNeighborsClassifier()), n_features_to_select=Patience(1))
    >>> search.fit(*load_iris(return_X_y=True)).get_support(indices=True)
    array([2, 3])
    """

    needs_nested = True

    _constraints: ClassVar[Constraints] = {"steps": integer(1)}

    def __init__(self, steps: int = 3):
        self.steps = steps

    def check(self, search: Walker, criterion: Any) -> None:
        super().check(search, criterion)
        if search.scores_alone or not getattr(criterion, "loses_score", False):
            check_values("Patience", search, criterion, "Patience()")

    def enough(self, trace: Trace, context: Context) -> bool:
        return self._watched(trace)[1]

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index, stopped = self._watched(trace)
        size, value = trace.sizes[index], _values(trace)[index]
        reason = f"{context.counted(size)}, of value {value:.4g}: "
        if stopped:
            beyond = "larger" if trace.growing else "smaller"
            reason += f"{self.steps} more step(s) did not better it, so {beyond} subsets were not "
            reason += "looked at, and their columns are undecided; "
        else:
            reason += "the walk ended before it lost patience; "
        return Chosen(index, reason + context.flattering(TOO_GOOD))

    def _watched(self, trace: Trace) -> tuple[int, bool]:
        """The best step seen, and whether patience was lost after it."""
        growing, values, sizes = trace.growing, _values(trace), trace.sizes
        seen = np.flatnonzero(sizes > 0)
        index = int(seen[0]) if len(seen) else 0
        for step in seen[1:]:
            better = improves(values[step], values[index])
            if better or (not growing and not improves(values[index], values[step])):
                index = int(step)
            elif step - index >= self.steps:
                return index, True
        return index, False


def _values(trace: Trace) -> Array:
    """Values of the steps; without any, minus the sum of what was lost by the removals so far."""
    if not np.isnan(trace.values).all():
        return trace.values
    moves = trace.moves()
    lost: Array = np.bincount(moves.step, moves.score, len(trace)).astype(float)
    return -np.cumsum(lost)


class Knee(Choice):
    """Keep what lies before the bend of the falling gains: where they begin to level off.

    The bend is the gain that lies furthest below the line from the first gain to the last. On
    columns of noise it keeps a dozen as readily as on relevant ones: it describes a curve and
    promises nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore
    >>> from tamis.search import Ranking
    >>> X, y = load_iris(return_X_y=True)
    >>> Ranking(FisherScore(), n_features_to_select=Knee()).fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    needs_nested = True

    def check(self, search: Walker, criterion: Any) -> None:
        super().check(search, criterion)
        if not search.scores_alone and not isinstance(criterion, SubsetCriterion):
            name = type(criterion).__name__
            instead = "Ask" if criterion is search else f"Use Ranking({name}(...)), or ask"
            raise IncompatibleCriterion(
                f"Knee needs gains that fall from step to step; a score of {name} is no marginal "
                f"gain: it says who is next, not how much it brings. {instead} for a "
                "number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        gains, n_before = _gains(trace)
        if not len(gains):
            return Chosen(len(trace) - 1, "Nothing was added or taken away: there is no bend.")
        n_fixed = 0 if context.grouping is None else len(context.grouping.fixed)
        wanted = n_before + _bend(gains, least=int(n_before == n_fixed))
        size = min(size for size in trace.sizes.tolist() if size >= wanted)
        lies = "lies" if size == 1 else "lie"
        go = "fall" if gains[-1] <= gains[0] else "rise, as gains should not,"
        return Chosen(
            int(np.flatnonzero(trace.sizes == size)[0]),
            f"{context.counted(size)} {lies} before the bend of the gains, which {go} from "
            f"{gains[0]:.4g} to {gains[-1]:.4g}: a description of the curve, no test; of pure "
            f"noise a dozen lie there too.{context.beside_fixed}",
        )


def _gains(trace: Trace) -> tuple[Array, int]:
    """What each unit brought, the first one first, and how many had come before all of them.

    These are what is fixed, or what a walk that takes away left in the end.
    """
    score = trace.moves().score
    return (score if trace.growing else score[::-1]), int(min(trace.start.sum(), trace.sizes.min()))


def _bend(gains: Array, least: int) -> int:
    """Number of gains before the one furthest below the line from first to last."""
    finite = gains[np.isfinite(gains)]
    lowest, highest = finite.min(initial=0.0), finite.max(initial=0.0)
    # the gain of a column that tells all has no bound: it must stand clearly above the others
    known = np.nan_to_num(gains, nan=lowest, posinf=2 * highest, neginf=lowest)
    line = np.linspace(known[0], known[-1], len(known))
    return max(least, int(np.argmax(line - known)))

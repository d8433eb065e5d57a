"""Choices based on the curve of the values or of the gains along a search path."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis._arrays import Array, improves
from tamis._checks import Constraints, integer, number
from tamis.contract.choice import (
    FLATTERS,
    Choice,
    Chosen,
    Context,
    Walker,
    check_values,
    describe_search,
)
from tamis.contract.criterion import SubsetCriterion
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion
from tamis.validation.resamples import error_of_mean

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion

#: Optimistic bias of the selected subset's accuracy if the classes are pure noise.
TOO_GOOD = 0.13


@dataclass(eq=False, repr=False)
class Patience(Choice):
    """The best subset so far, once several steps in a row bring no improvement.

    The search ends at that point, so subsets beyond it are never evaluated. Ties go to the smaller
    subset: columns are removed while the value is at least as good, but added only while it
    improves. If the classes are pure noise, about 6 of 50 columns are selected, and the accuracy is
    0.13 too optimistic.

    :class:`~tamis.criteria.ScoreSensitivity` has no values, but its losses are decreases of a
    score. The value of a subset is then minus the sum of the losses of all removed columns. Other
    sensitivities are refused. They are never negative, so a smaller subset could never be better.

    Parameters
    ----------
    steps : int, default=3
        Number of steps without improvement after which the search stops.

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

    steps: int = 3

    def check(self, search: Walker, criterion: "Criterion") -> None:
        super().check(search, criterion)
        if search.scores_alone or not getattr(criterion, "loses_score", False):
            check_values("Patience", search, criterion, "Patience()")

    def enough(self, trace: Trace, context: Context) -> bool:
        return self._best_step(trace)[1]

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index, stopped = self._best_step(trace)
        size, value = trace.sizes[index], _values(trace)[index]
        reason = f"{context.counted(size)}, of value {value:.4g}: "
        if stopped:
            beyond = "larger" if trace.growing else "smaller"
            reason += f"{self.steps} more step(s) did not improve it, so {beyond} subsets were not "
            reason += "tried, and their columns are undecided; "
        else:
            reason += f"the search ended before {self.steps} step(s) without improvement; "
        return Chosen(index, reason + context.flattering(TOO_GOOD))

    def _best_step(self, trace: Trace) -> tuple[int, bool]:
        """Return the best step so far, and whether the search should stop.

        It should stop if none of the next ``steps`` steps is better.
        """
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
    """Return the value of each step. If there are no values, use minus the sum of the losses."""
    if not np.isnan(trace.values).all():
        return trace.values
    moves = trace.moves()
    lost: Array = np.bincount(moves.step, moves.score, len(trace)).astype(float)
    return -np.cumsum(lost)


class Knee(Choice):
    """The columns before the knee of the gains, where the curve begins to level off.

    The knee is the gain furthest below the straight line from the first gain to the last. It only
    describes the curve and is not a test: if all columns are pure noise, it still selects about a
    dozen.

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

    def check(self, search: Walker, criterion: "Criterion") -> None:
        super().check(search, criterion)
        if not search.scores_alone and not isinstance(criterion, SubsetCriterion):
            name = type(criterion).__name__
            instead = "Ask" if criterion is search else f"Use Ranking({name}(...)), or ask"
            raise IncompatibleCriterion(
                f"Knee needs gains that fall from step to step, but the scores of {name} are not "
                f"marginal gains: they only rank the columns. {instead} for a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        gains, n_before = _gains(trace)
        if not len(gains):
            return Chosen(len(trace) - 1, "No column was added or removed, so there is no knee.")
        n_fixed = 0 if context.grouping is None else len(context.grouping.fixed)
        wanted = n_before + _knee(gains, least=int(n_before == n_fixed))
        size = min(size for size in trace.sizes.tolist() if size >= wanted)
        lies = "lies" if size == 1 else "lie"
        change = "fall" if gains[-1] <= gains[0] else "rise (gains should fall)"
        return Chosen(
            int(np.flatnonzero(trace.sizes == size)[0]),
            f"{context.counted(size)} {lies} before the knee of the gains, which {change} from "
            f"{gains[0]:.4g} to {gains[-1]:.4g}. The knee describes the curve and is not a test: "
            f"from pure noise it selects about a dozen.{context.beside_fixed}",
        )


def _gains(trace: Trace) -> tuple[Array, int]:
    """Return the gain of each unit, in the order of selection, and the number of other units.

    A unit is a column or a group of columns. The other units have no gain: they are fixed, or were
    left when a backward search ended.
    """
    score = trace.moves().score
    return (score if trace.growing else score[::-1]), int(min(trace.start.sum(), trace.sizes.min()))


def _knee(gains: Array, least: int) -> int:
    """Return the number of gains before the knee, at least ``least``.

    The knee is the gain furthest below the straight line from the first gain to the last.
    """
    finite = gains[np.isfinite(gains)]
    lowest, highest = finite.min(initial=0.0), finite.max(initial=0.0)
    # a column that predicts perfectly has an infinite gain, which must stay the greatest
    known = np.nan_to_num(gains, nan=lowest, posinf=2 * highest, neginf=lowest)
    line = np.linspace(known[0], known[-1], len(known))
    return max(least, int(np.argmax(line - known)))


@dataclass(eq=False, repr=False)
class OneStandardError(Choice):
    """The smallest subset that is not clearly worse than the best.

    Each size is compared with the best size, fold by fold. The selected size is the smallest one
    whose mean loss of score is at most one standard error. The standard error is sd sqrt(1/R +
    n_test/n_train), where sd is the standard deviation of the loss over the R folds (Nadeau and
    Bengio 2003).

    The scores come from the same folds that guided the search, so they are optimistic. The
    differences between sizes are less biased.

    Parameters
    ----------
    n_errors : float, default=1.0
        Number of standard errors by which a smaller subset may be worse.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from tamis.criteria import CrossValidated
    >>> from tamis.search import Forward
    >>> search = Forward(CrossValidated(KNeighborsClassifier()),
    ...                  n_features_to_select=OneStandardError())
    >>> search.fit(*load_iris(return_X_y=True)).choice_.reason
    '2 columns reach the best cross-validated score, 0.9667; with 1 column the score is ...'
    """

    _constraints: ClassVar[Constraints] = {"n_errors": number(least=0)}

    n_errors: float = 1.0

    def check(self, search: Walker, criterion: "Criterion") -> None:
        if not hasattr(criterion, "fold_scores") or search.scores_alone:
            raise IncompatibleCriterion(
                f"OneStandardError needs a search that cross-validates each subset; "
                f"{describe_search(search, criterion)} does not. Use "
                "Forward(CrossValidated(estimator), n_features_to_select=OneStandardError())."
            )
        super().check(search, criterion)

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        best = _best_of_each_size(trace)
        folds = {size: context.criterion.fold_scores(trace[i].subset) for size, i in best.items()}
        means = {size: float(scores.mean()) for size, scores in folds.items()}
        top = min(size for size in means if not improves(max(means.values()), means[size]))
        ratio = context.criterion.test_ratio
        for size in sorted(folds):
            lost = folds[top] - folds[size]
            error = self.n_errors * error_of_mean(lost, ratio, single=0.0)
            if not improves(float(lost.mean()), error):
                break
        reach = "reaches" if top == 1 else "reach"
        found = f"{context.counted(top)} {reach} the best cross-validated score, {means[top]:.4g}"
        if size < top:
            within = "none" if error == 0 else f"{error:.2g}"
            other = (
                f"with {context.counted(size)} the score is {max(lost.mean(), 0.0):.2g} lower on "
                f"the same folds, within {self.n_errors:g} standard error(s) of the difference "
                f"({within})"
            )
        elif top > min(means):
            other = "every smaller number is clearly worse"
        else:
            other = "no fewer were tried"
        return Chosen(best[size], f"{found}; {other}; {FLATTERS}")


def _best_of_each_size(trace: Trace) -> dict[int, int]:
    """Return, for each size, the step with the greatest value. Ties go to the first step."""
    sizes, values = trace.sizes, trace.values
    found: dict[int, int] = {}
    for index in np.flatnonzero(sizes > 0):
        size = int(sizes[index])
        if size not in found or improves(values[index], values[found[size]]):
            found[size] = int(index)
    return found

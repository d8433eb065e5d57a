"""Choices by the standard error of a cross-validated score."""

from typing import Any, ClassVar

import numpy as np

from tamis._arrays import Array, improves
from tamis._checks import Constraints, number
from tamis.contract.choice import FLATTERS, Choice, Chosen, Context, Walker, spoken
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion


class OneStandardError(Choice):
    """The smallest subset that is not clearly worse than the best.

    Scores of the same folds are compared pair by pair: the smallest size is kept whose mean loss
    against the best size is within one standard error of that loss, sd sqrt(1/R + n_test/n_train)
    over R folds (Nadeau and Bengio 2003). Where both are right in every fold the loss is 0, and so
    is its error: the usual rule, by the error of the best alone, breaks there.

    The folds are those that guided the walk: their scores flatter, though less so their
    differences.

    Parameters
    ----------
    n_errors : float, default=1.0
        How many standard errors a smaller subset may lose.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from tamis.criteria import CrossValidated
    >>> from tamis.search import Forward
    >>> search = Forward(CrossValidated(KNeighborsClassifier()),
    ...                  n_features_to_select=OneStandardError())
    >>> search.fit(*load_iris(return_X_y=True)).choice_.reason
    '2 columns reach the best cross-validated score, 0.9667; with 1 column the same folds lose ...'
    """

    _constraints: ClassVar[Constraints] = {"n_errors": number(least=0)}

    def __init__(self, n_errors: float = 1.0):
        self.n_errors = n_errors

    def check(self, search: Walker, criterion: Any) -> None:
        if not hasattr(criterion, "fold_scores") or search.scores_alone:
            raise IncompatibleCriterion(
                f"OneStandardError needs a walk that cross-validates each subset; "
                f"{spoken(search, criterion)} does not. Use "
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
            error = self.n_errors * standard_error(lost, ratio)
            if not improves(float(lost.mean()), error):
                break
        return Chosen(
            best[size], self._reason(context, size, top, means, float(lost.mean()), error)
        )

    def _reason(
        self,
        context: Context,
        size: int,
        top: int,
        means: dict[int, float],
        lost: float,
        error: float,
    ) -> str:
        reach = "reaches" if top == 1 else "reach"
        reached = (
            f"{context.counted(top)} {reach} the best cross-validated score, {means[top]:.4g}; "
        )
        if size == top:
            worse = "every smaller number is clearly worse; "
            return reached + (worse if top > min(means) else "no fewer were looked at; ") + FLATTERS
        within = "none" if error == 0 else f"{error:.2g}"
        return (
            f"{reached}with {context.counted(size)} the same folds lose {max(lost, 0.0):.2g} of "
            f"it, within {self.n_errors:g} standard error(s) of that loss ({within}); {FLATTERS}"
        )


def _best_of_each_size(trace: Trace) -> dict[int, int]:
    """For each size the step of greatest value; of equals the first."""
    sizes, values = trace.sizes, trace.values
    found: dict[int, int] = {}
    for index in np.flatnonzero(sizes > 0):
        size = int(sizes[index])
        if size not in found or improves(values[index], values[found[size]]):
            found[size] = int(index)
    return found


def standard_error(differences: Array, test_ratio: float) -> float:
    """Of a mean over folds whose training parts overlap."""
    if len(differences) < 2:
        return 0.0
    spread = float(differences.std(ddof=1))
    return spread * float(np.sqrt(1 / len(differences) + test_ratio))

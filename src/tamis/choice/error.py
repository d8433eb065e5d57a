"""Choice by the standard error of a cross-validated score."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tamis._arrays import improves
from tamis._checks import Constraints, number
from tamis.contract.choice import FLATTERS, Choice, Chosen, Context, Walker, spoken
from tamis.contract.trace import Trace
from tamis.exceptions import IncompatibleCriterion
from tamis.validation.resamples import error_of_mean


@dataclass(eq=False, repr=False)
class OneStandardError(Choice):
    """The smallest subset that is not clearly worse than the best.

    Each size is compared with the best size, fold by fold. The smallest size is selected whose mean
    loss of score is at most one standard error. The standard error of this mean is
    sd sqrt(1/R + n_test/n_train), where sd is the standard deviation of the loss over the R folds
    (Nadeau and Bengio 2003).

    The scores come from the same folds that guided the search, so they are optimistic. The
    differences between them are less so.

    Parameters
    ----------
    n_errors : float, default=1.0
        A smaller subset may be worse by this number of standard errors.

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

    n_errors: float = 1.0

    def check(self, search: Walker, criterion: Any) -> None:
        if not hasattr(criterion, "fold_scores") or search.scores_alone:
            raise IncompatibleCriterion(
                f"OneStandardError needs a search that cross-validates each subset; "
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
            error = self.n_errors * error_of_mean(lost, ratio, single=0.0)
            if not improves(float(lost.mean()), error):
                break
        reach = "reaches" if top == 1 else "reach"
        found = f"{context.counted(top)} {reach} the best cross-validated score, {means[top]:.4g}"
        if size < top:
            within = "none" if error == 0 else f"{error:.2g}"
            other = (
                f"with {context.counted(size)} the same folds lose {max(lost.mean(), 0.0):.2g} of "
                f"it, within {self.n_errors:g} standard error(s) of that loss ({within})"
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

"""Choice by the cross-validated score of the first columns of a search path."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge, RidgeClassifier

from tamis._arrays import improves, standardised, target_kind
from tamis._checks import Constraints, integer
from tamis._sparse import is_sparse
from tamis.blocks.table import BlockTable
from tamis.contract.choice import FLATTERS, Choice, Chosen, Context, Walker, have
from tamis.contract.trace import Trace
from tamis.criteria import CrossValidated
from tamis.exceptions import IncompatibleCriterion

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion


@dataclass(eq=False, repr=False)
class BestPrefix(Choice):
    """The first columns of a search path with which an estimator predicts best.

    This is the second stage of mRMR. The score is cross-validated, but the search has used all
    rows, so the score of the selected columns is optimistic. :class:`HonestSize` repeats the search
    in every fold instead. Ties go to the smallest subset. The full set of columns is never
    selected.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Estimator that is cross-validated. None means a ridge classifier or ridge regression. A
        table in row blocks needs ``LinearDiscriminantAnalysis()``; all subsets are then validated
        in a single pass.
    cv : int, default=5
        Number of folds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> search = Forward(MRMR(), n_features_to_select=BestPrefix())
    >>> search.fit(*load_wine(return_X_y=True)).n_features_
    6
    """

    needs_nested = True

    _constraints: ClassVar[Constraints] = {"cv": integer(2)}

    estimator: BaseEstimator | None = None
    _: KW_ONLY
    cv: int = 5

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the estimator can be cross-validated on a table in row blocks."""
        return CrossValidated(self.estimator).takes_blocks

    def check(self, search: Walker, criterion: "Criterion") -> None:
        super().check(search, criterion)
        if self.estimator is not None:
            CrossValidated(self.estimator, cv=self.cv).check()
        if not getattr(criterion, "needs_target", True):
            raise IncompatibleCriterion(
                f"BestPrefix needs a target to predict, but {type(criterion).__name__} has none. "
                "Ask for a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        assert context.X is not None
        model = _ridge_for(context) if self.estimator is None else self.estimator
        judge: Any = CrossValidated(model, cv=self.cv)
        if isinstance(context.X, BlockTable):
            judge.fit(context.X.scaled(type(self).__name__, standardize=True))
        else:
            judge.fit(standardised(context.X), context.y)
        sizes = np.unique(trace.sizes[trace.sizes > 0])
        sizes = sizes[sizes < max(trace.n_units, sizes[0] + 1)]  # all columns are not a selection
        steps = [int(np.flatnonzero(trace.sizes == size)[-1]) for size in sizes]
        values = judge.values([context.columns(trace[step].subset) for step in steps])
        best = 0
        for index, value in enumerate(values):
            best = index if improves(float(value), float(values[best])) else best
        found = f"{context.counted(sizes[best])} {have(sizes[best])} the best score of the search"
        return Chosen(steps[best], f"{found}, {values[best]:.4g} in {self.cv} folds; {FLATTERS}")


def ridge_judge(context: Context) -> CrossValidated | None:
    """Return a fitted criterion that scores subsets by cross-validated ridge regression.

    It is None if ridge regression cannot learn from the table.
    """
    X, y = context.X, context.y
    if X is None or y is None or isinstance(X, BlockTable) or y.dtype.names is not None:
        return None
    if y.ndim > 1 or (not is_sparse(X) and np.isnan(X).any()):
        return None
    return CrossValidated(_ridge_for(context)).fit(standardised(X), y)


def _ridge_for(context: Context) -> Any:
    """Return ridge regression, or a ridge classifier if the target contains classes."""
    task = getattr(context.criterion, "task_", None) or target_kind(context.y)
    return RidgeClassifier() if task == "classification" else Ridge()

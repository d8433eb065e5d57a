"""Choices by what a model makes of the first columns of a walk."""

from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier

from tamis._arrays import improves, standardised, target_kind
from tamis._checks import Constraints, integer
from tamis.blocks.table import BlockTable
from tamis.contract.choice import FLATTERS, Choice, Chosen, Context, Walker, have
from tamis.contract.trace import Trace
from tamis.criteria import CrossValidated
from tamis.exceptions import IncompatibleCriterion


class BestPrefix(Choice):
    """The first columns of a walk with which an estimator does best in cross-validation.

    The second stage of mRMR: subsets are those of the walk, which saw all rows, so that the best
    score flatters. :class:`HonestSize` walks again in every fold. Of equals the smallest is kept,
    and never all columns.

    Parameters
    ----------
    estimator : estimator or None, default=None
        None is a ridge classifier or regression. From blocks of rows it must be
        ``LinearDiscriminantAnalysis()``, whose subsets all take one pass.
    cv : int, default=5

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

    def __init__(self, estimator: Any = None, *, cv: int = 5):
        self.estimator = estimator
        self.cv = cv

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the estimator is one that is cross-validated on blocks of rows."""
        return CrossValidated(self.estimator).takes_blocks

    def check(self, search: Walker, criterion: Any) -> None:
        super().check(search, criterion)
        if self.estimator is not None:
            CrossValidated(self.estimator, cv=self.cv).check()
        if not getattr(criterion, "needs_target", True):
            raise IncompatibleCriterion(
                f"BestPrefix predicts the target, and {type(criterion).__name__} has none. Ask for "
                "a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        assert context.X is not None
        task = getattr(context.criterion, "task_", None) or target_kind(context.y)
        model = self.estimator
        if model is None:
            model = RidgeClassifier() if task == "classification" else Ridge()
        judge: Any = CrossValidated(model, cv=self.cv)
        if isinstance(context.X, BlockTable):
            judge.fit(context.X.scaled(type(self).__name__, standardize=True))
        else:
            judge.fit(standardised(context.X), context.y)
        sizes = np.unique(trace.sizes[trace.sizes > 0])
        sizes = sizes[sizes < max(trace.n_units, sizes[0] + 1)]  # all columns are no selection
        steps = [int(np.flatnonzero(trace.sizes == size)[-1]) for size in sizes]
        values = judge.values([context.columns(trace[step].subset) for step in steps])
        best = 0
        for index, value in enumerate(values):
            best = index if improves(float(value), float(values[best])) else best
        said = f"{context.counted(sizes[best])} {have(sizes[best])} the best score of the walk"
        return Chosen(steps[best], f"{said}, {values[best]:.4g} in {self.cv} folds; {FLATTERS}")

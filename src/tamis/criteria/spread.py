"""Filter without a target: how much a column varies."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, check_range, column_blocks
from tamis._sparse import is_sparse, moments
from tamis.blocks.survival import SURVIVAL
from tamis.contract.criterion import TASKS
from tamis.criteria.univariate import Univariate


class Variance(Univariate):
    """Variance of each column, on the scale that it has; the target is not looked at.

    A filter to compare others with: for genes on one scale it is hard to beat. A search leaves the
    columns as they are for it, whatever its ``standardize``. Entries that are missing (NaN) do not
    count.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Ranking
    >>> X, _ = load_iris(return_X_y=True)
    >>> Variance().fit(X).scores_.round(2)
    array([0.68, 0.19, 3.1 , 0.58])
    >>> Ranking(Variance(), n_features_to_select=2).fit(X).get_support(indices=True)
    array([0, 2])
    """

    needs_target: ClassVar[bool] = False
    targets: ClassVar[frozenset[str]] = TASKS | {SURVIVAL}
    takes_missing: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    reads_scale: ClassVar[bool] = True

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        found = [_variances(X[:, block]) for block in column_blocks(*X.shape)]
        self.scores_ = self._unit_scores(np.concatenate(found))


def _variances(X: Array) -> Array:
    if is_sparse(X):
        check_range("Variance", X)
        return moments(X)[1] / X.shape[0]
    gone = np.isnan(X)
    if not gone.any():
        check_range("Variance", X)
        return np.asarray(X.var(axis=0))
    there = np.maximum((~gone).sum(axis=0), 1)
    check_range("Variance", np.where(gone, 0.0, X))
    centred = np.where(gone, 0.0, X - np.where(gone, 0.0, X).sum(axis=0) / there)
    return np.asarray((centred**2).sum(axis=0) / there)

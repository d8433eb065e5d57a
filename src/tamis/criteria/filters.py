"""Filters without classes: the variance of a column, and Cox's score test of a censored target."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tamis._arrays import Array, check_range, column_blocks, in_range
from tamis._sparse import is_sparse, moments
from tamis.blocks.survival import SURVIVAL
from tamis.contract.criterion import TASKS
from tamis.criteria.univariate import Univariate, scores_with


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


class CoxScore(Univariate):
    r"""-log p of the score test of a proportional hazards model with one column.

    With :math:`R_k` the rows at risk at the event time :math:`t_k`, of which :math:`d_k` have the
    event, and with mean :math:`m_k` and variance :math:`v_k` of a column over them,

    .. math:: z^2 = \Big( \sum_{i: \text{event}} x_i - \sum_k d_k m_k \Big)^2
              \Big/ \sum_k d_k v_k

    is the squared slope of the partial likelihood (Breslow's, where times are equal) at no effect
    over its curvature, and chi-squared with one degree of freedom if the column has none. Of a
    column of two values it is the log-rank test. No model is fitted. A constant column scores 0.

    ``y`` is a structured array of event and time, as ``sksurv.util.Surv`` makes it, or has two
    columns: the time, and 1 where the event happened, 0 where the row was censored.

    References
    ----------
    Cox (1972), Regression models and life-tables, J. Royal Statistical Society B 34.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> time = rng.exponential(np.exp(-X[:, 1]))
    >>> y = np.column_stack([np.minimum(time, 1), time < 1])
    >>> CoxScore().fit(X, y).scores_.round(1)
    array([ 1.8, 19.3,  1.5])
    """

    targets: ClassVar[frozenset[str]] = frozenset({SURVIVAL})
    takes_several_targets: ClassVar[bool] = True
    scores_are_log_p: ClassVar[bool] = True

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self.scores_ = self._unit_scores(scores_with(X, y, self._scores))

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        rising = np.argsort(y["time"], kind="stable")
        time, event, X = y["time"][rising], y["event"][rising], in_range(X[rising])
        times, n_events = np.unique(time[event], return_counts=True)
        first = np.searchsorted(time, times)  # of the rows at risk, which are all from there on
        at_risk = (len(time) - first)[:, None]
        centred = X - X.mean(axis=0)
        mean = _from_row_on(centred)[first] / at_risk
        square = _from_row_on(centred**2)[first] / at_risk
        slope = centred[event].sum(axis=0) - n_events @ mean
        curvature = n_events @ np.maximum(square - mean**2, 0.0)
        # what is rounding of a large mean must not pass for variation
        noise = (10 * np.finfo(float).eps * np.abs(X).max(axis=0)) ** 2 * n_events.sum()
        varies = curvature > noise
        z = np.abs(slope) / np.sqrt(np.where(varies, curvature, 1.0))
        # twice the upper tail of a normal variable; in logarithms, because it underflows
        return np.where(varies, -np.log(2) - special.log_ndtr(-z), 0.0) + 0.0  # no -0.0


def _from_row_on(values: Array) -> Array:
    """Sums of each row and all below it."""
    return np.cumsum(values[::-1], axis=0)[::-1]

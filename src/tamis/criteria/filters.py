"""Filters that need no classes: the variance, and Cox's score test for a censored target."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tamis._arrays import Array, check_range, column_blocks, in_range
from tamis._sparse import is_sparse, moments
from tamis.blocks.survival import SURVIVAL
from tamis.contract.criterion import TASKS
from tamis.criteria.univariate import Univariate


class Variance(Univariate):
    """Variance of each column on its original scale, without using the target.

    It is a baseline for other filters, and a strong one for gene expression data measured on a
    single scale. Searches never standardise the columns for it, whatever the value of
    ``standardize``. Missing values (NaN) are ignored.

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
        variances = [_variances(X[:, block]) for block in column_blocks(*X.shape)]
        self.scores_ = self._unit_scores(np.concatenate(variances))


def _variances(X: Array) -> Array:
    if is_sparse(X):
        check_range("Variance", X)
        return moments(X)[1] / X.shape[0]
    missing = np.isnan(X)
    filled = np.where(missing, 0.0, X)
    check_range("Variance", filled)
    count = np.maximum((~missing).sum(axis=0), 1)
    centred = np.where(missing, 0.0, X - filled.sum(axis=0) / count)
    return np.asarray((centred**2).sum(axis=0) / count)


class CoxScore(Univariate):
    r"""Negative log p-value of the score test for each column in a proportional hazards model.

    Let :math:`R_k` be the rows at risk at the event time :math:`t_k`, and :math:`d_k` the number of
    events at that time. Let :math:`m_k` and :math:`v_k` be the mean and variance of a column over
    :math:`R_k`. The statistic

    .. math:: z^2 = \Big( \sum_{i: \text{event}} x_i - \sum_k d_k m_k \Big)^2
              \Big/ \sum_k d_k v_k

    is the squared slope of the log partial likelihood at zero effect, divided by its curvature
    (Breslow's likelihood for tied times). If the column has no effect, this statistic has a
    chi-squared distribution with one degree of freedom. For a column with two values, the test is
    the log-rank test. No model is fitted. A constant column scores 0.

    ``y`` is a structured array of event and time, as made by ``sksurv.util.Surv``. It may also be
    an array with two columns: the time, and an indicator that is 1 for an event and 0 for a
    censored row.

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

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        rising = np.argsort(y["time"], kind="stable")
        time, event, X = y["time"][rising], y["event"][rising], in_range(X[rising])
        times, n_events = np.unique(time[event], return_counts=True)
        first = np.searchsorted(time, times)  # this row and all later rows are at risk
        at_risk = (len(time) - first)[:, None]
        centred = X - X.mean(axis=0)
        mean = _from_row_on(centred)[first] / at_risk
        square = _from_row_on(centred**2)[first] / at_risk
        slope = centred[event].sum(axis=0) - n_events @ mean
        curvature = n_events @ np.maximum(square - mean**2, 0.0)
        # a curvature that is due only to rounding errors of a large mean is treated as 0
        noise = (10 * np.finfo(float).eps * np.abs(X).max(axis=0)) ** 2 * n_events.sum()
        varies = curvature > noise
        z = np.abs(slope) / np.sqrt(np.where(varies, curvature, 1.0))
        # twice the upper tail of a normal variable, as a logarithm because it underflows
        return np.where(varies, -np.log(2) - special.log_ndtr(-z), 0.0) + 0.0  # no -0.0


def _from_row_on(values: Array) -> Array:
    """Return, for each row, the sum of that row and all later rows."""
    return np.cumsum(values[::-1], axis=0)[::-1]

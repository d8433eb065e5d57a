"""Searches for the hyper-parameters of relative machines that an elimination can start from.

The scale is chosen before anything was selected: cross-validation on columns found with the same
rows finds whatever it likes.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._random import draw_seed
from tamis.folds.rows import Rows, folds_of
from tamis.svm.relative import RelativeSVR, width

#: Rows that a search over hyper-parameters looks at: the time of a machine grows with their square.
MOST_ROWS = {"classification": 1000, "regression": 500}
#: What a regression is searched over.
COSTS, TUBES = (0.5, 2.0, 8.0, 32.0, 128.0), (0.05, 0.2)
SCALES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
#: A machine that explains less than this share of the target's variance hardly learns, and what is
#: chosen then is as flat as it can be: its sensitivities are noise. Of eight kinds of problems, 32
#: to 500 columns of which 4 matter, those that explain more (linear ones, Friedman's) do not mind.
HARDLY = 0.2
#: What serves such problems instead: of costs 1/2 to 128 and scales 1/4 to 8 it found most.
UNTUNED = {"cost": 8.0, "tube": 0.05, "scale": 1.0}


class TunedMachine(BaseEstimator):
    """Search over the hyper-parameters of a machine; predicts with the best."""

    #: Row groups are of use to every search over hyper-parameters, so they need not be asked for.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    best_estimator_: Any
    best_params_: dict[str, Any]

    def _kept(self, best: Any, X: Array, y: NDArray[Any]) -> None:
        self.best_params_ = {
            name: value for name, value in best.get_params().items() if name != "class_weight"
        }
        self.best_estimator_ = clone(best).fit(X, y)

    def predict(self, X: Any) -> NDArray[Any]:
        """Answers of the best machine."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))


class TunedSVR(RegressorMixin, TunedMachine):
    """Search for cost, tube and scale of a :class:`RelativeSVR`, by five-fold cross-validation.

    Scale in {1/16, ..., 2}, cost in {1/2, 2, 8, 32, 128}, tube in {0.05, 0.2}, on at most 500 rows.
    Where the best machine explains less than a fifth of the target's variance, it is the flattest,
    by a hair, and an elimination that starts there is lost: scale is 1, cost 8 and tube 0.05 then.

    Parameters
    ----------
    random_state : int, Generator or None, default=None
        For the rows that are looked at where there are more than 500.

    Attributes
    ----------
    best_estimator_ : RelativeSVR
    best_params_ : dict
    """

    def __init__(self, *, random_state: Any = None):
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search, and train the best machine on all rows; rows of a group stay together."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="F", y_numeric=True)
        groups = None if groups is None else np.asarray(groups)
        rows = some_rows(y, "regression", draw_seed(self.random_state))
        self._kept(RelativeSVR(**least_squares(X[rows], y[rows], of_rows(groups, rows))), X, y)
        return self


def least_squares(X: Array, y: Array, groups: Any = None) -> dict[str, float]:
    """Parameters of a :class:`RelativeSVR` of least cross-validated squared error.

    What ``GridSearchCV`` finds, with one kernel matrix for all machines of a scale; where that is
    next to nothing, a machine that is not tuned.
    """
    folds = folds_of("TunedSVR", max(2, min(5, len(y) // 2)), y, groups, classes=False)
    choices = [(cost, tube) for tube in TUBES for cost in COSTS]
    errors = np.empty((len(SCALES), len(choices), len(folds)))
    for i, scale in enumerate(SCALES):
        K = rbf_kernel(X, gamma=width(scale, X))
        for k, (train, test) in enumerate(folds):
            seen, unseen = K[np.ix_(train, train)], K[np.ix_(test, train)]
            spread = float(y[train].std()) or 1.0
            for j, (cost, tube) in enumerate(choices):
                machine = SVR(kernel="precomputed", C=cost * spread, epsilon=tube * spread)
                found = machine.fit(seen, y[train]).predict(unseen)
                errors[i, j, k] = ((found - y[test]) ** 2).mean()
    means = errors.mean(axis=2)
    if means.min() > (1 - HARDLY) * y.var():
        return dict(UNTUNED)
    i, j = np.unravel_index(means.argmin(), means.shape)
    cost, tube = choices[j]
    return {"cost": cost, "tube": tube, "scale": SCALES[i]}


def some_rows(y: NDArray[Any], kind: str, seed: int) -> Rows:
    """As many rows as a search may look at."""
    if len(y) <= MOST_ROWS[kind]:
        return np.arange(len(y))
    shares = y if kind == "classification" else None
    rows, _ = train_test_split(
        np.arange(len(y)), train_size=MOST_ROWS[kind], stratify=shares, random_state=seed
    )
    return np.sort(rows)


def of_rows(groups: Any, rows: Rows) -> Any:
    """Groups of some rows, where there are groups."""
    return None if groups is None else groups[rows]

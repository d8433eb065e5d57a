"""Support vector machines that tune themselves so that an elimination can rely on them.

Two rules make the difference between a few and all relevant columns. The kernel's width follows
the number of columns, gamma = scale / n_features, so that the machine does not grow blunt while
columns leave; and the scale is chosen before anything was selected, or on rows that took no part in
the selecting: cross-validation on columns found with the same rows finds whatever it likes.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._random import draw_seed
from tamis.criteria._folds import Rows, folds_of, held_out
from tamis.criteria.posterior import PosteriorSensitivity
from tamis.criteria.sensitivity import MANY_COLUMNS
from tamis.exceptions import InvalidParameter

#: Rows that a search over hyper-parameters looks at.
MOST_ROWS = {"classification": 1000, "regression": 500}
#: What a regression is searched over.
COSTS, TUBES = (0.5, 2.0, 8.0, 32.0, 128.0), (0.05, 0.2)
SCALES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
#: Sizes of subsets that are tried on the held-out third.
FEWEST, MOST = 5, 60


class RelativeSVC(SVC):
    """RBF support vector classifier whose width follows the number of columns.

    ``gamma`` is ``scale / n_features``: with standardised columns ``scale=1`` is scikit-learn's
    ``gamma="scale"``.

    Parameters
    ----------
    C : float, default=2.0
    scale : float, default=1.0
        gamma times the number of columns.
    class_weight : dict, "balanced" or None, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> RelativeSVC(scale=2.0).fit(*load_iris(return_X_y=True)).gamma
    0.5
    """

    def __init__(self, C: float = 2.0, *, scale: float = 1.0, class_weight: Any = None):
        super().__init__(C=C, class_weight=class_weight)
        self.scale = scale

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train with the width that belongs to the columns of ``X``."""
        self.gamma = _width(self, X)
        return super().fit(X, y, sample_weight)


class RelativeSVR(SVR):
    """RBF support vector regression in the units of its data.

    ``gamma`` is ``scale / n_features``, and C and epsilon are counted in standard deviations of the
    target, as if it were standardised.

    Parameters
    ----------
    cost : float, default=1.0
        C over the standard deviation of the target.
    tube : float, default=0.1
        epsilon over the standard deviation of the target.
    scale : float, default=1.0
        gamma times the number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(RelativeSVR(cost=2.0).fit(X, y).C)
    154
    """

    def __init__(self, cost: float = 1.0, *, tube: float = 0.1, scale: float = 1.0):
        super().__init__()
        self.cost = cost
        self.tube = tube
        self.scale = scale

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train in the units of the data."""
        self.gamma = _width(self, X)
        spread = float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
        self.C, self.epsilon = self.cost * spread, self.tube * spread
        return super().fit(X, y, sample_weight)


def _width(machine: Any, X: Any) -> float:
    if not machine.scale > 0:
        raise InvalidParameter(
            f"{type(machine).__name__} needs scale as a number above 0, not {machine.scale!r}."
        )
    return float(machine.scale / max(1, np.shape(X)[1]))


class _Tuned(BaseEstimator):
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


class TunedSVC(ClassifierMixin, _Tuned):
    """Search for C and scale of a :class:`RelativeSVC` that an elimination can start from.

    Up to 30 columns C in {1, 8, 64} and scale in {1/4, 1/2, 1, 2} by cross-validation in five
    folds. With more, where cross-validation cannot tell (most columns being noise), scale in
    {1/4, 1, 2, 4}: an elimination on two thirds of the rows for each, judged by the least error
    that its subsets of 5 to 60 columns have on the last third; another scale than 1 must be better
    by more than a standard error. C is 2 then.

    Parameters
    ----------
    C : float or None, default=None
        None is chosen.
    random_state : int, Generator or None, default=None
        For the thirds, and for the rows that are looked at where there are more than a thousand.

    Attributes
    ----------
    best_estimator_ : RelativeSVC
    best_params_ : dict

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> TunedSVC().fit(*load_iris(return_X_y=True)).best_params_
    {'C': 8, 'scale': 0.25}
    """

    def __init__(self, C: float | None = None, *, random_state: Any = None):
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search, and train the best machine on all rows; rows of a group stay together."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="F")
        groups = None if groups is None else np.asarray(groups)
        self.classes_ = np.unique(y)
        seed = draw_seed(self.random_state)
        least = int(np.unique(y, return_counts=True)[1].min())
        if X.shape[1] > MANY_COLUMNS and least >= 6:
            scale = scale_by_thirds(X, y, self.C or 2.0, seed, groups)
            best = RelativeSVC(self.C or 2.0, scale=scale)
        elif least < 2:
            best = RelativeSVC(self.C or 2.0)
        else:
            grid = {"C": [self.C] if self.C else [1, 8, 64], "scale": [0.25, 0.5, 1, 2]}
            rows = _some_rows(y, "classification", seed)
            folds = folds_of("TunedSVC", 5, y[rows], _of(groups, rows), classes=True)
            search = GridSearchCV(RelativeSVC(), grid, cv=folds)
            best = search.fit(X[rows], y[rows]).best_estimator_
        self._kept(best, X, y)
        return self

    def decision_function(self, X: Any) -> Array:
        """Decision values of the best machine."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))


class TunedSVR(RegressorMixin, _Tuned):
    """Search for cost, tube and scale of a :class:`RelativeSVR`, by five-fold cross-validation.

    Scale in {1/16, ..., 2}, cost in {1/2, 2, 8, 32, 128}, tube in {0.05, 0.2}, on at most 500 rows.

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
        rows = _some_rows(y, "regression", draw_seed(self.random_state))
        self._kept(RelativeSVR(**least_squares(X[rows], y[rows], _of(groups, rows))), X, y)
        return self


def least_squares(X: Array, y: Array, groups: Any = None) -> dict[str, float]:
    """Parameters of a :class:`RelativeSVR` of least cross-validated squared error.

    What ``GridSearchCV`` finds, with one kernel matrix for all machines of a scale.
    """
    folds = folds_of("TunedSVR", max(2, min(5, len(y) // 2)), y, groups, classes=False)
    choices = [(cost, tube) for tube in TUBES for cost in COSTS]
    errors = np.empty((len(SCALES), len(choices), len(folds)))
    for i, scale in enumerate(SCALES):
        K = rbf_kernel(X, gamma=scale / X.shape[1])
        for k, (train, test) in enumerate(folds):
            seen, unseen = K[np.ix_(train, train)], K[np.ix_(test, train)]
            spread = float(y[train].std()) or 1.0
            for j, (cost, tube) in enumerate(choices):
                machine = SVR(kernel="precomputed", C=cost * spread, epsilon=tube * spread)
                found = machine.fit(seen, y[train]).predict(unseen)
                errors[i, j, k] = ((found - y[test]) ** 2).mean()
    i, j = np.unravel_index(errors.mean(axis=2).argmin(), errors.shape[:2])
    cost, tube = choices[j]
    return {"cost": cost, "tube": tube, "scale": SCALES[i]}


def _some_rows(y: NDArray[Any], kind: str, seed: int) -> Rows:
    """As many rows as a search may look at."""
    if len(y) <= MOST_ROWS[kind]:
        return np.arange(len(y))
    shares = y if kind == "classification" else None
    rows, _ = train_test_split(
        np.arange(len(y)), train_size=MOST_ROWS[kind], stratify=shares, random_state=seed
    )
    return np.sort(rows)


def _of(groups: Any, rows: Rows) -> Any:
    return None if groups is None else groups[rows]


def scale_by_thirds(X: Array, y: NDArray[Any], C: float, seed: int, groups: Any = None) -> float:
    """Scale whose elimination on two thirds of the rows serves the last third best."""
    rows, rest = held_out("TunedSVC", 1 / 3, y, groups, seed)
    least = {
        scale: least_error(X, y, rows, rest, C, scale, _of(groups, rows))
        for scale in (0.25, 1.0, 2.0, 4.0)
    }
    best = min(least, key=lambda scale: least[scale])
    error = np.sqrt(least[best] * (1 - least[best]) / len(rest))
    return best if least[best] < least[1.0] - error else 1.0


def least_error(
    X: Array, y: NDArray[Any], rows: Rows, rest: Rows, C: float, scale: float, groups: Any = None
) -> float:
    """Least error on the rest of the subsets that an elimination on the rows leaves.

    ``groups`` are those of the rows.
    """
    machine = RelativeSVC(C, scale=scale)
    judge = PosteriorSensitivity(machine, on="auto", n_values=16, unlabelled=None)
    judge.fit(X[rows], y[rows], groups=groups)
    subset, least = np.arange(X.shape[1]), 1.0
    while len(subset) >= FEWEST:
        if len(subset) <= MOST:
            for width in (1.0, 4.0):
                fitted = RelativeSVC(C, scale=width).fit(X[np.ix_(rows, subset)], y[rows])
                wrong = fitted.predict(X[np.ix_(rest, subset)]) != y[rest]
                least = min(least, float(wrong.mean()))
        drop = max(1, len(subset) // 5)
        subset = np.sort(subset[np.argsort(judge.loss(subset), kind="stable")[drop:]])
    return least

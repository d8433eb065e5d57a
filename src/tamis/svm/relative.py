"""SVMs in the units of their data, whose width follows the number of columns, and their tuning.

With gamma = scale / n_features an SVM does not grow blunt while columns leave it. Its scale is
tuned before anything is selected: cross-validation on columns found with the same rows is biased.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import Constraints, check_parameters, number
from tamis._seeds import draw_seed
from tamis._sparse import extremes, is_sparse
from tamis.validation.splits import Rows, folds_of

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


class RelativeSVC(SVC):
    """RBF support vector classifier whose width follows the number of columns.

    ``gamma`` is ``scale / n_features``, where constant columns do not count: with standardised
    columns ``scale=1`` is scikit-learn's ``gamma="scale"``.

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

    _constraints: ClassVar[Constraints] = {"scale": number(above=0)}

    def __init__(self, C: float = 2.0, *, scale: float = 1.0, class_weight: Any = None):
        super().__init__(C=C, class_weight=class_weight)
        self.scale = scale

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train with the width that belongs to the columns of ``X``."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
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

    _constraints: ClassVar[Constraints] = {"scale": number(above=0)}

    def __init__(self, cost: float = 1.0, *, tube: float = 0.1, scale: float = 1.0):
        super().__init__()
        self.cost = cost
        self.tube = tube
        self.scale = scale

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train in the units of the data."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
        spread = float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
        self.C, self.epsilon = self.cost * spread, self.tube * spread
        # the solver stops at a number of the target's units: of small ones it would stop at once,
        # of very large ones, whose thousandth is below rounding, never
        self.tol = 1e-3 * spread / min(max(spread, 1.0), 1e6)
        return super().fit(X, y, sample_weight)


def width(scale: float, X: Any) -> float:
    """gamma of a table: the scale over the number of columns that vary.

    Constant columns are in no distance, and ``gamma="scale"`` of scikit-learn counts them neither.
    """
    if is_sparse(X):
        low, high = extremes(X)
        varies = low < high
    else:
        X = np.asarray(X)
        varies = (X[:1] != X).any(axis=0)
    return float(scale / max(1, int(np.count_nonzero(varies))))


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

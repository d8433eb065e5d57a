"""Searches over the hyper-parameters of an SVM, and for the hidden units of a network.

The scale of an SVM is tuned before anything is selected: cross-validation on columns found with the
same rows is biased.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer
from tamis._seeds import draw_seed
from tamis.response.fold_models import MANY_COLUMNS, FoldTraining, holds_out
from tamis.response.outputs import ProbabilityOutput, losses
from tamis.response.perturbations import Marginal, Units
from tamis.svm.relative import RelativeSVC, RelativeSVR, width
from tamis.validation.splits import Rows, folds_of, held_out

#: Sizes of subsets that are tried on the held-out third: smaller ones depend on luck, larger ones
#: hardly differ between widths.
FEWEST, MOST = 5, 60
#: Quantiles that stand for a column in the elimination: the order of all values, nearly.
N_VALUES = 16
#: Hidden units for each column, at the most.
UNITS_PER_COLUMN = 3
#: Numbers of hidden units that are tried: neighbours among the large ones hardly differ.
MOST_SIZES = 8
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
UNTUNED = {"cost": 8.0, "scale": 1.0, "tube": 0.05}


class TunedModel(BaseEstimator):
    """Search over the hyper-parameters of a model; predicts with the best."""

    #: Row groups are of use to every search over hyper-parameters, so they need not be asked for.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    random_state: Any
    best_estimator_: Any
    best_params_: dict[str, Any]

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search, and train the best model on all rows; rows of a group stay together."""
        classes = is_classifier(self)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=not classes)
        check_parameters(self)
        if classes:
            self.classes_ = np.unique(y)
        seed = draw_seed(self.random_state)
        groups = None if groups is None else np.asarray(groups)
        self.best_params_ = self._search(X, y, groups, seed)
        best = self._model(X.shape[1], seed).set_params(**self.best_params_)
        self.best_estimator_ = best.fit(X, y)
        return self

    @abstractmethod
    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        """Find the parameters of the model."""

    @abstractmethod
    def _model(self, n_columns: int, seed: int = 0) -> Any:
        """Make the model, the largest that the search can find for a number of columns."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the best model."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))


class TunedSVC(ClassifierMixin, TunedModel):
    """Search for C and scale of a :class:`RelativeSVC` that an elimination can start from.

    Up to 30 columns C in {1, 8, 64} and scale in {1/4, 1/2, 1, 2} by cross-validation in five
    folds. With more columns, most of them noise, cross-validation cannot tell which width finds the
    relevant ones. Scale is then one of {1/4, 1, 2, 4}: an elimination on two thirds of the rows for
    each, compared by the least error that its subsets of 5 to 60 columns have on the last third;
    another scale than 1 must be better by more than a standard error. C is 2 then.

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

    def _model(self, n_columns: int, seed: int = 0) -> RelativeSVC:
        return RelativeSVC()

    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        X, usual = np.asfortranarray(X), {"C": self.C or 2.0, "scale": 1.0}
        least = int(np.unique(y, return_counts=True)[1].min())
        if X.shape[1] > MANY_COLUMNS and least >= 6:
            return {**usual, "scale": scale_by_thirds(X, y, usual["C"], seed, groups)}
        if least < 2:
            return usual
        rows = some_rows(y, "classification", seed)
        folds = folds_of("TunedSVC", 5, y[rows], of_rows(groups, rows), classes=True)
        grid = {"C": [self.C] if self.C else [1, 8, 64], "scale": [0.25, 0.5, 1, 2]}
        return best_point(RelativeSVC(), grid, X[rows], y[rows], folds)

    def decision_function(self, X: Any) -> Array:
        """Decision values of the best machine."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))


def best_point(model: Any, grid: dict[str, Any], X: Array, y: Any, folds: Any) -> dict[str, Any]:
    """Parameters of the best cross-validated score."""
    search = GridSearchCV(model, grid, cv=folds, refit=False)
    return dict(search.fit(X, y).best_params_)


def scale_by_thirds(X: Array, y: NDArray[Any], C: float, seed: int, groups: Any = None) -> float:
    """Scale whose elimination on two thirds of the rows serves the last third best."""
    rows, rest = held_out("TunedSVC", 1 / 3, y, groups, seed)
    least = {
        scale: least_error(X, y, rows, rest, C, scale, of_rows(groups, rows))
        for scale in (0.25, 1.0, 2.0, 4.0)
    }
    best = min(least, key=lambda scale: least[scale])
    error = np.sqrt(least[best] * (1 - least[best]) / len(rest))
    return best if least[best] < least[1.0] - error else 1.0


def least_error(
    X: Array, y: NDArray[Any], rows: Rows, rest: Rows, C: float, scale: float, groups: Any = None
) -> float:
    """Least error on the rest of the subsets that an elimination on the rows leaves.

    Columns are scored by calibrated probabilities, held out if columns are many. ``groups`` are
    those of the rows.
    """
    own = np.asfortranarray(X[rows])
    training = FoldTraining(
        "TunedSVC", own, y[rows], np.arange(len(rows)), task="classification",
        held_out=holds_out("auto", X.shape[1], len(rows)), stratified=True, groups=groups,
    )  # fmt: skip
    output = ProbabilityOutput(training, RelativeSVC(C, scale=scale), "probability", 5)
    subset, least = np.arange(X.shape[1]), 1.0
    while len(subset) >= FEWEST:
        if len(subset) <= MOST:
            for width in (1.0, 4.0):
                fitted = RelativeSVC(C, scale=width).fit(X[np.ix_(rows, subset)], y[rows])
                wrong = fitted.predict(X[np.ix_(rest, subset)]) != y[rest]
                least = min(least, float(wrong.mean()))
        n_dropped = max(1, len(subset) // 5)
        lost = losses(output, Marginal(N_VALUES), Units.single(subset))[0]
        subset = np.sort(subset[np.argsort(lost, kind="stable")[n_dropped:]])
    return least


class TunedSVR(RegressorMixin, TunedModel):
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

    def _model(self, n_columns: int, seed: int = 0) -> RelativeSVR:
        return RelativeSVR()

    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        rows = some_rows(y, "regression", seed)
        return least_squares(np.asfortranarray(X)[rows], y[rows], of_rows(groups, rows))


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
    return {"cost": cost, "scale": SCALES[i], "tube": tube}


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


class TunedMLP(ClassifierMixin, TunedModel):
    """Search for the number of hidden units of an ``MLPClassifier``, by five-fold accuracy.

    Of 1 to 3 d units, d columns: all of them, or eight in growing steps. Of equal accuracies the
    least number is kept.

    Parameters
    ----------
    decay : float, default=1.0
        ``alpha`` of the network.
    most : int or None, default=None
        The largest number; None is 3 d.
    every : bool, default=False
        Whether every number is tried, as published, which takes long with many columns.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    best_estimator_ : MLPClassifier
    best_params_ : dict

    References
    ----------
    Yang (2011), Feature selection and model selection for supervised learning algorithms, sec. 3.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> TunedMLP(most=4, random_state=0).fit(X, y).best_params_
    {'hidden_layer_sizes': (2,)}
    """

    _constraints: ClassVar[Constraints] = {"most": integer(1) | NONE}

    def __init__(
        self,
        decay: float = 1.0,
        *,
        most: int | None = None,
        every: bool = False,
        random_state: Any = None,
    ):
        self.decay = decay
        self.most = most
        self.every = every
        self.random_state = random_state

    def _model(self, n_columns: int, seed: int = 0) -> MLPClassifier:
        return plain_network(self.units(n_columns)[-1], self.decay).set_params(random_state=seed)

    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        sizes = [(units,) for units in self.units(X.shape[1])]
        least = int(np.unique(y, return_counts=True)[1].min())
        if least < 2:  # no folds: the middle of what would be tried
            return {"hidden_layer_sizes": sizes[len(sizes) // 2]}
        folds = folds_of("TunedMLP", min(5, least), y, groups, classes=True)
        network = self._model(X.shape[1], seed)
        return best_point(network, {"hidden_layer_sizes": sizes}, X, y, folds)

    def units(self, n_columns: int) -> list[int]:
        """Numbers of units that are tried, for so many columns.

        >>> TunedMLP().units(10)
        [1, 2, 3, 4, 7, 11, 18, 30]
        """
        return units_tried(n_columns, self.most, every=self.every)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities by the best network."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))


def units_tried(n_columns: int, most: int | None = None, *, every: bool = False) -> list[int]:
    """Numbers of hidden units from 1 to 3 a column: all of them, or eight in growing steps."""
    most = UNITS_PER_COLUMN * n_columns if most is None else most
    if every or most <= MOST_SIZES:
        return list(range(1, most + 1))
    found = np.unique(np.rint(np.geomspace(1, most, MOST_SIZES)).astype(int))
    return [int(units) for units in found]


def plain_network(n_hidden: int, decay: float) -> MLPClassifier:
    """A network of one hidden layer, as recipes train it."""
    return MLPClassifier((n_hidden,), activation="tanh", solver="lbfgs", alpha=decay, max_iter=1000)

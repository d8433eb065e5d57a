"""Hyper-parameter searches for SVMs, and for the number of hidden units of a network.

An SVM is tuned before columns are selected, because cross-validation on columns that were selected
with the same rows is biased.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer
from tamis._seeds import Seed, draw_seed
from tamis.response.fold_models import MANY_COLUMNS, FoldTraining, holds_out
from tamis.response.outputs import ProbabilityOutput, losses
from tamis.response.perturbations import Marginal, Units
from tamis.svm.relative import RelativeSVC, RelativeSVR, width
from tamis.validation.splits import Rows, folds_of, held_out

#: Minimum and maximum size of the subsets that are scored on the held-out third of the rows. Errors
#: of smaller subsets are noisy. Errors of larger subsets hardly depend on the kernel width.
FEWEST, MOST = 5, 60
#: Number of quantiles of a column in the elimination. Using all values gives nearly the same
#: ranking.
N_VALUES = 16
#: Maximum number of hidden units for each column.
UNITS_PER_COLUMN = 3
#: Maximum count of different numbers of hidden units to try. Networks with nearly the same large
#: number of units hardly differ.
MOST_SIZES = 8
#: Maximum number of rows in a search, because the training time of an SVM grows with the square of
#: the number of rows.
MOST_ROWS = {"classification": 1000, "regression": 500}
#: Grid of a regression: values of the cost, tube and scale parameters.
COSTS, TUBES = (0.5, 2.0, 8.0, 32.0, 128.0), (0.05, 0.2)
SCALES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
#: If the best R² is below this number, a regression is not tuned. The best model would be nearly
#: constant, and its sensitivities would be noise.
HARDLY = 0.2
#: Parameters of a regression that is not tuned.
UNTUNED = {"cost": 8.0, "scale": 1.0, "tube": 0.05}


class TunedModel(BaseEstimator):
    """Base class of hyper-parameter searches, which predict with the best model."""

    #: Metadata request: row groups are passed to ``fit`` by default, since every search uses them.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    random_state: Seed
    best_estimator_: Any
    best_params_: dict[str, Any]

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Search for the best parameters, and train the best model on all rows.

        Rows of the same group in ``groups`` are in the same fold.
        """
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
        """Return the best parameters of the model."""

    @abstractmethod
    def _model(self, n_columns: int, seed: int = 0) -> Any:
        """Return the largest model that is tried for this number of columns."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the best model."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))


@dataclass(eq=False, repr=False)
class TunedSVC(ClassifierMixin, TunedModel):
    """Search over C and scale of a :class:`RelativeSVC`, as a start for backward elimination.

    With up to 30 columns, five-fold cross-validation tries C in {1, 8, 64} and scale in {1/4, 1/2,
    1, 2}. With more columns, most of them noise, cross-validation cannot find the kernel width that
    ranks relevant columns best. In this case C is not varied. Each scale in {1/4, 1, 2, 4} is tried
    in a backward elimination on two thirds of the rows, and subsets of 5 to 60 columns are scored
    on the last third. The scale with the lowest error is used if it beats scale 1 by more than a
    standard error. Otherwise scale 1 is used.

    Parameters
    ----------
    C : float or None, default=None
        Regularisation parameter. None includes C in the search. If the search does not vary C, None
        means 2.
    random_state : int, Generator or None, default=None
        Seed of the split into thirds, and of the sample of 1000 rows from larger tables.

    Attributes
    ----------
    best_estimator_ : RelativeSVC
        Best model, trained on all rows.
    best_params_ : dict
        Parameters of the best model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> TunedSVC().fit(*load_iris(return_X_y=True)).best_params_
    {'C': 8, 'scale': 0.25}
    """

    C: float | None = None
    _: KW_ONLY
    random_state: Seed = None

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

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the decision values of the best model."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))


def best_point(model: Any, grid: dict[str, Any], X: Array, y: Any, folds: Any) -> dict[str, Any]:
    """Return the parameters with the best cross-validated score."""
    search = GridSearchCV(model, grid, cv=folds, refit=False)
    return dict(search.fit(X, y).best_params_)


def scale_by_thirds(X: Array, y: NDArray[Any], C: float, seed: int, groups: Any = None) -> float:
    """Return the scale with the lowest error on the last third of the rows.

    For each scale, columns are eliminated on the first two thirds. Scale 1 is returned unless
    another scale is better by more than a standard error.
    """
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
    """Return the lowest error on ``rest`` among the subsets of an elimination on ``rows``.

    Columns are scored by the sensitivity of calibrated probabilities, on held-out rows if there
    are many columns. ``groups`` are the groups of ``rows``.
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


@dataclass(eq=False, repr=False, kw_only=True)
class TunedSVR(RegressorMixin, TunedModel):
    """Search over cost, tube and scale of a :class:`RelativeSVR`, as a start for elimination.

    Five-fold cross-validation on at most 500 rows tries scale in {1/16, ..., 2}, cost in {1/2, 2,
    8, 32, 128} and tube in {0.05, 0.2}. If the best R² is below 0.2, the best model is nearly
    constant and its sensitivities are noise. Scale 1, cost 8 and tube 0.05 are then used instead.

    Parameters
    ----------
    random_state : int, Generator or None, default=None
        Seed of the sample of 500 rows from larger tables.

    Attributes
    ----------
    best_estimator_ : RelativeSVR
        Best model, trained on all rows.
    best_params_ : dict
        Parameters of the best model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> sorted(TunedSVR().fit(X[:60], y[:60]).best_params_)
    ['cost', 'scale', 'tube']
    """

    random_state: Seed = None

    def _model(self, n_columns: int, seed: int = 0) -> RelativeSVR:
        return RelativeSVR()

    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        rows = some_rows(y, "regression", seed)
        return least_squares(np.asfortranarray(X)[rows], y[rows], of_rows(groups, rows))


def least_squares(X: Array, y: Array, groups: Any = None) -> dict[str, float]:
    """Return the parameters of a :class:`RelativeSVR` with the lowest cross-validated error.

    The result is the same as with ``GridSearchCV``, but all models of the same scale share a kernel
    matrix. If R² is below ``HARDLY``, ``UNTUNED`` is returned.
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
                model = SVR(kernel="precomputed", C=cost * spread, epsilon=tube * spread)
                found = model.fit(seen, y[train]).predict(unseen)
                errors[i, j, k] = ((found - y[test]) ** 2).mean()
    means = errors.mean(axis=2)
    if means.min() > (1 - HARDLY) * y.var():
        return dict(UNTUNED)
    i, j = np.unravel_index(means.argmin(), means.shape)
    cost, tube = choices[j]
    return {"cost": cost, "scale": SCALES[i], "tube": tube}


def some_rows(y: NDArray[Any], kind: str, seed: int) -> Rows:
    """Return all row indices, or a random sample if there are too many rows for a search."""
    if len(y) <= MOST_ROWS[kind]:
        return np.arange(len(y))
    shares = y if kind == "classification" else None
    rows, _ = train_test_split(
        np.arange(len(y)), train_size=MOST_ROWS[kind], stratify=shares, random_state=seed
    )
    return np.sort(rows)


def of_rows(groups: Any, rows: Rows) -> Any:
    """Return the groups of the given rows, or None if there are no groups."""
    return None if groups is None else groups[rows]


@dataclass(eq=False, repr=False)
class TunedMLP(ClassifierMixin, TunedModel):
    """Search for the number of hidden units of an ``MLPClassifier`` with the best accuracy.

    For d columns, five-fold cross-validation tries 1 to 3 d units: every number if there are at
    most 8, otherwise eight numbers in growing steps. Ties go to the lowest number.

    Parameters
    ----------
    decay : float, default=1.0
        ``alpha`` of the network.
    most : int or None, default=None
        Largest number of hidden units. None means 3 d.
    every : bool, default=False
        Try every number, as published. This takes long with many columns.
    random_state : int, Generator or None, default=None
        Seed of the initial weights.

    Attributes
    ----------
    best_estimator_ : MLPClassifier
        Best model, trained on all rows.
    best_params_ : dict
        Parameters of the best model.

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

    decay: float = 1.0
    _: KW_ONLY
    most: int | None = None
    every: bool = False
    random_state: Seed = None

    def _model(self, n_columns: int, seed: int = 0) -> MLPClassifier:
        return plain_network(self.units(n_columns)[-1], self.decay).set_params(random_state=seed)

    def _search(self, X: Array, y: NDArray[Any], groups: Any, seed: int) -> dict[str, Any]:
        sizes = [(units,) for units in self.units(X.shape[1])]
        least = int(np.unique(y, return_counts=True)[1].min())
        if least < 2:  # no folds are possible: take the number in the middle
            return {"hidden_layer_sizes": sizes[len(sizes) // 2]}
        folds = folds_of("TunedMLP", min(5, least), y, groups, classes=True)
        network = self._model(X.shape[1], seed)
        return best_point(network, {"hidden_layer_sizes": sizes}, X, y, folds)

    def units(self, n_columns: int) -> list[int]:
        """Return the numbers of hidden units to try for this number of columns.

        >>> TunedMLP().units(10)
        [1, 2, 3, 4, 7, 11, 18, 30]
        """
        return units_tried(n_columns, self.most, every=self.every)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the class probabilities of the best network."""
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))


def units_tried(n_columns: int, most: int | None = None, *, every: bool = False) -> list[int]:
    """Return the numbers of hidden units to try, up to ``most`` or 3 per column.

    These are all numbers if there are at most 8 or if ``every`` is True, otherwise eight numbers in
    growing steps.
    """
    most = UNITS_PER_COLUMN * n_columns if most is None else most
    if every or most <= MOST_SIZES:
        return list(range(1, most + 1))
    found = np.unique(np.rint(np.geomspace(1, most, MOST_SIZES)).astype(int))
    return [int(units) for units in found]


def plain_network(n_hidden: int, decay: float) -> MLPClassifier:
    """Return an untrained network with one hidden layer of tanh units, for L-BFGS."""
    return MLPClassifier((n_hidden,), activation="tanh", solver="lbfgs", alpha=decay, max_iter=1000)

"""Models that are trained on selected columns and predict held-out rows."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis._arrays import Array, Subset, scaled_columns
from tamis._parallel import in_order, is_shared, threads_for
from tamis._seeds import stream
from tamis.auto.cox import RidgeCoxCV
from tamis.auto.machine import KernelTuning, make_svm, predict_svm, tune_svm
from tamis.auto.target import Truth
from tamis.compiled.thresholds import in_calls

#: Penalties of the ridge regression. Leave-one-out cross-validation chooses one of them. The range
#: is wide to suit tables with few rows and many columns.
PENALTIES = np.logspace(-1, 4, 11)
#: Number of trees in a forest that is used for prediction.
N_TREES = 100
#: Share of the columns that each split of a regression forest considers.
SHARE = 1 / 3
#: Parameters of an SVM that is not tuned.
UNTUNED = KernelTuning()
#: Parameters of gradient boosting.
BOOSTING: dict[str, Any] = {"max_iter": 100, "max_leaf_nodes": 16, "early_stopping": False}


#: Function of training rows, their target, the rows to predict and a seed, which returns
#: predictions.
Predictor = Callable[[Array, Truth, Array, int], Array]


def predict_rows(
    model: str,
    X: Array,
    truth: Truth,
    train: Subset,
    test: Subset,
    seed: int,
    tunings: dict[int, KernelTuning] | None = None,
) -> Array:
    """Train a model on the rows ``train``, and return its predictions for the rows ``test``.

    Parameters
    ----------
    model : str
    X : array
        The selected columns.
    truth : Truth
    train, test : array of int
    seed : int
    tunings : dict or None
        Parameters of SVMs that were tuned on the same training rows. The key is the bit length of
        the number of columns. SVMs with the same key share their parameters. Missing parameters are
        added.
    """
    known = truth.take(train)
    if known.weights is not None and not known.weights.all():  # solvers reject a weight of 0
        train = train[known.weights > 0]
        known = truth.take(train)
    if not X.shape[1] or known.is_one:
        return np.broadcast_to(known.mean, (len(test), truth.values.shape[1]))
    Z, scale = scaled_columns(X[train])
    with warnings.catch_warnings():  # scikit-learn warns if a target has many small classes
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        if model == "machine":
            tuning = _tuning(Z, known, seed, {} if tunings is None else tunings)
            found = predict_svm(Z, known, scale(X[test]), tuning)
        else:
            found = PREDICTORS[model](Z, known, scale(X[test]), seed)
    return found if truth.codes is None else _as_shares(found)


def _tuning(
    known: Array, truth: Truth, seed: int, tunings: dict[int, KernelTuning]
) -> KernelTuning:
    digits = known.shape[1].bit_length()
    if digits not in tunings:
        tunings[digits] = tune_svm(known, truth, seed)
    return tunings[digits]


def _as_shares(found: Array) -> Array:
    """Clip predictions to [0, 1] and rescale them to a sum of 1, so that they are probabilities."""
    shares = np.clip(found, 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total > 0)


def _ridge(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    model = RidgeCV(PENALTIES).fit(known, truth.values, sample_weight=truth.weights)
    return np.asarray(model.predict(asked)).reshape(len(asked), -1)


def _trees(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    """Return the predictions of a forest. It trains faster than the one of :func:`estimator_of`."""
    return _forest(known, truth, asked, seed, N_TREES)[0]


def _forest(
    known: Array, truth: Truth, asked: Array, seed: int, n_trees: int
) -> tuple[Array, Array]:
    """Return the predictions of a forest, and its importances if there are no rows to predict."""
    from tamis.compiled.forest import grow_forest

    (n_rows, n_columns), n_outputs = known.shape, truth.values.shape[1]
    values = np.ones((2, n_rows))
    if truth.weights is not None:
        values[1] = truth.weights / truth.weights.max()
    codes, centre, size, n_tried = truth.codes, np.zeros(1), 1.0, int(np.sqrt(n_columns))
    if codes is None:
        codes, centre, n_tried = np.zeros(n_rows, dtype=np.intp), truth.mean, int(SHARE * n_columns)
        values[0] = truth.values[:, 0] - centre
        size = np.abs(values[0]).max()
        values[0] /= size
    tables = np.ascontiguousarray(known.T), np.ascontiguousarray(asked.T)

    def grow(trees: slice) -> tuple[Array, Array]:
        return grow_forest(
            tables[0], codes, values, tables[1], n_outputs, max(1, n_tried),
            trees.stop - trees.start, stream(seed, "trees", trees.start),
        )  # fmt: skip

    terms = n_rows * np.log2(n_rows + 1) * (n_tried + 2)
    # sums depend on the slices, so the slices must not depend on the number of threads
    parts = list(in_calls(n_trees, terms, shared=is_shared(n_trees * terms)))
    grown = zip(*in_order(grow, parts, threads_for(n_trees * terms)), strict=True)
    found, importances = (np.sum(part, axis=0) for part in grown)
    return centre + size * found / n_trees, importances / max(importances.sum(), 1e-300)


class ForestImportances(BaseEstimator):
    """Impurity importances of the forest of :func:`estimator_of`, without the trees.

    Parameters
    ----------
    n_trees : int
    task : str
        "classification" or "regression".
    random_state : int, default=0
    """

    def __init__(self, n_trees: int, task: str, random_state: int = 0):
        self.n_trees, self.task, self.random_state = n_trees, task, random_state

    def fit(self, X: Array, y: NDArray[Any]) -> Self:
        """Grow the trees, and store the share of each column in the total impurity decrease."""
        known, truth = scaled_columns(X)[0], Truth.of(y, self.task)
        nothing = np.empty((0, X.shape[1]))
        _, self.feature_importances_ = _forest(
            known, truth, nothing, self.random_state, self.n_trees
        )
        return self


def _boosting(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    if truth.codes is None:
        centre, spread = truth.mean[0], truth.values.std()
        # standardised, because the stopping rule of leaves depends on the scale of the target
        y = (truth.values[:, 0] - centre) / spread
        regressor = HistGradientBoostingRegressor(**BOOSTING, random_state=seed)
        found = regressor.fit(known, y, sample_weight=truth.weights).predict(asked)
        return np.asarray(centre + spread * found)[:, None]
    classifier = HistGradientBoostingClassifier(**BOOSTING, random_state=seed)
    classifier.fit(known, truth.codes, sample_weight=truth.weights)
    shares = np.zeros((len(asked), truth.values.shape[1]))
    shares[:, classifier.classes_] = classifier.predict_proba(asked)
    return shares


def _cox(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    model = RidgeCoxCV().fit(known, truth.censored, sample_weight=truth.weights)
    return np.asarray(model.predict(asked))[:, None]


#: Names of the models. If several are equally good, the first is chosen.
MODELS = ("ridge", "machine", "trees", "boosting", "cox")
#: Predictor of each model but the SVM, which is tuned.
PREDICTORS: dict[str, Predictor] = {
    "ridge": _ridge, "boosting": _boosting, "trees": _trees, "cox": _cox,
}  # fmt: skip


def tuning_of(model: str, X: Array, truth: Truth, seed: int) -> KernelTuning:
    """Return the parameters of the SVM, tuned on the given rows and columns.

    For any other model, return the default parameters.
    """
    if model != "machine" or not X.shape[1] or truth.is_one:
        return UNTUNED
    return tune_svm(scaled_columns(X)[0], truth, seed)


def estimator_of(
    model: str, n_columns: int, task: str, seed: int, tuning: KernelTuning = UNTUNED
) -> Any:
    """Return an untrained estimator of the given model for the selected columns.

    ``tuning`` holds the parameters of the SVM; see :func:`tamis.auto.machine.tune_svm`.
    """
    classes = task == "classification"
    if model == "cox":
        return make_pipeline(StandardScaler(), RidgeCoxCV())
    if model == "ridge":
        last = RidgeClassifierCV(PENALTIES) if classes else RidgeCV(PENALTIES)
        return make_pipeline(StandardScaler(), last)
    if model == "boosting":
        if classes:
            return HistGradientBoostingClassifier(**BOOSTING, random_state=seed)
        boosted = HistGradientBoostingRegressor(**BOOSTING, random_state=seed)
        return TransformedTargetRegressor(boosted, transformer=StandardScaler())
    if model == "trees":
        if classes:
            return ExtraTreesClassifier(N_TREES, random_state=seed)
        forest = ExtraTreesRegressor(N_TREES, max_features=SHARE, random_state=seed)
        # a forest treats variances below 1e-16 as 0
        return TransformedTargetRegressor(forest, transformer=StandardScaler())
    return make_pipeline(StandardScaler(), make_svm(n_columns, task, tuning))

"""Models that are trained on selected columns and predict held-out rows."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis._arrays import Array, Subset, scaled_columns
from tamis.auto.cox import RidgeCoxCV
from tamis.auto.machine import WIDTH, machine_answers, machine_of, tuned
from tamis.auto.target import Truth

#: Penalties of the ridge regression, of which the rows left out one by one choose: a prior that is
#: as wide as few rows of many columns need.
PENALTIES = np.logspace(-1, 4, 11)
#: Trees of a forest that predicts.
N_TREES = 100
#: Columns that a split of a regression forest looks at, as a share; of classes it is the root.
SHARE = 1 / 3


Answers = Callable[[Array, Truth, Array, int], Array]


def answers(model: str, X: Array, truth: Truth, train: Subset, test: Subset, seed: int) -> Array:
    """Return what a model that was trained on some rows predicts for others."""
    known = truth.take(train)
    if known.weights is not None and not known.weights.all():  # solvers refuse a weight of 0
        train = train[known.weights > 0]
        known = truth.take(train)
    if not X.shape[1] or known.is_one:
        return np.broadcast_to(known.mean, (len(test), truth.values.shape[1]))
    Z, scale = scaled_columns(X[train], "K")
    with warnings.catch_warnings():  # classes of a row or two each may be numbers, it says
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        found = ANSWERS[model](Z, known, scale(X[test]), seed)
    return found if truth.codes is None else _as_shares(found)


def _as_shares(found: Array) -> Array:
    """Answers as probabilities: within 0 and 1, and 1 in all."""
    shares = np.clip(found, 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total > 0)


def _ridge(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    model = RidgeCV(PENALTIES).fit(known, truth.values, sample_weight=truth.weights)
    return np.asarray(model.predict(asked)).reshape(len(asked), -1)


def _trees(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    if truth.codes is None:
        model = ExtraTreesRegressor(N_TREES, max_features=SHARE, random_state=seed)
        model.fit(known, truth.values[:, 0], sample_weight=truth.weights)
        return np.asarray(model.predict(asked))[:, None]
    model = ExtraTreesClassifier(N_TREES, random_state=seed)
    model.fit(known, truth.codes, sample_weight=truth.weights)
    found = np.zeros((len(asked), truth.values.shape[1]))
    found[:, model.classes_] = model.predict_proba(asked)
    return found


def _cox(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    model = RidgeCoxCV().fit(known, truth.censored, sample_weight=truth.weights)
    return np.asarray(model.predict(asked))[:, None]


#: The models, in the order in which one of several ties is taken.
ANSWERS: dict[str, Answers] = {
    "ridge": _ridge, "machine": machine_answers, "trees": _trees, "cox": _cox,
}  # fmt: skip


def width_of(model: str, X: Array, truth: Truth, seed: int) -> float:
    """The width of a model's kernel for these rows and columns."""
    if model != "machine" or not X.shape[1] or truth.is_one:
        return WIDTH
    return tuned(scaled_columns(X, "K")[0], truth, seed).width


def estimator_of(model: str, n_columns: int, task: str, seed: int, width: float = WIDTH) -> Any:
    """The model as an estimator that can be trained on the columns that are kept.

    ``width`` is that of the kernel machine, see :func:`tamis.auto.machine.tuned`.
    """
    classes = task == "classification"
    if model == "cox":
        return make_pipeline(StandardScaler(), RidgeCoxCV())
    if model == "ridge":
        last = RidgeClassifierCV(PENALTIES) if classes else RidgeCV(PENALTIES)
        return make_pipeline(StandardScaler(), last)
    if model == "trees":
        if classes:
            return ExtraTreesClassifier(N_TREES, random_state=seed)
        forest = ExtraTreesRegressor(N_TREES, max_features=SHARE, random_state=seed)
        # a forest takes squares below 1e-16 for 0
        return TransformedTargetRegressor(forest, transformer=StandardScaler())
    return make_pipeline(StandardScaler(), machine_of(n_columns, task, width))

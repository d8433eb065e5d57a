"""Models that are trained on chosen columns and answer for rows they have not seen."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import Array, Subset, class_codes, scaled_columns
from tamis.evaluation.dealing import parts_of
from tamis.svm.relative import RelativeSVR

#: Penalties of the ridge regression, of which the rows left out one by one choose: a prior that is
#: as wide as few rows of many columns need.
PENALTIES = np.logspace(-1, 4, 11)
#: The kernel machine: C, gamma times the number of columns, and epsilon of a regression.
COST, WIDTH, TUBE = 4.0, 0.5, 0.1
#: Slope of the sigmoid that makes a probability of a decision value, where classes are too small to
#: choose one of several by inner folds of at most so many rows. Classes that lie far apart need a
#: steep one (Brier score of srbct: .17 at 2, .05 at 4; of ten digits by 40 columns .33 at 1.5, .01
#: at 7; of odd and even ones .05 and .02); with a flat one long lists look worse than short ones.
SLOPE, SLOPES, SLOPE_ROWS, SLOPE_FOLDS = 1.5, (1.0, 1.5, 2.0, 3.0, 4.5, 7.0), 500, 3
#: Trees of a forest that predicts.
N_TREES = 100
#: Columns that a split of a regression forest looks at, as a share; of classes it is the root.
SHARE = 1 / 3


class Truth(NamedTuple):
    """What is to be answered for each row: indicators of the classes, or the number itself."""

    values: Array
    codes: NDArray[np.intp] | None

    @classmethod
    def of(cls, y: NDArray[Any], task: str) -> "Truth":
        """The target as a task reads it."""
        if task == "regression":
            return cls(np.asarray(y, dtype=float)[:, None], None)
        labels, codes = class_codes(y)
        return cls(np.eye(len(labels))[codes], codes)

    def take(self, rows: Subset) -> "Truth":
        """Of some rows."""
        return Truth(self.values[rows], None if self.codes is None else self.codes[rows])

    @property
    def is_one(self) -> bool:
        """Whether all rows have one answer."""
        return bool((self.values == self.values[0]).all())


Answers = Callable[[Array, Truth, Array, int], Array]


def answers(model: str, X: Array, truth: Truth, train: Subset, test: Subset, seed: int) -> Array:
    """What a model that was trained on some rows says of others."""
    known = truth.take(train)
    if not X.shape[1] or known.is_one:
        return np.broadcast_to(known.values.mean(axis=0), (len(test), truth.values.shape[1]))
    Z, scale = scaled_columns(X[train], "K")
    with warnings.catch_warnings():  # classes of a row or two each may be numbers, it says
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        found = ANSWERS[model](Z, known, scale(X[test]), seed)
    return found if truth.codes is None else _as_shares(found)


def losses(found: Array, truth: Truth, test: Subset) -> tuple[Array, NDArray[np.bool_] | None]:
    """Squared loss of each row, and for classes whether the greatest share is the wrong one."""
    there = truth.take(test)
    squared = ((found - there.values) ** 2).sum(axis=1)
    return squared, None if there.codes is None else found.argmax(axis=1) != there.codes


def _as_shares(found: Array) -> Array:
    """Answers as probabilities: within 0 and 1, and 1 in all."""
    shares = np.clip(found, 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total > 0)


def _ridge(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    model = RidgeCV(PENALTIES).fit(known, truth.values)
    return np.asarray(model.predict(asked)).reshape(len(asked), -1)


def _machine(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    if truth.codes is None:
        model = RelativeSVR(COST, tube=TUBE, scale=WIDTH).fit(known, truth.values[:, 0])
        return np.asarray(model.predict(asked))[:, None]
    model = SVC(C=COST, gamma=WIDTH / known.shape[1], decision_function_shape="ovo")
    slope = _slope(model, known, truth, seed)
    decisions = model.fit(known, truth.codes).decision_function(asked)
    return _shares(decisions, slope, model.classes_, truth.values.shape[1])


def _slope(model: SVC, known: Array, truth: Truth, seed: int) -> float:
    """The slope whose probabilities lose least on rows that inner folds leave out."""
    codes = truth.codes
    assert codes is not None
    counts = np.bincount(codes)
    if counts[counts > 0].min() < SLOPE_FOLDS:
        return SLOPE
    if len(codes) > SLOPE_ROWS:
        rows = parts_of(codes, (SLOPE_ROWS,), np.random.default_rng(seed))[0]
        rows = rows[np.bincount(codes[rows])[codes[rows]] >= SLOPE_FOLDS]
        known, truth, codes = known[rows], truth.take(rows), codes[rows]
        if (codes == codes[0]).all():
            return SLOPE
    total = np.zeros(len(SLOPES))
    inner = StratifiedKFold(SLOPE_FOLDS, shuffle=True, random_state=seed)
    for train, test in inner.split(known, codes):
        decisions = model.fit(known[train], codes[train]).decision_function(known[test])
        for index, slope in enumerate(SLOPES):
            shares = _shares(decisions, slope, model.classes_, truth.values.shape[1])
            total[index] += ((shares - truth.values[test]) ** 2).sum()
    return SLOPES[int(total.argmin())]


def _shares(decisions: Array, slope: float, known: NDArray[np.intp], n_classes: int) -> Array:
    """Probabilities of all classes, of which the model knows some."""
    pairs = 1 / (1 + np.exp(-np.clip(slope * decisions, -50, 50)))
    found = np.zeros((len(decisions), n_classes))
    found[:, known] = coupled(pairs, len(known))
    return found


def coupled(pairs: Array, n_classes: int) -> Array:
    """Probabilities of the classes from those of each pair, by the rule of Price et al. (1995).

    >>> coupled(np.array([0.9]), 2)
    array([[0.1, 0.9]])
    """
    if n_classes == 2:  # of two classes a decision value speaks for the second
        return np.column_stack([1 - pairs.ravel(), pairs.ravel()])
    inverse = np.full((len(pairs), n_classes), 2.0 - n_classes)
    upper = zip(*np.triu_indices(n_classes, 1), strict=True)
    for column, (first, second) in enumerate(upper):
        wins = np.clip(pairs[:, column], 1e-9, 1 - 1e-9)
        inverse[:, first] += 1 / wins
        inverse[:, second] += 1 / (1 - wins)
    shares = 1 / inverse
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _trees(known: Array, truth: Truth, asked: Array, seed: int) -> Array:
    if truth.codes is None:
        model = ExtraTreesRegressor(N_TREES, max_features=SHARE, random_state=seed)
        return np.asarray(model.fit(known, truth.values[:, 0]).predict(asked))[:, None]
    model = ExtraTreesClassifier(N_TREES, random_state=seed).fit(known, truth.codes)
    found = np.zeros((len(asked), truth.values.shape[1]))
    found[:, model.classes_] = model.predict_proba(asked)
    return found


#: The models, in the order in which one of several equals is taken.
ANSWERS: dict[str, Answers] = {"ridge": _ridge, "machine": _machine, "trees": _trees}


def estimator_of(model: str, n_columns: int, task: str, seed: int) -> Any:
    """The model as an estimator that can be trained on the columns that are kept."""
    classes = task == "classification"
    if model == "ridge":
        last = RidgeClassifierCV(PENALTIES) if classes else RidgeCV(PENALTIES)
        return make_pipeline(StandardScaler(), last)
    if model == "trees":
        if classes:
            return ExtraTreesClassifier(N_TREES, random_state=seed)
        forest = ExtraTreesRegressor(N_TREES, max_features=SHARE, random_state=seed)
        # a forest takes squares below 1e-16 for 0
        return TransformedTargetRegressor(forest, transformer=StandardScaler())
    gamma = WIDTH / n_columns
    if classes:
        return make_pipeline(StandardScaler(), SVC(C=COST, gamma=gamma))
    machine = SVR(C=COST, gamma=gamma, epsilon=TUBE)
    scaled = TransformedTargetRegressor(machine, transformer=StandardScaler())
    return make_pipeline(StandardScaler(), scaled)

"""Judges: the models that are trained on the selected columns, and the metrics."""

from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tamis._arrays import Array
from tamis.evaluation import Metric
from tamis.evaluation.metrics import metric

ALPHAS = np.logspace(-2, 4, 7)
COSTS = [1.0, 10.0, 100.0]
#: Tables with more rows are not judged by the SVM.
SVM_ROWS = 3000
#: Maximum number of boosted trees, and number of trees without improvement after which training
#: stops.
ROUNDS, PATIENCE = 150, 15


def linear(X: Array, y: NDArray[Any], seed: int) -> Any:
    """Fit a ridge model. The penalty is chosen by leave-one-out cross-validation."""
    model = RidgeClassifierCV if y.dtype.kind == "i" else RidgeCV
    return model(alphas=ALPHAS).fit(X, y)


def svm(X: Array, y: NDArray[Any], seed: int) -> Any:
    """Fit an SVM with an RBF kernel. C is chosen by three-fold cross-validation."""
    folds = KFold(3, shuffle=True, random_state=seed)
    if y.dtype.kind == "i":
        return GridSearchCV(SVC(), {"C": COSTS}, cv=folds).fit(X, y)
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return GridSearchCV(model, {"regressor__C": COSTS}, cv=folds).fit(X, y)


def forest(X: Array, y: NDArray[Any], seed: int) -> Any:
    """Fit a random forest. The minimum size of its leaves is chosen by the out-of-bag error."""
    model = RandomForestClassifier if y.dtype.kind == "i" else RandomForestRegressor
    options = {"n_estimators": 50, "max_features": "sqrt", "random_state": seed}
    several = [model(min_samples_leaf=leaf, oob_score=True, **options).fit(X, y) for leaf in (1, 5)]
    return max(several, key=lambda one: one.oob_score_)


class Boosted:
    """Boosted trees of LightGBM. Their number is chosen on a held-out fifth of the rows."""

    def __init__(self, X: Array, y: NDArray[Any], seed: int):
        import lightgbm

        self.classes = np.unique(y) if y.dtype.kind == "i" else None
        target = y if self.classes is None else np.searchsorted(self.classes, y)
        k = 0 if self.classes is None else len(self.classes)
        goal: dict[str, Any] = {
            "objective": ("regression", "regression", "binary", "multiclass")[min(k, 3)]
        }
        goal |= {"num_class": k} if k > 2 else {}
        leaf = int(np.clip(len(y) // 20, 1, 20))
        goal |= {"min_data_in_leaf": leaf, "num_leaves": 15, "num_threads": 1}
        goal |= {"seed": seed, "verbosity": -1, "feature_pre_filter": False}
        is_kept = np.random.default_rng(seed).permutation(len(y)) % 5 > 0
        held = lightgbm.Dataset(X[~is_kept], target[~is_kept])
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        first = lightgbm.train(
            goal,
            lightgbm.Dataset(X[is_kept], target[is_kept]),
            ROUNDS,
            valid_sets=[held],
            callbacks=[stop],
        )
        rounds = max(first.best_iteration, 1)
        self.model = lightgbm.train(goal, lightgbm.Dataset(X, target), rounds)

    def predict(self, X: Array) -> NDArray[Any]:
        """Return classes or numbers."""
        found = np.asarray(self.model.predict(X))
        if self.classes is None:
            return found
        codes = found.argmax(axis=1) if found.ndim == 2 else (found > 0.5).astype(int)
        return np.asarray(self.classes[codes])

    def decision_function(self, X: Array) -> NDArray[Any]:
        """Return the probabilities of the second class."""
        return np.asarray(self.model.predict(X))


JUDGES: dict[str, Callable[[Array, NDArray[Any], int], Any]] = {
    "linear": linear,
    "svm": svm,
    "forest": forest,
    "boosting": Boosted,
}


class CachedJudge(BaseEstimator):
    """A judge that computes each prediction once.

    Many methods select the same columns, so predictions are cached. The key of the cache is the
    training and test rows. The cache is cleared when a judge is fitted to another target.

    Parameters
    ----------
    name : str
        A name of ``JUDGES``.
    random_state : int or None
    of_classes : bool
        Whether the target consists of classes.
    """

    _known: dict[Any, Any] = {}  # noqa: RUF012 (shared by all judges of this process)
    _target = b""

    def __init__(self, name: str, random_state: int | None = None, *, of_classes: bool = True):
        self.name = name
        self.random_state = random_state
        self.of_classes = of_classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self.of_classes else "regressor"
        return tags

    def fit(self, X: Array, y: NDArray[Any]) -> Self:
        """Store the training rows. The model is fitted when a prediction is needed."""
        target = _digest(y)
        if CachedJudge._target != target:
            CachedJudge._target = target
            CachedJudge._known.clear()
        self.rows_ = X, y
        self.classes_ = np.unique(y)
        self.key_ = self.name, self.random_state, _digest(X)
        return self

    def outputs(self, X: Array) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the predictions, and the decision values if there are two classes."""
        key = *self.key_, _digest(X)
        if key not in CachedJudge._known:
            train, y = self.rows_
            fitted = JUDGES[self.name](train, y, self.random_state or 0)
            decision = None
            if self.of_classes and len(self.classes_) == 2:
                decision = _decide(fitted, X)
            CachedJudge._known[key] = fitted.predict(X), decision
        return CachedJudge._known[key]

    def predict(self, X: Array) -> NDArray[Any]:
        """Return classes or numbers."""
        return self.outputs(X)[0]


def _decide(fitted: Any, X: Array) -> NDArray[Any]:
    if hasattr(fitted, "decision_function"):
        return np.asarray(fitted.decision_function(X))
    return np.asarray(fitted.predict_proba(X)[:, 1])


def _digest(array: NDArray[Any]) -> bytes:
    return sha256(np.ascontiguousarray(array).tobytes()).digest()


def _auc(fitted: Any, X: Array, y: NDArray[Any]) -> float:
    """Return the area under the ROC curve, or 0.5 without decision values or with one class."""
    decision = fitted.outputs(X)[1] if hasattr(fitted, "outputs") else None
    if decision is None or len(np.unique(y)) < 2:
        return 0.5
    return float(roc_auc_score(y, decision))


def metrics_of(y: NDArray[Any]) -> list[Metric]:
    """Return the metrics for a target."""
    if y.dtype.kind != "i":
        return [metric("r2")]
    both = [metric("error"), metric("ber")]
    return [*both, Metric("auc", _auc, True)] if len(np.unique(y)) == 2 else both


def judges_of(y: NDArray[Any]) -> dict[str, CachedJudge]:
    """Return the judges for a target.

    The SVM is left out if there are many rows, and boosting if LightGBM is not installed.
    """
    out, of_classes = {"svm"} if len(y) > SVM_ROWS else set(), y.dtype.kind == "i"
    out |= set() if find_spec("lightgbm") else {"boosting"}
    return {name: CachedJudge(name, of_classes=of_classes) for name in JUDGES if name not in out}

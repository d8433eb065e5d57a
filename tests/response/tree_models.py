"""Tree models of all libraries on small tables, and their answers by explicitly altered copies."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from tamis.response.distances import AbsoluteChange
from tamis.response.engines.base import FoldModel, Model
from tamis.response.perturbations import EveryValue, Points, Shuffle
from tamis.response.predictions import as_it_is
from tamis.response.trees import TreeEngine, open_trees

N, D = 90, 6
OWN = {
    kind.__name__: kind
    for kind in (
        DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor,
        RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor,
        GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
}  # fmt: skip
#: What a model of each kind is given, so that it is small and has something to split.
SETTINGS: dict[str, dict[str, Any]] = {
    "DecisionTree": {"random_state": 0, "min_samples_leaf": 2},
    "ExtraTree": {"random_state": 0},
    "RandomForest": {"n_estimators": 8, "min_samples_leaf": 2, "random_state": 0},
    "ExtraTrees": {"n_estimators": 8, "random_state": 0},
    "GradientBoosting": {"n_estimators": 8, "random_state": 0},
    "HistGradientBoosting": {"max_iter": 8, "min_samples_leaf": 3, "early_stopping": False},
    "LGBM": {"n_estimators": 8, "min_child_samples": 3, "verbose": -1, "n_jobs": 1},
    "XGB": {"n_estimators": 8, "max_depth": 4, "n_jobs": 1},
    "XGBRF": {"n_estimators": 8, "max_depth": 4, "n_jobs": 1},
    "CatBoost": {
        "iterations": 8, "depth": 4, "verbose": 0, "allow_writing_files": False,
        "thread_count": 1, "random_seed": 0,
    },
}  # fmt: skip
LIBRARIES = {"LGBM": "lightgbm", "XGB": "xgboost", "XGBRF": "xgboost", "CatBoost": "catboost"}


def made(name: str, task: str, **settings: Any) -> Any:
    """An untrained model; the test is skipped where its library is not installed."""
    full = f"{name}{'Regressor' if task == 'regression' else 'Classifier'}"
    if name in LIBRARIES:
        if find_spec(LIBRARIES[name]) is None:
            pytest.skip(f"{LIBRARIES[name]} is not installed")
        kind = getattr(import_module(LIBRARIES[name]), full)
    else:
        kind = OWN[full]
    return kind(**{**SETTINGS[name], **settings})


def table(kind: str) -> np.ndarray:
    """Rows: continuous, with many ties, with missing values, with categories in columns 1 and 4."""
    draw = np.random.default_rng(5)
    X = draw.normal(size=(N, D))
    if kind == "tied":
        X = np.round(X * [1, 2, 0.7, 4, 1, 1])
        X[:, 4] = 3.0
        # apart in 64 bits, equal in 32
        X[:, 2] += np.where(draw.random(N) < 0.5, 0.0, 1e-9)
    if kind in ("categories", "both"):
        X[:, 1], X[:, 4] = draw.integers(0, 6, N), draw.integers(2, 5, N)
    if kind in ("missing", "both"):
        X[draw.random((N, D)) < 0.15] = np.nan
    return X


def target(X: np.ndarray, task: str) -> np.ndarray:
    """Classes or numbers that depend on most columns."""
    draw, Z = np.random.default_rng(6), np.nan_to_num(X)
    signal = Z[:, 0] + np.sin(Z[:, 2]) * Z[:, 3] + 0.5 * Z[:, 5] + 0.4 * draw.normal(size=N)
    signal += 3.0 * np.isin(Z[:, 1], [1, 4]) - np.isnan(X[:, 0])
    if task == "regression":
        return signal
    n_classes = int(task)
    return np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def asked(model: Any, method: str) -> Any:
    """A method of a model in the form that engines answer in."""

    def coded(X: np.ndarray) -> np.ndarray:
        n_classes = len(model.classes_)
        codes = np.searchsorted(model.classes_, np.ravel(model.predict(X)))
        return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]

    def raw(X: np.ndarray) -> np.ndarray:
        if method == "codes":
            return coded(X)
        found = np.asarray(getattr(model, method)(X), dtype=np.float64)
        if method == "predict_proba" and found.shape[1] == 2:
            return found[:, 1:]
        return found.reshape(len(X), -1)

    return raw


def opened(model: Any, method: str, X: np.ndarray, **options: Any) -> TreeEngine:
    """The engine of a model that must be followed."""
    raw = asked(model, method)
    ensemble = open_trees(model, method, raw, X)
    assert ensemble is not None
    return TreeEngine(ensemble, method, raw, X, **options)


def singles() -> list[np.ndarray]:
    """Each column by itself."""
    return list(np.arange(D)[:, None])


def copies_shuffled(raw: Any, X: np.ndarray, donors: np.ndarray, units: Any) -> np.ndarray:
    """Outputs of shape (units, rows, outputs)."""
    found = []
    for columns in units:
        altered = X.copy()
        altered[:, columns] = X[np.ix_(donors, columns)]
        found.append(raw(altered))
    return np.stack(found)


def copies_at(raw: Any, X: np.ndarray, points: np.ndarray, units: Any) -> np.ndarray:
    """Outputs of shape (units, rows, points, outputs)."""
    found = []
    for columns in units:
        altered = np.repeat(X[None], len(points), axis=0)
        altered[:, :, columns] = points[:, None, columns]
        answers = raw(altered.reshape(-1, X.shape[1]))
        found.append(answers.reshape(len(points), len(X), -1).transpose(1, 0, 2))
    return np.stack(found)


def every_shuffled(engine: TreeEngine, X: np.ndarray, donors: np.ndarray, units: Any) -> np.ndarray:
    """Outputs of all units, those that change nothing among them."""
    found = np.repeat(engine.outputs()[None], len(units), axis=0)
    known, moved = engine.shuffled(X, donors, units)
    found[known] = moved
    return found


def at(engine: TreeEngine, points: np.ndarray, units: Any = None) -> np.ndarray:
    """Outputs of shape (units, rows, points, outputs) by the batches of an engine."""
    found = []
    for columns in _units(engine, units):
        (batch,) = engine.batches(columns[None])
        found.append(batch.at(slice(None), slice(None), points[:, columns][None])[0])
    return np.stack(found)


def effects_of(engine: TreeEngine, points: np.ndarray, units: Any = None) -> np.ndarray:
    """Mean outputs of shape (units, points, outputs)."""
    found = []
    for columns in _units(engine, units):
        values = points[:, columns][None]
        at = Points(values, np.ones(values.shape[:2]))
        (means,) = engine.mean_outputs(columns[None], at, None)
        found.append(means)
    return np.stack(found)


def part_of(engine: TreeEngine) -> FoldModel:
    """Model of an engine, which compares its raw outputs in all rows."""
    model = Model(None, "predict", engine.raw, as_it_is)
    return FoldModel(model, np.arange(len(engine.X)))


def added_up(engine: TreeEngine, draw: Any, units: Any = None, statistic: Any = None) -> np.ndarray:
    """Sums of a statistic, by default of the absolute changes."""
    statistic = statistic or AbsoluteChange(engine.outputs(), 1.0)
    units = _units(engine, units)
    return engine.sums(units, draw, part_of(engine), statistic)


def absolute(
    engine: TreeEngine, values: np.ndarray, weights: Any = None, units: Any = None
) -> np.ndarray:
    """Sums over rows, points and outputs of the absolute changes."""
    draw: Any = EveryValue(values, lambda: None)
    if weights is not None:
        draw = Points(values.T[..., None], weights.T)
    return added_up(engine, draw, units)[0]


def absolute_of_shuffle(engine: TreeEngine, table: np.ndarray, donors: np.ndarray) -> np.ndarray:
    """Sums over rows and outputs of the absolute changes."""
    return added_up(engine, Shuffle(table, donors))[0]


def _units(engine: TreeEngine, units: Any) -> Any:
    return np.arange(engine.X.shape[1])[:, None] if units is None else units


def tolerance(name: str) -> float:
    """Of the largest output; XGBoost itself adds in 32 bits."""
    return 1e-6 if name.startswith("XGB") else 1e-12

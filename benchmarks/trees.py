"""Sensitivities of tree ensembles: tamis, a loop over ``predict``, scikit-learn and SHAP.

python -m benchmarks.trees

Times include reading the trees, comparing them with the model's predictions, coding, traversing,
the link and the mean. Loops use a few columns and SHAP a few rows; their times are scaled up.
"""

from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.inspection import permutation_importance
from threadpoolctl import threadpool_limits

from benchmarks import compare
from tamis.response.distances import AbsoluteChange
from tamis.response.engines.base import FoldModel, Model
from tamis.response.perturbations import Draw, EveryValue, Shuffle
from tamis.response.predictions import as_it_is
from tamis.response.trees import TreeEngine, open_trees

#: Number of columns that loops shuffle, and number of rows that SHAP explains.
COLUMNS, ROWS = 8, 20


class Case(NamedTuple):
    """A model, a table, and the smallest accepted ratios, for one shuffle and for all values."""

    name: str
    n_samples: int
    n_features: int
    must: tuple[float, float] | None
    agreement: float = 1e-12


CASES = [
    Case("RandomForest", 2000, 500, (150, 80)),
    Case("RandomForest", 2000, 100, None),
    Case("RandomForest", 500, 2000, (700, 300)),
    Case("HistGradientBoosting", 10_000, 50, (20, 12)),
    Case("LightGBM", 20_000, 200, (80, 60)),
    Case("XGBoost", 5000, 100, (8, 5), 1e-6),
    Case("ExtraTrees", 5000, 100, None),
]
GUESTS = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}


def trained(case: Case, X: np.ndarray, y: np.ndarray) -> Any:
    """Return a fitted model of 100 trees with the library's default size."""
    if case.name == "RandomForest":
        return RandomForestClassifier(100, random_state=0).fit(X, y)
    if case.name == "ExtraTrees":  # ExtraTrees draws its tests one after the other
        return ExtraTreesClassifier(100, max_features=1, max_depth=24, random_state=0).fit(X, y)
    if case.name == "HistGradientBoosting":
        return HistGradientBoostingClassifier(max_iter=100, early_stopping=False).fit(X, y)
    if case.name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1).fit(X, y)
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, n_jobs=1).fit(X, y)


class Columns:
    """A model as a function of its first columns, to measure the time of a few columns."""

    def __init__(self, model: Any, X: np.ndarray):
        self.model, self.X = model, X.copy()

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Columns":
        return self

    def second(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of the second class."""
        return np.asarray(self.model.predict_proba(X)[:, 1:], dtype=np.float64)

    def predict(self, few: np.ndarray) -> np.ndarray:
        self.X[:, : few.shape[1]] = few
        return self.second(self.X)[:, 0] > 0.5

    def loop(self, X: np.ndarray, donors: np.ndarray, n: int) -> np.ndarray:
        """Return the mean change of the probability when each of the first columns is shuffled."""
        before = self.second(X)
        found = np.empty(n)
        for j in range(n):
            altered = X.copy()
            altered[:, j] = X[donors, j]
            found[j] = np.abs(self.second(altered) - before).mean()
        return found


def accuracy(model: Columns, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows with the right class."""
    return float((model.predict(X) == y).mean())


def opened(columns: Columns, X: np.ndarray) -> TreeEngine:
    """Return the engine of tamis, after reading the trees and comparing them with the model."""
    ensemble = open_trees(columns.model, "predict_proba", columns.second, X)
    assert ensemble is not None
    return TreeEngine(ensemble, "predict_proba", columns.second, X)


def shuffles(columns: Columns, X: np.ndarray, all_donors: list[np.ndarray]) -> np.ndarray:
    """Return the mean change when each column is shuffled, over several shuffles."""
    engine = opened(columns, X)
    return np.asarray(np.mean([changes(engine, Shuffle(X, d)) for d in all_donors], axis=0))


def every_value(columns: Columns, X: np.ndarray) -> np.ndarray:
    """Return the mean change when each column is set to each of its values."""
    return changes(opened(columns, X), EveryValue(X, lambda: None)) / len(X)


def changes(engine: TreeEngine, draw: Draw) -> np.ndarray:
    """Return the mean absolute change of the outputs for each column."""
    model = FoldModel(Model(None, "predict_proba", engine.raw, as_it_is), np.arange(len(engine.X)))
    statistic = AbsoluteChange(engine.outputs(), 1.0)
    units = np.arange(engine.X.shape[1])[:, None]
    return np.asarray(engine.sums(units, draw, model, statistic)[0] / len(engine.X))


def seconds(function: Callable[..., Any], *arguments: Any, repeats: int = 3) -> tuple[float, Any]:
    """Return the median processor seconds of a function, and its result."""
    times = []
    for _ in range(repeats):
        start = process_time()
        answer = function(*arguments)
        times.append(process_time() - start)
    return median(times), answer


def explained(model: Any, X: np.ndarray) -> str:
    """Return the seconds of SHAP for all rows, by tree paths and with 100 background rows."""
    if find_spec("shap") is None:
        return "SHAP is not installed"
    import shap

    def one(background: np.ndarray | None) -> float:
        start = process_time()
        explainer = shap.TreeExplainer(model, background)
        explainer.shap_values(X[:ROWS], check_additivity=False)
        return (process_time() - start) * len(X) / ROWS

    try:
        return f"SHAP by paths {one(None):.1f} s, against 100 rows {one(X[:100]):.1f} s"
    except Exception as error:  # shap does not support all versions of the libraries
        return f"SHAP cannot read {type(model).__name__} ({type(error).__name__})"


def row(case: Case) -> list[str]:
    """Print the results of one case. Return missed goals."""
    label = f"{case.name} {case.n_samples} x {case.n_features}"
    if case.name in GUESTS and find_spec(GUESTS[case.name]) is None:
        print(f"{label}: {GUESTS[case.name]} is not installed")
        return []
    X, y = make_classification(case.n_samples, case.n_features, n_informative=20, random_state=0)
    if case.name == "ExtraTrees":
        y = np.random.default_rng(0).permutation(y)
    model = trained(case, X, y)
    columns, scale = Columns(model, X), case.n_features / COLUMNS
    draw = np.random.default_rng(0)
    donors = [draw.permutation(case.n_samples) for _ in range(10)]
    table = np.asfortranarray(X)
    shuffles(columns, table, donors[:1]), every_value(columns, table)  # compiled, or read
    slow, expected = seconds(columns.loop, X, donors[0], COLUMNS, repeats=1)
    slow *= scale
    one, found = seconds(shuffles, columns, table, donors[:1])
    ten, _ = seconds(shuffles, columns, table, donors, repeats=1)
    every, _ = seconds(every_value, columns, table)
    peer, _ = seconds(
        lambda: permutation_importance(
            columns, X[:, :COLUMNS], y, n_repeats=1, random_state=0, scoring=accuracy
        ),
        repeats=1,
    )
    peer *= scale
    off = float(np.abs(found[:COLUMNS] - expected).max())
    must = case.must or (0, 0)
    print(
        f"{label}: permutation_importance {peer:.2f} s (10 repeats {10 * peer:.1f}); ten shuffles "
        f"{ten:.3f} s, ratio {10 * peer / ten:.0f}; all values over ten repeats "
        f"{10 * peer / every:.0f}; {explained(model, X)}; agreement {off:.0e}",
        flush=True,
    )
    loop, same = "a loop over predict", off <= case.agreement
    return [
        *compare(f"{label}, one shuffle", loop, slow, one, must[0], same),
        *compare(f"{label}, all values", loop, slow, every, must[1], same),
    ]


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    with threadpool_limits(1):
        missed = [what for case in CASES for what in row(case)]
    if missed:
        raise SystemExit(f"trees: missed {', '.join(missed)}")


if __name__ == "__main__":
    main()

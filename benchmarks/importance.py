"""Importance of the columns of fitted models: tamis and scikit-learn, for several scores.

python -m benchmarks.importance

Both shuffle each column five times. If possible, tamis computes the exact expectation over all
shuffles instead. Times are processor seconds in one thread, interleaved. The last column is the
root mean square of the differences between the two results, in standard errors.

Goal: tamis takes at most 1.2 times as long for any model and score.
"""

import warnings
from collections.abc import Callable, Iterator
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from tamis.response import importance

ROWS, COLUMNS, REPEATS, GOAL = 284, 30, 5, 1.2
CLASSES = ["accuracy", "roc_auc", "average_precision", "neg_log_loss", "f1"]
NUMBERS = ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_max_error"]


def tables() -> tuple[np.ndarray, pd.DataFrame, np.ndarray, np.ndarray]:
    """Return an array, a frame with two categories, classes and numbers."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(ROWS, COLUMNS))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)])
    for name in ("colour", "shape"):
        frame[name] = draw.choice(["a", "b", "c", "d"], ROWS)
    target = X[:, 0] * X[:, 1] + X[:, 2] + (frame["colour"] == "a") + draw.normal(size=ROWS)
    return X, frame, (target > target.median()).to_numpy().astype(int), target.to_numpy()


def on_frame(last: Any) -> Any:
    """Return a pipeline that encodes the frame."""
    encoder = (OneHotEncoder(handle_unknown="ignore"), ["colour", "shape"])
    return make_pipeline(make_column_transformer(encoder, remainder=StandardScaler()), last)


def problems() -> Iterator[tuple[str, Any, Any, np.ndarray, list[str]]]:
    """Yield the name of each model, the fitted model, its table, target and scores."""
    X, frame, classes, numbers = tables()
    models = {
        "linear": (LogisticRegression(), Ridge()),
        "RBF SVM": (SVC(), SVR()),
        "boosting": (HistGradientBoostingClassifier(), HistGradientBoostingRegressor()),
        "neighbours": (KNeighborsClassifier(), KNeighborsRegressor()),
        "frame pipeline": (on_frame(LogisticRegression()), on_frame(Ridge())),
    }
    for name, (classifier, regressor) in models.items():
        table = frame if name == "frame pipeline" else X
        scores = [s for s in CLASSES if name != "RBF SVM" or s != "neg_log_loss"]
        yield name, classifier.fit(table, classes), table, classes, scores
        yield name, regressor.fit(table, numbers), table, numbers, NUMBERS


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of a call, and its result."""
    start = process_time()
    found = work()
    return process_time() - start, found


def compare(model: Any, X: Any, y: np.ndarray, scoring: str) -> tuple[float, float, float]:
    """Return the median seconds of tamis and scikit-learn, and their difference by column."""
    options = {"scoring": scoring, "n_repeats": REPEATS, "random_state": 0}
    ways = [
        lambda: importance(model, X, y, **options),
        lambda: permutation_importance(model, X, y, **options),
    ]
    ways[0]()  # compiles the loops
    runs = [[seconds(way) for way in ways] for _ in range(3)]
    ours, theirs = (median(run[k][0] for run in runs) for k in range(2))
    found, expected = runs[0][0][1], runs[0][1][1]
    spread = expected.importances.std(axis=1, ddof=1) / np.sqrt(REPEATS)
    error = np.maximum(np.hypot(spread, found.importances_std / np.sqrt(REPEATS)), 1e-12)
    return ours, theirs, np.abs(found.importances_mean - expected.importances_mean) / error


def main() -> None:
    """Print the table."""
    print(f"{ROWS} rows, {COLUMNS} columns, {REPEATS} shuffles\n")
    print(f"{'model':<16}{'score':<26}{'ours':>8}{'theirs':>8}{'ratio':>7}{'difference':>12}")
    missed = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, model, X, y, scores in problems():
            for scoring in scores:
                ours, theirs, gaps = compare(model, X, y, scoring)
                print(
                    f"{name:<16}{scoring:<26}{ours:8.3f}{theirs:8.3f}{ours / theirs:7.2f}"
                    f"{np.sqrt(np.mean(gaps**2)):12.1f}",
                    flush=True,
                )
                if ours > GOAL * theirs:
                    missed.append(f"{name} {scoring} ({ours / theirs:.2f})")
    if missed:
        raise SystemExit(f"importance: slower than {GOAL} times: {', '.join(missed)}")


if __name__ == "__main__":
    main()

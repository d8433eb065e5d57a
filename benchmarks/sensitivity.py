"""Sensitivity of an SVM: tamis, a loop over ``decision_function``, and scikit-learn.

python -m benchmarks.sensitivity
"""

import tracemalloc
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.inspection import permutation_importance
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks import compare
from tamis.response import Marginal, Model, Permutation
from tamis.response.calibration import Sigmoids
from tamis.response.comparison import EngineComparison
from tamis.response.distances import total_variation
from tamis.response.engines.base import FoldModel


class Size(NamedTuple):
    """Size of a problem, smallest accepted ratio, and number of columns for slow methods."""

    n_samples: int
    n_features: int
    goal: float
    n_timed: int


SIZES = [
    Size(500, 60, 40, 60),
    Size(2000, 500, 250, 4),
    Size(5000, 100, 60, 2),
    Size(100, 10_000, 3000, 40),
]
#: Largest accepted time of sixteen quantiles, as a multiple of one shuffle, and largest accepted
#: memory in bytes beyond the kernel matrix.
SIXTEEN, MEMORY = 2.0, 512e6


def machine(size: Size) -> tuple[np.ndarray, np.ndarray, SVC, Sigmoids]:
    """Return an SVM with gamma = 1/d on standardised columns."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(size.n_samples, size.n_features))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + draw.normal(size=size.n_samples) > 0).astype(int)
    fitted = SVC(C=1.0, gamma=1 / size.n_features).fit(X, y)
    return np.asfortranarray(X), y, fitted, Sigmoids(np.array([-1.5]), np.array([0.1]))


def loop(X: np.ndarray, fitted: SVC, sigmoid: Sigmoids, donors: np.ndarray, n: int) -> np.ndarray:
    """Return the mean change of the posterior for the first ``n`` columns, one prediction each."""
    X = np.ascontiguousarray(X)
    base = sigmoid.probabilities(fitted.decision_function(X)[:, None])
    found = np.empty(n)
    for j in range(n):
        altered = X.copy()
        altered[:, j] = X[donors, j]
        p = sigmoid.probabilities(fitted.decision_function(altered)[:, None])
        found[j] = np.abs(p - base).mean()
    return found


def ours(X: np.ndarray, fitted: SVC, sigmoid: Sigmoids, way: object) -> np.ndarray:
    """Return the mean change of the posterior for all columns, computed by tamis."""

    def raw(Z: np.ndarray) -> np.ndarray:
        return fitted.decision_function(Z)[:, None]

    model = Model(fitted, "decision_function", raw, sigmoid.probabilities)
    comparison = EngineComparison([FoldModel(model, np.arange(len(X)))], X, total_variation)
    units = np.arange(X.shape[1])[:, None]
    (draw,) = way.draws(X, units, 0)  # type: ignore[attr-defined]
    return comparison.scores(units, draw)


def seconds(function, *arguments, repeats: int = 3):  # type: ignore[no-untyped-def]
    """Return median processor seconds and the result; short functions run repeatedly."""
    times = []
    for _ in range(repeats):
        start, count = process_time(), 0
        while count == 0 or process_time() - start < 0.2:
            answer = function(*arguments)
            count += 1
        times.append((process_time() - start) / count)
    return median(times), answer


def peak(function, *arguments) -> float:  # type: ignore[no-untyped-def]
    """Return the peak memory that numpy allocates."""
    tracemalloc.start()
    function(*arguments)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(most)


def row(size: Size) -> list[str]:
    """Print the results for one size. Return missed goals."""
    X, y, fitted, sigmoid = machine(size)
    (shuffle,) = Permutation(1).draws(X, np.arange(X.shape[1])[:, None], 0)
    common = (X, fitted, sigmoid)
    ours(*common, Permutation(1))  # compiles, and fills caches
    scale = size.n_features / size.n_timed
    slow, expected = seconds(loop, *common, shuffle.donors, size.n_timed, repeats=1)
    fast, found = seconds(ours, *common, Permutation(1))
    points, _ = seconds(ours, *common, Marginal(16))
    few = np.ascontiguousarray(X)
    start = process_time()
    permutation_importance(_FirstColumns(fitted, few, size.n_timed), few[:, : size.n_timed], y,
                           n_repeats=1, random_state=0, scoring=_accuracy)  # fmt: skip
    theirs = (process_time() - start) * scale
    beyond = peak(ours, *common, Marginal(16)) - 8 * len(X) * len(fitted.support_)
    off = np.abs(found[: size.n_timed] - expected).max()
    sixteen = points / fast
    where = f"{size.n_samples} x {size.n_features}"
    task = f"sensitivity of an RBF SVM, {where}"
    missed = compare(task, "a loop", slow * scale, fast, size.goal, off <= 1e-9)
    missed += compare(f"{task}, against permutation_importance", "scikit-learn", theirs, fast, 1)
    print(
        f"  {len(fitted.support_)} support vectors, 16 quantiles {sixteen:.2f} of a shuffle (at "
        f"most {SIXTEEN}), {max(beyond, 0) / 1e6:.0f} MB beyond the kernel"
    )
    good = {"sixteen quantiles": sixteen <= SIXTEEN, "memory": beyond <= MEMORY}
    return missed + [f"{what} at {where}" for what, holds in good.items() if not holds]


class _FirstColumns:
    """An SVM as a function of its first columns, to measure the time of a few columns."""

    def __init__(self, fitted: SVC, X: np.ndarray, n: int):
        self.fitted, self.X, self.n = fitted, X.copy(), n

    def fit(self, X: np.ndarray, y: np.ndarray) -> "_FirstColumns":
        return self

    def predict(self, few: np.ndarray) -> np.ndarray:
        self.X[:, : self.n] = few
        return np.asarray(self.fitted.predict(self.X))


def _accuracy(model: _FirstColumns, X: np.ndarray, y: np.ndarray) -> float:
    return float((model.predict(X) == y).mean())


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    with threadpool_limits(1):
        missed = [what for size in SIZES for what in row(size)]
    if missed:
        raise SystemExit(f"sensitivity: missed {', '.join(missed)}")


if __name__ == "__main__":
    main()

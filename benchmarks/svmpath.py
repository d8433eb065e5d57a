"""Path of the SVM against fits of scikit-learn's SVC, as ratios of processor time in one run.

    python -m benchmarks.svmpath [--kernel linear rbf] [--data heart german ...] [--cv]

Times are medians of interleaved runs in one thread. SVC has its default tolerance of 1e-3 and a
limit of iterations, so its times are lower bounds. The path is exact. The time of a grid of 1701
points is extrapolated from the 18 points by the trapezoidal rule. Data sets of the literature are
read from the folder in TAMIS_DATA. Without it, only those of scikit-learn are used.
"""

import os

for pool in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import argparse  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from statistics import median  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_digits, make_classification  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.preprocessing import scale  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from benchmarks import compare  # noqa: E402
from tamis.svm import SVCPath, SVCPathCV  # noqa: E402

GRID = 2.0 ** np.arange(-9, 9)
SMALL, LARGE = 1300, 2900
LITERATURE = (
    "heart",
    "sonar",
    "wbcd",
    "pima",
    "german",
    "svmguide3",
    "monks1",
    "monks3",
    "hill_valley",
    "splice",
)
GOALS = [  # title, kernel, sizes, column, at most
    ("linear: path / fit at C=256", "linear", (0, LARGE), "fit", 0.05),
    ("linear: path / 18 points", "linear", (0, LARGE), "grid", 0.03),
    ("linear: path / 1701 points", "linear", (0, LARGE), "fine", 0.005),
    ("linear: 5-fold / 18 points 5-fold", "linear", (0, LARGE), "cv", 0.05),
    ("rbf n<=1300: path / fit at C=256", "rbf", (0, SMALL), "fit", 3.5),
    ("rbf n<=1300: path / 18 points", "rbf", (0, SMALL), "grid", 0.2),
    ("rbf n<=1300: path / 1701 points", "rbf", (0, SMALL), "fine", 0.005),
    ("rbf n<=1300: 5-fold / 18 points 5-fold", "rbf", (0, SMALL), "cv", 0.25),
    ("rbf n=3000: path / fit at C=256", "rbf", (LARGE, 10**9), "fit", 10.0),
    ("rbf n=3000: path / 1701 points", "rbf", (LARGE, 10**9), "fine", 0.005),
]


def problems(names: list[str]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return standardised two-class problems by name."""
    found = {}
    for n in (200, 500, 1000, 3000):
        found[f"mc{n}"] = make_classification(n, 20, n_informative=10, flip_y=0.05, random_state=0)
    found["breast_cancer"] = load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    found["digits38"] = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)]
    folder = os.environ.get("TAMIS_DATA")
    for name in LITERATURE if folder else ():
        data = np.load(os.path.join(folder, f"{name}.npz"))
        rows = data["train_idx"] if name == "svmguide3" else slice(None)
        found[name] = data["X"][rows].astype(float), data["y"][rows]
    chosen = names or list(found)
    return {k: (scale(X[:, X.std(axis=0) > 0]), y) for k, (X, y) in found.items() if k in chosen}


def clock(work: Callable[[], object]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


def svc(kernel: str, X: np.ndarray, C: float) -> SVC:
    return SVC(C=C, kernel=kernel, gamma=1 / X.shape[1], cache_size=500, max_iter=1_000_000)


def measure(kernel: str, X: np.ndarray, y: np.ndarray, repeats: int, cv: bool) -> dict[str, float]:
    """Return ratios of the time of the path to one fit, to grids, and to grids over folds."""
    gamma = 1 / X.shape[1]
    path, grid = [], []
    for _ in range(repeats):
        path.append(clock(lambda: SVCPath(kernel, gamma=gamma).fit(X, y)))
        grid.append([clock(lambda C=C: svc(kernel, X, C).fit(X, y)) for C in GRID])
        if sum(grid[-1]) > 20:
            break
    own, fits = median(path), np.median(grid, axis=0)
    fine = 100 * float(((fits[1:] + fits[:-1]) / 2).sum())
    found = {"fit": own / fits[-1], "grid": own / fits.sum(), "fine": own / fine, "seconds": own}
    if cv:
        folds = list(StratifiedKFold(5).split(X, y))

        def search() -> None:
            for train, test in folds:
                for C in GRID:
                    svc(kernel, X, C).fit(X[train], y[train]).score(X[test], y[test])

        exact = SVCPathCV(kernel, gamma=gamma, cv=folds, refit=False)
        times = [
            (clock(lambda: exact.fit(X, y)), clock(search))
            for _ in range(1 if fits.sum() > 2 else repeats)
        ]
        found["cv"] = median(t[0] for t in times) / median(t[1] for t in times)
    return found


def main(arguments: Sequence[str] = ("--cv",)) -> None:
    """Measure, and print the table and the medians next to the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", nargs="+", default=["linear", "rbf"])
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--cv", action="store_true", help="also 5-fold cross-validation if n <= 1300"
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(0)  # compile the loops before anything is timed
    SVCPathCV(refit=False, cv=2).fit(rng.normal(size=(60, 2)), np.arange(60) % 2)
    rows = []
    for name, (X, y) in problems(options.data).items():
        for kernel in options.kernel:
            found = measure(kernel, X, y, options.repeats, options.cv and len(y) <= SMALL)
            rows.append((name, kernel, len(y), found))
            text = "  ".join(f"{k} {v:.4g}" for k, v in found.items())
            print(f"{name:14s} {kernel:7s} n={len(y):5d}  {text}", flush=True)
    missed = []
    for title, kernel, (low, high), column, goal in GOALS:
        values = [
            f[column] for _, k, n, f in rows if k == kernel and low <= n <= high and column in f
        ]
        if values:
            task = f"{title}, median of {len(values)} tables"
            missed += compare(task, "scikit-learn", 1.0, median(values), 1 / goal)
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Overhead of scheduling and storing a task, measured with ten thousand empty tasks.

    python -m benchmarks.scheduling [n_tasks]

Target: under 5 ms per task.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator

from tamis.evaluation import Realizations, evaluate

#: Largest accepted time per task, in milliseconds.
GOAL = 5.0


class Empty(BaseEstimator):
    """A selector that ranks columns by index."""

    def fit(self, X, y):
        """Do nothing."""
        self.order_ = np.arange(X.shape[1])
        return self


def seconds(n_tasks: int, **options: object) -> float:
    """Return the time to run empty tasks and to read their outcomes."""
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.tile([0, 1], 20)
    plan = Realizations(n_tasks, train=20)
    with TemporaryDirectory() as folder:
        start = perf_counter()
        found = evaluate(
            Empty(), (X, y), plan, "n_features", sizes=[2], store=Path(folder) / "s", **options
        )
        assert len(found.tasks) == n_tasks
        return perf_counter() - start


def main() -> None:
    """Print the time per task in one process, in two processes, and with Dask."""
    n_tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    ways: dict[str, dict[str, object]] = {
        "one process": {},
        "two processes": {"n_jobs": 2},
        "Dask, two workers": {"cluster": "local", "n_jobs": 2},
    }
    short = []
    for name, options in ways.items():
        taken = 1000 * seconds(n_tasks, **options) / n_tasks
        print(f"{n_tasks} empty tasks, {name}: {taken:.3f} ms each (goal {GOAL:.0f})")
        if taken > GOAL:
            short.append(name)
    if short:
        raise SystemExit(f"slower than promised: {', '.join(short)}")


if __name__ == "__main__":
    main()

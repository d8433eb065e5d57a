"""What scheduling and storing cost per piece of work: ten thousand empty pieces.

    python -m benchmarks.scheduling [n_pieces]

Target: under 5 ms per piece.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator

from tamis.evaluation import Realizations, evaluate

#: Milliseconds per piece.
GOAL = 5.0


class Empty(BaseEstimator):
    """Chooses the columns as they come."""

    def fit(self, X, y):
        """Do nothing."""
        self.order_ = np.arange(X.shape[1])
        return self


def seconds(n_pieces: int, **options: object) -> float:
    """Time of so many empty pieces, and of reading them back."""
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.tile([0, 1], 20)
    plan = Realizations(n_pieces, train=20)
    with TemporaryDirectory() as folder:
        start = perf_counter()
        found = evaluate(
            Empty(), (X, y), plan, "n_features", sizes=[2], store=Path(folder) / "s", **options
        )
        assert len(found.pieces) == n_pieces
        return perf_counter() - start


def main() -> None:
    """Print one line per way to run."""
    n_pieces = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    ways: dict[str, dict[str, object]] = {
        "one process": {},
        "two processes": {"n_jobs": 2},
        "Dask, two workers": {"cluster": "local", "n_jobs": 2},
    }
    short = []
    for name, options in ways.items():
        taken = 1000 * seconds(n_pieces, **options) / n_pieces
        print(f"{n_pieces} empty pieces, {name}: {taken:.3f} ms each (goal {GOAL:.0f})")
        if taken > GOAL:
            short.append(name)
    if short:
        raise SystemExit(f"slower than promised: {', '.join(short)}")


if __name__ == "__main__":
    main()

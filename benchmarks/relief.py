"""Speed of Relief compared with fast-select and scikit-rebate, which compute the same scores.

python -m benchmarks.relief
"""

from typing import Any

import numpy as np

from benchmarks import compare, medians
from tamis.criteria import Relief

#: Rows and columns. fast-select is compared on all sizes, scikit-rebate on the first.
SIZES = [(500, 500), (1000, 200), (200, 2000)]
#: Smallest accepted ratios to fast-select, and to scikit-rebate.
FAST, SLOW = 0.67, 50
ALGORITHMS = {"multisurf": ("MultiSURF", {}), "relieff": ("ReliefF", {"n_neighbors": 10})}


def interacting(size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return a table with an interaction of two columns."""
    X = np.random.default_rng(0).normal(size=size)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def against_fast_select(peers: Any, size: tuple[int, int]) -> list[str]:
    """Print the ratios for one size. Return missed goals."""
    X, y = interacting(size)
    missed = []
    for algorithm, (name, options) in ALGORITHMS.items():
        ours = Relief(algorithm, **options)
        theirs = getattr(peers, name)(
            n_features_to_select=10, backend="cpu", n_jobs=1, verbose=False, **options
        )
        theirs.fit(X, y)  # compiles its loops
        slow, quick = medians(lambda t=theirs: t.fit(X, y), lambda o=ours: o.fit(X, y), repeats=9)
        task = f"{name}, {size[0]} x {size[1]}, against fast-select"
        missed += compare(task, "fast-select", slow, quick, FAST)
    return missed


def against_skrebate(peers: Any) -> list[str]:
    """Print the ratios for the first size. Return missed goals and scores that differ."""
    X, y = interacting(SIZES[0])
    missed = []
    for algorithm, (name, options) in ALGORITHMS.items():
        ours, theirs = Relief(algorithm, **options), getattr(peers, name)(**options)
        slow, quick = medians(
            lambda t=theirs: t.fit(X.copy(), y), lambda o=ours: o.fit(X, y), repeats=1
        )
        same = np.allclose(ours.scores_, theirs.feature_importances_, rtol=0, atol=1e-9)
        task = f"{name}, {X.shape[0]} x {X.shape[1]}, against scikit-rebate"
        missed += compare(task, "skrebate", slow, quick, SLOW, same)
    return missed


def main(sizes: list[tuple[int, int]] = SIZES) -> None:
    """Print the ratios; exit with an error if a goal is missed."""
    missed = []
    try:
        import fast_select
    except ImportError:
        print("fast-select is not installed: pip install fast-select")
    else:
        missed += [what for size in sizes for what in against_fast_select(fast_select, size)]
    try:
        import skrebate
    except ImportError:
        print("scikit-rebate is not installed: pip install skrebate")
    else:
        missed += against_skrebate(skrebate)
    if missed:
        raise SystemExit("; ".join(missed))


short = main

if __name__ == "__main__":
    main()

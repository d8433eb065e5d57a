"""Relief: MultiSURF, SURF and ReliefF against scikit-rebate, which has the same scores.

python -m benchmarks.relief
"""

from typing import Any

import numpy as np

from benchmarks import medians
from tamis.criteria import Relief

#: Rows and columns.
SIZE = (500, 500)
#: The least ratio of processor times accepted, by algorithm and its peer.
GOALS = {"multisurf": ("MultiSURF", 50), "surf": ("SURF", 40), "relieff": ("ReliefF", 40)}


def interacting() -> tuple[np.ndarray, np.ndarray]:
    """Return a table with an interaction of two columns."""
    X = np.random.default_rng(0).normal(size=SIZE)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def compare(algorithm: str, theirs: Any, goal: int) -> list[str]:
    """Print the ratio for one algorithm; return what misses its goal."""
    X, y = interacting()
    ours = Relief(algorithm).fit(X, y)
    peer = theirs().fit(X.copy(), y)
    slow, quick = medians(lambda: theirs().fit(X.copy(), y), lambda: ours.fit(X, y), repeats=1)
    ratio = slow / quick
    print(f"{algorithm}, {SIZE[0]} x {SIZE[1]}: {quick:.3f} s, {ratio:.0f} times scikit-rebate")
    missed = [] if ratio >= goal else [f"{algorithm} is {ratio:.0f} times scikit-rebate"]
    if not np.allclose(ours.scores_, peer.feature_importances_, rtol=0, atol=1e-9):
        missed.append(f"{algorithm} has other scores than scikit-rebate")
    return missed


def main() -> None:
    """Compare all; exit with an error if a goal is missed."""
    try:
        import skrebate
    except ImportError:
        print("scikit-rebate is not installed: pip install skrebate")
        return
    missed = []
    for algorithm, (name, goal) in GOALS.items():
        missed += compare(algorithm, getattr(skrebate, name), goal)
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()

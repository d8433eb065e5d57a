"""Floating forward search by J3: tamis compared with one linear solve for each candidate.

python -m benchmarks.floating
"""

import numpy as np

from benchmarks import compare, medians
from tamis.contract import SubsetCriterion, Trace
from tamis.contract.search import Counted
from tamis.criteria import Scatter
from tamis.search import FloatingForward

N_SAMPLES, N_FEATURES, SIZE, N_CLASSES = 2000, 500, 60, 5
#: Smallest accepted ratio.
GOAL = 109


class ExplicitScatter(SubsetCriterion):
    """J3 by one solve for each subset."""

    def _learn(self, X, y, **params):  # type: ignore[no-untyped-def]
        groups = [X[y == k] for k in np.unique(y)]
        self.within = sum(np.cov(g.T, bias=True) * len(g) for g in groups) / len(X)
        self.total = np.cov(X.T, bias=True)

    def value(self, subset):  # type: ignore[no-untyped-def]
        block = np.ix_(subset, subset)
        return float(np.trace(np.linalg.solve(self.within[block], self.total[block])))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return correlated columns of different relevance."""
    draw = np.random.default_rng(0)
    y = draw.integers(N_CLASSES, size=N_SAMPLES)
    mix = np.eye(N_FEATURES) + draw.normal(size=(N_FEATURES, N_FEATURES)) / 30
    X = draw.normal(size=(N_SAMPLES, N_FEATURES)) @ mix
    return X + 0.3 * draw.normal(size=(N_CLASSES, N_FEATURES))[y], y


def walked(criterion: SubsetCriterion) -> list[list[int]]:
    """Return the subsets of a floating search with a fitted criterion."""
    search, trace = FloatingForward(criterion), Trace(N_FEATURES)
    for step in search._steps(Counted(criterion), N_FEATURES, SIZE, Trace(N_FEATURES)):
        trace.append(step)
    return [step.subset.tolist() for step in trace]


def main() -> None:
    """Print the ratio; exit with an error if it misses its goal."""
    X, y = data()
    naive, ours = ExplicitScatter().fit(X, y), Scatter("J3").fit(X, y)
    slow, fast = medians(lambda: walked(naive), lambda: walked(ours))
    task = f"floating forward by J3, {SIZE} of {N_FEATURES}"
    same = walked(naive) == walked(ours)
    if missed := compare(task, "one solve for each candidate", slow, fast, GOAL, same):
        raise SystemExit("; ".join(missed))


short = main

if __name__ == "__main__":
    main()

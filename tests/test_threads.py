"""Threads: results do not depend on their number, and the limit is respected."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from sklearn.base import clone

from tamis import _parallel
from tamis.compiled import thresholds
from tamis.criteria import (
    JMI,
    MRMR,
    MutualInformation,
    PairInformation,
    ParzenInformation,
    ReducedParzenInformation,
)
from tamis.density import scan


def problem(n=90, d=24, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


@pytest.fixture
def pools(monkeypatch):
    """Record how many threads are requested, even for little work."""
    asked = []

    class Counted(ThreadPoolExecutor):
        def __init__(self, n_threads):
            asked.append(n_threads)
            super().__init__(n_threads)

    monkeypatch.setattr(_parallel, "ThreadPoolExecutor", Counted)
    monkeypatch.setattr(_parallel, "SHARED", 0)
    monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 0)
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    monkeypatch.setattr(scan, "LEVELS", 12)
    return asked


CRITERIA = [
    (MutualInformation(), {}),
    (MRMR(), {}),
    (JMI(n_bins=6), {"CELLS_BY_BITS": 0}),
    (PairInformation(), {}),
    (ParzenInformation(sigma=1.0), {}),
    (ReducedParzenInformation(sigma=1.0), {}),
    (ReducedParzenInformation(sigma=1.0, by="removal"), {}),
]


def scores(criterion, X, y):
    fitted = clone(criterion).fit(X, y)
    if hasattr(fitted, "loss"):
        return fitted.loss(np.arange(24))
    if hasattr(fitted, "scores_"):
        return fitted.scores_
    return fitted.gain(np.array([0, 3]), np.setdiff1d(np.arange(24), [0, 3]))


@pytest.mark.parametrize(("criterion", "limits"), CRITERIA, ids=str)
def test_the_number_of_threads_changes_nothing(criterion, limits, pools, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(thresholds, name, value)
    X, y = problem()
    found = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        del pools[:]
        found.append(scores(criterion, X, y))
        assert max(pools, default=1) == int(count)
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(("criterion", "limits"), CRITERIA, ids=str)
def test_there_are_no_threads_inside_workers(criterion, limits, pools, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(_parallel, "cpu_count", lambda: 4)
    X, y = problem()
    list(Parallel(n_jobs=2, backend="threading")(delayed(scores)(criterion, X, y) for _ in "ab"))
    assert not pools


def test_little_work_is_not_divided_among_threads(pools, monkeypatch):
    monkeypatch.setattr(_parallel, "SHARED", 1 << 20)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    for criterion in (MRMR(), PairInformation(), ReducedParzenInformation(sigma=1.0)):
        scores(criterion, *problem())
    assert not pools

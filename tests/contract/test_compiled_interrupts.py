"""Compiled loops can be interrupted within a second, because work is divided into several calls."""

import signal
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from tamis.compiled import kernel_sums, thresholds
from tamis.density.discrete import Coded
from tamis.density.pairs import StripPairSums, TargetKernel
from tamis.density.series.table import Alteration
from tamis.density.sums import CompiledClassSums
from tamis.svm import SVCPath, SVCPathCV
from tamis.svm.path import state
from tamis.validation.knn import KNNFolds

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(200, 8))
CODES = DRAW.integers(0, 3, 200)
SOME, OTHERS = np.arange(4), np.arange(4, 8)


def counted(n_bins):
    coded = Coded(X, n_bins)
    return coded.codes, coded.entropy, coded.joint_entropy(CODES)


def by_neighbours():
    splits = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    folds = KNNFolds(KNeighborsClassifier(3), X, CODES, splits)
    return folds.grown(SOME, OTHERS), folds.shrunk(SOME)


def class_sums():
    sums = CompiledClassSums(X, CODES)
    removed, added = Alteration(SOME, SOME, -1), Alteration(SOME, OTHERS, 1)
    return sums.sums(removed, 0.5), sums.log_sums_of_others(added, 0.5)


def pair_sums():
    target = TargetKernel(CODES, "classification", "rbf", True)
    sums = StripPairSums(X, target, float)
    added, none = Alteration(SOME, OTHERS, 1), Alteration(SOME, OTHERS[:0], 1)
    return sums(added, 0.5, 0.4), sums(none, 0.5, 0.4)


def certificates():
    search = SVCPathCV("rbf", cv=2, refit=False).fit(X, CODES > 0)
    return search.certificate_.lower, search.certificate_.upper, search.best_C_


@pytest.mark.parametrize(
    "work",
    [lambda: counted(4), lambda: counted(90), by_neighbours, class_sums, pair_sums, certificates],
)
def test_splitting_work_into_many_calls_changes_nothing(monkeypatch, work):
    monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 0)
    at_once = work()
    monkeypatch.setattr(thresholds, "ONE_CALL", 999)
    for found, expected in zip(work(), at_once, strict=True):
        # the sums of slices are added in their order
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_an_epoch_is_short_if_events_are_slow(monkeypatch):
    fitted = SVCPath("rbf").fit(X, CODES > 0)
    monkeypatch.setattr(state, "ONE_CALL", 1000)
    short = SVCPath("rbf").fit(X, CODES > 0)
    assert short.violation_ <= 1e-8
    solutions = [path._machines.paths[0].solution for path in (fitted, short)]
    assert len(solutions[1].segments) > 2 * len(solutions[0].segments)
    np.testing.assert_allclose(
        short.decision_function(X, 3.0), fitted.decision_function(X, 3.0), atol=1e-8
    )


@contextmanager
def interrupted(seconds):
    """Interrupt a function after some processor time, and check that it stops."""

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, stop)
    # repeated, because numba drops exceptions that are raised while it looks up types
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.posix
@pytest.mark.parametrize("n_threads", [1, 2])
def test_kernel_sums_can_be_interrupted(monkeypatch, n_threads):
    monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
    table = DRAW.normal(size=(6000, 40))
    sums = CompiledClassSums(table, DRAW.integers(0, 2, 6000))
    members, calls, function = np.arange(40), [], kernel_sums.class_sums
    sums.sums(Alteration(members[:2], members[:2], -1), 0.5)  # loops are compiled or loaded now
    monkeypatch.setattr(thresholds, "ONE_CALL", 2_000_000)
    monkeypatch.setattr(kernel_sums, "class_sums", lambda *args: calls.append(1) or function(*args))
    with interrupted(0.1):
        sums.sums(Alteration(members, members, -1), 0.5)
    # 6000 x 6000 pairs with 40 members and 41 changes are three thousand million terms
    assert 0 < len(calls) < 1000


@pytest.mark.posix
def test_a_path_can_be_interrupted():
    table = DRAW.normal(size=(900, 8))
    path = SVCPath("rbf", gamma=1.0)
    target = DRAW.integers(0, 2, 900)
    path.fit(table[:60], target[:60])
    del path.breakpoints_
    with interrupted(0.1):
        path.fit(table, target)
    assert not hasattr(path, "breakpoints_")

"""Kernels with a column added or removed, by series, compared with full kernels."""

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis import _namespace, _parallel
from tamis._namespace import cholesky_solve, diagonal, host, move, namespace, taken
from tamis.density.series import table
from tamis.density.series.outputs import output_changes
from tamis.density.series.pairs import pair_changes
from tamis.density.series.rows import class_changes
from tamis.density.series.table import Alteration, ScaledColumns, Stacks, ranks
from tamis.exceptions import InvalidTable

N_ROWS = 61
LIBRARIES = ["numpy", "array_api_strict", "torch"]


@pytest.fixture(params=LIBRARIES)
def to(request):
    """Return a function that converts a numpy array to a library's array."""
    if request.param == "numpy":
        return np.asarray
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    return lambda values: library.asarray(np.array(values))


@pytest.fixture(autouse=True)
def small_strips(monkeypatch):
    """Use several strips, the last one shorter, and several batches of columns."""
    monkeypatch.setattr(table, "ROWS", (17, 17))
    monkeypatch.setattr(table, "STACK", 3000)


def columns(seed=0):
    """Return columns of several scales, a constant, a duplicate, an outlier and equal rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 12))
    X[:, 1] *= 1e-6
    X[:, 2] *= 1e-3
    X[:, 3] *= 1e3
    X[:, 4] *= 1e6
    X[:, 5] = 7.0
    X[:, 6] = X[:, 0]
    X[3, 7] = 40.0
    X[:, 8] += 1e4
    X[10:20, :] = X[9, :]
    X[20:26, 4] = X[9, 4]
    return X


def exact_kernel(X, gamma):
    """Return the kernel from differences, so that columns of any scale keep their digits."""
    D = np.zeros((len(X), len(X)))
    for x in X.T:
        D += np.subtract.outer(x, x) ** 2
    return np.exp(-gamma * D)


def kernel_change(X, members, j, way, gamma):
    """Return the change of the kernel: small changes from exponents, large ones by difference."""
    own = np.subtract.outer(X[:, j], X[:, j]) ** 2
    rest = members[members != j] if way > 0 else members
    K = exact_kernel(X[:, rest], gamma)
    sign = -1 if way > 0 else 1
    return sign * K * np.expm1(-gamma * own)


def symmetric_weights(seed=1):
    W = np.random.default_rng(seed).normal(size=(N_ROWS, N_ROWS))
    W += W.T
    np.fill_diagonal(W, 0)
    return W


SUBSETS = {
    "leave": (np.arange(12), np.arange(12), 1),
    "leave few": (np.array([0, 2, 5, 7, 9]), np.array([0, 5, 7]), 1),
    "enter": (np.array([0, 2, 9, 10]), np.array([1, 3, 4, 5, 6, 7, 8, 11]), -1),
    "leave usual": (np.array([0, 2, 9, 10, 11]), np.array([0, 2, 9, 10, 11]), 1),
}


@pytest.mark.parametrize("gamma", [1e-14, 1e-3, 0.05, 0.7])
@pytest.mark.parametrize("name", SUBSETS)
def test_changes_of_sums_over_pairs_agree_with_full_kernels(name, gamma, to):
    X, W = columns(), symmetric_weights()
    members, altered, way = SUBSETS[name]
    expected = [(W * kernel_change(X, members, j, way, gamma)).sum() for j in altered]
    weights = to(W)
    found = pair_changes(
        ScaledColumns(to(X), gamma),
        Alteration(members, altered, -way),
        lambda rows, cols: weights[rows, cols] + 0,
        widening=1.5,
    )
    largest = np.abs(expected).max()
    assert_allclose(found.changes, expected, rtol=0, atol=1e-10 * largest)
    assert found.changes[X[:, altered].min(axis=0) == X[:, altered].max(axis=0)] == pytest.approx(0)
    K = exact_kernel(X[:, members], gamma)
    assert found.base == pytest.approx((W * K).sum(), abs=1e-10)
    assert found.other == pytest.approx((W * K**1.5).sum(), abs=1e-10)


def test_small_changes_keep_their_digits(to):
    """With a wide kernel each column changes the sum by a billionth, accurate to ten digits."""
    X, W = np.random.default_rng(2).normal(size=(N_ROWS, 30)), symmetric_weights()
    everything, gamma, weights = np.arange(30), 1e-10, to(W)
    found = pair_changes(
        ScaledColumns(to(X), gamma),
        Alteration(everything, everything, -1),
        lambda r, c: weights[r, c] + 0,
    )
    expected = [(W * kernel_change(X, everything, j, 1, gamma)).sum() for j in everything]
    assert np.abs(expected).max() < 1e-6 * np.abs(W).sum()
    assert_allclose(found.changes, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


class Differences:
    """Score that sums the log of the first class's share over rows, and records the logs."""

    def of_base(self, rows, logs):
        xp = namespace(logs)
        top = xp.max(logs, axis=1)
        total = xp.log(xp.sum(xp.exp(logs - top[:, None]), axis=1))
        return xp.sum(logs[:, 0] - top - total)

    def of_ratios(self, rows, logs, ratios):
        xp = namespace(logs)
        share = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
        share = share / xp.sum(share, axis=1, keepdims=True)
        total = sum(share[:, k][:, None] * ratio for k, ratio in enumerate(ratios))
        return xp.sum(xp.log1p(ratios[0]) - xp.log1p(total), axis=0)


def exact_shares(X, bounds, gamma, others):
    """Return the same sums from logarithms of explicit sums."""
    D = np.zeros((N_ROWS, N_ROWS))
    for x in X.T:
        D += np.subtract.outer(x, x) ** 2
    E = -gamma * D
    if others:
        np.fill_diagonal(E, -np.inf)
    logs = np.column_stack([np.logaddexp.reduce(E[:, a:b], axis=1) for a, b in pairwise(bounds)])
    return (logs[:, 0] - np.logaddexp.reduce(logs, axis=1)).sum()


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("gamma", [1e-3, 0.05, 0.7])
@pytest.mark.parametrize("name", SUBSETS)
def test_changes_of_class_sums_agree_with_full_kernels(name, gamma, others, to):
    X, bounds = columns(), np.array([0, 21, 30, N_ROWS])
    members, altered, way = SUBSETS[name]
    base, changes = class_changes(
        ScaledColumns(to(X), gamma),
        Alteration(members, altered, -way),
        bounds,
        Differences(),
        others=others,
    )
    before = exact_shares(X[:, members], bounds, gamma, others)
    kept = [members[members != j] if way > 0 else np.append(members, j) for j in altered]
    expected = [exact_shares(X[:, some], bounds, gamma, others) - before for some in kept]
    # differences of logarithms, which the reference has up to rounding
    limit = 1e-10 * np.abs(expected).max() + 1e-11
    assert_allclose(changes, expected, rtol=0, atol=limit)
    assert base == pytest.approx(before, rel=1e-11)


@pytest.mark.parametrize("gamma", [1e-3, 0.05, 0.7])
def test_changes_of_outputs_agree_with_full_kernels(gamma, to):
    X, S = columns(), columns(3)[:40]
    rng = np.random.default_rng(4)
    weights, points = rng.normal(size=(40, 2)), X[rng.integers(0, N_ROWS, 5)]
    found = np.full((2, N_ROWS, 12, 5), np.nan)
    for rows, cols, some, change in output_changes(
        to(X), to(S), to(weights), to(points), gamma=gamma
    ):
        found[:, rows, cols, some] = host(change)
    expected = np.empty_like(found)
    for j in range(12):
        rest = sum(np.subtract.outer(X[:, i], S[:, i]) ** 2 for i in range(12) if i != j)
        K = np.exp(-gamma * rest)
        own = np.subtract.outer(X[:, j], S[:, j]) ** 2
        for q in range(5):
            new = (points[q, j] - S[:, j]) ** 2
            change = K * (np.exp(-gamma * new) - np.exp(-gamma * own))
            expected[:, :, j, q] = (change @ weights).T
    assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_points_are_processed_in_blocks(monkeypatch, to):
    """Not all values of a column are in memory for all rows at once."""
    X, points = columns(), np.sort(columns(), axis=0)
    weights = np.random.default_rng(4).normal(size=(N_ROWS, 1))
    found = []
    for stack in (1 << 20, 170):
        monkeypatch.setattr(table, "STACK", stack)
        whole = np.full((1, N_ROWS, 12, N_ROWS), np.nan)
        for rows, cols, some, change in output_changes(
            to(X), to(X), to(weights), to(points), gamma=0.05
        ):
            whole[:, rows, cols, some] = host(change)
        found.append(whole)
    assert_allclose(found[1], found[0], rtol=0, atol=1e-11 * np.abs(found[0]).max())


@pytest.mark.parametrize("gamma", [1e-3, 0.05, 0.7])
def test_rows_may_have_different_new_values(gamma, to):
    X, S = columns(), columns(3)[:40]
    weights = np.random.default_rng(4).normal(size=(40, 2))
    shuffled = X[np.random.default_rng(5).permutation(N_ROWS)]
    found = np.full((2, N_ROWS, 12), np.nan)
    for rows, cols, _, change in output_changes(
        to(X), to(S), to(weights), to(shuffled), gamma=gamma, paired=True
    ):
        found[:, rows, cols] = host(change)[..., 0]
    expected = np.empty_like(found)
    for j in range(12):
        rest = sum(np.subtract.outer(X[:, i], S[:, i]) ** 2 for i in range(12) if i != j)
        new, own = (np.subtract.outer(x[:, j], S[:, j]) ** 2 for x in (shuffled, X))
        change = np.exp(-gamma * rest) * (np.exp(-gamma * new) - np.exp(-gamma * own))
        expected[:, :, j] = (change @ weights).T
    assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("way", [1, -1])
def test_the_number_of_terms_is_sufficient(way):
    for reach in (1e-9, 0.005, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0):
        z = np.linspace(-1, 1, 41) * np.sqrt(reach)
        v = np.expm1(way * z**2 / 2)
        total = v[:, None] + v + np.outer(v, v)
        for k in range(1, int(ranks(np.array([reach]))[0])):
            w = (1 + v) * z**k
            total += (-way) ** k / factorial(k) * np.outer(w, w)
        exact = np.expm1(way * np.subtract.outer(z, z) ** 2 / 2)
        assert np.abs(total - exact).max() <= 1e-11 * np.abs(exact).max()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    X, W = columns(), symmetric_weights()
    members, altered, way = SUBSETS["leave"]
    found = []
    for count in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        assert _parallel.own_threads() == int(count)
        scaled = ScaledColumns(X, 0.05)
        change = Alteration(members, altered, -way)
        found.append(pair_changes(scaled, change, lambda r, c: W[r, c] + 0).changes)
    assert_array_equal(found[0], found[1])


def test_threads_are_few_inside_workers(monkeypatch):
    from joblib import Parallel, delayed

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    work = Parallel(n_jobs=2, prefer="threads")
    assert list(work(delayed(_parallel.own_threads)() for _ in range(2))) == [1, 1]
    assert _parallel.own_threads() >= 1


def test_single_precision_agrees_with_double_precision():
    X, W = np.random.default_rng(5).normal(size=(N_ROWS, 40)), symmetric_weights()
    everything = np.arange(40)
    found = [
        pair_changes(
            ScaledColumns(T, 1 / 80),
            Alteration(everything, everything, -1),
            lambda r, c, w=w: w[r, c] + 0,
        ).changes
        for T, w in ((X, W), (X.astype(np.float32), W.astype(np.float32)))
    ]
    assert_allclose(found[1], found[0], rtol=0, atol=1e-5 * np.abs(found[0]).max())


class TestNamespace:
    def test_round_trip(self, to):
        values = np.arange(6.0).reshape(2, 3)
        there = to(values)
        assert_array_equal(host(there), values)
        assert_array_equal(host(move(values[0], there)), values[0])
        assert type(move(values, there)) is type(there)
        assert_array_equal(host(taken(there, np.array([2, 0]))), values[:, [2, 0]])
        assert taken(there, np.arange(3)) is there

    def test_solves(self, to):
        A = np.random.default_rng(0).normal(size=(6, 6))
        A, right = A @ A.T + np.eye(6), np.random.default_rng(1).normal(size=(6, 2))
        assert_allclose(host(cholesky_solve(to(A.copy()), to(right))), np.linalg.solve(A, right))
        assert_allclose(host(diagonal(to(A))), np.diagonal(A))

    def test_refuses_an_indefinite_matrix(self, to):
        with pytest.raises(np.linalg.LinAlgError):
            cholesky_solve(to(-np.eye(3)), to(np.ones((3, 1))))

    def test_refuses_two_libraries(self):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        with pytest.raises(InvalidTable, match=r"numpy, torch"):
            namespace(np.eye(2), torch.eye(2))

    def test_the_compatibility_layer_of_scikit_learn_is_used(self, monkeypatch):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        monkeypatch.setattr(_namespace, "find_spec", lambda name: None)
        monkeypatch.setattr(_namespace, "_compat", _namespace._compat.__wrapped__)
        assert "sklearn" in namespace(torch.eye(2)).__name__


def test_late_terms_are_multiplied_in_single_precision():
    """Single precision is used if its rounding is below the truncation error of the series."""
    X = columns()
    for kind, split in ((np.float64, True), (np.float32, False)):
        table = ScaledColumns(X.astype(kind), 0.01)
        altered = np.flatnonzero((table.reach > 0.01) & (table.reach < 1))
        batches, _ = table.plan(altered)
        stacks = Stacks(table, altered, batches, 1, split=True)
        assert any(few < b.rank for few, b in zip(stacks.leading, batches, strict=True)) == split
        for index, batch in enumerate(batches):
            leading, late = stacks.both(index)
            width = leading.shape[1] + (0 if late is None else late.shape[1])
            assert width == batch.rank * len(batch.columns)
            assert late is None or late.dtype == np.float32

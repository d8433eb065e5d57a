"""HSIC compared with its formula and the brute-force U-statistic, and the columns that it finds."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.utils.estimator_checks import check_estimator

from tamis.compiled import thresholds
from tamis.contract import SubsetCriterion
from tamis.criteria import HSIC
from tamis.datasets import make_weston
from tamis.density import sums
from tamis.density.pairs import _thin_out
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.search import Backward, FloatingForward, Forward, RecursiveElimination

GAMMAS = ["dimension", "median", 0.3]


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"])
def either_path(request, monkeypatch):
    """Run a test with numpy and with compiled loops."""
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0 if request.param else 10**12)


def table(n_samples=9, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.normal(size=(n_samples, n_features)))
    return X, rng.integers(0, 3, n_samples), 2 * rng.normal(size=n_samples)


def gaussian(points, gamma):
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    if gamma == "median":
        gamma = 1 / (2 * np.median(squares[np.triu_indices(len(points), 1)]))
    return np.exp(-gamma * squares)


def column_kernel(Z, gamma):
    return gaussian(Z, 1 / (2 * Z.shape[1]) if gamma == "dimension" else gamma)


def target_kernel(y, kind, kernel="gaussian"):
    if kind == "classification":
        return (y[:, None] == y).astype(float)
    if kernel == "linear":
        return np.outer(y - y.mean(), y - y.mean())
    return gaussian(y[:, None], "median")


def u_statistic(K, L):
    """Return the mean over all four different samples of K_ij (L_ij + L_qr - 2 L_iq)."""
    terms = [
        K[i, j] * (L[i, j] + L[q, r] - 2 * L[i, q]) for i, j, q, r in permutations(range(len(K)), 4)
    ]
    return np.mean(terms)


def by_traces(K, L, unbiased):
    n = len(K)
    if not unbiased:
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H) / n**2
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    middle = K.sum() * L.sum() / ((n - 1) * (n - 2))
    return (np.trace(K @ L) + middle - 2 / (n - 2) * (K @ L).sum()) / (n * (n - 3))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_values_equal_the_u_statistic(kind, gamma, either_path):
    X, classes, reals = table()
    y = classes if kind == "classification" else reals
    fitted = HSIC(gamma=gamma, task=kind).fit(X, y)
    for subset in ([2], [0, 3], [0, 1, 2, 3]):
        expected = u_statistic(column_kernel(X[:, subset], gamma), target_kernel(y, kind))
        assert fitted.value(np.array(subset)) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_values_equal_the_formula_with_traces(kind, kernel, unbiased, either_path):
    X, classes, reals = table(75, seed=1)
    y = classes if kind == "classification" else reals
    fitted = HSIC(unbiased=unbiased, target_kernel=kernel, task=kind).fit(X, y)
    L = target_kernel(y, kind, kernel)
    for subset in ([1], [0, 1, 2, 3]):
        expected = by_traces(column_kernel(X[:, subset], "dimension"), L, unbiased)
        assert fitted.value(np.array(subset)) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("unbiased", [True, False])
def test_gains_and_losses_equal_their_definitions(unbiased, gamma, either_path):
    X, y, _ = table(40, 6)
    fitted = HSIC(gamma=gamma, unbiased=unbiased).fit(X, y)
    subset, rest = np.array([0, 2, 5]), np.array([1, 3, 4])
    assert_allclose(
        fitted.gain(subset, rest), SubsetCriterion.gain(fitted, subset, rest), atol=1e-14
    )
    assert_allclose(fitted.loss(subset), SubsetCriterion.loss(fitted, subset), atol=1e-14)
    nothing = np.array([], dtype=int)
    assert fitted.value(nothing) == 0
    assert_allclose(fitted.loss(np.array([3])), [fitted.value(np.array([3]))])
    assert_allclose(fitted.gain(nothing, subset), [fitted.value(subset[[i]]) for i in range(3)])


@pytest.mark.parametrize("precision", ["double", pytest.param("single", marks=pytest.mark.slow)])
def test_matrix_products_agree_with_compiled_loops(precision, monkeypatch):
    """Columns with a short series are computed together by matrix products, or one by one."""
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    X, y, reals = table(150, 90)
    X[:, 3] = 2.0
    everything = np.arange(90)
    some, rest = everything[:70:2], everything[1::2]
    for target in (y, reals):
        found = []
        for least in (1, 10**6):
            monkeypatch.setattr(sums, "LEAST_TOGETHER", least)
            fitted = HSIC(precision=precision).fit(X, target)
            parts = fitted.loss(everything), fitted.gain(some, rest), [fitted.value(some)]
            found.append(np.concatenate(parts))
        largest = np.abs(found[1]).max()
        limit = 1e-10 if precision == "double" else 2e-5
        assert_allclose(found[0], found[1], rtol=0, atol=limit * largest)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    X, y, _ = table(150, 6)
    found = []
    for count in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        found.append(HSIC().fit(X, y).loss(np.arange(6)))
    assert_array_equal(found[0], found[1])


def test_numpy_and_compiled_loops_agree_on_many_samples(monkeypatch):
    X, y, reals = table(333, 5)
    for target in (y, reals):
        losses = []
        for limit in (0, 10**12):
            monkeypatch.setattr(thresholds, "KERNEL_TERMS", limit)
            losses.append(HSIC().fit(X, target).loss(np.arange(5)))
        assert_allclose(losses[0], losses[1], atol=1e-15)


def test_single_precision_gives_the_same_ranking(monkeypatch):
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    for load in (load_wine, load_breast_cancer, load_diabetes):
        X, y = load(return_X_y=True)
        exact = Backward(HSIC(), n_features_to_select=1).fit(X, y)
        single = Backward(HSIC(precision="single"), n_features_to_select=1).fit(X, y)
        assert_array_equal(single.order_, exact.order_)
        assert_allclose(single.scores_, exact.scores_, atol=1e-6)
        assert not np.array_equal(single.scores_, exact.scores_, equal_nan=True)


def test_the_median_of_a_long_target_is_nearly_that_of_all_pairs():
    y = np.random.default_rng(0).exponential(size=6000)
    pairs = np.abs(y[:, None] - y)[np.triu_indices(6000, 1)] ** 2
    thinned = _thin_out(y)
    assert len(thinned) == 4000
    squares = np.abs(thinned[:, None] - thinned)[np.triu_indices(4000, 1)] ** 2
    assert np.median(squares) == pytest.approx(np.median(pairs), rel=1e-3)


def test_the_value_of_independent_columns_is_zero_on_average():
    values = [HSIC().fit(*table(30, 2, seed=s)[:2]).value(np.array([0, 1])) for s in range(200)]
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(200)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_constant_columns_and_identical_rows_have_no_effect(gamma):
    y = np.arange(30) % 2
    assert_allclose(HSIC(gamma=gamma).fit(np.zeros((30, 3)), y).loss(np.arange(3)), 0, atol=1e-15)
    rng = np.random.default_rng(0)
    # most pairs are equal in a column of few values: the median distance is 0
    X = np.column_stack([np.full(60, 3.0), rng.random(60) < 0.1, rng.random(60) < 0.1])
    y = X[:, 1].astype(int)
    search = Backward(HSIC(gamma=gamma), n_features_to_select=1).fit(X, y)
    assert search.order_[0] == 1
    assert np.isfinite(search.scores_[search.order_[1:]]).all()


def test_the_kernel_of_a_real_target_matters():
    X, y = load_diabetes(return_X_y=True)
    gauss = HSIC().fit(X, y).loss(np.arange(10))
    linear = HSIC(target_kernel="linear").fit(X, y).loss(np.arange(10))
    assert not np.allclose(gauss / gauss.max(), linear / linear.max(), rtol=0.1)


@pytest.mark.parametrize("search", [Forward, Backward, RecursiveElimination, FloatingForward])
def test_every_search_finds_the_relevant_columns(search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = (X[:, 1] + X[:, 3] > 0).astype(int)
    found = search(HSIC(), n_features_to_select=2).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [1, 3])


def test_interacting_columns_are_found():
    for seed in range(5):
        problem = make_weston(90, random_state=seed)
        search = Backward(HSIC(), n_features_to_select=2).fit(problem.X, problem.y)
        assert_array_equal(search.get_support(indices=True), problem.relevant)


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (HSIC(gamma=-1), "HSIC needs gamma to be a number above 0"),
        (HSIC(gamma="auto"), "HSIC needs gamma to be a number above 0"),
        (HSIC(gamma=None), "HSIC needs gamma to be a number above 0"),
        (HSIC(precision="half"), "HSIC needs precision to be 'double'"),
        (HSIC(target_kernel="delta"), "HSIC needs target_kernel to be 'gaussian' or 'linear'"),
    ],
)
def test_invalid_parameters_are_refused(criterion, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        criterion.fit(*load_iris(return_X_y=True))


def test_three_samples_have_no_unbiased_estimate():
    X, y = np.eye(3), np.array([0, 1, 1])
    with pytest.raises(InvalidTarget, match="at least 4 samples"):
        HSIC().fit(X, y)
    assert np.isfinite(HSIC(unbiased=False).fit(X, y).value(np.array([0])))


@pytest.mark.parametrize("search", [Forward, pytest.param(Backward, marks=pytest.mark.slow)])
def test_searches_pass_the_checks_of_scikit_learn(search):
    check_estimator(search(clone(HSIC())), on_skip=None)

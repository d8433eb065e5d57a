"""Parzen information compared with double loops, and the columns that it finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.utils.estimator_checks import check_estimator

from tamis.compiled import thresholds
from tamis.contract import SubsetCriterion
from tamis.criteria import KwakInformation, ParzenInformation
from tamis.datasets import make_monks, make_weston
from tamis.density import sums
from tamis.exceptions import InvalidParameter
from tamis.search import Backward, FloatingForward, Forward, RecursiveElimination

EVERY = [
    ParzenInformation(),
    ParzenInformation(leave_one_out=True),
    KwakInformation(),
    KwakInformation(leave_one_out=True),
]
NAMES = ["parzen", "parzen-others", "kwak", "kwak-others"]


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"])
def either_path(request, monkeypatch):
    """Run a test with numpy and with compiled loops."""
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0 if request.param else 10**12)


def table(n_samples=40, n_features=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = (np.arange(n_samples) % n_classes)[rng.permutation(n_samples)]
    X[:, 0] += y
    return np.asfortranarray(X), y


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_matrix_products_agree_with_compiled_loops(criterion, precision, monkeypatch):
    """Columns with a short series are computed together by matrix products, or one by one."""
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    X, y = table(70, 24)
    X[:, 3] = 2.0
    some, rest = np.arange(0, 24, 2), np.arange(1, 24, 2)
    found = []
    for least in (1, 10**6):
        monkeypatch.setattr(sums, "LEAST_TOGETHER", least)
        wide = clone(criterion).set_params(sigma=9.0, precision=precision).fit(X, y)
        found.append(np.concatenate([wide.loss(np.arange(24)), wide.gain(some, rest)]))
    limit = 1e-10 if precision == "double" else 1e-4
    assert_allclose(found[0], found[1], rtol=0, atol=limit * np.abs(found[1]).max())


def test_the_number_of_threads_changes_nothing(monkeypatch):
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    X, y = table(90, 6)
    found = []
    for count in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        fitted = [clone(one).set_params(sigma=1.0).fit(X, y) for one in EVERY]
        found.append([one.loss(np.arange(6)) for one in fitted])
    assert_array_equal(found[0], found[1])


def density(z, centres, sigma):
    """Return the mean of Gaussian windows."""
    d = len(z)
    windows = [np.exp(-((z - c) ** 2).sum() / (2 * sigma**2)) for c in centres]
    return np.mean(windows) / (2 * np.pi * sigma**2) ** (d / 2)


def posterior(Z, y, i, sigma, leave_one_out):
    """Return P_k p(z_i | k) for each class, from the definition."""
    parts = []
    for k in np.unique(y):
        members = [q for q in np.flatnonzero(y == k) if not (leave_one_out and q == i)]
        parts.append(np.mean(y == k) * density(Z[i], Z[members], sigma))
    return np.array(parts)


def by_loops(criterion, X, y, subset):
    """Return the value of a subset, computed sample by sample and class by class."""
    total, Z = 0.0, X[:, subset]
    for i in range(len(y)):
        parts = posterior(Z, y, i, criterion.sigma, criterion.leave_one_out)
        if isinstance(criterion, ParzenInformation):
            own = parts[np.unique(y) == y[i]][0] / np.mean(y == y[i])
            total += np.log(own / parts.sum())
        else:
            p = parts / parts.sum()
            total += (p * np.log(p)).sum()
    if isinstance(criterion, KwakInformation):
        priors = np.unique(y, return_counts=True)[1] / len(y)
        return total / len(y) - (priors * np.log(priors)).sum()
    return total / len(y)


@pytest.mark.parametrize("sigma", [0.5, 1.3])
@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_values_equal_a_double_loop(criterion, sigma, either_path):
    X, y = table()
    fitted = clone(criterion).set_params(sigma=sigma).fit(X, y)
    for subset in ([0], [1, 3], [0, 1, 2, 3, 4]):
        expected = by_loops(fitted, X, y, subset)
        assert fitted.value(np.array(subset)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_gains_and_losses_equal_their_definitions(criterion, either_path):
    X, y = table(n_samples=50)
    fitted = clone(criterion).fit(X, y)
    subset, rest = np.array([0, 2, 4]), np.array([1, 3])
    assert_allclose(
        fitted.gain(subset, rest), SubsetCriterion.gain(fitted, subset, rest), atol=1e-13
    )
    assert_allclose(fitted.loss(subset), SubsetCriterion.loss(fitted, subset), atol=1e-13)
    alone, nothing = np.array([3]), np.array([], dtype=int)
    assert_allclose(fitted.loss(alone), [fitted.value(alone)])
    assert_allclose(
        fitted.gain(nothing, subset), SubsetCriterion.gain(fitted, nothing, subset), atol=1e-13
    )
    assert fitted.value(nothing) == 0


def test_numpy_and_compiled_loops_agree(monkeypatch):
    rng = np.random.default_rng(5)
    X = np.asfortranarray(rng.normal(size=(333, 4)))
    y = rng.choice([0, 1, 2, 3], p=[0.7, 0.2, 0.08, 0.02], size=333)
    for criterion in EVERY:
        losses = []
        for limit in (0, 10**12):
            monkeypatch.setattr(thresholds, "KERNEL_TERMS", limit)
            losses.append(clone(criterion).fit(X, y).loss(np.arange(4)))
        assert_allclose(losses[0], losses[1], atol=1e-13)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_single_precision_gives_the_same_ranking(criterion, monkeypatch):
    monkeypatch.setattr(thresholds, "KERNEL_TERMS", 0)
    for load in (load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        exact = Backward(clone(criterion), n_features_to_select=1).fit(X, y)
        single = Backward(clone(criterion).set_params(precision="single"), n_features_to_select=1)
        assert_array_equal(single.fit(X, y).order_, exact.order_)
        assert_allclose(single.scores_, exact.scores_, atol=3e-6)
        assert not np.array_equal(single.scores_, exact.scores_, equal_nan=True)


@pytest.mark.parametrize("sigma", [0.004, 1e-3])
def test_narrow_windows_stay_finite(sigma, either_path):
    # all terms of a density underflow except that of the nearest sample
    X, y = table()
    others = ParzenInformation(sigma=sigma, leave_one_out=True).fit(X, y)
    assert np.isfinite(others.loss(np.arange(5))).all()
    itself = ParzenInformation(sigma=sigma).fit(X, y)
    priors = np.bincount(y) / len(y)
    # each sample is then alone in its window: the class is known
    assert itself.value(np.arange(5)) == pytest.approx(-(priors * np.log(priors)).sum())


def test_leave_one_out_agrees_with_a_log_sum_exp(either_path):
    from scipy.special import logsumexp

    X, y = table()
    sigma = 0.02
    Z = X[:, [1, 2]]
    exponents = -((Z[:, None] - Z) ** 2).sum(axis=2) / (2 * sigma**2)
    np.fill_diagonal(exponents, -np.inf)
    logs = np.array(
        [
            logsumexp(exponents[:, y == k], axis=1) - np.log((y == k).sum() - (y == k))
            for k in range(3)
        ]
    )
    priors = np.log(np.bincount(y) / len(y))[:, None]
    own = logs[y, np.arange(len(y))]
    expected = (own - logsumexp(logs + priors, axis=0)).mean()
    fitted = ParzenInformation(sigma=sigma, leave_one_out=True).fit(X, y)
    assert fitted.value(np.array([1, 2])) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_constant_columns_and_identical_rows_have_no_effect(criterion, either_path):
    y = np.arange(30) % 2
    same = clone(criterion).fit(np.zeros((30, 3)), y)
    assert_allclose(same.loss(np.arange(3)), 0, atol=1e-12)
    X, _ = table(30, 3)
    X[:, 1] = 7.5
    assert clone(criterion).fit(X, y).loss(np.arange(3))[1] == pytest.approx(0, abs=1e-12)
    search = Backward(clone(criterion), n_features_to_select=1).fit(X, y)
    assert np.isfinite(search.scores_[search.order_[1:]]).all()


def test_the_width_follows_the_subset_when_retuned():
    X, y = load_wine(return_X_y=True)
    search = RecursiveElimination(ParzenInformation(), n_features_to_select=2, retune=1).fit(X, y)
    widths = [step.params["sigma"] for step in search.trace_ if step.params]
    assert len(widths) == 11
    assert widths[-1] < widths[0]


def test_a_given_width_is_kept():
    X, y = load_iris(return_X_y=True)
    fitted = ParzenInformation(sigma=0.7).fit(X, y)
    assert fitted.tune(np.array([0, 1])) == {"sigma": 0.7}
    fitted.use({"sigma": 0.3})
    assert fitted.sigma_ == 0.3


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (ParzenInformation(sigma=0), "ParzenInformation needs sigma to be a number in"),
        (ParzenInformation(precision="half"), "ParzenInformation needs precision to be 'double'"),
        (KwakInformation(sigma="wide"), "KwakInformation needs sigma to be a number in"),
    ],
)
def test_invalid_parameters_are_refused(criterion, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        criterion.fit(*load_iris(return_X_y=True))


def test_leave_one_out_needs_two_samples_per_class():
    X, y = table()
    y = np.where(np.arange(len(y)) == 3, 9, y)
    assert np.isfinite(ParzenInformation().fit(X, y).value(np.arange(5)))
    with pytest.raises(InvalidParameter, match="at least two samples of every class"):
        ParzenInformation(leave_one_out=True).fit(X, y)


@pytest.mark.parametrize("search", [Forward, Backward, RecursiveElimination, FloatingForward])
@pytest.mark.parametrize("criterion", [ParzenInformation(), KwakInformation()], ids=["pw", "kwak"])
def test_every_search_finds_the_relevant_columns(search, criterion):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = (X[:, 1] + X[:, 3] > 0).astype(int)
    found = search(criterion, n_features_to_select=2).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [1, 3])


def test_interacting_columns_are_found():
    for seed in range(5):
        problem = make_weston(90, random_state=seed)
        search = Backward(ParzenInformation(), n_features_to_select=2).fit(problem.X, problem.y)
        assert_array_equal(search.get_support(indices=True), problem.relevant)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "least", "retune"),
    [
        (lambda seed: make_weston(200, random_state=seed), 29, None),
        (lambda seed: make_weston(90, random_state=seed), 29, None),
        (lambda seed: make_weston(40, random_state=seed), 29, None),
        (lambda seed: make_weston(20, random_state=seed), 20, None),
        (lambda seed: make_monks(200, problem=1, random_state=seed), 29, None),
        (lambda seed: make_monks(100, problem=1, random_state=seed), 29, None),
        (lambda seed: make_monks(50, problem=1, random_state=seed), 27, None),
        (lambda seed: make_monks(200, problem=3, random_state=seed), 28, 1),
        (lambda seed: make_monks(100, problem=3, random_state=seed), 22, 1),
        (lambda seed: make_monks(50, problem=3, random_state=seed), 14, 1),
    ],
)
def test_relevant_columns_are_found_in_thirty_draws(make, least, retune):
    hits = 0
    for seed in range(30):
        problem = make(seed)
        k = len(problem.relevant)
        search = RecursiveElimination(ParzenInformation(), n_features_to_select=k, retune=retune)
        support = search.fit(problem.X, problem.y).get_support(indices=True)
        hits += np.array_equal(support, problem.relevant)
    assert hits >= least


@pytest.mark.parametrize("criterion", [ParzenInformation(), KwakInformation()], ids=["pw", "kwak"])
@pytest.mark.parametrize("search", [Forward, pytest.param(Backward, marks=pytest.mark.slow)])
def test_searches_pass_the_checks_of_scikit_learn(search, criterion):
    check_estimator(search(clone(criterion)), on_skip=None)

"""Gates that preserve distances: gradient compared with finite differences, and selections."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import check_estimator

from tamis.choice import Threshold
from tamis.exceptions import DegenerateData, IncompatibleCriterion, InvalidParameter
from tamis.neural import UFeSCoR
from tamis.neural.redundancy import GateUnits, dependences
from tamis.neural.sammon import SammonObjective, distances, error_of
from tamis.spec import parse, write


def sammon_error(X, kept):
    """Return Sammon's error of the distances in some columns compared with all columns."""
    return error_of(distances(X), distances(X[:, kept]))


def by_definition(X, g, size, weights, rho2):
    """Return the objective, computed pair by pair."""
    p = len(g)
    before, after = pdist(X), pdist(X * g)
    known = before > 0
    error = ((before - after)[known] ** 2 / before[known]).sum() / before.sum()
    count = (g.sum() - size) ** 2 / (p - size) ** 2
    binary = 4 / p * (g * (1 - g)).sum()
    pairs = sum(g[i] * g[j] * rho2[i, j] for i in range(p) for j in range(p) if i != j)
    alpha, beta, gamma = weights
    return error + alpha * count + beta * binary + gamma * pairs / (p * (p - 1))


@pytest.fixture
def X():
    X = scale(load_wine(return_X_y=True)[0])[::4]
    X[5] = X[9]  # rows may be equal
    return X


@pytest.mark.parametrize("weights", [(0, 0, 0), (3, 0, 0), (0, 2, 0), (0, 0, 5), (1.5, 0.3, 0.7)])
def test_objective_and_gradient_are_right(X, weights):
    rng = np.random.default_rng(0)
    (phi,) = dependences("squared", X)
    objective = SammonObjective(X, 4, weights, phi, GateUnits(np.arange(13)))
    rho2 = np.corrcoef(X.T) ** 2
    for _ in range(3):
        b = rng.uniform(-1.5, 1.5, 13)
        value, gradient = objective(b)
        gates = np.exp(-(b**2))
        assert value == pytest.approx(by_definition(X, gates, 4, weights, rho2), rel=1e-10)
        steps = [
            (objective(b + 1e-5 * e)[0] - objective(b - 1e-5 * e)[0]) / 2e-5 for e in np.eye(13)
        ]
        assert_allclose(gradient, steps, rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_closed_gates_have_finite_gradients(X):
    (phi,) = dependences("squared", X)
    objective = SammonObjective(X, 4, (1, 1, 1), phi, GateUnits(np.arange(13)))
    for b in (np.zeros(13), np.full(13, 40.0), np.r_[np.zeros(1), np.full(12, 40.0)]):
        value, gradient = objective(b)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    assert objective(np.zeros(13))[0] > 0


def test_sammon_error_is_0_for_all_columns(X):
    mask = np.zeros(13, dtype=bool)
    mask[[0, 3, 6]] = True
    before, after = pdist(X), pdist(X[:, mask])
    known = before > 0
    expected = ((before - after)[known] ** 2 / before[known]).sum() / before.sum()
    assert sammon_error(X, mask) == pytest.approx(expected, rel=1e-10)
    assert sammon_error(X, np.ones(13, dtype=bool)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("load", "size"), [(load_iris, 2), (load_wine, 4), (load_wine, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_distances_are_preserved_better_than_by_random_columns(load, size, seed):
    X = scale(load(return_X_y=True)[0])
    chosen = UFeSCoR(n_features_to_select=size, gamma=0, random_state=seed).fit(X)
    rng = np.random.default_rng(1)
    drawn = [rng.permutation(np.arange(X.shape[1]) < size) for _ in range(100)]
    errors = [sammon_error(X, mask) for mask in drawn]
    assert sammon_error(X, chosen.support_) <= np.quantile(errors, 0.1)


@pytest.mark.parametrize("seed", range(5))
def test_one_column_of_each_near_duplicate_pair_is_selected(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(80, 4))
    copies = columns + 0.05 * rng.normal(size=(80, 4))
    X = np.column_stack([columns, copies])
    kept = UFeSCoR(n_features_to_select=4, gamma=10, random_state=seed).fit(X)
    assert sorted(kept.get_support(indices=True) % 4) == [0, 1, 2, 3]


def test_rows_that_are_all_equal_in_the_sample():
    """The sample may contain none of the rows that differ."""
    X = np.zeros((1000, 3))
    X[0] = 1, 2, 3
    found = UFeSCoR(n_features_to_select=1, max_rows=5, random_state=0).fit(X)
    assert 0 not in found.rows_
    assert np.isfinite(found.gates_).all()
    assert np.isfinite(found.trace_.values).all()


@pytest.mark.parametrize("weight", ["alpha", "beta", "gamma"])
def test_weights_that_overflow_are_refused(weight):
    X = load_iris(return_X_y=True)[0]
    selector = UFeSCoR(n_features_to_select=1, redundancy="pearson", random_state=0)
    with pytest.raises(InvalidParameter, match="needs a finite objective"):
        selector.set_params(**{weight: 1.7e308}).fit(X)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1.7e307])
def test_columns_of_any_scale(size):
    X = load_iris(return_X_y=True)[0]
    plain = UFeSCoR(random_state=0).fit(X)
    stretched = UFeSCoR(random_state=0).fit(X * [1, size / 10, 1, 1])
    assert_allclose(stretched.gates_, plain.gates_, atol=1e-5)


def test_a_larger_redundancy_weight_selects_less_correlated_columns():
    """A larger weight leaves less correlation among the selected columns."""
    X = load_breast_cancer(return_X_y=True)[0]
    rho2 = np.corrcoef(X.T) ** 2

    def shared(gamma):
        kept = (
            UFeSCoR(n_features_to_select=8, gamma=gamma, restarts=2, random_state=0).fit(X).support_
        )
        return rho2[np.ix_(kept, kept)].sum() - 8

    assert shared(20) < 0.8 * shared(0)


def test_fitted_attributes_are_consistent():
    X = load_wine(return_X_y=True)[0]
    found = UFeSCoR(n_features_to_select=5, restarts=2, random_state=0).fit(X)
    assert found.n_features_ == 5
    assert ((found.gates_ >= 0) & (found.gates_ <= 1)).all()
    assert (np.diff(found.gates_[found.order_]) <= 1e-9).all()
    assert_array_equal(found.scores_, found.gates_)
    assert_array_equal(np.sort(found.order_[:5]), found.get_support(indices=True))
    assert set(found.history_) == {"sammon", "size", "binary", "redundancy"}
    assert all(len(term) == len(found.history_["size"]) > 1 for term in found.history_.values())
    kept = found.trace_[found.record_.chosen]
    assert -kept.value == pytest.approx(sammon_error(scale(X), found.support_), rel=1e-9)
    assert -found.trace_[-1].value == pytest.approx(0, abs=1e-12)
    assert found.record_.finished
    assert write(parse(write(found))) == write(found)


def test_the_target_is_ignored_and_results_are_reproducible():
    X, y = load_wine(return_X_y=True)
    asked = UFeSCoR(n_features_to_select=5, restarts=2, random_state=3)
    first, second = asked.fit(X).gates_, asked.fit(X, y).gates_
    assert_array_equal(first, second)


def test_a_resumed_fit_is_the_same():
    X = load_wine(return_X_y=True)[0]
    one = UFeSCoR(n_features_to_select=5, restarts=2).fit(X)
    again = UFeSCoR(n_features_to_select=5, restarts=2).resume(X, record=one.record_)
    assert_array_equal(again.gates_, one.gates_)


def test_many_rows_are_sampled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)) @ rng.normal(size=(6, 6))
    found = UFeSCoR(n_features_to_select=3, max_rows=50, restarts=2, random_state=0).fit(X)
    assert found.rows_.shape == (50,)
    assert len(np.unique(found.rows_)) == 50
    assert UFeSCoR(max_rows=50, restarts=2, random_state=0).fit(X[:40]).rows_.shape == (40,)


def test_constant_columns_have_closed_gates():
    X = load_iris(return_X_y=True)[0]
    X = np.column_stack([np.full(150, 3.0), X[:, 0], X, np.zeros(150)])
    found = UFeSCoR(n_features_to_select=4, restarts=2, random_state=0).fit(X)
    assert np.isfinite(found.gates_).all()
    assert found.gates_[0] == found.gates_[-1] == 0
    assert not found.support_[[0, -1]].any()
    with pytest.warns(DegenerateData, match="all columns are constant"):
        nothing = UFeSCoR(n_features_to_select=1).fit(np.ones((20, 3)))
    assert_array_equal(nothing.get_support(indices=True), [0])
    everything = UFeSCoR(n_features_to_select=1.0, restarts=2, random_state=0).fit(X)
    assert everything.n_features_ == 7
    assert UFeSCoR(random_state=0).fit(X[:, [1]]).n_features_ == 1


def test_distances_are_preserved_with_more_columns_than_rows():
    X = np.random.default_rng(0).normal(size=(20, 200))
    found = UFeSCoR(n_features_to_select=10, restarts=2, random_state=0).fit(X)
    assert found.n_features_ == 10
    assert found.gates_.sum() == pytest.approx(10, abs=0.5)
    assert found.alpha_ > 3


def test_a_threshold_does_not_fix_the_number_of_columns():
    X = load_wine(return_X_y=True)[0]
    found = UFeSCoR(n_features_to_select=Threshold(0.5), gamma=20, restarts=2, random_state=0).fit(
        X
    )
    assert_array_equal(found.support_, found.gates_ >= 0.5)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"alpha": -1}, "alpha to be a number of at least 0, got -1"),
        ({"gamma": "auto"}, "gamma to be a number of at least 0, got 'auto'"),
        ({"redundancy": "kendall"}, "redundancy to be 'pearson', 'squared' or 'information'"),
        ({"restarts": 0}, "restarts to be an int of at least 1, got 0"),
        ({"max_rows": 1}, "max_rows to be an int of at least 2, got 1"),
        ({"n_features_to_select": 5}, "between 1 and 4"),
    ],
)
def test_invalid_parameters_are_refused(params, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        UFeSCoR(**params).fit(load_iris(return_X_y=True)[0])


def test_best_is_refused_because_subsets_have_no_value():
    with pytest.raises(IncompatibleCriterion):
        UFeSCoR(n_features_to_select="best").fit(load_iris(return_X_y=True)[0])


def test_it_passes_the_checks_of_scikit_learn():
    results = check_estimator(UFeSCoR(restarts=1), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert len([r for r in results if r["status"] == "passed"]) > 35

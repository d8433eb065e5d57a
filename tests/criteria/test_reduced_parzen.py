"""Reduced-set information compared with explicitly altered samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.utils.estimator_checks import check_estimator

from tamis._seeds import stream
from tamis.criteria import ReducedParzenInformation
from tamis.datasets import make_weston
from tamis.density.simplex import reduced_set
from tamis.exceptions import InvalidParameter
from tamis.search import Backward, RecursiveElimination
from tests.densities import density


def table(n_samples=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = rng.integers(0, 3, n_samples)
    X[:, 0] += y
    return np.asfortranarray(X), y


def information(points, Z, y, sigma):
    """Return the mean log ratio at the points, of densities fitted to Z, from their definitions."""
    densities = []
    for k in np.unique(y):
        members = Z[y == k]
        places, weights = reduced_set(members, sigma)
        densities.append(density(points, members[places], sigma, weights))
    densities = np.array(densities)
    priors = np.bincount(y) / len(y)
    return np.mean(np.log(densities[y, np.arange(len(y))] / (priors @ densities)))


def test_removal_agrees_with_new_densities_without_the_column():
    X, y = table()
    fitted = ReducedParzenInformation(by="removal", sigma=0.8).fit(X, y)
    subset = np.array([0, 1, 3])
    full = information(X[:, subset], X[:, subset], y, 0.8)
    expected = []
    for j in subset:
        rest = X[:, subset[subset != j]]
        expected.append(full - information(rest, rest, y, 0.8))
    assert_allclose(fitted.loss(subset), expected, atol=1e-10)


def test_permutation_agrees_with_shuffled_samples():
    X, y = table()
    fitted = ReducedParzenInformation(by="permutation", sigma=0.8, n_repeats=3, random_state=5).fit(
        X, y
    )
    subset = np.array([0, 2, 3])
    # rows are ordered by their norms, so that their order in the table does not matter
    by_norm = np.argsort((X[:, subset] ** 2).sum(axis=1))
    Z, y = X[by_norm][:, subset], y[by_norm]
    draws = stream(5, "permutation", 3)
    shuffles = [draws.permutation(len(Z)) for _ in range(3)]
    full = information(Z, Z, y, 0.8)
    expected = []
    for j in range(3):
        values = []
        for shuffle in shuffles:
            altered = Z.copy()
            altered[:, j] = Z[shuffle, j]
            values.append(information(altered, Z, y, 0.8))
        expected.append(full - np.mean(values))
    assert_allclose(fitted.loss(subset), expected, atol=1e-10)


@pytest.mark.parametrize("n_values", [None, 7])
def test_marginal_agrees_with_every_value_in_turn(n_values):
    X, y = table(n_samples=40)
    fitted = ReducedParzenInformation(sigma=0.8, n_values=n_values).fit(X, y)
    full = information(X, X, y, 0.8)
    for j, loss in enumerate(fitted.loss(np.arange(4))):
        grid = X[:, j]
        if n_values is not None:
            grid = np.quantile(X[:, j], (np.arange(n_values) + 0.5) / n_values)
        values = []
        for value in grid:
            altered = X.copy()
            altered[:, j] = value
            values.append(information(altered, X, y, 0.8))
        assert loss == pytest.approx(full - np.mean(values), abs=1e-10)


def test_scores_depend_only_on_seed_and_subset():
    X, y = table()
    shuffled = ReducedParzenInformation(by="permutation", random_state=3)
    first = shuffled.fit(X, y).loss(np.array([1, 2]))
    shuffled.loss(np.array([0, 1, 2]))
    assert_array_equal(shuffled.loss(np.array([1, 2])), first)
    other = ReducedParzenInformation(by="permutation", random_state=4).fit(X, y)
    assert not np.allclose(other.loss(np.array([1, 2])), first)


@pytest.mark.parametrize("by", ["marginal", "permutation", "removal"])
def test_constant_columns_and_identical_rows_have_no_effect(by):
    y = np.arange(30) % 2
    same = ReducedParzenInformation(by=by).fit(np.zeros((30, 3)), y)
    assert_allclose(same.loss(np.arange(3)), 0, atol=1e-12)
    X, y = table(30, 3)
    X[:, 1] = 4.0
    losses = ReducedParzenInformation(by=by, random_state=0).fit(X, y).loss(np.arange(3))
    assert np.isfinite(losses).all()
    if by != "removal":  # new densities depend on the number of columns, including constant ones
        assert losses[1] == pytest.approx(0, abs=1e-9)


def test_wide_tables_have_finite_scores():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 200)), np.arange(40) % 2
    assert np.isfinite(ReducedParzenInformation(sigma=0.125).fit(X, y).loss(np.arange(200))).all()


@pytest.mark.parametrize("search", [Backward, RecursiveElimination])
def test_interacting_columns_are_found(search):
    for seed in range(3):
        problem = make_weston(200, random_state=seed)
        found = search(ReducedParzenInformation(), n_features_to_select=2)
        found.fit(problem.X, problem.y)
        assert_array_equal(found.get_support(indices=True), problem.relevant)


def test_the_width_follows_the_subset_when_retuned():
    X, y = load_wine(return_X_y=True)
    search = RecursiveElimination(ReducedParzenInformation(), n_features_to_select=2, retune=1).fit(
        X, y
    )
    widths = [step.params["sigma"] for step in search.trace_ if step.params]
    assert widths[-1] < widths[0]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"by": "zero"}, "needs by to be 'marginal'"),
        ({"sigma": -2}, "needs sigma to be a number in"),
        ({"n_repeats": 0}, "needs n_repeats to be an int of at least 1"),
        ({"n_values": 1}, "needs n_values to be an int of at least 2"),
    ],
)
def test_invalid_parameters_are_refused(params, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        ReducedParzenInformation(**params).fit(*load_iris(return_X_y=True))


RARELY = [pytest.param(by, marks=pytest.mark.slow) for by in ("permutation", "removal")]


@pytest.mark.parametrize("by", ["marginal", *RARELY])
def test_searches_pass_the_checks_of_scikit_learn(by):
    criterion = ReducedParzenInformation(by=by, random_state=0)
    check_estimator(RecursiveElimination(criterion), on_skip=None)

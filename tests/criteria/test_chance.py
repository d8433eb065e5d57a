"""Losses of units compared with those of a permuted copy of their columns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC

from tamis._seeds import stream
from tamis.criteria import (
    Importances,
    PosteriorSensitivity,
    RadiusMargin,
    ScoreSensitivity,
    Span,
    WeightNorm,
)
from tamis.exceptions import InvalidParameter
from tamis.search import RecursiveElimination
from tamis.testing.problem import make_table as table
from tests.laws.unit_laws import ALL, UNITS

FOREST = ExtraTreesClassifier(60, random_state=0)
ELIMINATIONS = {
    "forest": RecursiveElimination(Importances(FOREST), step=0.4),
    "ridge": RecursiveElimination(Importances(RidgeClassifier())),
    "svm": RecursiveElimination(Importances(SVC(kernel="linear"))),
    "margin": RecursiveElimination(WeightNorm(SVC(kernel="linear"))),
}
EVERY = [
    Importances(RidgeClassifier()),
    Importances(ExtraTreesClassifier(5, random_state=0)),
    WeightNorm(SVC(kernel="linear")),
    WeightNorm(SVC(gamma=0.1)),
    WeightNorm(SVC(gamma=0.1), retrain=True),
    WeightNorm(SVC(gamma=0.1), order=1),
    RadiusMargin(SVC(gamma=0.1), soft_margin=True),
    Span(SVC(gamma=0.1), soft_margin=True),
    PosteriorSensitivity(LogisticRegression()),
    PosteriorSensitivity(SVC(gamma=0.1), by="permutation", n_repeats=3, random_state=0),
    ScoreSensitivity(LogisticRegression(), by="removal"),
]


def categories(rng, n):
    """Return twenty indicator columns of a category."""
    return np.eye(20)[rng.integers(0, 20, n)]


def six(rng, n):
    return rng.normal(size=(n, 6))


def noise_group(group, n):
    """Return a table in which columns 0 and 1 are relevant, and a group and two more are noise."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    y = (0.8 * a + 0.6 * b + rng.logistic(size=n) > 0).astype(int)
    columns = group(rng, n)
    X = np.column_stack([a, b, columns, rng.normal(size=(n, 2))])
    return X, y, {"group": list(range(2, 2 + columns.shape[1]))}


@pytest.mark.parametrize("group", [categories, six])
@pytest.mark.parametrize("name", ELIMINATIONS)
def test_relevant_columns_are_ranked_above_a_noise_group(name, group):
    n = 500 if name in ("svm", "margin") else 1500
    X, y, groups = noise_group(group, n)
    search = clone(ELIMINATIONS[name])
    search.set_params(n_features_to_select=1, feature_groups=groups).fit(X, y)
    assert sorted(search.order_[:2]) == [0, 1]


@pytest.mark.parametrize("name", ELIMINATIONS)
def test_a_relevant_group_is_ranked_above_noise(name):
    rng = np.random.default_rng(0)
    n = 500 if name in ("svm", "margin") else 1500
    X = rng.normal(size=(n, 11))
    y = (0.4 * X[:, 3:9].sum(axis=1) + rng.logistic(size=n) > 0).astype(int)
    search = clone(ELIMINATIONS[name])
    groups = {"group": list(range(3, 9))}
    search.set_params(n_features_to_select=1, feature_groups=groups).fit(X, y)
    assert search.order_[0] == 3


@pytest.mark.parametrize("estimator", [ExtraTreesClassifier(10, random_state=0), RidgeClassifier()])
def test_losses_of_noise_do_not_grow_with_the_columns_of_a_unit(estimator):
    """Units of 1, 5 and 20 columns have a mean loss of 0 over permuted targets."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 26)), np.arange(200) % 2
    units = [[0], list(range(1, 6)), list(range(6, 26))]
    found = {}
    for adjusted in (True, False):
        criterion = Importances(estimator, adjusted=adjusted).grouped(units)
        found[adjusted] = np.array(
            [criterion.fit(X, rng.permutation(y)).loss(np.arange(3)) for _ in range(30)]
        )
    error = found[True].std(axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(found[True].mean(axis=0)) < 3 * error).all()
    plain = found[False].mean(axis=0)
    assert plain[2] > 10 * plain[0]


@pytest.mark.parametrize("criterion", EVERY, ids=str)
def test_the_loss_of_a_permuted_copy_is_subtracted(criterion):
    """The expected result comes from the criterion itself on a table with the copy appended."""
    X, y = table()
    order = stream(0, "permuted copy").permutation(len(X))
    wide = np.hstack([X, X[order]])
    twice = [*UNITS, *([j + X.shape[1] for j in unit] for unit in UNITS)]
    plain = clone(criterion).set_params(adjusted=False).grouped(twice).fit(wide, y)
    subset = ALL[1:]
    own, copies = np.split(plain.loss(np.r_[subset, subset + len(UNITS)]), 2)
    found = clone(criterion).grouped(UNITS).fit(X, y)
    assert_allclose(found.loss(subset), own - copies, rtol=1e-6, atol=1e-9)
    if (errors := plain.errors(np.r_[subset, subset + len(UNITS)])) is not None:
        assert_allclose(found.errors(subset), np.hypot(*np.split(errors, 2)))


def test_plain_columns_are_adjusted_on_request():
    X, y = table()
    subset = np.arange(X.shape[1])
    plain, auto, never, always = (
        Importances(RidgeClassifier(), **given).fit(X, y).loss(subset)
        for given in ({}, {"adjusted": "auto"}, {"adjusted": False}, {"adjusted": True})
    )
    assert_array_equal(plain, auto)
    assert_array_equal(plain, never)
    assert not np.isclose(plain, always).any()


def test_sparse_tables_are_adjusted():
    X, y = table()
    dense, sparse = (
        Importances(LogisticRegression()).grouped(UNITS).fit(Z, y).loss(ALL)
        for Z in (X, csc_array(X))
    )
    assert_allclose(dense, sparse, rtol=1e-3)


def test_categories_by_position_include_the_copy():
    class Boosting(HistGradientBoostingClassifier):
        @property
        def feature_importances_(self):
            return np.flatnonzero(self.is_categorical_).sum() * np.ones(self.n_features_in_)

    X, y = table()
    X[:, 3] = np.arange(len(X)) % 3
    criterion = Importances(Boosting(max_iter=1, categorical_features=[3])).grouped(UNITS).fit(X, y)
    assert criterion._fit_columns(np.array([2, 3, 5, 9, 10, 12])).feature_importances_[0] == 1 + 4


def test_other_values_of_adjusted_are_refused():
    X, y = table()
    with pytest.raises(InvalidParameter, match="adjusted to be 'auto', True or False, got 'yes'"):
        Importances(RidgeClassifier(), adjusted="yes").fit(X, y)

"""Second opinions, which break ties of accuracy, compared with plain cross-validation."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tamis._arrays import EMPTY
from tamis.compiled import thresholds
from tamis.contract import SubsetCriterion
from tamis.contract.search import Counted
from tamis.criteria import CrossValidated, Penalised, Remembered, Scatter
from tamis.exceptions import InvalidParameter, TiedScores
from tamis.search import (
    Backward,
    BranchAndBound,
    Exhaustive,
    FloatingForward,
    Forward,
    Genetic,
    Ranking,
    RecursiveElimination,
)

LDA, KNN = LinearDiscriminantAnalysis, KNeighborsClassifier
DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
}


@pytest.fixture
def compiled(monkeypatch):
    """Use compiled loops for neighbours even for small data."""
    monkeypatch.setattr(thresholds, "NEIGHBOUR_COLUMNS", 1)


def brier(estimator, X, y, subset, n_folds=5):
    """Return the mean over the folds of the mean squared loss, computed by scikit-learn."""
    found = []
    labels = np.unique(y)
    for train, test in StratifiedKFold(n_folds).split(X, y):
        model = clone(estimator).fit(X[np.ix_(train, subset)], y[train])
        shares = model.predict_proba(X[np.ix_(test, subset)])
        truth = (y[test][:, None] == labels).astype(float)
        found.append(((shares - truth) ** 2).sum(axis=1).mean())
    return np.mean(found)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(
    "model", [LDA(), LDA(priors=0), KNN(), KNN(4), LogisticRegression()], ids=str
)
def test_the_second_opinion_is_the_loss_of_the_probabilities(model, name):
    X, y = DATA[name](return_X_y=True)
    X = np.asfortranarray(scale(X)[::2])
    y = y[::2]
    if getattr(model, "priors", None) is not None:
        n_classes = len(np.unique(y))
        model = LDA(priors=np.full(n_classes, 1 / n_classes))
    criterion = CrossValidated(model).fit(X, y)
    for subset in ([], [1], [0, 3], [0, 1, 2]):
        subset = np.array(subset, dtype=np.intp)
        outside = np.setdiff1d(np.arange(X.shape[1]), subset)[:5]
        expected = [-brier(model, X, y, np.union1d(subset, [j]).astype(int)) for j in outside]
        assert_allclose(criterion.second_opinion(subset, outside), expected, atol=1e-9)
        if len(subset) > 1:
            expected = [-brier(model, X, y, subset[subset != j]) for j in subset]
            assert_allclose(criterion.second_opinion(subset, subset), expected, atol=1e-9)
            assert_allclose(criterion.second_opinion(subset, subset[1:]), expected[1:], atol=1e-9)


@pytest.mark.usefixtures("compiled")
def test_neighbours_at_equal_distances():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.integers(0, 3, size=(60, 8)).astype(float))
    y = rng.integers(0, 3, 60)
    criterion, subset = CrossValidated(KNN(3)).fit(X, y), np.array([2, 5])
    outside = np.array([0, 1, 7])
    expected = [-brier(KNN(3), X, y, np.union1d(subset, [j])) for j in outside]
    assert_allclose(criterion.second_opinion(subset, outside), expected, atol=1e-12)


def test_constant_columns_do_not_change_the_loss():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.ones(150)])
    criterion = CrossValidated(LDA()).fit(X, y)
    with_it = criterion.second_opinion(np.array([0, 4]), np.array([2]))
    assert_allclose(with_it, -brier(LDA(), X, y, [0, 2]), atol=1e-9)
    assert_allclose(
        criterion.second_opinion(np.array([0, 2, 4]), np.array([4])), with_it, atol=1e-9
    )
    # only the class shares are left
    assert_allclose(criterion.second_opinion(EMPTY, np.array([4])), -2 / 3)


def test_decision_values_are_used_without_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X[::4]), y[::4]
    criterion = CrossValidated(SVC(kernel="linear")).fit(X, y)
    subset = np.array([0, 1])
    values = cross_val_predict(
        SVC(kernel="linear"), X[:, [0, 1, 7]], y, cv=5, method="decision_function"
    )
    losses = 2 * (1 / (1 + np.exp(-values)) - y) ** 2
    means = [losses[test].mean() for _, test in StratifiedKFold(5).split(X, y)]
    assert_allclose(criterion.second_opinion(subset, np.array([7])), -np.mean(means))


def test_criteria_of_classifiers_have_a_tie_breaking_score():
    X, y = load_iris(return_X_y=True)
    for model in (LDA(), KNN(), SVC(), RidgeClassifier(), Perceptron()):
        assert CrossValidated(model).opinion
        assert not CrossValidated(model, ties="index").opinion
    assert CrossValidated(GridSearchCV(SVC(), {"C": [1, 10]})).opinion
    assert Remembered(CrossValidated(KNN())).opinion == CrossValidated(KNN()).opinion
    for criterion in (CrossValidated(Ridge()), Scatter(), Penalised(Scatter())):
        assert not criterion.opinion
    several = CrossValidated(MultiOutputClassifier(LogisticRegression()), scoring=_one_number)
    assert not several.fit(X, np.column_stack([y, y])).opinion
    with pytest.raises(InvalidParameter, match="ties to be 'loss' or 'index'"):
        CrossValidated(KNN(), ties="first").fit(X, y)


def _one_number(model, X, y):
    return float((model.predict(X) == y).mean())


class Tied(SubsetCriterion):
    """All subsets of a size are tied. The second opinion prefers large sums of weights."""

    opinion = "weight"
    weights = np.array([3.0, 1.0, 5.0, 5.0, 2.0, 4.0])

    def _learn(self, X, y, **params):
        self.asked_ = 0

    def value(self, subset):
        return float(len(subset) > 0)

    def second_opinion(self, subset, units):
        self.asked_ += len(units)
        sides = [np.setxor1d(subset, [j]).astype(int) for j in units]
        return np.array([self.weights[side].sum() for side in sides])


def tied_table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 6)), np.arange(20) % 2


@pytest.mark.parametrize("kind", [Forward, Backward, FloatingForward, RecursiveElimination])
def test_tied_scores_are_decided_by_the_second_opinion(kind):
    found = kind(Tied(), n_features_to_select=3).fit(*tied_table())
    assert_array_equal(found.get_support(indices=True), [2, 3, 5])
    last = kind(Tied(), n_features_to_select=1).fit(*tied_table())
    assert_array_equal(last.get_support(indices=True), [2])  # tied opinions go to the lowest index


class TiedMonotone(Tied):
    monotone = True


WHOLE = [
    partial(Genetic, random_state=0, population_size=30, n_generations=12),
    Exhaustive,
    BranchAndBound,
]


@pytest.mark.parametrize("kind", WHOLE, ids=["genetic", "exhaustive", "branch and bound"])
def test_tied_subsets_are_decided_by_the_second_opinion(kind):
    X, y = tied_table()
    found = kind(TiedMonotone(), n_features_to_select=3).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [2, 3, 5])
    first = kind(TiedMonotone(), n_features_to_select=1).fit(X, y)
    assert_array_equal(first.get_support(indices=True), [2])  # tied opinions go to the first
    fixed = kind(TiedMonotone(), n_features_to_select=3, fixed_features=[1]).fit(X, y)
    assert_array_equal(fixed.get_support(indices=True), [1, 2, 3])


def test_tied_sizes_go_to_the_smallest_for_any_opinion():
    found = Exhaustive(Tied(), n_features_to_select="best").fit(*tied_table())
    assert_array_equal(found.get_support(indices=True), [2])


def test_the_opinion_on_a_subset_is_computed_once():
    search = Exhaustive(Tied(), n_features_to_select=3).fit(*tied_table())
    assert search.n_evaluations_ == 20
    criterion = Counted(Tied().fit(*tied_table()))
    one, two = np.array([0, 1]), np.array([2, 3])
    assert [criterion.beats(two, 1.0, one, 1.0), criterion.beats(one, 1.0, two, 1.0)] == [1, 0]
    assert criterion.criterion.asked_ == 2


def test_ties_between_several_removed_columns():
    found = RecursiveElimination(Tied(), n_features_to_select=2, step=4).fit(*tied_table())
    assert_array_equal(found.get_support(indices=True), [2, 3])


@pytest.mark.parametrize("by", ["alone", "removal"])
def test_tied_columns_of_a_ranking_are_ordered_by_the_second_opinion(by):
    found = Ranking(Tied(), n_features_to_select=3, by=by).fit(*tied_table())
    assert_array_equal(found.order_, [2, 3, 5, 0, 4, 1])
    assert_array_equal(found.trace_.n_equal, [6, 5, 4, 3, 2, 1])


def test_the_opinion_is_not_computed_without_ties():
    class Clear(Tied):
        def value(self, subset):
            return float(self.weights[subset].sum() + 1e-3 * subset.sum())

        def second_opinion(self, subset, units):
            raise AssertionError("no tie")

    for kind in (Forward, Backward, RecursiveElimination, Ranking, *WHOLE[:2]):
        kind(Clear(), n_features_to_select=2).fit(*tied_table())


def test_fixed_and_constant_columns_need_no_opinion():
    X, y = tied_table()
    X = np.column_stack([X[:, :5], np.ones(20)])  # the last is constant
    found = Forward(Tied(), n_features_to_select=3, fixed_features=[1]).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [1, 2, 3])
    found = Backward(Tied(), n_features_to_select=3, fixed_features=[1]).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [1, 2, 3])


@pytest.mark.parametrize("ties", ["loss", "index"])
def test_a_tie_and_its_resolution_are_reported(ties):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 20))
    X[:, 4] = X[:, 9]
    X[:, [4, 9]] += np.outer(y, [6.5, 7.5])  # both separate the classes, the second by more
    search = Forward(CrossValidated(LDA(), ties=ties), n_features_to_select=1)
    said = "broken by the squared loss" if ties == "loss" else "ties go to the lowest index"
    with pytest.warns(TiedScores, match=said):
        search.fit(X, y)
    assert search.get_support(indices=True) == ([9] if ties == "loss" else [4])
    assert search.trace_.n_equal[0] == 2
    told = search.explain(int(search.get_support(indices=True)[0]))
    assert "2 columns were tied" in told
    assert ("squared loss on the same folds decided" in told) == (ties == "loss")


def test_a_resumed_search_is_the_same():
    X, y = load_wine(return_X_y=True)
    search = Forward(CrossValidated(LDA()), n_features_to_select=6).fit(X, y)
    short = Forward(CrossValidated(LDA()), n_features_to_select=3).fit(X, y)
    longer = Forward(CrossValidated(LDA()), n_features_to_select=6)
    longer.resume(X, y, record=short.record_)
    assert_array_equal(longer.order_, search.order_)

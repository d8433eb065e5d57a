"""Models of Auto: losses of their predictions, and their estimators."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from tamis._seeds import seed_of
from tamis.auto.fold_paths import Work
from tamis.auto.held_out import BASELINE, unpack_predictions
from tamis.auto.measures import _wrong
from tamis.auto.models import MODELS as ALL_MODELS
from tamis.auto.models import SHARE, ForestImportances, estimator_of, predict_rows
from tamis.auto.plan import AutoPlan
from tamis.auto.target import Truth
from tamis.contract.units import Grouping
from tamis.validation.held_out import between

#: Models of classes and numbers.
MODELS = [model for model in ALL_MODELS if model != "cox"]
#: Tables on which forests are compared.
FORESTS = [
    (load_breast_cancer, "classification"),
    (load_wine, "classification"),
    (load_diabetes, "regression"),
]


def losses(predicted, truth, rows):
    """Return the squared losses and the wrong predictions of some rows."""
    there = truth.take(rows)
    return between(predicted, there.values), _wrong(predicted, there)


def problem(task, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4)) * 10.0 ** np.arange(4)
    signal = X[:, 0] + X[:, 1] / 10 + 0.3 * rng.normal(size=120)
    return X, signal if task == "regression" else np.digitize(signal, [-0.7, 0.7])


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_entries_hold_the_predictions_of_each_model(task):
    X, y = problem(task)
    truth, train, test = Truth.of(y, task), np.arange(80), np.arange(80, 120)
    sizes_of = dict.fromkeys(MODELS, (2, 4))
    plan = AutoPlan(120, 1, 1, ("information", "forest"), sizes_of, (), ("ridge",), 4, ())
    rows, subsets, entries, packed = Work(plan, task, Grouping(4), truth, [(train, test)]).round(
        X, y, 5, 0
    )
    assert rows == test.tolist()
    assert [tuple(entry[:3]) for entry in entries] == [BASELINE, *plan.candidates]
    for path, name, size, number in entries[1:]:
        columns = np.sort(subsets[path][str(size)])
        expected = predict_rows(name, X[:, columns], truth, train, test, seed_of(5, "models", 0))
        found = unpack_predictions(packed[number], 40, truth.centre)
        if name != "machine":  # whose parameters depend on the first list of a similar size
            assert_allclose(found, expected, atol=1e-6)
    numbers = {path: entry for path, name, size, entry in entries if (name, size) == ("trees", 4)}
    assert len(set(numbers.values())) == 1  # equal lists share their predictions
    assert len(packed) < len(entries)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("model", ["ridge", "machine", "trees"])  # leaves of boosting count rows
def test_weights_of_0_and_2_are_equivalent_to_removed_and_duplicated_rows(model, task):
    X, y = problem(task)
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, size=80).astype(float)
    rows = np.repeat(np.arange(80), weights.astype(int))
    test = np.arange(80, 120)
    weighed = Truth.of(y, task, weights=np.append(weights, np.ones(40)))
    found = predict_rows(model, X, weighed, np.arange(80), test, 5)
    doubled = predict_rows(model, X, Truth.of(y, task), rows, test, 5)
    plain = predict_rows(model, X, Truth.of(y, task), np.arange(80), test, 5)
    # scales, penalties and widths depend on the rows, so predictions are only close
    assert np.abs(found - doubled).mean() < 0.6 * np.abs(plain - doubled).mean() + 0.05


@pytest.mark.parametrize("model", MODELS)
def test_an_estimator_works_for_a_target_in_small_units(model):
    X, y = problem("regression")
    plain, small = (estimator_of(model, 4, "regression", 5).fit(X, f * y) for f in (1, 2.0**-30))
    assert_allclose(np.ldexp(small.predict(X), 30), plain.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n_classes", "most"), [(2, 0.02), (10, 0.1)])
def test_probabilities_are_calibrated_if_there_are_many_rows(n_classes, most):
    """With the same slope for all, probabilities of ten classes are too flat with many columns.

    Short lists with a higher error would then have the lowest loss.
    """
    rng = np.random.default_rng(0)
    codes = np.arange(1000) % 10
    centres = rng.normal(size=(10, 20))
    X = centres[codes] + 0.7 * rng.normal(size=(1000, 20))
    truth = Truth.of(codes % n_classes, "classification")
    train, test = np.arange(600), np.arange(600, 1000)
    few, many = (
        losses(predict_rows("machine", X[:, :k], truth, train, test, 0), truth, test)
        for k in (4, 20)
    )
    assert many[1].mean() < 0.02 < few[1].mean()
    assert many[0].mean() < most < few[0].mean()


def test_rare_classes_among_many_rows_can_be_calibrated():
    rng = np.random.default_rng(0)
    codes = np.r_[np.zeros(690, dtype=int), np.full(5, 1), np.full(5, 2)]
    X = rng.normal(size=(700, 3)) + codes[:, None]
    truth, rows = Truth.of(codes, "classification"), np.arange(700)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = predict_rows("machine", X, truth, rows, rows[:5], 0)
    assert_allclose(found.sum(axis=1), 1)


def test_a_forest_of_two_rows_interpolates_between_them():
    # the only threshold of a tree is uniform between the two rows
    X = np.array([[-1.0], [1.0], [-0.5], [0.0], [0.8]])
    truth = Truth.of(np.array([0, 1, 0, 0, 1]), "classification")
    seeds = range(40)
    found = [predict_rows("trees", X, truth, np.arange(2), np.arange(2, 5), s) for s in seeds]
    share = np.mean(found, axis=0)[:, 1]
    assert_allclose(share, [0.25, 0.5, 0.9], atol=4 * 0.5 / np.sqrt(100 * len(seeds)))


@pytest.mark.parametrize(("load", "task"), FORESTS)
def test_a_forest_predicts_as_well_as_that_of_scikit_learn(load, task):
    X, y = load(return_X_y=True)
    truth, losses = Truth.of(y, task), []
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [len(y) * 4 // 5])
        forest = estimator_of("trees", X.shape[1], task, seed).fit(X[train], y[train])
        classes = task == "classification"
        theirs = forest.predict_proba(X[test]) if classes else forest.predict(X[test])[:, None]
        ours = predict_rows("trees", X, truth, train, test, seed)
        losses.append([between(found, truth.values[test]).mean() for found in (ours, theirs)])
    ours, theirs = np.mean(losses, axis=0)
    error = np.std(np.subtract(*np.transpose(losses)), ddof=1) / np.sqrt(len(losses))
    assert abs(ours - theirs) < 3 * error + 0.01 * theirs


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_forest_treats_a_weight_of_two_as_a_row_that_occurs_twice(task):
    X, y = problem(task)
    test = np.arange(80, 120)
    doubled = np.concatenate([np.arange(80), np.arange(0, 80, 4)])
    weights = np.ones(120)
    weights[:80:4] = 2
    plain, weighed = Truth.of(y, task), Truth.of(y, task, weights=weights)
    X = X - X[:80].mean(axis=0)  # columns are scaled by rows, which does not change the trees
    found = predict_rows("trees", X, weighed, np.arange(80), test, 5)
    assert_allclose(predict_rows("trees", X, plain, doubled, test, 5), found, atol=1e-9)


def test_a_forest_does_not_depend_on_the_unit_of_the_target():
    X, y = problem("regression")
    train, test = np.arange(80), np.arange(80, 120)
    found = predict_rows("trees", X, Truth.of(y, "regression"), train, test, 5)
    for factor in (1e-150, 1e150):
        scaled = predict_rows("trees", X, Truth.of(y * factor, "regression"), train, test, 5)
        assert_allclose(scaled / factor, found, rtol=1e-9)


@pytest.mark.parametrize(("load", "task"), FORESTS)
def test_importances_of_the_forest_are_those_of_scikit_learn(load, task):
    X, y = load(return_X_y=True)
    numbers = task == "regression"
    theirs = ExtraTreesRegressor(max_features=SHARE) if numbers else ExtraTreesClassifier()
    found, expected = [], []
    for seed in range(8):
        found.append(ForestImportances(40, task, seed).fit(X, y).feature_importances_)
        theirs.set_params(n_estimators=40, random_state=seed)
        expected.append(theirs.fit(X, y).feature_importances_)
    assert_allclose(np.sum(found, axis=1), 1)
    error = np.sqrt((np.var(found, axis=0) + np.var(expected, axis=0)) / 7)
    gaps = (np.mean(found, axis=0) - np.mean(expected, axis=0)) / error
    assert np.sqrt(np.mean(gaps**2)) < 2


def test_a_forest_without_any_split_has_no_importances():
    found = ForestImportances(5, "regression").fit(np.ones((9, 3)), np.arange(9.0))
    assert_allclose(found.feature_importances_, 0)

"""The common view of fitted SVMs, compared with the models themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_regression
from sklearn.svm import SVC, SVR

from tamis.svm.machine import function_of, multipliers


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def decisions(model, X, y, weight=None):
    """Return the sum of the multipliers times the kernel, for each output."""
    kernel = function_of(model)
    found = multipliers(model, y, weight)
    return np.column_stack([kernel(X, X[m.rows]) @ m.beta for m in found]), found


@pytest.mark.parametrize(
    "model",
    [
        SVC(decision_function_shape="ovo"),
        SVC(kernel="poly", coef0=1.0, decision_function_shape="ovo"),
        SVC(kernel="linear", class_weight={0: 1, 1: 3, 2: 0.5}, decision_function_shape="ovo"),
        SVC(gamma="auto", class_weight="balanced", decision_function_shape="ovo"),
    ],
    ids=str,
)
def test_outputs_of_pairs_agree_with_the_model(model, iris):
    X, y = iris
    model.fit(X, y)
    found, held = decisions(model, X, y)
    assert_allclose(found + model.intercept_, model.decision_function(X), atol=1e-9)
    assert [len(m.rows) for m in held] == [100, 100, 100]


def test_two_classes_are_a_single_output(iris):
    X, y = iris[0][50:], np.array(["b", "a"])[iris[1][50:] - 1]
    model = SVC().fit(X, y)
    found, _ = decisions(model, X, y)
    assert_allclose(found[:, 0] + model.intercept_, model.decision_function(X), atol=1e-9)


def test_a_regression_is_a_sum_over_its_rows():
    X, y = make_regression(60, 5, random_state=0)
    model = SVR(C=50.0).fit(X, y)
    found, (machine,) = decisions(model, X, y)
    assert_allclose(found[:, 0] + model.intercept_, model.predict(X), atol=1e-9)
    assert machine.regression
    assert_array_equal(machine.rows, np.arange(60))


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_free_vectors_lie_on_the_margin(iris, C):
    """Optimality conditions hold for any weights: y f = 1 on the margin, y f <= 1 on the bound."""
    X, y = iris[0][50:], iris[1][50:]
    weight = np.random.default_rng(0).uniform(0.2, 3, size=100)
    weight[:7] = 0
    model = SVC(C=C, tol=1e-8, class_weight={1: 2.0, 2: 0.7}).fit(X, y, sample_weight=weight)
    (machine,) = multipliers(model, y, weight)
    assert_array_equal(machine.rows, np.arange(7, 100))
    margin = np.where(y == 2, 1, -1)[7:] * model.decision_function(X[7:])
    free, bounded = machine.free, (machine.beta != 0) & ~machine.free
    assert free.sum() > 2
    assert bounded.sum() > 2
    assert_allclose(margin[free], 1, atol=1e-5)
    assert margin[bounded].max() < 1 + 1e-5
    assert margin[machine.beta == 0].min() > 1 - 1e-5
    assert_allclose(machine.sizes[bounded], machine.box[bounded], rtol=1e-9)


def test_restriction_to_support_vectors_changes_no_output(iris):
    X, y = iris
    model = SVC().fit(X, y)
    for machine in multipliers(model, y):
        part = machine.on_support()
        assert (part.beta != 0).all()
        assert_array_equal(part.rows, machine.rows[machine.beta != 0])
        assert part.free.sum() == machine.free.sum()

"""Models of AUTO, alone and averaged: what is compared is what the estimator then answers."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tamis.auto.models import MODELS, Truth, answers, averages, estimator_of, losses
from tamis.auto.saying import called
from tamis.auto.work import Trial
from tamis.contract import Grouping

TOGETHER = [name for name in averages(list(MODELS)) if "+" in name]


def problem(task, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4)) * 10.0 ** np.arange(4)
    signal = X[:, 0] + X[:, 1] / 10 + 0.3 * rng.normal(size=120)
    if task == "regression":
        return X, signal
    return X, np.array(["b", "a", "c"])[:n_classes][
        np.digitize(signal, [-0.7, 0.7][: n_classes - 1])
    ]


def test_what_is_simpler_comes_first():
    assert averages(["ridge", "machine", "trees"]) == [
        "ridge", "machine", "trees", "ridge+machine", "ridge+trees", "machine+trees",
        "ridge+machine+trees",
    ]  # fmt: skip
    assert averages(["ridge"]) == ["ridge"]
    assert called("ridge+trees") == "the average of ridge regression and a forest"


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_entries_are_losses_of_mean_answers(task):
    X, y = problem(task)
    truth, train, test = Truth.of(y, task), np.arange(80), np.arange(80, 120)
    trial = Trial(X, truth, Grouping(4), train, test, 5)
    found = {name: rest for name, *rest in trial.entries(tuple(MODELS), np.array([2, 0]))}
    assert list(found) == averages(list(MODELS))
    for name, (size, squared, wrong) in found.items():
        each = [answers(one, X[:, [0, 2]], truth, train, test, 5) for one in name.split("+")]
        expected = losses(sum(each) / len(each), truth, test)
        assert size == 2
        assert_allclose(squared, expected[0], rtol=1e-5)
        if wrong is None:
            assert expected[1] is None
        else:
            assert_array_equal(wrong, expected[1])


@pytest.mark.parametrize("model", TOGETHER)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_estimator_answers_what_was_compared(model, n_classes):
    X, y = problem("classification", n_classes=n_classes)
    train, test = np.arange(80), np.arange(80, 120)
    truth = Truth.of(y, "classification")
    each = [answers(one, X, truth, train, test, 5) for one in model.split("+")]
    fitted = estimator_of(model, 4, "classification", 5).fit(X[train], y[train])
    expected = np.mean(each, axis=0)
    assert_allclose(fitted.predict_proba(X[test]), expected, atol=1e-8)
    assert_array_equal(fitted.predict(X[test]), np.unique(y)[expected.argmax(axis=1)])
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X[test]), fitted.predict(X[test]))
    assert clone(fitted).get_params()["votingclassifier__voting"] == "soft"


@pytest.mark.parametrize("model", TOGETHER)
def test_numbers_are_averaged(model):
    X, y = problem("regression")
    train, test = np.arange(80), np.arange(80, 120)
    each = [answers(one, X, Truth.of(y, "regression"), train, test, 5) for one in model.split("+")]
    fitted = estimator_of(model, 4, "regression", 5).fit(X[train], y[train])
    assert_allclose(fitted.predict(X[test]), np.mean(each, axis=0)[:, 0], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("model", averages(list(MODELS)))
def test_the_estimator_of_a_target_in_small_units(model):
    X, y = problem("regression")
    plain, small = (estimator_of(model, 4, "regression", 5).fit(X, f * y) for f in (1, 2.0**-30))
    assert_allclose(np.ldexp(small.predict(X), 30), plain.predict(X), rtol=1e-6, atol=1e-6)

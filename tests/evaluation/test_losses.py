"""Losses of rows left out, against loops over rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import brier_score_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tamis.choice import HonestSize
from tamis.criteria import FisherScore
from tamis.evaluation.losses import held_out_losses, missed, right_answers, squared_losses
from tamis.folds.losses import probabilities
from tamis.search import Ranking

WINE = load_wine(return_X_y=True)


def by_rows(model, X, y):
    """Brier's score row by row, one class after the other."""
    found = []
    for x, truth in zip(X, y, strict=True):
        shares = dict(zip(model.classes_, model.predict_proba([x])[0], strict=True))
        labels = {*shares, truth}
        found.append(sum((shares.get(c, 0.0) - (c == truth)) ** 2 for c in labels))
    return np.array(found)


def test_probabilities_by_rows():
    X, y = WINE[0], np.array(["x", "y", "z"])[WINE[1]]
    model = GaussianNB().fit(X[::2], y[::2])
    losses = squared_losses(model, X[1::2], y[1::2])
    assert_allclose(losses, by_rows(model, X[1::2], y[1::2]), rtol=1e-12)
    scikit = brier_score_loss(y[1::2], model.predict_proba(X[1::2]), scale_by_half=False)
    assert losses.mean() == pytest.approx(scikit)


def test_a_class_that_the_model_never_saw():
    X, y = WINE
    model = GaussianNB().fit(X[y > 0], y[y > 0])
    losses = squared_losses(model, X, y)
    assert_allclose(losses, by_rows(model, X, y), rtol=1e-12)
    assert (losses[y == 0] >= 1).all()


def test_without_probabilities_a_miss_counts_two():
    X, y = WINE
    model = RidgeClassifier().fit(X[::2], y[::2])
    assert_array_equal(squared_losses(model, X, y), 2 * missed(model, X, y))
    assert_array_equal(missed(model, X, y), model.predict(X) != y)


def test_decision_values_stand_for_log_odds():
    X, y = WINE
    for labels in (y, y == 1):
        model = LogisticRegression(max_iter=5000).fit(StandardScaler().fit_transform(X), labels)
        asked = StandardScaler().fit_transform(X)
        expected = model.predict_proba(asked)

        class Bare(type(model)):
            predict_proba = property()

        bare = Bare()
        bare.__dict__.update(model.__dict__)
        assert not hasattr(bare, "predict_proba")
        assert_allclose(probabilities(bare, asked, margins=True)[1], expected, atol=1e-12)


def test_votes_between_pairs_are_no_margins():
    X, y = load_wine(return_X_y=True)
    y = np.where(np.arange(len(y)) % 7 == 0, 3, y)  # four classes, six pairs
    model = SVC(decision_function_shape="ovo").fit(X, y)
    shares = probabilities(model, X, margins=True)[1]
    assert set(shares.ravel()) == {0.0, 1.0}


def test_numbers_by_rows():
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X[::2], y[::2])
    expected = [(p - t) ** 2 for p, t in zip(model.predict(X), y, strict=True)]
    assert_allclose(squared_losses(model, X, y), expected)
    several = np.column_stack([y, 2 * y])
    model = LinearRegression().fit(X, several)
    expected = ((model.predict(X) - several) ** 2).sum(axis=1)
    assert_allclose(squared_losses(model, X, several), expected)


@pytest.mark.parametrize("estimator", [None, LogisticRegression(), LinearSVC()], ids=str)
def test_rows_left_out(estimator):
    X, y = WINE
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 2)
    scale = StandardScaler().fit(X[train])
    known, asked = scale.transform(X[train]), scale.transform(X[test])
    if estimator is None:
        truth = np.eye(3)[y]
        model = Ridge().fit(known, truth[train])
        expected = ((model.predict(asked) - truth[test]) ** 2).sum(axis=1)
    else:
        expected = squared_losses(estimator.fit(known, y[train]), asked, y[test])
    found = held_out_losses(estimator, X, y, train, test, "classification")
    assert_allclose(found, expected, rtol=1e-6)


def test_nothing_answers_the_shares():
    y = np.array([0, 0, 1, 1, 1])
    train, test = np.array([0, 1, 2, 3]), np.array([4])
    assert_allclose(
        held_out_losses(None, np.empty((5, 0)), y, train, test, "classification"), [0.5]
    )
    assert_array_equal(right_answers(y, "regression"), y[:, None])


def test_one_that_regresses_answers_for_classes():
    X, y = WINE
    labels = np.array(["x", "y", "z"])[y]
    common = {"random_state": 0, "n_folds": 3}
    ours = HonestSize(Ranking(FisherScore()), **common).fit(X, labels)
    theirs = HonestSize(Ranking(FisherScore()), Ridge(), **common).fit(X, labels)
    assert_allclose(theirs.losses_, ours.losses_)

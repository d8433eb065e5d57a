"""Choices that read the rows which chose say how far their values flatter."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tamis.choice import Information, Knee, Patience
from tamis.criteria import CrossValidated, Scatter
from tamis.search import Forward


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("best", "on classes of pure noise such an accuracy is 0.15 too good"),
        (Patience(3), "on classes of pure noise such an accuracy is 0.13 too good"),
        (Knee(), "of pure noise a dozen lie there too"),
        (Information("aic"), "of pure noise it keeps some 17"),
        (Information("bic"), "of pure noise it keeps some 2"),
        (Information("ebic"), "of pure noise it keeps none"),
        (Information("srm"), "of pure noise it keeps about 1"),
    ],
    ids=str,
)
def test_cheap_ways_say_how_far_they_flatter(choice, said):
    X, y = load_breast_cancer(return_X_y=True)
    criterion = CrossValidated(LinearDiscriminantAnalysis())
    walk = Forward(criterion, n_features_to_select=choice).fit(X[:, :5], y)
    assert said in walk.choice_.reason


def test_a_value_that_is_no_accuracy_only_flatters():
    X, y = load_breast_cancer(return_X_y=True)
    walk = Forward(Scatter("J3"), n_features_to_select="best").fit(X[:, :5], y)
    assert walk.choice_.reason.endswith("so it flatters.")


@pytest.mark.slow
def test_the_best_of_a_walk_through_noise_is_as_much_too_good_as_is_said():
    """By cross-validation 0.15 of two classes are right that chance alone gets right."""
    too_good = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 50)), np.arange(100) % 2
        walk = Forward(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=20).fit(
            X, y
        )
        too_good.append(np.nanmax(walk.trace_.values) - 0.5)
    assert np.mean(too_good) >= 0.1

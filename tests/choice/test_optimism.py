"""Choices that use the training rows report how optimistic their values are."""

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
        ("best", "on pure noise such an accuracy is 0.15 too high"),
        (Patience(3), "on pure noise such an accuracy is 0.13 too high"),
        (Knee(), "from pure noise it selects about a dozen"),
        (Information("aic"), "from pure noise it selects about 17"),
        (Information("bic"), "from pure noise it selects about 2"),
        (Information("ebic"), "from pure noise it selects nothing, in 98 of 100 tables"),
        (Information("srm"), "from pure noise it selects about 1"),
    ],
    ids=str,
)
def test_optimistic_choices_report_their_optimism(choice, said):
    X, y = load_breast_cancer(return_X_y=True)
    criterion = CrossValidated(LinearDiscriminantAnalysis())
    walk = Forward(criterion, n_features_to_select=choice).fit(X[:, :5], y)
    assert said in walk.choice_.reason


def test_other_values_are_reported_as_optimistic():
    X, y = load_breast_cancer(return_X_y=True)
    walk = Forward(Scatter("J3"), n_features_to_select="best").fit(X[:, :5], y)
    assert walk.choice_.reason.endswith("so it is optimistic.")


@pytest.mark.slow
def test_the_best_score_on_noise_is_as_optimistic_as_reported():
    """On pure noise, the cross-validated accuracy of the best subset is 0.15 above chance."""
    too_good = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 50)), np.arange(100) % 2
        walk = Forward(CrossValidated(LinearDiscriminantAnalysis()), n_features_to_select=20).fit(
            X, y
        )
        too_good.append(np.nanmax(walk.trace_.values) - 0.5)
    assert np.mean(too_good) >= 0.1

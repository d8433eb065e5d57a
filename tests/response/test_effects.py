"""Mean responses along columns, against scikit-learn's partial dependence by brute force."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from tamis.exceptions import InvalidParameter
from tamis.response import effects

NETWORK = {"hidden_layer_sizes": (4,), "solver": "lbfgs", "alpha": 1.0, "max_iter": 2000}


def brute(model, X, effect, j):
    found = partial_dependence(
        model, X, [j], kind="average", method="brute", custom_values={j: effect.values}
    )
    return found["average"].T


@pytest.mark.parametrize(
    "model",
    [
        SVR(C=10), SVR(kernel="linear"), Ridge(), MLPRegressor(**NETWORK, random_state=0),
        make_pipeline(StandardScaler(), SVR(gamma=2.0)),
    ],
    ids=str,
)  # fmt: skip
def test_effects_of_regressions_agree_with_scikit_learn(model):
    X, y = load_diabetes(return_X_y=True)
    X, y = np.asfortranarray(X[:80] * 21), y[:80] / 50
    model = clone(model).fit(X, y)
    for j, effect in enumerate(effects(model, X, n_values=9)):
        assert_allclose(effect.means, brute(model, X, effect, j), rtol=1e-8)
        assert (np.diff(effect.values) > 0).all()
        assert_allclose(effect.shares.sum(), 1.0)
        assert np.isin(effect.values, X[:, j]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(), MLPClassifier(**NETWORK, random_state=0), RidgeClassifier(),
        RandomForestClassifier(6, random_state=0),
    ],
    ids=str,
)  # fmt: skip
def test_effects_of_classifiers_agree_with_scikit_learn(model, n_classes):
    X, y = make_classification(
        60, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        random_state=0,
    )  # fmt: skip
    model = clone(model).fit(X, y)
    for j, effect in enumerate(effects(model, X, n_values=None)):
        assert_array_equal(effect.values, np.unique(X[:, j]))
        assert_allclose(effect.means, brute(model, X, effect, j), atol=1e-10)


def test_svms_of_several_classes_return_shares():
    X, y = make_classification(
        60, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    two = SVC(gamma=0.3).fit(X[y < 2], y[y < 2])
    for j, effect in enumerate(effects(two, X, n_values=5)):
        assert_allclose(effect.means, brute(two, X, effect, j), atol=1e-10)
    machine = SVC(gamma=0.3).fit(X, y)
    for j, effect in enumerate(effects(machine, X, n_values=5)):
        for value, mean in zip(effect.values, effect.means, strict=True):
            altered = X.copy()
            altered[:, j] = value
            assert_allclose(mean, np.bincount(machine.predict(altered), minlength=3) / 60)


def test_a_text_column_has_an_effect_for_each_value():
    colours = np.array(["red", "green", "blue"])[np.arange(30) % 3]
    frame = pd.DataFrame({"colour": colours})
    model = make_pipeline(OneHotEncoder(), Ridge(alpha=1e-9)).fit(frame, colours == "red")
    (effect,) = effects(model, frame)
    assert dict(zip(effect.values, effect.means[:, 0].round(6), strict=True)) == {
        "red": 1.0, "green": 0.0, "blue": 0.0,
    }  # fmt: skip
    assert_allclose(effect.shares, 1 / 3)


def test_equal_quantiles_are_one_value():
    X = np.c_[np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [96, 1, 1, 1, 1]), np.arange(100.0)]
    first, second = effects(Ridge().fit(X, X[:, 1]), X, n_values=4)
    assert_array_equal(first.values, [0.0])
    assert_allclose(first.shares, [1.0])
    assert len(second.values) == 4


def test_bad_input_is_named():
    with pytest.raises(InvalidParameter, match="effects needs n_values to be an int"):
        effects(Ridge().fit([[0.0], [1.0]], [0, 1]), [[0.0], [1.0]], n_values=0)

"""SVMs whose kernel width depends on the number of columns, and the searches for it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.svm import SVC, SVR

from tamis.criteria import (
    DensitySensitivity,
    PosteriorSensitivity,
    RelativeSVC,
    RelativeSVR,
    TunedSVC,
    TunedSVR,
)
from tamis.exceptions import InvalidParameter
from tamis.recipes import recipe
from tamis.response.tuners import (
    COSTS,
    SCALES,
    TUBES,
    UNTUNED,
    least_error,
    least_squares,
    scale_by_thirds,
)


def hidden_xor(n_samples=240, n_features=40, seed=0):
    """Two columns whose product determines the class, among many irrelevant ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    X[:, :2] = rng.choice([-2.0, 2.0], size=(n_samples, 2)) + 0.5 * rng.normal(size=(n_samples, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("n_features", [3, 8])
def test_gamma_follows_the_number_of_columns(n_features):
    X, y = make_classification(60, n_features, n_informative=3, n_redundant=0, random_state=0)
    ours = RelativeSVC(5.0, scale=2.0).fit(X, y)
    theirs = SVC(C=5.0, gamma=2.0 / n_features).fit(X, y)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X))


def test_a_tuned_regression_has_the_units_of_the_target():
    """The same SVM as on a standardised target."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:100] * 21, y[:100]
    ours = RelativeSVR(8.0, tube=0.2, scale=0.5).fit(X, y).predict(X)
    z = (y - y.mean()) / y.std()
    theirs = SVR(C=8.0, epsilon=0.2, gamma=0.05, tol=1e-8).fit(X, z).predict(X)
    assert_allclose((ours - y.mean()) / y.std(), theirs, atol=5e-3)


def test_few_columns_are_tuned_by_cross_validation():
    X, y = make_classification(90, 6, n_informative=4, random_state=1)
    found = TunedSVC().fit(X, y)

    def score(C, scale):
        return cross_val_score(RelativeSVC(C, scale=scale), X, y, cv=StratifiedKFold(5)).mean()

    every = {(C, s): score(C, s) for C in (1, 8, 64) for s in (0.25, 0.5, 1, 2)}
    assert score(**found.best_params_) == max(every.values())
    assert set(TunedSVC(C=3).fit(X, y).best_params_.items()) >= {("C", 3)}


def test_many_columns_are_tuned_on_rows_that_took_no_part():
    X, y = hidden_xor()
    rows, rest = np.arange(160), np.arange(160, 240)
    errors = {scale: least_error(X, y, rows, rest, 2.0, scale) for scale in (0.25, 2.0)}
    assert errors[2.0] <= 0.1
    flipped = y.copy()
    flipped[rest] = 1 - y[rest]  # the last third decides, not the rows of the elimination
    assert least_error(X, flipped, rows, rest, 2.0, 2.0) >= 0.5
    assert scale_by_thirds(X, y, 2.0, 0) in (0.25, 1.0, 2.0, 4.0)
    assert TunedSVC(random_state=0).fit(X, y).best_params_["C"] == 2.0


def test_noise_keeps_the_scale_of_one():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 35)), np.tile([0, 1], 30)
    assert TunedSVC(random_state=0).fit(X, y).best_params_["scale"] == 1.0


def test_a_criterion_uses_what_was_found():
    X, y = make_classification(60, 5, n_informative=3, random_state=0)
    criterion = PosteriorSensitivity(TunedSVC()).fit(X, y)
    best = TunedSVC().fit(X, y).best_estimator_
    again = PosteriorSensitivity(best).fit(X, y)
    for subset in (np.arange(5), np.array([0, 2])):
        assert_allclose(criterion.loss(subset), again.loss(subset))
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, :4] * 21, y[:60]
    tuned = TunedSVR().fit(X, y)
    assert set(tuned.best_params_) == {"cost", "tube", "scale"}
    assert_allclose(
        DensitySensitivity(TunedSVR()).fit(X, y).loss(np.arange(4)),
        DensitySensitivity(tuned.best_estimator_).fit(X, y).loss(np.arange(4)),
    )


def test_regression_is_tuned_as_a_grid_search_would():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:100] * 21, y[:100]
    grid = {"cost": COSTS, "tube": TUBES, "scale": SCALES}
    theirs = GridSearchCV(RelativeSVR(), grid, cv=5, scoring="neg_mean_squared_error").fit(X, y)
    assert least_squares(X, y) == theirs.best_params_


def swinging(seed, n_samples=150):
    """Four of 32 columns in a target of which an SVM on all columns learns next to nothing."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n_samples, 32))
    relevant = draw.choice(32, 4, replace=False)
    a, b, c, d = X[:, relevant].T
    y = b * np.sin(2 * a) + 0.3 * np.cos(2 * c) + 0.3 * d
    return X, y + 0.3 * y.std() * draw.normal(size=n_samples), relevant


def test_an_svm_that_hardly_learns_is_not_tuned():
    X, y, _ = swinging(0)
    assert TunedSVR().fit(X, y).best_params_ == UNTUNED
    assert TunedSVR().fit(X, X[:, 0]).best_params_ != UNTUNED


@pytest.mark.parametrize("name", ["sd-l-rfe", "sd-g-rfe"])
def test_an_elimination_finds_columns_although_the_first_svm_hardly_learns(name):
    found = 0
    for seed in range(4):
        X, y, relevant = swinging(seed)
        search = recipe(name, n_features_to_select=4).fit(X, y)
        found += len({*search.order_[:4]} & {*relevant})
    assert found >= 13  # 10 from the SVM with the lowest error, 2 by chance


def test_tuned_svms_predict():
    X, y = make_classification(60, 5, n_informative=3, random_state=0)
    tuned = TunedSVC().fit(X, y)
    assert_allclose(tuned.decision_function(X), tuned.best_estimator_.decision_function(X))
    assert tuned.score(X, y) > 0.8


def test_tiny_classes_can_be_tuned():
    X, y = make_classification(40, 5, n_informative=3, random_state=0)
    few = np.r_[np.flatnonzero(y == 0)[:12], np.flatnonzero(y == 1)[:2]]
    assert TunedSVC().fit(X[few], y[few]).best_params_["scale"] > 0
    one = few[:-1]
    assert TunedSVC().fit(X[one], y[one]).best_params_ == {"C": 2.0, "scale": 1.0}


def test_a_scale_must_be_positive():
    with pytest.raises(InvalidParameter, match="scale to be a number above 0"):
        RelativeSVC(scale=0.0).fit([[0.0], [1.0]], [0, 1])

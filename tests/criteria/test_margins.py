"""WeightNorm compared with explicit kernels, finite differences and scikit-learn's RFE."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from tamis.criteria import RadiusMargin, Span, WeightNorm
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.search import RecursiveElimination
from tests import explicit_machines as explicit

EVERY = [WeightNorm, RadiusMargin, Span]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.2, "degree": 3, "coef0": 1.0},
]


@pytest.fixture(scope="module")
def classes():
    """Return three overlapping classes, so that some multipliers are on their bound."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return scale(rng.normal(size=(60, 6)) + rng.normal(size=(3, 6))[y]), y


@pytest.fixture(scope="module")
def real():
    X, y = load_diabetes(return_X_y=True)
    return scale(X[:70, :7]), scale(y[:70])


@pytest.fixture(params=["two classes", "three classes", "regression"])
def problem(request, classes, real):
    """Return data and an SVM to train on them."""
    X, y = classes
    if request.param == "two classes":
        return X[y > 0], y[y > 0], SVC
    return (X, y, SVC) if request.param == "three classes" else (*real, SVR)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestAgainstExplicitKernels:
    @pytest.mark.parametrize("retrain", [False, True])
    def test_removal_agrees_with_explicit_kernels(self, problem, kernel, retrain):
        X, y, machine = problem
        # linear SVMs are exact up to rounding, for any tolerance of LIBSVM
        linear = kernel["kernel"] == "linear" and not retrain
        model = machine(C=2.0, **kernel, **({"tol": 1e-12} if linear else {}))
        held, left = explicit.removed(explicit.norm, model, X, y, retrain)
        found = WeightNorm(model, retrain=retrain).fit(X, y).loss(np.arange(X.shape[1]))
        tolerance = 1e-5 if linear else 1e-9  # LIBSVM stores its kernel in single precision
        assert_allclose(found, np.abs(held - left), rtol=tolerance, atol=tolerance)

    def test_derivative_with_fixed_multipliers(self, problem, kernel):
        X, y, machine = problem
        model = machine(C=2.0, **kernel)
        expected = explicit.differences(explicit.norm, model, X, y)
        found = WeightNorm(model, order=1).fit(X, y).loss(np.arange(X.shape[1]))
        explicit.assert_slopes(found, expected, 1e-6)

    def test_derivative_with_retraining(self, problem, kernel):
        X, y, machine = problem
        numbers = kernel | ({"gamma": 0.15} if kernel.get("gamma") == "scale" else {})
        model = machine(C=2.0, tol=1e-10, **numbers)
        expected = explicit.differences(explicit.norm, model, X, y, retrain=True, step=1e-3)
        found = WeightNorm(model, order=1, retrain=True).fit(X, y).loss(np.arange(X.shape[1]))
        # LIBSVM is exact to about 1e-6, which the small step magnifies
        explicit.assert_slopes(found, expected, 1e-2)


def test_the_losses_of_a_subset_depend_only_on_its_columns(classes):
    X, y = classes
    subset = np.array([0, 2, 3])
    found = WeightNorm(SVC()).fit(X, y).loss(subset)
    assert_allclose(found, WeightNorm(SVC()).fit(X[:, subset], y).loss(np.arange(3)))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_duplicate_columns_have_the_same_loss(classes, kernel):
    X, y = classes
    X = np.column_stack([X, X[:, 0]])
    losses = WeightNorm(SVC(**kernel)).fit(X, y).loss(np.arange(7))
    assert abs(losses[0] - losses[6]) < 1e-13 * losses.max()


class TestLikeRFE:
    """With a linear kernel, the order agrees with scikit-learn's squared coefficients."""

    def order(self, model, X, y):
        theirs = RFE(model, n_features_to_select=1).fit(X, y)
        ours = RecursiveElimination(WeightNorm(model), n_features_to_select=1).fit(X, y)
        assert_array_equal(ours.ranking_, theirs.ranking_)

    def test_two_classes_are_eliminated_as_by_rfe(self):
        X, y = load_breast_cancer(return_X_y=True)
        self.order(SVC(kernel="linear"), scale(X), y)

    def test_three_classes_are_eliminated_as_by_rfe(self):
        X, y = load_iris(return_X_y=True)
        self.order(SVC(kernel="linear", C=0.1), scale(X), y)

    def test_a_regression_is_eliminated_as_by_rfe(self):
        X, y = load_diabetes(return_X_y=True)
        self.order(SVR(kernel="linear"), scale(X), y)

    def test_a_linear_kernel_scores_squared_weights(self, classes):
        X, y = classes
        model = SVC(kernel="linear", tol=1e-12).fit(X, y)
        found = WeightNorm(SVC(kernel="linear")).fit(X, y).loss(np.arange(6))
        assert_allclose(found, (model.coef_**2).sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("criterion", EVERY)
class TestDegenerate:
    """The results for degenerate problems are documented. None may raise an error or be NaN."""

    def losses(self, criterion, model, X, y):
        found = [
            criterion(model, order=order, retrain=retrain).fit(X, y).loss(np.arange(X.shape[1]))
            for order in (0, 1)
            for retrain in (False, True)
        ]
        assert np.isfinite(found).all()
        return found

    def test_duplicate_rows_do_not_change_the_definition(self, criterion, classes):
        X, y = classes
        X, y = np.vstack([X, X]), np.r_[y, y]
        self.losses(criterion, SVC(C=1e4, gamma=0.1), X, y)

    def test_all_multipliers_may_be_on_their_bound(self, criterion, classes):
        X, y = classes[0][classes[1] > 0], classes[1][classes[1] > 0]
        model = SVC(kernel="linear", C=1e-3)
        assert (np.abs(model.fit(X, y).dual_coef_) == 1e-3).all()
        kept, retrained, slopes, following = self.losses(criterion, model, X, y)
        assert kept.any()
        assert retrained.any()
        assert slopes.any()
        # no multiplier is free to change
        assert_allclose(slopes, following)

    def test_no_support_vector(self, criterion, real):
        X, y = real
        assert not len(SVR(epsilon=100.0).fit(X, y).support_)
        assert not np.any(self.losses(criterion, SVR(epsilon=100.0), X, y))

    def test_a_single_column_can_be_scored(self, criterion, classes):
        X, y = classes
        judge = criterion(SVC()).fit(X, y)
        again = criterion(SVC(), retrain=True).fit(X, y)
        # identical points have a norm, radius and span of 0
        assert_allclose(judge.loss(np.array([3])), again.loss(np.array([3])), atol=1e-6)

    def test_more_columns_than_rows_agree_with_the_definition(self, criterion):
        X = np.random.default_rng(0).normal(size=(12, 40))
        self.losses(criterion, SVC(kernel="linear", C=1e5), X, np.arange(12) % 2)


@pytest.mark.parametrize("criterion", EVERY)
class TestModels:
    def test_rows_with_weight_0_are_ignored(self, criterion, classes):
        X, y = classes
        weight = np.ones(60)
        weight[[1, 5, 30]] = 0
        found = criterion(SVC(gamma=0.2)).fit(X, y, sample_weight=weight).loss(np.arange(6))
        rest = weight > 0
        expected = criterion(SVC(gamma=0.2)).fit(X[rest], y[rest]).loss(np.arange(6))
        assert_allclose(found, expected, rtol=1e-9)

    def test_search_over_parameters(self, criterion, classes):
        X, y = classes
        tuner = GridSearchCV(SVC(gamma=0.1), {"C": [0.01, 3.0]}, cv=3)
        judge = criterion(tuner).fit(X, y)
        found = judge.loss(np.arange(6))
        assert_allclose(found, criterion(judge.estimator_).fit(X, y).loss(np.arange(6)))
        assert judge.tune(np.array([0, 1]))["C"] in (0.01, 3.0)

    def test_elimination_works_with_any_kernel(self, criterion, classes):
        X, y = classes
        search = RecursiveElimination(criterion(SVC()), n_features_to_select=2).fit(X, y)
        assert search.n_features_ == 2

    @pytest.mark.parametrize(
        ("estimator", "message"),
        [
            (LinearSVC(), "needs an SVC or SVR, .* not LinearSVC. Write .*SVC.kernel='linear'"),
            (NuSVC(), "needs an SVC or SVR"),
            (LogisticRegression(), "not LogisticRegression.*Importances"),
            (make_pipeline(StandardScaler(), SVC()), "bare SVC or SVR, not a Pipeline"),
            (SVC(kernel="precomputed"), "cannot remove a column from a precomputed kernel"),
            (SVC(kernel=lambda A, B: A @ B.T), "cannot remove a column from a callable kernel"),
            (SVC(kernel="sigmoid"), "needs kernel='linear', 'poly' or 'rbf', not 'sigmoid'"),
            (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "not LogisticRegression"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_an_estimator_that_is_not_an_svm_is_refused(
        self, criterion, estimator, message, classes
    ):
        with pytest.raises(IncompatibleCriterion, match=f"{criterion.__name__} .*{message}"):
            criterion(estimator).fit(*classes)

    @pytest.mark.parametrize("order", [2, -1, True, "first", None, 0.5])
    def test_other_orders_are_refused(self, criterion, order, classes):
        with pytest.raises(InvalidParameter, match=f"{criterion.__name__} needs order to be"):
            criterion(SVC(), order=order).fit(*classes)

    def test_other_values_of_retrain_are_refused(self, criterion, classes):
        with pytest.raises(InvalidParameter, match="needs retrain to be True or False, got 'yes'"):
            criterion(SVC(), retrain="yes").fit(*classes)

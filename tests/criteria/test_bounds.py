"""RadiusMargin and Span compared with explicit kernels, finite differences and known results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

from tamis.criteria import RadiusMargin, Span
from tamis.datasets import make_additive, make_exponential, make_interactive
from tamis.exceptions import InvalidParameter
from tamis.search import RecursiveElimination
from tests import explicit_machines as explicit
from tests.laws.recipe_laws import found, linear

BOUNDS = [(RadiusMargin, explicit.radius_margin), (Span, explicit.span)]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
]


@pytest.fixture(params=["two classes", "three classes", "regression"])
def problem(request):
    """Return data and an SVM with some multipliers free and some on their bound."""
    if request.param == "regression":
        X, y = load_diabetes(return_X_y=True)
        return scale(X[:50, :6]), scale(y[:50]), SVR
    rng = np.random.default_rng(0)
    y = np.arange(48) % (2 if request.param == "two classes" else 3)
    return scale(rng.normal(size=(48, 5)) + rng.normal(size=(3, 5))[y]), y, SVC


@pytest.mark.parametrize(("criterion", "quantity"), BOUNDS, ids=["radius-margin", "span"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestAgainstExplicitKernels:
    @pytest.mark.parametrize("retrain", [False, True])
    def test_removal_agrees_with_explicit_kernels(
        self, problem, criterion, quantity, kernel, retrain
    ):
        X, y, machine = problem
        model = machine(C=2.0, tol=1e-9, **kernel)
        held, left = explicit.removed(quantity, model, X, y, retrain)
        found = criterion(model, retrain=retrain).fit(X, y).loss(np.arange(X.shape[1]))
        # spans are 0 up to rounding if there are more free vectors than dimensions
        assert_allclose(found, left - held, rtol=1e-9, atol=1e-9 * max(abs(held), 1))

    def test_derivative_with_fixed_multipliers(self, problem, criterion, quantity, kernel):
        X, y, machine = problem
        model = machine(C=2.0, tol=1e-9, **kernel)
        expected = explicit.differences(quantity, model, X, y)
        found = criterion(model, order=1).fit(X, y).loss(np.arange(X.shape[1]))
        explicit.assert_slopes(found, expected, 1e-4)

    def test_derivative_with_retraining(self, problem, criterion, quantity, kernel):
        X, y, machine = problem
        numbers = kernel | ({"gamma": 0.15} if kernel.get("gamma") == "scale" else {})
        model = machine(C=2.0, tol=1e-10, **numbers)
        expected = explicit.differences(quantity, model, X, y, retrain=True, step=1e-3)
        found = criterion(model, order=1, retrain=True).fit(X, y).loss(np.arange(X.shape[1]))
        explicit.assert_slopes(found, expected, 2e-3)


SOFT = [(RadiusMargin, explicit.soft_radius_margin), (Span, explicit.soft_span)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestSoftMargin:
    @pytest.mark.parametrize(("criterion", "quantity"), SOFT, ids=["radius-margin", "span"])
    @pytest.mark.parametrize("retrain", [False, True])
    def test_removal_agrees_with_explicit_kernels(
        self, problem, criterion, quantity, kernel, retrain
    ):
        X, y, machine = problem
        model = machine(C=0.7, tol=1e-10, **kernel)
        held, left = explicit.soft_removed(quantity, model, X, y, retrain)
        fitted = criterion(model, retrain=retrain, soft_margin=True).fit(X, y)
        # primal and dual differ by LIBSVM's tolerance
        expected, tolerance = left - held, 1e-6 * max(abs(held), 1)
        assert_allclose(fitted.loss(np.arange(X.shape[1])), expected, atol=tolerance)

    def test_the_derivative_agrees_with_retrained_svms(self, problem, kernel):
        X, y, machine = problem
        model = machine(C=0.7, tol=1e-10, **kernel | {"gamma": 0.15})
        subset, step = np.arange(X.shape[1]), 1e-4
        kept, following = (
            RadiusMargin(model, order=1, retrain=retrain, soft_margin=True).fit(X, y).loss(subset)
            for retrain in (False, True)
        )
        ends = []
        for scale_of_first in (1 + step, 1 - step):
            moved = X.copy()
            moved[:, 0] *= scale_of_first
            fitted = machine(**model.get_params()).fit(moved, y)
            ends.append(explicit.soft_radius_margin(fitted, y, moved, kept=False))
        expected = abs(ends[0] - ends[1]) / (2 * step)
        assert_allclose(kept[0], expected, rtol=2e-3, atol=2e-3 * kept.max())
        assert_allclose(following, kept)


@pytest.mark.parametrize("criterion", [RadiusMargin, Span])
def test_without_columns_the_best_constant_is_predicted(criterion):
    """With 12 and 20 rows, a constant predicts the smaller class wrongly, with slacks of 2."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(32, 1)), np.repeat([0, 1], [12, 20])
    model = SVC(C=2.0, tol=1e-10)
    lost = criterion(model, retrain=True, soft_margin=True).fit(X, y).loss(np.array([0]))
    quantity, nothing = (
        (explicit.soft_span, 24) if criterion is Span else (explicit.soft_radius_margin, 48)
    )
    assert_allclose(lost, nothing - quantity(model.fit(X, y), y, X, kept=False), rtol=1e-6)


def test_slacks_cannot_be_differentiated():
    with pytest.raises(InvalidParameter, match="Span needs order=0 with soft_margin=True"):
        Span(SVC(), order=1, soft_margin=True).fit(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(InvalidParameter, match="needs soft_margin to be True or False, got 'yes'"):
        Span(SVC(), soft_margin="yes").fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize("criterion", [RadiusMargin, Span])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_with_slacks_useful_columns_are_removed_last(criterion, C):
    """The published bound removes them first, because ||w||^2 or the distances decrease."""
    problem = linear()
    search = RecursiveElimination(criterion(SVC(C=C), soft_margin=True), n_features_to_select=3)
    assert found(search.fit(problem.X, problem.y), problem) == 1


def test_without_retraining_a_regression_ignores_the_target():
    """The multipliers of two targets differ, but the order of the columns does not."""
    rng = np.random.default_rng(0)
    X = scale(rng.uniform(size=(60, 6)))
    orders = []
    for y in (X[:, 0] ** 2, np.sin(3 * X[:, 4])):
        losses = RadiusMargin(SVR(gamma=0.1)).fit(X, y).loss(np.arange(6))
        orders.append(np.argsort(losses).tolist())
    assert orders[0] == orders[1]


# Problems with known relevant columns: the number of draws in which they come first.

SETTINGS = {
    (make_additive, 200): {"C": 16, "gamma": 2**-5, "epsilon": 0.5},
    (make_interactive, 200): {"C": 64, "gamma": 2**-5, "epsilon": 0.125},
    (make_exponential, 50): {"C": 8, "gamma": 2**-3, "epsilon": 0.25},
}


def hits(problem, n_samples, criterion, n_draws, **params):
    """Return the number of draws in which the relevant columns are eliminated last."""
    machine = SVR(**SETTINGS[problem, n_samples])
    count = 0
    for seed in range(n_draws):
        X, y, relevant, _ = problem(n_samples, random_state=seed)
        search = RecursiveElimination(criterion(machine, **params), n_features_to_select=1)
        count += set(search.fit(X, y).order_[: len(relevant)]) == set(relevant)
    return count


@pytest.mark.parametrize("criterion", [RadiusMargin, Span])
def test_relevant_columns_are_found_in_a_few_draws(criterion):
    assert hits(make_exponential, 50, criterion, 5, retrain=True) >= 4
    assert hits(make_exponential, 50, criterion, 5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "n_samples", "criterion", "least"),
    [
        (make_interactive, 200, RadiusMargin, 26),
        (make_interactive, 200, Span, 22),
        (make_exponential, 50, RadiusMargin, 27),
        (make_exponential, 50, Span, 25),
    ],
)
def test_relevant_columns_are_found_in_thirty_draws(problem, n_samples, criterion, least):
    """Yang (2011), table 4.1, the starred rows: 30, 30, 29 and 30 of 30."""
    assert hits(problem, n_samples, criterion, 30, retrain=True) >= least


@pytest.mark.slow
@pytest.mark.parametrize("criterion", [RadiusMargin, Span])
@pytest.mark.parametrize(("problem", "n_samples"), list(SETTINGS))
def test_relevant_columns_are_not_found_without_retraining(problem, n_samples, criterion):
    """Yang (2011), table 4.1: 0 or 1 of 30, for the reason that the docstrings give."""
    assert hits(problem, n_samples, criterion, 30) <= 5


@pytest.mark.parametrize("scale_of_target", [1.0, 1e-6])
def test_spans_do_not_depend_on_the_tolerance_of_the_estimator(scale_of_target):
    """Spans change abruptly with the set of free vectors.

    With LIBSVM's default tolerance they are wrong by a third.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = scale_of_target * (X[:, 0] + np.sin(X[:, 1]) + 0.2 * rng.normal(size=60))
    numbers = {"epsilon": 0.1 * scale_of_target, "C": scale_of_target}
    losses = [
        Span(SVR(tol=tol, **numbers), retrain=True).fit(X, y).loss(np.arange(4))
        for tol in (1e-3, 1e-12 * scale_of_target)
    ]
    assert_allclose(*losses, rtol=1e-5, atol=1e-5 * np.abs(losses[1]).max())

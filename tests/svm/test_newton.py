"""SVMs with squared losses: optimality, other solvers, retraining, and criteria."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import check_estimator

from tamis import select
from tamis._namespace import host
from tamis.criteria import RadiusMargin, ScoreSensitivity, WeightNorm
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    NotConverged,
)
from tamis.response import open_engine
from tamis.response.engines.base import GenericEngine
from tamis.response.engines.kernel import KernelEngine
from tamis.response.predictions import decisions_of, predictions_of
from tamis.svm import NewtonSVC, NewtonSVR
from tamis.svm.columns import ColumnKernel
from tamis.svm.kernels import Kernel
from tamis.svm.machine import kernel_machine, multipliers
from tamis.svm.newton.left_out import left_out
from tamis.svm.newton.solver import newton
from tamis.svm.newton.spaces import (
    KernelSpace,
    LandmarkSpace,
    SquaredLoss,
    SquaredProblem,
    kernel_matrix,
)


def hinge(y):
    return SquaredLoss(y, one_sided=True)


def problem(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, np.where(f > 0.3, 1, -1), f


def violation(machine, X, y, C, tube=None):
    """Return the largest violation of β = 2C × (distance beyond the edge), and of Σβ = 0."""
    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_[0]
    f = machine.decision_function(X) if tube is None else machine.predict(X)
    off = y - f
    if tube is None:
        wanted = 2 * C * np.where(y * f < 1, off, 0)
    else:
        wanted = 2 * C * np.sign(off) * np.maximum(np.abs(off) - tube, 0)
    border = beta.sum() if machine.fit_intercept else 0.0
    return max(np.abs(beta - wanted).max(), abs(border))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", [True, False])
def test_optimality_conditions_hold(kernel, C, intercept):
    X, y, f = problem()
    options = {"kernel": kernel, "coef0": 1.0, "fit_intercept": intercept}
    machine = NewtonSVC(C, **options).fit(X, y)
    assert violation(machine, X, y, C) <= 1e-8 * max(1, C)
    for epsilon in (0.0, 0.2):
        machine = NewtonSVR(C, epsilon=epsilon, **options).fit(X, f)
        assert violation(machine, X, f, C, epsilon) <= 1e-8 * max(1, C)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_linear_svms_agree_with_scikit_learn(C):
    X, y, f = problem(80)
    theirs = LinearSVC(C=C, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(X, y)
    ours = NewtonSVC(C, kernel="linear", fit_intercept=False).fit(X, y)
    assert_allclose(ours.dual_coef_ @ ours.support_vectors_, theirs.coef_, rtol=1e-6, atol=1e-8)
    theirs = LinearSVR(
        C=C, epsilon=0.2, loss="squared_epsilon_insensitive", fit_intercept=False,
        tol=1e-12, max_iter=10**6,
    ).fit(X, f)  # fmt: skip
    ours = NewtonSVR(C, epsilon=0.2, kernel="linear", fit_intercept=False).fit(X, f)
    assert_allclose(
        (ours.dual_coef_ @ ours.support_vectors_)[0], theirs.coef_, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_optimum_agrees_with_a_general_minimiser(C):
    X, y, _ = problem(40)
    K = rbf_kernel(X, gamma=0.3)
    # in coordinates of K the objective is smooth, and a general method can be exact
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0))

    def objective(theta):
        over = np.maximum(1 - y * (features @ theta[:-1] + theta[-1]), 0)
        slope = -2 * C * y * over
        gradient = np.append(theta[:-1] + features.T @ slope, slope.sum())
        return theta[:-1] @ theta[:-1] / 2 + C * over @ over, gradient

    best = minimize(objective, np.zeros(41), jac=True, method="BFGS", options={"gtol": 1e-10})
    ours = NewtonSVC(C, gamma=0.3).fit(X, y)
    f = ours.decision_function(X)
    assert_allclose(f, features @ best.x[:-1] + best.x[-1], atol=1e-6)
    over = np.maximum(1 - y * f, 0)
    beta = ours.dual_coef_[0]
    support = ours.support_
    value = beta @ K[np.ix_(support, support)] @ beta / 2 + C * over @ over
    assert value <= best.fun * (1 + 1e-12)


def test_least_squares_agree_with_ridge_regression():
    X, _, f = problem()
    ours = NewtonSVR(2.0, epsilon=0.0, gamma=0.3, fit_intercept=False).fit(X, f)
    theirs = KernelRidge(alpha=1 / 4, kernel="rbf", gamma=0.3).fit(X, f)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-10)
    assert ours.n_iter_ <= 2
    assert len(ours.support_) == len(X)


def test_two_active_sets_do_not_alternate():
    """Two groups of outputs are far apart, so full steps would alternate between their edges."""
    X, f = np.random.default_rng(0).normal(size=(10, 3)) * 1e-9, np.repeat([0.0, 1.0], 5)
    machine = NewtonSVR(gamma=1.0).fit(X, f)
    assert violation(machine, X, f, 1.0, 0.1) <= 1e-8


def test_several_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    machine = NewtonSVC(3.0).fit(X, y)
    outputs = machine.decision_function(X)
    for k in range(3):
        own = NewtonSVC(3.0).fit(X, y == k).decision_function(X)
        assert_allclose(outputs[:, k], own, atol=1e-9)
    assert_array_equal(machine.predict(X), outputs.argmax(axis=1))


def test_integer_weights_are_equivalent_to_duplicate_rows():
    X, y, f = problem(30)
    weight = np.random.default_rng(1).integers(0, 3, 30)
    repeated = np.repeat(np.arange(30), weight)
    for ours, target in ((NewtonSVC(2.0), y), (NewtonSVR(2.0), f)):
        weighted = ours.fit(X, target, weight)
        once = kernel_machine(weighted)
        copied = kernel_machine(ours.fit(X[repeated], target[repeated]))
        outputs = [m.values(m.grams(X)) @ m.weights + m.offsets for m in (once, copied)]
        assert_allclose(*outputs, atol=1e-8)


def test_warm_starts_take_fewer_steps():
    X, y, _ = problem(300, 6)
    machine = NewtonSVC(50.0, warm_start=True).fit(X, y)
    first, outputs = machine.n_iter_, machine.decision_function(X)
    machine.fit(X, y)
    assert machine.n_iter_ == 1 < first
    assert_allclose(machine.decision_function(X), outputs, atol=1e-9)
    machine.fit(X[:200, :5], y[:200])  # other rows: it starts from scratch
    assert_allclose(
        machine.decision_function(X[:, :5]),
        NewtonSVC(50.0).fit(X[:200, :5], y[:200]).decision_function(X[:, :5]),
        atol=1e-9,
    )


@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_agrees_with_refits(intercept):
    X, _, f = problem(25)
    K, ridge = rbf_kernel(X, gamma=0.3), np.full(25, 1 / (2 * 5.0))
    found = left_out(K, ridge, f, intercept=intercept)
    for i in range(25):
        kept = np.delete(np.arange(25), i)
        own = newton(
            KernelSpace(K[np.ix_(kept, kept)]),
            SquaredProblem(ridge[kept], SquaredLoss(f[kept]), intercept), most_steps=9,
        )  # fmt: skip
        assert_allclose(found.weights[i, kept], own.point.beta, atol=1e-9)
        assert found.weights[i, i] == pytest.approx(0, abs=1e-12)
        assert found.offsets[i] == pytest.approx(own.point.intercept, abs=1e-9)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries_agree(library):
    other = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y, f = problem()
    kernel, ridge = Kernel("rbf", 0.3), np.full(60, 0.1)
    there = other.asarray(X)
    K = kernel_matrix(kernel, there, there)
    assert_allclose(host(K), rbf_kernel(X, gamma=0.3), atol=1e-14)
    poly = kernel_matrix(Kernel("poly", 0.3, 2, 1.0), there, there)
    assert_allclose(host(poly), polynomial_kernel(X, None, 2, 0.3, 1.0))
    for make, target in ((hinge, y.astype(float)), (lambda v: SquaredLoss(v, 0.2), f)):
        plain = newton(KernelSpace(host(K)), SquaredProblem(ridge, make(target)), most_steps=50)
        moved = newton(
            KernelSpace(K), SquaredProblem(other.asarray(ridge), make(other.asarray(target))),
            most_steps=50,
        )  # fmt: skip
        assert_allclose(host(moved.point.beta), plain.point.beta, atol=1e-11)
        assert moved.point.intercept == pytest.approx(plain.point.intercept, abs=1e-12)
        assert moved.n_steps == plain.n_steps
    ours, theirs = left_out(host(K), ridge, f), left_out(K, other.asarray(ridge), other.asarray(f))
    assert_allclose(host(theirs.weights), ours.weights, atol=1e-11)


def test_the_common_view_of_svms_agrees_with_the_model():
    X, y, f = problem()
    for machine, target in ((NewtonSVC(2.0), y), (NewtonSVR(2.0), f)):
        fitted = machine.fit(X, target)
        view = kernel_machine(fitted)
        outputs = view.values(view.grams(X)) @ view.weights + view.offsets
        own = fitted.decision_function(X) if machine is not fitted else fitted._outputs(X)[:, 0]
        assert_allclose(outputs[:, 0], own, atol=1e-12)
        (one,) = multipliers(fitted, target)
        K = view.kernel(X, X)
        assert_allclose(K @ one.beta + fitted.intercept_, outputs[:, 0], atol=1e-10)


@pytest.mark.parametrize(
    "machine",
    [NewtonSVC(), NewtonSVR(), NewtonSVC(n_landmarks=15, random_state=0)],
    ids=["svc", "svr", "landmarks"],
)
def test_scikit_learn_checks(machine):
    check_estimator(machine, on_skip=None)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"C": 0.0}, "C to be a number above 0"),
        ({"kernel": "sigmoid"}, "kernel to be 'rbf', 'linear' or 'poly'"),
        ({"max_iter": 0}, "max_iter to be an int of at least 1"),
        ({"gamma": -1.0}, "gamma to be a number above 0"),
    ],
)
def test_invalid_parameters_are_refused(parameters, sentence):
    X, y, _ = problem(20)
    with pytest.raises(InvalidParameter, match=sentence):
        NewtonSVC(**parameters).fit(X, y)


def test_untrainable_data_are_refused():
    X, y, f = problem(20)
    with pytest.raises(InvalidParameter, match="epsilon to be a number of at least 0"):
        NewtonSVR(epsilon=-1.0).fit(X, f)
    with pytest.raises(InvalidTarget, match="two classes"):
        NewtonSVC().fit(X, np.ones(20))
    with pytest.raises(InvalidParameter, match="positive definite"):
        NewtonSVC(1e30, kernel="poly", coef0=-3.0, degree=3).fit(X, y)
    with pytest.warns(NotConverged, match="max_iter=1"):
        NewtonSVC(100.0, max_iter=1).fit(X, y)


class TestCriteria:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    def test_norms_without_each_column_agree_with_the_definition(self, kernel):
        X, y, f = problem()
        for machine, target in ((NewtonSVC(kernel=kernel), y), (NewtonSVR(kernel=kernel), f)):
            fitted = machine.fit(X, target)
            beta, K = fitted.dual_coef_[0], fitted._kernel
            S = fitted.support_vectors_
            norm2 = beta @ K(S, S) @ beta
            rest = [np.delete(S, j, axis=1) for j in range(4)]
            expected = [abs(norm2 - beta @ K(R, R) @ beta) for R in rest]
            found = WeightNorm(machine).fit(X, target).loss(np.arange(4))
            assert_allclose(found, expected, rtol=1e-9)

    def test_norms_of_several_classes_are_summed(self):
        X, y = load_iris(return_X_y=True)
        criterion = WeightNorm(NewtonSVC(gamma=0.2))
        whole = criterion.fit(X, y).loss(np.arange(4))
        norms = []
        for k in range(3):
            fitted = NewtonSVC(gamma=0.2).fit(X, y == k)
            columns = ColumnKernel(fitted._kernel, fitted.support_vectors_)
            norms.append(columns.lost(fitted.dual_coef_[0]))
        assert_allclose(whole, np.abs(np.sum(norms, axis=0)), rtol=1e-8)

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    def test_sensitivities_agree_with_altered_copies(self, kernel):
        """The engine is compared with altered copies of the rows."""
        X, y, f = problem()
        for machine, target, kind in (
            (NewtonSVC(kernel=kernel), y, "accuracy"),
            (NewtonSVR(kernel=kernel), f, "r2"),
        ):
            fitted = machine.fit(X, target)
            criterion = ScoreSensitivity(machine, by="permutation", random_state=0)
            losses = criterion.fit(X, target).loss(np.arange(4))
            assert np.isfinite(losses).all()
            model = decisions_of(fitted, fitted.classes_) if kind == "accuracy" else None
            model = model or predictions_of(fitted)
            low, high = X.min(axis=0), X.max(axis=0)
            engine = open_engine(model, X, low, high)
            assert isinstance(engine, KernelEngine)
            other = GenericEngine(model, X)
            points = X[[3, 8], :].T[:, :, None]
            for batch in engine.batches(np.arange(4)[:, None]):
                copies = list(other.batches(np.arange(4)[:, None]))
                found = batch.at(slice(None), slice(None), points[batch.units])
                for own, unit in zip(found, batch.units, strict=True):
                    expected = copies[unit].at(slice(None), slice(None), points[[unit]])[0]
                    assert_allclose(own, expected, atol=1e-8)

    @pytest.mark.parametrize(
        ("method", "real"),
        [
            ("grad-w2-rfe(estimator=NewtonSVC())", False),
            ("RecursiveElimination(WeightNorm(NewtonSVC()))", False),
            ("RecursiveElimination(PosteriorSensitivity(NewtonSVC()))", False),
            ("RecursiveElimination(DensitySensitivity(NewtonSVR()))", True),
        ],
    )
    def test_eliminations_accept_newton_svms(self, method, real):
        X, y, f = problem(80)
        found = select(X, f if real else y, method, n_features_to_select=3)
        assert_array_equal(found.get_support(indices=True), [0, 1, 2])

    def test_error_bounds_refuse_newton_svms(self):
        X, y, _ = problem(20)
        with pytest.raises(IncompatibleCriterion, match=r"WeightNorm\(NewtonSVC"):
            RadiusMargin(NewtonSVC()).fit(X, y)
        with pytest.raises(IncompatibleCriterion, match="order=0"):
            WeightNorm(NewtonSVC(), order=1, retrain=True).fit(X, y)
        assert WeightNorm(NewtonSVC(), order=1).fit(X, y).loss(np.arange(4)).shape == (4,)


DISPATCHED = """
import numpy as np, torch
from sklearn import config_context
from sklearn.base import clone
from tamis.svm import NewtonSVC, NewtonSVR
rng = np.random.default_rng(0)
X, weight = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
f = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60)
labels = np.where(f > 0, "yes", "no")
T = torch.asarray(X)
cases = [
    (NewtonSVC(5.0), labels, None),
    (NewtonSVC(5.0), labels, weight),
    (NewtonSVC(gamma=0.3, class_weight="balanced"), labels, None),
    (NewtonSVR(5.0), f, None),
    (NewtonSVR(5.0), torch.asarray(f), None),
]
with config_context(array_api_dispatch=True):
    for machine, y, weights in cases:
        there = clone(machine).fit(T, y, weights)
        here = clone(machine).fit(X, np.asarray(y), weights)
        name = "decision_function" if isinstance(machine, NewtonSVC) else "predict"
        found = getattr(there, name)(T)
        assert isinstance(found, torch.Tensor) and isinstance(there.support_vectors_, torch.Tensor)
        assert np.abs(found.numpy() - getattr(here, name)(X)).max() < 1e-10
        if name != "predict":
            assert (there.predict(T) == here.predict(X)).all()
print("the same")
"""


@pytest.mark.slow
def test_torch_arrays_are_supported_with_dispatch():
    """It runs in a new process, because dispatch must be enabled before scipy is imported."""
    pytest.importorskip("torch", reason="torch is not installed")
    done = subprocess.run(
        [sys.executable, "-c", DISPATCHED],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "the same", done.stderr


def reached(machine, X):
    return machine.decision_function(X) if hasattr(machine, "classes_") else machine.predict(X)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("machine", [NewtonSVC, NewtonSVR])
def test_columns_far_from_0_lose_no_digits(kernel, machine):
    X, y, f = problem()
    X = np.round(X * 2**20) / 2**20  # so that the shift causes no rounding
    target = y if machine is NewtonSVC else f
    near = machine(kernel=kernel, gamma=0.2).fit(X, target)
    far = machine(kernel=kernel, gamma=0.2).fit(X + 2.0**24, target)
    assert_allclose(reached(far, X + 2.0**24), reached(near, X), atol=1e-9)
    if kernel == "linear":  # the intercept refers to the original columns
        own = host(near.dual_coef_) @ (near.support_vectors_ @ X.T) + near.intercept_[:, None]
        assert_allclose(own[0], reached(near, X), atol=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e200, 1e307])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.filterwarnings("error")
def test_targets_of_any_scale(scale, epsilon):
    X, _, f = problem()
    f = f / np.abs(f).max()
    plain = NewtonSVR(epsilon=epsilon).fit(X, f).predict(X)
    scaled = NewtonSVR(epsilon=epsilon * scale).fit(X, f * scale).predict(X)
    assert_allclose(scaled / scale, plain, atol=1e-12)


def test_targets_may_be_far_from_0():
    X, _, f = problem()
    far = NewtonSVR().fit(X, f + 1e9).predict(X) - 1e9
    assert_allclose(far, NewtonSVR().fit(X, f).predict(X), atol=1e-5)
    assert_allclose(NewtonSVR().fit(X, np.full(len(X), 7.0)).predict(X), 7.0)


@pytest.mark.filterwarnings("error")
def test_training_converges_for_a_large_C():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    f = X[:, 0] + 0.3 * rng.normal(size=40)
    machine = NewtonSVR(1e8).fit((X * 5).astype(int), f + f.mean())
    assert machine.n_iter_ < 30


@pytest.mark.parametrize(
    ("options", "weight", "match"),
    [
        ({"kernel": np.eye(2)}, None, "needs kernel to be 'rbf'"),
        ({"kernel": "poly", "degree": 2.5}, None, "degree to be an int"),
        ({"kernel": "poly", "coef0": np.nan}, None, "coef0 to be a finite number"),
        ({"C": 1e-320}, None, "C times the weights between"),
        ({"C": 1e308}, None, "C times the weights between"),
        ({"C": 1e-200}, 1e-200, "C times the weights between"),
    ],
)
@pytest.mark.parametrize("machine", [NewtonSVC, NewtonSVR])
def test_values_that_overflow_are_refused(machine, options, weight, match):
    X, y, _ = problem(20)
    weight = None if weight is None else np.full(20, weight)
    with pytest.raises(InvalidParameter, match=match):
        machine(**options).fit(X, y, weight)


@pytest.mark.parametrize("weights", [{0: 0.0}, {0: -1.0}, {0: np.nan}, {0: np.inf}], ids=str)
def test_class_weights_must_be_above_0(weights):
    X, y, _ = problem(20)
    with pytest.raises(InvalidParameter, match="class weights that are numbers above 0"):
        NewtonSVC(class_weight=weights).fit(X, (y > 0).astype(int))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_columns_too_large_for_a_kernel_are_refused(kernel):
    X, y, _ = problem(20)
    with pytest.raises(InvalidTable, match="too large for a number"):
        NewtonSVC(kernel=kernel, gamma=1.0).fit(X * 1e160, y)


def test_a_single_weight_applies_to_all_samples():
    X, y, _ = problem(20)
    by_number = NewtonSVC().fit(X, y, 3.0).decision_function(X)
    assert_allclose(by_number, NewtonSVC(3.0).fit(X, y).decision_function(X))


def test_a_problem_beyond_double_precision_causes_a_warning():
    X, _, f = problem(40)
    with pytest.warns(NotConverged, match="has an error of"):
        NewtonSVR(kernel="poly", degree=1, gamma=1.0).fit(X * 1e6, f)


class TestLandmarks:
    """SVMs with landmarks, whose weights are fitted to all rows."""

    @pytest.mark.parametrize("kernel", [Kernel("rbf", 0.3), Kernel("poly", 0.3, 2, 1.0)])
    @pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_all_rows_as_landmarks_give_the_exact_svm(self, kernel, C, intercept):
        X, y, f = problem()
        ridge = np.full(60, 1 / (2 * C))
        exact = KernelSpace(kernel_matrix(kernel, X, X))
        space = LandmarkSpace(kernel, X, np.arange(60))
        for loss in (hinge(y.astype(float)), SquaredLoss(f, 0.2), SquaredLoss(f)):
            task = SquaredProblem(ridge, loss, intercept)
            whole, found = (newton(one, task, most_steps=50) for one in (exact, space))
            assert_allclose(found.point.outputs, whole.point.outputs, atol=1e-9)
            a = space.multipliers(task, found.sides, found.point)
            assert_allclose(exact.K @ a + found.point.intercept, whole.point.outputs, atol=1e-8)

    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_the_optimum_agrees_with_a_general_minimiser(self, kernel, intercept):
        X, y, _ = problem(50)
        ours = NewtonSVC(
            2.0, kernel=kernel, coef0=1.0, gamma=0.3, fit_intercept=intercept, n_landmarks=6,
            random_state=1,
        ).fit(X, y)  # fmt: skip
        own = ours.support_vectors_
        assert_array_equal(own, X[ours.support_])
        K, among = ours._kernel(X, own), ours._kernel(own, own)

        def objective(theta):
            a, b = theta[:-1], theta[-1] * intercept
            over = np.maximum(1 - y * (K @ a + b), 0)
            return a @ among @ a / 2 + 2.0 * over @ over

        ends = [
            minimize(objective, start, method="BFGS", options={"gtol": 1e-9}).fun
            for start in (np.zeros(7), np.append(ours.dual_coef_[0], ours.intercept_))
        ]
        value = objective(np.append(ours.dual_coef_[0], ours.intercept_))
        assert value <= min(ends) * (1 + 1e-9)
        assert_allclose(K @ ours.dual_coef_[0] + ours.intercept_, ours.decision_function(X))

    def test_landmarks_are_drawn_by_random_state(self):
        X, y, f = problem()
        for make, target in ((NewtonSVC, y), (NewtonSVR, f)):
            one, again, other = (
                make(n_landmarks=20, random_state=seed).fit(X, target) for seed in (0, 0, 1)
            )
            assert_array_equal(reached(one, X), reached(again, X))
            assert len(one.support_) == 20
            assert not np.array_equal(one.support_, other.support_)
            whole = make(n_landmarks=60).fit(X, target)
            assert_array_equal(reached(whole, X), reached(make().fit(X, target), X))

    def test_weights_are_used_for_several_classes(self):
        X, y = load_iris(return_X_y=True)
        weight = np.random.default_rng(0).integers(0, 3, len(X))
        machine = NewtonSVC(n_landmarks=30, random_state=0).fit(X, y, weight)
        assert machine.score(X, y) > 0.95
        assert (weight[machine.support_] > 0).all()
        view = kernel_machine(machine)
        outputs = view.values(view.grams(X)) @ view.weights + view.offsets
        assert_allclose(outputs, machine.decision_function(X), atol=1e-9)

    def test_equal_rows_and_columns_far_from_0(self):
        X, y, _ = problem()
        X = np.round(X * 2**20) / 2**20
        twice = np.concatenate([X, X]), np.concatenate([y, y])
        for kernel in ("rbf", "linear"):
            options = {"kernel": kernel, "gamma": 0.2, "n_landmarks": 80, "random_state": 0}
            near = NewtonSVC(**options).fit(*twice)
            far = NewtonSVC(**options).fit(twice[0] + 2.0**24, twice[1])
            assert_allclose(reached(far, X + 2.0**24), reached(near, X), atol=1e-8)
            if kernel == "linear":
                own = near.dual_coef_ @ (near.support_vectors_ @ X.T) + near.intercept_[:, None]
                assert_allclose(own[0], reached(near, X), atol=1e-8)

    @pytest.mark.parametrize("library", ["array_api_strict", "torch"])
    def test_other_libraries_agree(self, library):
        other = pytest.importorskip(library, reason=f"{library} is not installed")
        X, y, _ = problem()
        ridge, loss, some = np.full(60, 0.1), y.astype(float), np.arange(0, 60, 4)
        plain = LandmarkSpace(Kernel("rbf", 0.3), X, some)
        here = newton(plain, SquaredProblem(ridge, hinge(loss)), most_steps=50)
        space = LandmarkSpace(Kernel("rbf", 0.3), other.asarray(X), some)
        moved = SquaredProblem(other.asarray(ridge), hinge(other.asarray(loss)))
        there = newton(space, moved, most_steps=50)
        assert_allclose(host(there.point.outputs), here.point.outputs, atol=1e-10)
        assert there.n_steps == here.n_steps

    def test_criteria_accept_landmarks(self):
        X, f = problem(120)[::2]
        method = (
            "RecursiveElimination(DensitySensitivity(NewtonSVR(n_landmarks=40, random_state=0)))"
        )
        found = select(X, f, method, n_features_to_select=3)
        assert_array_equal(found.get_support(indices=True), [0, 1, 2])

    @pytest.mark.parametrize("few", [0, -3, 2.5, "all"])
    def test_invalid_numbers_of_landmarks_are_refused(self, few):
        X, y, _ = problem(20)
        with pytest.raises(
            InvalidParameter, match="n_landmarks to be an int of at least 1 or None"
        ):
            NewtonSVC(n_landmarks=few).fit(X, y)

    @pytest.mark.parametrize("kernel", ["linear", "poly"])
    def test_landmarks_at_the_origin_learn_a_constant(self, kernel):
        """Only a constant can be learned, as with all rows."""
        _, y, f = problem()
        X = np.zeros((len(y), 2)) if kernel == "poly" else np.full((len(y), 2), 3.0)
        exact = NewtonSVR(kernel=kernel).fit(X, f).predict(X)
        found = NewtonSVR(kernel=kernel, n_landmarks=5).fit(X, f).predict(X)
        assert_allclose(found, exact, atol=1e-12)

    def test_a_single_landmark_gives_a_constant_linear_svm(self):
        X, y, _ = problem()
        outputs = NewtonSVC(kernel="linear", n_landmarks=1).fit(X, y).decision_function(X)
        assert_allclose(outputs, outputs[0], atol=1e-12)


def test_least_squares_classify_like_a_regression():
    X, y, _ = problem()
    machine = NewtonSVC(3.0, loss="squared_error", gamma=0.3).fit(X, y)
    by_numbers = NewtonSVR(3.0, epsilon=0.0, gamma=0.3).fit(X, y)
    assert_allclose(machine.decision_function(X), by_numbers.predict(X), atol=1e-12)
    assert len(machine.support_) == len(X)
    with pytest.raises(InvalidParameter, match="loss to be 'squared_hinge' or 'squared_error'"):
        NewtonSVC(loss="hinge").fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("trained", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("asked", ["numpy", "torch", "array_api_strict"])
def test_predictions_for_rows_of_a_different_library(kernel, trained, asked):
    one, other = (pytest.importorskip(name) for name in (trained, asked))
    X, _, f = problem()
    machine = NewtonSVR(kernel=kernel).fit(one.asarray(X), f)
    rows = other.asarray(X[:5])
    found = machine.predict(rows)
    assert type(found) is type(rows)
    assert_allclose(host(found), NewtonSVR(kernel=kernel).fit(X, f).predict(X[:5]), atol=1e-12)

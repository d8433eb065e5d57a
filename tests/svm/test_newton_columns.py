"""Linear SVMs with squared losses, solved for column weights: extreme scales, offsets and C.

Expected values are fractions without rounding: the optimum of the samples that an SVM reports as
active, and whether these samples are active at this optimum.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from tamis._namespace import computing_on, host
from tamis.criteria import Importances, ScoreSensitivity, WeightNorm
from tamis.exceptions import InvalidTable, NotConverged
from tamis.search import RecursiveElimination
from tamis.svm import NewtonSVC, NewtonSVR
from tamis.svm.machine import kernel_machine
from tamis.svm.newton.solver import newton
from tamis.svm.newton.spaces import LinearSpace, SquaredLoss, SquaredProblem

pytestmark = pytest.mark.filterwarnings("error")

#: Changes of columns: larger, far from 0, both, different scales, one duplicated.
TABLES = {
    "plain": lambda X: X,
    "large": lambda X: X * 1e6,
    "far": lambda X: X + 1e6,
    "large and far": lambda X: X * 1e6 + 1e12,
    "of many sizes": lambda X: X * np.array([1.0, 1e6, 1e3, 1e10]),
    "twice": lambda X: X[:, [0, 1, 0, 2]] * 1e6,
}
PAIRS = [np.array([0, 1]), np.array([2, 3])]


def hinge(y):
    return SquaredLoss(y, one_sided=True)


def problem(n=30, d=4, seed=1):
    """Return overlapping classes. With seed 0, 30 rows and all columns, they are separable."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] + 0.5 * X[:, 2] + 0.6 * rng.normal(size=n)
    return X, np.where(f > 0.3, 1, -1), f


def solved(A, b):
    """Solve a system of linear equations in fractions."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[k] != 0:
                rows[i] = [v - row[k] * w for v, w in zip(row, rows[k], strict=True)]
    return [row[-1] for row in rows]


def optimum(X, target, C, active, intercept=True):
    """Return the least-squares weights on the active samples, and the outputs, in fractions."""
    border = [Fraction(1)] if intercept else []
    rows = [[Fraction(float(v)) for v in x] + border for x in X]
    n, twice = len(rows[0]), 2 * Fraction(C)
    A = [[Fraction(int(i == j and i < X.shape[1])) for j in range(n)] for i in range(n)]
    b = [Fraction(0)] * n
    for k in np.flatnonzero(active):
        for i, v in enumerate(rows[k]):
            b[i] += twice * v * Fraction(float(target[k]))
            A[i] = [a + twice * v * w for a, w in zip(A[i], rows[k], strict=True)]
    theta = solved(A, b)
    outputs = [sum(v * t for v, t in zip(row, theta, strict=True)) for row in rows]
    return np.array([float(w) for w in theta[: X.shape[1]]]), np.array(outputs)


def active_of(machine, n):
    active = np.zeros(n, dtype=bool)
    active[machine.support_] = True
    return active


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_classification_is_accurate_for_extreme_columns(name, C, intercept, seed):
    X, y, _ = problem(seed=seed)
    X = TABLES[name](X)
    machine = NewtonSVC(C, kernel="linear", fit_intercept=intercept).fit(X, y)
    active = active_of(machine, len(X))
    w, f = optimum(X, y, C, active, intercept)
    assert_array_equal(y * f < 1, active)
    off = 2 * C * np.where(active, y - f, 0).astype(float)
    f = f.astype(float)
    # without an intercept, rows far from 0 are nearly equal and have fewer digits
    bound = 1e-8 if "far" in name and not intercept else 1e-9 if name == "of many sizes" else 1e-13
    assert_allclose(machine.decision_function(X), f, rtol=bound, atol=bound)
    assert_allclose(machine.coef_[0], w, atol=bound * np.abs(w).max())
    beta = np.zeros(len(X))
    beta[machine.support_] = machine.dual_coef_[0]
    assert_allclose(beta, off, atol=2 * C * 10 * bound)
    assert (y * beta >= -1e-6 * np.abs(beta).max()).all()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_regression_is_accurate_for_extreme_columns(name, C, epsilon):
    X, _, f = problem()
    X, f = TABLES[name](X), f * 1e6
    epsilon *= 1e6
    machine = NewtonSVR(C, epsilon=epsilon, kernel="linear").fit(X, f)
    active, off = active_of(machine, len(X)), f - machine.predict(X)
    w, expected = optimum(X, f - epsilon * np.sign(off), C, active)
    assert_array_equal(np.abs(f - expected) > epsilon, active)
    expected = expected.astype(float)
    bound = 1e-9 if name == "of many sizes" else 1e-13
    assert_allclose(machine.predict(X), expected, atol=1e6 * 10 * bound)
    assert_allclose(machine.coef_[0], w, atol=bound * np.abs(w).max())
    assert_allclose(machine.coef_ @ X[0] + machine.intercept_, expected[0], atol=1e6 * 1e-8)


@pytest.mark.parametrize("C", [1.0, 1e9])
@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
def test_more_columns_than_rows_are_solved_exactly(C, scale, intercept):
    """The classes are separable, and with a large C many planes are nearly optimal."""
    X = np.random.default_rng(0).normal(size=(8, 10)) * scale
    y = np.where(X[:, 0] > 0, 1, -1)
    machine = NewtonSVC(C, kernel="linear", fit_intercept=intercept).fit(X, y)
    active = active_of(machine, len(X))
    w, f = optimum(X, y, C, active, intercept)
    assert_array_equal(y * f < 1, active)
    assert_allclose(machine.coef_[0], w, atol=1e-12 * np.abs(w).max())
    assert (machine.dual_coef_[0] * y[machine.support_] > 0).all()
    assert machine.n_iter_ < 20


@pytest.mark.parametrize("C", [1e6, 1e9])
def test_the_hard_margin_is_reached(C):
    """There are many support vectors and columns. The dual objective equals that of the norm."""
    X = np.random.default_rng(0).normal(size=(60, 200))
    y = np.where(X[:, 0] + 0.5 * X[:, 2] > 0.3, 1, -1)
    machine = NewtonSVC(C, kernel="linear").fit(X, y)
    beta, w = machine.dual_coef_[0], machine.coef_[0]
    assert (beta * y[machine.support_] > 0).all()
    assert (y * machine.decision_function(X)).min() > 1 - 1e-7
    assert np.abs(beta).sum() == pytest.approx(w @ w, rel=1e-6)  # no duality gap
    assert machine.n_iter_ < 20


@pytest.mark.parametrize(
    ("C", "options"),
    [(1e12, {"gamma": 0.2}), (1e12, {"kernel": "poly", "coef0": 1.0, "gamma": 0.2})],
    ids=["rbf", "poly"],
)
def test_other_kernels_reach_the_hard_margin_too(C, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=100) > 0, 1, -1)
    machine = NewtonSVC(C, **options).fit(X, y)
    beta, S = machine.dual_coef_[0], machine.support_vectors_
    assert (beta * y[machine.support_] > 0).all()
    assert (y * machine.decision_function(X)).min() > 1 - 1e-2
    norm2, rest = beta @ machine._kernel(S, S) @ beta, beta @ beta / (2 * C)
    assert np.abs(beta).sum() == pytest.approx(norm2 + rest, rel=1e-6)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_enough_landmarks_give_the_exact_linear_svm(name, C):
    """With more landmarks than columns, the SVM is that of all rows."""
    X, y, _ = problem()
    X = TABLES[name](X)
    whole = NewtonSVC(C, kernel="linear").fit(X, y)
    found = NewtonSVC(C, kernel="linear", n_landmarks=12, random_state=0).fit(X, y)
    bound = 1e-9 if name == "of many sizes" else 1e-12
    assert_allclose(found.coef_, whole.coef_, atol=bound * np.abs(whole.coef_).max())
    assert_allclose(found.decision_function(X), whole.decision_function(X), atol=10 * bound)
    few = NewtonSVC(C, kernel="linear", n_landmarks=3, random_state=0).fit(X, y)
    own = few.support_vectors_ - few.support_vectors_.mean(axis=0)
    own /= np.abs(own).max()
    assert abs(few.dual_coef_.sum()) < 1e-9 * np.abs(few.dual_coef_).max()
    over = np.maximum(1 - y * few.decision_function(X), 0)
    pulls = 2 * C * y * over
    # the remaining gradient is orthogonal to the landmarks
    slope = few.coef_[0] - pulls @ (X - X.mean(axis=0))
    size = np.abs(pulls) @ np.abs(X - X.mean(axis=0))
    assert np.abs(own @ slope).max() < 1e-7 * np.abs(own @ size).max()


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_columns_far_from_0_agree_with_scikit_learn_near_0(far):
    X, y, _ = problem(80)
    X = np.round(X * 2**20) / 2**20
    theirs = LinearSVC(C=30.0, fit_intercept=False, tol=1e-12, max_iter=10**6)
    both = np.concatenate([X, -X]), np.concatenate([y, -y])  # whose intercept is 0
    ours = NewtonSVC(30.0, kernel="linear").fit(both[0] + far, both[1])
    assert_allclose(ours.coef_, theirs.fit(*both).coef_, atol=1e-6)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_norms_without_each_column_are_squared_weights(name, C):
    """Scores are squared weights, for any unit and offset of the columns."""
    X, y, f = problem()
    X = TABLES[name](X)
    for machine, target in ((NewtonSVC(C, kernel="linear"), y), (NewtonSVR(C, kernel="linear"), f)):
        fitted = machine.fit(X, target)
        aims = target
        if target is f:
            aims = f - 0.1 * np.sign(f - fitted.predict(X))
        w, _ = optimum(X, aims, C, active_of(fitted, len(X)))
        bound = (1e-9 if name == "of many sizes" else 1e-12) * np.square(w).max()
        criterion = WeightNorm(machine).fit(X, target)
        assert_allclose(criterion.loss(np.arange(4)), np.square(w), atol=bound)
        slopes = WeightNorm(machine, order=1).fit(X, target).loss(np.arange(4))
        assert_allclose(slopes, 2 * np.square(w), atol=2 * bound)
        by_groups = (
            WeightNorm(machine, adjusted=False).grouped(PAIRS).fit(X, target).loss(np.arange(2))
        )
        assert_allclose(by_groups, np.square(w).reshape(2, 2).sum(axis=1), atol=2 * bound)
        found = Importances(machine).fit(X, target).loss(np.arange(4))
        assert_allclose(found, np.square(w), atol=bound)


def test_norms_agree_with_svms_trained_without_each_column():
    X, y, _ = problem()
    X = X * 1e6 + 1e12
    machine = NewtonSVC(1e6, kernel="linear")

    def norm2(table):
        active = active_of(machine.fit(table, y), len(X))
        return float(np.sum(optimum(table, y, 1e6, active)[0] ** 2))

    expected = [abs(norm2(X) - norm2(np.delete(X, j, axis=1))) for j in range(4)]
    found = WeightNorm(machine, retrain=True).fit(X, y).loss(np.arange(4))
    assert_allclose(found, expected, atol=1e-12 * norm2(X))


@pytest.mark.parametrize("name", ["large", "far", "large and far"])
def test_results_are_the_same_on_a_device(name):
    pytest.importorskip("torch", reason="torch is not installed")
    X, y, _ = problem()
    X = TABLES[name](X)
    plain = WeightNorm(NewtonSVC(1e6, kernel="linear")).fit(X, y).loss(np.arange(4))
    with computing_on("cpu"):
        moved = WeightNorm(NewtonSVC(1e6, kernel="linear")).fit(X, y).loss(np.arange(4))
    assert_allclose(moved, plain, atol=1e-12 * plain.max())


def test_eliminations_do_not_depend_on_units():
    """The order is the same for columns far from 0 that are multiplied by 1e6, with C adapted."""
    X, y, _ = problem(60, 8)
    X = np.round(X * 2**10) / 2**10
    orders = [
        RecursiveElimination(WeightNorm(NewtonSVC(C, kernel="linear")), standardize=False)
        .fit(table, y)
        .ranking_
        for table, C in ((X, 1.0), (X * 2.0**20, 2.0**-40), (X + 2.0**20, 1.0))
    ]
    assert_array_equal(orders[0], orders[1])
    assert_array_equal(orders[0], orders[2])


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries_agree(library):
    other = pytest.importorskip(library, reason=f"{library} is not installed")
    X, y, f = problem()
    X, ridge = X * 1e6, np.full(30, 1 / 2e6)
    for make, target in ((hinge, y.astype(float)), (lambda v: SquaredLoss(v, 0.2), f)):
        here = newton(LinearSpace(X), SquaredProblem(ridge, make(target)), most_steps=50)
        moved = SquaredProblem(other.asarray(ridge), make(other.asarray(target)))
        there = newton(LinearSpace(other.asarray(X)), moved, most_steps=50)
        assert_allclose(host(there.point.beta), here.point.beta, atol=1e-19)
        assert_allclose(host(there.point.outputs), here.point.outputs, atol=1e-12)
        assert there.n_steps == here.n_steps


def test_many_rows_are_solved_for_column_weights_with_the_same_result():
    X, y, f = problem(200)
    for machine, target in ((NewtonSVC(3.0), y), (NewtonSVR(3.0), f)):
        by_columns = clone(machine).set_params(kernel="linear").fit(X, target)
        wide = np.concatenate([X, np.zeros((200, 30))], axis=1)
        by_kernel = clone(machine).set_params(kernel="linear").fit(wide, target)
        assert_array_equal(by_columns.support_, by_kernel.support_)
        assert_allclose(by_columns._outputs(X), by_kernel._outputs(wide), atol=1e-10)
        assert_allclose(by_columns.dual_coef_, by_kernel.dual_coef_, atol=1e-9)


def test_several_classes_weights_and_views_give_the_same_svm():
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    machine = NewtonSVC(3.0, kernel="linear").fit(X, y, weight)
    repeated = np.repeat(np.arange(len(X)), weight)
    copied = NewtonSVC(3.0, kernel="linear").fit(X[repeated], y[repeated])
    assert_allclose(machine.coef_, copied.coef_, atol=1e-10)
    assert machine.coef_.shape == (3, 4)
    assert_allclose(X @ machine.coef_.T + machine.intercept_, machine.decision_function(X))
    view = kernel_machine(machine)
    outputs = view.values(view.grams(X)) @ view.weights + view.offsets
    assert_allclose(outputs, machine.decision_function(X), atol=1e-11)
    assert not hasattr(NewtonSVC().fit(X, y), "coef_")
    assert not hasattr(NewtonSVC(kernel="linear"), "coef_")


def test_sensitivities_do_not_depend_on_units_and_offsets():
    X, y, _ = problem(60)
    X = np.round(X * 2**10) / 2**10
    found = [
        ScoreSensitivity(NewtonSVC(C, kernel="linear"), by="permutation", random_state=0)
        .fit(table, y)
        .loss(np.arange(4))
        for table, C in ((X, 1e3), (X + 2.0**20, 1e3), (X * 2.0**20, 1e3 * 2.0**-40))
    ]
    assert_allclose(found[1], found[0], atol=1e-12)
    assert_allclose(found[2], found[0], atol=1e-12)


def test_columns_too_large_to_be_squared_are_refused():
    X, y, _ = problem(60)
    with pytest.raises(InvalidTable, match="too large for a number"):
        NewtonSVC(kernel="linear").fit(X * 1e160, y)


def test_reaching_the_limit_of_steps_causes_a_warning():
    X, y, _ = problem(60)
    with pytest.warns(NotConverged, match="max_iter=1"):
        NewtonSVC(1e6, kernel="linear", max_iter=1).fit(X * 1e6, y)

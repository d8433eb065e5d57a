"""Leave-one-out least-squares SVMs, compared with a refit for each row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from tamis import select
from tamis.criteria import DensitySensitivity, PosteriorSensitivity, ScoreSensitivity
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NotConverged
from tamis.response import open_engine
from tamis.response.calibration import fit_sigmoids, left_out_models
from tamis.response.engines.base import GenericEngine
from tamis.response.fold_models import FoldTraining
from tamis.response.perturbations import Permutation
from tamis.response.predictions import as_it_is
from tamis.svm import NewtonSVC, NewtonSVR

KERNELS = [
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf", "gamma": 8.0},  # too steep for columns together
    {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2},
    {"kernel": "linear"},
]


def problem(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n)


def refitted(machine, X, y, answer, weight=None):
    """Outputs (rows, columns, points) of rows that meet all values of a column, and as they are."""
    n, d = X.shape
    weight = np.ones(n) if weight is None else weight
    before, after = [], []
    for i in range(n):
        kept = np.arange(n) != i
        own = clone(machine).fit(X[kept], y[kept], weight[kept])
        altered = np.tile(X[i], (d, n, 1))
        for j in range(d):
            altered[j, :, j] = X[:, j]
        before.append(answer(own, X[[i]])[0])
        after.append(answer(own, altered.reshape(-1, d)).reshape(d, n, -1))
    return np.array(before).reshape(n, -1), np.array(after)


def laplace(f, g, y):
    s, s_j = np.abs(y - f).mean(), np.abs(y[:, None] - g).mean()
    df = np.abs(f[:, None] - g)
    return np.log(s_j / s) - 1 + np.mean(s / s_j * np.exp(-df / s) + df / s_j)


def gauss(f, g, y):
    s, s_j = (np.sqrt(np.mean(e**2)) for e in (y - f, y[:, None] - g))
    return np.log(s_j / s) + (np.mean((f[:, None] - g) ** 2) + s**2) / (2 * s_j**2) - 0.5


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
def test_densities_equal_refits(kernel, intercept):
    X, y = problem()
    machine = NewtonSVR(2.0, epsilon=0.0, fit_intercept=intercept, **kernel)
    f, g = refitted(machine, X, y, lambda m, Z: m.predict(Z))
    for noise, formula in (("laplace", laplace), ("gaussian", gauss)):
        criterion = DensitySensitivity(machine, noise=noise, on="left-out").fit(X, y)
        expected = [formula(f[:, 0], g[:, j, :, 0], y) for j in range(4)]
        assert_allclose(criterion.loss(np.arange(4)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_posteriors_equal_refits(kernel, n_classes):
    X, f = problem(36)
    y = np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))
    machine = NewtonSVC(2.0, loss="squared_error", **kernel)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    before, after = refitted(machine, X, y, lambda m, Z: m.decision_function(Z), weight)
    criterion = PosteriorSensitivity(machine, on="left-out")
    sigmoids = fit_sigmoids(before, y, weight)
    p, q = sigmoids.probabilities(before), sigmoids.probabilities(after)
    moved = np.abs(q - p[:, None, None, :]).sum(axis=-1) / (1 if n_classes == 2 else 2)
    found = criterion.fit(X, y, sample_weight=weight).loss(np.arange(4))
    assert_allclose(found, moved.mean(axis=(0, 2)), atol=1e-9)


def test_decisions_equal_refits():
    X, f = problem()
    machine = NewtonSVC(loss="squared_error", gamma=0.3)
    before, after = refitted(machine, X, f > 0, lambda m, Z: m.decision_function(Z))
    changed = (after[..., 0] > 0) != (before > 0)[:, :, None]
    criterion = PosteriorSensitivity(machine, on="left-out", output="decision").fit(X, f > 0)
    assert_allclose(criterion.loss(np.arange(4)), changed.mean(axis=(0, 2)))


@pytest.mark.parametrize("by", ["permutation", "zero", "removal"])
def test_other_perturbations_work_with_leave_one_out_models(by):
    X, y = problem()
    machine = NewtonSVR(2.0, epsilon=0.0, gamma=0.3)
    criterion = DensitySensitivity(machine, by=by, on="left-out", random_state=0).fit(X, y)
    f, g = np.empty((30, 1)), np.empty((30, 4))
    donors = next(iter(Permutation(1).draws(X, np.arange(4)[:, None], 0))).donors
    for i in range(30):
        kept = np.arange(30) != i
        own = clone(machine).fit(X[kept], y[kept])
        f[i] = own.predict(X[[i]])
        for j in range(4):
            altered = X[[i]].copy()
            altered[0, j] = {"permutation": X[donors[i], j], "zero": 0.0, "removal": 0.0}[by]
            if by == "removal":
                own = clone(machine).fit(np.delete(X[kept], j, 1), y[kept])
                altered = np.delete(X[[i]], j, 1)
            g[i, j] = own.predict(altered)[0]
    expected = [laplace(f[:, 0], g[:, [j]], y) for j in range(4)]
    assert_allclose(criterion.loss(np.arange(4)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_columns_that_change_together(kernel):
    X, y = problem()
    machine = NewtonSVR(2.0, epsilon=0.0, **kernel)
    [(model, rows)] = left_out_models(
        FoldTraining("this", X, y, np.arange(30)), machine, X, as_it_is
    )
    assert_array_equal(rows, np.arange(30))
    engine = open_engine(model, X, X.min(axis=0), X.max(axis=0))
    assert_allclose(engine.outputs(), model.raw(X), atol=1e-12)
    copies = GenericEngine(model, X)
    [[own], [other]] = (list(one.batches(np.array([[0, 2]]))) for one in (engine, copies))
    shuffled = X[::-1][:, [[0, 2]]]
    assert_allclose(own.paired(shuffled), other.paired(shuffled), atol=1e-10)
    points = X[:3, [0, 2]][None]
    found = own.at(slice(None), slice(0, 9), points)
    for k, point in enumerate(points[0]):
        altered = X.copy()
        altered[:, [0, 2]] = point
        assert_allclose(found[0, :, k], model.raw(altered)[:9], atol=1e-10)
    assert own.without().shape == (1, 30, 1, 1)


@pytest.mark.parametrize("on", ["training", "left-out"])
def test_linear_svms_are_exact_for_columns_far_from_0(on):
    """They measure from the middle of the columns, and so do those who follow them."""
    X, y = problem()
    criterion = DensitySensitivity(NewtonSVR(1e3, epsilon=0.0, kernel="linear"), on=on)
    near = criterion.fit(X, y).loss(np.arange(4))
    # leave-one-out SVMs are solved by a kernel of entries near 2^40, which leaves about four digits
    rtol = 1e-5 if on == "training" else 1e-4
    assert_allclose(criterion.fit(X + 2.0**20, y).loss(np.arange(4)), near, rtol=rtol)


def test_a_problem_beyond_double_precision_is_reported():
    X, y = problem()
    poly = NewtonSVR(epsilon=0.0, kernel="poly")
    with pytest.raises(InvalidParameter, match="NewtonSVR cannot solve its system"):
        DensitySensitivity(poly, on="left-out").fit(X + 1e6, y).loss(np.arange(4))
    linear = NewtonSVR(epsilon=0.0, kernel="linear")
    with pytest.warns(NotConverged, match="NewtonSVR has an error of"):
        DensitySensitivity(linear, on="left-out").fit(1e6 * X, y).loss(np.arange(4))


def test_rows_without_a_label_have_the_svm_of_all_rows():
    X, f = problem(40)
    y = (f > 0).astype(int)
    y[30:] = -1
    machine = NewtonSVC(loss="squared_error", gamma=0.3)
    criterion = PosteriorSensitivity(machine, on="left-out", output="decision")
    with pytest.warns(UserWarning, match="unlabelled"):
        found = criterion.fit(X, y).loss(np.arange(4))
    shares = []
    for j in range(4):
        changed = 0
        for i in range(40):
            altered = np.tile(X[i], (40, 1))
            altered[:, j] = X[:, j]
            kept = np.delete(np.arange(30), i) if i < 30 else np.arange(30)
            own = clone(machine).fit(X[kept], y[kept])
            changed += ((own.decision_function(altered) > 0) != (own.predict(X[[i]])[0] == 1)).sum()
        shares.append(changed / 1600)
    assert_allclose(found, shares)


def test_it_finds_the_columns_that_matter():
    X, f = problem(80, 6)
    method = "RecursiveElimination(PosteriorSensitivity({}, on='left-out'))"
    machine = "NewtonSVC(loss='squared_error', gamma=0.3)"
    found = select(X, f > 0, method.format(machine), n_features_to_select=3)
    assert_array_equal(found.get_support(indices=True), [0, 1, 2])


@pytest.mark.parametrize(
    ("criterion", "match"),
    [
        (DensitySensitivity(SVR(), on="left-out"), r"needs NewtonSVR\(epsilon=0\)"),
        (DensitySensitivity(NewtonSVR(), on="left-out"), r"needs NewtonSVR\(epsilon=0\)"),
        (DensitySensitivity(NewtonSVR(epsilon=0.0, n_landmarks=9), on="left-out"), "landmarks"),
        (
            DensitySensitivity(make_pipeline(StandardScaler(), NewtonSVR(epsilon=0.0)),
                               on="left-out"),
            "outside a pipeline",
        ),
        (ScoreSensitivity(NewtonSVR(epsilon=0.0), on="left-out"), "no leave-one-out models"),
    ],
)  # fmt: skip
def test_estimators_without_leave_one_out_models(criterion, match):
    X, y = problem()
    with pytest.raises(IncompatibleCriterion, match=match):
        criterion.fit(X, y)


def test_invalid_values_of_on_are_refused():
    X, y = problem()
    with pytest.raises(InvalidParameter, match="'left-out' or 'auto'"):
        DensitySensitivity(NewtonSVR(epsilon=0.0), on="left").fit(X, y)
    machine = NewtonSVC(loss="squared_error")
    with pytest.raises(IncompatibleCriterion, match="no derivative with on='left-out'"):
        PosteriorSensitivity(machine, by="derivative", on="left-out").fit(X, y > 0)

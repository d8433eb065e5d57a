"""Linear SVMs that are updated as columns are removed, compared with LIBSVM and RFE."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import RFE
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

from tamis.criteria import WeightNorm
from tamis.search import RecursiveElimination
from tamis.svm.machine import multipliers
from tamis.svm.shrinking import ShrinkingMachine


def table(kind="classes", n=40, d=60, seed=0):
    rng = np.random.default_rng([8, seed])
    X = rng.normal(size=(n, d))
    if kind == "regression":
        return scale(X), X[:, :3] @ [2.0, -1.0, 1.0] + rng.normal(size=n)
    y = rng.permutation(np.arange(n) % (3 if kind == "three classes" else 2))
    X[:, :3] += y[:, None]
    return scale(X), y


def hostile(kind):
    X, y = table(d=25)
    if kind == "columns of zeros":
        X[:, [0, 7, 24]] = 0
    elif kind == "copies of columns":
        X[:, 10:] = X[:, :15]
    elif kind == "copies of rows":
        X, y = np.vstack([X, X[:20]]), np.r_[y, y[:20]]
    elif kind == "contradicting rows":
        X, y = np.vstack([X, X[:20]]), np.r_[y, 1 - y[:20]]
    return X, y


HOSTILE = [
    *("columns of zeros", "copies of columns", "copies of rows", "contradicting rows"),
]
MACHINES = {
    "two classes": (table(), SVC(kernel="linear")),
    "hard margin": (table(), SVC(kernel="linear", C=1e3)),
    "all on the bound": (table(), SVC(kernel="linear", C=1e-5)),
    "more rows than columns": (table(n=90, d=12), SVC(kernel="linear", C=0.3)),
    "weights": (table(n=50), SVC(kernel="linear", class_weight={0: 1, 1: 3})),
    "three classes": (table("three classes", n=60), SVC(kernel="linear")),
    "regression": (table("regression"), SVR(kernel="linear")),
    "narrow regression": (table("regression", n=90, d=12), SVR(kernel="linear", C=0.1)),
}


def objective(w, X, y, box, tube):
    """Return the objective at these weights, with the best intercept among all corners."""
    f = X @ w
    if tube is None:
        corners, slack = y - f, lambda b: np.maximum(0, 1 - y * (f + b))
    else:
        corners = np.r_[y - f - tube, y - f + tube]
        slack = lambda b: np.maximum(0, np.abs(y - f - b) - tube)  # noqa: E731
    return w @ w / 2 + min(box @ slack(b) for b in corners)


@pytest.mark.parametrize("name", MACHINES)
def test_every_optimum_of_an_elimination_is_optimal(name):
    """By duality, no weights have a lower objective than the dual value of any multipliers."""
    (X, y), model = MACHINES[name]
    for machine in multipliers(model.fit(X, y), y):
        held = ShrinkingMachine(machine, np.asfortranarray(X))
        columns = np.arange(X.shape[1])
        while len(columns) > 1:
            squares = held.squared_weights(columns)
            part = X[np.ix_(machine.rows, columns)]
            w = held.beta @ part
            assert_allclose(squares, w**2, rtol=1e-9, atol=1e-300)
            assert abs(held.beta.sum()) <= 1e-9 * np.abs(held.beta).sum()
            assert (np.abs(held.beta) <= machine.box * (1 + 1e-12)).all()
            wide = (machine.tube or 0) * np.abs(held.beta).sum()
            dual = held.beta @ machine.target - wide - w @ w / 2
            primal = objective(w, part, machine.target, machine.box, machine.tube)
            # slacks are accurate up to rounding, and multiplied by the bounds
            assert_allclose(dual, primal, rtol=1e-8, atol=1e-13 * machine.box.sum())
            columns = np.delete(columns, squares.argmin())


@pytest.mark.parametrize("name", MACHINES)
def test_earlier_calls_do_not_change_the_result(name):
    (X, y), model = MACHINES[name]
    walked = WeightNorm(model).fit(X, y)
    columns = np.arange(X.shape[1])
    draw = np.random.default_rng(0)
    while len(columns) > 1:
        found = walked.loss(columns)
        if len(columns) % 4 == 0:
            fresh = WeightNorm(model).fit(X, y).loss(columns)
            assert_allclose(found, fresh, rtol=1e-9, atol=1e-9 * fresh.max())
        left = max(1, len(columns) - int(draw.integers(1, 4)))
        columns = np.sort(draw.choice(columns, left, replace=False))
    everything = np.arange(X.shape[1])
    fresh = WeightNorm(model).fit(X, y).loss(everything)
    assert_allclose(walked.loss(everything), fresh, rtol=1e-9, atol=1e-9 * fresh.max())


@pytest.mark.parametrize("name", [n for n in MACHINES if n not in ("hard margin", "weights")])
def test_the_order_agrees_with_RFE(name):
    (X, y), model = MACHINES[name]
    model = model.set_params(tol=1e-9)
    ours = RecursiveElimination(WeightNorm(model), n_features_to_select=1, standardize=False)
    assert_array_equal(
        ours.fit(X, y).ranking_, RFE(model, n_features_to_select=1).fit(X, y).ranking_
    )


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("C", [1e-4, 1.0])
def test_hostile_tables_agree_with_svms_trained_on_each_subset(kind, C):
    X, y = hostile(kind)
    walked = WeightNorm(SVC(kernel="linear", C=C)).fit(X, y)
    columns = np.arange(X.shape[1])
    while len(columns) > 1:
        found = walked.loss(columns)
        fresh = WeightNorm(SVC(kernel="linear", C=C)).fit(X, y).loss(columns)
        assert_allclose(found, fresh, rtol=1e-6, atol=1e-9 * fresh.max())
        columns = np.delete(columns, found.argmin())


@pytest.mark.parametrize("C", [1e-4, 1.0])
def test_columns_of_very_different_scales(C):
    """After the large columns are removed, the others are scored as if these had never existed."""
    X, y = table(d=25)
    X *= np.where(np.arange(25) % 5 == 0, 1e6, 1.0)
    walked = WeightNorm(SVC(kernel="linear", C=C)).fit(X, y)
    columns = np.arange(25)
    while len(columns) > 1:
        found = walked.loss(columns)
        assert np.isfinite(found).all()
        if not (columns % 5 == 0).any():
            fresh = WeightNorm(SVC(kernel="linear", C=C)).fit(X, y).loss(columns)
            assert_allclose(found, fresh, rtol=1e-8, atol=1e-9 * fresh.max())
        gone = columns[0] if (columns % 5 == 0).any() else columns[found.argmin()]
        columns = columns[columns != gone]


def test_rows_with_weight_0_are_ignored():
    X, y = table()
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.5)
    rest = weight > 0
    model = SVC(kernel="linear")
    found = WeightNorm(model).fit(X, y, sample_weight=weight).loss(np.arange(60))
    left = WeightNorm(SVC(kernel="linear", C=1.5)).fit(X[rest], y[rest]).loss(np.arange(60))
    assert_allclose(found, left, rtol=1e-9)


def test_a_resumed_elimination_is_the_same():
    X, y = table()
    search = RecursiveElimination(WeightNorm(SVC(kernel="linear")), n_features_to_select=1)
    whole = search.fit(X, y)
    part = RecursiveElimination(WeightNorm(SVC(kernel="linear")), n_features_to_select=25)
    resumed = RecursiveElimination(WeightNorm(SVC(kernel="linear")), n_features_to_select=1)
    resumed.resume(X, y, record=part.fit(X, y).record_)
    assert_array_equal(resumed.order_, whole.order_)
    assert_allclose(resumed.scores_, whole.scores_, rtol=1e-9)


def test_subclasses_with_their_own_training_are_trained():
    class Loud(SVC):
        n_fits = 0

        def fit(self, X, y, sample_weight=None):
            Loud.n_fits += 1
            return super().fit(X, y, sample_weight)

    X, y = table()
    judge = WeightNorm(Loud(kernel="linear")).fit(X, y)
    judge.loss(np.arange(60))
    judge.loss(np.arange(59))
    assert Loud.n_fits == 2

"""The SVM of Auto: tuning by inner folds, compared with loops over the definition."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC, SVR

from tamis.auto.machine import (
    COST,
    COSTS,
    INNER_FOLDS,
    INNER_ROWS,
    SLOPES,
    TUBE,
    WIDTH,
    WIDTHS,
    KernelTuning,
    _outputs,
    make_svm,
    predict_svm,
    tune_svm,
)
from tamis.auto.target import Truth
from tamis.svm.kernels import Kernel


def problem(task, n=90, bends=1.0, seed=0):
    """Return a target that is linear for ``bends`` of 0, and has many waves for large values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = X.sum(axis=1) if not bends else np.sin(bends * X[:, 0]) + 0.3 * X[:, 1]
    signal += 0.1 * rng.normal(size=n)
    return X, signal if task == "regression" else (signal > np.median(signal)).astype(int)


def lost_by_loops(X, y, task, width, slope, seed, cost=COST):
    """Return the squared loss of the rows of all inner folds."""
    folds = (KFold if task == "regression" else StratifiedKFold)(3, shuffle=True, random_state=seed)
    total = 0.0
    for train, test in folds.split(X, y):
        gamma = width / X.shape[1]
        if task == "regression":
            spread = y[train].std()
            machine = SVR(C=cost * spread, gamma=gamma, epsilon=TUBE * spread)
            total += np.sum((machine.fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2)
        else:
            machine = SVC(C=cost, gamma=gamma).fit(X[train], y[train])
            share = 1 / (1 + np.exp(-slope * machine.decision_function(X[test])))
            total += 2 * np.sum((share - y[test]) ** 2)
    return total


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("bends", [0.0, 1.0, 4.0])
def test_inner_folds_choose_width_and_slope(task, bends):
    X, y = problem(task, bends=bends)
    slopes = SLOPES if task == "classification" else (KernelTuning().slope,)
    best = (WIDTH, slopes[0], COST)
    for tried, usual in (
        ([(width, slope, COST) for width in WIDTHS for slope in slopes], WIDTH),
        (None, COST),
    ):
        if tried is None:
            tried = [(best[0], slope, cost) for cost in COSTS for slope in slopes]
        lost = {one: lost_by_loops(X, y, task, *one[:2], 7, one[2]) for one in tried}
        default = min((one for one in tried if usual in (one[0], one[2])), key=lost.get)
        best = min(lost, key=lost.get)
        best = best if lost[best] < 0.95 * lost[default] else default
    assert tune_svm(X, Truth.of(y, task), 7) == best


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_strongly_nonlinear_function_gets_a_narrow_kernel(task):
    found = [
        tune_svm(X, Truth.of(y, task), 0).width
        for X, y in (problem(task, n=300, bends=bends) for bends in (0.0, 3.0))
    ]
    assert found[0] <= WIDTH < found[1] == max(WIDTHS)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array([0, 0, 0, 0, 0, 0, 1, 1]), "classification"),
        (np.arange(5.0), "regression"),
        (np.r_[np.zeros(2 * INNER_ROWS, dtype=int), np.ones(3, dtype=int)], "classification"),
    ],
)
def test_the_default_is_used_if_no_folds_can_be_made(y, task):
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    assert tune_svm(X, Truth.of(y, task), 0) == KernelTuning()
    assert np.isfinite(predict_svm(X, Truth.of(y, task), X, KernelTuning())).all()


def test_a_target_that_is_constant_in_the_training_rows_of_a_fold():
    X = np.random.default_rng(0).normal(size=(9, 2))
    y = np.r_[np.zeros(8), 1.0]
    assert tune_svm(X, Truth.of(y, "regression"), 0).width in WIDTHS


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_of_a_group_are_held_out_together(task):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 6)
    of_groups = rng.normal(size=(30, 3))
    X = of_groups[groups] + 0.15 * rng.normal(size=(180, 3))
    noisy = of_groups[:, 0] + 0.7 * rng.normal(size=30)
    y = noisy[groups] if task == "regression" else (noisy > 0)[groups].astype(int)
    alone, together = Truth.of(y, task), Truth.of(y, task, groups)
    # single rows can be recognised by other rows of their group
    assert tune_svm(X, alone, 0).width == max(WIDTHS)
    assert tune_svm(X, together, 0).width <= WIDTH
    assert tune_svm(X, together, 0).slope <= tune_svm(X, alone, 0).slope
    assert (
        tune_svm(X, Truth.of(y, task, groups // 15), 0) == KernelTuning()
    )  # two groups are too few for folds
    some = together.take(np.arange(100, 180))
    assert_array_equal(some.groups, groups[100:])
    assert tune_svm(X[100:], some, 0).width in WIDTHS


def test_inner_folds_use_a_limited_number_of_rows(monkeypatch):
    seen = []
    split = KFold.split
    monkeypatch.setattr(
        KFold, "split", lambda self, X, *rest: seen.append(len(X)) or split(self, X, *rest)
    )
    X, y = problem("regression", n=INNER_ROWS + 100)
    tune_svm(X, Truth.of(y, "regression"), 0)
    assert seen == [INNER_ROWS]


@pytest.mark.parametrize("n_classes", [2, 3, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_equal_those_of_libsvm(n_classes, weighted, monkeypatch):
    monkeypatch.setattr("tamis.auto.machine.TOLERANCE", 1e-10)
    rng = np.random.default_rng(3)
    X, asked = rng.normal(size=(80, 3)), rng.normal(size=(9, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=80)
    weights = rng.uniform(0.2, 1.0, size=80) if weighted else None
    kernel = Kernel("rbf", 0.4)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
        model = SVC(C=COST, gamma=0.4, tol=1e-10, decision_function_shape="ovo")
        expected = model.fit(X, y, weights).decision_function(asked).reshape(9, -1)
        expected *= -1 if n_classes == 2 else 1  # positive for the second class
        truth = Truth.of(y, "classification", weights=weights)
    else:
        spread = y.std()
        model = SVR(C=COST * spread, epsilon=TUBE * spread, gamma=0.4, tol=1e-10)
        expected = model.fit(X, y, weights).predict(asked)[:, None]
        truth = Truth.of(y, "regression", weights=weights)
    found = _outputs(kernel(X, X), kernel(asked, X), truth, COST)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # LIBSVM has a kernel in float32


def test_the_widths_are_doubled():
    assert np.diff(np.log2(WIDTHS)) == pytest.approx(1)


def test_the_estimator_predicts_like_the_tuned_svm():
    X, y = problem("regression", n=120)
    truth = Truth.of(y, "regression")
    tuning = tune_svm(X, truth, 3)
    fitted = make_svm(2, "regression", tuning).fit(X, y)
    np.testing.assert_allclose(fitted.predict(X), predict_svm(X, truth, X, tuning)[:, 0], atol=5e-3)
    assert INNER_FOLDS == 3  # the loops above assume this number

"""Exact validation curves compared with brute force."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm import SVCPath, ValidationCurve

from .problems import classification

GRID = 2 ** np.linspace(-9, 8, 6_802)[1:-1]


def halves(seed=0, **options):
    X, y = classification(n=150, seed=seed, **options)
    return X[:90], y[:90], X[90:], y[90:]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_error_agrees_with_predictions_on_a_dense_grid(kernel):
    X, y, V, v = halves()
    path = SVCPath(kernel, gamma=0.2).fit(X, y)
    curve = path.curve(V, v)
    grid = GRID[::5]  # 1 % apart
    brute = np.array([(path.predict(V, C) != v).mean() for C in grid])
    np.testing.assert_array_equal(curve(grid), brute)
    assert curve.best <= brute.min()
    assert len(curve.values) > 10


METRICS = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "precision": lambda y, p: metrics.precision_score(y, p, zero_division=0),
    "recall": metrics.recall_score,
    "f1": lambda y, p: metrics.f1_score(y, p, zero_division=0),
    "matthews_corrcoef": metrics.matthews_corrcoef,
}


@pytest.mark.parametrize("scoring", METRICS)
def test_scores_of_labels_agree_with_scikit_learn(scoring):
    X, y, V, v = halves(weights=[0.7])
    path = SVCPath("rbf", gamma=0.2).fit(X, y)
    curve = path.curve(V, v, scoring)
    brute = [METRICS[scoring](v, path.predict(V, C)) for C in GRID[::40]]
    np.testing.assert_allclose(curve(GRID[::40]), brute, atol=1e-12)
    assert curve.greater_is_better
    assert curve.best >= max(brute) - 1e-12


def test_the_area_under_the_roc_curve_agrees_with_scikit_learn():
    X, y, V, v = halves(seed=2)
    V, v = np.vstack([V, V[:10]]), np.append(v, 1 - v[:10])  # equal points of both classes
    path = SVCPath("rbf", gamma=0.2).fit(X, y)
    curve = path.curve(V, v, "roc_auc")
    brute = [metrics.roc_auc_score(v, path.decision_function(V, C).round(10)) for C in GRID[::40]]
    np.testing.assert_allclose(curve(GRID[::40]), brute, atol=1e-12)
    assert len(curve.values) > 20


def test_weighted_error_costs_negatives_by_their_weight():
    X, y, V, v = halves()
    path = SVCPath("linear").fit(X, y)
    curve = path.curve(V, v, ("weighted_error", 0.2))
    wrong = path.predict(V, 1.0) != v
    cost = np.where(v == 1, 1.0, 0.2)
    assert curve(1.0) == pytest.approx((wrong * cost).sum() / cost.sum())


def test_the_curve_of_several_classes_agrees_with_votes():
    X, y = load_wine(return_X_y=True)
    X = scale(X)[:, :3]
    path = SVCPath("rbf", gamma=0.5).fit(X[::2], y[::2])
    curve = path.curve(X[1::2], y[1::2])
    brute = np.array([(path.predict(X[1::2], C) != y[1::2]).mean() for C in GRID[::10]])
    np.testing.assert_array_equal(curve(GRID[::10]), brute)
    balanced = path.curve(X[1::2], y[1::2], "balanced_accuracy")
    assert balanced(2.0) == pytest.approx(
        metrics.balanced_accuracy_score(y[1::2], path.predict(X[1::2], 2.0))
    )


def test_ends_belong_to_the_piece_whose_label_is_positive():
    # 1-d, two points: f(v) = v for C >= 1/2; below, h = x v and the label of v = 0 stays +
    path = SVCPath("linear").fit([[-1.0], [1.0]], [0, 1])
    assert path.curve([[0.0]], [1]).best == 0.0
    X, y, V, v = halves()
    path = SVCPath("linear").fit(X, y)
    curve = path.curve(V, v)
    f = lambda C: path._machines.outputs(V, 1 / C)[:, 0]  # noqa: E731
    for k in range(1, len(curve.breakpoints) - 1):
        C = curve.breakpoints[k]
        zero = np.abs(f(C)) < 1e-8 / C
        assert zero.any()
        labels = (f(C) >= 0) | zero
        assert curve.at_breakpoints[k] == pytest.approx((labels != (v == 1)).mean())
    for interval in curve.argmin:
        assert curve(interval.middle) == curve.best
        if not interval.low_closed:
            assert curve(interval.low) > curve.best


def test_a_curve_can_be_converted_to_a_frame():
    pytest.importorskip("pandas")
    curve = ValidationCurve.steps([1, 2, 4, 8], [0.2, 0.1, 0.2], [0.2, 0.1, 0.2, 0.2])
    frame = curve.to_frame()
    assert list(frame["value"]) == [0.2, 0.1, 0.2]
    assert curve.argmin == [(2.0, 4.0, True, False)]
    assert curve.within(0.2) == [(1.0, 8.0, True, True)]
    assert "3 pieces" in repr(curve)


def test_unknown_requests_are_refused():
    X, y, V, v = halves()
    path = SVCPath("linear").fit(X, y)
    with pytest.raises(InvalidParameter, match="scoring among"):
        path.curve(V, v, "kappa")
    with pytest.raises(InvalidTarget, match="classes it was fitted with"):
        path.curve(V, v + 5)
    three = SVCPath("linear").fit(X, np.arange(len(y)) % 3)
    with pytest.raises(InvalidParameter, match="two classes"):
        three.curve(V, np.arange(len(v)) % 3, "f1")

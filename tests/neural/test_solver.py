"""The optimisers compared with scipy, run by run."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from tamis.neural import solver
from tamis.neural.solver import _History, adam, lbfgs


def rosenbrock(points, runs, rows=None):
    return np.array([rosen(p) for p in points]), np.array([rosen_der(p) for p in points])


@pytest.mark.parametrize("memory", [3, 8])
@pytest.mark.parametrize("single_from", [1, 100])
def test_lbfgs_finds_every_minimum(memory, single_from, monkeypatch):
    monkeypatch.setattr(solver, "SINGLE_FROM", single_from)
    start = np.random.default_rng(0).normal(size=(20, 6))
    points, values = lbfgs(rosenbrock, start, max_iter=2000, memory=memory, tol=1e-14)
    expected = [minimize(rosen, p, jac=rosen_der, method="L-BFGS-B").fun for p in start]
    assert np.all(values <= np.array(expected) + 1e-6)
    np.testing.assert_allclose(values, [rosen(p) for p in points])


@pytest.mark.parametrize("n_steps", [0, 2, 3, 7])
def test_the_compact_form_agrees_with_the_textbook_recursion(n_steps):
    draw = np.random.default_rng(n_steps)
    history, pairs = _History(1, 3, 5), []
    for _ in range(n_steps):
        step = draw.normal(size=5)
        change = step * draw.uniform(0.5, 2, size=5)
        history.add(0, step, change)
        pairs = [*pairs, (step, change)][-3:]
    gradient, shares = draw.normal(size=5), []
    expected = gradient.copy()
    for step, change in reversed(pairs):  # Nocedal and Wright, algorithm 7.4
        shares.append(step @ expected / (step @ change))
        expected -= shares[-1] * change
    if pairs:
        step, change = pairs[-1]
        expected *= step @ change / (change @ change)
    for step, change in pairs:
        expected += (shares.pop() - change @ expected / (step @ change)) * step
    result = history.times(np.array([0]), gradient[None])
    np.testing.assert_allclose(result[0], expected, rtol=1e-12)


def test_lbfgs_runs_do_not_affect_each_other():
    start = np.random.default_rng(1).normal(size=(7, 4))
    together, _ = lbfgs(rosenbrock, start, max_iter=40)
    for k in range(7):
        alone, _ = lbfgs(rosenbrock, start[[k]], max_iter=40)
        np.testing.assert_array_equal(alone[0], together[k])


@pytest.mark.parametrize("minimise", [lbfgs, adam])
def test_a_run_that_is_not_finite_does_not_affect_the_others(minimise):
    def walled(points, runs, rows=None):
        values, gradients = rosenbrock(points, runs)
        values[runs == 1] = np.nan
        return values, gradients

    start = np.random.default_rng(2).normal(size=(3, 2))
    points, values = minimise(walled, start, max_iter=500)
    assert np.isfinite(points).all()
    assert np.isfinite(values[[0, 2]]).all()
    assert values[0] < rosen(start[0])
    np.testing.assert_array_equal(points[1], start[1])


def test_lbfgs_shortens_steps_to_non_finite_values():
    def well(points, runs, rows=None):
        with np.errstate(invalid="ignore", divide="ignore"):
            values = -np.log(1 - (points**2).sum(axis=1)) + points.sum(axis=1)
            gradients = 2 * points / (1 - (points**2).sum(axis=1, keepdims=True)) + 1
        return values, gradients

    points, values = lbfgs(well, np.array([[0.9, 0.0], [-0.1, 0.99]]), tol=1e-14)
    np.testing.assert_allclose(points[0], points[1], atol=1e-5)
    assert np.isfinite(values).all()


def test_no_parameter_falls_below_its_bound():
    """The result agrees with the bounded optimiser of SciPy. Other parameters are free."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    A, aim, lowest = root @ root.T + np.eye(6), rng.normal(size=6), np.full(6, -np.inf)
    lowest[:4] = 0.01

    def objective(points, runs, rows=None):
        off = points - aim
        return 0.5 * np.einsum("rp,pq,rq->r", off, A, off), off @ A

    def alone(x):
        value, gradient = objective(x[None], None)
        return value[0], gradient[0]

    bounds = [(0.01, None)] * 4 + [(None, None)] * 2
    truth = minimize(alone, np.ones(6), jac=True, bounds=bounds, method="L-BFGS-B")
    points, values = lbfgs(objective, np.ones((1, 6)), tol=1e-12, lowest=lowest)
    assert (points >= lowest).all()
    assert (points[0, :4] == 0.01).any()
    np.testing.assert_allclose(values[0], truth.fun, rtol=1e-5)


def test_adam_returns_the_best_point():
    values_seen = []

    def noisy(points, runs, rows=None):
        values, gradients = rosenbrock(points, runs)
        values_seen.append(values.copy())
        return values, gradients

    start = np.random.default_rng(3).normal(size=(4, 3))
    points, values = adam(noisy, start, max_iter=300, learning_rate=0.5, tol=0)
    np.testing.assert_array_equal(values, np.min(values_seen, axis=0))
    np.testing.assert_allclose(values, [rosen(p) for p in points])


def test_adam_stops_when_it_has_converged():
    calls = []

    def bowl(points, runs, rows=None):
        calls.append(len(runs))
        return (points**2).sum(axis=1) + 1, 2 * points

    adam(bowl, np.array([[0.0], [5.0]]), max_iter=2000, learning_rate=0.05)
    assert calls[0] == 2  # the first is at its minimum and ends soon
    assert calls.count(2) < 200
    assert len(calls) < 2000


def test_adam_uses_the_batches():
    seen = []

    def mean_of_rows(points, runs, rows=None):
        if rows is not None:
            seen.append(rows)
        return (points**2).sum(axis=1), 2 * points

    def halves(epoch):
        return iter([np.array([0, 1]), np.array([2, 3])])

    adam(mean_of_rows, np.ones((1, 2)), max_iter=3, tol=0, batches=halves)
    assert [rows.tolist() for rows in seen] == [[0, 1], [2, 3]] * 3

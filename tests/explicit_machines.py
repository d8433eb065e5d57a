"""Quantities of SVMs by their definitions: explicit kernels, loops, least squares."""

from itertools import combinations

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from tamis.density.simplex import smallest_sphere


def kernel(model, A, gamma=None):
    """Return the kernel matrix by scikit-learn, with the parameters of a fitted model."""
    gamma = model._gamma if gamma is None else gamma
    numbers = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return pairwise_kernels(A, metric=model.kernel, filter_params=True, **numbers)


def pairs(model, y):
    """Return the rows and signed multipliers of each binary SVM, from scikit-learn's attributes."""
    if not hasattr(model, "classes_"):
        beta = np.zeros(len(y))
        beta[model.support_] = model.dual_coef_[0]
        return [(np.arange(len(y)), beta)]
    ends = np.cumsum(model.n_support_)
    found = []
    for a, b in combinations(range(len(model.classes_)), 2):
        beta = np.zeros(len(y))
        for own, other in ((a, b), (b, a)):
            place = slice(ends[own] - model.n_support_[own], ends[own])
            row = other - 1 if other > own else other
            beta[model.support_[place]] = model.dual_coef_[row, place]
        rows = np.flatnonzero((y == model.classes_[a]) | (y == model.classes_[b]))
        found.append((rows, beta[rows]))
    return found


def squared_distance(K, p, others):
    """Return the squared distance of point p to the affine span of others, by least squares."""
    if not len(others):
        return K[p, p]
    first, rest = others[0], others[1:]
    # coordinates relative to the first: minimise |p - first - sum c_i (i - first)|^2
    G = K[np.ix_(rest, rest)] - K[np.ix_(rest, [first])] - K[first, rest] + K[first, first]
    r = K[p, rest] - K[p, first] - K[first, rest] + K[first, first]
    c = np.linalg.lstsq(G, r, rcond=1e-13)[0] if len(rest) else np.zeros(0)
    return max(K[p, p] - 2 * K[p, first] + K[first, first] - 2 * c @ r + c @ G @ c, 0.0)


def norm(K, beta, C, regression):
    return beta @ K @ beta


def radius_margin(K, beta, C, regression):
    size = np.abs(beta).sum() if regression else beta @ K @ beta
    return smallest_sphere(K)[0] * size


def span(K, beta, C, regression):
    alpha = np.abs(beta)
    free = np.flatnonzero((alpha > 0) & (alpha < C * (1 - 1e-9)))
    return sum(
        alpha[p] * squared_distance(K, p, free[free != p]) for p in np.flatnonzero(alpha > 0)
    )


def slack(outputs, target, tube):
    """Return the least sum of slacks over all intercepts, by trying each corner."""

    def of(b):
        if tube is None:
            return np.maximum(0, 1 - target * (outputs + b)).sum()
        return np.maximum(0, np.abs(target - outputs - b) - tube).sum()

    corners = (target - outputs)[:, None] + [0, tube or 0, -(tube or 0)]
    return min(of(b) for b in corners.ravel())


def soft_machines(model, y, A):
    """Return the kernel of the rows A, multipliers, targets and tube of each binary SVM."""
    several = len(getattr(model, "classes_", ())) > 2
    for number, (rows, beta) in enumerate(pairs(model, y)):
        if not hasattr(model, "classes_"):
            yield kernel(model, A[rows]), beta, y[rows], model.epsilon
            continue
        a, b = list(combinations(model.classes_, 2))[number]
        yield kernel(model, A[rows]), beta, np.where(y[rows] == (a if several else b), 1, -1), None


def soft_radius_margin(model, y, A, kept):
    """Return the bound with slacks of a model trained on A, or on more columns."""
    found = 0.0
    for K, beta, target, tube in soft_machines(model, y, A):
        size = beta @ K @ beta
        if kept:
            size = 2 * (beta @ target - (tube or 0) * np.abs(beta).sum()) - size
        else:
            size += 2 * model.C * slack(K @ beta, target, tube)
        found += (smallest_sphere(K)[0] + 1 / model.C) * size
    return found


def soft_span(model, y, A, kept):
    """Return the span estimate of the leave-one-out loss."""
    return sum(
        span(K, beta, model.C, tube is not None) + slack(K @ beta, target, tube)
        for K, beta, target, tube in soft_machines(model, y, A)
    )


def soft_removed(quantity, estimator, X, y, retrain):
    """Return a quantity with slacks for all columns, and without each column."""
    model = clone(estimator).fit(X, y)
    left = []
    for j in range(X.shape[1]):
        without = np.delete(X, j, axis=1)
        other = clone(estimator).fit(without, y) if retrain else model
        left.append(quantity(other, y, without, kept=not retrain))
    return quantity(model, y, X, kept=False), np.array(left)


def total(quantity, model, y, A, gamma=None):
    """Return a quantity of a fitted model, summed over binary SVMs, with A as its rows."""
    regression = not hasattr(model, "classes_")
    return sum(
        quantity(kernel(model, A[rows], gamma), beta, model.C, regression)
        for rows, beta in pairs(model, y)
    )


def removed(quantity, estimator, X, y, retrain=False):
    """Return the quantity for all columns, and without each column."""
    model = clone(estimator).fit(X, y)
    left = []
    for j in range(X.shape[1]):
        without = np.delete(X, j, axis=1)
        other = clone(estimator).fit(without, y) if retrain else model
        left.append(total(quantity, other, y, without))
    return total(quantity, model, y, X), np.array(left)


def roles(model, y):
    """Return masks of the support vectors, and of those on the bound."""
    alphas = [np.abs(beta) / model.C for _, beta in pairs(model, y)]
    return np.concatenate([(alpha > 0) + 1 * (alpha >= 1 - 1e-9) for alpha in alphas])


def differences(quantity, estimator, X, y, retrain=False, step=1e-4):
    """Return central differences of the quantity by the scale of each column.

    The kernel width is fixed. The differences are NaN if rows of retrained SVMs change their roles.
    """
    model = clone(estimator).fit(X, y)
    found = []
    for j in range(X.shape[1]):
        ends, same = [], True
        for scale in (1 + step, 1 - step):
            moved = X.copy()
            moved[:, j] *= scale
            other = clone(estimator).fit(moved, y) if retrain else model
            same &= np.array_equal(roles(other, y), roles(model, y))
            ends.append(total(quantity, other, y, moved, gamma=model._gamma))
        found.append((ends[0] - ends[1]) / (2 * step) if same else np.nan)
    return np.array(found)


def assert_slopes(found, expected, tolerance):
    """Check that absolute derivatives equal differences, if these exist."""
    known = np.isfinite(expected)
    assert known.sum() >= 3
    scale = np.abs(expected[known]).max()
    np.testing.assert_allclose(
        found[known], np.abs(expected[known]), rtol=tolerance, atol=tolerance * scale
    )

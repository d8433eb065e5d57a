"""Laws of recipes: they find the relevant columns of easy problems.

A law takes a function that makes the selector for a number of columns. Problems are drawn once.
Each lists its relevant columns, in groups of which any column will do.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from tamis.contract import Selection


class Problem(NamedTuple):
    """A table whose relevant columns are known."""

    name: str
    X: np.ndarray
    y: np.ndarray
    #: A group is found if one of its columns is found.
    groups: tuple[tuple[int, ...], ...]
    #: Number of columns to select.
    size: int
    constant: tuple[int, ...] = ()


def shuffled(name, informative, noise, y, groups, draw, *, size, n_constant=0):
    """Return the columns in random order, so that no recipe benefits from the lowest index."""
    n = len(y)
    X = np.column_stack([*informative, noise, np.full((n, n_constant), 3.0)])
    order = draw.permutation(X.shape[1])
    where = np.argsort(order)
    constant = where[X.shape[1] - n_constant :]
    groups = tuple(tuple(int(where[j]) for j in group) for group in groups)
    return Problem(name, X[:, order], y, groups, size, tuple(map(int, constant)))


@cache
def linear(seed=0, n=120, d=20):
    """Return classes by the sign of the sum of 3 of 20 columns. Two more columns are constant."""
    draw = np.random.default_rng([1, seed])
    X = draw.normal(size=(n, d))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    groups = ((0,), (1,), (2,))
    return shuffled(f"linear {n}x{d}", X[:, :3].T, X[:, 3:], y, groups, draw, size=3, n_constant=2)


@cache
def xor(seed=0, n=160, d=8):
    """Return classes by the sign of a product of two columns, which is an interaction."""
    draw = np.random.default_rng([2, seed])
    X = draw.normal(size=(n, d))
    X[:, :2] += np.sign(X[:, :2])  # away from the class boundary
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return shuffled("xor", X[:, :2].T, X[:, 2:], y, ((0,), (1,)), draw, size=2)


@cache
def regression(seed=0, n=120, d=20):
    """Return a numeric target: a sum of 3 of 20 columns and noise.

    Two more columns are constant.
    """
    draw = np.random.default_rng([3, seed])
    X = draw.normal(size=(n, d))
    y = X[:, :3] @ [1.0, -1.0, 0.8] + 0.3 * draw.normal(size=n)
    groups = ((0,), (1,), (2,))
    return shuffled(
        f"regression {n}x{d}", X[:, :3].T, X[:, 3:], y, groups, draw, size=3, n_constant=2
    )


@cache
def copies(task="classification", seed=0, n=120, d=12):
    """Return the linear problem with a noisy copy of each relevant column.

    Either of the two will do.
    """
    draw = np.random.default_rng([4, seed])
    X = draw.normal(size=(n, d))
    total = X[:, :3].sum(axis=1)
    y = (total > 0).astype(int) if task == "classification" else total
    X = np.column_stack([X[:, :3], X[:, :3] + 0.2 * draw.normal(size=(n, 3)), X[:, 3:]])
    groups = ((0, 3), (1, 4), (2, 5))
    return shuffled("copies", X[:, :6].T, X[:, 6:], y, groups, draw, size=5, n_constant=2)


@cache
def wide(task="classification", seed=0, n=60, d=500):
    """Return 60 rows of 500 columns, of which 4 are relevant."""
    draw = np.random.default_rng([5, seed])
    X = draw.normal(size=(n, d))
    if task == "classification":
        y = np.arange(n) % 2
        X[:, :4] += np.where(y, 1.2, -1.2)[:, None]
    else:
        y = X[:, :4].sum(axis=1)
    groups = ((0,), (1,), (2,), (3,))
    return shuffled("wide", X[:, :4].T, X[:, 4:], y, groups, draw, size=8)


def found(selection: Selection, problem: Problem) -> float:
    """Return the share of the relevant groups that are selected."""
    kept = set(np.flatnonzero(selection.support_))
    return float(np.mean([bool(kept & set(group)) for group in problem.groups]))


def behind_chance(selection: Selection, problem: Problem) -> bool:
    """Return whether the relevant columns come later in the order than chance would explain.

    The mean position of m of d columns in a random order has mean (d - 1) / 2 and variance (d + 1)
    (d - m) / (12 m). Chance exceeds it by two standard deviations in one of forty orders.
    """
    d, m = len(selection.order_), len(problem.groups)
    position = np.argsort(selection.order_)
    mean = np.mean([min(position[list(group)]) for group in problem.groups])
    return bool(mean > (d - 1) / 2 + 2 * np.sqrt((d + 1) * (d - m) / (12 * m)))


def finds_what_matters(make, problems):
    """Two thirds of the relevant columns are found on average.

    The order is never worse than chance, and no constant column is selected. Every problem has
    enough informative columns for the requested number.
    """
    shares = {}
    for problem in problems:
        selection = make(problem.size).fit(problem.X, problem.y)
        shares[problem.name] = found(selection, problem)
        assert not behind_chance(selection, problem), (problem.name, selection.order_)
        taken = set(np.flatnonzero(selection.support_)) & set(problem.constant)
        assert not taken, f"{problem.name}: constant columns {taken} are kept"
    assert np.mean(list(shares.values())) >= 2 / 3, shares


def takes_no_constant_column(make, problems):
    """No constant column is selected, which is the only law for methods without a target."""
    for problem in problems:
        selection = make(problem.size).fit(problem.X, problem.y)
        assert not set(np.flatnonzero(selection.support_)) & set(problem.constant)


#: Allowed difference of scores, as a share of the greatest, because of LIBSVM's tolerance.
SHORT = 5e-3


def agree(one: Selection, other: Selection, units: np.ndarray, *, scaled: bool = False) -> None:
    """Return whether a selection selects and scores its units as another one does ``units``."""
    np.testing.assert_array_equal(one.support_, other.support_[units])
    scores, others = np.asarray(one.scores_, float), np.asarray(other.scores_, float)[units]
    both = np.isfinite(scores) & np.isfinite(others)
    scores, others = scores[both], others[both]
    size = np.abs(scores).max(initial=0.0) or 1.0
    other_size = (np.abs(others).max(initial=0.0) or 1.0) if scaled else size
    np.testing.assert_allclose(others / other_size, scores / size, rtol=0, atol=SHORT)


def rows_may_come_in_any_order(make, X, y):
    order = np.random.default_rng(1).permutation(len(y))
    agree(make(3).fit(X, y), make(3).fit(X[order], y[order]), np.arange(X.shape[1]))


def columns_may_come_in_any_order(make, X, y):
    order = np.random.default_rng(2).permutation(X.shape[1])
    agree(make(3).fit(X, y), make(3).fit(X[:, order], y), np.argsort(order))


def a_constant_column_changes_nothing(make, X, y):
    more = make(3).fit(np.insert(X, 2, 3.0, axis=1), y)
    agree(make(3).fit(X, y), more, np.delete(np.arange(X.shape[1] + 1), 2))
    assert not more.support_[2]


def the_unit_of_the_target_does_not_matter(make, X, y):
    units = np.arange(X.shape[1])
    agree(make(3).fit(X, y), make(3).fit(X, 1000 * y + 5), units, scaled=True)

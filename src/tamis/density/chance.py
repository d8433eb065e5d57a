r"""Expected values of contingency tables whose margins are fixed (the hypergeometric model).

A cell of a table of N rows with margins a and b holds h rows, drawn from the hypergeometric
distribution, if two variables are independent. The expected joint entropy is then
:math:`\log N - \frac1N \sum_{a, b} E[h \log h]`, and information less its expectation is 0 on
average for independent variables, however many levels they have.

References
----------
Vinh, Epps and Bailey (2010), Information theoretic measures for clusterings comparison: variants,
properties, normalization and correction for chance, JMLR 11.
"""

from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from tamis._arrays import BLOCK, Array

#: Expected count from which E[h log h] is a Taylor series around it, with an error below 1e-9 of
#: the count. Below, the distribution is summed.
SERIES_FROM = 100.0
#: Standard deviations around the expected count that a sum covers; the rest weighs below 1e-16.
REACH = 10
#: Counts up to which every entry of a table is computed. Above, entries at counts that grow by
#: this ratio are, and a spline goes through them; its error is below 1e-9 of the count.
EACH, RATIO = 96, 1.04


class Chance(NamedTuple):
    """Values for the cells of a table with a pivot: ``values[start[level of the pivot] + count]``.

    Attributes
    ----------
    values : array
        0 for a count of 0, whatever the level.
    start : array of int of shape (n_pivot,)
    """

    values: Array
    start: NDArray[np.int64]


def chance_of(level: NDArray[Any], size: NDArray[Any], n_pivot: int = 1) -> Chance:
    """Sums of E[h log h] over the levels of a variable, for each level of a pivot and count.

    Parameters
    ----------
    level, size : array of int
        Of each cell of pivot and variable: the level of the pivot, and the number of rows. The
        variable is independent within the levels of the pivot.
    n_pivot : int, default=1
        Number of levels of the pivot.
    """
    order = np.lexsort((size, level))
    level, size = level[order], size[order].astype(np.int64)
    ends = [*np.flatnonzero(np.diff(level, prepend=-1)), len(size)]
    # levels with the same sizes share a table
    keys = [(int(size[a:b].sum()), size[a:b].tobytes()) for a, b in pairwise(ends)]
    values, place, n_values = [], {}, 0
    for total, same in groupby(sorted(set(keys)), key=itemgetter(0)):
        group = list(same)
        values.append(_tables(total, [np.frombuffer(key, np.int64) for _, key in group]).ravel())
        place.update({key: n_values + i * (total + 1) for i, key in enumerate(group)})
        n_values += len(values[-1])
    start = np.zeros(n_pivot, dtype=np.int64)
    start[level[ends[:-1]]] = [place[key] for key in keys]
    return Chance(np.concatenate(values), start)


def chance_within(margins: NDArray[Any]) -> Chance:
    """The same from a table of the levels of a pivot and of a variable."""
    return chance_of(np.nonzero(margins)[0], margins[margins > 0], len(margins))


def _tables(total: int, sizes: list[NDArray[np.int64]]) -> Array:
    """One row for each list of sizes of a total, one column for each count up to it."""
    nodes = _nodes(total)
    distinct, which = np.unique(np.concatenate(sizes), return_inverse=True)
    times = np.zeros((len(sizes), len(distinct)))
    np.add.at(times, (np.repeat(np.arange(len(sizes)), [len(own) for own in sizes]), which), 1.0)
    known = times @ expected_n_log_n(total, nodes, distinct[:, None])
    if len(nodes) == total + 1:
        return known
    above = nodes > EACH // 2
    curve = make_interp_spline(np.log(nodes[above]), known[:, above], k=5, axis=1)
    table = np.empty((len(sizes), total + 1))
    table[:, EACH:] = curve(np.log(np.arange(EACH, total + 1)))
    table[:, nodes] = known
    return table


def _nodes(total: int) -> NDArray[np.int64]:
    """Counts up to a total at which a table is computed."""
    if total <= 2 * EACH:
        return np.arange(total + 1)
    n = int(np.log(total / EACH) / np.log(RATIO)) + 2
    above = np.rint(np.geomspace(EACH, total, n)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(EACH), above]))


def expected_n_log_n(n: Any, a: Any, b: Any) -> Array:
    """E[h log h] for h rows in a cell of margins a and b of a table of n rows.

    >>> expected_n_log_n(4, np.array([1, 2]), 2).round(3)
    array([0.   , 0.231])
    """
    n, a, b = (np.asarray(part, dtype=float) for part in np.broadcast_arrays(n, a, b))
    shape = n.shape
    n, a, b = n.ravel(), a.ravel(), b.ravel()
    rows = np.maximum(n, 1.0)
    mean = a * b / rows
    found = np.zeros(len(n))
    large = mean >= SERIES_FROM
    found[large] = _by_series(n[large], a[large], b[large])
    small = np.flatnonzero(~large & (np.minimum(a, b) > 1))  # 0 log 0 = 1 log 1 = 0
    spread = REACH * (1 + np.sqrt(mean * (1 - a / rows) * (1 - b / rows)))
    low = np.maximum(np.maximum(0.0, a + b - n), np.floor(mean - spread))
    high = np.minimum(np.minimum(a, b), np.ceil(mean + spread))
    width = (high - low).astype(np.int64) + 1
    # rows of like widths are summed as one matrix
    small = small[np.argsort(width[small], kind="stable")]
    for some in _chunks(width[small]):
        at = small[some]
        found[at] = _by_sum(n[at], a[at], b[at], low[at], int(width[at].max()))
    return found.reshape(shape)


def _chunks(widths: NDArray[np.int64]) -> list[slice]:
    """Parts of rising widths in which the largest is at most about 1.5 times the smallest."""
    parts, start = [], 0
    while start < len(widths):
        stop = int(np.searchsorted(widths, 1.5 * widths[start] + 2, side="right"))
        most = max(1, BLOCK // (4 * int(widths[stop - 1])))
        stop = min(stop, start + most)
        parts.append(slice(start, stop))
        start = stop
    return parts


def _by_sum(n: Array, a: Array, b: Array, low: Array, width: int) -> Array:
    """Sums over the distribution from a count on, each weight from the one before."""
    h = low[:, None] + np.arange(width)
    before = h[:, :-1]
    weights = np.ones_like(h)
    left = a[:, None] - before
    left *= b[:, None] - before
    left /= h[:, 1:] * ((n - a - b)[:, None] + h[:, 1:])
    np.cumprod(left, axis=1, out=weights[:, 1:])
    values = h * np.log(np.maximum(h, 1.0))
    return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def _by_series(n: Array, a: Array, b: Array) -> Array:
    """Taylor series of h log h around the mean, in cumulants; those from the fifth on are small."""
    mean = a * b / n
    one, other = a * (n - a), b * (n - b)
    k2 = mean * (1 - b / n) * (n - a) / (n - 1)
    k3 = k2 * (n - 2 * a) * (n - 2 * b) / (n * (n - 2))
    k4 = n * (n + 1) - 6 * one - 6 * other + 6 * one * (other / n**2) * (5 * n - 6) / (n - 1)
    k4 *= k2 / ((n - 2) * (n - 3))
    moments = [
        k2,
        k3,
        k4 + 3 * k2**2,
        10 * k2 * k3,
        15 * k2**3 + 10 * k3**2 + 15 * k2 * k4,
        105 * k3 * k2**2,
        105 * k2**4,
    ]
    total = mean * np.log(mean)
    for order, moment in enumerate(moments, 2):
        total += (-1) ** order * moment / (order * (order - 1) * mean ** (order - 1))
    return np.asarray(total)

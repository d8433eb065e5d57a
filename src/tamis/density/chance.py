r"""Expected entropies of contingency tables with fixed margins (the hypergeometric model).

If two variables are independent, the count h of a cell with margins a and b, in a table of N rows,
has a hypergeometric distribution. The expected joint entropy is then
:math:`\log N - \frac1N \sum_{a, b} E[h \log h]`. Information minus its expectation is 0 on average
for independent variables, for any number of levels.

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

#: From this expected count on, E[h log h] is computed by a Taylor series, with an error below 1e-9
#: of the count. For smaller counts, it is a sum over the distribution.
SERIES_FROM = 100.0
#: Number of standard deviations around the expected count that a sum covers. Counts farther away
#: have a probability below 1e-16.
REACH = 10
#: Up to the count ``EACH``, every entry of a table is computed. Above it, entries are computed only
#: at counts that grow by the factor ``RATIO``. A spline interpolates between them, with an error
#: below 1e-9 of the count.
EACH, RATIO = 96, 1.04


class Chance(NamedTuple):
    """Values for the cells of a contingency table of a column and a pivot.

    The value of a cell is ``values[start[level of the pivot] + count]``.

    Attributes
    ----------
    values : array
        Values of all levels of the pivot, one level after another. A count of 0 has the value 0.
    start : array of int of shape (n_pivot,)
        Index of the first value of each level.
    """

    values: Array
    start: NDArray[np.int64]


def chance_of(level: NDArray[Any], size: NDArray[Any], n_pivot: int = 1) -> Chance:
    """Sum E[h log h] over the levels of a variable, for each level of a pivot and each count.

    Parameters
    ----------
    level, size : array of int
        Level of the pivot, and number of rows, for each cell of the contingency table of the pivot
        and the variable. The expectation E is for a variable that is independent of the column
        within each level of the pivot.
    n_pivot : int, default=1
        Number of levels of the pivot.
    """
    order = np.lexsort((size, level))
    level, size = level[order], size[order].astype(np.int64)
    ends = [*np.flatnonzero(np.diff(level, prepend=-1)), len(size)]
    # levels with the same sizes share a table
    keys = [(int(size[a:b].sum()), size[a:b].tobytes()) for a, b in pairwise(ends)]
    values, starts, n_values = [], {}, 0
    for total, same in groupby(sorted(set(keys)), key=itemgetter(0)):
        group = list(same)
        values.append(_tables(total, [np.frombuffer(key, np.int64) for _, key in group]).ravel())
        starts.update({key: n_values + i * (total + 1) for i, key in enumerate(group)})
        n_values += len(values[-1])
    start = np.zeros(n_pivot, dtype=np.int64)
    start[level[ends[:-1]]] = [starts[key] for key in keys]
    return Chance(np.concatenate(values), start)


def chance_within(margins: NDArray[Any]) -> Chance:
    """Return the same as :func:`chance_of`, for counts of shape (pivot levels, variable levels)."""
    return chance_of(np.nonzero(margins)[0], margins[margins > 0], len(margins))


def _tables(total: int, sizes: list[NDArray[np.int64]]) -> Array:
    """Return the sums of E[h log h] over lists of level sizes, of shape (lists, counts).

    ``total`` is the sum of each list of sizes. Counts are from 0 to the total.
    """
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
    """Return the counts, from 0 to ``total``, at which a table is computed without a spline."""
    if total <= 2 * EACH:
        return np.arange(total + 1)
    n = int(np.log(total / EACH) / np.log(RATIO)) + 2
    above = np.rint(np.geomspace(EACH, total, n)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(EACH), above]))


def expected_n_log_n(n: Any, a: Any, b: Any) -> Array:
    """Return E[h log h] for the count h of a cell with margins a and b, in a table of n rows.

    >>> expected_n_log_n(4, np.array([1, 2]), 2).round(3)
    array([0.   , 0.231])
    """
    n, a, b = (np.asarray(values, dtype=float) for values in np.broadcast_arrays(n, a, b))
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
    # sums of similar width are computed together, as a single matrix
    small = small[np.argsort(width[small], kind="stable")]
    for some in _chunks(width[small]):
        at = small[some]
        found[at] = _by_sum(n[at], a[at], b[at], low[at], int(width[at].max()))
    return found.reshape(shape)


def _chunks(widths: NDArray[np.int64]) -> list[slice]:
    """Split sorted widths into slices of similar widths (up to a factor of about 1.5)."""
    chunks, start = [], 0
    while start < len(widths):
        stop = int(np.searchsorted(widths, 1.5 * widths[start] + 2, side="right"))
        most = max(1, BLOCK // (4 * int(widths[stop - 1])))
        stop = min(stop, start + most)
        chunks.append(slice(start, stop))
        start = stop
    return chunks


def _by_sum(n: Array, a: Array, b: Array, low: Array, width: int) -> Array:
    """Return E[h log h] as a sum over ``width`` counts from ``low`` on.

    The weights of the counts are computed recursively.
    """
    h = low[:, None] + np.arange(width)
    before = h[:, :-1]
    weights = np.ones_like(h)
    ratios = a[:, None] - before
    ratios *= b[:, None] - before
    ratios /= h[:, 1:] * ((n - a - b)[:, None] + h[:, 1:])
    np.cumprod(ratios, axis=1, out=weights[:, 1:])
    values = h * np.log(np.maximum(h, 1.0))
    return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))


def _by_series(n: Array, a: Array, b: Array) -> Array:
    """Return E[h log h] by a Taylor series around the mean, from the first four cumulants."""
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

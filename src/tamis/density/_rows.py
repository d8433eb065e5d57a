"""Gaussian kernel sums, compiled: a row of squared distances in cache, all altered columns at once.

The matrix of distances is never held. A row of it costs one multiplication for each column and
sample, an exponential some ten times that, so making it anew for every call is cheap; and a result
cannot depend on what was asked before.

Arrays of columns are column by column (one row of the array each). Sums over a block are vectorised
because ``reassoc`` lets the additions be reordered; :func:`exp` must not carry that flag, or its
rounding by a large number would be folded away.
"""

from typing import Any

import numpy as np
from numba import njit

REORDERED = {"reassoc", "contract", "nsz"}

PAD = 16  # blocks of samples begin at multiples of this, so that loops have no remainders
FAR = 1e300  # distance of what is not there

LOG2E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # the last bits are zero, so n times it is exact
LN2_LOW = 1.9082149292705877e-10
ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number
LEAST = -708.0  # below, e**x is no longer a normal number


@njit(cache=True, fastmath={"contract"})
def exp(x: float) -> float:
    """e**x for x <= 0 to 1e-14, without a call, so that loops over it are vectorised."""
    x = max(x, LEAST)
    shifted = x * LOG2E + ROUND
    n = shifted - ROUND
    r = x - n * LN2_HIGH
    r = r - n * LN2_LOW
    p = 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.755731922398589e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # n into the exponent of p: it stands in the lowest bits of the shifted number
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _distances(columns: Any, members: Any, row: int, first: int, far: Any, out: Any) -> None:
    """Squared distances of one sample to all from ``first`` on, plus ``far``."""
    out[:] = far
    for j in members:
        x = columns[j, row]
        column = columns[j, first:]
        for q in range(len(out)):
            out[q] += (x - column[q]) ** 2


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _sum(distances: Any, column: Any, x: float, sign: float, gamma: float, least: float) -> float:
    """Sum of exp(-gamma (distance altered by one column - least))."""
    total = 0.0
    for q in range(len(distances)):
        altered = distances[q] + sign * (x - column[q]) ** 2
        total += exp(-gamma * (altered - least))
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _least(distances: Any, column: Any, x: float, sign: float) -> float:
    """Least distance altered by one column."""
    least = np.inf
    for q in range(len(distances)):
        least = min(least, distances[q] + sign * (x - column[q]) ** 2)
    return least


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _sum_and_add(distances: Any, column: Any, x: float, sign: float, gamma: float, add: Any) -> Any:
    """Sum of the kernel of one sample with many; each term is also added to the other's sum."""
    total = 0.0
    for q in range(len(distances)):
        kernel = exp(-gamma * (distances[q] + sign * (x - column[q]) ** 2))
        total += kernel
        add[q] += kernel
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _weighted(
    distances: Any, column: Any, x: float, sign: float, gamma: float, weights: Any
) -> float:
    """Weighted sum of the kernel of one sample with many."""
    total = 0.0
    for q in range(len(distances)):
        total += weights[q] * exp(-gamma * (distances[q] + sign * (x - column[q]) ** 2))
    return total


@njit(cache=True, nogil=True)
def class_sums(
    columns: Any,
    members: Any,
    altered: Any,
    signs: Any,
    gamma: float,
    bounds: Any,
    rows: Any,
    far: Any,
) -> Any:
    """Kernel sums of each sample over each class, for each altered column.

    A sign is -1 where a column leaves, +1 where it enters and 0 where it makes no difference.
    Class k stands at bounds[k] to bounds[k+1]; ``rows`` are the places of the samples, ``far`` is
    large where no sample stands. The kernel is symmetric: each pair is computed once.
    """
    n_classes = len(bounds) - 1
    out = np.zeros((len(altered), n_classes, columns.shape[1]))
    distances = np.empty(columns.shape[1])
    own = 0
    for row in rows:
        while row >= bounds[own + 1]:
            own += 1
        first = (row + 1) // PAD * PAD
        _distances(columns, members, row, first, far[first:], distances[first:])
        distances[first : row + 1] = FAR
        for place in range(len(altered)):
            column = columns[altered[place]]
            x, sign = column[row], signs[place]
            out[place, own, row] += 1.0  # the sample itself
            for k in range(own, n_classes):
                low, high = max(first, bounds[k]), bounds[k + 1]
                out[place, k, row] += _sum_and_add(
                    distances[low:high],
                    column[low:high],
                    x,
                    sign,
                    gamma,
                    out[place, own, low:high],
                )
    return out


@njit(cache=True, nogil=True)
def log_class_sums_of_others(
    columns: Any,
    members: Any,
    altered: Any,
    signs: Any,
    gamma: float,
    bounds: Any,
    rows: Any,
    far: Any,
) -> Any:
    """Logarithm of :func:`class_sums` without the sample itself.

    No term is known to be 1 then, so sums are taken relative to their largest term.
    """
    n_classes = len(bounds) - 1
    out = np.zeros((len(altered), n_classes, columns.shape[1]))
    distances = np.empty(columns.shape[1])
    for row in rows:
        _distances(columns, members, row, 0, far, distances)
        distances[row] = FAR
        for place in range(len(altered)):
            column = columns[altered[place]]
            x, sign = column[row], signs[place]
            for k in range(n_classes):
                block = distances[bounds[k] : bounds[k + 1]]
                values = column[bounds[k] : bounds[k + 1]]
                least = _least(block, values, x, sign)
                total = _sum(block, values, x, sign, gamma, least)
                out[place, k, row] = np.log(total) - gamma * least
    return out


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _weights(y: Any, own: float, gamma: float, offset: Any, own_offset: float, out: Any) -> None:
    """Kernel of one target value with many: Gaussian, equality (inf) or product (negative gamma).

    The offsets centre it.
    """
    if gamma < 0:
        for q in range(len(y)):
            out[q] = own * y[q] - (own_offset + offset[q])
    elif gamma == np.inf:
        for q in range(len(y)):
            out[q] = (1.0 if y[q] == own else 0.0) - (own_offset + offset[q])
    else:
        for q in range(len(y)):
            out[q] = exp(-gamma * (y[q] - own) ** 2) - (own_offset + offset[q])


@njit(cache=True, nogil=True)
def pair_sums(
    columns: Any,
    members: Any,
    altered: Any,
    signs: Any,
    gammas: Any,
    y: Any,
    target_gamma: float,
    offset: Any,
) -> Any:
    """Sum over pairs r < q of K_rq (L_rq - offset_r - offset_q), for each altered column.

    Columns may be longer than the target: what stands beyond has no weight.
    """
    n_samples, width = len(y), columns.shape[1]
    out = np.zeros(len(altered))
    distances, weights, far = np.empty(width), np.zeros(width), np.zeros(width)
    for row in range(n_samples):
        first = (row + 1) // PAD * PAD
        _distances(columns, members, row, first, far[first:], distances[first:])
        left = weights[first:n_samples]
        _weights(y[first:], y[row], target_gamma, offset[first:], offset[row], left)
        weights[first : row + 1] = 0.0
        for place in range(len(altered)):
            column = columns[altered[place]]
            out[place] += _weighted(
                distances[first:],
                column[first:],
                column[row],
                signs[place],
                gammas[place],
                weights[first:],
            )
    return out

"""Gaussian kernel sums: a row of squared distances in cache, all altered columns at once.

The matrix of distances is never held. A row of it costs one multiplication for each column and
sample, an exponential ten times that, so making it anew for every call is cheap; and a result
cannot depend on what was asked before.

Arrays of columns are column by column (one row of the array each), scaled so that the kernel is
2 to the power of minus the squared distance. Sums over a block are vectorised because ``reassoc``
lets the additions be reordered; :func:`exp2` must not carry that flag, or its rounding by a large
number would be folded away.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

REORDERED = {"reassoc", "contract", "nsz"}

# Blocks of samples begin at multiples of this, so that loops have no remainders: sixteen single or
# two times eight double numbers fill the widest registers there are.
PAD = 16

ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number
LEAST = -1020.0  # below, the power is no longer a normal number
ROUND_SINGLE = np.float32(12582912.0)  # 1.5 * 2**23
LEAST_SINGLE = np.float32(-125.0)


def exp2(x: float) -> float:
    """2**x for x <= 0, without a call, so that loops over it are vectorised."""
    raise NotImplementedError("for compiled code only")


def _double(x: Any) -> Any:
    """To 4e-14."""
    x = max(x, LEAST)
    shifted = x + ROUND
    r = x - (shifted - ROUND)
    # interpolates (2**r - 1) / r at the Chebyshev nodes of -1/2 to 1/2, so that 2**0 is 1
    p = 1.0203121063391729e-07
    p = p * r + 1.3255224878668817e-06
    p = p * r + 1.525268684626772e-05
    p = p * r + 0.00015403455852453838
    p = p * r + 0.0013333558179043112
    p = p * r + 0.009618129159402558
    p = p * r + 0.055504108664760424
    p = p * r + 0.2402265069581299
    p = p * r + 0.6931471805599453
    p = p * r + 1.0
    # the whole part into the exponent of p: it stands in the lowest bits of the shifted number
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


def _single(x: Any) -> Any:
    """The same in single precision, to 2e-7."""
    x = max(x, LEAST_SINGLE)
    shifted = x + ROUND_SINGLE
    r = x - (shifted - ROUND_SINGLE)
    p = np.float32(0.0013381302537320797)
    p = p * r + np.float32(0.009666368515385448)
    p = p * r + np.float32(0.05550381013796457)
    p = p * r + np.float32(0.2402234903802036)
    p = p * r + np.float32(0.6931471805599453)
    p = p * r + np.float32(1.0)
    bits = np.float32(p).view(np.int32) + np.int32(np.float32(shifted).view(np.int32) << 23)
    return np.int32(bits).view(np.float32)


@overload(exp2, jit_options={"fastmath": {"contract"}})
def _exp2_of(x: Any) -> Any:
    return _single if x == types.float32 else _double


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _exponents(columns: Any, members: Any, row: int, first: int, far: Any, out: Any) -> None:
    """Minus the squared distances of one sample to all from ``first`` on, minus ``far``."""
    out[:] = -far
    for j in members:
        x = columns[j, row]
        column = columns[j, first:]
        for q in range(len(out)):
            out[q] -= (x - column[q]) ** 2


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _sum_and_add(exponents: Any, column: Any, x: float, sign: float, add: Any) -> float:
    """Sum of the kernel of one sample with many; each term is also added to the other's sum."""
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        kernel = exp2(exponents[q] - sign * (x - column[q]) ** 2)
        total += kernel
        add[q] += kernel
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _weighted(exponents: Any, column: Any, x: float, sign: float, weights: Any) -> float:
    """Weighted sum of the kernel of one sample with many."""
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        total += weights[q] * exp2(exponents[q] - sign * (x - column[q]) ** 2)
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _greatest(exponents: Any, column: Any, x: float, sign: float) -> float:
    """Greatest exponent altered by one column."""
    greatest = exponents.dtype.type(-np.inf)
    for q in range(len(exponents)):
        greatest = max(greatest, exponents[q] - sign * (x - column[q]) ** 2)
    return greatest


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _relative(exponents: Any, column: Any, x: float, sign: float, greatest: float) -> float:
    """Sum of the kernel in units of its greatest term."""
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        total += exp2(exponents[q] - sign * (x - column[q]) ** 2 - greatest)
    return total


@njit(cache=True, nogil=True)
def class_sums(
    columns: Any, members: Any, altered: Any, signs: Any, bounds: Any, far: Any, rows: Any, out: Any
) -> None:
    """Add to kernel sums of each sample over each class, for each altered column.

    A sign is -1 where a column leaves, +1 where it enters and 0 where it makes no difference.
    Class k stands at bounds[k] to bounds[k+1]; ``rows`` are the indices of samples, ``far`` is
    infinite where no sample stands. The kernel is symmetric: each pair is computed once, when the
    first of its samples is among the rows.
    """
    n_classes = len(bounds) - 1
    exponents = np.empty(columns.shape[1], dtype=columns.dtype)
    own = 0
    for row in rows:
        while row >= bounds[own + 1]:
            own += 1
        first = (row + 1) // PAD * PAD
        _exponents(columns, members, row, first, far[first:], exponents[first:])
        exponents[first : row + 1] = -np.inf
        for index in range(len(altered)):
            column = columns[altered[index]]
            x, sign = column[row], signs[index]
            out[index, own, row] += 1.0  # the sample itself
            for k in range(own, n_classes):
                low, high = max(first, bounds[k]), bounds[k + 1]
                add = out[index, own, low:high]
                block, values = exponents[low:high], column[low:high]
                out[index, k, row] += _sum_and_add(block, values, x, sign, add)


@njit(cache=True, nogil=True)
def log_class_sums_of_others(
    columns: Any, members: Any, altered: Any, signs: Any, bounds: Any, far: Any, rows: Any, out: Any
) -> None:
    """Logarithm of :func:`class_sums` without the sample itself.

    No term is known to be 1 then, so sums are taken relative to their greatest term.
    """
    n_classes = len(bounds) - 1
    exponents = np.empty(columns.shape[1], dtype=columns.dtype)
    for row in rows:
        _exponents(columns, members, row, 0, far, exponents)
        exponents[row] = -np.inf
        for index in range(len(altered)):
            column = columns[altered[index]]
            x, sign = column[row], signs[index]
            for k in range(n_classes):
                block = exponents[bounds[k] : bounds[k + 1]]
                values = column[bounds[k] : bounds[k + 1]]
                greatest = _greatest(block, values, x, sign)
                total = _relative(block, values, x, sign, greatest)
                out[index, k, row] = np.log(total) + greatest * np.log(2.0)


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _weights(y: Any, own: float, kind: int, offset: Any, own_offset: float, out: Any) -> None:
    """Kernel of one target value with many, centred by the offsets.

    Equality (kind 0), Gaussian (1) or the product (2).
    """
    if kind == 0:
        for q in range(len(y)):
            out[q] = (1.0 if y[q] == own else 0.0) - (own_offset + offset[q])
    elif kind == 1:
        for q in range(len(y)):
            out[q] = exp2(-((y[q] - own) ** 2)) - (own_offset + offset[q])
    else:
        for q in range(len(y)):
            out[q] = own * y[q] - (own_offset + offset[q])


@njit(cache=True, nogil=True)
def pair_sums(
    columns: Any,
    members: Any,
    altered: Any,
    sign: float,
    widening: float,
    y: Any,
    kind: int,
    offset: Any,
    begin: int,
    end: int,
    out: Any,
) -> None:
    """Add the sum over pairs r < q of K_rq (L_rq - offset_r - offset_q), r from begin to end.

    The first answer is for the members themselves, whose exponents are multiplied by ``widening``;
    the others are for each altered column. Columns may be longer than the target: what stands
    beyond has no weight.
    """
    n_samples, width = len(y), columns.shape[1]
    exponents = np.empty(width, dtype=columns.dtype)
    weights, far = np.zeros_like(exponents), np.zeros_like(exponents)
    for row in range(begin, end):
        first = (row + 1) // PAD * PAD
        block = exponents[first:]
        _exponents(columns, members, row, first, far[first:], block)
        left = weights[first:n_samples]
        _weights(y[first:], y[row], kind, offset[first:], offset[row], left)
        weights[first : row + 1] = 0.0
        for index in range(len(altered)):
            column = columns[altered[index]]
            values = column[first:]
            out[index + 1] += _weighted(block, values, column[row], sign, weights[first:])
        block *= widening
        out[0] += _weighted(block, columns[0, first:], 0.0, 0.0, weights[first:])

"""Gaussian kernel sums for many altered columns at once.

The distance matrix is never stored. Its rows are computed one at a time, which is cheap compared
with the exponentials.

``columns`` has one row per column. The columns are scaled so that the kernel is 2 to the power of
minus the squared distance. Sums over a block are vectorised because the flag ``reassoc`` lets the
compiler reorder additions. :func:`exp2` must not have this flag. The function rounds by adding and
subtracting a large number, and with the flag the compiler would remove both operations.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from tamis.compiled import njit

REORDERED = {"reassoc", "contract", "nsz"}

# Blocks of samples begin at multiples of this number, so that vectorised loops have no remainder.
# The widest registers hold 16 numbers in single precision or 8 in double precision.
PAD = 16

ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer
LEAST = -1020.0  # smaller exponents give subnormal numbers
ROUND_SINGLE = np.float32(12582912.0)  # 1.5 * 2**23
LEAST_SINGLE = np.float32(-125.0)


def exp2(x: float) -> float:
    """Return 2**x for x <= 0. The function is inlined so that loops that call it are vectorised."""
    raise NotImplementedError("for compiled code only")


def _double(x: Any) -> Any:
    """Compute 2**x in double precision, with relative error 4e-14."""
    x = max(x, LEAST)
    shifted = x + ROUND
    r = x - (shifted - ROUND)
    # interpolates (2**r - 1) / r at Chebyshev nodes between -1/2 and 1/2, so that 2**0 is exactly 1
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
    # the lowest bits of the shifted number are the integer part of x; add it to the exponent of p
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64)


def _single(x: Any) -> Any:
    """Compute 2**x in single precision, with relative error 2e-7."""
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
def _exponents(columns, members, row, first, far, out):
    """Write the exponents of a sample's kernel values with the samples from ``first`` on.

    An exponent is minus the squared distance in the ``members``, minus the entry of ``far``.
    """
    out[:] = -far
    for j in members:
        x = columns[j, row]
        column = columns[j, first:]
        for q in range(len(out)):
            out[q] -= (x - column[q]) ** 2


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _sum_and_add(exponents, column, x, sign, add):
    """Return the sum of a sample's kernel values with many samples.

    Each kernel value is also added to the entry of ``add`` for the other sample.
    """
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        kernel = exp2(exponents[q] - sign * (x - column[q]) ** 2)
        total += kernel
        add[q] += kernel
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _weighted(exponents, column, x, sign, weights):
    """Return the weighted sum of one sample's kernel values with many samples."""
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        total += weights[q] * exp2(exponents[q] - sign * (x - column[q]) ** 2)
    return total


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _greatest(exponents, column, x, sign):
    """Return the greatest exponent in a sample's kernel row after a column is added or removed."""
    greatest = exponents.dtype.type(-np.inf)
    for q in range(len(exponents)):
        greatest = max(greatest, exponents[q] - sign * (x - column[q]) ** 2)
    return greatest


@njit(cache=True, nogil=True, fastmath=REORDERED)
def _relative(exponents, column, x, sign, greatest):
    """Return the sum of a sample's kernel values, divided by the greatest of these values."""
    total = exponents.dtype.type(0)
    for q in range(len(exponents)):
        total += exp2(exponents[q] - sign * (x - column[q]) ** 2 - greatest)
    return total


@njit(cache=True, nogil=True)
def class_sums(columns, members, altered, signs, bounds, far, rows, out):
    """Add the sum of each sample's kernel values with each class to ``out``.

    There is one result for each column in ``altered``. The entry of a column in ``signs`` is +1 if
    the column is added to the ``members``, -1 if it is removed, and 0 if it is ignored. The samples
    of class k have the positions bounds[k] to bounds[k + 1] - 1. ``rows`` are positions of samples.
    ``far`` is infinite at positions without a sample. The kernel is symmetric, so each pair is
    computed only once: when the first of the two samples is in ``rows``.
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
def log_class_sums_of_others(columns, members, altered, signs, bounds, far, rows, out):
    """Write the logarithms of the sums of :func:`class_sums`.

    The kernel value of a sample with itself is left out. Because all terms may be tiny, sums are
    computed relative to their greatest term.
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
def _weights(y, own, kind, offset, own_offset, out):
    """Write the kernel values of one target value with many others, minus the offsets of both.

    ``kind`` is 0 for a kernel that is 1 for equal values and 0 otherwise, 1 for a Gaussian kernel,
    and 2 for the product of the two values.
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
def pair_sums(columns, members, altered, sign, widening, y, kind, offset, begin, end, out):
    """Add the sum of K_rq (L_rq - offset_r - offset_q) over pairs r < q to each entry of ``out``.

    K is the kernel of the columns, and L is the kernel of the target. Rows r run from ``begin`` to
    ``end`` - 1. Entry 0 of ``out`` uses the columns ``members`` alone, with exponents multiplied by
    ``widening``. Each of the other entries adds or removes one of the columns ``altered``. Padding
    at the end of a column has weight 0.
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

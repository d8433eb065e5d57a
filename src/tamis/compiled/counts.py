"""Contingency tables of many columns at once.

A column with few levels is stored as one bit set for each level except the first. A bit set marks
the samples at its level. The count of a pair of levels is then the number of bits that are set in
both bit sets. Counts that involve a first level follow from the margins of the table.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from numba import types, uint64
from numba.extending import intrinsic

from tamis.compiled import njit


def _popcount(typingctx: Any, word: Any) -> Any:
    """Return the number of set bits in a 64-bit word, with a single instruction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


popcount: Any = intrinsic(_popcount)


@njit(cache=True, nogil=True)
def lowest_bit(word):
    """Return the position of the lowest set bit of a word that is not 0."""
    return popcount((word & (~word + uint64(1))) - uint64(1))


@njit(cache=True)
def _at_least(block, cut):
    """Return a word whose bit i is set if block[i] >= cut."""
    word = uint64(0)
    for i in range(len(block)):
        word |= uint64(block[i] >= cut) << uint64(i)
    return word


@njit(cache=True)
def _equal(block, value):
    """Return a word whose bit i is set if block[i] == value."""
    word = uint64(0)
    for i in range(len(block)):
        word |= uint64(block[i] == value) << uint64(i)
    return word


@njit(cache=True, nogil=True)
def few_levels(columns, most):
    """Return the sorted distinct values of each row of ``columns``, and the number of values.

    The number is ``most`` + 1 if a row has more than ``most`` distinct values.
    """
    n_columns, n_samples = columns.shape
    levels = np.full((n_columns, most), np.inf)
    count = np.zeros(n_columns, dtype=np.int64)
    for j in range(n_columns):
        row, known = columns[j], 0
        for first in range(0, n_samples, 64):
            block = row[first : first + 64]
            left = ~uint64(0) >> uint64(64 - len(block))  # entries that are not at a known level
            for level in range(known):
                left &= ~_equal(block, levels[j, level])
            while left and known <= most:
                if known < most:
                    levels[j, known] = block[lowest_bit(left)]
                    left &= ~_equal(block, levels[j, known])
                known += 1
            if known > most:
                break
        count[j] = known
        if known <= most:
            levels[j, :known].sort()
    return levels, count


@njit(cache=True, nogil=True)
def pack(columns, cuts, start, bits, sizes):
    """Write the bit sets of all levels except the first, and add their sizes to ``sizes``.

    The bit sets of row j of ``columns`` begin at start[j] in ``bits``.
    """
    for j in range(len(columns)):
        row, first, last = columns[j], start[j], start[j + 1]
        for word in range(bits.shape[1]):
            block = row[64 * word : 64 * word + 64]
            above = uint64(0)
            for index in range(last - 1, first - 1, -1):
                reached = _at_least(block, cuts[j, index - first])
                bits[index, word] = reached & ~above
                sizes[index] += np.int64(popcount(reached & ~above))
                above = reached


@njit(cache=True, nogil=True)
def encode(columns, cuts, n_levels, codes):
    """Write the level of each entry, which is the number of cuts less than or equal to it."""
    for j in range(len(columns)):
        row, out = columns[j], codes[j]
        out[:] = 0
        for level in range(n_levels[j] - 1):
            cut = cuts[j, level]
            for i in range(len(row)):
                out[i] += row[i] >= cut


@njit(cache=True, nogil=True)
def sums_by_bits(bits, sizes, start, pivot, pivot_sizes, n_samples, table, offset):
    """Return, for each column, a sum over the cells of the contingency table with the pivot.

    The pivot is the column against which all others are tabulated. A cell is a pair of a pivot
    level and a column level. A cell with n samples at pivot level a adds table[offset[a] + n] to
    the sum.
    """
    n_columns, n_pivot, n_words = len(start) - 1, len(pivot), bits.shape[1]
    sums = np.empty(n_columns)
    left = np.empty(n_pivot, dtype=np.int64)
    for j in range(n_columns):
        left[:] = pivot_sizes  # after the loop, these are the counts at the column's first level
        total, first_level = 0.0, n_samples
        for index in range(start[j], start[j + 1]):
            rest = sizes[index]
            first_level -= rest
            members = bits[index]
            for a in range(n_pivot):
                row, both = pivot[a], uint64(0)
                for word in range(n_words):
                    both += popcount(members[word] & row[word])
                total += table[offset[a + 1] + np.int64(both)]
                left[a] -= np.int64(both)
                rest -= np.int64(both)
            total += table[offset[0] + rest]
        for a in range(n_pivot):
            total += table[offset[a + 1] + left[a]]
            first_level -= left[a]
        sums[j] = total + table[offset[0] + first_level]
    return sums


@njit(cache=True, nogil=True)
def sums_by_histogram(codes, n_levels, pivot, table, offset):
    """Return the same sums as :func:`sums_by_bits`, for columns with many levels."""
    n_pivot, sums = len(offset), np.empty(len(codes))
    for j in range(len(codes)):
        column, width = codes[j], n_levels[j]
        # four tables are used in turn, because an increment waits for the previous increment of the
        # same cell
        counts = np.zeros((4, n_pivot * width), dtype=np.int64)
        for i in range(len(column)):
            counts[i & 3, pivot[i] * width + np.int64(column[i])] += 1
        total = 0.0
        for a in range(n_pivot):
            for cell in range(a * width, (a + 1) * width):
                count = counts[0, cell] + counts[1, cell] + counts[2, cell] + counts[3, cell]
                total += table[offset[a] + count]
        sums[j] = total
    return sums


@njit(cache=True, nogil=True)
def sums_by_entries(start, rows, levels, n_levels, pivot, pivot_sizes, table, offset):
    """Return the same sums as :func:`sums_by_bits`, from the non-zero entries of sparse columns."""
    n_pivot = len(pivot_sizes)
    sums = np.empty(len(n_levels))
    counts = np.zeros(n_levels.max() * n_pivot, dtype=np.int64)
    for j in range(len(n_levels)):
        n_cells = n_levels[j] * n_pivot
        counts[:n_pivot] = pivot_sizes
        counts[n_pivot:n_cells] = 0
        for index in range(start[j], start[j + 1]):
            a = pivot[rows[index]]
            counts[a] -= 1
            counts[levels[index] * n_pivot + a] += 1
        total = 0.0
        for cell in range(0, n_cells, n_pivot):
            for a in range(n_pivot):
                total += table[offset[a] + counts[cell + a]]
        sums[j] = total
    return sums

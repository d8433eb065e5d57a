"""Differences of all pairs of rows in each column, weighted and summed."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tamis._arrays import Array

# Rows of weights that every column runs over: some hundred kilobytes for a thousand rows, which
# stay in a core's second cache while the columns pass by.
TILE = 32


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _row_sum(column: Array, value: float, weights: Array, scale: float, cut: float) -> float:
    """Weighted sum of the differences of one value to a column."""
    total = 0.0
    for j in range(len(column)):
        distance = abs(value - column[j])
        total += weights[j] * (1.0 if distance > cut else distance * scale)
    return total


@njit(cache=True, nogil=True)
def weighted_sums(
    columns: Array, rows: NDArray[np.intp], weights: Array, scale: Array, cut: Array
) -> Array:
    """Sum over rows i and all j of weights[i, j] times the difference of i and j, each column.

    A difference is 1 where values are further apart than ``cut``, otherwise their distance times
    ``scale``. ``columns`` has one row a column.
    """
    sums = np.zeros(len(columns))
    for first in range(0, len(rows), TILE):
        for k in range(len(columns)):
            for i in range(first, min(first + TILE, len(rows))):
                value = columns[k, rows[i]]
                sums[k] += _row_sum(columns[k], value, weights[i], scale[k], cut[k])
    return sums

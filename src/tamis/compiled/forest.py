"""Predictions of forests of extremely randomised trees."""

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.compiled import njit

# A column whose scaled values in a node differ by less than this is treated as constant.
CONSTANT = 1e-7


@njit(cache=True, nogil=True)
def forest_predictions(
    columns: Array,
    codes: NDArray[np.intp],
    values: Array,
    asked: Array,
    n_outputs: int,
    n_tried: int,
    n_trees: int,
    rng: np.random.Generator,
) -> Array:
    """Return the sum over ``n_trees`` trees of their predictions for the rows to predict.

    ``columns`` and ``asked`` have one row per column. The target of training row i has the value
    values[0, i] in the output codes[i] and 0 in the others, and values[1, i] is the weight of the
    row. So classes have the value 1, and a real target has a single output. A split compares
    ``n_tried`` columns, each at a random threshold, by the sum of squared errors, which for classes
    is the Gini impurity. A tree is not stored: it is grown only where there are rows to predict.
    """
    n_rows, n_asked = columns.shape[1], asked.shape[1]
    found = np.zeros((n_asked, n_outputs))
    features = np.arange(len(columns))
    sums, left = np.empty(n_outputs), np.empty(n_outputs)
    # each node is a range of training rows and a range of rows to predict
    nodes = np.empty((n_rows + 1, 4), dtype=np.int64)
    for _ in range(n_trees):
        rows, wanted = np.arange(n_rows), np.arange(n_asked)
        nodes[0] = 0, n_rows, 0, n_asked
        n_nodes = 1
        while n_nodes:
            n_nodes -= 1
            first, last, low, high = nodes[n_nodes]
            node, here = rows[first:last], wanted[low:high]
            total, pure = _add_up(node, codes, values, sums)
            feature, threshold = -1, 0.0
            if not pure:
                feature, threshold = _best_split(
                    columns, codes, values, node, sums, total, features, n_tried, left, rng
                )
            if feature < 0:
                for row in here:
                    found[row] += sums / total
                continue
            middle = first + _split(columns[feature], node, threshold)
            centre = low + _split(asked[feature], here, threshold)
            if centre > low:
                nodes[n_nodes] = first, middle, low, centre
                n_nodes += 1
            if centre < high:
                nodes[n_nodes] = middle, last, centre, high
                n_nodes += 1
    return found


@njit(cache=True, nogil=True)
def _add_up(
    node: NDArray[np.intp], codes: NDArray[np.intp], values: Array, sums: Array
) -> tuple[float, bool]:
    """Write the weighted sums of the outputs; return the weight and whether all rows are equal."""
    sums[:] = 0.0
    total, pure = 0.0, True
    for row in node:
        sums[codes[row]] += values[0, row] * values[1, row]
        total += values[1, row]
        pure = pure and codes[row] == codes[node[0]] and values[0, row] == values[0, node[0]]
    return total, pure


@njit(cache=True, nogil=True)
def _best_split(
    columns: Array,
    codes: NDArray[np.intp],
    values: Array,
    node: NDArray[np.intp],
    sums: Array,
    total: float,
    features: NDArray[np.intp],
    n_tried: int,
    left: Array,
    rng: np.random.Generator,
) -> tuple[int, float]:
    """Return the best of some random columns and its threshold, or -1 if all are constant."""
    best, feature, threshold = -np.inf, -1, 0.0
    for k in range(len(features)):
        if k >= n_tried and feature >= 0:
            break
        other = rng.integers(k, len(features))
        features[k], features[other] = features[other], features[k]
        column = columns[features[k]]
        least, most = np.inf, -np.inf
        for row in node:
            least, most = min(least, column[row]), max(most, column[row])
        if most - least <= CONSTANT:
            continue
        cut = least + rng.random() * (most - least)
        cut = least if cut >= most else cut
        left[:] = 0.0
        weight = 0.0
        for row in node:
            if column[row] <= cut:
                left[codes[row]] += values[0, row] * values[1, row]
                weight += values[1, row]
        rest = total - weight
        if rest <= 0:  # the other rows have weights below the rounding error
            continue
        score = (left**2).sum() / weight + ((sums - left) ** 2).sum() / rest
        if score > best:
            best, feature, threshold = score, features[k], cut
    return feature, threshold


@njit(cache=True, nogil=True)
def _split(column: Array, rows: NDArray[np.intp], threshold: float) -> int:
    """Move the rows up to the threshold to the front, and return their number."""
    n_left = 0
    for index in range(len(rows)):
        row = rows[index]
        if column[row] <= threshold:
            rows[index], rows[n_left] = rows[n_left], row
            n_left += 1
    return n_left

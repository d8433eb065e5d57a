"""Predictions and feature importances of forests of extremely randomised trees."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit

# A column whose scaled values in a node differ by less than this is treated as constant.
CONSTANT = 1e-7


@njit(cache=True, nogil=True)
def grow_forest(columns, codes, values, asked, n_outputs, n_tried, n_trees, rng):
    """Return the sums over ``n_trees`` trees of their predictions and of their importances.

    ``columns`` and ``asked`` have one row per column. The target of training row i has the value
    values[0, i] in the output codes[i], and 0 in all other outputs. values[1, i] is the weight of
    the row. So classes have the value 1, and a numeric target has a single output. A split compares
    ``n_tried`` columns, each at a random threshold, by the sum of squared errors. For classes, this
    is the Gini impurity. The importance of a column is its share of the decrease of the sum of
    squared errors.

    Trees are not stored. If there are rows to predict, only the nodes that these rows reach are
    grown, and the importances include only these nodes.
    """
    n_rows, n_asked = columns.shape[1], asked.shape[1]
    found, importances = np.zeros((n_asked, n_outputs)), np.zeros(len(columns))
    features = np.arange(len(columns))
    # the rows of a node, copied to the start of these arrays
    held = np.empty(n_rows, dtype=np.intp), np.empty((3, n_rows))
    sums, left = np.empty(n_outputs), np.empty(n_outputs)
    # a node consists of a range of training rows and a range of rows to predict
    nodes = np.empty((n_rows + 1, 4), dtype=np.int64)
    for _ in range(n_trees):
        rows, wanted = np.arange(n_rows), np.arange(n_asked)
        gains = np.zeros(len(columns))
        nodes[0] = 0, n_rows, 0, n_asked
        n_nodes = 1
        while n_nodes:
            n_nodes -= 1
            first, last, low, high = nodes[n_nodes]
            node, here = rows[first:last], wanted[low:high]
            total, pure = _add_up(node, codes, values, held, sums)
            feature, threshold, gain = -1, 0.0, 0.0
            if not pure:
                feature, threshold, gain = _best_split(
                    columns, node, held, sums, total, features, n_tried, left, rng
                )
            if feature < 0:
                for row in here:
                    for k in range(n_outputs):
                        found[row, k] += sums[k] / total
                continue
            gains[feature] += gain
            middle = first + _split(columns[feature], node, threshold)
            centre = low + _split(asked[feature], here, threshold)
            if centre > low or not n_asked:
                nodes[n_nodes] = first, middle, low, centre
                n_nodes += 1
            if centre < high or not n_asked:
                nodes[n_nodes] = middle, last, centre, high
                n_nodes += 1
        if gains.sum() > 0:
            importances += gains / gains.sum()
    return found, importances


@njit(cache=True, nogil=True)
def _add_up(node, codes, values, held, sums):
    """Copy the rows of a node, and write the weighted sums of the outputs.

    Return the weight, and whether all rows are equal.
    """
    held_codes, (held_terms, held_weights, _) = held
    sums[:] = 0.0
    total, pure = 0.0, True
    first = node[0]
    for k, row in enumerate(node):
        code, value, weight = codes[row], values[0, row], values[1, row]
        held_codes[k], held_terms[k], held_weights[k] = code, value * weight, weight
        sums[code] += value * weight
        total += weight
        pure = pure and code == codes[first] and value == values[0, first]
    return total, pure


@njit(cache=True, nogil=True)
def _best_split(columns, node, held, sums, total, features, n_tried, left, rng):
    """Return the best of some random columns, its threshold and its gain.

    The column is -1 if all columns are constant.
    """
    codes, (terms, weights, values) = held
    best, feature, threshold = -np.inf, -1, 0.0
    for tried in range(len(features)):
        if tried >= n_tried and feature >= 0:
            break
        other = rng.integers(tried, len(features))
        features[tried], features[other] = features[other], features[tried]
        column = columns[features[tried]]
        least, most = np.inf, -np.inf
        for i, row in enumerate(node):
            values[i] = column[row]
            least, most = min(least, values[i]), max(most, values[i])
        if most - least <= CONSTANT:
            continue
        cut = least + rng.random() * (most - least)
        cut = least if cut >= most else cut
        left[:] = 0.0
        weight = 0.0
        for i in range(len(node)):
            inside = values[i] <= cut  # multiplied, because a random branch is slow
            left[codes[i]] += inside * terms[i]
            weight += inside * weights[i]
        rest = total - weight
        if rest <= 0:  # the total weight of the other rows is below the rounding error
            continue
        score = 0.0
        for k in range(len(sums)):
            score += left[k] ** 2 / weight + (sums[k] - left[k]) ** 2 / rest
        if score > best:
            best, feature, threshold = score, features[tried], cut
    return feature, threshold, best - (sums**2).sum() / total


@njit(cache=True, nogil=True)
def _split(column, rows, threshold):
    """Move the rows up to the threshold to the front, and return their number."""
    n_left = 0
    for index in range(len(rows)):
        row = rows[index]
        if column[row] <= threshold:
            rows[index], rows[n_left] = rows[n_left], row
            n_left += 1
    return n_left

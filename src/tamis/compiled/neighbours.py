"""Nearest neighbours and their votes, and differences of pairs of rows in each column."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

# Distances held at a time: half a megabyte, which stays in a core's second cache while every
# candidate runs over it.
BLOCK = 2**16
# Relative difference of two sums that rounding can explain: some hundred terms, each rounded to
# 1e-16, leave a tenth of it. A difference within it is a tie, which the estimator itself decides.
TIE = 1e-12
UNDECIDED = -1


@njit(cache=True, nogil=True)
def votes(
    X: Array,
    codes: NDArray[np.intp],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    subset: Subset,
    candidates: Subset,
    sign: float,
    k: int,
    n_classes: int,
    squared: bool,
) -> Array:
    """Class voted for each candidate and test row, or the squared loss of the shares of votes.

    A tie that the estimator itself has to decide is UNDECIDED, or nan.
    """
    said = np.empty((len(candidates), len(test)))
    labels, everyone = codes[train], np.arange(len(train))
    near, voters = np.empty(k + 1), np.empty(k + 1, dtype=np.int64)
    distances = np.empty(len(train))
    height = max(1, BLOCK // len(train))
    for top in range(0, len(test), height):
        rows = test[top : top + height]
        base = _summed(X, train, rows, subset)
        first = np.empty((len(rows), k + 1), dtype=np.int64)
        for q in range(len(rows)):
            _nearest(base[q], everyone, np.inf, near, first[q])
        for c in range(len(candidates)):
            column = X[:, candidates[c]]
            known = column[train]
            for q in range(len(rows)):
                _add_column(base[q], known, column[rows[q]], sign, distances)
                # differences carry the rounding of the sums they come from
                slack = (
                    0.0 if sign > 0 else 1e-15 * (len(subset) + 4) * _greatest(base[q], everyone)
                )
                # any k + 1 rows bound the distance sought; those nearest before are a good guess
                bound = _greatest(distances, first[q]) + slack
                _nearest(distances, labels, bound, near, voters)
                tie = slack + TIE * near[k]
                clear = near[k] - near[k - 1] > tie
                if clear and squared:
                    counts = _counted(voters[:k], n_classes)
                    said[c, top + q] = _squared(counts, k, codes[rows[q]])
                elif clear:
                    said[c, top + q] = _elected(voters[:k], n_classes)
                elif squared:
                    counts = _certain(distances, labels, near[k - 1], tie, k, n_classes)
                    said[c, top + q] = _squared(counts, k, codes[rows[q]])
                else:
                    said[c, top + q] = _tied(distances, labels, near[k - 1], tie, k, n_classes)
    return said


@njit(cache=True, nogil=True)
def _summed(X: Array, train: NDArray[np.intp], rows: NDArray[np.intp], subset: Subset) -> Array:
    """Squared distances over a subset, (test rows, training rows)."""
    base = np.zeros((len(rows), len(train)))
    for j in subset:
        column = X[:, j]
        known = column[train]
        for q in range(len(rows)):
            _add_column(base[q], known, column[rows[q]], 1.0, base[q])
    return base


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "contract"})
def _add_column(base: Array, known: Array, x: float, sign: float, out: Array) -> None:
    for row in range(len(out)):
        gap = known[row] - x
        out[row] = base[row] + sign * (gap * gap)


@njit(cache=True, nogil=True)
def _greatest(distances: Array, rows: NDArray[np.intp]) -> float:
    greatest = 0.0
    for row in rows:
        greatest = max(greatest, distances[row])
    return greatest


@njit(cache=True, nogil=True)
def _nearest(
    distances: Array, labels: NDArray[np.intp], bound: float, near: Array, voters: NDArray[np.intp]
) -> None:
    """The smallest distances up to a bound, rising, and the labels of their rows."""
    last = len(near) - 1
    for index in range(last + 1):
        near[index] = np.inf
    worst = np.nextafter(bound, np.inf)
    for row in range(len(distances)):
        distance = distances[row]
        if distance < worst:
            index = last
            while index > 0 and near[index - 1] > distance:
                near[index] = near[index - 1]
                voters[index] = voters[index - 1]
                index -= 1
            near[index] = distance
            voters[index] = labels[row]
            worst = min(worst, near[last])


@njit(cache=True, nogil=True)
def _counted(voters: NDArray[np.intp], n_classes: int) -> NDArray[np.intp]:
    """Votes for each class."""
    counts = np.zeros(n_classes, dtype=np.int64)
    for label in voters:
        counts[label] += 1
    return counts


@njit(cache=True, nogil=True)
def _squared(counts: NDArray[np.intp], k: int, truth: int) -> float:
    """Squared loss of the shares of votes, nan where there are not k."""
    if counts.sum() != k:
        return np.nan
    loss = 0.0
    for label in range(len(counts)):
        loss += (counts[label] / k - (label == truth)) ** 2
    return loss


@njit(cache=True, nogil=True)
def _certain(
    distances: Array, labels: NDArray[np.intp], cut: float, tie: float, k: int, n_classes: int
) -> NDArray[np.intp]:
    """Votes that are the same whichever of the rows at the k-th distance are taken."""
    sure, rest = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for row in range(len(distances)):
        if distances[row] < cut - tie:
            sure[labels[row]] += 1
        elif distances[row] <= cut + tie:
            rest[labels[row]] += 1
    if (rest > 0).sum() == 1:
        sure[rest.argmax()] += k - sure.sum()
    return sure


@njit(cache=True, nogil=True)
def _elected(voters: NDArray[np.intp], n_classes: int) -> int:
    """The class with most votes, of equals the first."""
    counts = _counted(voters, n_classes)
    leader = 0
    for other in range(n_classes):
        if counts[other] > counts[leader]:
            leader = other
    return leader


@njit(cache=True, nogil=True)
def _tied(
    distances: Array, labels: NDArray[np.intp], cut: float, tie: float, k: int, n_classes: int
) -> int:
    """The class elected whichever of the rows at the k-th distance are taken, else UNDECIDED."""
    sure, rest = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    seats, claims = k, 0
    for row in range(len(distances)):
        if distances[row] < cut - tie:
            sure[labels[row]] += 1
            seats -= 1
        elif distances[row] <= cut + tie:
            rest[labels[row]] += 1
            claims += 1
    leader = 0
    for other in range(n_classes):  # the most votes that a class has whatever is taken
        sure_of = sure[other] + max(0, seats - claims + rest[other])
        if sure_of > sure[leader] + max(0, seats - claims + rest[leader]):
            leader = other
    least = sure[leader] + max(0, seats - claims + rest[leader])
    for other in range(n_classes):
        most = sure[other] + min(rest[other], seats)
        if other != leader and (most > least or (most == least and other < leader)):
            return UNDECIDED
    return leader


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

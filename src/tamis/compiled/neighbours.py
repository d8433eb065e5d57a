"""Votes of nearest neighbours, and weighted differences between pairs of rows in each column."""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from tamis.compiled import njit

# Number of distances in a block. A block takes half a megabyte, so it stays in the L2 cache while
# all candidate columns are tried.
BLOCK = 2**16
# Two distances are treated as a tie if their relative difference is below this number. It is ten
# times the rounding error of a sum of a few hundred terms. Ties are left to the estimator itself.
TIE = 1e-12
UNDECIDED = -1


@njit(cache=True, nogil=True)
def votes(X, codes, train, test, subset, candidates, sign, k, n_classes, squared):
    """Return the predicted class, or the squared loss, for each candidate column and test row.

    The squared loss compares the shares of votes with the true class. If the result depends on how
    the estimator breaks a tie of distances, the class is UNDECIDED and the loss is nan.
    """
    found = np.empty((len(candidates), len(test)))
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
                # subtracting a column leaves the rounding error of the larger sums
                slack = (
                    0.0 if sign > 0 else 1e-15 * (len(subset) + 4) * _greatest(base[q], everyone)
                )
                # the greatest distance of any k + 1 rows is an upper bound on the distances of the
                # neighbours; the nearest rows before the change give a tight bound
                bound = _greatest(distances, first[q]) + slack
                _nearest(distances, labels, bound, near, voters)
                tie = slack + TIE * near[k]
                clear = near[k] - near[k - 1] > tie
                if clear and squared:
                    counts = _counted(voters[:k], n_classes)
                    found[c, top + q] = _squared(counts, k, codes[rows[q]])
                elif clear:
                    found[c, top + q] = _elected(voters[:k], n_classes)
                else:
                    sure, rest = _split_votes(distances, labels, near[k - 1], tie, n_classes)
                    if squared:
                        counts = _certain(sure, rest, k)
                        found[c, top + q] = _squared(counts, k, codes[rows[q]])
                    else:
                        found[c, top + q] = _tied(sure, rest, k)
    return found


@njit(cache=True, nogil=True)
def _summed(X, train, rows, subset):
    """Return the squared distances in a subset of columns, of shape (test rows, training rows)."""
    base = np.zeros((len(rows), len(train)))
    for j in subset:
        column = X[:, j]
        known = column[train]
        for q in range(len(rows)):
            _add_column(base[q], known, column[rows[q]], 1.0, base[q])
    return base


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "contract"})
def _add_column(base, known, x, sign, out):
    for row in range(len(out)):
        difference = known[row] - x
        out[row] = base[row] + sign * (difference * difference)


@njit(cache=True, nogil=True)
def _greatest(distances, rows):
    greatest = 0.0
    for row in rows:
        greatest = max(greatest, distances[row])
    return greatest


@njit(cache=True, nogil=True)
def _nearest(distances, labels, bound, near, voters):
    """Write the smallest distances in increasing order, and the labels of their rows.

    Distances above ``bound`` are skipped.
    """
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
def _counted(voters, n_classes):
    """Count the votes for each class."""
    counts = np.zeros(n_classes, dtype=np.int64)
    for label in voters:
        counts[label] += 1
    return counts


@njit(cache=True, nogil=True)
def _squared(counts, k, truth):
    """Return the squared loss of the shares of votes, or nan if there are not exactly k votes."""
    if counts.sum() != k:
        return np.nan
    loss = 0.0
    for label in range(len(counts)):
        loss += (counts[label] / k - (label == truth)) ** 2
    return loss


@njit(cache=True, nogil=True)
def _split_votes(distances, labels, cut, tie, n_classes):
    """Count the rows of each class nearer than ``cut``, and the rows of each class tied with it.

    Distances within ``tie`` of ``cut`` are ties.
    """
    sure, rest = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes, dtype=np.int64)
    for row in range(len(distances)):
        if distances[row] < cut - tie:
            sure[labels[row]] += 1
        elif distances[row] <= cut + tie:
            rest[labels[row]] += 1
    return sure, rest


@njit(cache=True, nogil=True)
def _certain(sure, rest, k):
    """Return the number of votes for each class.

    ``sure`` counts the rows nearer than the tie, and ``rest`` counts the tied rows. If all tied
    rows have the same class, this class gets the remaining votes up to k. Otherwise ``sure`` is
    returned.
    """
    if (rest > 0).sum() == 1:
        sure[rest.argmax()] += k - sure.sum()
    return sure


@njit(cache=True, nogil=True)
def _elected(voters, n_classes):
    """Return the class with the most votes. Ties go to the first class."""
    counts = _counted(voters, n_classes)
    leader = 0
    for other in range(n_classes):
        if counts[other] > counts[leader]:
            leader = other
    return leader


@njit(cache=True, nogil=True)
def _tied(sure, rest, k):
    """Return the class that wins no matter which of the tied rows are among the k neighbours.

    Returns UNDECIDED if there is no such class.
    """
    n_classes, seats, claims = len(sure), k - sure.sum(), rest.sum()
    leader = 0
    for other in range(n_classes):  # find the class with the most guaranteed votes
        sure_of = sure[other] + max(0, seats - claims + rest[other])
        if sure_of > sure[leader] + max(0, seats - claims + rest[leader]):
            leader = other
    least = sure[leader] + max(0, seats - claims + rest[leader])
    for other in range(n_classes):
        most = sure[other] + min(rest[other], seats)
        if other != leader and (most > least or (most == least and other < leader)):
            return UNDECIDED
    return leader


# Rows are compared in tiles of this many rows, which stay in the L1 or L2 cache.
TILE = 16


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _city_block(a, b):
    total = 0.0
    for k in range(len(a)):
        total += abs(a[k] - b[k])
    return total


@njit(cache=True, nogil=True)
def city_block(points, start, stop):
    """Return the city-block distances between the rows from ``start`` to ``stop`` and all rows."""
    found = np.zeros((stop - start, len(points)))
    for top in range(start, stop, TILE):
        for left in range(0, len(points), TILE):
            for i in range(top, min(top + TILE, stop)):
                for j in range(left, min(left + TILE, len(points))):
                    if start <= j < i:  # both rows are in the given range
                        found[i - start, j] = _city_block(points[i], points[j])
                        found[j - start, i] = found[i - start, j]
                    elif j < start or j >= stop:
                        found[i - start, j] = _city_block(points[i], points[j])
    return found


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_differences(sums, a, b, weight, scale, cut):
    for k in range(len(sums)):
        distance = abs(a[k] - b[k])
        sums[k] += weight * (1.0 if distance > cut[k] else distance * scale[k])


@njit(cache=True, nogil=True)
def weighted_sums(table, start, weights, scale, cut):
    """Return, for each column, the weighted sum of its differences over pairs of rows.

    The pair of rows ``start`` + i and j has the weight weights[i, j]. The difference of two values
    is 1 if their distance exceeds ``cut``. Otherwise it is their distance times ``scale``.
    """
    sums = np.zeros(table.shape[1])
    stop = start + len(weights)
    for i in range(start, stop):
        for j in range(len(table)):
            weight = weights[i - start, j]
            if start <= j < stop:  # the pair occurs twice
                weight = weight + weights[j - start, i] if j < i else 0.0
            if weight != 0:
                _add_differences(sums, table[i], table[j], weight, scale, cut)
    return sums

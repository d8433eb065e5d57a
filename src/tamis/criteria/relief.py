"""The Relief family of filters, which compare each row with its nearest neighbours."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from tamis._arrays import Array, Mask, class_codes, in_range
from tamis._checks import Constraints, integer, one_of
from tamis.compiled import thresholds
from tamis.criteria.univariate import Univariate
from tamis.density.discrete import category_mask

#: Number of pairs of rows in memory at a time. An array of pairs then takes 8 MB, which is enough
#: for numpy to be efficient. With missing values there is one such array for each class, and the
#: pairs are divided among them.
PAIRS = 1_000_000

# Distances are rounded to multiples of this number, so that distances that differ only by rounding
# errors tie. Ties go to the row with the lowest index, whatever the order of the columns.
QUANTUM = 2.0**-40


@dataclass(eq=False, repr=False)
class Relief(Univariate):
    r"""Difference to neighbours in other classes, minus difference to neighbours in the same class.

    The score of each column is

    .. math:: \frac1N \sum_i \Big( \frac{1}{|M_i|} \sum_{j \in M_i} d(x_i, x_j)
              - \frac{1}{|H_i|} \sum_{j \in H_i} d(x_i, x_j) \Big)

    where :math:`H_i` are the neighbours of row i in the same class, :math:`M_i` the neighbours in
    other classes, and d is the difference in the column. With more than two classes, each other
    class is weighted by its share of the neighbours in other classes, times the number of other
    classes. For a numeric target, rows whose targets differ by less than a standard deviation are
    treated as the same class. Neighbours are found with all columns, so the scores include
    interactions (columns that are informative only in combination). Duplicate columns have the same
    score.

    The difference between two numbers is divided by the column's range. The difference between two
    categories is 0 or 1. In a table with both kinds of columns, a difference between two numbers is
    set to 1 if it exceeds a standard deviation. Otherwise numbers would score below categories.
    Scores agree with scikit-rebate, and may be negative.

    Parameters
    ----------
    algorithm : {"multisurf", "surf", "relieff"}, default="multisurf"
        How the neighbours of a row are defined:

        - "multisurf": rows nearer than the row's mean distance to others minus half a standard
          deviation;
        - "surf": rows nearer than the mean distance between all rows;
        - "relieff": the ``n_neighbors`` nearest rows of each class.
    n_neighbors : int, default=100
        Number of neighbours of each class for "relieff". If the class of a row has fewer other
        rows, the row itself is included.
    categories : sequence of int or bool, or None, default=None
        Categorical columns, as indices or as one boolean per column.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" treats numbers with more than 20 distinct values as
        numeric.

    Attributes
    ----------
    scores_ : array of shape (n_units,)
        Score of each unit (a column, or a group of columns that is selected as one).

    Notes
    -----
    Missing values (NaN) are ignored. The distance between two rows is the mean over the columns in
    which neither row has a missing value. A column is scored on the pairs of rows in which it is
    not missing. For N rows and d columns, time grows with N^2 d; memory does not grow with N^2.

    References
    ----------
    Kononenko (1994), Estimating attributes: analysis and extensions of RELIEF. Greene, Penrod,
    Kiralis and Moore (2009), Spatially uniform ReliefF. Urbanowicz, Olson, Schmitt, Meeker and
    Moore (2018), Benchmarking relief-based feature selection methods.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 5))
    >>> y = (X[:, 1] - 0.5) * (X[:, 3] - 0.5) > 0
    >>> Relief().fit(X, y).scores_.round(2)
    array([-0.03,  0.08, -0.03,  0.08, -0.03])
    """

    algorithm: str = "multisurf"
    _: KW_ONLY
    n_neighbors: int = 100
    categories: ArrayLike | None = None
    task: str = "auto"

    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "algorithm": one_of("relieff", "surf", "multisurf"),
        "n_neighbors": integer(1),
    }

    @property
    def monotone(self) -> bool:
        """False, because scores may be negative, so adding a column may lower the value."""
        return False

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # a scaled copy and a transposed copy of the table
        return 24.0 * n_samples * n_features + 12 * 8 * max(PAIRS, n_samples)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        if self.task_ == "regression" and np.ptp(y.astype(float)) == 0:
            # all rows have the same target
            self.scores_ = self._unit_scores(np.zeros(X.shape[1]))
            return
        kinds = category_mask("Relief", self.categories, X.shape[1])
        kinds = np.zeros(X.shape[1], dtype=bool) if kinds is None else kinds
        scales = Scales.of(in_range(X), kinds)
        near = _Neighbours(self.algorithm, self.n_neighbors, scales, kinds, self._relation(y))
        add_up = _sums_with_missing if scales.has_missing else _sums
        sums = np.sum([add_up(scales, block) for block in near.blocks()], axis=0)
        self.scores_ = self._unit_scores(sums / len(y))

    def _relation(self, y: NDArray[Any]) -> "_Relation":
        if self.task_ == "classification":
            classes, codes = class_codes(y)
            return _Relation(codes, len(classes))
        target = in_range(y.astype(float)[:, None])[:, 0]
        return _Relation(np.ones(len(y), dtype=np.intp), 2, target)


class Scales(NamedTuple):
    """A table, with the scale of the differences in each column."""

    table: Array
    #: Inverse of the range of each column.
    scale: Array
    #: Limit for each column above which a difference is set to 1. It is 0 for categories. For
    #: numbers it is a standard deviation if the table also has categories, otherwise infinity.
    cut: Array
    has_missing: bool

    @classmethod
    def of(cls, X: Array, kinds: Mask) -> "Scales":
        """Return the scaling for a table. ``kinds`` is a mask of its categorical columns."""
        table = np.ascontiguousarray(X)
        ranges = np.fmax.reduce(X, axis=0) - np.fmin.reduce(X, axis=0)
        ranges[~(ranges > 0) | kinds] = 1.0  # all differences of a constant column are 0
        cut = np.full(X.shape[1], np.inf)
        if kinds.any() and not kinds.all():
            cut = _mean_and_deviation(table.T)[1]
        cut[kinds] = 0.0
        return cls(table, 1 / ranges, cut, bool(np.isnan(table).any()))

    def differences(self, k: int, rows: slice) -> Array:
        """Return the scaled differences between the given rows and all rows in column k.

        They are NaN for missing values.
        """
        column = self.table[:, k]
        distance = np.abs(column[rows, None] - column)
        scaled = distance * self.scale[k]
        return np.where(distance > self.cut[k], 1.0, scaled)


def _mean_and_deviation(rows: Array) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each row, ignoring missing values."""
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, rows, 0.0).sum(axis=1) / count
    squares = np.where(known, rows - mean[:, None], 0.0) ** 2
    return mean, np.sqrt(squares.sum(axis=1) / count)


class _Relation(NamedTuple):
    """Relation between the targets of two rows, as an integer kind.

    For classes, the kind is the class of the second row. For a numeric target, it is 1 if the two
    targets are near each other, otherwise 0. ``codes`` contains, for each row, the kind that marks
    other rows as similar to it.
    """

    codes: NDArray[np.intp]
    n_kinds: int
    target: Array | None = None

    def kinds(self, rows: slice) -> NDArray[np.intp]:
        """Return the kind of every row relative to each given row, of shape (rows, all rows)."""
        if self.target is None:
            return np.broadcast_to(self.codes, (len(self.codes[rows]), len(self.codes)))
        distance = np.abs(self.target[rows, None] - self.target)
        return (distance < self.target.std(ddof=1)).astype(np.intp)


class _Block(NamedTuple):
    """Block of rows, a mask of their neighbours among all rows, and the kinds of all rows."""

    rows: slice
    near: Mask
    kinds: NDArray[np.intp]
    own: NDArray[np.intp]
    n_kinds: int

    def rates(self, counts: Array) -> Array:
        """Return the weight of a neighbour of each kind, of shape (rows, kinds).

        ``counts`` has the number of neighbours of each kind, in the same shape.
        """
        each = np.arange(len(counts))
        hits = counts[each, self.own]
        misses = counts.sum(axis=1) - hits
        rates = counts * (self.n_kinds - 1) / np.maximum(misses, 1)[:, None] ** 2
        rates[each, self.own] = -1 / np.maximum(hits, 1)
        return rates

    def members(self) -> Iterator[Mask]:
        """Iterate over the kinds; yield masks of their neighbours, of shape (rows, all rows)."""
        return (self.near & (self.kinds == kind) for kind in range(self.n_kinds))


class _Neighbours:
    """Search for the neighbours of all rows, one block of rows at a time."""

    def __init__(
        self, algorithm: str, n_neighbors: int, scales: Scales, kinds: Mask, relation: _Relation
    ):
        self.algorithm = algorithm
        self.n_neighbors = n_neighbors
        self.relation = relation
        self.scales = scales
        self._kinds = kinds
        if not scales.has_missing:
            numbers = np.compress(~kinds, scales.table, axis=1)
            self._numbers = (numbers - numbers.min(axis=0)) * scales.scale[~kinds]
            self._codes = np.compress(kinds, scales.table, axis=1)

    def blocks(self) -> Iterator[_Block]:
        """Iterate over blocks of rows with their neighbours."""
        reach: Any = self._mean_distance() if self.algorithm == "surf" else 0.0
        for rows in self._row_slices():
            distances, kinds = self._distances(rows), self.relation.kinds(rows)
            own = self.relation.codes[rows]
            if self.algorithm == "relieff":
                near = self._nearest(rows, distances, kinds)
            else:
                if self.algorithm == "multisurf":
                    reach = self._own_reach(rows, distances)
                near = distances < reach - QUANTUM
                np.fill_diagonal(near[:, rows], False)
            yield _Block(rows, near, kinds, own, self.relation.n_kinds)

    def _row_slices(self) -> Iterator[slice]:
        n_rows = len(self.scales.table)
        n_arrays = self.relation.n_kinds if self.scales.has_missing else 1
        size = max(1, PAIRS // (n_rows * n_arrays))
        for start in range(0, n_rows, size):
            yield slice(start, min(start + size, n_rows))

    def _distances(self, rows: slice) -> Array:
        """Return the distances between the given rows and all rows.

        A distance is NaN if in every column one of the two rows has a missing value.
        """
        if self.scales.has_missing:
            distances = self._distances_with_missing(rows)
        else:
            distances = self._complete_distances(rows)
        distances /= QUANTUM
        np.rint(distances, out=distances)
        distances *= QUANTUM
        return distances

    def _complete_distances(self, rows: slice) -> Array:
        distances: Array = np.zeros((rows.stop - rows.start, len(self.scales.table)))
        if self._numbers.size:
            distances += _city_block(self._numbers, rows)
        if self._codes.size:
            # like scikit-rebate, weight categories as if all columns were categories
            share = cdist(self._codes[rows], self._codes, "hamming")
            distances += share * len(self._kinds)
        return distances

    def _distances_with_missing(self, rows: slice) -> Array:
        """Return distances: the mean difference over the columns in which neither row is missing.

        All columns have the same weight.
        """
        n_rows = len(self.scales.table)
        total = np.zeros((rows.stop - rows.start, n_rows))
        for k, column in enumerate(self.scales.table.T):
            apart = np.abs(column[rows, None] - column)
            apart = (apart > 0).astype(float) if self._kinds[k] else apart * self.scales.scale[k]
            total += np.nan_to_num(apart, copy=False)
        known = (~np.isnan(self.scales.table)).astype(float)
        with np.errstate(invalid="ignore"):
            return np.asarray(total / (known[rows] @ known.T))

    def _mean_distance(self) -> float:
        """Return the mean of all distances, including the distance of each row to itself."""
        if self.scales.has_missing:
            distances = (self._distances(rows) for rows in self._row_slices())
            sums = [(np.nansum(block), np.isfinite(block).sum()) for block in distances]
            total, count = np.sum(sums, axis=0)
            return float(total / max(count, 1))  # possibly no two rows have a common column
        n_rows = len(self._numbers)
        # a sorted value is subtracted once for each larger value and added for each smaller one
        above = 2 * np.arange(n_rows) - n_rows + 1.0
        total = 2 * (above @ np.sort(self._numbers, axis=0)).sum()
        for codes in self._codes.T:
            equal = np.unique(codes, return_counts=True)[1].astype(float)
            total += (n_rows**2 - (equal**2).sum()) * len(self._kinds) / self._codes.shape[1]
        return float(total / n_rows**2)

    def _own_reach(self, rows: slice, distances: Array) -> Array:
        """Return each row's mean distance to the others minus half a standard deviation."""
        others = distances.copy()
        np.fill_diagonal(others[:, rows], np.nan)
        mean, deviation = _mean_and_deviation(others)
        return (mean - deviation / 2)[:, None]

    def _nearest(self, rows: slice, distances: Array, kinds: NDArray[np.intp]) -> Mask:
        """Return a mask of the nearest rows of each kind.

        The distance of a row to itself is set to the largest number, so that it comes last.
        """
        np.fill_diagonal(distances[:, rows], np.finfo(float).max)
        near = np.zeros(distances.shape, dtype=bool)
        for kind in range(self.relation.n_kinds):
            own = np.where(kinds == kind, distances, np.inf)
            last = min(self.n_neighbors, own.shape[1]) - 1
            farthest = np.partition(own, last, axis=1)[:, last, None]
            member = own <= np.minimum(farthest, np.finfo(float).max)
            surplus = member.sum(axis=1) - self.n_neighbors
            for row in np.flatnonzero(surplus > 0):  # of tied rows, the first ones stay
                tied = np.flatnonzero(own[row] == farthest[row])
                member[row, tied[-surplus[row] :]] = False
            near |= member
        return near


def _is_large(points: Array) -> bool:
    """Return whether compiled loops compare the rows of a table."""
    return len(points) * points.size >= thresholds.COMPARED_PAIRS


def _city_block(points: Array, rows: slice) -> Array:
    """Return the city-block distances between the given rows and all rows."""
    if _is_large(points):
        from tamis.compiled.neighbours import city_block

        calls = thresholds.in_calls(rows.stop - rows.start, float(points.size))
        parts = [
            city_block(points, rows.start + call.start, rows.start + call.stop) for call in calls
        ]
        return np.concatenate(parts)
    if rows == slice(0, len(points)):
        return np.asarray(squareform(pdist(points, "cityblock")))
    return np.asarray(cdist(points[rows], points, "cityblock"))


def _sums(scales: Scales, block: _Block) -> Array:
    """Return, for each column, the weighted sum of differences between a block and all rows."""
    counts = np.array([member.sum(axis=1) for member in block.members()], float).T
    weights = np.where(block.near, np.take_along_axis(block.rates(counts), block.kinds, 1), 0.0)
    if not _is_large(scales.table):
        columns = range(scales.table.shape[1])
        return np.array([np.vdot(weights, scales.differences(k, block.rows)) for k in columns])
    from tamis.compiled.neighbours import weighted_sums

    sums = np.zeros(scales.table.shape[1])
    for call in thresholds.in_calls(len(weights), float(scales.table.size)):
        first = block.rows.start + call.start
        sums += weighted_sums(scales.table, first, weights[call], scales.scale, scales.cut)
    return sums


def _sums_with_missing(scales: Scales, block: _Block) -> Array:
    """Return the same as :func:`_sums`, over the neighbours whose value is not missing."""
    members = np.array(list(block.members()), float)
    sums = np.zeros(scales.table.shape[1])
    for k, column in enumerate(scales.table.T):
        known = ~np.isnan(column)
        apart = np.nan_to_num(scales.differences(k, block.rows), copy=False)
        by_kind = np.einsum("kij,ij->ik", members, apart)
        rates = block.rates((members @ known.astype(float)).T)
        sums[k] = ((rates * by_kind).sum(axis=1))[known[block.rows]].sum()
    return sums

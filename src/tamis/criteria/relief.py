"""The Relief family: columns in which near rows of other classes differ, of the same agree."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from tamis._arrays import Array, Mask, class_codes, in_range
from tamis._checks import Constraints, integer, one_of
from tamis.compiled import thresholds
from tamis.criteria.univariate import Univariate
from tamis.density.discrete import category_mask

#: Pairs of rows (times classes) held at a time, 8 MB an array: enough for numpy to be busy, and
#: little beside the table.
PAIRS = 1_000_000

# Distances are whole multiples of this: those that differ by rounding are equal, so that of rows
# at one distance the lowest index is the nearer one whatever the order of the columns.
QUANTUM = 2.0**-40


class Relief(Univariate):
    r"""How much more a column differs among near rows of other classes than of the same one.

    .. math:: \frac1N \sum_i \Big( \frac{1}{|M_i|} \sum_{j \in M_i} d(x_i, x_j)
              - \frac{1}{|H_i|} \sum_{j \in H_i} d(x_i, x_j) \Big)

    for each column, where H are the neighbours of a row that have its class and M the others: of
    several classes each counts by its share among the neighbours, times their number. For a real
    target those within a standard deviation of it have "its class". The neighbours are found with
    all columns, so that a column which matters only beside others is seen. Copies score alike.

    A difference is the distance in units of the column's range, or 0 and 1 for categories. In a
    table of both kinds a distance of more than a standard deviation counts as 1 too, since numbers
    would score below categories otherwise. Scores are those of scikit-rebate, and may be negative.

    Parameters
    ----------
    algorithm : {"multisurf", "surf", "relieff"}, default="multisurf"
        Who the neighbours are: those nearer than the mean distance of the row less half a standard
        deviation, those nearer than the mean of all distances, or so many of each class.
    n_neighbors : int, default=100
        Neighbours of each class for "relieff". In a class with fewer rows the row itself is one.
    categories : sequence of int or bool, or None, default=None
        Indices of the columns of codes, or one boolean a column.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    Attributes
    ----------
    scores_ : array of shape (n_units,)

    Notes
    -----
    NaN is left out: the distance of two rows is the mean over the columns that both have, and a
    column is scored by the pairs that have it. Time is N^2 d; memory does not grow with N^2.

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

    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "algorithm": one_of("relieff", "surf", "multisurf"),
        "n_neighbors": integer(1),
    }

    def __init__(
        self,
        algorithm: str = "multisurf",
        *,
        n_neighbors: int = 100,
        categories: ArrayLike | None = None,
        task: str = "auto",
    ):
        self.algorithm = algorithm
        self.n_neighbors = n_neighbors
        self.categories = categories
        self.task = task

    @property
    def monotone(self) -> bool:
        """Scores may be negative."""
        return False

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # one copy of the table is scaled, one transposed
        return 24.0 * n_samples * n_features + 12 * 8 * max(PAIRS, n_samples)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        if self.task_ == "regression" and np.ptp(y.astype(float)) == 0:
            # no row differs from any other, so that no column can tell one apart
            self.scores_ = self._unit_scores(np.zeros(X.shape[1]))
            return
        kinds = category_mask("Relief", self.categories, X.shape[1])
        kinds = np.zeros(X.shape[1], dtype=bool) if kinds is None else kinds
        scales = Scales.of(in_range(X), kinds)
        near = _Neighbours(self.algorithm, self.n_neighbors, scales, kinds, self._relation(y))
        sums = np.zeros(X.shape[1])
        for block in near.blocks():
            sums += _gap_sums(scales, block) if scales.gaps else _sums(scales, block)
        self.scores_ = self._unit_scores(sums / len(y))

    def _relation(self, y: NDArray[Any]) -> "_Relation":
        if self.task_ == "classification":
            classes, codes = class_codes(y)
            return _Relation(codes, None, len(classes))
        target = in_range(y.astype(float)[:, None])[:, 0]
        return _Relation(None, target, 2)


class Scales(NamedTuple):
    """Columns, one a row, and how their differences count."""

    columns: Array
    #: One over the range.
    scale: Array
    #: Distances above it count as 1: none of numbers alone, those of a standard deviation beside
    #: categories, and any of categories.
    cut: Array
    gaps: bool

    @classmethod
    def of(cls, X: Array, kinds: Mask) -> "Scales":
        """The columns of a table, of which ``kinds`` are categories."""
        columns = np.ascontiguousarray(X.T)
        ranges = np.fmax.reduce(X, axis=0) - np.fmin.reduce(X, axis=0)
        ranges[~(ranges > 0) | kinds] = 1.0  # a constant column differs nowhere
        cut = np.full(len(columns), np.inf)
        if kinds.any() and not kinds.all():
            cut = _deviations(columns)
        cut[kinds] = 0.0
        return cls(columns, 1 / ranges, cut, bool(np.isnan(columns).any()))

    def differences(self, k: int, rows: slice) -> Array:
        """Differences of some rows to all in column k, NaN where one has none."""
        distance = np.abs(self.columns[k, rows, None] - self.columns[k])
        scaled = distance * self.scale[k]
        return np.where(distance > self.cut[k], 1.0, scaled)


def _deviations(columns: Array) -> Array:
    """Standard deviation of the entries that are there."""
    there = ~np.isnan(columns)
    count = np.maximum(there.sum(axis=1), 1)
    mean = np.where(there, columns, 0.0).sum(axis=1) / count
    squares = np.where(there, columns - mean[:, None], 0.0) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=1) / count))


class _Relation(NamedTuple):
    """How rows stand to each other: the class of the other one, or whether targets are near."""

    codes: NDArray[np.intp] | None
    target: Array | None
    n_kinds: int

    def kinds(self, rows: slice) -> NDArray[np.intp]:
        """Kind of every row as seen from some rows."""
        if self.target is None:
            assert self.codes is not None
            n_rows = len(self.codes[rows])
            return np.broadcast_to(self.codes, (n_rows, len(self.codes)))
        apart = np.abs(self.target[rows, None] - self.target)
        return (apart < self.target.std(ddof=1)).astype(np.intp)

    def own(self, rows: slice) -> NDArray[np.intp]:
        """The kind that counts as the same, of some rows."""
        if self.codes is not None:
            return self.codes[rows]
        assert self.target is not None
        return np.ones(len(self.target[rows]), dtype=np.intp)


class _Block(NamedTuple):
    """Some rows, and which others are near them."""

    rows: slice
    near: Mask
    kinds: NDArray[np.intp]
    own: NDArray[np.intp]
    n_kinds: int

    def rates(self, counts: Array) -> Array:
        """Weight of a neighbour, by kind, where so many are near: (rows, kinds)."""
        each = np.arange(len(counts))
        hits = counts[each, self.own]
        misses = counts.sum(axis=1) - hits
        rates = counts * (self.n_kinds - 1) / np.maximum(misses, 1)[:, None] ** 2
        rates[each, self.own] = -1 / np.maximum(hits, 1)
        return rates

    def members(self) -> Array:
        """Near rows of each kind, (kinds, rows, all)."""
        return np.array([self.near & (self.kinds == kind) for kind in range(self.n_kinds)], float)


class _Neighbours:
    """Who is near whom, some rows at a time."""

    def __init__(
        self, algorithm: str, n_neighbors: int, scales: Scales, kinds: Mask, relation: _Relation
    ):
        self.algorithm = algorithm
        self.n_neighbors = n_neighbors
        self.relation = relation
        self.scales = scales
        self._kinds = kinds
        if not scales.gaps:
            lowest = scales.columns.min(axis=1, keepdims=True)
            scaled = (scales.columns - lowest) * scales.scale[:, None]
            self._numbers = np.ascontiguousarray(scaled[~kinds].T)
            self._codes = np.ascontiguousarray(scales.columns[kinds].T)

    def blocks(self) -> Iterator[_Block]:
        """Blocks of rows with their neighbours."""
        reach: Any = self._mean_distance() if self.algorithm == "surf" else 0.0
        for rows in self._parts():
            distances, kinds = self._distances(rows), self.relation.kinds(rows)
            own = self.relation.own(rows)
            if self.algorithm == "relieff":
                near = self._nearest(rows, distances, kinds)
            else:
                if self.algorithm == "multisurf":
                    reach = self._own_reach(rows, distances)
                near = distances < reach - QUANTUM
                np.fill_diagonal(near[:, rows], False)
            yield _Block(rows, near, kinds, own, self.relation.n_kinds)

    def _parts(self) -> Iterator[slice]:
        n_rows = self.scales.columns.shape[1]
        size = max(1, PAIRS // (n_rows * self.relation.n_kinds))
        for start in range(0, n_rows, size):
            yield slice(start, min(start + size, n_rows))

    def _distances(self, rows: slice) -> Array:
        """Distances of some rows to all, NaN where they have no column in common."""
        distances = self._over_gaps(rows) if self.scales.gaps else self._plain(rows)
        distances /= QUANTUM
        np.rint(distances, out=distances)
        distances *= QUANTUM
        return distances

    def _plain(self, rows: slice) -> Array:
        distances: Array = np.zeros((rows.stop - rows.start, self.scales.columns.shape[1]))
        if self._numbers.size:
            distances += _city_block(self._numbers, rows)
        if self._codes.size:
            # scikit-rebate weighs categories so that they alone span the whole distance
            share = cdist(self._codes[rows], self._codes, "hamming")
            distances += share * len(self._kinds)
        return distances

    def _over_gaps(self, rows: slice) -> Array:
        """Mean difference over the columns that both rows have, each of the same weight."""
        n_rows = self.scales.columns.shape[1]
        total = np.zeros((rows.stop - rows.start, n_rows))
        for k, column in enumerate(self.scales.columns):
            apart = np.abs(column[rows, None] - column)
            apart = (apart > 0).astype(float) if self._kinds[k] else apart * self.scales.scale[k]
            total += np.nan_to_num(apart, copy=False)
        there = (~np.isnan(self.scales.columns)).astype(float)
        with np.errstate(invalid="ignore"):
            return np.asarray(total / (there[:, rows].T @ there))

    def _mean_distance(self) -> float:
        """Mean of all distances, those of rows to themselves included."""
        if self.scales.gaps:
            sums = [_sum_and_count(self._distances(rows)) for rows in self._parts()]
            total, count = np.sum(sums, axis=0)
            return float(total / max(count, 1))  # no two rows may have a column in common
        n_rows = len(self._numbers)
        # in order, a value is above as many as are before it and below those behind it
        above = 2 * np.arange(n_rows) - n_rows + 1.0
        total = 2 * (above @ np.sort(self._numbers, axis=0)).sum()
        for codes in self._codes.T:
            equal = np.unique(codes, return_counts=True)[1].astype(float)
            total += (n_rows**2 - (equal**2).sum()) * len(self._kinds) / self._codes.shape[1]
        return float(total / n_rows**2)

    def _own_reach(self, rows: slice, distances: Array) -> Array:
        """Mean less half a standard deviation of the distances of each row to the others."""
        others = distances.copy()
        np.fill_diagonal(others[:, rows], np.nan)
        there = ~np.isnan(others)
        count = np.maximum(there.sum(axis=1), 1)
        mean = np.where(there, others, 0.0).sum(axis=1) / count
        squares = np.where(there, others - mean[:, None], 0.0) ** 2
        return np.asarray(mean - np.sqrt(squares.sum(axis=1) / count) / 2)[:, None]

    def _nearest(self, rows: slice, distances: Array, kinds: NDArray[np.intp]) -> Mask:
        """The nearest rows of each kind; a row is further from itself than any other is."""
        np.fill_diagonal(distances[:, rows], np.finfo(float).max)
        order = np.argsort(distances, axis=1, kind="stable")
        seen = np.take_along_axis(kinds, order, axis=1)
        near = np.zeros(distances.shape, dtype=bool)
        for kind in range(self.relation.n_kinds):
            member = seen == kind
            first = member & (np.cumsum(member, axis=1) <= self.n_neighbors)
            near |= first
        found = np.empty_like(near)
        np.put_along_axis(found, order, near, axis=1)
        return found


def _sum_and_count(values: Array) -> tuple[float, int]:
    return float(np.nansum(values)), int(np.isfinite(values).sum())


def _city_block(points: Array, rows: slice) -> Array:
    """Sums of absolute differences of some rows to all; of all rows each pair once."""
    if rows == slice(0, len(points)):
        return np.asarray(squareform(pdist(points, "cityblock")))
    return np.asarray(cdist(points[rows], points, "cityblock"))


def _sums(scales: Scales, block: _Block) -> Array:
    """Weighted differences of a block to all rows, each column."""
    counts = block.members().sum(axis=2).T
    weights = np.where(block.near, np.take_along_axis(block.rates(counts), block.kinds, 1), 0.0)
    n_columns, n_rows = scales.columns.shape
    if n_rows**2 * n_columns < thresholds.COMPARED_PAIRS:
        differences = (scales.differences(k, block.rows) for k in range(n_columns))
        return np.array([np.vdot(weights, apart) for apart in differences])
    from tamis.compiled.neighbours import weighted_sums

    rows = np.arange(block.rows.start, block.rows.stop)
    sums = np.zeros(n_columns)
    for part in thresholds.in_calls(len(rows), float(n_rows) * n_columns):
        told = (scales.columns, rows[part], weights[part], scales.scale, scales.cut)
        sums += weighted_sums(*told)
    return sums


def _gap_sums(scales: Scales, block: _Block) -> Array:
    """As :func:`_sums`, where the neighbours that count are those that have the column."""
    members = block.members()
    sums = np.zeros(len(scales.columns))
    for k, column in enumerate(scales.columns):
        there = ~np.isnan(column)
        apart = np.nan_to_num(scales.differences(k, block.rows), copy=False)
        told = np.einsum("kij,ij->ik", members, apart)
        rates = block.rates((members @ there.astype(float)).T)
        sums[k] = ((rates * told).sum(axis=1))[there[block.rows]].sum()
    return sums

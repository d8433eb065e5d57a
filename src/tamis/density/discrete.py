"""Columns cut into integer levels, and the joint entropies of pairs of columns."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from tamis._arrays import BLOCK, Array, Mask, column_blocks
from tamis._namespace import device_asked
from tamis._sparse import is_sparse
from tamis.compiled import thresholds
from tamis.compiled.thresholds import shared_calls
from tamis.density.chance import Chance, chance_of
from tamis.density.one_hot import OneHotLevels
from tamis.exceptions import InvalidParameter

# Information is rounded to multiples of this number, about 2e-13 nats, to remove rounding errors.
# Independent variables then have an information of exactly 0, columns that differ only in the names
# of their levels tie, and sums do not depend on the order of terms.
QUANTUM = 2.0**-42

# Number that replaces NaN in a column. It is the largest float, above all measured values, so that
# missing values become the last level.
MISSING = np.finfo(np.float64).max

# Sorting a value takes about as long as this number of comparisons.
SORT_TERMS = 10

#: Bit sets of the levels of some columns, the size of each set, and the first set of each column.
BitSets: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]


class Coded:
    """Columns cut into levels, and the entropies that information criteria need.

    A column with at most ``n_bins`` distinct values keeps them as levels. Others are cut into
    ``n_bins`` bins of equal frequency (equal values share a bin) or of equal width. With
    ``binning="codes"``, and in columns marked by ``categories``, every distinct value is a level.
    Missing values (NaN) are the last level of their column; bins are cut from the other values.

    >>> coded = Coded(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0], [4.0, 7.0]]), 2)
    >>> coded.codes.T
    array([[0, 0],
           [0, 0],
           [1, 1],
           [1, 1]], dtype=uint16)
    >>> coded.entropy.round(3)
    array([0.693, 0.693])
    """

    def __init__(
        self, X: Array, n_bins: int, binning: str = "frequency", categories: Mask | None = None
    ):
        self._columns = np.ascontiguousarray(X.T)  # a view of a column-major X
        self.n_samples = len(X)
        self.compiled = X.size >= thresholds.COUNTED_ENTRIES
        #: Mask of the columns with missing values, which are their last level.
        self.has_missing: Mask = np.zeros(X.shape[1], dtype=bool)
        if np.isnan(self._columns.min(initial=0.0)):
            self.has_missing = np.asarray(np.isnan(self._columns).any(axis=1))
        if self.has_missing.any() or (categories is not None and categories.any()):
            kinds = np.zeros(X.shape[1], dtype=bool) if categories is None else categories
            self.cuts, self.n_levels = _mixed_cuts(
                self._columns, n_bins, binning, self.compiled, kinds, self.has_missing
            )
        else:
            self.cuts, self.n_levels = level_cuts(self._columns, n_bins, binning, self.compiled)
        if self.has_missing.any():
            self._columns = np.where(np.isnan(self._columns), MISSING, self._columns)
        self._table = n_log_n(self.n_samples)

    @cached_property
    def codes(self) -> NDArray[np.unsignedinteger[Any]]:
        """Level of each value, as an array of (columns, rows)."""
        few = self.n_levels.max(initial=1) <= np.iinfo(np.uint16).max
        codes: NDArray[np.unsignedinteger[Any]]
        codes = np.zeros(self._columns.shape, dtype=np.uint16 if few else np.uint32)
        if self.compiled:
            from tamis.compiled.counts import encode

            def encode_some(some: slice) -> None:
                encode(self._columns[some], self.cuts[some], self.n_levels[some], codes[some])

            self._by_columns(encode_some, self.n_samples)
        else:
            for cut in self.cuts.T:
                codes += self._columns >= cut[:, None]
        return codes

    @cached_property
    def entropy(self) -> Array:
        """Entropy of each column, in nats."""
        return self.joint_entropy(np.zeros(self.n_samples, dtype=np.intp))

    def column(self, j: int) -> NDArray[np.intp]:
        """Return the level of each row in a single column."""
        cuts = self.cuts[j, : self.n_levels[j] - 1]
        return np.searchsorted(cuts, self._columns[j], side="right")

    def crossed(self, one: NDArray[np.intp], other: NDArray[np.intp]) -> NDArray[np.intp]:
        """Combine two coded variables into one, with a level for each combination that occurs."""
        both = one * (int(other.max()) + 1) + other
        return np.unique(both, return_inverse=True)[1].astype(np.intp)

    def entropy_of(self, codes: NDArray[np.intp]) -> float:
        """Return the entropy of a coded variable, in nats."""
        return entropy_of(codes)

    def joined(self, groups: Sequence[NDArray[np.intp]], *, by_pairs: bool = False) -> "Coded":
        """Combine each group of columns into a single variable.

        Its levels are the combinations of levels that occur. A missing value is a level of its
        column. With ``by_pairs``, a group is missing if one of its columns is missing.
        """
        joint = np.empty((self.n_samples, len(groups)))
        for place, columns in enumerate(groups):
            codes = self.column(int(columns[0]))
            for j in columns[1:]:
                codes = codes * int(self.n_levels[j]) + self.column(int(j))
                codes = np.unique(codes, return_inverse=True)[1].astype(np.intp)
            joint[:, place] = codes
            if by_pairs:
                for j in columns:
                    joint[~self.present(int(j)), place] = np.nan
        # with this number of bins no column is cut again
        return Coded(joint, max(2, int(np.nanmax(joint, initial=0)) + 1))

    def present(self, j: int) -> Mask:
        """Return a mask of the rows in which a column is not missing."""
        if not self.has_missing[j]:
            return np.ones(self.n_samples, dtype=bool)
        return np.asarray(self._columns[j] != MISSING)

    def available_tables(
        self, target: NDArray[np.intp], pick: int | None = None
    ) -> Iterator[NDArray[np.int64]]:
        """Iterate over arrays of joint counts, for a block of columns at a time.

        An array has the axes (columns, levels of the picked column, levels of the target, levels of
        the column). Rows in which the column or the picked column is missing are not counted. If
        ``pick`` is None, its axis has a single level.
        """
        if pick is None:
            rows, picked = np.ones(self.n_samples, dtype=bool), np.zeros(self.n_samples, np.intp)
        else:
            rows, picked = self.present(pick), self.column(pick)
        shape = int(picked.max()) + 1, int(target.max()) + 1
        n_pivot, width = shape[0] * shape[1], int(self.n_levels.max(initial=1))
        pivot = (picked * shape[1] + target)[rows]
        at_once = max(1, BLOCK // max(len(pivot), n_pivot * width))
        for start in range(0, len(self.n_levels), at_once):
            some = slice(start, start + at_once)
            codes = self.codes[some][:, rows].astype(np.intp)
            last = np.where(self.has_missing[some], self.n_levels[some] - 1, -1)
            cells = (np.arange(len(codes))[:, None] * n_pivot + pivot) * width + codes
            n_cells = len(codes) * n_pivot * width
            counts = np.bincount(cells[codes != last[:, None]], minlength=n_cells)
            yield counts.reshape(len(codes), *shape, width)

    def joint_entropy(self, pivot: NDArray[np.intp], chance: Chance | None = None) -> Array:
        """Return the entropy of the pair (column, pivot) for each column, in nats.

        H = log N - (sum of n log n over the contingency table) / N, with n log n read from a table.
        ``chance`` replaces n log n by different values for each level of the pivot.
        """
        n_pivot = int(pivot.max()) + 1
        if device_asked() is not None:
            return self._entropies(self._one_hot.sums(pivot, n_pivot, chance))
        values = chance or self._plain(n_pivot)
        if not self.compiled:
            sums = self._sums_by_bincount(pivot, *values)
        elif (n_pivot - 1) * (self.n_levels.mean() - 1) <= thresholds.CELLS_BY_BITS:
            sums = self._sums_by_bits(pivot, *values)
        else:
            from tamis.compiled.counts import sums_by_histogram

            codes, fixed = self.codes, (pivot, *values)
            parts = shared_calls(
                lambda some: sums_by_histogram(codes[some], self.n_levels[some], *fixed),
                len(codes), self.n_samples,
            )  # fmt: skip
            sums = np.concatenate(parts)
        return self._entropies(sums)

    def _plain(self, n_pivot: int) -> Chance:
        """Return a table of n log n, the same for every level of a pivot."""
        return Chance(self._table, np.zeros(n_pivot, dtype=np.int64))

    def chance_entropy(
        self, variable: NDArray[np.intp], given: NDArray[np.intp] | None = None
    ) -> Array:
        """Return the expected entropy of (column, given, variable) for each column, in nats.

        The expectation is over shuffles of the variable within the levels of ``given``, or among
        all rows if it is None.
        """
        pivot = np.zeros(self.n_samples, dtype=np.intp) if given is None else given
        width = int(variable.max()) + 1
        cells, sizes = np.unique(pivot * width + variable, return_counts=True)
        return self.joint_entropy(pivot, chance_of(cells // width, sizes, int(pivot.max()) + 1))

    def joint_with(self, j: int) -> Array:
        """Return the entropy of the pair (column, column j) for each column, in nats."""
        if device_asked() is None:
            return self.joint_entropy(self.column(j))
        return self._entropies(self._one_hot.sums_with(j))

    def _entropies(self, sums: Array) -> Array:
        return np.asarray(settled(np.log(self.n_samples) - sums / self.n_samples))

    @cached_property
    def _one_hot(self) -> OneHotLevels:
        return OneHotLevels(self.codes, self.n_levels, self._table)

    def information(self, codes: NDArray[np.intp], *, adjusted: bool = False) -> Array:
        """Return the mutual information of each column with a coded variable, in nats."""
        if adjusted:
            return rounded(self.chance_entropy(codes) - self.joint_entropy(codes))
        return settled(self.entropy + entropy_of(codes) - self.joint_entropy(codes))

    def _sums_by_bincount(
        self, pivot: NDArray[np.intp], values: Array, start: NDArray[np.int64]
    ) -> Array:
        width = int(self.n_levels.max(initial=1))
        n_cells = len(start) * width
        cells = np.arange(len(self.codes))[:, None] * n_cells + pivot * width + self.codes
        counts = np.bincount(cells.ravel(), minlength=len(self.codes) * n_cells)
        counts = counts.reshape(-1, n_cells) + np.repeat(start, width)
        return np.asarray(values[counts].sum(axis=1))

    def _sums_by_bits(
        self, pivot: NDArray[np.intp], values: Array, offset: NDArray[np.int64]
    ) -> Array:
        from tamis.compiled.counts import sums_by_bits

        n_pivot = len(offset)
        bits, sizes, start = self._bits
        cuts, row = np.arange(1.0, n_pivot)[None, :], pivot[None, :].astype(float)
        pivot_bits, pivot_sizes, _ = self._packed(row, cuts, np.array([0, n_pivot - 1]))
        pivot_sets = pivot_bits, pivot_sizes, self.n_samples, values, offset
        parts = self._by_columns(
            lambda some: sums_by_bits(bits, sizes, start[some.start : some.stop + 1], *pivot_sets),
            self.n_samples / 64 * n_pivot,
        )
        return np.concatenate(parts)

    def _by_columns(self, function: Callable[[slice], Any], terms: float) -> list[Any]:
        """Run a compiled loop over slices of columns, in several threads if it is long.

        ``terms`` is the number of terms that the loop computes for each level of a column.
        """
        return shared_calls(function, len(self._columns), terms * float(self.n_levels.mean()))

    @cached_property
    def _bits(self) -> BitSets:
        start = np.concatenate([[0], np.cumsum(self.n_levels - 1)])
        return self._packed(self._columns, self.cuts, start)

    def _packed(self, columns: Array, cuts: Array, start: NDArray[np.int64]) -> BitSets:
        """Return the bit sets of all levels except the first, their sizes, and ``start``."""
        from tamis.compiled.counts import pack

        bits = np.empty((start[-1], (self.n_samples + 63) // 64), dtype=np.uint64)
        sizes = np.zeros(start[-1], dtype=np.int64)

        def pack_some(some: slice) -> None:
            pack(columns[some], cuts[some], start[some.start : some.stop + 1], bits, sizes)

        shared_calls(pack_some, len(columns), self.n_samples * float(self.n_levels.mean()))
        return bits, sizes, start


def level_cuts(columns: Array, n_bins: int, binning: str, compiled: bool) -> tuple[Array, Any]:
    """Return the cuts of each column, padded with infinity, and its number of levels.

    A cut is the smallest value of a level. Cuts are in ascending order. The first level needs none.
    """
    most = columns.shape[1] if binning == "codes" else n_bins
    levels, count = _few_levels(columns, most, compiled)
    cuts = levels[:, 1:]
    many = np.flatnonzero(count > most)
    if len(many):
        if binning == "frequency":
            terms = columns.shape[1] * float(SORT_TERMS)
            parts = shared_calls(
                lambda some: _by_frequency(columns, many[some], n_bins), len(many), terms
            )
            found = np.concatenate(parts)
        else:
            found = width_cuts(columns.min(axis=1)[many], columns.max(axis=1)[many], n_bins)
        cuts[many] = found
        count[many] = 1 + np.isfinite(found).sum(axis=1)
    return np.ascontiguousarray(cuts[:, : count.max(initial=1) - 1]), count


def _mixed_cuts(
    columns: Array, n_bins: int, binning: str, compiled: bool, categories: Mask, has_missing: Mask
) -> tuple[Array, Any]:
    """Return the same as :func:`level_cuts` for a table with categories or missing values."""
    found: list[tuple[Any, Array, Any]] = []
    for kind, rule in ((categories, "codes"), (~categories, binning)):
        complete = np.flatnonzero(kind & ~has_missing)
        if len(complete):
            found.append((complete, *level_cuts(columns[complete], n_bins, rule, compiled)))
        for j in np.flatnonzero(kind & has_missing):
            known = columns[j][~np.isnan(columns[j])]
            if len(known):
                cuts, n_levels = level_cuts(known[None], n_bins, rule, False)
                found.append(([j], np.append(cuts, [[MISSING]], axis=1), n_levels + 1))
    width = max((cuts.shape[1] for _, cuts, _ in found), default=0)
    together = np.full((len(columns), width), np.inf)
    count = np.ones(len(columns), dtype=np.int64)
    for which, cuts, n_levels in found:
        together[which, : cuts.shape[1]] = cuts
        count[which] = n_levels
    return together, count


def _few_levels(columns: Array, most: int, compiled: bool) -> tuple[Array, NDArray[np.int64]]:
    """Return the sorted distinct values of each column, padded with infinity, and their number."""
    # the loop compares each value with every level; if most values are distinct, sorting is faster
    if compiled and most < columns.shape[1] // 8:
        from tamis.compiled.counts import few_levels

        terms = columns.shape[1] * float(most)
        found = shared_calls(lambda some: few_levels(columns[some], most), len(columns), terms)
        levels, count = map(np.concatenate, zip(*found, strict=True))
        return levels, count
    ordered = np.sort(columns, axis=1)
    new = _rising(ordered, np.full(len(ordered), -np.inf))
    count = new.sum(axis=1)
    levels = np.full((len(columns), most), np.inf)
    new[count > most] = False
    rank = np.cumsum(new, axis=1) - 1
    levels[np.nonzero(new)[0], rank[new]] = ordered[new]
    return levels, np.minimum(count, most + 1)


def _by_frequency(columns: Array, some: NDArray[np.intp], n_bins: int) -> Array:
    """Return cuts that split the sorted values into equal parts. Equal values share a bin."""
    n_samples = columns.shape[1]
    starts = (np.arange(1, n_bins) * n_samples) // n_bins
    cuts = np.empty((len(some), n_bins - 1))
    for block in column_blocks(n_samples, len(some)):
        ordered = columns[some[block]]
        ordered.sort(axis=1)
        cuts[block] = distinct_cuts(ordered[:, starts], ordered[:, 0])
    return cuts


def width_cuts(low: Array, high: Array, n_bins: int) -> Array:
    """Return cuts that split the range of each column into bins of equal width."""
    share = np.arange(1, n_bins) / n_bins
    # computed as a convex combination, because high - low may overflow
    cuts = low[:, None] * (1 - share) + high[:, None] * share
    return distinct_cuts(cuts, low)


def distinct_cuts(cuts: Array, low: Array) -> Array:
    """Return the cuts without repetitions, and without a cut that leaves the lowest level empty.

    Removed cuts are replaced by infinity at the end.
    """
    return np.sort(np.where(_rising(cuts, low), cuts, np.inf), axis=1)


def _rising(rows: Array, before: Array) -> Mask:
    """Return a mask of the values that are greater than the value before them in their row.

    ``before`` has the value before the first. Differences are not computed, because they could
    overflow.
    """
    return rows > np.column_stack([before, rows[:, :-1]])


def coded_columns(
    X: Array, n_bins: int | None, binning: str, categories: Mask | None = None
) -> Coded:
    """Cut columns into levels. ``n_bins=None`` means the cube root of the number of rows."""
    n_bins = number_of_bins(X.shape[0], n_bins)
    if is_sparse(X):
        from tamis.density.sparse_levels import SparseCoded

        return SparseCoded(X, n_bins, binning, categories)
    return Coded(X, n_bins, binning, categories)


def number_of_bins(n_samples: int, n_bins: int | None) -> int:
    """Return the number of bins, by default the cube root of the number of rows, rounded up."""
    return int(np.ceil(np.cbrt(n_samples))) if n_bins is None else int(n_bins)


def category_mask(name: str, categories: Any, n_columns: int) -> Mask | None:
    """Return a mask of the categorical columns, given indices or a mask, or None if given None.

    >>> category_mask("MRMR", [2], 3)
    array([False, False,  True])
    """
    if categories is None:
        return None
    given = np.asarray(categories)
    if given.ndim == 1 and given.dtype == bool and len(given) == n_columns:
        return given
    if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
        raise InvalidParameter(
            f"{name} needs categories as indices of columns or as one boolean for each of the "
            f"{n_columns} columns, not {categories!r}."
        )
    if len(given) and not (given.min() >= 0 and given.max() < n_columns):
        raise InvalidParameter(
            f"{name} needs categories among the columns 0 to {n_columns - 1}, not "
            f"{given[(given < 0) | (given >= n_columns)][0]}."
        )
    mask = np.zeros(n_columns, dtype=bool)
    mask[given.astype(np.intp)] = True
    return mask


def coding_cost(n_samples: int, n_features: int) -> float:
    """Estimate the memory in bytes that cutting columns into levels needs, one byte per value."""
    return 2.25 * n_samples * n_features + 100.0 * n_samples + 3e5


def n_log_n(most: int) -> Array:
    """Return n log n for the counts from 0 (with 0 log 0 = 0) to the largest."""
    counts = np.arange(most + 1, dtype=float)
    return counts * np.log(np.maximum(counts, 1))


def entropy_of(codes: NDArray[np.intp]) -> float:
    """Return the entropy of a coded variable, in nats."""
    share = np.bincount(codes) / len(codes)
    return float(settled(entr(share).sum()))


def settled(information: Any) -> Any:
    """Round information to multiples of ``QUANTUM``, and negative values to 0."""
    return np.maximum(np.rint(information / QUANTUM), 0.0) * QUANTUM


def rounded(information: Any) -> Any:
    """Round adjusted information, which may be negative, to multiples of ``QUANTUM``."""
    return np.rint(information / QUANTUM) * QUANTUM + 0.0  # no -0.0

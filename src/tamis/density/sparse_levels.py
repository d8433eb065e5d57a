"""Levels of the columns of a sparse table. Only entries outside the level of 0 are stored."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask, column_blocks
from tamis._sparse import entry_columns
from tamis.density.chance import Chance
from tamis.density.discrete import Coded, level_cuts, n_log_n


class SparseCoded(Coded):
    """Columns of a sparse table cut into the same levels as by :class:`Coded`.

    Level 0 is the level that contains the value 0. Only entries of other levels are stored, by
    column. Columns with more values than bins are cut a block of columns at a time.

    >>> from scipy.sparse import csc_array
    >>> coded = SparseCoded(csc_array([[0.0, 5.0], [2.0, 0.0], [0.0, 0.0], [3.0, 0.0]]), 3)
    >>> coded.column(0), coded.n_levels
    (array([0, 1, 0, 2]), array([3, 2]))
    """

    def __init__(
        self, X: Any, n_bins: int, binning: str = "frequency", categories: Mask | None = None
    ):
        self.n_samples, n_columns = X.shape
        self.has_missing = np.zeros(n_columns, dtype=bool)
        self._table = n_log_n(self.n_samples)
        codes, self.n_levels = _ranked(X)
        most = np.full(n_columns, self.n_samples if binning == "codes" else n_bins)
        if categories is not None:
            most[categories] = self.n_samples
        # n_levels includes level 0, which is empty in a column without zeros
        n_values = self.n_levels - (np.diff(X.indptr) == self.n_samples)
        many = np.flatnonzero(n_values > most)
        for block in column_blocks(self.n_samples, len(many)):
            self._cut(X, many[block], n_bins, binning, codes)
        held = codes > 0
        columns = entry_columns(X)[held]
        self._start = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=n_columns))])
        self._rows, self._levels = X.indices[held].astype(np.intp), codes[held]

    def _cut(
        self, X: Any, some: NDArray[np.intp], n_bins: int, binning: str, codes: NDArray[np.intp]
    ) -> None:
        """Cut columns with many values as :class:`Coded` does.

        The levels of their entries are written to ``codes``.
        """
        cuts, counts = level_cuts(
            np.ascontiguousarray(X[:, some].toarray().T), n_bins, binning, compiled=False
        )
        for j, own, count in zip(some, cuts, counts, strict=True):
            entries = slice(X.indptr[j], X.indptr[j + 1])
            level = np.searchsorted(own[: count - 1], X.data[entries], side="right")
            zero = int(np.searchsorted(own[: count - 1], 0.0, side="right"))
            codes[entries] = np.where(level == zero, 0, level + (level < zero))
            self.n_levels[j] = count

    def column(self, j: int) -> NDArray[np.intp]:
        """Return the level of each row in a single column."""
        levels = np.zeros(self.n_samples, dtype=np.intp)
        some = slice(self._start[j], self._start[j + 1])
        levels[self._rows[some]] = self._levels[some]
        return levels

    def joint_entropy(self, pivot: NDArray[np.intp], chance: Chance | None = None) -> Array:
        """Return the entropy of the pair (column, pivot) for each column, in nats."""
        from tamis.compiled.counts import sums_by_entries

        sizes = np.bincount(pivot)
        entries = self._start, self._rows, self._levels, self.n_levels
        values = chance or self._plain(len(sizes))
        return self._entropies(sums_by_entries(*entries, pivot, sizes, *values))

    def joint_with(self, j: int) -> Array:
        """Return the entropy of the pair (column, column j) for each column, in nats."""
        return self.joint_entropy(self.column(j))


def _ranked(X: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rank of each entry among the distinct non-zero values of its column, from 1.

    The second result is the number of levels of each column: these values, and 0.
    """
    columns = entry_columns(X)
    order = np.lexsort((X.data, columns))
    value, column = X.data[order], columns[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (value[1:] != value[:-1]) | (column[1:] != column[:-1])
    n_values = np.bincount(column[new], minlength=X.shape[1])
    before = np.concatenate([[0], np.cumsum(n_values)])[column]
    codes = np.empty(len(order), dtype=np.intp)
    codes[order] = np.cumsum(new) - before
    return codes, n_values + 1

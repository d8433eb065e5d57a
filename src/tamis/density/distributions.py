"""Distances between the distribution functions of classes, from row blocks.

Values are represented by 64-bit keys that have the same order. For each class, the keys are counted
by their leading bits. A cell contains the values that share these bits. The counts determine the
distribution functions at the end of each cell, and bound the distance within the cell. Cells that
could contain a larger distance than the largest found so far are refined, until there are no such
cells.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.blocks import quantiles
from tamis.blocks.labels import Labels
from tamis.blocks.quantiles import KeyCells, KeyCounts, KeysListed, KeysWithin, columns_of
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable


@dataclass(eq=False, repr=False)
class ByClass(RowStatistic):
    """A statistic computed separately for the rows of each class.

    Parameters
    ----------
    inner : RowStatistic
        The statistic.
    labels : Labels
        The classes.
    """

    inner: RowStatistic
    labels: Labels

    def empty(self) -> Any:
        return [self.inner.empty() for _ in self.labels.values]

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        codes = self.labels.codes(block.y)
        for k in np.unique(codes):
            own = block._replace(X=np.asfortranarray(block.X[codes == k]), y=None)
            state[k] = self.inner.learn_block(state[k], own)
        return state

    def merge(self, state: Any, other: Any) -> Any:
        return [self.inner.merge(one, two) for one, two in zip(state, other, strict=True)]

    def finish(self, state: Any) -> Any:
        return [self.inner.finish(one) for one in state]


class Distances:
    """Largest distance found so far, for each column, between a class and the other rows.

    It is the distance between the distribution functions of the column in the class and in the
    other rows.

    Parameters
    ----------
    sizes : array of int
        Number of rows of each class.
    n_columns : int
        Number of columns.
    """

    def __init__(self, sizes: NDArray[np.int64], n_columns: int):
        self.inside, self.outside = sizes, sizes.sum() - sizes
        self.best = np.zeros(n_columns)

    def look(
        self, columns: NDArray[np.intp], before: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Update the distances with the counts of adjacent cells. Return a mask of cells to refine.

        ``before``, of shape (runs, classes), counts the rows below the first cell of each run.
        ``counts``, of shape (runs, cells, classes), counts the rows in each cell.
        """
        ends = before[:, None] + np.cumsum(counts, axis=1)
        begins = ends - counts
        inside, outside = self._shares(ends)
        np.maximum.at(self.best, columns, np.abs(inside - outside).max(axis=(1, 2), initial=0.0))
        low_inside, low_outside = self._shares(begins)
        most = np.maximum(inside - low_outside, outside - low_inside).max(axis=2, initial=0.0)
        # a cell with a single row need not be refined: its distances are those at its two ends
        return np.asarray((most > self.best[columns, None]) & (counts.sum(axis=2) > 1))

    def look_listed(
        self, columns: NDArray[np.intp], before: NDArray[np.int64], listed: list[Any]
    ) -> None:
        """Update the distances with cells whose keys have been listed, class by class."""
        for run, column in enumerate(columns):
            own = [keys[run] for keys in listed]
            values = np.unique(np.concatenate(own))
            below = np.column_stack([np.searchsorted(one, values, side="right") for one in own])
            counts = np.diff(below, axis=0, prepend=0)
            self.look(np.array([column]), before[[run]], counts[None])

    def _shares(self, below: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the share of rows below each value, in each class and in the other classes."""
        rest = below.sum(axis=2, keepdims=True) - below
        return below / self.inside, rest / self.outside


def largest_distances(table: BlockTable) -> Array:
    """Return, for each column, the largest distance between distribution functions over classes.

    A class is compared with all other rows. The result is exact, as if the column were sorted.
    """
    labels, n_columns = table.labels, table.shape[1]
    known = Distances(labels.counts, n_columns)
    first = KeyCounts(columns_of, n_columns, len(labels.values))
    counts = np.stack(table.reduce(ByClass(first, labels)), axis=2)
    columns, before = np.arange(n_columns), np.zeros((n_columns, len(labels.values)), np.int64)
    beginnings, n_bits = np.zeros(n_columns, dtype=np.uint64), 0
    finer = first.n_bits
    while True:
        run, cell = np.nonzero(known.look(columns, before, counts))
        n_bits += finer
        if not len(run) or n_bits == 64:
            return known.best
        before = before[run] + counts[run].cumsum(axis=1)[np.arange(len(run)), cell]
        before -= counts[run, cell]
        columns, n_rows = columns[run], int(counts[run, cell].sum())
        beginnings = (beginnings[run] << np.uint64(finer)) | cell.astype(np.uint64)
        start = np.searchsorted(columns, np.arange(n_columns + 1))
        cells = KeyCells(start, beginnings, n_bits)
        if n_rows <= quantiles.LISTED:
            listed = table.reduce(ByClass(KeysListed(columns_of, cells), labels))
            known.look_listed(columns, before, listed)
            return known.best
        finer = max(1, int(np.log2(quantiles.REFINED / len(columns))))
        finer = min(64 - n_bits, finer)
        found = table.reduce(ByClass(KeysWithin(columns_of, cells, finer), labels))
        counts = np.stack(found, axis=2)

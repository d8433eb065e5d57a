"""Distances between the distribution functions of classes, from blocks of rows.

Counts of the beginnings of keys, class by class, give the distribution functions at the end of each
cell. Inside a cell they can be no farther apart than its counts allow: only cells that could hold a
greater distance than is known are looked into, until none is left.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.blocks import quantiles
from tamis.blocks.labels import Labels
from tamis.blocks.quantiles import KeyCells, KeyCounts, KeysListed, KeysWithin, columns_of
from tamis.blocks.source import RowBlock, RowStatistic
from tamis.blocks.table import BlockTable


class ByClass(RowStatistic):
    """A statistic of the rows of each class.

    Parameters
    ----------
    inner : RowStatistic
    labels : Labels
        The classes.
    """

    def __init__(self, inner: RowStatistic, labels: Labels):
        self.inner, self.labels = inner, labels

    def empty(self) -> Any:
        return [self.inner.empty() for _ in self.labels.values]

    def learn_block(self, state: Any, block: RowBlock) -> Any:
        assert block.y is not None
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
    """The greatest distance between a class and the rest that is known of each column.

    Parameters
    ----------
    sizes : array of int
        Rows of each class.
    n_columns : int
    """

    def __init__(self, sizes: NDArray[np.int64], n_columns: int):
        self.inside, self.outside = sizes, sizes.sum() - sizes
        self.best = np.zeros(n_columns)

    def look(
        self, columns: NDArray[np.intp], before: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Take cells that follow each other, and say which could hold more.

        ``before`` (places, classes) are the rows below the first cell of a place, ``counts``
        (places, cells, classes) those in each.
        """
        ends = before[:, None] + np.cumsum(counts, axis=1)
        begins = ends - counts
        inside, outside = self._shares(ends)
        np.maximum.at(self.best, columns, np.abs(inside - outside).max(axis=(1, 2), initial=0.0))
        low_inside, low_outside = self._shares(begins)
        most = np.maximum(inside - low_outside, outside - low_inside).max(axis=2, initial=0.0)
        # a value that stands alone has been seen at its end
        found = (most > self.best[columns, None]) & (counts.sum(axis=2) > 1)
        return np.asarray(found)

    def _shares(self, below: NDArray[np.int64]) -> tuple[Array, Array]:
        """Of the rows of each class, and of all others, those that are below."""
        rest = below.sum(axis=2, keepdims=True) - below
        return below / self.inside, rest / self.outside


def largest_distances(table: BlockTable) -> Array:
    """For each column the greatest distance of the distribution functions of a class and the rest.

    It is that of the sorted column, the largest over the classes.
    """
    labels, n_columns = table.labels, table.shape[1]
    known = Distances(labels.counts, n_columns)
    first = KeyCounts(columns_of, n_columns, len(labels.values))
    counts = np.stack(table.reduce(ByClass(first, labels)), axis=2)
    columns, before = np.arange(n_columns), np.zeros((n_columns, len(labels.values)), np.int64)
    beginnings, n_bits = np.zeros(n_columns, dtype=np.uint64), 0
    finer = first.n_bits
    while True:
        place, cell = np.nonzero(known.look(columns, before, counts))
        n_bits += finer
        if not len(place) or n_bits == 64:
            return known.best
        before = before[place] + counts[place].cumsum(axis=1)[np.arange(len(place)), cell]
        before -= counts[place, cell]
        columns, held = columns[place], int(counts[place, cell].sum())
        beginnings = (beginnings[place] << np.uint64(finer)) | cell.astype(np.uint64)
        start = np.searchsorted(columns, np.arange(n_columns + 1))
        cells = KeyCells(start, beginnings, n_bits)
        if held <= quantiles.LISTED:
            _look_through(known, columns, before, table.reduce(_listed(cells, labels)))
            return known.best
        finer = max(1, int(np.log2(quantiles.REFINED / len(columns))))
        finer = min(64 - n_bits, finer)
        found = table.reduce(ByClass(KeysWithin(columns_of, cells, finer), labels))
        counts = np.stack(found, axis=2)


def _listed(cells: KeyCells, labels: Labels) -> ByClass:
    return ByClass(KeysListed(columns_of, cells), labels)


def _look_through(
    known: Distances,
    columns: NDArray[np.intp],
    before: NDArray[np.int64],
    listed: list[list[NDArray[np.uint64]]],
) -> None:
    """Take cells whose keys are all known."""
    for place, column in enumerate(columns):
        own = [found[place] for found in listed]
        values = np.unique(np.concatenate(own))
        below = np.column_stack([np.searchsorted(one, values, side="right") for one in own])
        counts = np.diff(below, axis=0, prepend=0)
        known.look(np.array([column]), before[[place]], counts[None])

"""Columns in blocks of rows cut into levels: where, and the bit planes of a block."""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.blocks.labels import Labels
from tamis.blocks.quantiles import (
    DistinctValues,
    KeyCounts,
    columns_of,
    order_statistics,
    target_of,
)
from tamis.blocks.source import RowBlock, Together
from tamis.blocks.table import BlockTable
from tamis.density.discrete import MISSING, distinct_cuts, width_cuts
from tamis.exceptions import InvalidParameter


class Cuts(NamedTuple):
    """Where columns are cut into levels.

    Attributes
    ----------
    cuts : array of shape (n_columns, n_cuts)
        Values at which a new level begins, rising, padded with infinity.
    n_levels : array of int
    gaps : array of bool
        Columns with missing entries, whose last level these are.
    """

    cuts: Array
    n_levels: NDArray[np.int64]
    gaps: Mask

    @property
    def first_plane(self) -> NDArray[np.int64]:
        """Where the bit planes of each column begin, and how many there are."""
        n_planes = np.ceil(np.log2(np.maximum(self.n_levels, 1))).astype(np.int64)
        return np.concatenate([[0], np.cumsum(n_planes)])

    @classmethod
    def of(cls, rows: list[Array], gaps: Mask) -> Self:
        """From the cuts of each column."""
        cuts = np.full((len(rows), max(1, *map(len, rows)) if rows else 1), np.inf)
        for j, own in enumerate(rows):
            cuts[j, : len(own)] = own
        return cls(cuts, np.array([len(own) + 1 for own in rows]), gaps)

    def with_codes(self, n_levels: int) -> "Cuts":
        """One more column, which holds the levels themselves."""
        return self.with_column(np.arange(1.0, n_levels))

    def with_column(self, cuts: Array) -> "Cuts":
        """One more column."""
        width = max(self.cuts.shape[1], len(cuts))
        found = np.full((len(self.cuts) + 1, width), np.inf)
        found[:-1, : self.cuts.shape[1]] = self.cuts
        found[-1, : len(cuts)] = cuts
        levels = np.append(self.n_levels, len(cuts) + 1)
        return Cuts(found, levels, np.append(self.gaps, False))


def cuts_of_blocks(table: BlockTable, n_bins: int, binning: str, categories: Mask | None) -> Cuts:
    """Where :class:`tamis.density.discrete.Coded` would cut the columns of the whole table."""
    n_rows, n_columns = table.shape
    codes = np.full(n_columns, binning == "codes")
    if categories is not None:
        codes |= categories
    look = DistinctValues(columns_of, n_columns, n_bins, codes, table.names, table.name)
    count = KeyCounts(columns_of, n_columns)
    values, counts = table.reduce(Together([look, count]), takes_missing=True)
    told = table.survey
    for j in np.flatnonzero(told.alike(table.standardize)):
        values[j] = told.low[j : j + 1]
    there = n_rows - told.gaps
    many = np.array([found is None for found in values])
    cut: Any = np.full((n_columns, n_bins - 1), np.inf)
    if binning == "frequency":
        ranks = np.where(many[:, None], np.arange(1, n_bins) * there[:, None] // n_bins, -1)
        cut = order_statistics(table.reduce, columns_of, counts, ranks) if many.any() else cut
        cut[many] = distinct_cuts(cut[many], told.low[many])
    else:
        cut[many] = width_cuts(told.low[many], told.high[many], n_bins)
    found = [
        cut[j][np.isfinite(cut[j])] if own is None else own[1:] for j, own in enumerate(values)
    ]
    return _with_gaps(found, told.gaps, there)


def _with_gaps(found: list[Array], gaps: NDArray[np.int64], there: NDArray[np.int64]) -> Cuts:
    """Cuts as one table; what is missing is a level behind those of what is there."""
    rows = [
        np.append(own, MISSING) if gap and left else own
        for own, gap, left in zip(found, gaps, there, strict=True)
    ]
    return Cuts.of(rows, gaps > 0)


def target_cuts(table: BlockTable, n_bins: int, binning: str) -> Array:
    """Where a real target is cut, like a column."""
    values = table.labels.values.astype(float)
    most = n_bins
    if binning == "codes":
        raise InvalidParameter(
            f"{table.name} cannot take every value of a real target as a level where rows come in "
            "blocks. Write binning='frequency' or 'width'."
        )
    if len(values) <= most:
        return values[1:]
    reduce = partial(table.source.reduce, target_only=True)
    counts = reduce(KeyCounts(target_of, 1))
    n_rows = table.shape[0]
    if binning == "frequency":
        ranks = np.arange(1, n_bins) * n_rows // n_bins
        found = distinct_cuts(order_statistics(reduce, target_of, counts, ranks[None]), values[:1])
    else:
        ends = order_statistics(reduce, target_of, counts, np.array([[0, n_rows - 1]]))
        found = width_cuts(ends[:, 0], ends[:, 1], n_bins)
    return found[0][np.isfinite(found[0])]


class Packing:
    """Makes bit planes of a block: those of its columns, and behind them those of its target.

    Parameters
    ----------
    cuts : Cuts
        Of all columns and the target.
    labels : Labels or None
        The classes; None where the target is cut like a column.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None):
        self.cuts, self.labels = cuts, labels
        self.first_plane = cuts.first_plane

    def __call__(self, block: RowBlock) -> NDArray[np.uint64]:
        """The planes, behind the number of rows."""
        assert block.y is not None
        n_rows, n_planes = len(block.y), int(self.first_plane[-1])
        packed = np.empty(1 + n_planes * -(-n_rows // 64), dtype=np.uint64)
        packed[0] = n_rows
        codes = target_of(block) if self.labels is None else self.labels.codes(block.y)[None]
        self._write_columns(block, packed)
        self._write(codes.astype(float), slice(len(self.cuts.cuts) - 1, None), packed)
        return packed

    def _write_columns(self, block: RowBlock, packed: NDArray[np.uint64]) -> None:
        self._write(np.ascontiguousarray(block.X.T), slice(0, -1), packed)

    def _write(self, rows: NDArray[Any], some: slice, packed: NDArray[np.uint64]) -> None:
        from tamis._parallel import in_threads
        from tamis.compiled.planes import pack_planes

        cuts, n_levels, gaps = (part[some] for part in self.cuts)
        start, n_planes = some.start, int(self.first_plane[-1])

        def part(these: slice) -> None:
            places = self.first_plane[start + these.start : start + these.stop + 1]
            levels = cuts[these], n_levels[these], gaps[these]
            pack_planes(rows[these], *levels, places, n_planes, packed)

        in_threads(part, len(rows), rows.size)

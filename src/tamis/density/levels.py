"""Discretisation of columns in row blocks: the cuts between levels, and levels as bit planes."""

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
    """Cuts of columns into levels.

    Attributes
    ----------
    cuts : array of shape (n_columns, n_cuts)
        Smallest value of each level but the first, in ascending order, padded with infinity.
    n_levels : array of int
        Number of levels of each column.
    has_missing : array of bool
        Whether each column has missing values, which are then its last level.
    """

    cuts: Array
    n_levels: NDArray[np.int64]
    has_missing: Mask

    @property
    def first_plane(self) -> NDArray[np.int64]:
        """Index of the first bit plane of each column, followed by the total number of planes."""
        n_planes = np.ceil(np.log2(np.maximum(self.n_levels, 1))).astype(np.int64)
        return np.concatenate([[0], np.cumsum(n_planes)])

    @classmethod
    def of(cls, rows: list[Array], has_missing: Mask) -> Self:
        """Combine the cuts of all columns, given an array of cuts for each column."""
        cuts = np.full((len(rows), max(1, max(map(len, rows), default=0))), np.inf)
        for j, own in enumerate(rows):
            cuts[j, : len(own)] = own
        return cls(cuts, np.array([len(own) + 1 for own in rows]), has_missing)

    def with_column(self, cuts: Array) -> "Cuts":
        """Return the cuts of these columns and of one more column, given the cuts of the latter."""
        width = max(self.cuts.shape[1], len(cuts))
        found = np.full((len(self.cuts) + 1, width), np.inf)
        found[:-1, : self.cuts.shape[1]] = self.cuts
        found[-1, : len(cuts)] = cuts
        levels = np.append(self.n_levels, len(cuts) + 1)
        return Cuts(found, levels, np.append(self.has_missing, False))


def cuts_of_blocks(table: BlockTable, n_bins: int, binning: str, categories: Mask | None) -> Cuts:
    """Return the cuts that :class:`tamis.density.discrete.Coded` makes in the whole table."""
    n_rows, n_columns = table.shape
    codes = np.full(n_columns, binning == "codes")
    if categories is not None:
        codes |= categories
    look = DistinctValues(columns_of, n_columns, n_bins, codes, table.names, table.name)
    count = KeyCounts(columns_of, n_columns)
    values, counts = table.reduce(Together([look, count]), takes_missing=True)
    survey = table.survey
    for constant in np.flatnonzero(survey.alike(table.standardize)):
        values[constant] = survey.low[[constant]]
    n_known = n_rows - survey.gaps
    many = np.array([found is None for found in values])
    cut: Any = np.full((n_columns, n_bins - 1), np.inf)
    if binning == "frequency":
        ranks = np.where(many[:, None], np.arange(1, n_bins) * n_known[:, None] // n_bins, -1)
        cut = order_statistics(table.reduce, columns_of, counts, ranks) if many.any() else cut
        cut[many] = distinct_cuts(cut[many], survey.low[many])
    else:
        cut[many] = width_cuts(survey.low[many], survey.high[many], n_bins)
    rows = []
    for j, own in enumerate(values):
        cuts = cut[j][np.isfinite(cut[j])] if own is None else own[1:]
        # missing values are the last level
        rows.append(np.append(cuts, MISSING) if survey.gaps[j] and n_known[j] else cuts)
    return Cuts.of(rows, survey.gaps > 0)


def target_cuts(table: BlockTable, n_bins: int, binning: str) -> Array:
    """Return the cuts of a real target, which is cut like a column."""
    values = table.labels.values.astype(float)
    if binning == "codes":
        raise InvalidParameter(
            f"{table.name} needs binning='frequency' or 'width' for a real target in row blocks, "
            "got 'codes'."
        )
    if len(values) <= n_bins:
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
    """Function that packs a row block into bit planes, first of its columns, then of its target.

    Parameters
    ----------
    cuts : Cuts
        Cuts of all columns and the target.
    labels : Labels or None
        The classes, or None if the target is real, and cut like a column.
    """

    def __init__(self, cuts: Cuts, labels: Labels | None):
        self.cuts, self.labels = cuts, labels
        self.first_plane = cuts.first_plane

    def __call__(self, block: RowBlock) -> NDArray[np.uint64]:
        """Return an array of the number of rows, followed by the bit planes."""
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

        cuts, n_levels, has_missing = (values[some] for values in self.cuts)
        start, n_planes = some.start, int(self.first_plane[-1])

        def pack(these: slice) -> None:
            planes = self.first_plane[start + these.start : start + these.stop + 1]
            levels = cuts[these], n_levels[these], has_missing[these]
            pack_planes(rows[these], *levels, planes, n_planes, packed)

        in_threads(pack, len(rows), rows.size)

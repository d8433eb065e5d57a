"""Order statistics and contingency counts of row blocks, compared with sorting and np.bincount."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.blocks import KeptHere, MemoryMap, quantiles
from tamis.blocks.labels import Labels
from tamis.blocks.quantiles import DistinctValues, KeyCounts, columns_of, order_statistics
from tamis.blocks.source import RowBlock
from tamis.density.levels import Cuts, Packing
from tamis.density.planes import LevelSizes, PivotCounts
from tamis.exceptions import InvalidTable


def hard_columns(n, rng):
    """Return columns with large means, heavy tails, ties, both zeros and extreme numbers."""
    ends = rng.choice([1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1.0], n)
    normal = rng.normal(size=n)
    columns = [normal, 1e6 + 1e-6 * normal, np.exp(9 * normal), np.round(normal), ends, -normal]
    return np.column_stack([*columns, np.full(n, -3.0)])


@pytest.mark.parametrize(("listed", "cells"), [(1 << 22, 1 << 20), (0, 1 << 16), (0, 1 << 9)])
@pytest.mark.parametrize(("block_rows", "n_ranks"), [(37, 9), (150, 9), (150, 60)])
def test_order_statistics_agree_with_sorting(monkeypatch, listed, cells, block_rows, n_ranks):
    monkeypatch.setattr(quantiles, "LISTED", listed)
    monkeypatch.setattr(quantiles, "CELLS", cells)
    monkeypatch.setattr(quantiles, "REFINED", cells)
    rng = np.random.default_rng(0)
    X = hard_columns(501, rng)
    source = MemoryMap(X, np.zeros(501), block_rows=block_rows)
    counts = source.reduce(KeyCounts(columns_of, X.shape[1]))
    ranks = np.sort(rng.integers(0, 501, size=(X.shape[1], n_ranks)), axis=1)
    ranks[5] = -1
    found = order_statistics(source.reduce, columns_of, counts, ranks)
    for j in range(X.shape[1]):
        wanted = np.full(n_ranks, np.inf) if j == 5 else np.sort(X[:, j])[ranks[j]]
        assert_array_equal(found[j], wanted)


def test_missing_values_have_no_rank():
    X = np.array([[3.0], [np.nan], [1.0], [2.0], [np.nan]])
    source = MemoryMap(X, np.zeros(5), block_rows=2)
    counts = source.reduce(KeyCounts(columns_of, 1))
    found = order_statistics(source.reduce, columns_of, counts, np.array([[0, 1, 2]]))
    assert_array_equal(found, [[1.0, 2.0, 3.0]])


def test_key_counts_do_not_depend_on_the_blocks():
    X = hard_columns(300, np.random.default_rng(1))
    counts = [
        MemoryMap(X, np.zeros(300), block_rows=rows).reduce(KeyCounts(columns_of, X.shape[1]))
        for rows in (300, 7)
    ]
    assert_array_equal(*counts)


def test_distinct_values_are_listed_up_to_a_limit():
    X = np.column_stack([np.arange(60) % 4, np.arange(60), np.arange(60) % 7, np.zeros(60)])
    X[5, 0] = np.nan
    codes = np.array([False, False, True, False])
    look = DistinctValues(columns_of, 4, 4, codes, None, "MRMR")
    few, many, coded, one = MemoryMap(X, np.zeros(60), block_rows=9).reduce(look)
    assert_array_equal(few, [0, 1, 2, 3])
    assert many is None
    assert_array_equal(coded, np.arange(7))
    assert_array_equal(one, [0])


def test_too_many_codes_are_refused(monkeypatch):
    monkeypatch.setattr(quantiles, "MOST_LEVELS", 20)
    look = DistinctValues(columns_of, 1, 4, np.ones(1, dtype=bool), ["post"], "MRMR")
    source = MemoryMap(np.arange(60.0)[:, None], np.zeros(60), block_rows=9)
    with pytest.raises(InvalidTable, match="column 'post' has more than 19 values"):
        source.reduce(look)


N_LEVELS = np.array([2, 5, 10, 1, 70, 300])


def packed_blocks(ends, seed=0):
    """Return random levels of columns and three classes, and their bit planes in blocks."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_LEVELS, size=(ends[-1], len(N_LEVELS)))
    y = rng.integers(0, 3, ends[-1])
    cuts = np.full((len(N_LEVELS), 299), np.inf)
    for j, n in enumerate(N_LEVELS):
        cuts[j, : n - 1] = np.arange(1, n) - 0.5
    own = Cuts(cuts, N_LEVELS, np.zeros(len(N_LEVELS), dtype=bool)).with_column(np.arange(1.0, 3))
    packing = Packing(own, Labels(np.arange(3), np.zeros(3), ends[-1]))
    blocks = [
        packing(RowBlock(codes[a:b].astype(np.int16), y[a:b], a, ""))
        for a, b in zip([0, *ends], ends, strict=False)
    ]
    return np.column_stack([codes, y]), own, packing, blocks


@pytest.mark.parametrize("pivot", [(0,), (2,), (3,), (4,), (6,), (2, 6), (3, 6), (4, 6)])
@pytest.mark.parametrize("by_planes", [True, False])
def test_counts_agree_with_bincount(pivot, by_planes):
    # more than one run, one word, an empty block, complete words
    codes, cuts, _, blocks = packed_blocks([8500, 8510, 8510, 8638])
    counting = PivotCounts(cuts, pivot, slice(1, 6))
    counting.by_planes = by_planes
    tables, sizes = KeptHere(blocks).reduce(counting)
    both = codes[:, pivot[0]]
    if len(pivot) == 2:
        both = both * cuts.n_levels[pivot[1]] + codes[:, pivot[1]]
    for j, n in enumerate(N_LEVELS[1:]):
        cells = np.bincount(both * 300 + codes[:, 1 + j], minlength=counting.n_pivot * 300)
        wanted = cells.reshape(-1, 300)
        if by_planes:
            assert_array_equal(tables[j, 1:, 1:n], wanted[1:, 1:n])
            assert_array_equal(sizes[1:], np.bincount(both, minlength=counting.n_pivot)[1:])
        else:
            assert_array_equal(tables[j], wanted)


def test_bit_planes_in_a_file_agree_with_those_in_memory():
    codes, cuts, packing, blocks = packed_blocks([100, 100, 250])
    for on_disk in (True, False):
        kept = KeptHere(iter(blocks), on_disk=on_disk)
        sizes = kept.reduce(LevelSizes(packing.first_plane, cuts.n_levels))
        for j, n in enumerate(cuts.n_levels):
            assert_array_equal(sizes[j, 1:n], np.bincount(codes[:, j], minlength=n)[1:])


def test_a_value_takes_only_the_bits_that_its_levels_need():
    _, cuts, packing, blocks = packed_blocks([64_000])
    n_planes = int(np.ceil(np.log2(cuts.n_levels)).sum())
    assert len(blocks[0]) == 1 + 1000 * n_planes == 1 + 1000 * int(packing.first_plane[-1])

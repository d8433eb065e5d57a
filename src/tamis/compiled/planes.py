"""Sort keys of numbers, and contingency tables from bit planes of row blocks.

A column with q levels has ceil(log2 q) bit planes. Plane p contains bit p of the level of each row.
Rows are split into runs of 8192. The first word of a packed row block is its number of rows. The
runs follow as ``[run][column][plane][128 words]``. The last run may be shorter. The set of rows at
a level is computed by ANDs of the planes while they are in the cache. Padding rows in the last word
have level 0 in every column. They do not change the counts, because counts at level 0 are computed
from the margins of the table, not from the planes.

Several functions count rows by the levels of a column and of the *pivot*. The pivot is one column,
or two columns whose combinations of levels are treated as the levels of a single column.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from tamis.compiled import njit
from tamis.compiled.counts import _at_least, lowest_bit, popcount

#: Number of 64-bit words in a run of 8192 rows. With this length, the L1 cache can contain the bit
#: planes and level sets of two columns, one of them with ten levels.
RUN = 128
#: Up to this many cuts, entries are compared with each cut. With more cuts, bisection is faster.
FEW_CUTS = 48


def _reached(typingctx: Any, row: Any, first: Any, cut: Any) -> Any:
    """Return a 64-bit word whose bit i is set if row[first + i] >= cut."""
    if row.layout != "C" or row.dtype not in types.number_domain:
        return None  # the entries are not contiguous

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0].dtype
        numbers = ir.VectorType(ir.DoubleType(), 64)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        stored = ir.VectorType(context.get_value_type(kind), 64)
        place = builder.bitcast(builder.gep(data, [args[1]]), stored.as_pointer())
        entries = builder.load(place, align=kind.bitwidth // 8)
        if kind != types.float64:
            entries = _widened(kind)(builder, entries, numbers)
        cuts = _repeated(builder, args[2], numbers)
        return builder.bitcast(builder.fcmp_ordered(">=", entries, cuts), ir.IntType(64))

    return types.uint64(row, types.intp, types.float64), codegen


def _widened(kind: Any) -> Any:
    """Return the LLVM instruction that converts numbers to double precision."""
    if isinstance(kind, types.Float):
        return ir.IRBuilder.fpext
    return ir.IRBuilder.sitofp if kind.signed else ir.IRBuilder.uitofp


def _repeated(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector in which all entries have the given value."""
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, zero)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), lanes)


def _add_bits(typingctx: Any, codes: Any, first: Any, word: Any, weight: Any) -> Any:
    """Add a weight to codes[first + i] for each bit i that is set in a 64-bit word.

    This takes a few vector instructions. A loop over the bits would take hundreds.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes, bits = (ir.VectorType(ir.IntType(n), 64) for n in (16, 1))
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        is_set, weights = builder.bitcast(args[2], bits), _repeated(builder, args[3], lanes)
        added = builder.select(is_set, weights, ir.Constant(lanes, None))
        found = builder.add(builder.load(place, align=2), added)
        builder.store(found, place, align=2)
        return context.get_dummy_value()

    return types.void(codes, types.intp, types.uint64, types.uint16), codegen


# written as LLVM vector code, because numba does not vectorise these loops well
reached_bits: Any = intrinsic(_reached)
add_bits: Any = intrinsic(_add_bits)


@njit(cache=True, nogil=True)
def _key(bits):
    """Return the sort key of a number, given its bits. Keys are unsigned and sort like numbers."""
    if bits < 0:
        return ~uint64(bits)
    return uint64(bits) | uint64(1 << 63)


@njit(cache=True, nogil=True)
def _bits(row):
    """Return the bit patterns of numbers as integers. -0.0 is treated as 0.0."""
    return (row + 0.0).view(np.int64)


@njit(cache=True, nogil=True)
def key_counts(rows, n_bits, counts):
    """Count how many sort keys of each row begin with each pattern of ``n_bits`` bits."""
    shift = uint64(64 - n_bits)
    for j in range(len(rows)):
        bits = _bits(rows[j])
        for i in range(len(bits)):
            if rows[j, i] == rows[j, i]:
                counts[j, _key(bits[i]) >> shift] += 1


@njit(cache=True, nogil=True)
def _slot(beginning, beginnings, first, last):
    """Return the position of a key prefix among the sorted prefixes of a column, or -1."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if beginnings[middle] < beginning:
            first = middle + 1
        else:
            last = middle
    if first < end and beginnings[first] == beginning:
        return first
    return -1


@njit(cache=True, nogil=True, inline="always")
def _reach(row, base, cut):
    """Return a word whose bit i is set if row[base + i] >= cut, up to the end of the row."""
    if base + 64 <= len(row):
        return reached_bits(row, base, cut)
    return _at_least(row[base:], cut)


@njit(cache=True, nogil=True)
def keys_within(rows, start, beginnings, bounds, known, n_bits, counts):
    """Count the sort keys that begin with a known prefix, by their next ``n_bits`` bits."""
    shift, finer = uint64(64 - known), uint64(64 - known - n_bits)
    mask, where = uint64((1 << n_bits) - 1), np.empty(rows.shape[1], dtype=np.int64)
    for j in range(len(rows)):
        row, bits, first, last = rows[j], _bits(rows[j]), start[j], start[j + 1]
        if last - first > FEW_CUTS:
            for i in range(len(row)):
                if row[i] == row[i]:
                    key = _key(bits[i])
                    slot = _slot(key >> shift, beginnings, first, last)
                    if slot >= 0:
                        counts[slot, (key >> finer) & mask] += 1
            continue
        # count one prefix at a time, so that its counts stay in the L1 cache; collect positions
        # before counting, because a mispredicted end of the loop would discard work on the counts
        for slot in range(first, last):
            own, low, high, n_found = counts[slot], bounds[slot, 0], bounds[slot, 1], 0
            for base in range(0, len(row), 64):
                word = _reach(row, base, low) & ~_reach(row, base, high)
                while word:
                    where[n_found] = base + np.int64(lowest_bit(word))
                    n_found += 1
                    word &= word - uint64(1)
            for i in range(n_found):
                own[(_key(bits[where[i]]) >> finer) & mask] += 1


@njit(cache=True, nogil=True)
def keys_listed(rows, start, beginnings, bounds, known):
    """Return the index of the prefix and the sort key, for all keys with a known prefix."""
    shift, found = uint64(64 - known), 0
    slots, keys = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.uint64)
    for j in range(len(rows)):
        row, bits, first, last = rows[j], _bits(rows[j]), start[j], start[j + 1]
        for base in range(0, len(row), 64):
            if found + 64 > len(slots):
                slots = np.concatenate((slots, np.empty_like(slots)))
                keys = np.concatenate((keys, np.empty_like(keys)))
            if last - first > FEW_CUTS:
                for i in range(base, min(base + 64, len(row))):
                    slot = _slot(_key(bits[i]) >> shift, beginnings, first, last)
                    if row[i] == row[i] and slot >= 0:
                        slots[found], keys[found] = slot, _key(bits[i])
                        found += 1
                continue
            for slot in range(first, last):
                word = _reach(row, base, bounds[slot, 0]) & ~_reach(row, base, bounds[slot, 1])
                while word:
                    slots[found], keys[found] = slot, _key(bits[uint64(base) + lowest_bit(word)])
                    found += 1
                    word &= word - uint64(1)
    return slots[:found].copy(), keys[:found].copy()


@njit(cache=True, nogil=True)
def pack_planes(columns, cuts, n_levels, gaps, first_plane, n_planes, packed):
    """Write the bit planes of each column. Missing values get the last level."""
    n_rows = columns.shape[1]
    n_words = (n_rows + 63) // 64
    codes = np.empty(64, dtype=np.int64)
    for j in range(len(columns)):
        row, n_cuts = columns[j], n_levels[j] - 1
        planes = first_plane[j + 1] - first_plane[j]
        for word in range(n_words):
            run = word // RUN * RUN
            width = _width(n_words, run)
            place = 1 + run * n_planes + first_plane[j] * width + word - run
            for p in range(planes):
                packed[place + p * width] = 0
            if n_cuts <= FEW_CUTS:
                for c in range(n_cuts):
                    reached = _reach(row, 64 * word, cuts[j, c])
                    if gaps[j]:
                        reached |= _missing(row[64 * word : 64 * word + 64])
                    # bit p of a level changes at multiples of 2^p
                    for p in range(planes):
                        if (c + 1) % (1 << p) == 0:
                            packed[place + p * width] ^= reached
            else:
                block = row[64 * word : 64 * word + 64]
                _halved(block, cuts[j], n_cuts, codes)
                for p in range(planes):
                    bits = uint64(0)
                    for i in range(len(block)):
                        bits |= uint64((codes[i] >> p) & 1) << uint64(i)
                    packed[place + p * width] = bits


@njit(cache=True, nogil=True)
def _missing(block):
    """Return a word whose bit i is set if block[i] is missing."""
    word = uint64(0)
    for i in range(len(block)):
        word |= uint64(block[i] != block[i]) << uint64(i)
    return word


@njit(cache=True, nogil=True)
def _halved(block, cuts, n_cuts, codes):
    """Write the level of each entry, found by bisection. Missing values get the last level."""
    for i in range(len(block)):
        value = block[i]
        low, high = 0, n_cuts
        while low < high:
            middle = (low + high) // 2
            if value < cuts[middle]:
                high = middle
            else:
                low = middle + 1
        codes[i] = low


@njit(cache=True, nogil=True)
def _words(packed):
    """Return the number of words that a bit plane of a row block takes, over all runs."""
    return int((packed[0] + uint64(63)) // uint64(64))


@njit(cache=True, nogil=True)
def _width(n_words, run):
    """Return the number of words per bit plane in the run that begins at word ``run``.

    Only the last run may be shorter than ``RUN``.
    """
    return min(RUN, n_words - run)


@njit(cache=True, nogil=True)
def _level_set(packed, place, planes, width, level, out):
    """Write the bit set of the rows of a run that have a level. Level 0 includes padding rows."""
    if planes == 0:
        out[:width] = ~uint64(0)
    for p in range(planes):
        plane = packed[place + p * width : place + (p + 1) * width]
        flip = uint64(0) if (level >> p) & 1 else ~uint64(0)
        if p == 0:
            for word in range(width):
                out[word] = plane[word] ^ flip
        else:
            for word in range(width):
                out[word] &= plane[word] ^ flip


@njit(cache=True, nogil=True)
def _pivot_sets(packed, base, width, first_plane, n_levels, pivot, sets):
    """Write the bit set of the rows at each pivot level except level 0, for one run."""
    one, n_one = pivot[0], n_levels[pivot[0]]
    planes, place = first_plane[one + 1] - first_plane[one], base + first_plane[one] * width
    if len(pivot) == 1:
        for level in range(1, n_one):
            _level_set(packed, place, planes, width, level, sets[level])
        return
    two, n_two = pivot[1], n_levels[pivot[1]]
    others, second = first_plane[two + 1] - first_plane[two], base + first_plane[two] * width
    own = np.empty(RUN, dtype=np.uint64)
    for level in range(n_one):
        _level_set(packed, place, planes, width, level, own)
        for other in range(n_two):
            if level + other:
                target = sets[level * n_two + other]
                _level_set(packed, second, others, width, other, target)
                for word in range(width):
                    target[word] &= own[word]


@njit(cache=True, nogil=True)
def counts_by_planes(packed, first_plane, n_levels, pivot, first, tables, sizes):
    """Count the rows at each pair of a pivot level and a column level, for each column.

    Counts are added to ``tables``, which has one table per column. Pairs with a level 0 are
    skipped. The number of rows at each pivot level is added to ``sizes``.
    """
    n_words, n_planes = _words(packed), first_plane[-1]
    n_pivot = tables.shape[1]
    whole = n_pivot - (n_pivot - 1) % 3
    sets, own = np.zeros((n_pivot, RUN), dtype=np.uint64), np.zeros(RUN, dtype=np.uint64)
    for run in range(0, n_words, RUN):
        width, base = _width(n_words, run), 1 + run * n_planes
        if width < RUN:  # clear the sets, because counting always reads a whole run
            sets[:] = 0
        _pivot_sets(packed, base, width, first_plane, n_levels, pivot, sets)
        for a in range(1, n_pivot):
            size = uint64(0)
            for word in range(width):
                size += popcount(sets[a, word])
            sizes[a] += np.int64(size)
        for j in range(len(tables)):
            column = first + j
            planes = first_plane[column + 1] - first_plane[column]
            place = base + first_plane[column] * width
            for b in range(1, n_levels[column]):
                _level_set(packed, place, planes, width, b, own)
                for a in range(1, whole, 3):  # three pivot levels at a time load the words once
                    one, two, three = uint64(0), uint64(0), uint64(0)
                    for word in range(RUN):
                        one += popcount(sets[a, word] & own[word])
                        two += popcount(sets[a + 1, word] & own[word])
                        three += popcount(sets[a + 2, word] & own[word])
                    tables[j, a, b] += np.int64(one)
                    tables[j, a + 1, b] += np.int64(two)
                    tables[j, a + 2, b] += np.int64(three)
                for a in range(whole, n_pivot):
                    one = uint64(0)
                    for word in range(RUN):
                        one += popcount(sets[a, word] & own[word])
                    tables[j, a, b] += np.int64(one)


@njit(cache=True, nogil=True)
def _unpacked(packed, place, planes, width, codes):
    """Write the level of each row of a run to ``codes``."""
    codes[: 64 * width] = 0
    for p in range(planes):
        for word in range(width):
            add_bits(codes, 64 * word, packed[place + p * width + word], np.uint16(1 << p))


@njit(cache=True, nogil=True)
def counts_by_histogram(packed, first_plane, n_levels, pivot, first, tables):
    """Count the rows at each pair of a pivot level and a column level, including levels 0.

    Counts are added to ``tables``, which has one table per column. For columns with many levels,
    this is faster than :func:`counts_by_planes`.
    """
    n_rows, n_planes = int(packed[0]), first_plane[-1]
    n_words, n_cells = _words(packed), tables.shape[1] * tables.shape[2]
    codes, own = np.empty(64 * RUN, dtype=np.uint16), np.empty(64 * RUN, dtype=np.uint64)
    flat = tables.reshape(len(tables), n_cells)
    for run in range(0, n_words, RUN):
        width, base = _width(n_words, run), 1 + run * n_planes
        here = min(64 * width, n_rows - 64 * run)
        own[:] = 0
        for column in pivot:
            planes = first_plane[column + 1] - first_plane[column]
            _unpacked(packed, base + first_plane[column] * width, planes, width, codes)
            for i in range(here):
                own[i] = own[i] * uint64(n_levels[column]) + uint64(codes[i])
        for i in range(here):
            own[i] *= uint64(tables.shape[2])
        for j in range(len(tables)):
            column = first + j
            planes = first_plane[column + 1] - first_plane[column]
            _unpacked(packed, base + first_plane[column] * width, planes, width, codes)
            table = flat[j]
            for i in range(here):
                table[own[i] + uint64(codes[i])] += 1


@njit(cache=True, nogil=True)
def level_sizes(packed, first_plane, n_levels, sizes):
    """Add the number of rows at each level of each column to ``sizes``, except for level 0."""
    n_words, n_planes = _words(packed), first_plane[-1]
    own = np.zeros(RUN, dtype=np.uint64)
    for run in range(0, n_words, RUN):
        width, base = _width(n_words, run), 1 + run * n_planes
        for j in range(len(n_levels)):
            planes = first_plane[j + 1] - first_plane[j]
            for b in range(1, n_levels[j]):
                _level_set(packed, base + first_plane[j] * width, planes, width, b, own)
                size = uint64(0)
                for word in range(width):
                    size += popcount(own[word])
                sizes[j, b] += np.int64(size)

"""Sparse tables of files: what can be known of them without writing out their zeros."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._sparse import entry_columns, extremes
from tamis.blocks.inputs import SparseColumns
from tamis.table.alerts import profile_of, target_alert
from tamis.table.kinds import TableProfile, blocks, counts_rows
from tamis.table.leaks import LEAKS, Foresight, is_code

#: Share of the rows below which the entries of a column cannot make it a leak of a real target: of
#: the variance of ranks, rows without entries, which are all alike, keep at least (1 - share)^3,
#: which is 0.064 here and above what a leak leaves. Classes have a bound of their own.
ENOUGH_ENTRIES = 0.6


def profiled_sparse(
    table: SparseColumns, y: NDArray[Any], task: str, keep: Sequence[str] = ()
) -> TableProfile:
    """Kinds and alerts of a sparse table, as those of a frame.

    Columns of which too few entries are stored to foretell the target, or to number the rows, are
    not looked at.
    """
    seen = _seen(table, keep)
    power = _power(table, seen, y, task)
    codes = [
        j
        for j in np.flatnonzero(np.nan_to_num(power) >= LEAKS).tolist()
        if seen.kind[j] == "number" and is_code(column_of(table, j), y, task)
    ]
    codes = [j for j in codes if seen.names[j] not in keep]
    more = target_alert(y, task)
    return profile_of(seen, power, codes, _copies(table.X), len(y), more=more)


def column_of(table: SparseColumns, j: int) -> pl.Series:
    """One column with its zeros."""
    return pl.Series(table.names[j], _dense(table.X, j))


def _dense(X: Any, j: int) -> Array:
    values = np.zeros(X.shape[0])
    held = slice(X.indptr[j], X.indptr[j + 1])
    values[X.indices[held]] = X.data[held]
    return values


def _seen(table: SparseColumns, keep: Sequence[str]) -> TableProfile:
    X, names = table.X, table.names
    n_rows, d = X.shape
    low, high = extremes(X)
    kind = np.full(d, "number", dtype=object)
    kind[low == high] = "constant"
    n_entries, kept = np.diff(X.indptr), set(keep)
    for j in np.flatnonzero((n_entries >= n_rows - 1) & (low != high)).tolist():
        values = _dense(X, j)
        with np.errstate(invalid="ignore"):  # infinity has no rest
            whole = (values % 1 == 0).all()
        if whole and names[j] not in kept and counts_rows(values, names[j], made_up=False):
            kind[j] = "identifier"
    columns = entry_columns(X)
    n_missing, n_infinite = (
        np.bincount(columns[odd(X.data)], minlength=d) for odd in (np.isnan, np.isinf)
    )
    nothing = np.zeros(d, dtype=np.int64)
    return TableProfile(names, kind, n_missing, n_infinite, nothing, nothing > 0, {})


def _power(table: SparseColumns, seen: TableProfile, y: NDArray[Any], task: str) -> Array:
    """What columns foretell alone, where they have entries enough to be a leak."""
    power = np.full(len(seen.names), np.nan)
    target = Foresight(y, task, len(seen.names))
    if not target.looks:
        return power
    n_entries = np.diff(table.X.indptr)
    needed = ENOUGH_ENTRIES * len(y)
    if target.classes:  # each row with an entry does away with one error, at most
        needed = 0.9 * LEAKS * (len(y) - np.bincount(np.unique(y, return_inverse=True)[1]).max())
    asked = np.flatnonzero((n_entries >= needed) & (seen.kind != "constant"))
    for block in blocks(len(y), asked):
        power[block] = target.of_numbers(np.asfortranarray(table.X[:, block].toarray()))
    return power


def _copies(X: Any) -> dict[int, int]:
    """For each column with entries that equals an earlier one, which that is."""
    first: dict[tuple[bytes, bytes], int] = {}
    found: dict[int, int] = {}
    for j, (start, end) in enumerate(
        zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    ):
        if start == end:
            continue
        key = X.indices[start:end].tobytes(), X.data[start:end].tobytes()
        if first.setdefault(key, j) != j:
            found[j] = first[key]
    return found

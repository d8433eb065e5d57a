"""Kinds of columns and alerts for sparse tables, computed without making them dense."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._memory import NUMBER, check_fits
from tamis._sparse import entry_columns, extremes
from tamis.blocks.inputs import SparseColumns
from tamis.table.alerts import profile_of, target_alert
from tamis.table.kinds import TableProfile, blocks, counts_rows
from tamis.table.leaks import LEAKS, Foresight, is_code

#: A column with a smaller share of nonzero rows cannot leak a numeric target. It cannot distinguish
#: the rows of zeros, so at least (1 - share)^3 of the variance of the ranks, here 0.064, remains
#: unexplained. This is more than after a leak. Classes have a different bound.
ENOUGH_ENTRIES = 0.6


def profiled_sparse(
    table: SparseColumns, y: NDArray[Any], task: str, keep: Sequence[str] = ()
) -> TableProfile:
    """Return the profile of a sparse table: kinds and alerts, as for a frame.

    Columns with too few entries to predict the target or to number the rows are not examined.
    """
    seen = _seen(table, keep)
    power = _power(table, seen, y, task)
    codes = [
        j
        for j in np.flatnonzero(np.nan_to_num(power[0]) >= LEAKS).tolist()
        if seen.kind[j] == "number"
        and seen.names[j] not in keep
        and is_code(column_of(table, j), y, task)
    ]
    more = target_alert(y, task)
    return profile_of(seen, power, codes, _copies(table.X), len(y), more=more)


def column_of(table: SparseColumns, j: int) -> pl.Series:
    """Return a single column as a dense series."""
    return pl.Series(table.names[j], _dense(table.X, j))


def dense_frame(table: SparseColumns) -> pl.DataFrame:
    """Return a sparse table as a dense frame. Raise an error if it does not fit into memory."""
    n_rows, n_columns = table.X.shape
    check_fits("The table, made dense,", NUMBER * n_rows * n_columns)
    return pl.DataFrame(table.X.toarray(order="F"), schema=table.names)


def _dense(X: Any, j: int) -> Array:
    values = np.zeros(X.shape[0])
    entries = slice(X.indptr[j], X.indptr[j + 1])
    values[X.indices[entries]] = X.data[entries]
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
        with np.errstate(invalid="ignore"):  # infinity % 1 is NaN
            integers = (values % 1 == 0).all()
        if integers and names[j] not in kept and counts_rows(values, names[j], made_up=False):
            kind[j] = "identifier"
    columns = entry_columns(X)
    n_missing, n_infinite = (
        np.bincount(columns[odd(X.data)], minlength=d) for odd in (np.isnan, np.isinf)
    )
    nothing = np.zeros(d, dtype=np.int64)
    return TableProfile(names, kind, n_missing, n_infinite, nothing, nothing > 0)


def _power(table: SparseColumns, seen: TableProfile, y: NDArray[Any], task: str) -> Array:
    """Return the strength of each column (see Strength), or NaN if it has too few entries."""
    power = np.full((2, len(seen.names)), np.nan)
    target = Foresight(y, task, len(seen.names))
    if not target.looks:
        return power
    n_entries = np.diff(table.X.indptr)
    needed = ENOUGH_ENTRIES * len(y)
    if target.classes:  # each nonzero row avoids at most one error
        needed = 0.9 * LEAKS * (len(y) - np.bincount(np.unique(y, return_inverse=True)[1]).max())
    asked = np.flatnonzero((n_entries >= needed) & (seen.kind != "constant"))
    for block in blocks(len(y), asked):
        power[:, block] = target.of_numbers(np.asfortranarray(table.X[:, block].toarray()))
    return power


def _copies(X: Any) -> dict[int, int]:
    """Return, for each duplicate column, the index of the first column that equals it."""
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

"""How alike units are: correlations of some with all, of any number of columns and levels."""

from typing import Any

import numpy as np

from tamis._arrays import Array, Mask, Subset, column_blocks, scaled_columns
from tamis._sparse import is_sparse
from tamis.contract import Grouping

#: Singular values below this share of the largest are rounding.
RANK = 1e-10


def likeness(X: Array, units: Subset, grouping: Grouping, categories: Mask | None) -> Array:
    """Absolute correlation of some units with all, of shape (units asked for, all units).

    Of a unit of several columns, or a category, it is the greatest correlation that a sum of its
    columns, or of indicators of its levels, can have: with a number the correlation ratio. Rows in
    which either of two numbers is missing are left out.

    Examples
    --------
    >>> X = np.array([[0.0, 2, 5], [1, 1, 5], [2, 0, 5], [3, -1, 6]])
    >>> likeness(X, np.array([0]), Grouping(3), None).round(3)
    array([[1.   , 1.   , 0.775]])
    """
    members = [np.array([j]) for j in range(grouping.n_units)]
    if grouping.members is not None:
        members = list(grouping.members)
    wide = np.array([len(columns) > 1 for columns in members])
    if categories is not None:
        wide |= np.array([bool(categories[columns].any()) for columns in members])
    found = np.zeros((len(units), len(members)))
    narrow = np.flatnonzero(~wide)
    columns = np.array([members[unit][0] for unit in narrow], dtype=np.intp)
    asked = np.flatnonzero(~wide[units])
    asked_columns = [members[units[i]][0] for i in asked]
    if len(asked) and len(narrow):
        plain = len(columns) == X.shape[1]
        table = X if plain else X[:, columns]
        found[np.ix_(asked, narrow)] = correlations(X[:, asked_columns], table)
    if wide.any():
        _fill_wide(found, X, units, members, wide, categories)
    return found


def correlations(A: Array, B: Array) -> Array:
    """Absolute correlation of each column of A with each of B, over rows in which both are there.

    B may be large, or sparse: it is read block by block.
    """
    if is_sparse(B):
        return _with_sparse(A, B)
    found = np.empty((A.shape[1], B.shape[1]))
    own = scaled_columns(A, "K")[0]
    for block in column_blocks(*B.shape):
        found[:, block] = _block(own, scaled_columns(B[:, block], "K")[0])
    return found


def _block(A: Array, B: Array) -> Array:
    here, there = ~np.isnan(A), ~np.isnan(B)
    if here.all() and there.all():
        product: Array = A.T @ B
        return np.minimum(np.abs(product) / len(A), 1.0)
    here, there = here.astype(float), there.astype(float)
    A, B = np.nan_to_num(A), np.nan_to_num(B)
    n = np.maximum(here.T @ there, 1.0)
    sum_a, sum_b = A.T @ there, here.T @ B
    spread = ((A**2).T @ there - sum_a**2 / n) * (here.T @ B**2 - sum_b**2 / n)
    shared = A.T @ B - sum_a * sum_b / n
    # two rows always lie on a line
    tells = (spread > (RANK * n) ** 2) & (n > 2)
    return np.where(tells, np.minimum(np.abs(shared) / np.sqrt(np.where(tells, spread, 1)), 1), 0.0)


def _with_sparse(A: Any, B: Any) -> Array:
    """Columns of A are centred, so that the means of B add nothing."""
    n = B.shape[0]
    own = scaled_columns(dense(A), "K")[0]
    mean = np.asarray(B.mean(axis=0)).ravel()
    deviation = np.sqrt(np.maximum(np.asarray(B.multiply(B).mean(axis=0)).ravel() - mean**2, 0))
    product: Array = np.asarray((B.T @ own).T) / n
    constant = deviation <= RANK * np.abs(mean)
    scaled = np.abs(product) / np.where(constant, 1.0, deviation)
    return np.where(constant, 0.0, np.minimum(scaled, 1.0))


def _fill_wide(
    found: Array,
    X: Array,
    units: Subset,
    members: list[Subset],
    wide: Mask,
    categories: Mask | None,
) -> None:
    """Write in the likeness of pairs in which a unit is more than a number."""
    bases = {int(unit): _basis(X, members[unit], categories) for unit in units}
    for other in range(len(members)):
        rows = [i for i, unit in enumerate(units) if wide[unit] or wide[other]]
        if not rows:
            continue
        own = bases.get(other)
        basis = _basis(X, members[other], categories) if own is None else own
        for i in rows:
            product = bases[int(units[i])].T @ basis
            largest = np.linalg.norm(product, 2) if product.size else 0.0
            found[i, other] = min(float(largest), 1.0)


def _basis(X: Array, columns: Subset, categories: Mask | None) -> Array:
    """Orthonormal columns that span those of a unit, centred."""
    table, _ = scaled_columns(indicators(dense(X[:, columns]), columns, categories), "K")
    left, size, _ = np.linalg.svd(np.nan_to_num(table), full_matrices=False)
    return np.asarray(left[:, size > RANK * max(size.max(initial=0.0), RANK)])


def indicators(X: Array, columns: Subset, categories: Mask | None) -> Array:
    """A table whose categories are replaced by an indicator of each level, NaN being none of them.

    ``columns`` says which columns of the table that ``categories`` speaks of these are.
    """
    if categories is None or not categories[columns].any():
        return X
    parts = []
    for j, column in enumerate(columns):
        values = X[:, [j]]
        if categories[column]:
            known = values[~np.isnan(values)]
            values = (values == np.unique(known)).astype(float)
        parts.append(values)
    return np.hstack(parts)


def dense(X: Any) -> Array:
    """A table with every entry written out; for a few columns only."""
    return np.asarray(X.toarray() if is_sparse(X) else X)

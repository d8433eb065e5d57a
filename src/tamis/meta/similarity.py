"""How alike units are: correlations of some with all, of any number of columns and levels."""

from typing import Any

import numpy as np

from tamis._arrays import Array, Mask, Subset, scaled_columns
from tamis._linalg import column_correlations
from tamis._sparse import is_sparse
from tamis.contract.units import Grouping

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
        found[np.ix_(asked, narrow)] = np.nan_to_num(
            column_correlations(X[:, asked_columns], table)
        )
    if wide.any():
        _fill_wide(found, X, units, members, wide, categories)
    return found


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

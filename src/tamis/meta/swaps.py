"""Swaps of a selected unit for a similar one, and their scores."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask, Subset, column_blocks, scaled_columns, standardised
from tamis._linalg import column_correlations
from tamis._seeds import fix_seeds
from tamis._sparse import is_sparse
from tamis.contract import ForwardCriterion, Selection
from tamis.contract.criterion import with_unit
from tamis.contract.units import Grouping
from tamis.density.discrete import category_mask
from tamis.meta.inner_search import silence_search, walk_of
from tamis.search.categories import for_columns, given_categories
from tamis.validation.held_out import weights_name

#: Singular values below this share of the largest one are treated as rounding errors.
RANK = 1e-10


def similarities(X: Array, units: Subset, grouping: Grouping, categories: Mask | None) -> Array:
    """Return the absolute correlations between the given units and all units.

    For units with several columns, it is the smallest canonical correlation. Every linear
    combination of the columns of the smaller unit has at least this correlation with the other
    unit. A categorical column is replaced by the indicators of its levels. For two numeric columns,
    rows in which either value is missing are left out.

    Examples
    --------
    >>> X = np.array([[0.0, 2, 5], [1, 1, 5], [2, 0, 5], [3, -1, 6]])
    >>> similarities(X, np.array([0]), Grouping(3), None).round(3)
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
    if len(units) and wide.any():
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
    """Fill in the correlations of pairs with a unit that is categorical or has several columns."""
    bases = [_basis(X, members[unit], categories) for unit in units]
    sizes = np.array([basis.shape[1] for basis in bases])
    owner, stacked = np.repeat(np.arange(len(units)), sizes), np.hstack(bases)
    if wide[units].any():
        narrow = np.flatnonzero(~wide)
        for block in column_blocks(len(X), len(narrow)):
            columns = [members[unit][0] for unit in narrow[block]]
            table = np.nan_to_num(scaled_columns(dense(X[:, columns]))[0])
            table /= np.maximum(np.linalg.norm(table, axis=0), RANK)
            # the only singular value of a vector is its length
            squares = (stacked.T @ table) ** 2
            for i in np.flatnonzero(wide[units]):
                found[i, narrow[block]] = np.sqrt(squares[owner == i].sum(axis=0))
    for other in np.flatnonzero(wide):
        basis = _basis(X, members[other], categories)
        product = stacked.T @ basis
        smallest = np.sqrt(np.bincount(owner, (product**2).sum(axis=1), len(units)))
        for i in np.flatnonzero(sizes > 1) if basis.shape[1] > 1 else ():
            smallest[i] = np.linalg.norm(product[owner == i], -2)
        found[:, other] = smallest
    np.minimum(found, 1.0, out=found)


def _basis(X: Array, columns: Subset, categories: Mask | None) -> Array:
    """Return an orthonormal basis of the centred columns of a unit."""
    table, _ = scaled_columns(indicators(dense(X[:, columns]), columns, categories))
    left, size, _ = np.linalg.svd(np.nan_to_num(table), full_matrices=False)
    return np.asarray(left[:, size > RANK * max(size.max(initial=0.0), RANK)])


def indicators(X: Array, columns: Subset, categories: Mask | None) -> Array:
    """Replace each categorical column with one indicator column per level. NaN is not a level.

    ``columns`` holds the position of each column of ``X`` in the mask ``categories``.
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
    """Convert a table with few columns to a dense array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


class Swaps(NamedTuple):
    """The selected units of a table, and the candidates for their replacement.

    ``pairs`` contains tuples of (selected unit, candidate, similarity). The unit indices in
    ``pairs`` and ``kept`` refer to ``X``, which has only the columns of these units.
    """

    X: Array
    y: NDArray[Any] | None
    grouping: Grouping
    search: Any
    categories: Mask | None
    kept: Subset
    pairs: list[tuple[int, int, float]]
    weights: Array | None

    @property
    def walk(self) -> Any:
        """The innermost search, which may have a criterion."""
        part = walk_of(self.search)
        while hasattr(part, "search"):
            part = part.search
        return part

    def swapped(self, old: int, new: int) -> Subset:
        """Return the selected units with the unit ``old`` replaced by ``new``."""
        return with_unit(self.kept[self.kept != old], new)


def cut_down(
    read: Any, weights: Array | None, min_correlation: float, n_candidates: int
) -> tuple[Swaps, Subset]:
    """Return the selected units with their candidates, and the indices of both in the table."""
    search, grouping, n_columns = read.search, read.search.units_, read.X.shape[1]
    categories = _categories_of(search, n_columns)
    kept = np.flatnonzero(search.unit_support_)
    free = np.setdiff1d(kept, grouping.fixed_units)
    alike = similarities(read.X, free, grouping, categories)
    alike[:, kept] = -1.0
    pairs = []
    for row, unit in enumerate(free):
        best = np.argsort(-alike[row], kind="stable")[:n_candidates]
        # the tolerance keeps a correlation of exactly min_correlation despite rounding
        close = best[alike[row, best] >= min_correlation - 1e-12]
        pairs += [(int(unit), int(other), float(alike[row, other])) for other in close]
    units = np.union1d(kept, np.array([other for _, other, _ in pairs], dtype=np.intp))
    columns = grouping.columns(units)
    position = {int(unit): index for index, unit in enumerate(units)}
    cut = Swaps(
        read.X[:, columns],
        read.y,
        grouping.restricted(units),
        for_columns(search, columns, n_columns),
        None if categories is None else categories[columns],
        np.array([position[int(unit)] for unit in kept], dtype=np.intp),
        [(position[old], position[new], r) for old, new, r in pairs],
        weights,
    )
    return cut, units


def _categories_of(search: Selection, n_columns: int) -> Mask | None:
    """Return a mask of the columns that any criterion of the search treats as categories."""
    masks = [
        mask
        for given in given_categories(search)
        if (mask := category_mask(type(search).__name__, given, n_columns)) is not None
    ]
    return np.any(masks, axis=0) if masks else None


def score_changes(swaps: Swaps, seed: int) -> Array:
    """Return, for each swap, the gain of the new unit minus the gain of the old unit."""
    walk = swaps.walk
    criterion = getattr(walk, "criterion", None)
    changes = np.full(len(swaps.pairs), np.nan)
    if not isinstance(criterion, ForwardCriterion) or not swaps.pairs:
        return changes
    criterion = clone(criterion).grouped(swaps.grouping.members)
    fix_seeds(criterion, root=seed)
    scaled = walk.standardize and not criterion.reads_scale
    olds = np.array([old for old, _, _ in swaps.pairs])
    with silence_search():
        weights = _for_criterion(criterion, swaps.weights)
        criterion.fit(standardised(swaps.X) if scaled else swaps.X, swaps.y, **weights)
        for old in np.unique(olds):
            here = np.flatnonzero(olds == old)
            asked = np.unique([old, *(swaps.pairs[i][1] for i in here)])
            gains = dict(
                zip(asked, criterion.gain(swaps.kept[swaps.kept != old], asked), strict=True)
            )
            changes[here] = [gains[swaps.pairs[i][1]] - gains[old] for i in here]
    return changes


def _for_criterion(criterion: Any, weights: Array | None) -> dict[str, Array]:
    """Return the weights under the parameter name that the criterion uses.

    The dictionary is empty if the criterion does not accept weights.
    """
    if weights is None or not criterion.takes_metadata:
        return {}
    name = weights_name(criterion.estimator) if hasattr(criterion, "estimator") else None
    return {name or "sample_weight": weights}

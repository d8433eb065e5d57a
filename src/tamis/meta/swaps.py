"""Swaps of a selected unit for a similar one: which are tried, and how they score."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask, Subset, scaled_columns, standardised
from tamis._linalg import column_correlations
from tamis._seeds import fix_seeds
from tamis._sparse import is_sparse
from tamis.contract import ForwardCriterion, Selection
from tamis.contract.criterion import with_unit
from tamis.contract.units import Grouping
from tamis.density.discrete import category_mask
from tamis.meta.inner_search import unheard, walk_of
from tamis.search.categories import for_columns, given_categories
from tamis.validation.held_out import weights_name

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


class Swaps(NamedTuple):
    """A table cut down to the units that are kept and their candidates.

    ``pairs`` are (kept, candidate, likeness), counted among those units, as ``kept`` is.
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
        """The part of the search that has a criterion, where there is one."""
        part = walk_of(self.search)
        while hasattr(part, "search"):
            part = part.search
        return part

    def swapped(self, old: int, new: int) -> Subset:
        """What is kept, with another unit in the place of one."""
        return with_unit(self.kept[self.kept != old], new)


def cut_down(
    read: Any, weights: Array | None, min_correlation: float, n_candidates: int
) -> tuple[Swaps, Subset]:
    """The units that matter, and which units of the whole table they are."""
    search, grouping, n_columns = read.search, read.search.units_, read.X.shape[1]
    categories = _categories_of(search, n_columns)
    kept = np.flatnonzero(search.unit_support_)
    free = np.setdiff1d(kept, grouping.fixed_units)
    alike = likeness(read.X, free, grouping, categories)
    alike[:, kept] = -1.0
    pairs = []
    for row, unit in enumerate(free):
        best = np.argsort(-alike[row], kind="stable")[:n_candidates]
        # r = 0.7 of a column and its double must not be lost to rounding
        close = best[alike[row, best] >= min_correlation - 1e-12]
        pairs += [(int(unit), int(other), float(alike[row, other])) for other in close]
    units = np.union1d(kept, np.array([other for _, other, _ in pairs], dtype=np.intp))
    columns = grouping.columns(units)
    place = {int(unit): index for index, unit in enumerate(units)}
    cut = Swaps(
        read.X[:, columns],
        read.y,
        grouping.restricted(units),
        for_columns(search, columns, n_columns),
        None if categories is None else categories[columns],
        np.array([place[int(unit)] for unit in kept], dtype=np.intp),
        [(place[old], place[new], r) for old, new, r in pairs],
        weights,
    )
    return cut, units


def _categories_of(search: Selection, n_columns: int) -> Mask | None:
    """Which columns are codes, as any criterion inside was told."""
    masks = [
        mask
        for given in given_categories(search)
        if (mask := category_mask(type(search).__name__, given, n_columns)) is not None
    ]
    return np.any(masks, axis=0) if masks else None


def score_changes(swaps: Swaps, seed: int) -> Array:
    """For each swap what the criterion gives the new unit, less what it gives the old one."""
    walk = swaps.walk
    criterion = getattr(walk, "criterion", None)
    changes = np.full(len(swaps.pairs), np.nan)
    if not isinstance(criterion, ForwardCriterion) or not swaps.pairs:
        return changes
    criterion = clone(criterion).grouped(swaps.grouping.members)
    fix_seeds(criterion, root=seed)
    scaled = walk.standardize and not criterion.reads_scale
    olds = np.array([old for old, _, _ in swaps.pairs])
    with unheard():
        weighed = _for_criterion(criterion, swaps.weights)
        criterion.fit(standardised(swaps.X) if scaled else swaps.X, swaps.y, **weighed)
        for old in np.unique(olds):
            here = np.flatnonzero(olds == old)
            asked = np.unique([old, *(swaps.pairs[i][1] for i in here)])
            gains = dict(
                zip(asked, criterion.gain(swaps.kept[swaps.kept != old], asked), strict=True)
            )
            changes[here] = [gains[swaps.pairs[i][1]] - gains[old] for i in here]
    return changes


def _for_criterion(criterion: Any, weights: Array | None) -> dict[str, Array]:
    """The weights by the name under which a criterion takes them, nothing where it takes none."""
    if weights is None or not criterion.takes_metadata:
        return {}
    name = weights_name(criterion.estimator) if hasattr(criterion, "estimator") else None
    return {name or "sample_weight": weights}

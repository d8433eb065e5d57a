"""Swaps of a unit that was kept for one that was left out: which are tried, and their scores."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask, Subset, standardised
from tamis._seeds import fix_seeds
from tamis.contract import ForwardCriterion, Selection
from tamis.contract.criterion import with_unit
from tamis.contract.units import Grouping
from tamis.density.discrete import category_mask
from tamis.meta.inner_search import unheard, walk_of
from tamis.meta.similarity import likeness
from tamis.search.categories import for_columns, given_categories
from tamis.validation.held_out import weights_name


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

"""The search inside a selection: how far it walks, what it costs, what it thinks of columns."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tamis._arrays import Array, Subset
from tamis._seeds import fix_seeds
from tamis.contract import Search, Selection
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, TamisWarning

#: Columns that a walk which only adds enters in a round: those beyond hardly ever decide, and a
#: walk through a wide table takes as long as all else together.
STEPS = 40
#: A number of columns of which every number of features that people ask for can be kept.
MANY = 10**9


@contextmanager
def unheard() -> Iterator[None]:
    """Keep quiet what the search itself says once, so that not every round says it again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def parts_of(search: Any) -> list[Any]:
    """The parts of a composed search in the order in which they run; of any other, itself."""
    return [search.first, *parts_of(search.second)] if hasattr(search, "second") else [search]


def walk_of(search: Any) -> Any:
    """The search itself, or the last part of a composed one."""
    return parts_of(search)[-1]


def walked(
    search: Selection,
    X: Array,
    y: NDArray[Any] | None,
    seed: int,
    size: int,
    labels: Subset | None = None,
) -> Selection:
    """A clone of a search that walked to a size, with seeds; ``labels`` are the units."""
    search = clone(search)
    walk_of(search).set_params(n_features_to_select=size)
    # an attribute, since a search need not have it among its parameters
    search.feature_groups = None if labels is None else labels.tolist()
    fix_seeds(search, root=seed)
    with unheard():
        search.fit(X, y)
    return search


def standing_of(search: Selection) -> Array:
    """What a fitted search thinks of each column: greater is better, equal where it cannot say.

    The score where columns are scored alone; elsewhere less the place in the order, and minus
    infinity where a walk never came to a column.
    """
    if search.scores_alone:
        return np.asarray(search.scores_, dtype=float)
    n = len(search.order_)
    places = np.empty(n)
    places[search.order_] = -np.arange(n, dtype=float)
    moves = search.trace_.moves()
    if len(moves.unit) and moves.entered.all() and not hasattr(search, "second_"):
        came = np.zeros(n, dtype=bool)
        came[moves.unit] = True
        places[~came] = -np.inf
    return places


def in_order_of_columns(labels: Subset) -> Subset:
    """The units of some columns as a search numbers them: by their first columns.

    >>> in_order_of_columns(np.array([4, 1, 4, 0]))
    array([4, 1, 0])
    """
    found: Subset = labels[np.sort(np.unique(labels, return_index=True)[1])]
    return found


def walk_cost(search: Any, n_samples: int, n_features: int) -> float | None:
    """Estimate the bytes that a search holds, None if its criterion does not know them."""
    if isinstance(search, Search):
        own: float | None = search.criterion.cost(n_samples, n_features)
        return own and own + 1e5 + 16.0 * n_samples * n_features
    if not hasattr(search, "second"):
        return cast("float | None", search.cost(n_samples, n_features))
    first = walk_cost(search.first, n_samples, n_features)
    second = walk_cost(search.second, n_samples, _kept(search.first, n_features))
    return None if first is None or second is None else max(first, second)


def _kept(first: Any, n_units: int) -> int:
    """How many units the first part of a composed search leaves."""
    try:
        return first._size(n_units) or n_units
    except InvalidParameter:  # more than there are, which its fit will say
        return n_units


def whole_walk(search: Any, n_units: int) -> int:
    """The size to which a search must walk so that every column that matters has a place."""
    return min(STEPS, reached(search, n_units)) if walk_of(search).grows else 1


def reached(search: Any, n_units: int) -> int:
    """How many units the last part of a composed search can walk through."""
    for first in parts_of(search)[:-1]:
        n_units = _kept(first, n_units)
    return n_units


def check_first(name: str, search: Any) -> None:
    """Refuse a composition of which nobody knows how many columns its second part sees."""
    for first in parts_of(search)[:-1]:
        if first._size(MANY) is None:
            raise IncompatibleCriterion(
                f"{name} needs to know how many columns the first part of Then keeps, and "
                f"{type(first).__name__} leaves that to the data. Ask it for a number of "
                "features, or for a fraction."
            )

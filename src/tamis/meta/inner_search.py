"""Functions for the search inside a meta-selector: its size, memory, and ranking of the columns."""

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

#: Number of columns after which a forward search stops. Later columns hardly ever matter, and
#: adding all columns of a wide table would take most of the time.
STEPS = 40
#: A number that is larger than the number of columns of any table.
MANY = 10**9


@contextmanager
def silence_search() -> Iterator[None]:
    """Suppress warnings of the search, which would be repeated in every round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def parts_of(search: Any) -> list[Any]:
    """Return the parts of a composed search in the order in which they run."""
    return [search.first, *parts_of(search.second)] if hasattr(search, "second") else [search]


def walk_of(search: Any) -> Any:
    """Return the search itself, or the last part of a composed search."""
    return parts_of(search)[-1]


def fit_search(
    search: Selection,
    X: Array,
    y: NDArray[Any] | None,
    seed: int,
    size: int | None,
    labels: Subset | None = None,
) -> Selection:
    """Fit a clone of a search with the given seed and size, or with its own size if it is None.

    ``labels`` holds the unit of each column, or is None if each column is a unit.
    """
    search = clone(search)
    if size is not None:
        walk_of(search).set_params(n_features_to_select=size)
    inner: Any = search
    while hasattr(inner, "search"):  # a meta-selector has the groups of its search
        inner = inner.search
    # set as an attribute, because not every search has it as a parameter
    inner.feature_groups = None if labels is None else labels.tolist()
    inner.feature_costs = None  # they do not affect the order of the columns
    fix_seeds(search, root=seed)
    with silence_search():
        search.fit(X, y)
    return search


def standing_of(search: Selection) -> Array:
    """Return a score for each unit from a fitted search. Greater is better.

    If the search scores each unit independently, its scores are returned. Otherwise the score is
    the negative position in the order, or minus infinity for units that a forward search did not
    add.
    """
    if search.scores_alone:
        return np.asarray(search.scores_, dtype=float)
    n = len(search.order_)
    standing = np.empty(n)
    standing[search.order_] = -np.arange(n, dtype=float)
    moves = search.trace_.moves()
    if len(moves.unit) and moves.entered.all() and not hasattr(search, "second_"):
        standing[np.setdiff1d(np.arange(n), moves.unit)] = -np.inf
    return standing


def in_order_of_columns(labels: Subset) -> Subset:
    """Return the distinct units in the order of their first columns.

    ``labels`` holds the unit of each column.

    >>> in_order_of_columns(np.array([4, 1, 4, 0]))
    array([4, 1, 0])
    """
    found: Subset = labels[np.sort(np.unique(labels, return_index=True)[1])]
    return found


def search_cost(search: Any, n_samples: int, n_features: int) -> float | None:
    """Estimate the memory in bytes that a search needs, or return None if it is unknown."""
    if isinstance(search, Search):
        own: float | None = search.criterion.cost(n_samples, n_features)
        return own and own + 1e5 + 16.0 * n_samples * n_features
    if not hasattr(search, "second"):
        return cast("float | None", search.cost(n_samples, n_features))
    first = search_cost(search.first, n_samples, n_features)
    second = search_cost(search.second, n_samples, _n_selected(search.first, n_features))
    return None if first is None or second is None else max(first, second)


def _n_selected(first: Any, n_units: int) -> int:
    """Return how many units the first part of a composed search selects."""
    try:
        return first._size(n_units) or n_units
    except InvalidParameter:  # more units than there are, for which fit will raise an error
        return n_units


def path_size(search: Any, n_units: int) -> int:
    """Return the number of columns that a search must select to rank the important ones."""
    return min(STEPS, reached(search, n_units)) if walk_of(search).grows else 1


def reached(search: Any, n_units: int) -> int:
    """Return the number of units that reach the last part of a composed search."""
    for first in parts_of(search)[:-1]:
        n_units = _n_selected(first, n_units)
    return n_units


def check_first(name: str, search: Any) -> None:
    """Refuse a composition if the number of columns that its first part selects is unknown."""
    for first in parts_of(search)[:-1]:
        if first._size(MANY) is None:
            raise IncompatibleCriterion(
                f"{name} needs a fixed number of columns after the first part of Then, but the "
                f"number depends on the data for {type(first).__name__}. Ask it for a number of "
                "features, or for a fraction."
            )

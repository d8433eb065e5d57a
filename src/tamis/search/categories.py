"""Which columns are categories, said by position: kept right where the positions change."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from tamis._arrays import Subset
from tamis.contract import Selection
from tamis.density.discrete import category_mask

S = TypeVar("S", bound=Selection)

#: The parameters that lead from a selection to the criteria inside it.
WAYS = {"criterion", "first", "second", "search"}


def with_categories(selection: S, change: Callable[[Any], list[int] | None]) -> S:
    """A clone whose criteria say anew which columns are categories, by what they said before.

    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> with_categories(Forward(MRMR()), lambda given: [2])
    Forward(criterion=MRMR(categories=[2]))
    """
    params = selection.get_params()
    changed = {key: change(params[key]) for key in params if _leads_to_categories(key)}
    found: S = clone(selection).set_params(**changed)
    return found


def for_columns(selection: S, columns: Subset, n_columns: int) -> S:
    """The selection for some columns of the table that its ``categories`` speak of.

    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> for_columns(Forward(MRMR(categories=[1, 4])), np.array([0, 4, 5]), 6)
    Forward(criterion=MRMR(categories=[1]))
    """
    params = selection.get_params()
    if all(params[key] is None for key in params if _leads_to_categories(key)):
        return selection

    def renumbered(given: Any) -> list[int] | None:
        mask = category_mask(type(selection).__name__, given, n_columns)
        return None if mask is None else np.flatnonzero(mask[columns]).tolist()

    return with_categories(selection, renumbered)


def _leads_to_categories(key: str) -> bool:
    *way, last = key.split("__")
    return last == "categories" and bool(way) and set(way) <= WAYS

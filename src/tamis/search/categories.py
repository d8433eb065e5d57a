"""Access to the parameter ``categories`` of the criteria inside a selection.

The parameter lists the positions of the columns that contain category codes.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from tamis._arrays import Subset
from tamis.contract import Selection
from tamis.density.discrete import category_mask

S = TypeVar("S", bound=Selection)

#: Names of the parameters of a selection that contain its criteria, directly or in their parts.
PATHS = {"criterion", "first", "second", "search"}


def with_categories(selection: S, change: Callable[[Any], list[int] | None]) -> S:
    """Return a clone, with a function applied to the ``categories`` of each criterion.

    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> with_categories(Forward(MRMR()), lambda given: [2])
    Forward(criterion=MRMR(categories=[2]))
    """
    params = selection.get_params()
    changed: dict[str, Any] = {key: change(params[key]) for key in params if _leads_to(key)}
    for key in params:
        if _leads_to(key, "searches"):
            changed[key] = [with_categories(search, change) for search in params[key]]
    found: S = clone(selection).set_params(**changed)
    return found


def given_categories(selection: Selection) -> list[Any]:
    """Return the ``categories`` of all criteria inside a selection, except those that are None.

    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> given_categories(Forward(MRMR(categories=[1, 4])))
    [[1, 4]]
    """
    params = selection.get_params()
    found = [params[key] for key in params if _leads_to(key) and params[key] is not None]
    for key in params:
        if _leads_to(key, "searches"):
            found += [given for search in params[key] for given in given_categories(search)]
    return found


def for_columns(selection: S, columns: Subset, n_columns: int) -> S:
    """Return the selection for a table with only the given columns.

    The positions in ``categories`` are renumbered.

    >>> from tamis.criteria import MRMR
    >>> from tamis.search import Forward
    >>> for_columns(Forward(MRMR(categories=[1, 4])), np.array([0, 4, 5]), 6)
    Forward(criterion=MRMR(categories=[1]))
    """
    if not given_categories(selection):
        return selection

    def renumber(given: Any) -> list[int] | None:
        mask = category_mask(type(selection).__name__, given, n_columns)
        return None if mask is None else np.flatnonzero(mask[columns]).tolist()

    return with_categories(selection, renumber)


def _leads_to(key: str, end: str = "categories") -> bool:
    """Whether a parameter name such as "first__criterion__categories" leads to a criterion."""
    *path, last = key.split("__")
    return last == end and (bool(path) or end == "searches") and set(path) <= PATHS

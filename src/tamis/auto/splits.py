"""Training and test rows: folds made by Auto, or the splits of a user's splitter."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from tamis._arrays import Subset, is_int
from tamis.exceptions import InvalidParameter
from tamis.validation.splits import Fold, deal_folds, list_splits


def balanced_folds(
    strata: Subset | None, n_rows: int, groups: Subset | None, n_folds: int, seed: int
) -> list[Fold]:
    """Return shuffled folds that are stratified by class. Rows of a group are in the same fold."""
    if groups is not None and groups.max() + 1 < n_folds:
        raise InvalidParameter(
            f"Auto cannot make {n_folds} folds of {groups.max() + 1} group(s) of rows. Ask for "
            "fewer folds (cv=2), or do not pass groups."
        )
    # scikit-learn refuses to stratify if no class has a row for every fold
    stratified = strata is not None and np.bincount(strata).max() >= n_folds
    # scikit-learn warns if a small class is missing from a fold
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        found = deal_folds(n_folds, n_rows, strata if stratified else None, groups, seed)
    if all(len(test) for _, test in found):
        return found
    # with a few large groups of one class each, stratification may leave a fold empty
    return deal_folds(n_folds, n_rows, None, groups, seed)


def check_cv(cv: Any) -> None:
    """Raise an error if ``cv`` is not a number of folds, a splitter or a list of splits."""
    if is_int(cv) and cv >= 2:
        return
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, list | tuple)):
        raise InvalidParameter(
            f"Auto needs cv as a number of folds of at least 2, a splitter of scikit-learn, or a "
            f"list of pairs (train, test), not {cv!r}."
        )


def make_splits(
    cv: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    rows: Subset,
    n_rows: int,
    seed: int,
) -> list[Fold]:
    """Return the splits of a user's ``cv`` as positions among the rows in use.

    Parameters
    ----------
    cv : splitter or iterable of pairs (train, test)
        Each pair holds indices or masks of all ``n_rows`` rows of the table.
    y, groups : array
        Target and groups of the rows in use.
    rows : array of int
        Indices of the rows in use.
    """
    if hasattr(cv, "split"):
        if getattr(cv, "random_state", 0) is None:  # all processes must make the same splits
            cv = clone(cv, safe=False)
            cv.random_state = seed
        try:
            found = list_splits(cv, np.zeros((len(rows), 1)), y, groups=groups)
        except ValueError as error:
            raise InvalidParameter(
                f"cv={cv} cannot split the {len(rows)} rows: {error}."
            ) from error
        splits = [(np.asarray(train), np.asarray(test)) for train, test in found]
    else:
        position = np.full(n_rows, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        splits = [_positions(pair, position) for pair in cv]
    splits = [(train, test) for train, test in splits if len(test) and len(train) > 1]
    if len(splits) < 2:
        raise InvalidParameter(
            f"Auto needs cv with at least 2 pairs of training and test rows, got {len(splits)}."
        )
    return splits


def _positions(pair: Any, position: NDArray[np.intp]) -> Fold:
    """Convert the row indices of a pair (train, test) to positions among the rows in use."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidParameter(
            f"Auto needs every item of cv as a pair (train, test) of row indices, not {pair!r}."
        )
    n_rows, found = len(position), []
    for part in pair:
        given = np.asarray(part)
        if given.dtype == bool and given.shape == (n_rows,):
            given = np.flatnonzero(given)
        if given.ndim != 1 or given.dtype.kind not in "iu" or given.max(initial=0) >= n_rows:
            raise InvalidParameter(
                f"Auto needs splits of cv that give rows as indices below {n_rows} or as masks of "
                "that length."
            )
        used = position[given]
        found.append(used[used >= 0])
    return found[0], found[1]

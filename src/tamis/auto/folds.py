"""Folds of rows, in which classes are in proportion and rows of a group together."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from tamis._arrays import Subset, class_codes
from tamis.exceptions import InvalidParameter


def groups_of(groups: Any, n_rows: int) -> NDArray[np.intp] | None:
    """The group of every row as a number; None where there are no groups."""
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise InvalidParameter(
            f"Auto needs groups with one label for each of the {n_rows} rows, not an array of "
            f"shape {given.shape}."
        )
    try:
        return class_codes(given)[1]
    except TypeError as error:  # labels of several types have no order
        raise InvalidParameter(
            f"Auto needs groups with labels of one type, but they mix several ({error}). Convert "
            "them, for example with groups.astype(str)."
        ) from error


def dealt(
    codes: Subset | None, n_rows: int, groups: Subset | None, n_folds: int, seed: int
) -> list[tuple[Subset, Subset]]:
    """Pairs (the others, one fold): classes in proportion, rows of a group together."""
    if groups is not None and groups.max() + 1 < n_folds:
        raise InvalidParameter(
            f"Auto cannot make {n_folds} folds of {groups.max() + 1} group(s) of rows. Ask for "
            "fewer folds (n_folds), or leave groups out."
        )
    # a class needs as many rows as there are folds, of which StratifiedKFold makes an error
    # where no class has them: then classes are too small to be dealt in proportion
    stratified = codes is not None and np.bincount(codes).max() >= n_folds
    given = {"n_splits": n_folds, "shuffle": True, "random_state": seed}
    if groups is None:
        folds = StratifiedKFold(**given) if stratified else KFold(**given)
    else:
        folds = StratifiedGroupKFold(**given) if stratified else GroupKFold(**given)
    with warnings.catch_warnings():  # a class of few rows is missing in some folds
        warnings.simplefilter("ignore", UserWarning)
        found = list(folds.split(np.zeros(n_rows), codes, groups))
    if all(len(test) for _, test in found):
        return found
    # where a few large groups hold a class, proportions may leave a fold without any
    return list(GroupKFold(**given).split(np.zeros(n_rows), None, groups))

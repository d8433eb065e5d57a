"""Folds of rows: classes in equal shares, the rows of a group never on both sides."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)

from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidTarget,
    NotConverged,
    TamisWarning,
)

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]


#: How scikit-learn says that folds cannot have equal shares of a class.
FEW_MEMBERS = "The least populated class in y has only"
#: How it doubts that a target is of classes, which who asks has made sure of.
MANY_CLASSES = "The number of unique classes"


@contextmanager
def retold() -> Iterator[None]:
    """What scikit-learn warns of while it makes folds and trains, once, as warnings of tamis.

    A search trains hundreds of models: what the first of them says holds for all.
    """
    with warnings.catch_warnings(record=True) as heard:
        yield
    told: dict[type[TamisWarning], str] = {}
    for said in heard:
        text = str(said.message)
        if issubclass(said.category, ConvergenceWarning):
            told.setdefault(NotConverged, f"A model did not come to rest: {text.splitlines()[0]}")
        elif text.startswith(FEW_MEMBERS):
            told.setdefault(DegenerateData, f"Some folds are without a class. {text}")
        elif text.startswith(MANY_CLASSES):
            continue
        elif said.category in (UserWarning, LinAlgWarning):
            told.setdefault(DegenerateData, f"A model says of its rows: {text}")
        else:
            warnings.warn_explicit(said.message, said.category, said.filename, said.lineno)
    for category, text in told.items():
        warnings.warn(text, category, stacklevel=3)


def folds_of(name: str, n_folds: int, y: NDArray[Any], groups: Any, *, classes: bool) -> list[Fold]:
    """Rows to train on and the rest, fold by fold, without a draw; fewer where there are few rows.

    >>> [rest.tolist() for _, rest in folds_of("", 2, np.arange(4), [7, 8, 7, 8], classes=False)]
    [[1, 3], [0, 2]]
    """
    n_folds = min(n_folds, _most_folds(name, y, classes))
    n_folds = n_folds if groups is None else min(n_folds, _n_groups(name, groups))
    folds = deal_folds(n_folds, len(y), y if classes else None, groups)
    if classes and groups is not None:
        for train, _ in folds:
            _check_classes(name, y, train)
    return folds


def deal_folds(
    n_folds: int,
    n_rows: int,
    strata: NDArray[Any] | None = None,
    groups: Any = None,
    seed: int | None = None,
) -> list[Fold]:
    """Rows to train on and the rest, fold by fold, as scikit-learn deals them.

    Parameters
    ----------
    n_folds, n_rows : int
    strata : array of shape (n_rows,) or None
        The class of each row, of which each fold has a proportional share.
    groups : array of shape (n_rows,) or None
        Rows of one group stay together.
    seed : int or None
        Of a shuffle; None deals rows in their order.
    """
    if groups is None:
        kind = KFold if strata is None else StratifiedKFold
    else:
        kind = GroupKFold if strata is None else StratifiedGroupKFold
    folds = kind(n_folds, shuffle=seed is not None, random_state=seed)
    return list(folds.split(np.zeros(n_rows), strata, groups))


def held_out(name: str, share: float, y: NDArray[Any], groups: Any, seed: int) -> Fold:
    """Rows to train on and a share of them that does not, drawn; classes in equal shares.

    With groups it is the share of the nearest number of folds: a half, a third, a fourth, ...
    """
    if groups is None:
        everything = np.arange(len(y))
        parts = train_test_split(everything, test_size=share, stratify=y, random_state=seed)
        return np.sort(parts[0]), np.sort(parts[1])
    n_folds = min(max(2, round(1 / share)), _most_folds(name, y, True), _n_groups(name, groups))
    train, rest = deal_folds(n_folds, len(y), y, groups, seed)[0]
    for part in (train, rest):
        _check_classes(name, y, part)
    return train, rest


def _most_folds(name: str, y: NDArray[Any], classes: bool) -> int:
    least = int(np.unique(y, return_counts=True)[1].min()) if classes else len(y)
    if least < 2:
        raise InvalidTarget(
            f"{name} makes folds and needs at least two rows of each class. Drop the class with a "
            "single row, or use on='training' and calibration=None."
        )
    return least


def _n_groups(name: str, groups: Any) -> int:
    if (n_groups := len(np.unique(groups))) < 2:
        raise InvalidParameter(
            f"{name} makes folds of whole groups and needs two groups or more, not {n_groups}."
        )
    return n_groups


def _check_classes(name: str, y: NDArray[Any], part: Rows) -> None:
    missing = np.setdiff1d(y, y[part])
    if len(missing):
        raise InvalidParameter(
            f"{name} keeps the rows of a group together, and the class {str(missing[0])!r} is in "
            "too few groups to be on both sides of its folds. Leave groups out, or that class."
        )

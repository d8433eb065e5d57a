"""Folds of rows that are stratified by class and keep the rows of a group together."""

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
    check_cv,
    train_test_split,
)

from tamis._arrays import class_codes
from tamis._format import first_line, format_count
from tamis.exceptions import (
    DegenerateData,
    InvalidParameter,
    InvalidTarget,
    NotConverged,
    TamisWarning,
)

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]


#: Maximum number of folds. A splitter such as LeavePOut(p=20) makes far too many to run.
MOST_FOLDS = 100_000
#: Beginning of scikit-learn's warning that a class has fewer rows than there are folds.
FEW_MEMBERS = "The least populated class in y has only"
#: Beginning of scikit-learn's warning that the classes may be numbers of a regression. It is
#: dropped, because callers have checked that already.
MANY_CLASSES = "The number of unique classes"


def list_splits(splitter: Any, X: Any, y: Any, **params: Any) -> list[Any]:
    """Return all splits of a splitter of scikit-learn. Raise a ValueError if there are too many."""
    if hasattr(splitter, "get_n_splits"):
        n_folds = splitter.get_n_splits(X, y, **params)
        if n_folds > MOST_FOLDS:
            raise ValueError(f"{splitter} makes {n_folds} folds, more than {MOST_FOLDS}")
    return list(splitter.split(X, y, **params))


@contextmanager
def reword_warnings() -> Iterator[None]:
    """Turn warnings of scikit-learn about folds and training into warnings of tamis.

    Only the first warning of each kind is issued, because a search trains hundreds of models.
    """
    with warnings.catch_warnings(record=True) as caught:
        yield
    first: dict[type[TamisWarning], str] = {}
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, ConvergenceWarning):
            first.setdefault(NotConverged, f"A model did not converge: {text.splitlines()[0]}")
        elif text.startswith(FEW_MEMBERS):
            first.setdefault(DegenerateData, f"Some folds are without a class. {text}")
        elif text.startswith(MANY_CLASSES):
            continue
        elif warning.category in (UserWarning, LinAlgWarning):
            first.setdefault(DegenerateData, f"A model warned about its rows: {text}")
        else:
            place = warning.filename, warning.lineno
            warnings.warn_explicit(warning.message, warning.category, *place)
    for category, text in first.items():
        warnings.warn(text, category, stacklevel=3)


def split_rows(name: str, cv: Any, X: Any, y: Any, *, classes: bool, **metadata: Any) -> list[Fold]:
    """Return the row numbers of each fold of scikit-learn's parameter ``cv``.

    ``classes`` is whether ``y`` contains classes. ``metadata`` is for the splitter, such as groups.
    """
    n_rows = X.shape[0]
    try:
        # scikit-learn casts large numbers to int
        with reword_warnings(), np.errstate(invalid="ignore"):
            given = list_splits(check_cv(cv, y, classifier=classes), X, y, **metadata)
    except ValueError as error:
        raise InvalidParameter(
            f"{name} needs cv as an int from 2 to the {n_rows} rows, a splitter, or a list of "
            f"(training rows, test rows), and cannot make folds with cv={cv!r} "
            f"({first_line(error)}). Write another cv, for example fewer folds."
        ) from error
    if not given:
        raise InvalidParameter(
            f"{name} needs at least one fold in cv, but got none. Write cv=5, a splitter, or a "
            "list of (training rows, test rows)."
        )
    return [(_row_numbers(name, a, n_rows), _row_numbers(name, b, n_rows)) for a, b in given]


def _row_numbers(name: str, part: Any, n_rows: int) -> Rows:
    """Return the row numbers of a fold, which is given by indices or by a mask."""
    found = np.asarray(part)
    if found.dtype == bool and found.shape == (n_rows,):
        return np.flatnonzero(found)
    whole = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    if not whole or (found.size and not -n_rows <= found.min() <= found.max() < n_rows):
        raise InvalidParameter(
            f"{name} needs folds of row numbers below {n_rows}, or of masks with {n_rows} entries; "
            f"cv has an array of type {found.dtype} and shape {found.shape}."
        )
    return np.asarray(found, dtype=np.intp) % n_rows


def folds_of(name: str, n_folds: int, y: NDArray[Any], groups: Any, *, classes: bool) -> list[Fold]:
    """Return (training rows, test rows) of each fold, without shuffling.

    The number of folds is reduced if a class has fewer rows, or if there are fewer groups.

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


def read_labels(owner: str, name: str, given: Any, n_rows: int) -> tuple[NDArray[Any], Rows] | None:
    """Return the distinct labels of rows and the code of each row, or None if none are given.

    Labels are numbers, booleans or text, as a record can store them. Dates become text.
    ``owner`` and ``name`` are the selector and the argument, such as "groups", for errors.
    """
    if given is None:
        return None
    labels = np.asarray(given)
    if labels.shape != (n_rows,):
        raise InvalidParameter(
            f"{owner} needs {name} with one label for each of the {n_rows} rows, not an array of "
            f"shape {labels.shape}."
        )
    if missing := _count_missing(labels):
        raise InvalidParameter(
            f"{owner} needs {name} with a label for each row, but {format_count(missing, 'label')} "
            f"{'is' if missing == 1 else 'are'} missing. Leave these rows out, or give them a "
            "label."
        )
    try:
        names, codes = class_codes(labels)
    except TypeError as error:  # labels of several types cannot be sorted
        raise InvalidParameter(
            f"{owner} needs {name} with labels of one type, but they mix several ({error}). "
            f"Convert them, for example with {name}.astype(str)."
        ) from error
    if names.dtype.kind == "M":
        names = np.datetime_as_string(names, unit="auto")
    if names.dtype.kind not in "biufU":
        names = np.array([x if isinstance(x, bool | int | float) else str(x) for x in names])
    return names, codes


def _count_missing(labels: NDArray[Any]) -> int:
    if labels.dtype.kind != "O":
        return int(np.sum(labels != labels))  # NaN and NaT differ from themselves
    missing = 0
    for label in labels:
        try:
            missing += label is None or bool(label != label)
        except TypeError:  # pandas.NA is neither equal nor different
            missing += 1
    return missing


def read_row_weights(
    owner: str, given: Any, n_rows: int, fewest: int = 1
) -> NDArray[np.float64] | None:
    """Return the row weights, or None if not given. At least ``fewest`` must be above 0."""
    if given is None:
        return None
    try:
        weights = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        weights = np.empty(0)
    good = weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights >= 0).all()
    if not good or np.count_nonzero(weights) < fewest:
        raise InvalidParameter(
            f"{owner} needs sample_weight as {n_rows} finite numbers of at least 0, one for each "
            f"row, with at least {fewest} above 0."
        )
    return weights


def deal_folds(
    n_folds: int,
    n_rows: int,
    strata: NDArray[Any] | None = None,
    groups: Any = None,
    seed: int | None = None,
) -> list[Fold]:
    """Return (training rows, test rows) of each fold, made by scikit-learn.

    Parameters
    ----------
    n_folds, n_rows : int
    strata : array of shape (n_rows,) or None
        The class of each row, by which folds are stratified.
    groups : array of shape (n_rows,) or None
        The group of each row. Rows of the same group stay together.
    seed : int or None
        Seed of the shuffle. If None, rows are not shuffled.
    """
    if groups is None:
        kind = KFold if strata is None else StratifiedKFold
    else:
        kind = GroupKFold if strata is None else StratifiedGroupKFold
    folds = kind(n_folds, shuffle=seed is not None, random_state=seed)
    return list(folds.split(np.zeros(n_rows), strata, groups))


def held_out(name: str, share: float, y: NDArray[Any], groups: Any, seed: int) -> Fold:
    """Draw training rows and a share of held-out rows, stratified by class.

    With groups, a fold of whole groups is held out. The share is then rounded to a half, a third, a
    fourth and so on.
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
            f"{name} needs at least two rows of each class to make folds. Drop the class with a "
            "single row, or use on='training' and calibration=None."
        )
    return least


def _n_groups(name: str, groups: Any) -> int:
    if (n_groups := len(np.unique(groups))) < 2:
        raise InvalidParameter(
            f"{name} needs at least two groups to make folds of whole groups, not {n_groups}."
        )
    return n_groups


def _check_classes(name: str, y: NDArray[Any], part: Rows) -> None:
    missing = np.setdiff1d(y, y[part])
    if len(missing):
        raise InvalidParameter(
            f"{name} needs every class in the training and the test rows of a fold, but the class "
            f"{str(missing[0])!r} is in too few groups for that. Leave out groups, or that class."
        )

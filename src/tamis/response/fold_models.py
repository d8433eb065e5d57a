"""Trainings of models: a table, the rows that may train, folds, and per-row values."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from tamis._arrays import FARTHEST, Array, Subset
from tamis._namespace import Place, host, is_elsewhere, namespace, note, rows_taken, taken
from tamis._sparse import is_sparse
from tamis.exceptions import InvalidTable, TamisError, UnlabelledRows
from tamis.svm.machine import is_newton, most_steps
from tamis.validation.splits import Fold, Rows, folds_of, retold

#: on="auto" compares outputs on held-out rows beyond so many columns and from so many rows on: with
#: fewer columns a kernel is seldom nearly diagonal, with fewer rows a fold trains too few.
MANY_COLUMNS, MANY_ROWS = 30, 200
#: Folds of held-out rows: five, or three where five trainings would take long.
FEW_ROWS, FOLDS_OF_FEW, FOLDS_OF_MANY = 500, 5, 3
#: Trained by LIBSVM, which scikit-learn lets run until it converges.
MACHINES = (NuSVC, NuSVR, OneClassSVM, SVC, SVR)


@dataclass(frozen=True, eq=False)
class FoldTraining:
    """Rows to train on, and rows whose outputs are compared.

    ``name`` is the owner's in messages. The outputs of all rows are compared; ``rows`` are those
    that may train. ``stratified`` says whether folds have equal shares of the classes; ``labels``
    are those that models know, if the rows may not have them all. With ``left_out`` the outputs of
    each row come from the machine without it. ``n_jobs`` is the number of threads that engines may
    use, ``place`` the device where kernels are to be computed, ``precision`` theirs there.
    """

    name: str
    X: Array
    y: NDArray[Any] | None
    rows: Rows
    task: str = "none"
    held_out: bool = False
    left_out: bool = False
    stratified: bool = False
    groups: Any = None
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)
    labels: NDArray[Any] | None = None
    seed: int = 0
    n_jobs: int | None = None
    place: Place | None = None
    precision: str = "double"
    #: What machines of the same rows start from: the samples inside the margin of the last round.
    starts: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def table(self) -> Any:
        """The whole table on the device; it goes there once."""
        return self.X if self.place is None else self.place.put(self.X)

    def columns(self, estimator: Any, columns: Subset) -> Any:
        """Some columns where the estimator trains on them: on the device, if it can."""
        if self.place is not None and is_newton(estimator):
            return taken(self.table, columns)
        return self.X[:, columns]

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Labels of the rows that may train, and others that models know."""
        assert self.y is not None
        return np.union1d(self.y[self.rows], self.y[:0] if self.labels is None else self.labels)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Positions among the classes; -1 for rows that do not train."""
        assert self.y is not None
        found = np.full(len(self.X), -1, dtype=np.intp)
        found[self.rows] = np.searchsorted(self.classes, self.y[self.rows])
        return found

    @cached_property
    def parts(self) -> list[Fold]:
        """Rows to train on and rows whose outputs are compared, of each model of a round.

        Rows that train nothing are dealt out to the folds in turn: no model has seen them. A row
        whose group is in a fold goes there, since the others have seen its group.
        """
        if not self.held_out:
            return [(self.rows, np.arange(len(self.X)))]
        folds = self.split(fold_count(len(self.rows)))
        left = np.setdiff1d(np.arange(len(self.X)), self.rows)
        owners = np.arange(len(left)) % len(folds)
        if self.groups is not None:
            for fold, (_, rest) in enumerate(folds):
                owners[np.isin(self.groups[left], self.groups[rest])] = fold
        return [
            (train, np.sort(np.r_[rest, left[owners == fold]]))
            for fold, (train, rest) in enumerate(folds)
        ]

    def split(self, n_folds: int) -> list[Fold]:
        """Folds of the rows that may train."""
        rows = self.rows
        y = rows if self.y is None else self.y[rows]
        groups = None if self.groups is None else self.groups[rows]
        folds = folds_of(self.name, n_folds, y, groups, classes=self.stratified)
        return [(rows[train], rows[rest]) for train, rest in folds]

    def fit(self, estimator: Any, X: Any, rows: Rows | None = None) -> Any:
        """Train a clone of the estimator on some columns and some rows, by default all."""
        y, params = self.y, self.fit_params
        start = self.starts.setdefault(b"" if rows is None else rows.tobytes(), {})
        if rows is not None:
            X, y = select_rows(X, rows), None if y is None else y[rows]
            params = take_rows(params, rows)
        return fit_clone(estimator, X, y, params, start)


def fold_count(n_rows: int) -> int:
    """Number of folds of held-out rows."""
    return FOLDS_OF_FEW if n_rows <= FEW_ROWS else FOLDS_OF_MANY


def holds_out(on: str, n_columns: int, n_rows: int) -> bool:
    """Whether outputs are compared on held-out rows."""
    many = n_columns > MANY_COLUMNS and n_rows >= MANY_ROWS
    return on == "held-out" or (on == "auto" and many)


def labelled_rows(name: str, y: NDArray[Any] | None, mark: int | None, n_rows: int) -> Rows:
    """Rows with another label than the mark; if there are two labels, each is a class."""
    everything = np.arange(n_rows)
    # no single label stands for a row of several
    if mark is None or y is None or y.dtype.kind in "US" or y.ndim > 1:
        return everything
    labelled = np.flatnonzero(y != mark)
    if len(labelled) == len(y) or len(np.unique(y[labelled])) < 2:
        return everything
    warnings.warn(
        f"{name} takes the {len(y) - len(labelled)} rows of label {mark} as "
        "unlabelled: they train nothing, and enter the average over rows alone. If it is a "
        "class, write unlabelled=None.",
        UnlabelledRows,
        stacklevel=2,
    )
    return labelled


def take_rows(params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Take the per-row values of some rows."""
    return {n: v[rows] if isinstance(v, np.ndarray) else v for n, v in params.items()}


def select_rows(X: Any, rows: Rows) -> Any:
    """Take rows of a table, on its own device."""
    return rows_taken(X, rows) if is_elsewhere(X) else X[rows]


def fit_clone(
    estimator: Any,
    X: Any,
    y: NDArray[Any] | None,
    params: dict[str, Any],
    start: dict[str, Any] | None = None,
) -> Any:
    """Train a clone of the estimator on these rows and columns.

    ``start`` is what the last training on these rows left behind, and receives what this one does:
    a Newton machine that starts from it comes to the same optimum in fewer steps.
    """
    fitted = clone(estimator)
    start = start if is_newton(fitted) else None
    if start is not None:
        fitted.warm_start, fitted._sides = True, start.get("sides")
    for part in (fitted, *fitted.get_params().values()):
        if isinstance(part, MACHINES) and part.max_iter == -1:
            # not a parameter of machines that follow the columns, but an attribute of every one
            part.max_iter = most_steps(X.shape[0])
    with explain_failures(type(estimator).__name__, X, y), retold():
        fitted = fitted.fit(X, **params) if y is None else fitted.fit(X, y, **params)
    if start is not None:
        start["sides"] = fitted._sides
    note("training", fitted.support_vectors_ if is_newton(fitted) else None)
    return fitted


@contextmanager
def explain_failures(name: str, X: Any, y: NDArray[Any] | None) -> Iterator[None]:
    """Turn failures of a training that say nothing to a user into a sentence.

    Models differ: trees do not mind numbers out of all proportion, whatever squares them does.
    """
    far = _out_of_proportion(X, y)
    raw: tuple[type[Exception], ...] = (ArithmeticError, IndexError)
    if far or X.shape[0] < 2:  # of one row models fail in ways of their own
        raw = (ValueError, *raw)
    try:
        with np.errstate(over="raise" if far else None):
            yield
    except TamisError:
        raise
    except raw as error:
        what, instead = (
            f"these {X.shape[0]} rows",
            "Look for columns that are constant, or the same for all rows of a class.",
        )
        if far:
            what = f"numbers as far from 1 as {far:.3g}"
            instead = (
                "Scale the columns, as a search does with standardize=True, and a real target."
            )
        said = " ".join(str(error).split())
        raise InvalidTable(f"{name} cannot be trained on {what} ({said}). {instead}") from error


def _out_of_proportion(X: Any, y: NDArray[Any] | None) -> float:
    """The largest of the numbers if squares of it overflow or vanish, else 0."""
    held = X.data if is_sparse(X) else X
    numbers = [held] if y is None or y.dtype.kind != "f" else [held, y]
    if is_elsewhere(held):
        xp = namespace(held)
        numbers[0] = host(xp.max(xp.abs(held)))
    sizes = [float(np.abs(part).max(initial=0.0)) for part in numbers]
    return next((size for size in sizes if abs(np.frexp(size)[1]) > FARTHEST), 0.0)

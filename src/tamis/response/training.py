"""What models are trained on: a table, the rows that may train, folds, and per-row values."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from tamis._arrays import FARTHEST, Array, Subset, class_codes, is_int
from tamis._namespace import Place, host, is_elsewhere, namespace, note, rows_taken, taken
from tamis._sparse import is_sparse
from tamis.exceptions import InvalidParameter, InvalidTable, TamisError, UnlabelledRows
from tamis.folds.rows import Fold, Rows, folds_of, retold
from tamis.response.engine import Model
from tamis.svm.machine import is_newton, most_steps

#: on="auto" compares outputs on held-out rows beyond so many columns and from so many rows on: with
#: fewer columns a kernel is seldom nearly diagonal, with fewer rows a fold trains too few.
MANY_COLUMNS, MANY_ROWS = 30, 200
#: Folds of held-out rows: five, or three where five trainings would take long.
FEW_ROWS, FOLDS_OF_FEW, FOLDS_OF_MANY = 500, 5, 3
#: Trained by LIBSVM, which scikit-learn lets run until it converges.
MACHINES = (NuSVC, NuSVR, OneClassSVM, SVC, SVR)


class FoldModel(NamedTuple):
    """A model and the rows that it answers for."""

    model: Model
    rows: Rows


@dataclass(frozen=True, eq=False)
class SensitivityTraining:
    """Rows to train on and rows that models answer for.

    ``name`` is the one that sentences speak of; all rows are answered for, and ``rows`` are those
    that may train. ``stratified`` says whether folds have equal shares of the classes; ``labels``
    are those that models know, where the rows may not have them all. With ``left_out`` each row is
    answered for by the machine without it. ``n_jobs`` is the number of threads that engines may
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
    #: What machines of the same rows begin with: the samples inside the margin of the last round.
    begun: dict[bytes, dict[str, Any]] = field(default_factory=dict)

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
        return self._coded[0]

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Positions among the classes; -1 for rows that do not train."""
        found = np.full(len(self.X), -1, dtype=np.intp)
        found[self.rows] = self._coded[1]
        return found

    @cached_property
    def _coded(self) -> tuple[NDArray[Any], NDArray[np.intp]]:
        assert self.y is not None
        y = self.y[self.rows]
        if self.labels is None:
            return class_codes(y)
        classes = np.union1d(self.labels, y)
        return classes, np.searchsorted(classes, y)

    @cached_property
    def parts(self) -> list[Fold]:
        """Rows to train on and rows to answer for, of each model of a round."""
        if self.held_out:
            return self._dealt(fold_count(len(self.rows)))
        return [(self.rows, np.arange(len(self.X)))]

    def _dealt(self, n_folds: int) -> list[Fold]:
        """Folds that answer for all rows: those that train nothing are dealt out in turn.

        No model has seen them; a row whose group is in a fold goes there, since the others have
        seen its group.
        """
        folds = self.split(n_folds)
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

    def fitted(self, estimator: Any, X: Any, rows: Rows) -> Any:
        """A clone of the estimator trained on some rows of some columns."""
        y = None if self.y is None else self.y[rows]
        begun = self.begun.setdefault(rows.tobytes(), {})
        return trained(estimator, some_rows(X, rows), y, rows_of(self.fit_params, rows), begun)


def fold_count(n_rows: int) -> int:
    """Number of folds of held-out rows."""
    return FOLDS_OF_FEW if n_rows <= FEW_ROWS else FOLDS_OF_MANY


def holds_out(name: str, on: Any, n_columns: int, n_rows: int) -> bool:
    """Whether outputs are compared on held-out rows."""
    if on not in ("training", "held-out", "left-out", "auto"):
        raise InvalidParameter(
            f"{name} needs on='training', 'held-out', 'left-out' or 'auto', not {on!r}."
        )
    many = n_columns > MANY_COLUMNS and n_rows >= MANY_ROWS
    return bool(on == "held-out" or (on == "auto" and many))


def labelled_rows(name: str, y: NDArray[Any] | None, mark: Any, n_rows: int) -> Rows:
    """Rows with another label than the mark; of two labels each is a class."""
    if mark is not None and not is_int(mark):
        raise InvalidParameter(f"{name} needs unlabelled as a whole number or None, not {mark!r}.")
    everything = np.arange(n_rows)
    if mark is None or y is None or y.dtype.kind in "US":
        return everything
    if y.ndim > 1:  # no single label stands for a row of several
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


def rows_of(params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Per-row values of some rows."""
    return {n: v[rows] if isinstance(v, np.ndarray) else v for n, v in params.items()}


def some_rows(X: Any, rows: Rows) -> Any:
    """Rows of a table, where it is."""
    return rows_taken(X, rows) if is_elsewhere(X) else X[rows]


def trained(
    estimator: Any,
    X: Any,
    y: NDArray[Any] | None,
    params: dict[str, Any],
    begun: dict[str, Any] | None = None,
) -> Any:
    """A clone of the estimator fitted on these rows and columns.

    ``begun`` is what the last training on these rows left behind, and is given what this one does:
    a machine that can begins with it, and comes to the same optimum in fewer steps.
    """
    fitted = clone(estimator)
    if begun is not None and is_newton(fitted):
        fitted.warm_start, fitted._sides = True, begun.get("sides")
    end_training(fitted, X.shape[0])
    with explained(type(estimator).__name__, X, y), retold():
        fitted = fitted.fit(X, **params) if y is None else fitted.fit(X, y, **params)
    if begun is not None and is_newton(fitted):
        begun["sides"] = fitted._sides
    note("training", fitted.support_vectors_ if is_newton(fitted) else None)
    return fitted


def end_training(estimator: Any, n_rows: int) -> None:
    """Give kernel machines that may train for ever, as on columns of unlike scales, an end."""
    for part in (estimator, *estimator.get_params().values()):
        if isinstance(part, MACHINES) and part.max_iter == -1:
            # no parameter of machines that follow the columns, but an attribute of every one
            part.max_iter = most_steps(n_rows)


@contextmanager
def explained(name: str, X: Any, y: NDArray[Any] | None) -> Iterator[None]:
    """Failures of a training that say nothing to a user, in a sentence.

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
        what = f"numbers as far from 1 as {far:.3g}" if far else f"these {X.shape[0]} rows"
        instead = (
            "Scale the columns, as a search does with standardize=True, and a real target."
            if far
            else "Look for columns that are constant, or the same for all rows of a class."
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

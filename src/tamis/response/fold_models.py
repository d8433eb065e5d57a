"""Training of models on folds of a table."""

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
from tamis.validation.splits import Fold, Rows, folds_of, reword_warnings

#: on="auto" compares outputs of held-out rows if there are more than MANY_COLUMNS columns and at
#: least MANY_ROWS rows. With fewer columns, a kernel matrix is rarely nearly diagonal. With fewer
#: rows, the folds are too small.
MANY_COLUMNS, MANY_ROWS = 30, 200
#: Number of folds of held-out rows: five up to FEW_ROWS rows, and three above that to save time.
FEW_ROWS, FOLDS_OF_FEW, FOLDS_OF_MANY = 500, 5, 3
#: Estimators trained by LIBSVM, which by default does not limit the number of iterations.
MACHINES = (NuSVC, NuSVR, OneClassSVM, SVC, SVR)


@dataclass(frozen=True, eq=False)
class FoldTraining:
    """Table, target and folds on which models are trained.

    Parameters
    ----------
    name : str
        Name of the caller, for messages.
    X, y : array
        Table, and target or None.
    rows : array of int
        Indices of the rows that may be used for training. The outputs of all rows are compared.
    task : {"classification", "regression", "none"}, default="none"
        Kind of target.
    held_out : bool, default=False
        Whether the outputs of each row come from a model that was trained without its fold.
    left_out : bool, default=False
        Whether the outputs of each row come from a model that was trained on all other rows.
    stratified : bool, default=False
        Whether the folds are stratified by class.
    groups : array or None, default=None
        Group of each row. Rows of the same group are in the same fold.
    fit_params, score_params : dict
        Arguments of ``fit`` and of the scorer; arrays have one value per row.
    labels : array or None, default=None
        Class labels of the models, if the rows may not contain all of them.
    seed : int, default=0
        Seed of shuffles, and of the rows held out for calibration.
    n_jobs : int or None, default=None
        Number of threads of an engine.
    place, precision :
        GPU or other device on which kernels are computed, and the precision of these kernels.
    starts : dict
        Warm starts. For each set of training rows, the samples that were inside the margin in the
        last fit.
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
    starts: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def table(self) -> Any:
        """The table on the device, to which it is transferred only once."""
        return self.X if self.place is None else self.place.put(self.X)

    def columns(self, estimator: Any, columns: Subset) -> Any:
        """Return the given columns, on the device if the estimator is trained there."""
        if self.place is not None and is_newton(estimator):
            return taken(self.table, columns)
        return self.X[:, columns]

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Sorted class labels of the training rows, including those in ``labels``."""
        assert self.y is not None
        return np.union1d(self.y[self.rows], self.y[:0] if self.labels is None else self.labels)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Class number of each row, or -1 if the row is not used for training."""
        assert self.y is not None
        found = np.full(len(self.X), -1, dtype=np.intp)
        found[self.rows] = np.searchsorted(self.classes, self.y[self.rows])
        return found

    @cached_property
    def parts(self) -> list[Fold]:
        """Training rows of each model, and the rows whose outputs it computes.

        Rows that are never used for training are assigned to the folds in turn, or to the fold of
        their group.
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
        """Split the rows that may be used for training into folds."""
        rows = self.rows
        y = rows if self.y is None else self.y[rows]
        groups = None if self.groups is None else self.groups[rows]
        folds = folds_of(self.name, n_folds, y, groups, classes=self.stratified)
        return [(rows[train], rows[rest]) for train, rest in folds]

    def fit(self, estimator: Any, X: Any, rows: Rows | None = None) -> Any:
        """Train a clone of the estimator on the given rows of a table, or on all rows."""
        y, params = self.y, self.fit_params
        start = self.starts.setdefault(b"" if rows is None else rows.tobytes(), {})
        if rows is not None:
            X, y = select_rows(X, rows), None if y is None else y[rows]
            params = take_rows(params, rows)
        return fit_clone(estimator, X, y, params, start)


def fold_count(n_rows: int) -> int:
    """Return the number of folds for outputs of held-out rows."""
    return FOLDS_OF_FEW if n_rows <= FEW_ROWS else FOLDS_OF_MANY


def holds_out(on: str, n_columns: int, n_rows: int) -> bool:
    """Return whether the outputs of held-out rows are compared."""
    many = n_columns > MANY_COLUMNS and n_rows >= MANY_ROWS
    return on == "held-out" or (on == "auto" and many)


def labelled_rows(name: str, y: NDArray[Any] | None, mark: int | None, n_rows: int) -> Rows:
    """Return the rows whose label is not ``mark``, or all rows if fewer than two labels remain."""
    everything = np.arange(n_rows)
    # text labels, and targets with several labels per row, have no mark
    if mark is None or y is None or y.dtype.kind in "US" or y.ndim > 1:
        return everything
    labelled = np.flatnonzero(y != mark)
    if len(labelled) == len(y) or len(np.unique(y[labelled])) < 2:
        return everything
    warnings.warn(
        f"{name} treats the {len(y) - len(labelled)} rows of label {mark} as unlabelled: they "
        f"are not used for training, only for the average over rows. If {mark} is a class, write "
        "unlabelled=None.",
        UnlabelledRows,
        stacklevel=2,
    )
    return labelled


def take_rows(params: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Return the parameters, with arrays of one value per row restricted to the given rows."""
    return {n: v[rows] if isinstance(v, np.ndarray) else v for n, v in params.items()}


def select_rows(X: Any, rows: Rows) -> Any:
    """Return the given rows of a table, on the device of the table."""
    return rows_taken(X, rows) if is_elsewhere(X) else X[rows]


def fit_clone(
    estimator: Any,
    X: Any,
    y: NDArray[Any] | None,
    params: dict[str, Any],
    start: dict[str, Any] | None = None,
) -> Any:
    """Train a clone of the estimator.

    ``start`` contains the warm start from the last training on these rows, and is updated. A Newton
    SVM with a warm start finds the same optimum in fewer steps.
    """
    fitted = clone(estimator)
    start = start if is_newton(fitted) else None
    if start is not None:
        fitted.warm_start, fitted._sides = True, start.get("sides")
    for part in (fitted, *fitted.get_params().values()):
        if isinstance(part, MACHINES) and part.max_iter == -1:
            # set as an attribute, because RelativeSVC and RelativeSVR do not have this parameter
            part.max_iter = most_steps(X.shape[0])
    with explain_failures(type(estimator).__name__, X, y), reword_warnings():
        fitted = fitted.fit(X, **params) if y is None else fitted.fit(X, y, **params)
    if start is not None:
        start["sides"] = fitted._sides
    note("training", fitted.support_vectors_ if is_newton(fitted) else None)
    return fitted


@contextmanager
def explain_failures(name: str, X: Any, y: NDArray[Any] | None) -> Iterator[None]:
    """Turn cryptic errors during training into :class:`InvalidTable` with an explanation.

    Very large or small numbers are a problem for any model that squares them. Trees accept them.
    """
    far = _out_of_proportion(X, y)
    raw: tuple[type[Exception], ...] = (ArithmeticError, IndexError)
    if far or X.shape[0] < 2:  # models raise various errors for a single row
        raw = (ValueError, *raw)
    try:
        with np.errstate(over="raise" if far else None):
            yield
    except TamisError:
        raise
    except raw as error:
        what = f"these {X.shape[0]} rows"
        instead = "Look for columns that are constant, overall or inside a class."
        if far:
            what = f"numbers of size {far:.3g}"
            instead = "Scale a numeric target, and the columns (standardize=True in a search)."
        message = " ".join(str(error).split())
        raise InvalidTable(f"{name} cannot be trained on {what} ({message}). {instead}") from error


def _out_of_proportion(X: Any, y: NDArray[Any] | None) -> float:
    """Return the largest absolute value if its square overflows or underflows, or else 0."""
    held = X.data if is_sparse(X) else X
    numbers = [held] if y is None or y.dtype.kind != "f" else [held, y]
    if is_elsewhere(held):
        xp = namespace(held)
        numbers[0] = host(xp.max(xp.abs(held)))
    sizes = [float(np.abs(part).max(initial=0.0)) for part in numbers]
    return next((size for size in sizes if abs(np.frexp(size)[1]) > FARTHEST), 0.0)

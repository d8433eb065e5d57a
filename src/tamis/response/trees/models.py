"""Models that are followed as trees: known by the names of their classes, checked on opening."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._arrays import Array, Mask
from tamis.exceptions import LoopInstead
from tamis.response.engines.base import Outputs, ask
from tamis.response.trees.forest import Answer, NotFollowed, Trees
from tamis.response.trees.importers import catboost, lightgbm, scikit_learn, xgboost

if TYPE_CHECKING:  # it loads numba
    from tamis.response.trees.ensemble import TreeEnsemble

_SKLEARN = {
    "DecisionTree": scikit_learn.read_forest,
    "ExtraTree": scikit_learn.read_forest,
    "RandomForest": scikit_learn.read_forest,
    "ExtraTrees": scikit_learn.read_forest,
    "GradientBoosting": scikit_learn.read_boosting,
    "HistGradientBoosting": scikit_learn.read_histogram_boosting,
}
_KINDS = {
    "sklearn": _SKLEARN,
    "lightgbm": {"LGBM": lightgbm.read},
    "xgboost": {"XGB": xgboost.read, "XGBRF": xgboost.read},
    "catboost": {"CatBoost": catboost.read},
}
#: Readers of classes, by the first part of their module; no library is imported to know them.
READERS: dict[tuple[str, str], Callable[[Any], Trees]] = {
    (library, f"{name}{task}"): reader
    for library, kinds in _KINDS.items()
    for name, reader in kinds.items()
    for task in ("Classifier", "Regressor")
}
METHODS = ("predict", "predict_proba", "codes", "decision_function")
#: Rows on which an opened model is compared with its own outputs, as they are and altered; fewer
#: if they have more than so many values, which would take longer than what follows.
GUARDS, GUARDED = 256, 250_000


def is_tree_model(fitted: Any) -> bool:
    """Whether the class of a model is one that is followed, or derived from one."""
    return any(_name(kind) in READERS for kind in type(fitted).__mro__)


def columns_with_nan(X: Array) -> Mask:
    """Columns of a table with a missing value; the sum of most tables tells that none has."""
    if not np.isnan(X.sum()):
        return np.zeros(X.shape[1], dtype=bool)
    return np.asarray(np.isnan(X).any(axis=0))


def _name(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


def open_trees(
    fitted: Any, method: str, raw: Outputs, X: Array, *, may_miss: Mask | None = None,
    prepare: Outputs | None = None,
) -> "TreeEnsemble | None":  # fmt: skip
    """Read the trees of a fitted model; None if altered copies of the rows must be made.

    A warning says why the trees of a model cannot be followed. There is none for models of other
    kinds, and for those that have not seen all classes that are asked for.

    Parameters
    ----------
    fitted : estimator
    method : {"predict", "predict_proba", "decision_function", "codes"}
        Which of its outputs are asked for.
    raw : callable
        These outputs of the model, for the rows of a table.
    X : array of shape (rows, columns)
        A table on which the outputs are compared.
    may_miss : boolean array or None
        Columns that can hold missing values; by default those that do in ``X``.
    prepare : callable or None
        What is made of a table, column by column, before the trees see it.
    """
    if method not in METHODS or not is_tree_model(fitted):
        return None
    try:
        ensemble = _read(fitted, X, columns_with_nan(X) if may_miss is None else may_miss)
        rows = guard_rows(ensemble, X, at_cuts=prepare is None)
        prepared = rows if prepare is None else prepare(rows)
        sums = ensemble.sums(ensemble.encode(prepared))
        same = _guard(Answer(ensemble.trees, method), sums, raw(rows))
        if method == "codes" and hasattr(fitted, "predict_proba"):
            # classes alone would let wrong leaves pass
            p = np.asarray(ask(fitted.predict_proba, prepared), dtype=np.float64)
            own = p[:, 1:] if p.shape[1] == 2 else p
            same = same and _guard(Answer(ensemble.trees, "predict_proba"), sums, own)
    except NotFollowed as reason:
        warn_of_copies(type(fitted).__name__, str(reason))
        return None
    return ensemble if same else None


@cache
def warn_of_copies(name: str, reason: str) -> None:
    """Warn once of a kind of models: an elimination opens hundreds of them."""
    warnings.warn(
        f"{name} is asked by altered copies of the rows, which takes longer: {reason}.",
        LoopInstead,
        stacklevel=3,
    )


def _read(fitted: Any, X: Array, may_miss: Mask) -> "TreeEnsemble":
    from tamis.response.trees.ensemble import TreeEnsemble

    reader = READERS.get(_name(type(fitted)))
    if reader is None:
        raise NotFollowed("its class is derived from one that is known, and may differ from it")
    try:
        trees = reader(fitted)
        if trees.n_columns != X.shape[1]:
            raise NotFollowed(f"it has {trees.n_columns} columns and the rows {X.shape[1]}")
        if may_miss.any() and trees.missing_left is None:
            raise NotFollowed("it takes no missing values")
        if trees.zero_is_missing is not None:
            may_miss = np.asarray(may_miss | trees.zero_is_missing)
        return TreeEnsemble(trees, may_miss)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # private fields and files of other libraries change with their versions
        raise NotFollowed(f"its trees cannot be read ({type(error).__name__}: {error})") from error


def _guard(answer: Answer, sums: Array, expected: Array) -> bool:
    """Compare with the model's own outputs: everything depends on reading its trees right.

    False if the outputs are of other classes.
    """
    found = answer(sums)
    if found.shape != expected.shape:
        return False
    off = np.abs(found - expected)[~answer.doubtful(sums)].max(initial=0.0)
    size = max(float(np.abs(expected).max(initial=0.0)), np.finfo(float).tiny)
    if not off <= answer.trees.tolerance * size:
        raise NotFollowed(f"trees as they were read differ from its answers by {off:.0e}")
    return True


def guard_rows(ensemble: "TreeEnsemble", X: Array, *, at_cuts: bool = True) -> Array:
    """Take some rows, and as many with one value altered: that of another row, or a threshold."""
    n = min(GUARDS, len(X), max(32, GUARDED // max(1, X.shape[1])))
    rows = X[np.linspace(0, len(X) - 1, n).astype(int)] if n else X
    altered = rows.copy()
    cells, used = ensemble.cells, ensemble.used
    for i in range(n if len(used) else 0):
        u = i % len(used)
        value = rows[(i * 7 + 1) % n, used[u]]
        if at_cuts and i % 2 and u < cells.n_thresholds:
            cuts = cells.cuts[cells.bounds[u] : cells.bounds[u + 1]]
            border = cuts[i % len(cuts)]
            if i % 4 == 3 and abs(border) < 1e30:  # just above it
                border = np.nextafter(border, cuts.dtype.type(np.inf))
            value = border if np.isfinite(border) else value
        altered[i, used[u]] = value
    return np.concatenate([rows, altered])

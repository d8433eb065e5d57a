"""Supported tree models, recognised by class name and checked against their own predictions."""

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
#: Readers by package and class name. Names are compared so that no library needs to be imported.
READERS: dict[tuple[str, str], Callable[[Any], Trees]] = {
    (library, f"{name}{task}"): reader
    for library, kinds in _KINDS.items()
    for name, reader in kinds.items()
    for task in ("Classifier", "Regressor")
}
METHODS = ("predict", "predict_proba", "codes", "decision_function")
#: The trees are checked against the model's outputs on at most GUARDS rows with at most GUARDED
#: values in total, to save time. The same number of altered copies is checked too.
GUARDS, GUARDED = 256, 250_000


def is_tree_model(fitted: Any) -> bool:
    """Return whether the class of a model, or one of its base classes, is supported."""
    return any(_name(kind) in READERS for kind in type(fitted).__mro__)


def columns_with_nan(X: Array) -> Mask:
    """Return a mask of the columns with missing values."""
    if not np.isnan(X.sum()):  # fast check for the usual case
        return np.zeros(X.shape[1], dtype=bool)
    return np.asarray(np.isnan(X).any(axis=0))


def _name(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


def open_trees(
    fitted: Any, method: str, raw: Outputs, X: Array, *, may_miss: Mask | None = None,
    prepare: Outputs | None = None,
) -> "TreeEnsemble | None":  # fmt: skip
    """Read the trees of a fitted model. Return None if the model is not supported.

    A warning gives the reason, except if the model is not a tree ensemble, or if its training rows
    did not contain all classes.

    Parameters
    ----------
    fitted : estimator
        Trained model.
    method : {"predict", "predict_proba", "decision_function", "codes"}
        Method of the model whose outputs are computed.
    raw : callable
        Function from a table to the outputs of this method.
    X : array of shape (rows, columns)
        Rows on which the trees are compared with the model's own outputs.
    may_miss : boolean array or None, default=None
        Mask of the columns that can have missing values. None means the columns that have missing
        values in ``X``.
    prepare : callable or None, default=None
        Column-wise preprocessing that a pipeline applies before the trees.
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
            # predicted classes alone would not reveal wrong leaf values
            p = np.asarray(ask(fitted.predict_proba, prepared), dtype=np.float64)
            own = p[:, 1:] if p.shape[1] == 2 else p
            same = same and _guard(Answer(ensemble.trees, "predict_proba"), sums, own)
    except NotFollowed as reason:
        warn_of_copies(type(fitted).__name__, str(reason))
        return None
    return ensemble if same else None


@cache
def warn_of_copies(name: str, reason: str) -> None:
    """Warn that a model is evaluated on altered copies of the rows.

    Each class and reason is reported once, since an elimination opens hundreds of models.
    """
    warnings.warn(
        f"{name} is evaluated on altered copies of the rows, which takes longer: {reason}.",
        LoopInstead,
        stacklevel=3,
    )


def _read(fitted: Any, X: Array, may_miss: Mask) -> "TreeEnsemble":
    from tamis.response.trees.ensemble import TreeEnsemble

    reader = READERS.get(_name(type(fitted)))
    if reader is None:
        raise NotFollowed("its class is a subclass of a supported one, and may predict differently")
    try:
        trees = reader(fitted)
        if trees.n_columns != X.shape[1]:
            raise NotFollowed(f"it has {trees.n_columns} columns, but X has {X.shape[1]}")
        if may_miss.any() and trees.missing_left is None:
            raise NotFollowed("it does not accept missing values")
        if trees.zero_is_missing is not None:
            may_miss = np.asarray(may_miss | trees.zero_is_missing)
        return TreeEnsemble(trees, may_miss)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # private fields and files of other libraries change with their versions
        raise NotFollowed(f"its trees cannot be read ({type(error).__name__}: {error})") from error


def _guard(answer: Answer, sums: Array, expected: Array) -> bool:
    """Check the trees against the model's own outputs.

    Returns False if the number of classes differs, and raises an error if the values differ.
    """
    found = answer(sums)
    if found.shape != expected.shape:
        return False
    off = np.abs(found - expected)[~answer.doubtful(sums)].max(initial=0.0)
    size = max(float(np.abs(expected).max(initial=0.0)), np.finfo(float).tiny)
    if not off <= answer.trees.tolerance * size:
        raise NotFollowed(f"outputs of its trees differ from its predictions by {off:.0e}")
    return True


def guard_rows(ensemble: "TreeEnsemble", X: Array, *, at_cuts: bool = True) -> Array:
    """Return a sample of rows, followed by altered copies of these rows.

    Each copy has one value replaced by the value in another row or by a threshold.
    """
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
            if i % 4 == 3 and abs(border) < 1e30:  # just above the threshold
                border = np.nextafter(border, cuts.dtype.type(np.inf))
            value = border if np.isfinite(border) else value
        altered[i, used[u]] = value
    return np.concatenate([rows, altered])

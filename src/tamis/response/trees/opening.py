"""Which models are followed as trees: known by the names of their classes, checked on opening."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis._arrays import Array, Mask
from tamis.exceptions import LoopInstead
from tamis.response.engine import asked
from tamis.response.trees.forest import NotFollowed, Trees
from tamis.response.trees.importers import catboost, lightgbm, scikit_learn, xgboost
from tamis.response.trees.links import Answer

if TYPE_CHECKING:  # it loads numba
    from tamis.response.trees.ensemble import TreeEnsemble

Reader = Callable[[Any], Trees]
Outputs = Callable[[Array], Array]
#: Classes by the first part of their module; nothing is imported to know them.
READERS: dict[tuple[str, str], Reader] = {
    **{
        ("sklearn", f"{name}{kind}"): reader
        for kind in ("Classifier", "Regressor")
        for name, reader in {
            "DecisionTree": scikit_learn.read_tree,
            "ExtraTree": scikit_learn.read_tree,
            "RandomForest": scikit_learn.read_forest,
            "ExtraTrees": scikit_learn.read_forest,
            "GradientBoosting": scikit_learn.read_boosting,
            "HistGradientBoosting": scikit_learn.read_histogram_boosting,
        }.items()
    },
    **{("lightgbm", name): lightgbm.read for name in ("LGBMClassifier", "LGBMRegressor")},
    **{
        ("xgboost", name): xgboost.read
        for name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor")
    },
    **{("catboost", f"CatBoost{kind}"): catboost.read for kind in ("Classifier", "Regressor")},
}
METHODS = ("predict", "predict_proba", "codes", "decision_function")
#: Rows on which an opened model is compared with its own answers, as they are and altered; fewer
#: where they have more than so many values, which would take longer than what follows.
GUARDS, GUARDED = 256, 250_000


class OtherAnswers(Exception):
    """More classes are asked for than a model has seen: nobody's fault."""


def is_tree_model(fitted: Any) -> bool:
    """Whether the class of a model is one that is followed, or stems from one."""
    return any(_name(kind) in READERS for kind in type(fitted).__mro__)


def columns_with_nan(X: Array) -> Mask:
    """Columns of a table with a missing value; most tables have none, which their sum tells."""
    if not np.isnan(X.sum()):
        return np.zeros(X.shape[1], dtype=bool)
    return np.asarray(np.isnan(X).any(axis=0))


def _name(kind: type) -> tuple[str, str]:
    return kind.__module__.partition(".")[0], kind.__name__


def open_trees(
    fitted: Any, method: str, raw: Outputs, X: Array, *, may_miss: Mask | None = None,
    prepare: Outputs | None = None,
) -> "TreeEnsemble | None":  # fmt: skip
    """The trees of a fitted model, or None where altered copies of the rows must be made.

    A model that is none of trees gives None in silence, and so does one that has not seen all
    classes that are asked for; one whose trees cannot be followed does with a warning.

    Parameters
    ----------
    fitted : estimator
    method : {"predict", "predict_proba", "decision_function", "codes"}
        Which of its answers is asked for.
    raw : callable
        That answer of the model, for the rows of a table.
    X : array of shape (rows, columns)
        A table on which the answers are compared.
    may_miss : boolean array or None
        Columns that can hold missing values; by default those that do in ``X``.
    prepare : callable or None
        What is made of a table, column by column, before the trees see it.
    """
    if method not in METHODS or not is_tree_model(fitted):
        return None
    try:
        return _opened(fitted, method, raw, X, may_miss, prepare)
    except OtherAnswers:
        return None
    except NotFollowed as reason:
        say(type(fitted).__name__, str(reason))
        return None


@cache
def say(name: str, reason: str) -> None:
    """Warn once of a kind of models: an elimination opens hundreds of them."""
    warnings.warn(
        f"{name} is asked by altered copies of the rows, which takes longer: {reason}.",
        LoopInstead,
        stacklevel=3,
    )


def _opened(
    fitted: Any,
    method: str,
    raw: Outputs,
    X: Array,
    may_miss: Mask | None,
    prepare: Outputs | None,
) -> "TreeEnsemble":
    from tamis.response.trees.ensemble import TreeEnsemble

    reader = READERS.get(_name(type(fitted)))
    if reader is None:
        raise NotFollowed("its class is derived from one that is known, and may differ from it")
    gone = columns_with_nan(X) if may_miss is None else may_miss
    try:
        trees = reader(fitted)
        if trees.n_columns != X.shape[1]:
            raise NotFollowed(f"it has {trees.n_columns} columns and the rows {X.shape[1]}")
        if gone.any() and trees.missing_left is None:
            raise NotFollowed("it takes no missing values")
        if trees.zero_is_missing is not None:
            gone = np.asarray(gone | trees.zero_is_missing)
        ensemble = TreeEnsemble(trees, gone)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # private fields and files of other libraries change with their versions
        raise NotFollowed(f"its trees cannot be read ({type(error).__name__}: {error})") from error
    rows = guard_rows(ensemble, X, at_cuts=prepare is None)
    prepared = rows if prepare is None else prepare(rows)
    sums = ensemble.sums(ensemble.encode(prepared))
    _guard(Answer(trees, method), sums, raw(rows))
    if method == "codes" and hasattr(fitted, "predict_proba"):
        # classes alone would let wrong leaves pass
        probabilities = np.asarray(asked(fitted.predict_proba, prepared), dtype=np.float64)
        second = slice(1, None) if probabilities.shape[1] == 2 else slice(None)
        _guard(Answer(trees, "predict_proba"), sums, probabilities[:, second])
    return ensemble


def _guard(answer: Answer, sums: Array, expected: Array) -> None:
    """Compare with the model's own answers: every promise rests on reading its trees right."""
    found = answer(sums)
    if found.shape != expected.shape:
        raise OtherAnswers
    sure = ~answer.doubtful(sums)
    off = np.abs(found - expected)[sure].max(initial=0.0)
    size = max(float(np.abs(expected).max(initial=0.0)), np.finfo(float).tiny)
    if not off <= answer.trees.tolerance * size:
        raise NotFollowed(f"trees as they were read differ from its answers by {off:.0e}")


def guard_rows(ensemble: "TreeEnsemble", X: Array, *, at_cuts: bool = True) -> Array:
    """Some rows, and as many with one value altered: to that of another row, or to a threshold."""
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

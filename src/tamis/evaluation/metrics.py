"""Metrics of predictions and of selected columns, and functions to find them by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, get_scorer, get_scorer_names

from tamis._arrays import Subset
from tamis.exceptions import InvalidParameter
from tamis.validation.held_out import squared_losses

Measure = Callable[[Any, NDArray[Any], NDArray[Any]], float]
#: Metrics of the selected columns, which need no trained estimator. The metric "hit" does not need
#: one either. It is not listed here, because it does not depend on the number of columns.
OF_COLUMNS = ("n_features", "useless", "found")


@dataclass(frozen=True)
class Metric:
    """A named metric ``function(fitted, X, y)`` of a fitted estimator.

    Attributes
    ----------
    name : str
        Name of the metric in results.
    function : callable or None
        None for a metric of the selected columns, and for the time of the selection.
    greater_is_better : bool
        Whether greater values are better.
    on_training_rows : bool
        Whether the metric is measured on the training rows instead of the test rows.

    Examples
    --------
    >>> from tamis.evaluation import Metric
    >>> bias = Metric("bias", lambda fitted, X, y: (fitted.predict(X) - y).mean(), False)
    >>> bias.name
    'bias'
    """

    name: str
    function: Measure | None
    greater_is_better: bool
    on_training_rows: bool = False

    def value(self, fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
        """Return the metric of a fitted estimator on the given rows."""
        assert self.function is not None
        return float(self.function(fitted, X, y))

    @property
    def identity(self) -> str:
        """Name of the metric, followed by the name of its function if it is a Python function."""
        if self.function is None or not hasattr(self.function, "__qualname__"):
            return self.name
        return f"{self.name} {self.function.__module__}.{self.function.__qualname__}"


#: Name of a metric, a metric, or a scorer of scikit-learn.
MetricLike = str | Metric | Callable[..., float]


def error(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the error rate, between 0 and 1."""
    return float(np.mean(fitted.predict(X) != y))


def ber(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the balanced error rate: the mean of the error rates of the classes."""
    return 1.0 - float(balanced_accuracy_score(y, fitted.predict(X)))


def auc(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the area under the ROC curve.

    With more than two classes, it is the mean over the areas of each class against all others.
    """
    name = "roc_auc" if len(fitted.classes_) == 2 else "roc_auc_ovr"
    return float(get_scorer(name)(fitted, X, y))


def brier(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the Brier score summed over the classes, between 0 and 2."""
    return float(squared_losses(fitted, X, y).mean())


def mse(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the mean squared error, or infinity if the squares overflow."""
    with np.errstate(over="ignore"):
        return float(np.mean((fitted.predict(X) - y) ** 2))


def rmse(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(mse(fitted, X, y)))


def scc(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the squared correlation between prediction and target, or 0 if either is constant."""
    predicted, y = _near_one(fitted.predict(X)), _near_one(y)
    if np.ptp(predicted) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(predicted, y)[0, 1] ** 2)


def _near_one(values: NDArray[Any]) -> NDArray[Any]:
    """Multiply values by a power of two, so that their squares neither overflow nor underflow."""
    return np.ldexp(values, -np.frexp(np.abs(values).max(initial=0.0))[1])


def cv_error(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the cross-validated error that a tuned classifier reports for its parameters.

    The error is read from ``best_score_`` of a search that scores by error or accuracy. Test rows
    are not used.
    """
    scoring = getattr(fitted, "scoring", "accuracy") or "accuracy"
    if not hasattr(fitted, "best_score_") or scoring not in ("error", "accuracy"):
        raise InvalidParameter(
            "cv_error needs a search with best_score_ that scores by error or accuracy, such as "
            f"SVCPathCV() or GridSearchCV(..., scoring='accuracy'), not {type(fitted).__name__} "
            f"with scoring={scoring!r}."
        )
    best = float(fitted.best_score_)
    return -best if scoring == "error" else 1.0 - best


def path_events(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the number of breakpoints in a regularization path. Test rows are not used."""
    return float(len(_path("path_events", fitted)))


def path_still(fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of intervals of a regularization path in which no predicted class changes.

    Between breakpoints, decision values are affine. So comparing their signs at both ends of an
    interval is enough.
    """
    at = _path("path_still", fitted)
    plus = np.array([fitted.decision_function(X, C=C) >= 0 for C in at]).reshape(len(at), -1)
    return float(np.mean((plus[1:] == plus[:-1]).all(axis=1)))


def _path(name: str, fitted: Any) -> NDArray[Any]:
    """Return the breakpoints of a fitted regularization path."""
    if not (hasattr(fitted, "breakpoints_") and hasattr(fitted, "decision_function")):
        raise InvalidParameter(
            f"{name} needs a regularization path of a classifier, such as SVCPath(), not "
            f"{type(fitted).__name__}."
        )
    return np.asarray(fitted.breakpoints_)


_PREDICTIVE = (error, cv_error, path_events, path_still, ber, auc, brier, mse, rmse, scc)
_GREATER_IS_BETTER = {"path_still", "auc", "scc", "found", "hit", "stability"}
_FUNCTIONS: dict[str, Measure | None] = {
    **{function.__name__: function for function in _PREDICTIVE},
    **dict.fromkeys((*OF_COLUMNS, "hit", "seconds", "stability")),
}
_KNOWN = {
    name: Metric(name, function, name in _GREATER_IS_BETTER)
    for name, function in _FUNCTIONS.items()
}
#: Beginning of the name of a metric that is measured on the training rows.
TRAINING = "train_"
#: Metrics that are computed from all realizations together.
OF_ALL = frozenset({"stability"})


def metric(what: Any) -> Metric:
    """Return a metric, given its name in tamis or scikit-learn, or a scorer.

    >>> metric("ber").greater_is_better, metric("f1_macro").greater_is_better
    (False, True)
    >>> metric("train_error").on_training_rows
    True
    """
    if isinstance(what, Metric):
        return what
    if isinstance(what, str) and what in _KNOWN:
        return _KNOWN[what]
    if isinstance(what, str) and what.startswith(TRAINING):
        of = metric(what.removeprefix(TRAINING))
        if of.function is not None and not of.on_training_rows:
            return replace(of, name=what, on_training_rows=True)
    if isinstance(what, str) and what in get_scorer_names():
        return Metric(what, get_scorer(what), True)
    if callable(what) and not isinstance(what, type):
        return Metric(getattr(what, "__name__", str(what)), what, True)
    raise InvalidParameter(
        f"No metric is called {what!r}. Write one of {', '.join(_KNOWN)}, the name of a scorer of "
        "scikit-learn such as 'f1_macro', 'train_' and one of these for the training rows, or a "
        "function of (fitted, X, y)."
    )


def of_columns(
    name: str,
    chosen: Subset,
    relevant: Sequence[int] | None,
    equivalent: Sequence[Sequence[int]] | None,
) -> float:
    """Return a metric of the selected columns, or NaN if the relevant columns are unknown."""
    if name == "n_features":
        return float(len(chosen))
    if relevant is None:
        return float("nan")
    groups = [[j] for j in relevant] if equivalent is None else [list(g) for g in equivalent]
    if name == "hit":
        chosen = chosen[: len(groups)]
    members = {int(j) for j in chosen}
    reached = [not members.isdisjoint(group) for group in groups]
    if name in ("hit", "found"):
        return float(all(reached) if name == "hit" else np.mean(reached))
    useful = {int(j) for group in groups for j in group}
    return float(np.mean([int(j) not in useful for j in chosen])) if len(chosen) else 0.0


def hit(order: Any, problem: Any) -> bool:
    """Return whether a ranking begins with the relevant columns of a problem, in any order.

    The first ``len(relevant)`` columns must contain a member of every group of equivalent columns.

    Parameters
    ----------
    order : array of int, or a fitted selector with ``order_``
        Columns, best first.
    problem : Problem
        An object with ``relevant`` and optionally ``equivalent``.

    Examples
    --------
    >>> from tamis.datasets import make_corral
    >>> problem = make_corral(variant=46, random_state=0)
    >>> hit([3, 1, 18, 0, 7], problem), hit([3, 1, 4, 0, 2], problem)
    (True, False)
    """
    columns = np.asarray(getattr(order, "order_", order))
    relevant = getattr(problem, "relevant", None)
    if columns.ndim != 1 or relevant is None:
        raise InvalidParameter(
            "hit needs the columns, best first, and a problem with known relevant columns such as "
            f"make_weston(), got {order!r} and {type(problem).__name__}."
        )
    groups = getattr(problem, "equivalent", None)
    if len(columns) < len(relevant):
        return False
    return bool(of_columns("hit", columns, list(relevant), groups))


def as_metrics(what: Any) -> dict[str, Metric]:
    """Return metrics by name, from a single name or scorer or a list of them."""
    found = [metric(item) for item in (what if isinstance(what, list | tuple) else [what])]
    if not found:
        raise InvalidParameter('evaluate needs at least one metric, such as metrics="error".')
    if OF_ALL & {item.name for item in found}:
        raise InvalidParameter(
            "stability is not a metric of one realization. Write evaluate(..., "
            'metrics="n_features"), and then stability(results.supports(method, size=10)).'
        )
    return {item.name: item for item in found}

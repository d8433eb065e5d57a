"""What pictures show, read off selections and results as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask, Subset
from tamis.contract import Grouping
from tamis.evaluation import Results
from tamis.evaluation.columns import chosen_columns
from tamis.exceptions import InvalidParameter
from tamis.plot.style import figure


@dataclass(frozen=True, repr=False)
class ChosenUnits:
    """What a fitted selection says of each unit: a column, or a group of columns.

    Attributes
    ----------
    names : tuple of str
    kept : array of bool
    order : array of int
        All units, best first.
    scores : array of float
        NaN where a unit has none.
    units : Grouping
        The columns of each unit.
    """

    names: tuple[str, ...]
    kept: Mask
    order: Subset
    scores: Array
    units: Grouping

    @property
    def best_kept(self) -> Subset:
        """The units that are kept, best first."""
        return self.order[self.kept[self.order]]


def chosen_units(selection: Any, names: Sequence[str] | None = None) -> ChosenUnits:
    """Read a fitted selection: one of tamis, or any of scikit-learn's with a support."""
    check_is_fitted(selection)
    if hasattr(selection, "unit_support_"):
        units: Grouping = selection.units_
        kept, order = np.asarray(selection.unit_support_), np.asarray(selection.order_)
        scores = without_places(np.asarray(selection.scores_, dtype=float), order)
    else:
        kept, order, scores, units = _of_any(selection)
    labels = _column_names(selection, units.n_columns, names)
    return ChosenUnits(tuple(units.unit_names(labels)), kept, order, scores, units)


def _of_any(selection: Any) -> tuple[Mask, Subset, Array, Grouping]:
    order, support = chosen_columns(selection)
    if support is None or order is None:
        raise InvalidParameter(
            f"A picture needs a fitted selection with get_support, not {type(selection).__name__}."
        )
    n = int(selection.n_features_in_)
    kept = np.zeros(n, dtype=bool)
    kept[support] = True
    rest = np.setdiff1d(np.arange(n), order)
    whole = np.concatenate([order, rest]).astype(np.intp)
    whole = np.concatenate([whole[kept[whole]], whole[~kept[whole]]])
    scores = np.asarray(getattr(selection, "scores_", np.full(n, np.nan)), dtype=float)
    return kept, whole, scores if scores.shape == (n,) else np.full(n, np.nan), Grouping(n)


def _column_names(selection: Any, n: int, names: Sequence[str] | None) -> list[str]:
    if names is None:
        names = getattr(selection, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(n)]  # as scikit-learn calls columns without a name
    if len(names) != n:
        raise InvalidParameter(
            f"A picture needs one name for each of the {n} columns, not {len(names)}."
        )
    return [str(name) for name in names]


class MetricFormat(NamedTuple):
    """A metric in words: ``values`` are shown as percentages, roots, or as they are."""

    words: str
    unit: str
    greater_is_better: bool = False
    percent: bool = False
    rooted: bool = False

    def shown(self, values: Array) -> Array:
        """Values as they are written."""
        values = np.asarray(values, dtype=float)
        if self.rooted:
            return np.sqrt(values)
        return 100 * values if self.percent else values

    def written(self, value: float) -> str:
        """One value with its unit; no error at all is "none".

        >>> [MEASURES["error"].written(v) for v in (0.0, 2.63, 37.3)]
        ['none', '2.6\xa0%', '37\xa0%']
        """
        if not self.percent:
            return figure(value)
        if value == 0 and not self.greater_is_better:
            return "none"
        return f"{value:.{0 if value >= 20 else 1}f}\u00a0%"


MEASURES = {
    "error": MetricFormat("errors", "%", percent=True),
    "ber": MetricFormat("balanced errors", "%", percent=True),
    "cv_error": MetricFormat("cross-validated errors", "%", percent=True),
    "accuracy": MetricFormat("right answers", "%", greater_is_better=True, percent=True),
    "mse": MetricFormat("root mean squared error", "", rooted=True),
    "rmse": MetricFormat("root mean squared error", ""),
    "scc": MetricFormat("squared correlation", "", greater_is_better=True),
    "auc": MetricFormat("area under the ROC curve", "", greater_is_better=True),
}


def measure_of(results: Results, metric: str) -> MetricFormat:
    """How a metric of some results is shown."""
    known = MEASURES.get(metric)
    return known or MetricFormat(metric, "", results.metrics[metric].greater_is_better)


@dataclass(frozen=True, repr=False)
class ErrorCurve:
    """A measure on unseen rows against the number of columns.

    Attributes
    ----------
    method : str
    size : array of int
        Increasing.
    mean, error : array of float
        Mean over the realizations as it is shown, and its standard error (NaN for one of them).
    values : array of shape (n_realizations, n_sizes)
        NaN where a realization has none.
    n_features : int
    measure : MetricFormat
    whole : float
        Mean with all columns, NaN where that was not measured.
    inflation : float
        ``1 / R + n_test / n_train``: the variance of a mean over overlapping resamples, in
        variances of one of them.
    """

    method: str
    size: Subset
    mean: Array
    error: Array
    values: Array
    n_features: int
    measure: MetricFormat
    whole: float
    inflation: float

    def at(self, size: int) -> tuple[float, float]:
        """Mean and standard error at a size, NaN where it was not measured."""
        found = np.flatnonzero(self.size == size)
        if not len(found):
            return float("nan"), float("nan")
        return float(self.mean[found[0]]), float(self.error[found[0]])

    def lost(self, size: int, against: int) -> tuple[float, float]:
        """How much worse a size is than another, realization by realization, and its error."""
        columns = [np.flatnonzero(self.size == k) for k in (size, against)]
        if not all(len(column) for column in columns):
            return float("nan"), float("nan")
        first, second = (self.values[:, column[0]] for column in columns)
        loss = second - first if self.measure.greater_is_better else first - second
        return _mean_and_error(loss[np.isfinite(loss)], self.inflation)

    def smallest_good(self) -> tuple[int, int]:
        """The smallest size that loses to the best no more than one standard error of that loss.

        The best error may be 0 in all realizations: its own standard error would then be 0, and
        every size that is not perfect too bad.
        """
        means = self.mean if self.measure.greater_is_better else -self.mean
        best = int(self.size[np.nanargmax(means)])
        for size in self.size.tolist():
            loss, error = self.lost(size, best)
            if loss <= error or size == best:
                return size, best
        return best, best


def _mean_and_error(values: Array, inflation: float) -> tuple[float, float]:
    if not len(values):
        return float("nan"), float("nan")
    spread = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return float(values.mean()), spread * inflation**0.5


def error_curves(
    results: Results,
    *,
    metric: str | None = None,
    data: str | None = None,
    estimator: str | None = None,
    method: str | None = None,
) -> list[ErrorCurve]:
    """One curve for each method, of what was measured at given numbers of columns."""
    if not isinstance(results, Results):
        raise InvalidParameter(
            f"curve needs the Results of tamis.evaluation.evaluate, not {type(results).__name__}."
        )
    metric = next(iter(results.metrics)) if metric is None else metric
    if metric not in results.metrics:
        raise InvalidParameter(
            f"curve needs one of the metrics {', '.join(results.metrics)}, not {metric!r}."
        )
    data = _only("data", data, results.data)
    estimators = list(dict.fromkeys(r.estimator for r in results.rows() if r.metric == metric))
    estimator = _only("estimator", estimator, estimators)
    methods = results.methods if method is None else [method]
    curves = [_curve(results, metric, data, estimator, name) for name in methods]
    found = [curve for curve in curves if curve is not None]
    if not found:
        raise InvalidParameter(
            f"curve needs {metric} at several numbers of columns, and the results have none. Give "
            "evaluate a selection, estimators= and sizes=[1, 2, 4, ...]."
        )
    return found


def _only(what: str, given: str | None, there: Sequence[str]) -> str:
    if given is None and len(there) > 1:
        raise InvalidParameter(
            f"curve shows one {what}; say which of {', '.join(map(repr, there))} by {what}=."
        )
    if given is not None and given not in there:
        raise InvalidParameter(
            f"curve needs one of {', '.join(map(repr, there))} as {what}, not {given!r}."
        )
    return there[0] if given is None else given


def _curve(
    results: Results, metric: str, data: str, estimator: str, method: str
) -> ErrorCurve | None:
    rows = [
        row
        for row in results.rows()
        if (row.data, row.method, row.estimator, row.metric) == (data, method, estimator, metric)
        and row.rule == "given"
    ]
    if not rows:
        return None
    sizes, column = np.unique([row.size for row in rows], return_inverse=True)
    numbers, line = np.unique([row.realization for row in rows], return_inverse=True)
    measure = measure_of(results, metric)
    values = np.full((len(numbers), len(sizes)), np.nan)
    values[line, column] = measure.shown(np.array([row.value for row in rows]))
    inflation = 1 / len(numbers) + results.test_ratio(data)
    summed = [_mean_and_error(v[np.isfinite(v)], inflation) for v in values.T]
    mean, error = (np.array(part) for part in zip(*summed, strict=True))
    n_features = max(t.outcome.n_features for t in results.tasks if t.data == data)
    whole = float(mean[-1]) if sizes[-1] == n_features else float("nan")
    return ErrorCurve(method, sizes, mean, error, values, n_features, measure, whole, inflation)


@dataclass(frozen=True, repr=False)
class Walk:
    """How columns came or went, step by step.

    Attributes
    ----------
    leaving : bool
        Whether columns left, from all to few.
    size : array of int
        Units held before a leaving step, after an entering one.
    worth : array of float
        Mean score of what moved at the step.
    moved : tuple of tuple of int
        What moved.
    """

    leaving: bool
    size: Subset
    worth: Array
    moved: tuple[tuple[int, ...], ...]


def walk_of(selection: Any) -> Walk | None:
    """The steps of a selection; None where there are none to show.

    A ranking scores each column alone and makes no steps worth a picture. Of a search that goes to
    and fro only the steps of its main direction are shown, where each number of columns was first
    reached.
    """
    trace = getattr(selection, "trace_", None)
    if trace is None or len(trace) < 2 or _scores_alone(selection):
        return None
    leaving = not trace.growing
    moves = trace.moves()
    right = np.flatnonzero((moves.entered != leaving) & np.isfinite(moves.score))
    steps = np.unique(moves.step[right])
    sizes = np.r_[trace.start.sum(), trace.sizes]
    size = sizes[steps] if leaving else sizes[steps + 1]
    _, first = np.unique(size, return_index=True)
    shown = np.sort(first)
    if len(shown) < 2:
        return None
    groups = [right[moves.step[right] == step] for step in steps[shown]]
    return Walk(
        leaving,
        size[shown],
        np.array([moves.score[group].mean() for group in groups]),
        tuple(tuple(moves.unit[group].tolist()) for group in groups),
    )


def inside(selection: Any) -> Any:
    """The selection itself; of one that encodes a frame first, the search behind the encoder."""
    return selection.search_ if hasattr(selection, "aside_") else selection


def _scores_alone(selection: Any) -> bool:
    """Whether steps only say the order of scores: of a ranking, and of what runs a search again."""
    inner = inside(selection)
    return bool(getattr(inner, "scores_alone", False) or hasattr(inner, "_verdict"))


def without_places(scores: Array, order: Subset) -> Array:
    """Scores; NaN all of them where they are nothing but places counted down.

    >>> without_places(np.array([3.0, 1.0, 2.0]), np.array([0, 2, 1])).tolist()
    [nan, nan, nan]
    """
    counted = scores[order][np.isfinite(scores[order]) & (scores[order] != 0)]
    alone = len(counted) == 1 and counted[0] == 1
    falling = len(counted) > 1 and bool((np.diff(counted) == -1).all()) and counted[0] % 1 == 0
    places = alone or falling
    return np.full(len(scores), np.nan) if places else scores


class CriterionCurve(NamedTuple):
    """What the criterion said at each number of units, on the rows that it learned from.

    ``alone`` says that units are scored without each other: values are then scores, best first.
    """

    size: Subset
    value: Array
    alone: bool


def criterion_curve(selection: Any) -> CriterionCurve | None:
    """Best value at each number of units; None where the criterion values no subsets."""
    trace = getattr(selection, "trace_", None)
    if trace is None or not len(trace):
        return None
    if _scores_alone(selection):
        scores = without_places(selection.scores_, selection.order_)[selection.order_]
        known = np.flatnonzero(np.isfinite(scores))
        return CriterionCurve(known + 1, scores[known], True) if len(known) > 1 else None
    sizes, values = trace.sizes, trace.values
    told = np.isfinite(values) & (sizes > 0)
    best = np.full(trace.n_units + 1, -np.inf)
    np.maximum.at(best, sizes[told], values[told])
    shown = np.flatnonzero(np.isfinite(best))
    return CriterionCurve(shown, best[shown], False) if len(shown) > 1 else None

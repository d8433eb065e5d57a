"""Formats of metrics, and curves of metrics over the number of columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Subset
from tamis._format import format_number
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter

NAN = float("nan")
#: Non-breaking space, which keeps a number and its unit together.
NBSP = "\u00a0"


class Estimate(NamedTuple):
    """A value and its standard error, which may be NaN."""

    value: float
    error: float = NAN


class MetricFormat(NamedTuple):
    """How a metric is shown: as a percentage, as a square root, or unchanged."""

    words: str
    unit: str = ""
    greater_is_better: bool = False
    percent: bool = False
    rooted: bool = False
    short: str = ""

    @property
    def title(self) -> str:
        """Name of the metric with its unit, for an axis."""
        return f"{self.words}, {self.unit}" if self.unit else self.words

    @property
    def heading(self) -> str:
        """Name of the metric with a capital letter."""
        return self.words[0].upper() + self.words[1:]

    def shown(self, values: Any) -> Array:
        """Convert values to the units in which they are shown."""
        values = np.asarray(values, dtype=float)
        return np.sqrt(values) if self.rooted else 100 * values if self.percent else values

    def shown_error(self, mean: Any, error: Any) -> Array:
        """Convert standard errors to the units in which the means are shown."""
        error = np.asarray(error, dtype=float)
        if self.rooted:  # error propagation through the square root
            root = np.sqrt(mean)
            return np.divide(error, 2 * root, out=np.zeros(np.shape(root)), where=root > 0)
        return 100 * error if self.percent else error

    def estimate(self, mean: float, error: float = NAN) -> Estimate:
        """Return a mean and its standard error in the units in which they are shown."""
        spread = self.shown_error(np.array([mean]), np.array([error]))
        return Estimate(float(self.shown(mean)), float(spread[0]))

    def format(self, value: float) -> str:
        """Format a value with its unit. An error of 0 is written as "none".

        >>> [METRICS["error"].format(v) for v in (0.0, 2.63, 37.3)]
        ['none', '2.6\xa0%', '37.3\xa0%']
        """
        if not self.percent:
            return format_number(value)
        if value == 0 and not self.greater_is_better:
            return "none"
        return f"{value:.1f}{NBSP}%"

    def format_error(self, error: float) -> str:
        """Format ± one standard error. The text is empty if the error is unknown or rounds to 0."""
        if not error > (0.05 if self.percent else 0.0) or not np.isfinite(error):
            return ""
        return f"±{NBSP}{f'{error:.1f}' if self.percent else format_number(error, 2)}"


METRICS = {
    "error": MetricFormat("error rate", "%", percent=True, short="error %"),
    "ber": MetricFormat("balanced error", "%", percent=True, short="balanced error %"),
    "weighted_error": MetricFormat("weighted error", "%", percent=True),
    "cv_error": MetricFormat("cross-validated error", "%", percent=True),
    "accuracy": MetricFormat("accuracy", "%", greater_is_better=True, percent=True),
    "mse": MetricFormat("root mean squared error", rooted=True),
    "rmse": MetricFormat("root mean squared error", short="RMSE"),
    "mae": MetricFormat("mean absolute error"),
    "scc": MetricFormat("squared correlation", greater_is_better=True),
    "auc": MetricFormat("area under the ROC curve", greater_is_better=True, short="AUC"),
    "concordance": MetricFormat("concordance", greater_is_better=True),
}


def metric_format(name: str, greater_is_better: bool) -> MetricFormat:
    """Return the format of a metric. An unknown metric is shown unchanged."""
    return METRICS.get(name) or MetricFormat(name, greater_is_better=greater_is_better)


@dataclass(frozen=True, repr=False)
class ErrorCurve:
    """Values of a metric on held-out rows against the number of columns.

    Attributes
    ----------
    method : str
    size : array of int
        Numbers of columns, in ascending order.
    mean, error : array of float
        Mean over the resamples in the units shown, and its standard error. The error is NaN if
        there is a single resample.
    measure : MetricFormat
    n_features : int
    whole : float
        Mean with all columns, or NaN if it was not measured.
    baseline : float
        Value without columns, or NaN if it was not measured.
    values : array of shape (n_realizations, n_sizes)
        Value of each resample at each size, or NaN if there is none.
    inflation : float
        ``1 / R + n_test / n_train`` for R resamples. The variance of a mean over overlapping
        resamples is this factor times the variance of a single resample.
    """

    method: str
    size: Subset
    mean: Array
    error: Array
    measure: MetricFormat
    n_features: int = 0
    whole: float = NAN
    baseline: float = NAN
    values: Array = field(default_factory=lambda: np.empty((0, 0)))
    inflation: float = NAN

    def at(self, size: int) -> Estimate:
        """Return the mean and standard error at a size, or NaN if it was not measured."""
        found = np.flatnonzero(self.size == size)
        if not len(found):
            return Estimate(NAN)
        return Estimate(float(self.mean[found[0]]), float(self.error[found[0]]))

    def lost(self, size: int, against: int) -> Estimate:
        """Return how much worse one size is than another, with the paired standard error."""
        columns = [np.flatnonzero(self.size == k) for k in (size, against)]
        if not all(len(column) for column in columns):
            return Estimate(NAN)
        first, second = (self.values[:, column[0]] for column in columns)
        loss = second - first if self.measure.greater_is_better else first - second
        return mean_and_error(loss[np.isfinite(loss)], self.inflation)

    def smallest_good(self) -> tuple[int, int]:
        """Return the smallest size within one standard error of the best, and the best size.

        The standard error is computed from paired differences. The standard error of the best value
        itself would be 0 if the error were 0 in all resamples.
        """
        means = self.mean if self.measure.greater_is_better else -self.mean
        best = int(self.size[np.nanargmax(means)])
        for size in self.size.tolist():
            loss, error = self.lost(size, best)
            if loss <= error or size == best:
                return size, best
        return best, best


def curve_of_points(
    method: str,
    points: Iterable[Sequence[float]],
    measure: MetricFormat,
    n_features: int = 0,
    whole: float = NAN,
    baseline: float = NAN,
) -> ErrorCurve:
    """Return a curve from points (size, mean, standard error). Infinite means become NaN."""
    size, mean, error = (np.array(part) for part in zip(*points, strict=True))
    mean = np.where(np.isfinite(mean), mean, np.nan)
    shown = measure.shown(mean), measure.shown_error(mean, error)
    whole, baseline = (float(measure.shown(value)) for value in (whole, baseline))
    return ErrorCurve(method, size.astype(np.intp), *shown, measure, n_features, whole, baseline)


def mean_and_error(values: Array, inflation: float) -> Estimate:
    """Return the mean over overlapping resamples, and its corrected standard error."""
    if not len(values):
        return Estimate(NAN)
    spread = float(values.std(ddof=1)) if len(values) > 1 else NAN
    return Estimate(float(values.mean()), spread * inflation**0.5)


def error_curves(
    results: Results,
    *,
    metric: str | None = None,
    data: str | None = None,
    estimator: str | None = None,
    method: str | None = None,
) -> list[ErrorCurve]:
    """Return a curve for each method, over the given numbers of columns."""
    if not isinstance(results, Results):
        raise InvalidParameter(
            f"curve needs the Results of tamis.evaluation.evaluate, not {type(results).__name__}."
        )
    metric = results.metric(metric, "curve").name
    data = _only_one("data", data, results.data)
    estimators = list(dict.fromkeys(r.estimator for r in results.rows() if r.metric == metric))
    estimator = _only_one("estimator", estimator, estimators)
    methods = results.methods if method is None else [method]
    curves = [_curve(results, metric, data, estimator, name) for name in methods]
    found = [curve for curve in curves if curve is not None]
    if not found:
        raise InvalidParameter(
            f"curve needs {metric} at several numbers of columns, and the results have none. Give "
            "evaluate a selection, estimators= and sizes=[1, 2, 4, ...]."
        )
    return found


def _only_one(what: str, given: str | None, known: Sequence[str]) -> str:
    if given in known or (given is None and len(known) == 1):
        return known[0] if given is None else given
    got = "" if given is None else f", not {given!r}"
    raise InvalidParameter(
        f"curve can show only one {what}. Set {what}= to one of {', '.join(map(repr, known))}{got}."
    )


def _curve(
    results: Results, metric: str, data: str, estimator: str, method: str
) -> ErrorCurve | None:
    rows = [
        row
        for row in results.rows()
        if (row.data, row.method, row.estimator, row.metric, row.rule)
        == (data, method, estimator, metric, "given")
    ]
    if not rows:
        return None
    sizes, column = np.unique([row.size for row in rows], return_inverse=True)
    numbers, line = np.unique([row.realization for row in rows], return_inverse=True)
    measure = metric_format(metric, results.metrics[metric].greater_is_better)
    values = np.full((len(numbers), len(sizes)), np.nan)
    values[line, column] = measure.shown([row.value for row in rows])
    inflation = 1 / len(numbers) + results.test_ratio(data)
    means = [mean_and_error(v[np.isfinite(v)], inflation) for v in values.T]
    mean, error = (np.array(part) for part in zip(*means, strict=True))
    n_features = max(t.outcome.n_features for t in results.tasks if t.data == data)
    whole = float(mean[-1]) if sizes[-1] == n_features else NAN
    return ErrorCurve(
        method, sizes, mean, error, measure, n_features, whole, NAN, values, inflation
    )

"""Results of an evaluation: the scores of every task, and functions to read them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Mask
from tamis._frame import frame_of
from tamis.evaluation.metrics import Metric
from tamis.evaluation.outcome import Outcome, RowLosses
from tamis.exceptions import InvalidParameter


class Finished(NamedTuple):
    """A finished task and its outcome."""

    method: str
    data: str
    realization: int
    outcome: Outcome


class Failure(NamedTuple):
    """A task that failed.

    Attributes
    ----------
    method, data : str
        Names of the method and of the data.
    realization : int
        Number of the realization.
    reason : str
        The error message.

    Examples
    --------
    >>> Failure("mrmr", "wine", 3, "InvalidTarget: y has one class.").realization
    3
    """

    method: str
    data: str
    realization: int
    reason: str


class Row(NamedTuple):
    """A score with its data, method and realization."""

    data: str
    method: str
    estimator: str
    size: int
    rule: str
    metric: str
    realization: int
    value: float

    @property
    def given_size(self) -> int | None:
        """Number of columns if it was given, or None if it may differ between realizations."""
        return self.size if self.rule == "given" else None


class LossRow(NamedTuple):
    """Losses on the test rows of a task, with the names of the data and method."""

    data: str
    method: str
    estimator: str
    size: int
    rule: str
    realization: int
    losses: RowLosses


class Mean(NamedTuple):
    """Mean and standard deviation of a metric over the realizations.

    ``size`` is the mean number of columns if the number differs between realizations.
    """

    data: str
    method: str
    estimator: str
    size: float
    rule: str
    metric: str
    n_realizations: int
    mean: float
    deviation: float


#: Data, method, estimator and number of columns (None if it differs between realizations).
Cell = tuple[str, str, str, "int | None"]


@dataclass(frozen=True, repr=False)
class Results:
    """Scores of several methods on several data sets, for all realizations.

    Attributes
    ----------
    tasks : tuple of Finished
        Finished tasks, sorted by data, method and realization.
    failures : tuple of Failure
        Tasks that failed.
    metrics : dict of str to Metric
        The metrics by name.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tamis.datasets import load
    >>> from tamis.evaluation import CrossValidation, evaluate
    >>> results = evaluate({"bayes": GaussianNB()}, load("iris"), CrossValidation(3))
    >>> [round(error, 2) for error in results.values("error", "bayes").values()]
    [0.02, 0.04, 0.1]
    """

    tasks: tuple[Finished, ...]
    failures: tuple[Failure, ...]
    metrics: Mapping[str, Metric]

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(dict.fromkeys(task.method for task in self.tasks))

    @property
    def data(self) -> list[str]:
        """Names of the data, in the order given."""
        return list(dict.fromkeys(task.data for task in self.tasks))

    def metric(self, name: str | None, owner: str) -> Metric:
        """Return the metric with this name (by default, the first). Errors mention ``owner``."""
        if name is None:
            return next(iter(self.metrics.values()))
        if name not in self.metrics:
            raise InvalidParameter(
                f"{owner} needs one of the metrics {', '.join(self.metrics)}, not {name!r}."
            )
        return self.metrics[name]

    def rows(self, of: str | None = None) -> Iterator[Row]:
        """Yield every score of every finished task, or of the tasks of one method."""
        for method, data, realization, outcome in self.tasks:
            if of is not None and method != of:
                continue
            for s in outcome.scores:
                yield Row(data, method, s.estimator, s.size, s.rule, s.metric, realization, s.value)

    def to_frame(self) -> Any:
        """Return a polars or pandas frame with one row per score."""
        return frame_of(list(self.rows()), Row._fields)

    def means(self) -> list[Mean]:
        """Return the mean and standard deviation of every score over the realizations."""
        cells: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows():
            cells.setdefault((*row[:3], row.given_size, row.rule, row.metric), []).append(row)
        return [_mean(rows) for rows in cells.values()]

    def cells(self, metric: str) -> dict[Cell, dict[int, float]]:
        """Return the scores by realization, for each cell (data, method, estimator, size)."""
        cells: dict[Cell, dict[int, float]] = {}
        for row in self.rows():
            if row.metric == metric:
                key = row.data, row.method, row.estimator, row.given_size
                cells.setdefault(key, {})[row.realization] = row.value
        return cells

    def values(
        self,
        metric: str,
        method: str,
        *,
        data: str | None = None,
        estimator: str | None = None,
        size: int | None = None,
        rule: str | None = None,
    ) -> dict[int, float]:
        """Return the score of a method in each realization.

        Parameters
        ----------
        metric, method : str
            Names of the metric and of the method.
        data, estimator : str, optional
            Required if the results have more than one.
        size : int, optional
            Number of columns. Required if a realization has scores for several numbers.
        rule : str, optional
            How the number of columns was determined, such as "step 3".
        """
        asked = dict(metric=metric, method=method, data=data, estimator=estimator, rule=rule)
        rows = self._of_each_realization("scores", self.rows(method), {**asked, "size": size})
        return {realization: row.value for realization, row in rows.items()}

    def losses(
        self,
        method: str,
        kind: str = "squared",
        *,
        data: str | None = None,
        estimator: str | None = None,
        size: int | None = None,
        rule: str | None = None,
    ) -> dict[int, RowLosses]:
        """Return the losses on the test rows, stored by ``evaluate(..., losses=True)``.

        Parameters
        ----------
        method : str
            Name of the method.
        kind : {"squared", "error"}, default="squared"
            "squared" is the squared error of a numeric prediction, or the Brier score summed over
            the classes. "error" is 1 for a wrong class and 0 for the right class.
        data, estimator : str, optional
            Required if the results have more than one.
        size : int, optional
            Number of columns. Required if a realization has losses for several numbers.
        rule : str, optional
            How the number of columns was determined, such as "step 3".

        Returns
        -------
        losses : dict of int to RowLosses
            For each realization, the positions of its test rows in the data (``rows``) and their
            losses (``values``).

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from tamis.datasets import load
        >>> from tamis.evaluation import CrossValidation, evaluate
        >>> found = evaluate({"bayes": GaussianNB()}, load("wine"), CrossValidation(3), losses=True)
        >>> first = found.losses("bayes", "error")[0]
        >>> first.rows[:3]
        array([ 7,  8, 12])
        >>> bool(first.values.mean() == found.values("error", "bayes")[0])
        True
        """
        if kind not in ("squared", "error"):
            raise InvalidParameter(f"Results.losses needs kind 'squared' or 'error', not {kind!r}.")
        asked = dict(method=method, data=data, estimator=estimator, rule=rule, size=size)
        rows = self._of_each_realization("losses", self.row_losses(kind), asked)
        return {realization: row.losses for realization, row in rows.items()}

    def row_losses(self, kind: str) -> Iterator[LossRow]:
        """Yield the losses on the test rows for every task, estimator and number of columns."""
        for method, data, realization, outcome in self.tasks:
            for item in outcome.losses:
                if item.kind == kind:
                    losses = outcome.row_losses(item)
                    yield LossRow(data, method, *item[:3], realization, losses)

    def _of_each_realization(
        self, what: str, rows: Iterable[Any], asked: dict[str, Any]
    ) -> dict[int, Any]:
        """Return, for each realization, the row that matches ``asked``.

        A value of None in ``asked`` matches any row.
        """
        given = {name: value for name, value in asked.items() if value is not None}
        found = [row for row in rows if all(getattr(row, n) == v for n, v in given.items())]
        by_realization = {row.realization: row for row in found}
        if found and len(by_realization) == len(found):
            return by_realization
        many = {name: sorted({getattr(row, name) for row in found}) for name in asked}
        several = ", ".join(f"{name} {values}" for name, values in many.items() if values[1:])
        problem = f"no {what}"
        if found:
            problem = f"several {what} per realization (choose one of {several})"
        elif what == "losses":
            problem = "no losses of rows (write evaluate(..., losses=True))"
        wanted = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise InvalidParameter(f"Results has {problem} for {wanted}. It is {self!r}.")

    def orders(self, method: str, data: str | None = None) -> list[tuple[int, ...]]:
        """Return the ranked columns of each realization, best first."""
        return [o.order for o in self._outcomes(method, data) if o.order is not None]

    def supports(self, method: str, data: str | None = None, size: int | None = None) -> Mask:
        """Return, for each realization, a mask of the selected columns.

        If ``size`` is given, the first ``size`` ranked columns count as selected.
        """
        masks = []
        for outcome in self._outcomes(method, data):
            kept = outcome.support if size is None else (outcome.order or ())[:size]
            mask = np.zeros(outcome.n_features, dtype=bool)
            mask[list(kept or ())] = True
            masks.append(mask)
        return np.array(masks)

    def seconds(self, method: str, data: str | None = None) -> Array:
        """Return the time of each fit of a method, in seconds."""
        return np.array([outcome.seconds for outcome in self._outcomes(method, data)])

    def test_ratio(self, data: str | None = None) -> float:
        """Return the number of test rows per training row, which the corrected t-test needs."""
        ratios = [
            task.outcome.n_test / task.outcome.n_train
            for task in self.tasks
            if data in (None, task.data)
        ]
        return float(np.mean(ratios))

    def _outcomes(self, method: str, data: str | None) -> list[Outcome]:
        if data is None and len(self.data) > 1:
            raise InvalidParameter(
                f"Results needs data as one of {', '.join(self.data)}, because it has several data "
                "sets."
            )
        found = [t.outcome for t in self.tasks if t.method == method and data in (None, t.data)]
        if not found:
            raise InvalidParameter(
                f"Results needs a method among {', '.join(self.methods)}, got {method!r}."
            )
        return found

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} tasks failed" if self.failures else ""
        return (
            f"<Results: {len(self.methods)} methods, {len(self.data)} data sets, "
            f"{len(self.tasks)} tasks{failed}>"
        )


def _mean(rows: list[Row]) -> Mean:
    values = np.array([row.value for row in rows])
    first, n = rows[0], len(rows)
    size = float(np.mean([row.size for row in rows]))
    with np.errstate(over="ignore", invalid="ignore"):  # errors may be infinite
        spread = float(values.std(ddof=1)) if n > 1 else float("nan")
    return Mean(*first[:3], size, first.rule, first.metric, n, float(values.mean()), spread)

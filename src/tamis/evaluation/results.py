"""What an experiment found: the scores of every task, and short views of them."""

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
    """A task that could not be run, and why.

    Attributes
    ----------
    method, data : str
        Their names.
    realization : int
        Its number.
    reason : str
        The sentence of the error.
    """

    method: str
    data: str
    realization: int
    reason: str


class Row(NamedTuple):
    """One score, and where in the experiment it belongs."""

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
        """The number of columns, if it was given; None where realizations differ."""
        return self.size if self.rule == "given" else None


class LossRow(NamedTuple):
    """Losses of the test rows of a task, and where in the experiment they belong."""

    data: str
    method: str
    estimator: str
    size: int
    rule: str
    realization: int
    losses: RowLosses


class Mean(NamedTuple):
    """One cell of a table: scores of a method over the realizations.

    ``size`` is the mean number of columns where it differs between realizations.
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


#: Data, method, estimator and number of columns, None where realizations differ in it.
Cell = tuple[str, str, str, "int | None"]


@dataclass(frozen=True, repr=False)
class Results:
    """Scores of methods on data over realizations.

    Attributes
    ----------
    tasks : tuple of Finished
        Ordered by data, method and realization, whatever the order of the work.
    failures : tuple of Failure
    metrics : dict of str to Metric
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
        """The metric of this name, by default the first; ``owner`` asks, for the sentence."""
        if name is None:
            return next(iter(self.metrics.values()))
        if name not in self.metrics:
            raise InvalidParameter(
                f"{owner} needs one of the metrics {', '.join(self.metrics)}, not {name!r}."
            )
        return self.metrics[name]

    def rows(self) -> Iterator[Row]:
        """Every score."""
        for method, data, realization, outcome in self.tasks:
            for s in outcome.scores:
                yield Row(data, method, s.estimator, s.size, s.rule, s.metric, realization, s.value)

    def to_frame(self) -> Any:
        """Every score, one per row, as polars or pandas frame."""
        return frame_of(list(self.rows()), Row._fields)

    def means(self) -> list[Mean]:
        """Mean and standard deviation over the realizations, cell by cell."""
        cells: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows():
            cells.setdefault((*row[:3], row.given_size, row.rule, row.metric), []).append(row)
        return [_mean(rows) for rows in cells.values()]

    def cells(self, metric: str) -> dict[Cell, dict[int, float]]:
        """Scores by realization, of every method on every data set at every number of columns."""
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
        """One score per realization.

        Parameters
        ----------
        metric, method : str
        data, estimator : str, optional
            May be left out where there is only one.
        size : int, optional
            Number of columns; may be left out where there is one score per realization.
        rule : str, optional
            How that number came about, such as "step 3".
        """
        asked = dict(metric=metric, method=method, data=data, estimator=estimator, rule=rule)
        rows = self._of_each_realization("scores", self.rows(), {**asked, "size": size})
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
        """Losses of the test rows of every realization, of ``evaluate(..., losses=True)``.

        Parameters
        ----------
        method : str
        kind : {"squared", "error"}, default="squared"
            The square of what a number is missed by, or of what the probabilities of the classes
            are, summed over them (Brier's score); or 1 for a wrong class and 0 for the right one.
        data, estimator : str, optional
            May be left out where there is only one.
        size : int, optional
            Number of columns; may be left out where there is one for each realization.
        rule : str, optional
            How that number came about, such as "step 3".

        Returns
        -------
        losses : dict of int to RowLosses
            For each realization ``rows``, the positions of its test rows in the data, and
            ``values``.

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
        """Losses of the test rows of every task, estimator and number of columns."""
        for method, data, realization, outcome in self.tasks:
            for item in outcome.losses:
                if item.kind == kind:
                    losses = outcome.row_losses(item)
                    yield LossRow(data, method, *item[:3], realization, losses)

    def _of_each_realization(
        self, what: str, rows: Iterable[Any], asked: dict[str, Any]
    ) -> dict[int, Any]:
        """The one row of each realization that has what was asked for, None meaning anything."""
        given = {name: value for name, value in asked.items() if value is not None}
        found = [row for row in rows if all(getattr(row, n) == v for n, v in given.items())]
        by_realization = {row.realization: row for row in found}
        if found and len(by_realization) == len(found):
            return by_realization
        many = {name: sorted({getattr(row, name) for row in found}) for name in asked}
        several = ", ".join(f"{name} {values}" for name, values in many.items() if values[1:])
        problem = f"no {what}"
        if found:
            problem = f"more than one of the {what} in a realization; say which of {several}"
        elif what == "losses":
            problem = "no losses of rows, which evaluate(..., losses=True) keeps,"
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise InvalidParameter(f"Results has {problem} for {words}. It is {self!r}.")

    def orders(self, method: str, data: str | None = None) -> list[tuple[int, ...]]:
        """Columns best first, one tuple per realization."""
        return [o.order for o in self._outcomes(method, data) if o.order is not None]

    def supports(self, method: str, data: str | None = None, size: int | None = None) -> Mask:
        """Kept columns as mask, one row per realization; of a given size, the first ones."""
        masks = []
        for outcome in self._outcomes(method, data):
            kept = outcome.support if size is None else (outcome.order or ())[:size]
            mask = np.zeros(outcome.n_features, dtype=bool)
            mask[list(kept or ())] = True
            masks.append(mask)
        return np.array(masks)

    def seconds(self, method: str, data: str | None = None) -> Array:
        """Time of each fit of a method."""
        return np.array([outcome.seconds for outcome in self._outcomes(method, data)])

    def test_ratio(self, data: str | None = None) -> float:
        """Number of test rows per training row, which the corrected t-test needs."""
        ratios = [
            task.outcome.n_test / task.outcome.n_train
            for task in self.tasks
            if data in (None, task.data)
        ]
        return float(np.mean(ratios))

    def _outcomes(self, method: str, data: str | None) -> list[Outcome]:
        if data is None and len(self.data) > 1:
            raise InvalidParameter(
                f"Results holds several data sets; say which of {', '.join(self.data)}."
            )
        found = [t.outcome for t in self.tasks if t.method == method and data in (None, t.data)]
        if not found:
            raise InvalidParameter(
                f"Results holds no method {method!r}; it has {', '.join(self.methods)}."
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

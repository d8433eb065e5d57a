"""One piece of work: one method on one realization of one data set.

Everything is learned from the training part: the means and deviations that scale the columns, the
selection, and the estimators that are judged on the test part. A method is any scikit-learn
estimator. If it chooses columns, they are read from ``order_``, ``ranking_``, ``scores_`` or
``support_`` and judged by training the given estimators on them; else it is judged itself. One that
finds no column worth keeping is judged by what can be said without any.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from tamis._arrays import EMPTY, Array, Subset, best_first, target_kind
from tamis._random import fix_seeds, stream
from tamis.evaluation.checkpoint import Bookmark, fit
from tamis.evaluation.metrics import OF_COLUMNS, Metric, of_columns
from tamis.evaluation.outcome import Outcome, Score
from tamis.evaluation.realizations import Plan, Split
from tamis.evaluation.sources import Rows, Source
from tamis.exceptions import InvalidParameter, NothingSelected

#: Name under which a method that predicts is judged.
ITSELF = "itself"


@dataclass(frozen=True)
class Steps:
    """Where a search is judged: after these steps of its trace, whatever their numbers of columns.

    A method that adds several columns at a time, such as the next of every class, is judged at the
    subsets that it really held. After its last step it stays where it is.

    Parameters
    ----------
    numbers : sequence of int
        Counted from 1.

    Examples
    --------
    >>> Steps([1, 2, 4])
    Steps(numbers=(1, 2, 4))
    """

    numbers: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(int(k) for k in self.numbers))
        if min(self.numbers, default=0) < 1:
            raise InvalidParameter(f"Steps needs numbers of at least 1, not {list(self.numbers)}.")

    def subsets(self, fitted: Any) -> list[tuple[Subset, str]]:
        """Columns held after each of the steps, and the name of the step."""
        trace = getattr(_chooser(fitted), "trace_", None)
        if trace is None:
            raise InvalidParameter(
                f"sizes=Steps(...) needs a method that keeps its steps in trace_, which "
                f"{type(fitted).__name__} does not. Write sizes=[1, 2, 4]."
            )
        return [(trace[min(k, len(trace)) - 1].subset, f"step {k}") for k in self.numbers]


@dataclass(frozen=True, eq=False)
class Protocol:
    """How every piece of an experiment is judged."""

    estimators: Mapping[str, BaseEstimator]
    metrics: Mapping[str, Metric]
    sizes: str | tuple[int, ...] | Steps | Mapping[int, tuple[int, ...]]
    normalise: bool

    def at(self, realization: int) -> "Protocol":
        """How the pieces of one realization are judged, where each has sizes of its own."""
        if not isinstance(self.sizes, Mapping):
            return self
        return replace(self, sizes=self.sizes.get(realization, ()))

    @property
    def judges(self) -> list[Metric]:
        """The metrics that need a trained estimator."""
        return [item for item in self.metrics.values() if item.judge is not None]


def run(
    source: Source,
    plan: Plan,
    protocol: Protocol,
    method: BaseEstimator,
    label: str,
    i: int,
    bookmark: Bookmark | None = None,
) -> Outcome:
    """Fit the method on the training part of realization ``i`` and judge it on the test part.

    ``label`` names the method for its draws; ``bookmark`` is where a long fit keeps how far it is.
    """
    rows, protocol = source.at(i, plan.seed), protocol.at(i)
    split = plan.split(rows.y, source.name, i)
    work = _Work(rows, protocol, plan.seed, (source.name, i))
    fitted, seconds = work.fitted(method, label, split.train, bookmark)
    order, support = (EMPTY, EMPTY) if fitted is None else chosen_columns(fitted)
    itself = _judged_itself(fitted, order, protocol)
    if order is None or itself:
        n_columns = rows.X.shape[1] if support is None else len(support)
        scores = work.judged(fitted, split, n_columns)
    else:
        scores = work.scored(method, label, split, fitted, order, support)
    if "seconds" in protocol.metrics:
        scores = [*scores, Score("", 0, "given", "seconds", seconds)]
    return Outcome(
        tuple(scores),
        None if order is None else tuple(order.tolist()),
        None if support is None else tuple(support.tolist()),
        len(split.train),
        len(split.test),
        rows.X.shape[1],
        seconds,
    )


def _judged_itself(fitted: Any, order: Subset | None, protocol: Protocol) -> bool:
    """Whether a fitted method is judged by its own predictions."""
    who, predicts = type(fitted).__name__, hasattr(fitted, "predict")
    if order is None and not predicts:
        raise InvalidParameter(
            f"{who} neither chooses columns (order_, ranking_, scores_ or support_) nor predicts: "
            "there is nothing to judge."
        )
    if order is None or protocol.estimators or not protocol.judges:
        return order is None
    if not predicts:
        raise InvalidParameter(
            f"{who} chooses columns but does not predict, so {protocol.judges[0].name} needs an "
            "estimator to train on them. Write estimators=SVC(), or metrics='hit'."
        )
    return True


class _Work:
    """The rows of one realization and how they are judged."""

    def __init__(self, rows: Rows, protocol: Protocol, seed: int, place: tuple[str, int]):
        self.rows, self.protocol, self.seed, self.place = rows, protocol, seed, place
        self._scaled: dict[tuple[int, int], tuple[Array, Array]] = {}

    def scaled(self, train: Subset, other: Subset) -> tuple[Array, Array]:
        """Two parts, scaled by the statistics of the first."""
        X, key = self.rows.X, (id(train), id(other))  # the rows outlive this object
        if not self.protocol.normalise:
            return X[train], X[other]
        if key not in self._scaled:
            scaler = StandardScaler().fit(X[train])
            self._scaled[key] = scaler.transform(X[train]), scaler.transform(X[other])
        return self._scaled[key]

    def fitted(
        self, method: Any, label: str, train: Subset, bookmark: Bookmark | None = None
    ) -> tuple[Any, float]:
        """The method fitted on the training part, and the time this took.

        None where it keeps no column, and is free to: estimators are judged without any then.
        """
        fresh = deepcopy(method) if fitted_before(method) else clone(method)
        root = int(stream(self.seed, "method", label, *self.place).integers(2**31))
        fix_seeds(fresh, root=root)
        X, _ = self.scaled(train, train)
        start = perf_counter()
        try:
            fit(fresh, X, self.rows.y[train], bookmark)
        except NothingSelected:
            if self.protocol.sizes != "own" or not self.protocol.estimators:
                raise
            fresh = None
        return fresh, perf_counter() - start

    def scored(
        self,
        method: Any,
        label: str,
        split: Split,
        fitted: Any,
        order: Subset,
        support: Subset | None,
    ) -> list[Score]:
        """Scores at every number of columns that is asked for."""
        scores = self._hit(order)
        if self.protocol.sizes == "best":
            return scores + self._at_best(method, label, split, order)
        known: dict[bytes, list[Score]] = {}  # two steps may hold the same columns
        for columns, rule in self._subsets(fitted, order, support):
            same = columns.tobytes()
            if same not in known:
                known[same] = self._measured(columns, rule)
                for name in self.protocol.estimators:
                    known[same] += self._trained(name, split, columns, rule)
            scores += [score._replace(rule=rule) for score in known[same]]
        return scores

    def _subsets(
        self, fitted: Any, order: Subset, support: Subset | None
    ) -> list[tuple[Subset, str]]:
        """Columns at which is measured, each with its rule."""
        asked = self.protocol.sizes
        if isinstance(asked, Steps):
            return asked.subsets(fitted)
        if asked == "own":
            return [(order if support is None else support, "own")]
        sizes = asked if isinstance(asked, tuple) else range(1, len(order) + 1)
        return [(order[:k], "given") for k in sizes if k <= len(order)]

    def _at_best(self, method: Any, label: str, split: Split, order: Subset) -> list[Score]:
        """Scores at the number of columns that is best on the inner rows, for each estimator."""
        if not split.inner:
            raise InvalidParameter(
                "sizes='best' needs rows on which the number of columns is chosen. Write "
                "Realizations(..., validation=0.25) or Realizations(..., inner=5)."
            )
        first = self.protocol.judges[0]
        sizes = range(1, len(order) + 1)
        scores = []
        for name in self.protocol.estimators:
            curves = [self._curve(method, label, name, fit, check) for fit, check in split.inner]
            prices = np.mean(curves, axis=0)
            size = sizes[int(best_first(prices if first.greater_is_better else -prices)[0])]
            columns = order[:size]
            scores += [row._replace(estimator=name) for row in self._measured(columns, "best")]
            scores += self._trained(name, split, columns, "best")
        return scores

    def _curve(self, method: Any, label: str, name: str, fit: Subset, check: Subset) -> Array:
        """First metric on ``check`` at every number of columns, selected on ``fit``."""
        order, _ = chosen_columns(self.fitted(method, label, fit)[0])
        if order is None:
            raise InvalidParameter("sizes='best' needs a method that ranks columns.")
        judge = self.protocol.judges[0]
        part = Split(fit, check)
        return np.array(
            [
                self._trained(name, part, order[:k], "inner", [judge])[0].value
                for k in range(1, len(order) + 1)
            ]
        )

    def _trained(
        self,
        name: str,
        split: Split,
        columns: Subset,
        rule: str,
        metrics: list[Metric] | None = None,
    ) -> list[Score]:
        """Scores of one estimator trained on some columns."""
        metrics = self.protocol.judges if metrics is None else metrics
        if not metrics:
            return []
        fresh = clone(self.protocol.estimators[name]) if len(columns) else self._constant()
        root = int(stream(self.seed, "estimator", name, *self.place).integers(2**31))
        fix_seeds(fresh, root=root)
        X, X_test = self.scaled(split.train, split.test)
        fresh.fit(X[:, columns], self.rows.y[split.train])
        y = self.rows.y[split.test]
        return [
            Score(name, len(columns), rule, item.name, _value(item, fresh, X_test[:, columns], y))
            for item in metrics
        ]

    def _constant(self) -> Any:
        """What predicts without any column: the most frequent class, or the mean."""
        of_classes = target_kind(self.rows.y) == "classification"
        return DummyClassifier() if of_classes else DummyRegressor()

    def judged(self, fitted: Any, split: Split, size: int) -> list[Score]:
        """Scores of a method that predicts by itself."""
        _, X = self.scaled(split.train, split.test)
        y = self.rows.y[split.test]
        scores = [
            Score(ITSELF, size, "own", item.name, _value(item, fitted, X, y))
            for item in self.protocol.judges
        ]
        if "n_features" in self.protocol.metrics:
            scores.append(Score(ITSELF, size, "own", "n_features", float(size)))
        return scores

    def _hit(self, order: Subset) -> list[Score]:
        """Whether the order answers the problem: one score, whatever the sizes."""
        relevant = self.rows.relevant
        if "hit" not in self.protocol.metrics:
            return []
        value = of_columns("hit", order, relevant, self.rows.equivalent)
        return [Score("", len(relevant or ()), "given", "hit", value)]

    def _measured(self, columns: Subset, rule: str) -> list[Score]:
        """Measures of the chosen columns."""
        relevant, equivalent = self.rows.relevant, self.rows.equivalent
        return [
            Score("", len(columns), rule, name, of_columns(name, columns, relevant, equivalent))
            for name in OF_COLUMNS
            if name in self.protocol.metrics and name != "hit"
        ]


def _value(item: Metric, fitted: Any, X: Array, y: NDArray[Any]) -> float:
    if item.judge is None:
        raise InvalidParameter(f"{item.name} is a measure of columns.")
    return float(item.judge(fitted, X, y))


def fitted_before(method: Any) -> bool:
    """Whether a part of the method was fitted beforehand and will stay so."""
    values = [method, *method.get_params().values()] if hasattr(method, "get_params") else [method]
    return any(
        isinstance(value, FrozenEstimator) or getattr(value, "prefit", False) is True
        for value in values
    )


def chosen_columns(fitted: Any) -> tuple[Subset | None, Subset | None]:
    """Columns best first, and those kept, of a fitted estimator; None where it chooses none.

    Of a pipeline without a predictor the first step is asked, which sees the original columns. A
    method that only has a support has it for an order too.
    """
    chooser = _chooser(fitted)
    if chooser is None:
        return None, None
    support = _support(chooser)
    for name, rank in (("order_", None), ("ranking_", 1), ("scores_", -1)):
        found = getattr(chooser, name, None)
        if found is not None and np.ndim(found) == 1:
            values = np.asarray(found)
            order = values if rank is None else _sorted(rank * values)
            return order.astype(np.intp), support
    return support, support


def _sorted(values: NDArray[Any]) -> Subset:
    """Positions of ascending values, nan last."""
    return np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")


def _support(chooser: Any) -> Subset | None:
    mask = getattr(chooser, "support_", None)
    if mask is None and hasattr(chooser, "get_support"):
        mask = chooser.get_support()
    if mask is None:
        return None
    mask = np.asarray(mask)
    return np.flatnonzero(mask) if mask.dtype == bool else mask.astype(np.intp)


def _chooser(fitted: Any) -> Any:
    """The estimator, if it chooses columns and is not itself a predictor made of steps."""
    if isinstance(getattr(fitted, "steps", None), list):  # a pipeline
        return None if hasattr(fitted, "predict") else _chooser(fitted.steps[0][1])
    if any(hasattr(fitted, mark) for mark in ("order_", "ranking_", "get_support")):
        return fitted
    # a support vector machine keeps the numbers of rows under the same name
    mask = getattr(fitted, "support_", None)
    return fitted if mask is not None and np.asarray(mask).dtype == bool else None

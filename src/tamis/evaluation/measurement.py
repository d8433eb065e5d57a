"""One task: one method on one realization of one data set.

Everything is learned from the training part: the means and deviations that scale the columns, the
selection, and the estimators that are measured on the test part. A method is any scikit-learn
estimator. If it chooses columns, they are read from ``order_``, ``ranking_``, ``scores_`` or
``support_`` and measured by training the given estimators on them; else it is measured itself. One
that finds no column worth keeping is measured by what can be said without any.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import EMPTY, Array, Subset, best_first
from tamis.evaluation.checkpoint import Bookmark
from tamis.evaluation.columns import chosen_columns, seen_columns
from tamis.evaluation.metrics import OF_COLUMNS, Metric, of_columns
from tamis.evaluation.outcome import Outcome, Score
from tamis.evaluation.protocol import Protocol, Steps
from tamis.evaluation.realizations import Plan, Split
from tamis.evaluation.row_losses import PackedLosses, packed_losses, packed_rows
from tamis.evaluation.sources import Source
from tamis.evaluation.split_fit import Training
from tamis.exceptions import InvalidParameter, NothingSelected

#: Name under which a method that predicts is measured.
ITSELF = "itself"


def run(
    source: Source,
    plan: Plan,
    protocol: Protocol,
    method: BaseEstimator,
    label: str,
    i: int,
    bookmark: Bookmark | None = None,
) -> Outcome:
    """Fit the method on the training part of realization ``i`` and measure it on the test part.

    ``label`` names the method for its draws; ``bookmark`` is where a long fit keeps how far it is.
    """
    rows, protocol = source.at(i, plan.seed), protocol.at(i)
    split = plan.split(rows.y, source.name, i)
    training = Training(rows, protocol.normalise, plan.seed, (source.name, i))
    fitted, seconds = _fitted(training, protocol, method, label, split, bookmark)
    order, support = (EMPTY, EMPTY) if fitted is None else chosen_columns(fitted)
    _check_measurable(fitted, order, protocol)
    measured = _Measured(training, protocol, split)
    if order is None or _predicts_itself(fitted, protocol):
        seen = seen_columns(fitted) if support is None else support
        scores = measured.itself(fitted, rows.X.shape[1] if seen is None else len(seen))
    elif _names_estimator(fitted, protocol):
        kept = order if support is None else support
        scores = measured.hit(order) + measured.by_own(fitted.estimator_, kept)
    elif protocol.sizes == "best":
        scores = measured.hit(order) + measured.at_best_size(method, label, order)
    else:
        subsets = _subsets(protocol.sizes, fitted, order, support)
        scores = measured.hit(order) + measured.at_subsets(subsets)
    if "seconds" in protocol.metrics:
        scores = [*scores, Score("", 0, "given", "seconds", seconds)]
    losses = tuple(measured.losses)
    return Outcome(
        tuple(scores),
        None if order is None else tuple(order.tolist()),
        None if support is None else tuple(support.tolist()),
        len(split.train),
        len(split.test),
        rows.X.shape[1],
        seconds,
        losses,
        packed_rows(split.test) if losses else "",
    )


def _fitted(
    training: Training,
    protocol: Protocol,
    method: Any,
    label: str,
    split: Split,
    bookmark: Bookmark | None,
) -> tuple[Any, float]:
    """The fitted method and its time; None where it keeps no column, and is free to."""
    start = perf_counter()
    try:
        return training.selection(method, label, split.train, bookmark)
    except NothingSelected:
        if protocol.sizes != "own" or not protocol.estimators:
            raise
        return None, perf_counter() - start


def _check_measurable(fitted: Any, order: Subset | None, protocol: Protocol) -> None:
    """Refuse a method of which nothing that is asked for can be measured."""
    name = type(fitted).__name__
    if hasattr(fitted, "predict") or _names_estimator(fitted, protocol):
        return
    if order is None:
        raise InvalidParameter(
            f"{name} neither chooses columns (order_, ranking_, scores_ or support_) nor predicts: "
            "there is nothing to measure."
        )
    if protocol.reads_predictions and not protocol.estimators:
        first = [item.name for item in protocol.of_predictions] or ["losses=True"]
        raise InvalidParameter(
            f"{name} chooses columns but does not predict, so {first[0]} "
            "needs an estimator to train on them. Write estimators=SVC(), or metrics='hit'."
        )


def _predicts_itself(fitted: Any, protocol: Protocol) -> bool:
    """Whether a method that chooses columns is measured by its own predictions."""
    wanted = protocol.reads_predictions and not protocol.estimators
    return wanted and hasattr(fitted, "predict")


def _names_estimator(fitted: Any, protocol: Protocol) -> bool:
    """Whether a method is measured by the estimator that it names for its columns, as AUTO does."""
    wanted = bool(protocol.of_predictions) and not protocol.estimators and protocol.sizes == "own"
    return wanted and hasattr(fitted, "estimator_")


def _subsets(
    sizes: Any, fitted: Any, order: Subset, support: Subset | None
) -> list[tuple[Subset, str]]:
    """Columns at which is measured, each with its rule."""
    if isinstance(sizes, Steps):
        return sizes.subsets(fitted)
    if sizes == "own":
        return [(order if support is None else support, "own")]
    numbers = sizes if isinstance(sizes, tuple) else range(1, len(order) + 1)
    return [(order[:k], "given") for k in numbers if k <= len(order)]


class _Measured:
    """Scores on the test part of one split."""

    def __init__(self, training: Training, protocol: Protocol, split: Split):
        self.training, self.protocol, self.split = training, protocol, split
        #: Losses of the test rows, if they are asked for.
        self.losses: list[PackedLosses] = []

    def itself(self, fitted: Any, size: int) -> list[Score]:
        """Scores of a method that predicts by itself."""
        _, X = self.training.scaled(self.split.train, self.split.test)
        scores = self._predicted(fitted, X, size)
        if "n_features" in self.protocol.metrics:
            scores.append(Score(ITSELF, size, "own", "n_features", float(size)))
        return scores

    def by_own(self, estimator: Any, columns: Subset) -> list[Score]:
        """Scores of the estimator that a method names, trained on the columns that it keeps."""
        train, test = self.split.train, self.split.test
        fitted, X = self.training.estimator(estimator, ITSELF, train, test, columns)
        return self._of_columns(columns, "own") + self._predicted(fitted, X, len(columns))

    def _predicted(self, fitted: Any, X: Array, size: int) -> list[Score]:
        y = self.training.rows.y[self.split.test]
        self._keep_losses(fitted, X, y, ITSELF, size, "own")
        return [
            Score(ITSELF, size, "own", item.name, _value(item, fitted, X, y))
            for item in self.protocol.of_predictions
        ]

    def hit(self, order: Subset) -> list[Score]:
        """Whether the order answers the problem: one score, whatever the sizes."""
        rows = self.training.rows
        if "hit" not in self.protocol.metrics:
            return []
        value = of_columns("hit", order, rows.relevant, rows.equivalent)
        return [Score("", len(rows.relevant or ()), "given", "hit", value)]

    def at_subsets(self, subsets: list[tuple[Subset, str]]) -> list[Score]:
        """Scores at every subset that is asked for; two steps may hold the same columns."""
        scores: list[Score] = []
        known: dict[bytes, tuple[list[Score], list[PackedLosses]]] = {}
        losses = self.losses
        for columns, rule in subsets:
            same = columns.tobytes()
            if same not in known:
                self.losses, found = [], self._of_columns(columns, rule)
                for name in self.protocol.estimators:
                    found += self._trained(name, self.split, columns, rule)
                known[same] = found, self.losses
            scores += [score._replace(rule=rule) for score in known[same][0]]
            losses += [item._replace(rule=rule) for item in known[same][1]]
        self.losses = losses
        return scores

    def at_best_size(self, method: Any, label: str, order: Subset) -> list[Score]:
        """Scores at the number of columns that is best on the inner rows, for each estimator."""
        if not self.split.inner:
            raise InvalidParameter(
                "sizes='best' needs rows on which the number of columns is chosen. Write "
                "Realizations(..., validation=0.25) or Realizations(..., inner=5)."
            )
        first = self.protocol.of_predictions[0]
        scores = []
        for name in self.protocol.estimators:
            curves = [self._curve(method, label, name, fold) for fold in self.split.inner]
            means = np.mean(curves, axis=0)
            size = 1 + int(best_first(means if first.greater_is_better else -means)[0])
            columns = order[:size]
            scores += [row._replace(estimator=name) for row in self._of_columns(columns, "best")]
            scores += self._trained(name, self.split, columns, "best")
        return scores

    def _curve(self, method: Any, label: str, name: str, fold: tuple[Subset, Subset]) -> Array:
        """First metric on the second part of a fold at every number of columns of the first."""
        order, _ = chosen_columns(self.training.selection(method, label, fold[0])[0])
        if order is None:
            raise InvalidParameter("sizes='best' needs a method that ranks columns.")
        first, part = self.protocol.of_predictions[:1], Split(*fold)
        return np.array(
            [
                self._trained(name, part, order[:k], "inner", first)[0].value
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
        """Scores of one estimator trained on some columns, by all metrics or by some."""
        if metrics is None and not self.protocol.reads_predictions:
            return []
        estimator = self.protocol.estimators[name]
        fitted, X = self.training.estimator(estimator, name, split.train, split.test, columns)
        y = self.training.rows.y[split.test]
        if metrics is None:
            self._keep_losses(fitted, X, y, name, len(columns), rule)
        return [
            Score(name, len(columns), rule, item.name, _value(item, fitted, X, y))
            for item in (self.protocol.of_predictions if metrics is None else metrics)
        ]

    def _keep_losses(
        self, fitted: Any, X: Array, y: NDArray[Any], name: str, size: int, rule: str
    ) -> None:
        if self.protocol.losses:
            self.losses += packed_losses(fitted, X, y, name, size, rule)

    def _of_columns(self, columns: Subset, rule: str) -> list[Score]:
        """Measures of the chosen columns."""
        rows = self.training.rows
        return [
            Score(
                "",
                len(columns),
                rule,
                name,
                of_columns(name, columns, rows.relevant, rows.equivalent),
            )
            for name in OF_COLUMNS
            if name in self.protocol.metrics and name != "hit"
        ]


def _value(item: Metric, fitted: Any, X: Array, y: NDArray[Any]) -> float:
    if item.function is None:
        raise InvalidParameter(f"{item.name} is a measure of columns.")
    return float(item.function(fitted, X, y))

"""One task: one method on one realization of one data set.

Everything is learned from the training part: the means and deviations that scale the columns, the
selection, and the estimators that are measured on the test part. A method is any scikit-learn
estimator. If it chooses columns, they are read from ``order_``, ``ranking_``, ``scores_`` or
``support_`` and measured by training the given estimators on them; else it is measured itself. One
that finds no column worth keeping is measured by the baseline: the most frequent class, or the
mean.
"""

from copy import deepcopy
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from tamis._arrays import EMPTY, Array, Subset, best_first, target_kind
from tamis._seeds import fix_seeds, seed_of
from tamis.evaluation.checkpoint import Bookmark, fit
from tamis.evaluation.columns import chosen_columns, fitted_before, seen_columns
from tamis.evaluation.metrics import OF_COLUMNS, Metric, of_columns
from tamis.evaluation.outcome import Outcome, PackedLosses, Score, pack, pack_losses
from tamis.evaluation.protocol import Protocol, Steps
from tamis.evaluation.realizations import Plan, Split
from tamis.evaluation.sources import Rows, Source
from tamis.exceptions import InvalidParameter, NothingSelected

#: Name under which a method that predicts is measured.
ITSELF = "itself"
#: Powers of two up to which columns are squared as they are: squares of 2**400, about 1e240, can
#: be added up over any number of rows before they overflow, and those of 2**-400 do not vanish.
FARTHEST = 400


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
    start = perf_counter()
    try:
        fitted, seconds = training.fit_selection(method, label, split.train, bookmark)
        order, support = chosen_columns(fitted)
    except NothingSelected:  # a method that is free to keep no column
        if protocol.sizes != "own" or not protocol.estimators:
            raise
        fitted, seconds, order, support = None, perf_counter() - start, EMPTY, EMPTY
    measurement = _Measurement(training, protocol, split)
    scores = measurement.scores(method, label, fitted, order, support)
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
        tuple(measurement.losses),
        pack(split.test.astype("<i4")) if measurement.losses else "",
    )


class Training:
    """The rows of one realization, and what is fitted on parts of them.

    Parameters
    ----------
    rows : Rows
    normalise : bool
        Whether columns are scaled to mean 0 and standard deviation 1 of the training part.
    seed : int
    labels : tuple of (str, int)
        The data and the realization, which draws follow from.
    """

    def __init__(self, rows: Rows, normalise: bool, seed: int, labels: tuple[str, int]):
        self.rows, self.normalise, self.seed, self.labels = rows, normalise, seed, labels
        self._parts: dict[tuple[int, int], tuple[Array, Array]] = {}

    def scale(self, train: Subset, other: Subset) -> tuple[Array, Array]:
        """Two parts, scaled by the statistics of the first where that is asked for.

        They are taken once for all estimators: rows of a frame are gathered column by column.
        """
        X, key = self.rows.X, (id(train), id(other))  # the rows outlive this object
        if key not in self._parts:
            parts = X[train], X[other]
            self._parts[key] = _scale(*parts) if self.normalise else parts
        return self._parts[key]

    def fit_selection(
        self, method: Any, label: str, train: Subset, bookmark: Bookmark | None = None
    ) -> tuple[Any, float]:
        """The method fitted on the training part, and the time this took.

        ``label`` names the method for its draws. A pipeline whose first step keeps no column
        predicts the most frequent class, or the mean.
        """
        fresh = deepcopy(method) if fitted_before(method) else clone(method)
        self._fix_seeds(fresh, "method", label)
        X, _ = self.scale(train, train)
        start = perf_counter()
        try:
            fit(fresh, X, self.rows.y[train], bookmark)
        except ValueError:  # estimators refuse a table without columns
            if not _passes_nothing(fresh):
                raise
            constant = self._constant().fit(_take(X, EMPTY), self.rows.y[train])
            fresh.steps[1:] = [("constant", constant)]
        return fresh, perf_counter() - start

    def fit_estimator(
        self, estimator: BaseEstimator, name: str, split: Split, columns: Subset
    ) -> tuple[Any, Array]:
        """An estimator trained on some columns, and these columns of the test part.

        Without any column it is what predicts the most frequent class, or the mean.
        """
        fresh = clone(estimator) if len(columns) else self._constant()
        self._fix_seeds(fresh, "estimator", name)
        X, X_test = self.scale(split.train, split.test)
        fresh.fit(_take(X, columns), self.rows.y[split.train])
        return fresh, _take(X_test, columns)

    def _fix_seeds(self, estimator: BaseEstimator, *labels: str) -> None:
        fix_seeds(estimator, root=seed_of(self.seed, *labels, *self.labels))

    def _constant(self) -> Any:
        of_classes = target_kind(self.rows.y) == "classification"
        return DummyClassifier() if of_classes else DummyRegressor()


def _passes_nothing(method: Any) -> bool:
    """Whether it is a pipeline whose first step was fitted and keeps no column."""
    try:
        kept = seen_columns(method)
    except NotFittedError:
        return False
    return kept is not None and not len(kept)


def _take(X: Array, columns: Subset) -> Array:
    """Some columns; of none there are as many rows, which a frame would forget."""
    return X[:, columns] if len(columns) else np.empty((len(X), 0))


def _scale(train: Array, other: Array) -> tuple[Array, Array]:
    """Two parts with mean 0 and standard deviation 1 of the first.

    Columns out of all proportion are first brought near 1 by powers of two, which change no digit.
    """
    exponent = np.frexp(np.abs(train).max(axis=0))[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if exponent.any():
        with np.errstate(over="ignore"):  # a test row may be out of all proportion to the others
            train, other = np.ldexp(train, -exponent), np.ldexp(other, -exponent)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(other)


class _Measurement:
    """Scores on the test part of one split."""

    def __init__(self, training: Training, protocol: Protocol, split: Split):
        self.training, self.protocol, self.split = training, protocol, split
        #: Losses of the test rows, if they are asked for.
        self.losses: list[PackedLosses] = []

    def scores(
        self, method: Any, label: str, fitted: Any, order: Subset | None, support: Subset | None
    ) -> list[Score]:
        """All scores of a fitted method that chose these columns, or none."""
        protocol = self.protocol
        alone = protocol.reads_predictions and not protocol.estimators
        predicts = hasattr(fitted, "predict")
        # a method may name the estimator for its columns, as Auto does
        names = protocol.sizes == "own" and hasattr(fitted, "estimator_")
        names = names and bool(protocol.of_predictions) and not protocol.estimators
        if not predicts and not names:
            self._check_measurable(type(fitted).__name__, order)
        if order is None or (alone and predicts):
            return self._score_itself(fitted, support)
        hit = self._score_columns(order, "given", ("hit",))
        kept = order if support is None else support
        if names:
            model, X = self.training.fit_estimator(fitted.estimator_, ITSELF, self.split, kept)
            predicted = self._score(model, X, self.split, ITSELF, len(kept), "own")
            return hit + self._score_columns(kept, "own") + predicted
        if protocol.sizes == "best":
            return hit + self._score_best_size(method, label, order)
        if isinstance(protocol.sizes, Steps):
            return hit + self._score_subsets(protocol.sizes.subsets(fitted))
        if protocol.sizes == "own":
            return hit + self._score_subsets([(kept, "own")])
        numbers = range(1, len(order) + 1) if protocol.sizes == "all" else protocol.sizes
        return hit + self._score_subsets([(order[:k], "given") for k in numbers if k <= len(order)])

    def _check_measurable(self, name: str, order: Subset | None) -> None:
        """Refuse a method without predictions of which nothing that is asked for is measured."""
        if order is None:
            raise InvalidParameter(
                f"{name} neither chooses columns (order_, ranking_, scores_ or support_) nor "
                "predicts: there is nothing to measure."
            )
        if self.protocol.reads_predictions and not self.protocol.estimators:
            first = [item.name for item in self.protocol.of_predictions] or ["losses=True"]
            raise InvalidParameter(
                f"{name} chooses columns but does not predict, so {first[0]} "
                "needs an estimator to train on them. Write estimators=SVC(), or metrics='hit'."
            )

    def _score_itself(self, fitted: Any, support: Subset | None) -> list[Score]:
        """Scores of a method that predicts by itself."""
        seen = seen_columns(fitted) if support is None else support
        size = self.training.rows.X.shape[1] if seen is None else len(seen)
        _, X = self.training.scale(self.split.train, self.split.test)
        scores = self._score(fitted, X, self.split, ITSELF, size, "own")
        if "n_features" in self.protocol.metrics:
            scores.append(Score(ITSELF, size, "own", "n_features", float(size)))
        return scores

    def _score_subsets(self, subsets: list[tuple[Subset, str]]) -> list[Score]:
        """Scores at every subset that is asked for; two steps may hold the same columns."""
        scores: list[Score] = []
        known: dict[bytes, tuple[list[Score], list[PackedLosses]]] = {}
        losses = self.losses
        for columns, rule in subsets:
            same = columns.tobytes()
            if same not in known:
                self.losses, found = [], self._score_columns(columns, rule)
                for name in self.protocol.estimators:
                    found += self._train_and_score(name, self.split, columns, rule)
                known[same] = found, self.losses
            scores += [score._replace(rule=rule) for score in known[same][0]]
            losses += [item._replace(rule=rule) for item in known[same][1]]
        self.losses = losses
        return scores

    def _score_best_size(self, method: Any, label: str, order: Subset) -> list[Score]:
        """Scores at the number of columns that is best on the inner rows, for each estimator."""
        if not self.split.inner:
            raise InvalidParameter(
                "sizes='best' needs rows on which the number of columns is chosen. Write "
                "Realizations(..., validation=0.25) or Realizations(..., inner=5)."
            )
        first = self.protocol.of_predictions[0]
        scores = []
        for name in self.protocol.estimators:
            curves = [self._curve(method, label, name, Split(*fold)) for fold in self.split.inner]
            means = np.mean(curves, axis=0)
            size = 1 + int(best_first(means if first.greater_is_better else -means)[0])
            columns = order[:size]
            scores += [row._replace(estimator=name) for row in self._score_columns(columns, "best")]
            scores += self._train_and_score(name, self.split, columns, "best")
        return scores

    def _curve(self, method: Any, label: str, name: str, fold: Split) -> Array:
        """First metric on the second part of a fold at every number of columns of the first."""
        order, _ = chosen_columns(self.training.fit_selection(method, label, fold.train)[0])
        if order is None:
            raise InvalidParameter("sizes='best' needs a method that ranks columns.")
        first = self.protocol.of_predictions[:1]
        return np.array(
            [
                self._train_and_score(name, fold, order[:k], "inner", first)[0].value
                for k in range(1, len(order) + 1)
            ]
        )

    def _train_and_score(
        self,
        name: str,
        split: Split,
        columns: Subset,
        rule: str,
        metrics: list[Metric] | None = None,
    ) -> list[Score]:
        """Scores of one estimator trained on some columns."""
        if not self.protocol.reads_predictions:
            return []
        estimator = self.protocol.estimators[name]
        fitted, X = self.training.fit_estimator(estimator, name, split, columns)
        return self._score(fitted, X, split, name, len(columns), rule, metrics)

    def _score(
        self,
        fitted: Any,
        X: Array,
        split: Split,
        name: str,
        size: int,
        rule: str,
        metrics: list[Metric] | None = None,
    ) -> list[Score]:
        """Scores of a fitted estimator: by some metrics, or by all and with the losses of rows."""
        y: NDArray[Any] = self.training.rows.y[split.test]
        if metrics is None:
            metrics = self.protocol.of_predictions
            if self.protocol.losses:
                self.losses += pack_losses(fitted, X, y, name, size, rule)
        return [Score(name, size, rule, item.name, item.value(fitted, X, y)) for item in metrics]

    def _score_columns(
        self, columns: Subset, rule: str, names: tuple[str, ...] = OF_COLUMNS
    ) -> list[Score]:
        """Measures of the chosen columns."""
        known = self.training.rows.relevant, self.training.rows.equivalent
        size = len(columns) if names == OF_COLUMNS else len(known[0] or ())
        return [
            Score("", size, rule, name, of_columns(name, columns, *known))
            for name in names
            if name in self.protocol.metrics
        ]

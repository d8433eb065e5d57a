"""Execution of a task: a method on a single realization of a data set.

Everything is fitted to the training rows: the scaling of the columns, the selection, and the
estimators that are measured on the test rows. A method is any scikit-learn estimator:

* If the method is a selector, its columns are read from ``order_``, ``ranking_``, ``scores_`` or
  ``support_``, and the given estimators are trained on them.
* If the method is a selector but selects no column, the baseline is measured: the most frequent
  class, or the mean.
* If the method is not a selector, the method itself is measured.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from tamis._arrays import EMPTY, Array, Subset, best_first, target_kind
from tamis._seeds import fix_seeds, seed_of
from tamis.evaluation.checkpoint import Bookmark, fit
from tamis.evaluation.columns import chosen_columns, fitted_before, seen_columns
from tamis.evaluation.metrics import OF_COLUMNS, of_columns
from tamis.evaluation.outcome import Outcome, PackedLosses, Score, pack, pack_losses
from tamis.evaluation.protocol import Protocol, Steps
from tamis.evaluation.realizations import Plan, Split
from tamis.evaluation.sources import Rows, Source
from tamis.exceptions import InvalidParameter, NothingSelected

#: Name of the estimator in the scores of a method that makes predictions itself.
ITSELF = "itself"
#: Columns are rescaled if their magnitude exceeds 2**400 or is below 2**-400, so that sums of their
#: squares neither overflow nor vanish.
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
    """Fit the method to the training rows of realization ``i`` and measure it on the test rows.

    Seeds depend on ``label``, the name of the method. ``bookmark`` locates the checkpoint of a
    long fit.
    """
    rows, protocol = source.at(i, plan.seed), protocol.at(i)
    split = plan.split(rows.y, source.name, i)
    training = Training(rows, protocol.normalise, plan.seed, (source.name, i))
    start = perf_counter()
    try:
        fitted, seconds = training.fit_selection(method, label, split.train, bookmark)
        order, support = chosen_columns(fitted)
    except NothingSelected:  # the method selects no column
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


@dataclass
class Training:
    """The rows of a realization, and estimators fitted to them.

    Attributes
    ----------
    rows : Rows
    normalise : bool
        Whether columns are standardised by the mean and standard deviation of the training rows.
    seed : int
    labels : tuple of (str, int)
        Names of the data and number of the realization, on which seeds depend.
    """

    rows: Rows
    normalise: bool
    seed: int
    labels: tuple[str, int]
    _parts: dict[tuple[int, int], tuple[Array, Array]] = field(default_factory=dict)

    def scale(self, train: Subset, other: Subset) -> tuple[Array, Array]:
        """Return the training rows and other rows. If ``normalise``, both are standardised.

        The means and standard deviations are those of the training rows. The result is cached for
        all estimators, because copying rows of a table is slow.
        """
        X, key = self.rows.X, (id(train), id(other))  # ids stay valid: the rows live longer
        if key not in self._parts:
            parts = X[train], X[other]
            self._parts[key] = _scale(*parts) if self.normalise else parts
        return self._parts[key]

    def fit_selection(
        self, method: Any, label: str, train: Subset, bookmark: Bookmark | None = None
    ) -> tuple[Any, float]:
        """Return the method fitted to the training rows, and the time of the fit.

        If the first step of a pipeline selects no column, the baseline replaces the pipeline.
        """
        fresh = deepcopy(method) if fitted_before(method) else clone(method)
        self._fix_seeds(fresh, "method", label)
        X, _ = self.scale(train, train)
        start = perf_counter()
        try:
            fit(fresh, X, self.rows.y[train], bookmark)
        except ValueError:  # estimators reject a table without columns
            if not _selects_nothing(fresh):
                raise
            constant = self._constant_like(method).fit(_take(X, EMPTY), self.rows.y[train])
            fresh.steps[1:] = [("constant", constant)]
        return fresh, perf_counter() - start

    def fit_estimator(
        self, estimator: BaseEstimator, name: str, split: Split, columns: Subset
    ) -> tuple[Any, Array]:
        """Return an estimator trained on the given columns, and these columns of the test rows.

        Without columns, the estimator is the baseline: the most frequent class, or the mean.
        """
        fresh = clone(estimator) if len(columns) else self._constant_like(estimator)
        self._fix_seeds(fresh, "estimator", name)
        X, X_test = self.scale(split.train, split.test)
        fresh.fit(_take(X, columns), self.rows.y[split.train])
        return fresh, _take(X_test, columns)

    def _fix_seeds(self, estimator: BaseEstimator, *labels: str) -> None:
        fix_seeds(estimator, root=seed_of(self.seed, *labels, *self.labels))

    def _constant_like(self, estimator: Any) -> Any:
        """Return the baseline of a classifier or regressor, or else of the target."""
        of_classes = target_kind(self.rows.y) == "classification" and not is_regressor(estimator)
        return DummyClassifier() if of_classes or is_classifier(estimator) else DummyRegressor()


def _selects_nothing(method: Any) -> bool:
    """Return whether a method is a pipeline whose fitted first step selects no column."""
    try:
        selected = seen_columns(method)
    except NotFittedError:
        return False
    return selected is not None and not len(selected)


def _take(X: Array, columns: Subset) -> Array:
    """Return the given columns. Without columns, return an empty array with the same rows."""
    return X[:, columns] if len(columns) else np.empty((len(X), 0))


def _scale(train: Array, other: Array) -> tuple[Array, Array]:
    """Standardise both arrays by the mean and standard deviation of the first.

    Very large or small columns are first multiplied by powers of two, which is exact.
    """
    exponent = np.frexp(np.abs(train).max(axis=0))[1]
    exponent[np.abs(exponent) <= FARTHEST] = 0
    if exponent.any():
        with np.errstate(over="ignore"):  # a test row may be much larger than all training rows
            train, other = np.ldexp(train, -exponent), np.ldexp(other, -exponent)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(other)


@dataclass
class _Measurement:
    """Scores on the test rows of a split, and the losses of these rows if requested."""

    training: Training
    protocol: Protocol
    split: Split
    losses: list[PackedLosses] = field(default_factory=list)

    def scores(
        self, method: Any, label: str, fitted: Any, order: Subset | None, support: Subset | None
    ) -> list[Score]:
        """Return all scores of a fitted method, given its order and its selected columns."""
        protocol = self.protocol
        alone = protocol.reads_predictions and not protocol.estimators
        predicts = hasattr(fitted, "predict")
        # a method such as Auto provides an estimator for its columns
        names = protocol.sizes == "own" and hasattr(fitted, "estimator_")
        names = names and bool(protocol.of_predictions) and not protocol.estimators
        if not predicts and not names:
            self._check_measurable(type(fitted).__name__, order)
        if order is None or (alone and predicts):
            return self._score_itself(fitted, support)
        hit = self._score_columns(order, "given", ("hit",))
        kept = order if support is None else support
        if names:
            model, _ = self.training.fit_estimator(fitted.estimator_, ITSELF, self.split, kept)
            predicted = self._score(model, kept, ITSELF, len(kept), "own")
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
        """Raise an error if a method that does not predict cannot be measured.

        Such a method must select columns. If a metric or the losses need an estimator, at least one
        must be given.
        """
        if order is None:
            raise InvalidParameter(
                f"{name} neither selects columns (order_, ranking_, scores_ or support_) nor "
                "predicts, so there is nothing to measure. Pass a selector, or an estimator with "
                "predict."
            )
        if self.protocol.reads_predictions and not self.protocol.estimators:
            first = [item.name for item in self.protocol.of_predictions] or ["losses=True"]
            raise InvalidParameter(
                f"{name} selects columns but does not predict, so {first[0]} needs an estimator to "
                "train on them. Write estimators=SVC(), or metrics='hit'."
            )

    def _score_itself(self, fitted: Any, support: Subset | None) -> list[Score]:
        """Return the scores of a method that makes predictions itself."""
        seen = seen_columns(fitted) if support is None else support
        size = self.training.rows.X.shape[1] if seen is None else len(seen)
        scores = self._score(fitted, None, ITSELF, size, "own")
        if "n_features" in self.protocol.metrics:
            scores.append(Score(ITSELF, size, "own", "n_features", float(size)))
        return scores

    def _score_subsets(self, subsets: list[tuple[Subset, str]]) -> list[Score]:
        """Return the scores for every subset. Equal subsets are measured once."""
        scores: list[Score] = []
        known: dict[bytes, tuple[list[Score], list[PackedLosses]]] = {}
        losses = self.losses
        for columns, rule in subsets:
            same = columns.tobytes()
            if same not in known:
                self.losses, found = [], self._score_columns(columns, rule)
                for name in self.protocol.estimators:
                    found += self._train_and_score(name, columns, rule)
                known[same] = found, self.losses
            scores += [score._replace(rule=rule) for score in known[same][0]]
            losses += [item._replace(rule=rule) for item in known[same][1]]
        self.losses = losses
        return scores

    def _score_best_size(self, method: Any, label: str, order: Subset) -> list[Score]:
        """Return the scores at the number of columns that is best in the inner folds."""
        if not self.split.inner:
            raise InvalidParameter(
                "sizes='best' needs a plan with validation rows or inner folds, to choose the "
                "number of columns. Write Realizations(..., validation=0.25) or "
                "Realizations(..., inner=5)."
            )
        first = self.protocol.of_predictions[0]
        scores = []
        for name in self.protocol.estimators:
            curves = [self._curve(method, label, name, Split(*fold)) for fold in self.split.inner]
            means = np.mean(curves, axis=0)
            size = 1 + int(best_first(means if first.greater_is_better else -means)[0])
            columns = order[:size]
            scores += [row._replace(estimator=name) for row in self._score_columns(columns, "best")]
            scores += self._train_and_score(name, columns, "best")
        return scores

    def _curve(self, method: Any, label: str, name: str, fold: Split) -> Array:
        """Return the first metric for each number of columns, on the test rows of an inner fold."""
        order, _ = chosen_columns(self.training.fit_selection(method, label, fold.train)[0])
        if order is None:
            raise InvalidParameter("sizes='best' needs a method that ranks columns.")
        estimator, first = self.protocol.estimators[name], self.protocol.of_predictions[0]
        values = []
        for k in range(1, len(order) + 1):
            fitted, X = self.training.fit_estimator(estimator, name, fold, order[:k])
            values.append(first.value(fitted, X, self.training.rows.y[fold.test]))
        return np.array(values)

    def _train_and_score(self, name: str, columns: Subset, rule: str) -> list[Score]:
        """Return the scores of an estimator trained on the given columns."""
        if not self.protocol.reads_predictions:
            return []
        estimator = self.protocol.estimators[name]
        fitted, _ = self.training.fit_estimator(estimator, name, self.split, columns)
        return self._score(fitted, columns, name, len(columns), rule)

    def _score(
        self, fitted: Any, columns: Subset | None, name: str, size: int, rule: str
    ) -> list[Score]:
        """Return the scores of a fitted estimator, and append its losses to ``self.losses``.

        ``columns`` are those that the estimator was trained on, or None for all.
        """
        split, y = self.split, self.training.rows.y
        scaled = self.training.scale(split.train, split.test)
        train, test = scaled if columns is None else (_take(X, columns) for X in scaled)
        if self.protocol.losses:
            self.losses += pack_losses(fitted, test, y[split.test], name, size, rule)
        scores = []
        for item in self.protocol.of_predictions:
            rows = (train, y[split.train]) if item.on_training_rows else (test, y[split.test])
            scores.append(Score(name, size, rule, item.name, item.value(fitted, *rows)))
        return scores

    def _score_columns(
        self, columns: Subset, rule: str, names: tuple[str, ...] = OF_COLUMNS
    ) -> list[Score]:
        """Return the metrics that depend only on the selected columns, not on an estimator."""
        known = self.training.rows.relevant, self.training.rows.equivalent
        size = len(columns) if names == OF_COLUMNS else len(known[0] or ())
        return [
            Score("", size, rule, name, of_columns(name, columns, *known))
            for name in names
            if name in self.protocol.metrics
        ]

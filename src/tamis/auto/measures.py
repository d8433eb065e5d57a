"""Measures of held-out predictions, each for many weightings of the rows at once.

A bootstrap draw of rows is a weighting by the number of times that each row was drawn, so that one
call gives the value on all rows, in every draw, and on the rows that a draw left out.
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import get_scorer

from tamis._arrays import Array, Mask
from tamis.auto.concordance import concordances
from tamis.auto.cox import PartialLikelihood
from tamis.auto.target import Truth
from tamis.blocks.survival import SURVIVAL
from tamis.exceptions import InvalidParameter
from tamis.validation.held_out import between

#: Share of the rows below which the error rate says little of a class, so that AUC and average
#: precision are reported as well.
RARE = 0.2


class Predictions(NamedTuple):
    """Held-out predictions of one candidate.

    Attributes
    ----------
    values : array of shape (n_repeats, n_rows, n_outputs)
        NaN for rows that no test fold of a repeat holds.
    folds : array of int of shape (n_repeats, n_rows)
        Models of different folds are not on one scale: ranks are compared within a fold only.
    """

    values: NDArray[Any]
    folds: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> "Predictions":
        """Return the predictions of some rows."""
        return Predictions(self.values[:, rows], self.folds[:, rows])

    def repeats(self, weights: Array) -> Iterator[tuple[NDArray[Any], Any, NDArray[Any], Array]]:
        """Yield values, which rows are known, their folds and weights, repeat after repeat."""
        for values, folds in zip(self.values, self.folds, strict=True):
            known = folds >= 0
            yield values[known], known, folds[known], weights[:, known]


class Measure(ABC):
    """A loss of predictions: smaller is better.

    Attributes
    ----------
    name : str
        As scikit-learn calls the score.
    """

    def __init__(self, name: str):
        self.name = name

    @abstractmethod
    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        """Return the loss for each weighting, of shape (n_weightings, n_rows)."""

    def shown(self, loss: Any) -> Any:
        """Return the score that scikit-learn would print for a loss."""
        return 1 - loss


class RowMean(Measure):
    """The mean over rows of a loss of each row."""

    def __init__(self, name: str, of_rows: Callable[[Array, Truth], Array]):
        super().__init__(name)
        self._of_rows = of_rows

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        lost = np.stack([self._of_rows(values, truth) for values in predictions.values])
        known = ~np.isnan(lost)
        times = known.sum(axis=0)
        of_row = np.where(known, lost, 0.0).sum(axis=0) / np.maximum(times, 1)
        weights = weights * (times > 0)
        with np.errstate(invalid="ignore"):  # a draw may leave no row out
            return np.asarray(weights @ of_row / weights.sum(axis=1))

    def shown(self, loss: Any) -> Any:
        return loss


class RankMeasure(Measure):
    """A measure of the order of predictions within test folds, as a mean over classes."""

    def __init__(self, name: str, by_class: "Ranked", classes: tuple[int, ...]):
        super().__init__(name)
        self._by_class, self._classes = by_class, classes

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        assert truth.codes is not None
        found = []
        for values, known, *given in predictions.repeats(weights):
            for one in self._classes:
                found.append(self._by_class(values[:, one], truth.codes[known] == one, *given))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a draw without positives is NaN
            return 1 - np.nanmean(found, axis=0)

    def null_error(self, folds: NDArray[np.intp], truth: Truth) -> float:
        """Return the standard error of the AUC of a class if predictions are unrelated to it.

        A bootstrap underestimates it if the class has a few rows only, or is well separated.
        """
        positive = truth.codes == self._classes[0]
        own, others = (
            np.bincount(folds[of & (folds >= 0)], minlength=folds.max() + 1)
            for of in (positive, ~positive)
        )
        pairs = own * others
        if not pairs.any():
            return float("inf")
        return float(np.sqrt((pairs * (own + others + 1)).sum() / 12) / pairs.sum())


#: Scores, which rows are positive, folds, weightings -> a value of each weighting.
Ranked = Callable[[Array, Mask, NDArray[np.intp], Array], Array]


def area_under_curve(
    score: Array, positive: Mask, folds: NDArray[np.intp], weights: Array
) -> Array:
    """Return the share of pairs in order: positive above negative, within one fold.

    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> area_under_curve(score, positive, np.zeros(4, dtype=int), np.ones((1, 4)))
    array([0.75])
    """
    order, first, last, start = _runs(score, folds)
    positive, weights = positive[order], weights[:, order]
    own = np.flatnonzero(positive)
    below = _running(weights * ~positive)
    ahead = below[:, first[own]] - below[:, start[own]]
    tied = below[:, last[own]] - below[:, first[own]]
    begins = np.unique(start)
    pairs = [np.add.reduceat(weights * of, begins, axis=1) for of in (positive, ~positive)]
    with np.errstate(invalid="ignore"):
        found = (weights[:, own] * (ahead + tied / 2)).sum(axis=1) / (pairs[0] * pairs[1]).sum(1)
    return np.asarray(found)


def average_precision(
    score: Array, positive: Mask, folds: NDArray[np.intp], weights: Array
) -> Array:
    """Return the mean precision at the positive rows, each within its fold.

    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> average_precision(score, positive, np.zeros(4, dtype=int), np.ones((1, 4))).round(3)
    array([0.833])
    """
    order, _, last, start = _runs(-score, folds)
    positive, weights = positive[order], weights[:, order]
    own = np.flatnonzero(positive)
    hits, rows = _running(weights * positive), _running(weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = (hits[:, last[own]] - hits[:, start[own]]) / (
            rows[:, last[own]] - rows[:, start[own]]
        )
        found = np.where(weights[:, own] > 0, weights[:, own] * precision, 0.0).sum(axis=1)
        return np.asarray(found / weights[:, own].sum(axis=1))


def _runs(score: Array, folds: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
    """Order rows by fold and score; for each the ends of its run of ties, and its fold's start."""
    order = np.lexsort((score, folds))
    fold, value = folds[order], score[order]
    fresh = np.append(True, (fold[1:] != fold[:-1]) | (value[1:] != value[:-1]))
    begins = np.flatnonzero(fresh)
    run = np.cumsum(fresh) - 1
    ends = np.append(begins[1:], len(order))
    return order, begins[run], ends[run], np.searchsorted(fold, fold)


def _running(values: Array) -> Array:
    """Return sums of the entries before each position, row by row."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


class Concordance(Measure):
    """Pairs of rows of a test fold of which the one with the higher risk has the event first."""

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        assert truth.censored is not None
        found = [
            concordances(values, truth.censored[known], drawn, folds)[:, 0]
            for values, known, folds, drawn in predictions.repeats(weights)
        ]
        return 1 - np.mean(found, axis=0)


class PartialLikelihoodLoss(Measure):
    """Log partial likelihood of an event within its test fold, with the sign changed."""

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        assert truth.censored is not None
        found = np.zeros(len(weights))
        for values, folds in zip(predictions.values, predictions.folds, strict=True):
            for fold in np.unique(folds[folds >= 0]):
                rows = np.flatnonzero(folds == fold)
                y = truth.censored[rows]
                if y["event"].any():
                    order = np.argsort(y["time"], kind="stable")
                    likelihood = PartialLikelihood(y[order], weights[:, rows[order]].T)
                    found -= likelihood.value(values[rows[order]])
        events = weights @ (truth.censored["event"] * (predictions.folds >= 0).sum(axis=0))
        with np.errstate(invalid="ignore"):  # a draw may have no event
            return np.asarray(found / events)

    def shown(self, loss: Any) -> Any:
        return loss


class AnyScore(Measure):
    """Any score of scikit-learn, which is reported and does not decide."""

    def __init__(self, name: str, scorer: Any, labels: NDArray[Any] | None):
        super().__init__(name)
        self._function, self._options = scorer._score_func, scorer._kwargs
        self._response, self._labels = scorer._response_method, labels
        takes = inspect.signature(self._function).parameters
        if labels is not None and len(labels) == 2 and "pos_label" in takes:
            self._options = {"pos_label": labels[1], **self._options}
        if "sample_weight" not in takes:
            raise InvalidParameter(
                f"Auto needs a score that takes sample_weight, which {name} does not. Leave "
                "scoring out, and compute it for the selected columns yourself."
            )

    def check(self, task: str) -> None:
        """Refuse a score of another kind of target."""
        n = 3 if self._labels is None else len(self._labels)
        there: NDArray[Any] = np.array([0.25, 1.5, 0.75]) if self._labels is None else self._labels
        values = there[:, None] if self._labels is None else np.eye(n)
        given = there, self._answers(values)
        try:
            self._score(*given, np.ones(n))
        except (TypeError, ValueError) as error:
            raise InvalidParameter(
                f"Auto cannot use scoring={self.name!r} for {task}: {error}"
            ) from error

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        return np.array([self._loss(predictions, truth, of) for of in weights])

    def _loss(self, predictions: Predictions, truth: Truth, weights: Array) -> float:
        found = []
        for values, folds in zip(predictions.values, predictions.folds, strict=True):
            rows = (folds >= 0) & (weights > 0)
            given = self._there(truth, rows), self._answers(values[rows]), weights[rows]
            try:
                found.append(self._score(*given))
            except ValueError:  # undefined in a draw without a class
                found.append(float("nan"))
        return 1 - float(np.mean(found))

    def _score(self, there: NDArray[Any], answers: NDArray[Any], weights: Array) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(self._function(there, answers, sample_weight=weights, **self._options))

    def _there(self, truth: Truth, rows: Mask) -> NDArray[Any]:
        if self._labels is None or truth.codes is None:
            return np.asarray(truth.values[rows, 0])
        return np.asarray(self._labels[truth.codes[rows]])

    def _answers(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._labels is None:
            return values[:, 0]
        if self._response == "predict":
            return np.asarray(self._labels[values.argmax(axis=1)])
        return values[:, 1] if values.shape[1] == 2 else values


# -- which measures there are ---------------------------------------------------------------------


def _squared(values: Array, truth: Truth) -> Array:
    return between(values, truth.values)


def _absolute(values: Array, truth: Truth) -> Array:
    return np.abs(values[:, 0] - truth.values[:, 0])


def _wrong(values: Array, truth: Truth) -> Array:
    known = ~np.isnan(values[:, 0])
    return np.where(known, values.argmax(axis=1) != truth.codes, np.nan)


def _log_loss(values: Array, truth: Truth) -> Array:
    # a forest is sure of what none of its trees contradicts: half a row of all may still differ
    least = 0.5 / len(values)
    return -np.log(np.clip((values * truth.values).sum(axis=1), least, 1 - least))


SQUARED = RowMean("squared loss", _squared)
WRONG = RowMean("error", _wrong)
CONCORDANCE = Concordance("concordance")
PARTIAL = PartialLikelihoodLoss("partial likelihood")
#: Scores that are means over rows, and decide.
BY_ROWS = {
    "classification": {"neg_brier_score": SQUARED, "neg_log_loss": RowMean("log_loss", _log_loss)},
    "regression": {
        "r2": SQUARED,
        "neg_mean_squared_error": SQUARED,
        "neg_root_mean_squared_error": SQUARED,
        "neg_mean_absolute_error": RowMean("mean_absolute_error", _absolute),
    },
}
#: Scores by ranks, which decide; with several classes each against the rest.
BY_RANKS: dict[str, tuple[Ranked, bool]] = {
    "roc_auc": (area_under_curve, False),
    "roc_auc_ovr": (area_under_curve, True),
    "average_precision": (average_precision, False),
}


class Measures(NamedTuple):
    """Measures of a fit.

    Attributes
    ----------
    decides : Measure
        Selects the list.
    reported : tuple of Measure
        Reported besides it.
    tests : Measure
        Tests whether any list beats the baseline. It is a loss that noise makes worse: by a rank
        measure such as AUC, a model of noise is as good as the baseline on average, and the best
        of many such models often passes for a discovery.
    rare_auc : RankMeasure or None
        AUC of the rarer of two classes, if it is rare.
    """

    decides: Measure
    reported: tuple[Measure, ...] = ()
    tests: Measure = SQUARED
    rare_auc: RankMeasure | None = None


def measures_of(scoring: Any, task: str, labels: NDArray[Any] | None, counts: Any) -> Measures:
    """Return the measures for a target.

    Parameters
    ----------
    scoring : str, scorer or None
    task : {"classification", "regression", "survival"}
    labels : array or None
        The classes.
    counts : array or None
        Weight of each class: AUC and average precision are reported if one is rare.
    """
    if task == SURVIVAL:
        if scoring not in (None, "concordance"):
            raise InvalidParameter(
                f"Auto measures a censored target by its concordance, not by {scoring!r}. Leave "
                "scoring out."
            )
        return Measures(PARTIAL if scoring is None else CONCORDANCE, (CONCORDANCE,), PARTIAL)
    rare = _rare_measures(labels, counts) if task == "classification" else ()
    rare_auc = next((one for one in rare if one.name == "roc_auc"), None)
    if scoring is None:
        return Measures(SQUARED, rare, SQUARED, rare_auc)
    if scoring in BY_ROWS[task]:
        by_rows = BY_ROWS[task][scoring]
        return Measures(by_rows, rare, by_rows, rare_auc)
    if scoring in BY_RANKS and task == "classification":
        by_class, several = BY_RANKS[scoring]
        assert labels is not None
        if len(labels) > 2 and not several:
            raise InvalidParameter(
                f"Auto needs two classes for scoring={scoring!r}, got {len(labels)}. Write "
                "scoring='roc_auc_ovr' or 'neg_log_loss'."
            )
        classes = (1,) if len(labels) == 2 else tuple(range(len(labels)))
        by_ranks = RankMeasure(scoring, by_class, classes)
        others = tuple(one for one in rare if one.name != scoring)
        return Measures(by_ranks, others, SQUARED, rare_auc)
    other = _any_score(scoring, task, labels)
    other.check(task)
    return Measures(SQUARED, (*rare, other), SQUARED, rare_auc)


def _rare_measures(labels: Any, counts: Any) -> tuple[RankMeasure, ...]:
    """AUC and average precision of the rarest class; with several a mean over them."""
    if len(labels) < 2 or min(counts) >= RARE * sum(counts):
        return ()
    if len(labels) > 2:
        every = tuple(range(len(labels)))
        return (RankMeasure("roc_auc_ovr", area_under_curve, every),)
    rarest = (int(np.argmin(counts)),)
    return (
        RankMeasure("roc_auc", area_under_curve, rarest),
        RankMeasure("average_precision", average_precision, rarest),
    )


def _any_score(scoring: Any, task: str, labels: NDArray[Any] | None) -> AnyScore:
    if isinstance(scoring, str):
        try:
            scorer = get_scorer(scoring)
        except ValueError as error:
            raise InvalidParameter(
                f"Auto needs scoring as a score of scikit-learn such as 'roc_auc', "
                f"'average_precision', 'neg_log_loss', 'r2' or 'f1', not {scoring!r}."
            ) from error
        name = scoring.removeprefix("neg_")
    else:
        scorer, name = scoring, getattr(getattr(scoring, "_score_func", None), "__name__", "")
    if not hasattr(scorer, "_score_func"):
        raise InvalidParameter(
            "Auto needs scoring as the name of a score or made by sklearn.metrics.make_scorer, not "
            f"{scoring!r}."
        )
    return AnyScore(name, scorer, labels if task == "classification" else None)


def check_scoring(scoring: Any) -> None:
    """Refuse what is not a score, before any work."""
    known = {*BY_RANKS, *BY_ROWS["classification"], *BY_ROWS["regression"], "concordance", None}
    if not (isinstance(scoring, str | None) and scoring in known):
        _any_score(scoring, "regression", None)

"""Measures of held-out predictions, computed for many weightings of the rows at once.

A bootstrap draw weights each row by the number of times that it was drawn. A single call
therefore returns the value on all rows, on every draw, and on the rows outside every draw.
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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

#: A class with a smaller share of the rows than this is called rare. A rare class hardly affects
#: the error rate, so AUC and average precision are reported as well.
RARE = 0.2


class Predictions(NamedTuple):
    """Held-out predictions of a single candidate.

    Attributes
    ----------
    values : array of shape (n_repeats, n_rows, n_outputs)
        Predictions in each repeat. NaN for rows that are in no test fold of the repeat.
    folds : array of int of shape (n_repeats, n_rows)
        Test fold of each row, or -1. Predictions from different folds are on different scales, so
        their ranks are compared only within a fold.
    """

    values: NDArray[Any]
    folds: NDArray[np.intp]

    def take(self, rows: NDArray[np.intp]) -> "Predictions":
        """Return the predictions for the given rows."""
        return Predictions(self.values[:, rows], self.folds[:, rows])

    def repeats(self, weights: Array) -> Iterator[tuple[NDArray[Any], Any, NDArray[Any], Array]]:
        """Yield the predictions of each repeat.

        An item holds the values, a mask of the held-out rows, and the folds and weights of these
        rows.
        """
        for values, folds in zip(self.values, self.folds, strict=True):
            known = folds >= 0
            yield values[known], known, folds[known], weights[:, known]


@dataclass(eq=False)
class Measure(ABC):
    """A loss of predictions. Lower is better. ``name`` is the name of the score in scikit-learn."""

    name: str

    @abstractmethod
    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        """Return the loss for each row of ``weights``, of shape (n_weightings, n_rows)."""

    def shown(self, loss: Any) -> Any:
        """Return the scikit-learn score that corresponds to a loss."""
        return 1 - loss


@dataclass(eq=False)
class RowMean(Measure):
    """Weighted mean of a loss that is computed for each row separately."""

    of_rows: Callable[[Array, Truth], Array]

    def row_losses(self, predictions: Predictions, truth: Truth) -> Array:
        """Return the loss of each row, averaged over the repeats in which it is held out."""
        losses = np.stack([self.of_rows(values, truth) for values in predictions.values])
        known = ~np.isnan(losses)
        sums = np.where(known, losses, 0.0).sum(axis=0)
        return np.asarray(sums / np.maximum(known.sum(axis=0), 1))

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        weights = weights * (predictions.folds >= 0).any(axis=0)
        with np.errstate(invalid="ignore"):  # a bootstrap draw may contain every row
            found = weights @ self.row_losses(predictions, truth)
            return np.asarray(found / weights.sum(axis=1))

    def shown(self, loss: Any) -> Any:
        return loss


@dataclass(eq=False)
class RankMeasure(Measure):
    """A measure of how predictions are ordered within test folds, averaged over the classes."""

    by_class: "Ranked"
    classes: tuple[int, ...]

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        assert truth.codes is not None
        found = []
        for values, known, *given in predictions.repeats(weights):
            for one in self.classes:
                found.append(self.by_class(values[:, one], truth.codes[known] == one, *given))
        # the mean is NaN if a draw has no positives
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            return 1 - np.nanmean(found, axis=0)

    def null_error(self, folds: NDArray[np.intp], truth: Truth) -> float:
        """Return the standard error of an AUC under the null hypothesis of random predictions.

        The bootstrap underestimates this error if the class has few rows or is well separated.
        """
        positive = truth.codes == self.classes[0]
        own, others = (
            np.bincount(folds[of & (folds >= 0)], minlength=folds.max() + 1)
            for of in (positive, ~positive)
        )
        pairs = own * others
        if not pairs.any():
            return float("inf")
        return float(np.sqrt((pairs * (own + others + 1)).sum() / 12) / pairs.sum())


#: Function of scores, a mask of positive rows, folds and weightings that returns one value per
#: weighting.
Ranked = Callable[[Array, Mask, NDArray[np.intp], Array], Array]


def area_under_curve(
    score: Array, positive: Mask, folds: NDArray[np.intp], weights: Array
) -> Array:
    """Return the area under the ROC curve, computed within folds.

    It is the share of pairs of a positive and a negative row in which the positive row has the
    higher score. A tied pair adds one half.

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
    """Return the average precision within folds: the mean precision at the positive rows.

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
    """Sort rows by fold and score. Return the order, and three positions for each row.

    The positions are the start and the end of the run of tied rows that contains the row, and the
    start of the row's fold.
    """
    order = np.lexsort((score, folds))
    fold, value = folds[order], score[order]
    fresh = np.append(True, (fold[1:] != fold[:-1]) | (value[1:] != value[:-1]))
    begins = np.flatnonzero(fresh)
    run = np.cumsum(fresh) - 1
    ends = np.append(begins[1:], len(order))
    return order, begins[run], ends[run], np.searchsorted(fold, fold)


def _running(values: Array) -> Array:
    """Return the cumulative sums of each row, starting with 0."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


class Concordance(Measure):
    """One minus the concordance, computed within test folds."""

    def losses(self, predictions: Predictions, truth: Truth, weights: Array) -> Array:
        assert truth.censored is not None
        found = [
            concordances(values, truth.censored[known], drawn, folds)[:, 0]
            for values, known, folds, drawn in predictions.repeats(weights)
        ]
        return 1 - np.mean(found, axis=0)


class PartialLikelihoodLoss(Measure):
    """Negative log partial likelihood per event, computed within test folds."""

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
    """Any other scikit-learn score. It is reported, but does not select the candidate."""

    def __init__(self, name: str, scorer: Any, labels: NDArray[Any] | None):
        super().__init__(name)
        self._function, self._options = scorer._score_func, scorer._kwargs
        self._response, self._labels = scorer._response_method, labels
        takes = inspect.signature(self._function).parameters
        if labels is not None and len(labels) == 2 and "pos_label" in takes:
            self._options = {"pos_label": labels[1], **self._options}
        if "sample_weight" not in takes:
            raise InvalidParameter(
                f"Auto needs a score that takes sample_weight, and {name} does not. Leave scoring "
                "out, and compute the score for the selected columns yourself."
            )

    def check(self, task: str) -> None:
        """Raise an error if the score does not suit this kind of target."""
        if self._labels is None:
            target: NDArray[Any] = np.array([0.25, 1.5, 0.75])
            values = target[:, None]
        else:
            target, values = self._labels, np.eye(len(self._labels))
        try:
            self._score(target, self._predictions(values), np.ones(len(target)))
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
            given = self._target(truth, rows), self._predictions(values[rows]), weights[rows]
            try:
                found.append(self._score(*given))
            except ValueError:  # undefined if a draw lacks a class
                found.append(float("nan"))
        return 1 - float(np.mean(found))

    def _score(self, target: NDArray[Any], predicted: NDArray[Any], weights: Array) -> float:
        with warnings.catch_warnings(action="ignore"):
            return float(self._function(target, predicted, sample_weight=weights, **self._options))

    def _target(self, truth: Truth, rows: Mask) -> NDArray[Any]:
        if self._labels is None or truth.codes is None:
            return np.asarray(truth.values[rows, 0])
        return np.asarray(self._labels[truth.codes[rows]])

    def _predictions(self, values: NDArray[Any]) -> NDArray[Any]:
        if self._labels is None:
            return values[:, 0]
        if self._response == "predict":
            return np.asarray(self._labels[values.argmax(axis=1)])
        return values[:, 1] if values.shape[1] == 2 else values


# -- the measures ---------------------------------------------------------------------------------


def _squared(values: Array, truth: Truth) -> Array:
    return between(values, truth.values)


def _absolute(values: Array, truth: Truth) -> Array:
    return np.abs(values[:, 0] - truth.values[:, 0])


def _wrong(values: Array, truth: Truth) -> Array:
    known = ~np.isnan(values[:, 0])
    return np.where(known, values.argmax(axis=1) != truth.codes, np.nan)


def _log_loss(values: Array, truth: Truth) -> Array:
    # a forest may predict a probability of 0, whose logarithm is infinite
    least = 0.5 / len(values)
    return -np.log(np.clip((values * truth.values).sum(axis=1), least, 1 - least))


SQUARED = RowMean("squared loss", _squared)
WRONG = RowMean("error", _wrong)
CONCORDANCE = Concordance("concordance")
PARTIAL = PartialLikelihoodLoss("partial likelihood")
#: Scores that can select the candidate and are means over rows.
BY_ROWS = {
    "classification": {"neg_brier_score": SQUARED, "neg_log_loss": RowMean("log_loss", _log_loss)},
    "regression": {
        "r2": SQUARED,
        "neg_mean_squared_error": SQUARED,
        "neg_root_mean_squared_error": SQUARED,
        "neg_mean_absolute_error": RowMean("mean_absolute_error", _absolute),
    },
}
#: Scores that can select the candidate and depend on ranks. Each entry holds the function, and
#: whether the function supports more than two classes.
BY_RANKS: dict[str, tuple[Ranked, bool]] = {
    "roc_auc": (area_under_curve, False),
    "roc_auc_ovr": (area_under_curve, True),
    "average_precision": (average_precision, False),
}


class Measures(NamedTuple):
    """The measures that a fit of Auto uses.

    Attributes
    ----------
    decides : Measure
        Measure by which the candidate is selected.
    reported : tuple of Measure
        Further measures to report.
    tests : Measure
        Measure used to test whether the selection beats the baseline. It is never a rank measure
        such as AUC. A model trained on noise has an AUC of 0.5 on average, like the baseline, so
        the best of many models trained on noise would often seem significant.
    rare_auc : RankMeasure or None
        AUC of the rarer of two classes, or None if no class is rare.
    """

    decides: Measure
    reported: tuple[Measure, ...] = ()
    tests: Measure = SQUARED
    rare_auc: RankMeasure | None = None


def measures_of(scoring: Any, task: str, labels: NDArray[Any] | None, counts: Any) -> Measures:
    """Return the measures for a kind of target.

    Parameters
    ----------
    scoring : str, scorer or None
    task : {"classification", "regression", "survival"}
    labels : array or None
        Labels of the classes.
    counts : array or None
        Weight of each class. AUC and average precision are also reported if a class is rare.
    """
    if task == SURVIVAL:
        if scoring not in (None, "concordance"):
            raise InvalidParameter(
                f"Auto needs scoring=None or 'concordance' for a censored target, got {scoring!r}. "
                "Leave scoring out."
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
    """Return the measures to report if a class is rare, or none if no class is rare.

    For two classes, they are the AUC and the average precision of the rarer class. For more
    classes, only the mean AUC over the classes is returned.
    """
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
    """Raise an error if ``scoring`` is not a score of scikit-learn."""
    known = {*BY_RANKS, *BY_ROWS["classification"], *BY_ROWS["regression"], "concordance", None}
    if not (isinstance(scoring, str | None) and scoring in known):
        _any_score(scoring, "regression", None)

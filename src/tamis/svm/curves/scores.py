"""Scores and losses, computed from the number of correct predictions in each class."""

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.metrics import get_scorer_names

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter

#: Function that computes a score. Its two arguments are the number of correct predictions and the
#: number of samples, both as arrays with a row per class.
Score = Callable[[Array, Array], Array]


def _ratio(a: Array, b: Array) -> Array:
    """Return ``a / b``, or 0 if b = 0, as in scikit-learn."""
    b = np.broadcast_to(np.asarray(b, float), np.shape(a))
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b != 0)


def _error(right: Array, total: Array) -> Array:
    return (total - right).sum(axis=0) / total.sum(axis=0)


def _class_mean(part: Array, total: Array) -> Array:
    """Return ``part / total``, averaged over the classes that have samples."""
    seen = total[:, 0] > 0
    return (part[seen] / total[seen]).mean(axis=0)


def _weighted_error(right: Array, total: Array, eta: float = 1.0) -> Array:
    wrong = total - right
    return (wrong[1] + eta * wrong[0]) / (total[1] + eta * total[0])


def _mcc(right: Array, total: Array) -> Array:
    tn, tp = right
    fp, fn = total[0] - tn, total[1] - tp
    scale = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, scale)


LOSSES: dict[str | None, Score] = {
    None: _error,
    "error": _error,
    "balanced_error": lambda right, total: _class_mean(total - right, total),
    "weighted_error": _weighted_error,
}
SCORES: dict[str, Score] = {
    # the same divisions as in scikit-learn, so that the last digit is equal
    "accuracy": lambda right, total: right.sum(axis=0) / total.sum(axis=0),
    "balanced_accuracy": _class_mean,
    "precision": lambda right, total: _ratio(right[1], right[1] + total[0] - right[0]),
    "recall": lambda right, total: _ratio(right[1], total[1]),
    "f1": lambda right, total: _ratio(2 * right[1], right[1] + total[0] - right[0] + total[1]),
    "matthews_corrcoef": _mcc,
}
TWO_CLASSES = ("precision", "recall", "f1", "matthews_corrcoef", "roc_auc", "weighted_error")
#: Names of scores in messages, if they differ from the value of ``scoring``.
WORDS = {None: "error", "roc_auc": "area under the ROC curve", "f1": "F1"}


def check_scoring(name: str, scoring: object, n_classes: int) -> None:
    """Refuse a score that is unknown or not defined for this number of classes."""
    known = [*SCORES, "roc_auc", "error", "balanced_error", "weighted_error"]
    score, weight = (scoring, 1.0) if isinstance(scoring, str) else _weighted(scoring)
    if scoring is None:
        return
    if isinstance(score, str) and score not in known and score in get_scorer_names():
        raise InvalidParameter(
            f"{name} does not support scoring={score!r}. Use one of {', '.join(known)}. To use "
            f"{score!r}, search values of C around best_C_ with GridSearchCV(SVC(), ..., "
            f"scoring={score!r})."
        )
    if score not in known or not weight > 0:
        raise InvalidParameter(
            f"{name} needs a scoring among {', '.join(known)}; got {scoring!r}. Pass the weight "
            'of the negative class together with the name: scoring=("weighted_error", 0.2).'
        )
    if n_classes > 2 and score in TWO_CLASSES:
        raise InvalidParameter(
            f'{name} defines {score} for two classes; y has {n_classes}. Use scoring="accuracy" or '
            '"balanced_accuracy".'
        )


def words_of(scoring: object) -> str:
    """Return the name that messages use for a score."""
    if not isinstance(scoring, str | None):
        return "weighted error"
    return WORDS.get(scoring, str(scoring).replace("_", " "))


def _weighted(scoring: object) -> tuple[object, float]:
    if isinstance(scoring, tuple | list) and len(scoring) == 2 and scoring[0] == "weighted_error":
        return scoring[0], scoring[1] if isinstance(scoring[1], int | float) else 0.0
    return None, 0.0


def scorer(scoring: object) -> tuple[Score, bool]:
    """Return the function that computes a score, and whether greater values are better.

    The arguments of the function are the number of correct predictions and the number of samples,
    both as arrays with a row per class.

    >>> score, greater_is_better = scorer("f1")
    >>> score(np.array([[8.0], [3.0]]), np.array([[10.0], [4.0]])), greater_is_better
    (array([0.66666667]), True)
    """
    if isinstance(scoring, str) and scoring in SCORES:
        return SCORES[scoring], True
    if scoring == "roc_auc":  # the arrays have a single row, and count pairs instead of samples
        return lambda right, total: right[0] / total[0], True
    if isinstance(scoring, str | None):
        return LOSSES[scoring], False
    return partial(_weighted_error, eta=_weighted(scoring)[1]), False


def graded(scoring: object) -> tuple[Score, float]:
    """Return the function that computes ``best_score_``, and its sign: -1 for a loss, else 1.

    If ``scoring`` is None, the curve shows the error, but ``best_score_`` is the accuracy.
    """
    if scoring is None:
        return SCORES["accuracy"], 1.0
    function, greater_is_better = scorer(scoring)
    return function, 1.0 if greater_is_better else -1.0

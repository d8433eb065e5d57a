"""Validation functions of the numbers of correct predictions per class."""

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.metrics import get_scorer_names

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter

#: A function of correct predictions and all samples, each of shape (n_classes, n_pieces).
Score = Callable[[Array, Array], Array]


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, and 0 where b = 0, as scikit-learn has it."""
    b = np.broadcast_to(np.asarray(b, float), np.shape(a))
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b != 0)


def _error(right: Array, total: Array) -> Array:
    return (total - right).sum(axis=0) / total.sum(axis=0)


def _class_mean(part: Array, total: Array) -> Array:
    """Mean share over the classes that are there."""
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
    # the divisions of scikit-learn, so that the last digit is the same
    "accuracy": lambda right, total: right.sum(axis=0) / total.sum(axis=0),
    "balanced_accuracy": _class_mean,
    "precision": lambda right, total: _ratio(right[1], right[1] + total[0] - right[0]),
    "recall": lambda right, total: _ratio(right[1], total[1]),
    "f1": lambda right, total: _ratio(2 * right[1], right[1] + total[0] - right[0] + total[1]),
    "matthews_corrcoef": _mcc,
}
TWO_CLASSES = ("precision", "recall", "f1", "matthews_corrcoef", "roc_auc", "weighted_error")
#: What values are called in sentences, where not by their name.
WORDS = {None: "error", "roc_auc": "area under the ROC curve", "f1": "F1"}


def check_scoring(name: str, scoring: object, n_classes: int) -> None:
    """Refuse a validation function that is unknown or not defined for so many classes."""
    known = [*SCORES, "roc_auc", "error", "balanced_error", "weighted_error"]
    asked, weight = (scoring, 1.0) if isinstance(scoring, str) else _weighted(scoring)
    if scoring is None:
        return
    if isinstance(asked, str) and asked not in known and asked in get_scorer_names():
        raise InvalidParameter(
            f"{name} follows scores that change in steps along C; {asked!r} does not, or is for "
            f"other targets. Write scoring= one of {', '.join(known)}, or look around best_C_ with "
            f"GridSearchCV(SVC(), ..., scoring={asked!r})."
        )
    if asked not in known or not weight > 0:
        raise InvalidParameter(
            f"{name} needs a scoring among {', '.join(known)}; got {scoring!r}. The weight of the "
            'negative class goes with the name: scoring=("weighted_error", 0.2).'
        )
    if n_classes > 2 and asked in TWO_CLASSES:
        raise InvalidParameter(
            f'{name} defines {asked} for two classes; y has {n_classes}. Use scoring="accuracy" or '
            '"balanced_accuracy".'
        )


def words_of(scoring: object) -> str:
    """What a value of this scoring is called."""
    if not isinstance(scoring, str | None):
        return "weighted error"
    return WORDS.get(scoring, str(scoring).replace("_", " "))


def _weighted(scoring: object) -> tuple[object, float]:
    if isinstance(scoring, tuple | list) and len(scoring) == 2 and scoring[0] == "weighted_error":
        return scoring[0], scoring[1] if isinstance(scoring[1], int | float) else 0.0
    return None, 0.0


def scorer(scoring: object) -> tuple[Score, bool]:
    """The function of (correct, total) per class and whether greater is better.

    >>> score, greater_is_better = scorer("f1")
    >>> score(np.array([[8.0], [3.0]]), np.array([[10.0], [4.0]])), greater_is_better
    (array([0.66666667]), True)
    """
    if isinstance(scoring, str) and scoring in SCORES:
        return SCORES[scoring], True
    if scoring == "roc_auc":  # one "class": pairs in the right order
        return lambda right, total: right[0] / total[0], True
    if isinstance(scoring, str | None):
        return LOSSES[scoring], False
    return partial(_weighted_error, eta=_weighted(scoring)[1]), False


def graded(scoring: object) -> tuple[Score, float]:
    """The function of (correct, total) that ``best_score_`` is, and the sign that makes it a score.

    Without a scoring the curve is of errors and the score is the accuracy, as scikit-learn's.
    """
    if scoring is None:
        return SCORES["accuracy"], 1.0
    function, greater_is_better = scorer(scoring)
    return function, 1.0 if greater_is_better else -1.0

"""Validation functions of the numbers of correct predictions per class."""

from collections.abc import Callable

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter


def _ratio(a: Array, b: Array, otherwise: float = 0.0) -> Array:
    """``a / b``, and what scikit-learn answers where b = 0."""
    b = np.broadcast_to(np.asarray(b, float), np.shape(a))
    return np.divide(a, b, out=np.full(np.shape(a), otherwise), where=b != 0)


def _error(right: Array, total: Array) -> Array:
    return (total - right).sum(axis=0) / total.sum(axis=0)


def _balanced_error(right: Array, total: Array) -> Array:
    seen = total[:, 0] > 0
    return ((total - right)[seen] / total[seen]).mean(axis=0)


def _precision(right: Array, total: Array) -> Array:
    return _ratio(right[1], right[1] + total[0] - right[0])


def _recall(right: Array, total: Array) -> Array:
    return _ratio(right[1], total[1])


def _f1(right: Array, total: Array) -> Array:
    return _ratio(2 * right[1], right[1] + total[0] - right[0] + total[1])


def _mcc(right: Array, total: Array) -> Array:
    tn, tp = right
    fp, fn = total[0] - tn, total[1] - tp
    scale = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, scale)


LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "error": _error,
    "balanced_error": _balanced_error,
}
SCORES: dict[str, Callable[[Array, Array], Array]] = {
    "accuracy": lambda right, total: 1 - _error(right, total),
    "balanced_accuracy": lambda right, total: 1 - _balanced_error(right, total),
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "matthews_corrcoef": _mcc,
}
TWO_CLASSES = ("precision", "recall", "f1", "matthews_corrcoef", "roc_auc", "weighted_error")


def check_scoring(name: str, scoring: object, n_classes: int) -> None:
    """Refuse a validation function that is unknown or not defined for so many classes."""
    known = [*LOSSES, "weighted_error", *SCORES, "roc_auc"]
    asked, weight = (scoring, 1.0) if isinstance(scoring, str) else _weighted(scoring)
    if asked not in known or not weight > 0:
        raise InvalidParameter(
            f"{name} needs a scoring among {', '.join(known)}; got {scoring!r}. The weight of the "
            'negative class goes with the name: scoring=("weighted_error", 0.2).'
        )
    if n_classes > 2 and asked in TWO_CLASSES:
        raise InvalidParameter(
            f'{name} defines {asked} for two classes; y has {n_classes}. Use scoring="error" or '
            '"balanced_error".'
        )


def _weighted(scoring: object) -> tuple[object, float]:
    if isinstance(scoring, tuple | list) and len(scoring) == 2 and scoring[0] == "weighted_error":
        return scoring[0], scoring[1] if isinstance(scoring[1], int | float) else 0.0
    return None, 0.0


def scorer(scoring: object) -> tuple[Callable[[Array, Array], Array], bool]:
    """The function of (correct, total) per class and whether greater is better.

    >>> score, greater_is_better = scorer("f1")
    >>> score(np.array([[8.0], [3.0]]), np.array([[10.0], [4.0]])), greater_is_better
    (array([0.66666667]), True)
    """
    if isinstance(scoring, str) and scoring in SCORES:
        return SCORES[scoring], True
    if isinstance(scoring, str) and scoring in LOSSES:
        return LOSSES[scoring], False
    if scoring == "roc_auc":  # one "class": pairs in the right order
        return lambda right, total: right[0] / total[0], True
    eta = 1.0 if isinstance(scoring, str) else _weighted(scoring)[1]

    def weighted(right: Array, total: Array) -> Array:
        wrong = total - right
        return (wrong[1] + eta * wrong[0]) / (total[1] + eta * total[0])

    return weighted, False

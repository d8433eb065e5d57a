"""Losses of a fitted model, row by row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from tamis._arrays import Array


def squared_losses(model: Any, X: Any, y: NDArray[Any], *, margins: bool = False) -> Array:
    """Squared loss of every row: of numbers, or of the probabilities of classes (Brier's score).

    For classes it is the sum over them of (probability - 1 for the true one, 0 for the others)².

    Parameters
    ----------
    model : fitted estimator
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Classes may be among them that the model never saw.
    margins : bool, default=False
        Whether decision values stand in for probabilities that a classifier does not give, see
        :func:`probabilities`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0], [0], [0], [0]], ["a", "a", "a", "b"])
    >>> squared_losses(model, [[0], [0]], np.array(["a", "b"]))
    array([0.125, 1.125])
    """
    if not is_classifier(model):
        answers = np.asarray(model.predict(X), dtype=float)
        return between(answers, np.asarray(y, dtype=float))
    labels, answers = probabilities(model, X, margins=margins)
    everything = np.union1d(labels, y)  # a class that is in neither adds nothing to any loss
    shares = np.zeros((len(answers), len(everything)))
    shares[:, np.searchsorted(everything, labels)] = answers
    return between(shares, np.asarray(y)[:, None] == everything)


def between(answers: Array, truth: NDArray[Any]) -> Array:
    """Sum of squares between what is answered and what is right, row by row."""
    n = len(truth)
    with np.errstate(over="ignore"):  # infinity is a loss
        squares: Array = (answers.reshape(n, -1) - truth.reshape(n, -1)) ** 2
    found: Array = squares.sum(axis=1)
    return found


def probabilities(model: Any, X: Any, *, margins: bool = False) -> tuple[NDArray[Any], Array]:
    """Labels of a fitted classifier, and what it gives each of them for every row.

    Where it gives no probabilities, the class that it answers has all; with ``margins`` its
    decision values stand for log-odds instead, where there is one for each class, or one for two.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> model = SVC(kernel="linear").fit([[-1.0], [1.0]], ["a", "b"])
    >>> probabilities(model, [[-1.0], [0.5]])[1]
    array([[1., 0.],
           [0., 1.]])
    >>> probabilities(model, [[-1.0], [0.5]], margins=True)[1].round(2)
    array([[0.73, 0.27],
           [0.38, 0.62]])
    """
    if hasattr(model, "predict_proba"):
        return np.asarray(model.classes_), np.asarray(model.predict_proba(X), dtype=float)
    if margins and hasattr(model, "decision_function"):
        labels, values = np.asarray(model.classes_), np.asarray(model.decision_function(X))
        if values.ndim == 1:
            return labels, np.column_stack([expit(-values), expit(values)])
        if values.shape[1] == len(labels):
            return labels, softmax(values, axis=1)
    said = np.asarray(model.predict(X))
    labels = np.unique(said)
    return labels, (said[:, None] == labels).astype(float)


def missed(model: Any, X: Any, y: NDArray[Any]) -> Array:
    """1 for every row whose class is not answered, 0 for the others."""
    return (np.asarray(model.predict(X)) != np.asarray(y)).astype(float)

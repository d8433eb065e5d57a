"""Losses of held-out rows, and of any rows of a fitted model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from tamis._arrays import Array, Subset, class_codes, scaled_columns
from tamis.exceptions import InvalidParameter, InvalidScore, InvalidTarget


def check_predicts(name: str, estimator: Any, y: NDArray[Any], task: str) -> None:
    """Refuse an estimator, or a target, of which :func:`held_out_losses` can make nothing.

    Parameters
    ----------
    name : str
        Who asks, for the sentence of an error.
    estimator : estimator or None
    y : array of shape (n_samples,)
    task : {"classification", "regression"}
    """
    if task == "regression" and not np.issubdtype(y.dtype, np.number):
        raise InvalidTarget(
            f"{name} is to predict numbers, but y holds labels such as {str(y.flat[0])!r}. Write "
            "task='classification', or convert y with y.astype(float)."
        )
    if estimator is None:
        return
    if isinstance(estimator, type) or not all(
        hasattr(estimator, method) for method in ("fit", "predict", "get_params")
    ):
        raise InvalidParameter(
            f"{name} needs an estimator that predicts (with fit, predict and get_params), not "
            f"{estimator!r}. Write for example {name}(..., estimator=Ridge())."
        )
    if task == "regression" and is_classifier(estimator):
        raise InvalidTarget(
            f"{name} is to predict numbers such as {y.flat[0]}, and {type(estimator).__name__} "
            "tells classes apart. Give an estimator of numbers, or cut y into classes."
        )


def weights_name(estimator: Any) -> str | None:
    """What ``fit`` of an estimator calls the weights of rows; None where it takes none.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> weights_name(make_pipeline(Ridge())), weights_name(KNeighborsClassifier())
    ('ridge__sample_weight', None)
    """
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = weights_name(last)
        return None if inner is None else f"{step}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def right_answers(y: NDArray[Any], task: str) -> Array:
    """What is to be answered: an indicator of each class, or the numbers themselves.

    >>> right_answers(np.array(["b", "a", "b"]), "classification")
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    if task == "regression":
        return np.asarray(y, dtype=float).reshape(len(y), -1)
    labels, codes = class_codes(y)
    found: Array = np.eye(len(labels))[codes]
    return found


def held_out_losses(
    estimator: Any,
    X: Array,
    y: NDArray[Any],
    train: Subset,
    test: Subset,
    task: str,
    weights: Array | None = None,
) -> Array:
    """Squared loss of every test row of a clone trained on the training rows.

    Columns are scaled by the training rows. Of classes it is the loss of their probabilities, see
    :func:`squared_losses`; one that only regresses is trained on the indicators of the classes, of
    one after the other where it answers with one number.
    Without any column the shares of the classes are answered, or the mean.

    Parameters
    ----------
    estimator : estimator or None
        None is a ridge regression.
    X : array of shape (n_samples, n_columns)
        The columns that are to be used, perhaps none.
    y : array of shape (n_samples,)
    train, test : array of int
    task : {"classification", "regression"}
    weights : array of shape (n_samples,) or None, default=None
        Weights of the rows in training, for an estimator that takes them.

    Returns
    -------
    losses : array of float
        One for each of ``test``.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 4.0])
    >>> held_out_losses(None, X[:, :0], y, np.arange(3), np.array([3]), "regression")
    array([9.])
    """
    truth = right_answers(y, task)
    if not X.shape[1]:
        return between(np.broadcast_to(truth[train].mean(axis=0), truth[test].shape), truth[test])
    known, scale = scaled_columns(X[train], "K")
    model = Ridge() if estimator is None else clone(estimator)
    name = type(model).__name__
    given = {} if weights is None else {str(weights_name(model)): weights[train]}
    if is_classifier(model):
        losses = squared_losses(model.fit(known, y[train], **given), scale(X[test]), y[test])
    else:
        several = truth.shape[1] > 1
        if several and not get_tags(model).target_tags.multi_output:
            model = MultiOutputRegressor(model)
        # a single column of answers is a vector to most estimators
        model.fit(known, truth[train] if several else truth[train, 0], **given)
        losses = squared_losses(model, scale(X[test]), truth[test])
    if not np.isfinite(losses).all():
        raise InvalidScore(
            f"{name}, trained on {X.shape[1]} column(s), answers for rows left out what has no "
            "squared loss: NaN, or a number too large. Give another estimator, or the target in "
            "other units."
        )
    return losses


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

"""Losses of rows that took no part in training."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge

from tamis._arrays import Array, Subset, class_codes, scaled_columns
from tamis.folds.losses import between, missed, squared_losses

__all__ = ["held_out_losses", "missed", "right_answers", "squared_losses"]


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
    estimator: Any, X: Array, y: NDArray[Any], train: Subset, test: Subset, task: str
) -> Array:
    """Squared loss of every test row of a clone trained on the training rows.

    Columns are scaled by the training rows. Of classes it is the loss of their probabilities, see
    :func:`squared_losses`; one that only regresses is trained on the indicators of the classes.
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
    if is_classifier(model):
        return squared_losses(model.fit(known, y[train]), scale(X[test]), y[test])
    # a single column of answers is a vector to most estimators
    model.fit(known, truth[train] if truth.shape[1] > 1 else truth[train, 0])
    return squared_losses(model, scale(X[test]), truth[test])

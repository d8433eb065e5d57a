"""Squared losses of a model that is trained on some rows and evaluated on held-out rows."""

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
    """Refuse an estimator or a target that :func:`held_out_losses` cannot work with.

    Parameters
    ----------
    name : str
        Name of the caller, for error messages.
    estimator : estimator or None
    y : array of shape (n_samples,)
    task : {"classification", "regression"}
    """
    if task == "regression" and not np.issubdtype(y.dtype, np.number):
        raise InvalidTarget(
            f"{name} needs numbers in y for regression, but y holds labels such as "
            f"{str(y.flat[0])!r}. Write task='classification', or convert y with y.astype(float)."
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
            f"{name} needs a regressor because y is numeric (for example {y.flat[0]}), but "
            f"{type(estimator).__name__} is a classifier. Pass a regressor, or discretise y."
        )


def weights_name(estimator: Any) -> str | None:
    """Return the name of the argument of ``fit`` that takes sample weights.

    Return None if the estimator does not take sample weights.

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


def encode_target(y: NDArray[Any], task: str) -> Array:
    """Return the target as columns: an indicator for each class, or the numbers of a regression.

    >>> encode_target(np.array(["b", "a", "b"]), "classification")
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    if task == "regression":
        return np.asarray(y, dtype=float).reshape(len(y), -1)
    labels, codes = class_codes(y)
    found: Array = np.eye(len(labels))[codes]
    return found


def train_model(
    estimator: Any, X: Array, y: NDArray[Any], truth: Array, weights: Array | None = None
) -> Any:
    """Train a clone of an estimator, or a ridge regression if it is None.

    A classifier is trained on ``y``. A regressor is trained on the columns of ``truth``, see
    :func:`encode_target`.
    """
    model = Ridge() if estimator is None else clone(estimator)
    given = {} if weights is None else {str(weights_name(model)): weights}
    if is_classifier(model):
        return model.fit(X, y, **given)
    several = truth.shape[1] > 1
    if several and not get_tags(model).target_tags.multi_output:
        model = MultiOutputRegressor(model)
    # most estimators need a vector for a single target
    return model.fit(X, truth if several else truth[:, 0], **given)


def held_out_losses(
    estimator: Any,
    X: Array,
    y: NDArray[Any],
    train: Subset,
    test: Subset,
    task: str,
    weights: Array | None = None,
) -> Array:
    """Return the squared loss of each test row after training on the training rows.

    The estimator is cloned, and columns are scaled by the training rows. For classification, the
    loss is computed from probabilities, see :func:`squared_losses`. A regressor is then
    trained on an indicator column for each class. If there are no columns, the baseline is
    predicted: the shares of the classes, or the mean.

    Parameters
    ----------
    estimator : estimator or None
        None is a ridge regression.
    X : array of shape (n_samples, n_columns)
        Table of the columns to predict from. It may have no columns.
    y : array of shape (n_samples,)
    train, test : array of int
        Row numbers.
    task : {"classification", "regression"}
    weights : array of shape (n_samples,) or None, default=None
        Sample weights in training, for an estimator that takes them.

    Returns
    -------
    losses : array of float
        The loss of each test row.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 4.0])
    >>> held_out_losses(None, X[:, :0], y, np.arange(3), np.array([3]), "regression")
    array([9.])
    """
    truth = encode_target(y, task)
    if not X.shape[1]:
        mean = np.broadcast_to(truth[train].mean(axis=0), truth[test].shape)
        return between(mean, truth[test])
    known, scale = scaled_columns(X[train])
    own = None if weights is None else weights[train]
    model = train_model(estimator, known, y[train], truth[train], own)
    name = "Ridge" if estimator is None else type(estimator).__name__
    losses = squared_losses(model, scale(X[test]), (y if is_classifier(model) else truth)[test])
    if not np.isfinite(losses).all():
        raise InvalidScore(
            f"{name}, trained on {X.shape[1]} column(s), predicts NaN or numbers too large for a "
            "squared loss on held-out rows. Give another estimator, or the target in other units."
        )
    return losses


def squared_losses(model: Any, X: Any, y: NDArray[Any], *, margins: bool = False) -> Array:
    """Return the squared loss of each row. For a classifier, it is the Brier score.

    The Brier score is the sum over the classes of (p - t)², where p is the predicted probability,
    and t is 1 for the true class and 0 for the others.

    Parameters
    ----------
    model : fitted estimator
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Classes that were not in the training rows are allowed.
    margins : bool, default=False
        Whether to compute probabilities from decision values for a classifier without
        ``predict_proba``, see :func:`probabilities`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier().fit([[0], [0], [0], [0]], ["a", "a", "a", "b"])
    >>> squared_losses(model, [[0], [0]], np.array(["a", "b"]))
    array([0.125, 1.125])
    """
    if not is_classifier(model):
        predictions = np.asarray(model.predict(X), dtype=float)
        return between(predictions, np.asarray(y, dtype=float))
    labels, shares = probabilities(model, X, margins=margins)
    classes = np.union1d(labels, y)
    predictions = np.zeros((len(shares), len(classes)))
    predictions[:, np.searchsorted(classes, labels)] = shares
    return between(predictions, np.asarray(y)[:, None] == classes)


def between(predictions: Array, truth: NDArray[Any]) -> Array:
    """Return the sum of squared differences between predictions and truth, for each row."""
    n = len(truth)
    with np.errstate(over="ignore"):  # an infinite loss is allowed
        squares: Array = (predictions.reshape(n, -1) - truth.reshape(n, -1)) ** 2
    found: Array = squares.sum(axis=1)
    return found


def probabilities(model: Any, X: Any, *, margins: bool = False) -> tuple[NDArray[Any], Array]:
    """Return the labels of a fitted classifier, and the probability of each label for each row.

    If the classifier has no ``predict_proba``, the predicted class has probability 1. With
    ``margins``, decision values are used as log-odds instead. This requires a decision value for
    each class, or a single one for two classes.

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
    predicted = np.asarray(model.predict(X))
    labels = np.unique(predicted)
    return labels, (predicted[:, None] == labels).astype(float)


def missed(model: Any, X: Any, y: NDArray[Any]) -> Array:
    """Return 1 for each row whose class is predicted wrongly, and 0 for the others."""
    return (np.asarray(model.predict(X)) != np.asarray(y)).astype(float)

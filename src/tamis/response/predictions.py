"""Outputs of a trained model in a form that engines can follow.

Two classes have one column: the probability of the second, or 1 where it is predicted. More classes
have one column each.
"""

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from tamis._arrays import Array
from tamis._namespace import host, namespace
from tamis.response.engines.base import Model, Outputs, ask
from tamis.response.engines.registry import is_followed, last_step
from tamis.svm.machine import vote_counts


def probabilities_of(fitted: Any, classes: NDArray[Any]) -> Model:
    """View a classifier by ``predict_proba``; classes that it did not see have 0."""
    known = np.searchsorted(classes, fitted.classes_)
    two, all_known = len(classes) == 2, len(known) == len(classes)

    def raw(X: Array) -> Array:
        p = np.asarray(ask(fitted.predict_proba, X), dtype=np.float64)
        if not all_known:
            p, seen = np.zeros((len(X), len(classes))), p
            p[:, known] = seen
        return p[:, 1:] if two else p

    return Model(fitted, "predict_proba" if all_known else "probabilities", raw, as_it_is)


def decisions_of(fitted: Any, classes: NDArray[Any]) -> Model:
    """View a classifier by its predicted class, from decision values if an engine knows them."""
    c, last = len(classes), last_step(fitted)

    def predicted(X: Array) -> Array:
        # CatBoost returns a column if there are more than two classes
        return encode_classes(np.searchsorted(classes, np.ravel(ask(fitted.predict, X))), c)

    by_predicting = Model(fitted, "codes", predicted, as_it_is)
    if len(fitted.classes_) < c or getattr(last, "break_ties", False):
        return by_predicting
    if isinstance(last, MLPClassifier):
        whole = probabilities_of(fitted, classes)
        return replace(whole, link=_majority if c == 2 else _greatest)
    votes = has_votes(fitted)
    link = partial(_voted_classes, c) if votes and c > 2 else decided_classes(c)
    model = decision_values(fitted, link)
    if not is_followed(model):
        return by_predicting
    return decision_values(_pairwise(fitted), link) if votes else model


def decision_values(fitted: Any, link: Outputs) -> Model:
    """View a model by its decision values, as a table of (rows, outputs)."""

    def raw(X: Any) -> Array:
        found = host(ask(fitted.decision_function, X)).astype(np.float64, copy=False)
        return found[:, None] if found.ndim == 1 else found

    return Model(fitted, "decision_function", raw, link)


def has_votes(estimator: Any) -> bool:
    """Whether several classes are decided by votes of pairs, as in an ``SVC``."""
    return hasattr(last_step(estimator), "decision_function_shape")


def _pairwise(fitted: Any) -> Any:
    """Copy a machine so that its decision values are those of each pair of classes."""
    found = copy(fitted)
    if isinstance(fitted, Pipeline):
        name, last = fitted.steps[-1]
        found.steps = [*fitted.steps[:-1], (name, _pairwise(last))]
    else:
        found.decision_function_shape = "ovo"
    return found


def predictions_of(fitted: Any) -> Model:
    """View a regressor by its predictions."""

    def raw(X: Array) -> Array:
        return host(ask(fitted.predict, X)).astype(np.float64, copy=False).reshape(len(X), -1)

    return Model(fitted, "predict", raw, as_it_is)


def _voted_classes(n_classes: int, decisions: Array) -> Array:
    """Link from the pairwise decisions of an SVM to its class, as LIBSVM counts them."""
    return _greatest(vote_counts(~(decisions > 0), n_classes))


def encode_classes(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Write class numbers as columns."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


def as_it_is(outputs: Array) -> Array:
    """Return the outputs: the identity link."""
    return outputs


def decided_classes(n_classes: int) -> Outputs:
    """Return the link from decision values to the predicted class."""
    return signs if n_classes == 2 else _greatest


def signs(decisions: Any) -> Any:
    """Return 1 where a decision is for the second class."""
    return namespace(decisions).astype(decisions > 0, decisions.dtype)


def _majority(probabilities: Array) -> Array:
    return (probabilities > 0.5).astype(np.float64)


def _greatest(values: Array) -> Array:
    """Return one column for each class, 1 where it has the greatest value; a tie goes first."""
    return np.eye(values.shape[-1])[values.argmax(axis=-1)]

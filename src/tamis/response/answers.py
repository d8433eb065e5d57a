"""What a trained model answers, in a form that engines can follow.

Of two classes one column stands for both: the probability of the second, or 1 where it is
predicted. Of more there is one column for each.
"""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from tamis._arrays import Array
from tamis._namespace import host
from tamis.response.engine import Model, Outputs, asked
from tamis.response.opening import is_followed, last_step
from tamis.svm.machine import vote_counts


def probabilities_of(fitted: Any, classes: NDArray[Any]) -> Model:
    """Probabilities of a classifier with ``predict_proba``; 0 for classes that it did not see."""
    known = np.searchsorted(classes, fitted.classes_)
    two, all_known = len(classes) == 2, len(known) == len(classes)

    def raw(X: Array) -> Array:
        p = np.asarray(asked(fitted.predict_proba, X), dtype=np.float64)
        if not all_known:
            p, seen = np.zeros((len(X), len(classes))), p
            p[:, known] = seen
        return p[:, 1:] if two else p

    return Model(fitted, "predict_proba" if all_known else "probabilities", raw, as_it_is)


def decisions_of(fitted: Any, classes: NDArray[Any]) -> Model:
    """The predicted class; found from decision values where an engine knows the model."""
    c, last = len(classes), last_step(fitted)

    def predicted(X: Array) -> Array:
        # CatBoost answers with a column where there are more than two classes
        return coded(np.searchsorted(classes, np.ravel(asked(fitted.predict, X))), c)

    by_predicting = Model(fitted, "codes", predicted, as_it_is)
    if len(fitted.classes_) < c or getattr(last, "break_ties", False):
        return by_predicting
    if isinstance(last, MLPClassifier):
        whole = probabilities_of(fitted, classes)
        return replace(whole, link=_majority if c == 2 else _greatest)
    votes = hasattr(last, "decision_function_shape")
    link = Votes(c) if votes and c > 2 else decided_classes(c)
    model = Model(fitted, "decision_function", Decided(fitted), link)
    if not is_followed(model):
        return by_predicting
    if not votes:
        return model
    pairwise = _pairwise(fitted)  # the values that its predictions come from
    return replace(model, fitted=pairwise, raw=Decided(pairwise))


def _pairwise(fitted: Any) -> Any:
    """The same machine, which answers with a decision for each pair of classes."""
    found = copy(fitted)
    if isinstance(fitted, Pipeline):
        name, last = fitted.steps[-1]
        found.steps = [*fitted.steps[:-1], (name, _pairwise(last))]
    else:
        found.decision_function_shape = "ovo"
    return found


def predictions_of(fitted: Any) -> Model:
    """What a regressor predicts."""

    def raw(X: Array) -> Array:
        return host(asked(fitted.predict, X)).astype(np.float64, copy=False).reshape(len(X), -1)

    return Model(fitted, "predict", raw, as_it_is)


def decided_classes(n_classes: int) -> Outputs:
    """From decision values to the predicted class."""
    return signs if n_classes == 2 else _greatest


class Decided:
    """Decision values as a table of (rows, outputs)."""

    def __init__(self, fitted: Any):
        self.fitted = fitted

    def __call__(self, X: Any) -> Array:
        found = host(asked(self.fitted.decision_function, X)).astype(np.float64, copy=False)
        return found[:, None] if found.ndim == 1 else found


class Votes:
    """Class of the pairwise decisions of an SVM, as LIBSVM counts them."""

    def __init__(self, n_classes: int):
        self.n_classes = n_classes

    def __call__(self, decisions: Array) -> Array:
        return _greatest(vote_counts(~(decisions > 0), self.n_classes))


def coded(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Class numbers as columns."""
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


def as_it_is(outputs: Array) -> Array:
    """The outputs."""
    return outputs


def signs(decisions: Array) -> Array:
    """1 where a decision is for the second class."""
    return (decisions > 0).astype(np.float64)


def _majority(probabilities: Array) -> Array:
    return (probabilities > 0.5).astype(np.float64)


def _greatest(values: Array) -> Array:
    """One column for each class, 1 where it has the greatest value; of equals the first."""
    return np.eye(values.shape[-1])[values.argmax(axis=-1)]

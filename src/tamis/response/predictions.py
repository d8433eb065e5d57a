"""Outputs of a trained model in a form that engines support.

With two classes there is a single output: the probability of the second class, or 1 if it is
predicted and 0 otherwise. With more classes there is one output per class.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags

from tamis._arrays import Array
from tamis._namespace import host, namespace
from tamis.response.engines.base import Model, Outputs, ask
from tamis.response.engines.registry import is_followed, last_step
from tamis.svm.machine import vote_counts

#: Names of the methods of a model whose first argument is a table.
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "score")
#: Outputs of engines that differ by less than this share of the largest output are treated as
#: ties. Engines sum in a different order than the models, so equal outputs may differ by rounding.
TIE = 1e-11


@dataclass(eq=False, repr=False)
class StandIn(BaseEstimator):
    """Fitted model whose methods take another kind of table.

    ``call`` receives the name and the arguments of a method, and returns the result of the method.
    """

    model: Any
    call: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("model", "call"):
            raise AttributeError(name)
        found = getattr(self.model, name)
        if name not in METHODS:
            return found

        def method(X: Any, *others: Any, **params: Any) -> Any:
            return self.call(name, X, *others, **params)

        method.__name__ = name  # scorers read this attribute
        return method

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.model)


def on_outputs(fitted: Any) -> StandIn:
    """Return a model whose methods take the outputs of :func:`responses_of` instead of rows."""
    return StandIn(fitted, partial(_response, fitted))


def _response(fitted: Any, name: str, outputs: Array) -> NDArray[Any]:
    """Return the result of a method from outputs that were computed before."""
    if name == "predict" and is_classifier(fitted):
        codes = outputs[:, 0] if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        return np.asarray(fitted.classes_[codes.astype(np.intp)])
    found = np.column_stack([_join_ties(column) for column in outputs.T])
    if found.shape[1] > 1:
        return found
    return np.hstack([1 - found, found]) if name == "predict_proba" else found[:, 0]


def _join_ties(values: Array) -> Array:
    """Return the values, with those that differ only by rounding set to the same number."""
    order = np.argsort(values)
    rising = values[order]
    starts = np.r_[True, np.diff(rising) > TIE * np.abs(values).max(initial=0.0)]
    found = np.empty_like(values)
    found[order] = rising[starts][np.cumsum(starts) - 1]
    return found


def auc(hits: NDArray[np.bool_], values: Array) -> float:
    """Return the area under the ROC curve from the ranks of the values (Mann-Whitney)."""
    n_hits = np.count_nonzero(hits)
    above = rankdata(values)[hits].sum() - n_hits * (n_hits + 1) / 2
    return float(above / (n_hits * (len(hits) - n_hits)))


def average_precision(hits: NDArray[np.bool_], values: Array) -> float:
    """Return the mean, over the hits, of the precision among rows with at least the hit's value."""
    n_rows, n_hits = (rankdata(-part, "max") for part in (values, values[hits]))
    return float(np.mean(n_hits / n_rows[hits]))


def quick_scorer(scorer: Any, fitted: Any, y: NDArray[Any]) -> Any:
    """Return a function that replaces a scorer of two classes, or the scorer itself.

    scikit-learn's functions of the same name take most of their time for checks of their input.
    """
    function = {roc_auc_score: auc, average_precision_score: average_precision}.get(
        getattr(scorer, "_score_func", None)
    )
    classes: Any = getattr(fitted, "classes_", ())
    if function is None or scorer._kwargs or scorer._sign < 0 or set(y) != set(classes):
        return scorer
    # scikit-learn's average precision takes the rows of class 1 as hits
    if len(classes) != 2 or (function is average_precision and classes[1] != 1):
        return scorer
    return lambda _, outputs, y: function(y == classes[1], _join_ties(outputs[:, 0]))


def responses_of(fitted: Any, method: str | None) -> Model | None:
    """Return a model of the outputs of a method, or None if engines do not support the method."""
    if method == "predict":
        classes = getattr(fitted, "classes_", None) if is_classifier(fitted) else None
        return predictions_of(fitted) if classes is None else decisions_of(fitted, classes)
    if method == "predict_proba":
        return probabilities_of(fitted, fitted.classes_)
    # engines compute the decision values of class pairs, from which SVC makes one for each class
    if method == "decision_function" and not (has_votes(fitted) and len(fitted.classes_) > 2):
        return decision_values(fitted, as_it_is)
    return None


def probabilities_of(fitted: Any, classes: NDArray[Any]) -> Model:
    """Return a classifier as a model of probabilities, with 0 for classes that it does not know."""
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
    """Return a classifier as a model of predicted classes.

    Classes are computed from decision values if a fast engine supports these.
    """
    c, last = len(classes), last_step(fitted)

    def predicted(X: Array) -> Array:
        # CatBoost returns a two-dimensional array if there are more than two classes
        return encode_classes(np.searchsorted(classes, np.ravel(ask(fitted.predict, X))), c)

    by_predicting = Model(fitted, "codes", predicted, as_it_is)
    breaks_ties = getattr(last, "break_ties", False)
    if len(fitted.classes_) < c or breaks_ties or is_followed(by_predicting):
        return by_predicting
    if isinstance(last, MLPClassifier):
        model = probabilities_of(fitted, classes)
        return replace(model, link=_majority if c == 2 else _greatest)
    votes = has_votes(fitted)
    link = partial(_voted_classes, c) if votes and c > 2 else decided_classes(c)
    model = decision_values(fitted, link)
    if not is_followed(model):
        return by_predicting
    return decision_values(_pairwise(fitted), link) if votes else model


def decision_values(fitted: Any, link: Outputs) -> Model:
    """Return an estimator as a model of its decision values, of shape (rows, outputs)."""

    def raw(X: Any) -> Array:
        found = host(ask(fitted.decision_function, X)).astype(np.float64, copy=False)
        return found[:, None] if found.ndim == 1 else found

    return Model(fitted, "decision_function", raw, link)


def has_votes(estimator: Any) -> bool:
    """Return whether an estimator predicts classes by votes of class pairs, like ``SVC``."""
    return hasattr(last_step(estimator), "decision_function_shape")


def _pairwise(fitted: Any) -> Any:
    """Return a copy of an SVM that has one decision value for each pair of classes."""
    found = copy(fitted)
    if isinstance(fitted, Pipeline):
        name, last = fitted.steps[-1]
        found.steps = [*fitted.steps[:-1], (name, _pairwise(last))]
    else:
        found.decision_function_shape = "ovo"
    return found


def predictions_of(fitted: Any) -> Model:
    """Return a regressor as a model of its predictions."""

    def raw(X: Array) -> Array:
        return host(ask(fitted.predict, X)).astype(np.float64, copy=False).reshape(len(X), -1)

    return Model(fitted, "predict", raw, as_it_is)


def _voted_classes(n_classes: int, decisions: Array) -> Array:
    """Return the predicted class from pairwise decisions, which vote as in LIBSVM."""
    return _greatest(vote_counts(~(decisions > 0), n_classes))


def encode_classes(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Return class numbers as a column of 0 and 1, or as one indicator column per class.

    There are indicator columns if there are more than two classes.
    """
    return codes[:, None].astype(float) if n_classes == 2 else np.eye(n_classes)[codes]


def log_probabilities(p: Array) -> Array:
    """Return the logarithm of the probability of each class, clipped as in scikit-learn."""
    least = np.finfo(np.float64).eps
    return np.log(
        np.clip(np.concatenate([1 - p, p], -1) if p.shape[-1] == 1 else p, least, 1 - least)
    )


def as_it_is(outputs: Array) -> Array:
    """Return the outputs unchanged: the identity link."""
    return outputs


def decided_classes(n_classes: int) -> Outputs:
    """Return the link function from decision values to the predicted class."""
    return signs if n_classes == 2 else _greatest


def signs(decisions: Any) -> Any:
    """Return 1 for each positive decision value (the second class), and 0 for the others."""
    return namespace(decisions).astype(decisions > 0, decisions.dtype)


def _majority(probabilities: Array) -> Array:
    return (probabilities > 0.5).astype(np.float64)


def _greatest(values: Array) -> Array:
    """Return indicator columns of the class with the greatest value. Ties go to the first class."""
    return np.eye(values.shape[-1])[values.argmax(axis=-1)]

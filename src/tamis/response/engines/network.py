"""Models whose first layer is linear: replacing a value is a rank-one change of that layer.

With Z = X W + b, a row whose column j becomes x' has Z_r + (x' - x_r^j) w_j: a generalised linear
model is then done, a network with one hidden layer applies the rest of itself.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import LinearSVC, LinearSVR

from tamis._arrays import Array, Subset
from tamis.response.engines.base import Batch, Engine, Model

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": lambda z: np.tanh(z, out=z),
    "logistic": lambda z: expit(z, out=z),
    "relu": lambda z: np.maximum(z, 0, out=z),
    "identity": lambda z: z,
}
LAST: dict[str, Callable[[Array], Array]] = {
    "softmax": lambda z: softmax(z, axis=-1),
    "logistic": expit,
    "identity": lambda z: z,
}
#: Hidden values that are held at a time (16 MB): few enough for a cache that several cores share.
BLOCK = 2_000_000


class FirstLayer(NamedTuple):
    """Weights (d, h) and offsets of the first layer, and what follows it."""

    weights: Array
    offsets: Array
    rest: Callable[[Array], Array]


def first_layer(model: Model) -> FirstLayer | None:
    """View on a fitted model with a linear first layer, or None."""
    fitted = model.fitted
    if isinstance(fitted, MLPClassifier | MLPRegressor) and len(fitted.coefs_) == 2:
        return _network(model)
    # the class itself: a subclass may predict in its own way
    if type(fitted) in (LinearRegression, Ridge, Lasso, ElasticNet, LinearSVR):
        return _linear(fitted) if model.method == "predict" else None
    if type(fitted) in (LinearSVC, RidgeClassifier, LogisticRegression):
        if model.method == "decision_function":
            return _linear(fitted)
        if model.method == "predict_proba" and type(fitted) is LogisticRegression:
            return _linear(fitted, LAST["logistic" if len(fitted.classes_) == 2 else "softmax"])
    return None


def _linear(fitted: Any, rest: Callable[[Array], Array] = lambda z: z) -> FirstLayer:
    weights = np.atleast_2d(fitted.coef_).T
    offsets = np.broadcast_to(np.ravel(fitted.intercept_), (weights.shape[1],))
    return FirstLayer(weights, np.asarray(offsets, dtype=np.float64), rest)


def _network(model: Model) -> FirstLayer | None:
    """One hidden layer, up to the output that the model gives."""
    fitted = model.fitted
    if model.method != ("predict_proba" if isinstance(fitted, MLPClassifier) else "predict"):
        return None
    (first, second), (offsets, outer) = fitted.coefs_, fitted.intercepts_
    hidden = ACTIVATIONS[fitted.activation]
    last = LAST.get(fitted.out_activation_)
    if last is None:
        return None

    def rest(z: Array) -> Array:
        answer: Array = last(hidden(z) @ second + outer)
        return answer

    return FirstLayer(first, offsets, rest)


class NetworkEngine(Engine):
    """A model with a linear first layer on some rows."""

    def __init__(self, layer: FirstLayer, X: Array):
        self.layer, self.X = layer, X
        self.Z = X @ layer.weights + layer.offsets
        self.n_bytes = self.Z.nbytes

    @classmethod
    def knows(cls, model: Model) -> bool:
        return first_layer(model) is not None

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "NetworkEngine | None":
        layer = first_layer(model)
        return cls(layer, X) if layer else None

    def outputs(self) -> Array:
        return self.layer.rest(self.Z.copy())

    def batches(self, units: Subset) -> "Iterator[NetworkBatch]":
        at_once = max(1, BLOCK // max(1, self.Z.size))
        for start in range(0, len(units), at_once):
            some = np.arange(start, min(start + at_once, len(units)))
            yield NetworkBatch(self, some, units[some])


class NetworkBatch(Batch):
    """Some units of it."""

    def __init__(self, engine: NetworkEngine, units: Subset, columns: Subset):
        self.engine, self.units = engine, units
        # (rows, units, size) and (units, size, hidden)
        self.x, self.w = engine.X[:, columns], engine.layer.weights[columns]

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        """Blocks of points, so that the hidden values of few are in memory."""
        Z, x = self.engine.Z[rows], self.x[rows, some]
        at_once = max(1, BLOCK // max(1, Z.size))
        found = []
        for unit, (line, w) in enumerate(zip(points, self.w[some], strict=True)):
            parts = [
                self._shifted(Z, line[start : start + at_once] - x[:, None, unit], w)
                for start in range(0, len(line), at_once)
            ]
            found.append(np.concatenate(parts, axis=1))
        return np.stack(found)

    def _shifted(self, Z: Array, change: Array, w: Array) -> Array:
        z = change * w[0] if len(w) == 1 else change @ w
        z += Z[:, None, :]
        return self.engine.layer.rest(z)

    def paired(self, values: Array) -> Array:
        change = (values - self.x).transpose(1, 0, 2)
        z = change * self.w if self.w.shape[1] == 1 else change @ self.w
        z += self.engine.Z
        return self.engine.layer.rest(z)[:, :, None, :]

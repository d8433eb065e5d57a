"""Engine of linear models and networks with one hidden layer.

Replacing a value is a rank-one change of the linear first layer Z = X W + b. If column j of row r
becomes x', Z_r becomes Z_r + (x' - x_r^j) w_j. The remaining layers of the model are applied to Z.
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
#: Number of hidden values in a block (16 MB), which fits into a shared CPU cache.
BLOCK = 2_000_000
#: Up to this number of hidden values, over all rows and values of a column, replacing all values
#: takes less time than a few predictions of the model.
QUICK = 100_000


class FirstLayer(NamedTuple):
    """First layer of a model: weights of shape (columns, hidden units) and offsets.

    ``rest`` is the function from the first layer to the outputs of the model.
    """

    weights: Array
    offsets: Array
    rest: Callable[[Array], Array]


def first_layer(model: Model) -> FirstLayer | None:
    """Return the linear first layer of a fitted model, or None if it does not have one."""
    fitted = model.fitted
    if isinstance(fitted, MLPClassifier | MLPRegressor) and len(fitted.coefs_) == 2:
        return _network(model)
    # exact classes only: a subclass may predict differently
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
    """Return the first layer of a network with one hidden layer, or None if it is not supported."""
    fitted = model.fitted
    if model.method != ("predict_proba" if isinstance(fitted, MLPClassifier) else "predict"):
        return None
    (first, second), (offsets, outer) = fitted.coefs_, fitted.intercepts_
    hidden, last = ACTIVATIONS[fitted.activation], LAST.get(fitted.out_activation_)
    if last is None:
        return None
    return FirstLayer(first, offsets, lambda z: last(hidden(z) @ second + outer))


class NetworkEngine(Engine):
    """Engine of a model whose first layer is linear."""

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

    def replaces_quickly(self, n_values: int) -> bool:
        return n_values * self.Z.size <= QUICK

    def outputs(self) -> Array:
        return self.layer.rest(self.Z.copy())

    def batches(self, units: Subset) -> "Iterator[NetworkBatch]":
        at_once = max(1, BLOCK // max(1, self.Z.size))
        for start in range(0, len(units), at_once):
            some = np.arange(start, min(start + at_once, len(units)))
            yield NetworkBatch(self, some, units[some])


class NetworkBatch(Batch):
    """Batch of a :class:`NetworkEngine`."""

    def __init__(self, engine: NetworkEngine, units: Subset, columns: Subset):
        self.engine, self.units = engine, units
        # x has the shape (rows, units, size), and w (units, size, hidden units)
        self.x, self.w = engine.X[:, columns], engine.layer.weights[columns]

    def at(self, some: slice, rows: slice, points: Array) -> Array:
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

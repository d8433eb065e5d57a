"""The border of engines: a new kind of model, and points that a model cannot distinguish."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tamis.response.engines.registry as registry
from tamis.criteria import DensitySensitivity, ScoreSensitivity
from tamis.response import Batch, Engine, GenericEngine


class Stairs(RegressorMixin, BaseEstimator):
    """Whole parts of the columns, weighted by their correlation with the target."""

    def fit(self, X, y):
        self.weights_ = np.round(np.corrcoef(X.T, y)[-1, :-1], 2)
        return self

    def predict(self, X):
        return np.floor(X) @ self.weights_


class StairsEngine(Engine):
    """All columns in one batch."""

    def __init__(self, fitted, X):
        self.weights, self.X, self.n_bytes = fitted.weights_, X, 0

    @classmethod
    def knows(cls, model):
        return type(model.fitted) is Stairs and model.method == "predict"

    @classmethod
    def opened(cls, model, X, low, high):
        return cls(model.fitted, X)

    @classmethod
    def rows_at_once(cls, model, n_rows):
        return min(n_rows, 20)

    def outputs(self):
        return (np.floor(self.X) @ self.weights)[:, None]

    def batches(self, units):
        yield StairsBatch(self, units)


class StairsBatch(Batch):
    def __init__(self, engine, units):
        self.engine, self.columns, self.units = engine, units[:, 0], np.arange(len(units))

    def at(self, some, rows, points):
        x, w = np.floor(self.engine.X[rows][:, self.columns[some]]), self.engine.weights
        change = np.floor(points[:, None, :, 0]) - x.T[:, :, None]
        return (self.engine.outputs()[rows] + change * w[self.columns[some], None, None])[..., None]

    def paired(self, values):
        x, w = np.floor(self.engine.X[:, self.columns]), self.engine.weights[self.columns]
        changed = self.engine.outputs() + (np.floor(values[..., 0]) - x) * w
        return changed.T[:, :, None, None]


@pytest.mark.parametrize("on", ["training", "held-out"])
@pytest.mark.parametrize("by", ["marginal", "permutation", "zero"])
@pytest.mark.parametrize("kind", [DensitySensitivity, ScoreSensitivity])
def test_a_new_engine_is_used_for_its_models(kind, by, on, monkeypatch):
    X, y = make_regression(70, 4, noise=5.0, random_state=0)
    options = {"by": by, "on": on, "random_state": 0}
    expected = kind(Stairs(), **options).fit(X, y).loss(np.arange(4))
    monkeypatch.setattr(registry, "ENGINES", (*registry.ENGINES, StairsEngine))

    def refuse(*_):
        raise AssertionError("altered copies are made")

    monkeypatch.setattr(GenericEngine, "batches", refuse)
    found = kind(Stairs(), **options).fit(X, y).loss(np.arange(4))
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    pipe = make_pipeline(StandardScaler(), Stairs())
    assert np.isfinite(kind(pipe, **options).fit(X, y).loss(np.arange(4))).all()

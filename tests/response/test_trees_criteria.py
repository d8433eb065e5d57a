"""Sensitivities of tree models: the same by their engine as by altered copies of the rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tamis.response.engines.registry as registry
from tamis.criteria import DensitySensitivity, PosteriorSensitivity, ScoreSensitivity
from tamis.exceptions import LoopInstead
from tamis.response import GenericEngine
from tamis.response.trees import TreeEngine
from tamis.response.trees.models import warn_of_copies
from tamis.search import RecursiveElimination
from tests.response.tree_models import D, made, table, target

CRITERIA = {
    "probability": (PosteriorSensitivity, {}, "2"),
    "probabilities": (PosteriorSensitivity, {}, "3"),
    "decision": (PosteriorSensitivity, {"output": "decision"}, "2"),
    "decisions": (PosteriorSensitivity, {"output": "decision"}, "3"),
    "laplace": (DensitySensitivity, {}, "regression"),
    "laplace, both ways": (DensitySensitivity, {"symmetric": True}, "regression"),
    "gaussian": (DensitySensitivity, {"noise": "gaussian"}, "regression"),
    "accuracy": (ScoreSensitivity, {}, "3"),
    "r2": (ScoreSensitivity, {}, "regression"),
    "squared error": (ScoreSensitivity, {"scoring": "neg_mean_squared_error"}, "regression"),
}
WAYS = {
    "marginal": {"by": "marginal"},
    "quantiles": {"by": "marginal", "n_values": 5},
    "permutation": {"by": "permutation", "n_repeats": 2},
    "zero": {"by": "zero"},
}


def refuse(*_):
    raise AssertionError("altered copies are made")


def both_ways(criterion, X, y, monkeypatch, subset=None):
    """Losses by the engine, and by altered copies."""
    subset = np.arange(D) if subset is None else subset
    with monkeypatch.context() as patch:
        patch.setattr(GenericEngine, "batches", refuse)
        fast = criterion.fit(X, y).loss(subset)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "ENGINES", registry.ENGINES[:-1])
        patch.setattr(TreeEngine, "knows", classmethod(lambda *_: False))
        slow = criterion.fit(X, y).loss(subset)
    return fast, slow


@pytest.mark.parametrize("on", ["training", "held-out"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("output", CRITERIA)
def test_every_output_and_perturbation_agrees_with_copies(output, way, on, monkeypatch):
    kind, options, task = CRITERIA[output]
    X = table("tied")
    y = target(X, task)
    for name in ("RandomForest", "HistGradientBoosting"):
        criterion = kind(made(name, task), on=on, random_state=0, **options, **WAYS[way])
        fast, slow = both_ways(criterion, X, y, monkeypatch)
        assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)
        assert np.abs(fast).max() > 0


@pytest.mark.parametrize("name", ["LGBM", "XGB", "CatBoost"])
def test_models_of_other_libraries_agree_with_copies(name, monkeypatch):
    X = table("continuous")
    for kind, task in (
        (PosteriorSensitivity, "2"), (ScoreSensitivity, "3"), (DensitySensitivity, "regression"),
    ):  # fmt: skip
        criterion = kind(made(name, task), n_values=9)
        fast, slow = both_ways(criterion, X, target(X, task), monkeypatch)
        assert_allclose(fast, slow, rtol=1e-4 if name == "XGB" else 1e-11, atol=1e-13)


@pytest.mark.parametrize("way", WAYS)
def test_behind_scalers(way, monkeypatch):
    X = table("tied") * 100 / 3
    pipe = make_pipeline(StandardScaler(), made("RandomForest", "2"))
    for options in ({}, {"output": "decision"}):
        criterion = PosteriorSensitivity(pipe, random_state=0, **options, **WAYS[way])
        fast, slow = both_ways(criterion, X, target(X, "2"), monkeypatch)
        assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)


def test_an_unused_column_scores_exactly_0():
    X = table("tied")
    X[:, 4] = 3.0
    for output in ("probability", "accuracy", "r2"):
        kind, options, task = CRITERIA[output]
        for way in WAYS.values():
            criterion = kind(made("RandomForest", task), on="held-out", **options, **way)
            assert criterion.fit(X, target(X, task)).loss(np.arange(D))[4] == 0.0


def test_elimination_warns_once_that_copies_are_made():
    class Mine(RandomForestClassifier):
        pass

    X = table("continuous")
    warn_of_copies.cache_clear()
    criterion = PosteriorSensitivity(Mine(5, random_state=0), n_values=3)
    search = RecursiveElimination(criterion, n_features_to_select=3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        search.fit(X, target(X, "2"))
    assert [w.category for w in said].count(LoopInstead) == 1

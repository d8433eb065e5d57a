"""A search that is stopped in its middle goes on from there."""

import json

import pytest

from tamis.criteria import Scatter
from tamis.datasets import load, make_weston
from tamis.evaluation import Realizations, Store, evaluate, runner
from tamis.search import Backward, Forward, Genetic

WDBC = load("wdbc")


class Power(BaseException):
    """Pulls the plug."""


class Fails(Scatter):
    """Counts the subsets it values, and fails at the n-th."""

    left = None
    valued = 0

    def values(self, subsets):
        subsets = list(subsets)
        type(self).valued += 1
        if Fails.left is not None:
            Fails.left -= 1
            if Fails.left < 0:
                raise Power
        return super().values(subsets)

    def gain(self, subset, candidates):
        Fails.values(self, [subset])
        return super().gain(subset, candidates)

    def loss(self, subset):
        Fails.values(self, [subset])
        return super().loss(subset)


@pytest.fixture(autouse=True)
def _every_step(monkeypatch):
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    Fails.left = None
    Fails.valued = 0


def experiment(method, path):
    return evaluate({"m": method}, WDBC, Realizations(1), "n_features", sizes="own", store=path)


@pytest.mark.parametrize("make", [Forward, Backward, Genetic])
def test_a_stopped_search_goes_on(tmp_path, make):
    options = {"n_features_to_select": 6}
    if make is Genetic:
        options |= {"n_generations": 8, "random_state": None}
    whole = experiment(make(Fails("J3"), **options), tmp_path / "whole.sqlite")
    needed = Fails.valued
    Fails.left = needed // 2
    with pytest.raises(Power):
        experiment(make(Fails("J3"), **options), tmp_path / "stopped.sqlite")
    with Store(tmp_path / "stopped.sqlite") as store:
        (key,) = store.checkpoints()
        steps = json.loads(store.checkpointed(key))["trace"]["value"]
    assert len(steps) >= 2
    Fails.left, Fails.valued = None, 0
    resumed = experiment(make(Fails("J3"), **options), tmp_path / "stopped.sqlite")
    assert Fails.valued < needed
    first, second = (r.tasks[0].outcome._replace(seconds=0) for r in (whole, resumed))
    assert first == second
    with Store(tmp_path / "stopped.sqlite") as store:
        assert not store.checkpoints()


def test_a_checkpoint_that_cannot_be_read_is_passed_over(tmp_path):
    path = tmp_path / "s.sqlite"
    Fails.left = 4
    with pytest.raises(Power):
        experiment(Forward(Fails("J3"), n_features_to_select=6), path)
    with Store(path) as store:
        (key,) = store.checkpoints()
        store.checkpoint(key, '{"format": 99}')
    Fails.left = None
    found = experiment(Forward(Fails("J3"), n_features_to_select=6), path)
    assert found.tasks[0].outcome.support is not None


def test_short_searches_write_none(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 60.0)
    path = tmp_path / "s.sqlite"
    evaluate(
        Forward(Scatter("J3")), make_weston(100, random_state=0), Realizations(2), "hit", store=path
    )
    with Store(path) as store:
        assert not store.checkpoints()

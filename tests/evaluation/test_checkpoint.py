"""An interrupted search resumes at its last step."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from tamis.criteria import FisherScore, Scatter
from tamis.datasets import load, make_weston
from tamis.evaluation import Realizations, Store, checkpoint, evaluate, runner
from tamis.search import Backward, Forward, Genetic, Ranking, Then
from tamis.spec import parse

WDBC = load("wdbc")


class Power(BaseException):
    """Exception that stands for a power failure."""


class Fails(Scatter):
    """Criterion that counts the subsets it scores, and fails at the n-th."""

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
def test_an_interrupted_search_is_continued(tmp_path, make):
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


def test_an_unreadable_checkpoint_is_ignored(tmp_path):
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


def test_short_searches_write_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 60.0)
    path = tmp_path / "s.sqlite"
    evaluate(
        Forward(Scatter("J3")), make_weston(100, random_state=0), Realizations(2), "hit", store=path
    )
    with Store(path) as store:
        assert not store.checkpoints()


# ---- all selections, and all ways to be killed ----

GATES = (
    "GateSelector(n_features_to_select=3, network=NetworkClassifier(2, validation=2, "
    'combine="mean"), solver=GateSolver(max_iter=15))'
)


class Keeping:
    """Patch that counts saved records, and stops after a number of them."""

    def __init__(self, monkeypatch, stop_after=None):
        self.n_kept, keep = 0, checkpoint.StoreKeeper.post

        def kept(keeper, record):
            keep(keeper, record)
            self.n_kept += 1
            if self.n_kept == stop_after:
                raise Power

        monkeypatch.setattr(checkpoint.StoreKeeper, "post", kept)


FILTER = Ranking(FisherScore(), n_features_to_select=9)


@pytest.mark.parametrize("share", [0.2, 0.8])
@pytest.mark.parametrize(
    "method",
    [
        Then(FILTER, Forward(Scatter("J3"), n_features_to_select=6)),
        Then(Backward(Scatter("J3"), n_features_to_select=12), FILTER),
        parse(GATES),
    ],
    ids=["filter first", "filter last", "gates"],
)
def test_compositions_and_embedded_selectors_are_continued(tmp_path, monkeypatch, method, share):
    with monkeypatch.context() as patched:
        watched = Keeping(patched)
        whole = experiment(method, tmp_path / "whole.sqlite")
    assert watched.n_kept > 2
    with monkeypatch.context() as patched:
        Keeping(patched, stop_after=max(1, round(share * watched.n_kept)))
        with pytest.raises(Power):
            experiment(method, tmp_path / "stopped.sqlite")
    gone_on = []
    resume = type(method).resume
    monkeypatch.setattr(
        type(method), "resume", lambda *args, **more: gone_on.append(1) or resume(*args, **more)
    )
    resumed = experiment(method, tmp_path / "stopped.sqlite")
    assert gone_on == [1]
    first, second = (r.tasks[0].outcome._replace(seconds=0) for r in (whole, resumed))
    assert first == second


class Duck(BaseEstimator):
    """Estimator of another library with callbacks, a record at every step, and resume."""

    calls: list = []  # noqa: RUF012

    def set_callbacks(self, *callbacks):
        self.callbacks = callbacks

    def fit(self, X, y):
        return self._run(X, y, 0)

    def resume(self, X, y, *, record):
        return self._run(X, y, record.n_evaluations)

    def _run(self, X, y, done):
        Duck.calls.append(done)
        for step in range(done, 6):
            if Fails.left is not None and step == Fails.left:
                raise Power
            self.record_ = replace(EMPTY_RECORD, n_evaluations=step + 1)
            for callback in self.callbacks:
                callback.on_fit_task_end(self, None)
        self.order_ = np.arange(X.shape[1])
        self.support_ = np.ones(X.shape[1], dtype=bool)
        return self


EMPTY_RECORD = Ranking(FisherScore()).fit(WDBC.X, WDBC.y).record_


def test_any_selector_with_a_record_is_continued(tmp_path):
    Duck.calls.clear()
    Fails.left = 4
    with pytest.raises(Power):
        experiment(Duck(), tmp_path / "s.sqlite")
    Fails.left = None
    experiment(Duck(), tmp_path / "s.sqlite")
    assert Duck.calls == [0, 4]


def test_a_store_on_a_different_computer_is_not_written_to(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        here = checkpoint.Bookmark.of("k", 0.0, store, begun=False)
        (keeper,) = checkpoint.keepers_of(here)
        assert isinstance(keeper, checkpoint.StoreKeeper)
        elsewhere = replace(here, file=("another-host", *here.file[1:]))
        assert checkpoint.keepers_of(elsewhere) == []  # without a scheduler
    with Store(None) as store:
        assert checkpoint.keepers_of(checkpoint.Bookmark.of("k", 0.0, store, False)) == []

"""One process, several processes, and a cluster of real workers give the same results."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

from tamis import _parallel
from tamis.criteria import FisherScore, Scatter
from tamis.datasets import load, make_weston
from tamis.evaluation import Realizations, checkpoint, evaluate, runner
from tamis.exceptions import ClusterLost
from tamis.search import Forward, Ranking

distributed = pytest.importorskip("distributed")

pytestmark = [
    # sockets and event loops of a cluster that is shut down hard
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TREE = DecisionTreeClassifier()
FISHER = Ranking(FisherScore())


class Slow(BaseEstimator):
    """Selector that is slow, so that a worker can be killed while it runs."""

    def fit(self, X, y):
        time.sleep(0.05)
        self.order_ = np.argsort(-np.abs(X.T @ y), kind="stable")
        return self


def numbers(results):
    return [(p.method, p.data, p.realization, p.outcome._replace(seconds=0)) for p in results.tasks]


def experiment(methods=None, n=5, **options):
    methods = {"fisher": FISHER, "tree": DecisionTreeClassifier()} if methods is None else methods
    data = {"weston": make_weston(150, random_state=0), "wine": load("wine")}
    return evaluate(methods, data, Realizations(n), estimators=TREE, sizes=[1, 2], **options)


@pytest.fixture
def cluster():
    """Start a cluster for each test, because a killed worker may not be restarted in time."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as machines,
        distributed.Client(machines, set_as_default=False) as client,
    ):
        yield machines, client


def test_two_processes_give_the_same_result_as_one():
    assert numbers(experiment(n_jobs=2)) == numbers(experiment())


def test_a_cluster_gives_the_same_result_as_one_process(cluster, tmp_path):
    _, client = cluster
    alone = experiment()
    assert numbers(experiment(cluster=client)) == numbers(alone)
    by_address = experiment(cluster=client.scheduler.address, store=tmp_path / "s.sqlite")
    assert numbers(by_address) == numbers(alone)


@pytest.mark.posix
def test_a_killed_worker_does_not_change_the_result(cluster):
    _, client = cluster
    alone = experiment({"slow": Slow()}, n=20)
    workers = list(client.run(os.getpid).values())
    killed = []

    def kill(n_done, _):
        if n_done >= 10 and not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    together = experiment({"slow": Slow()}, n=20, cluster=client, progress=kill)
    assert killed
    assert numbers(together) == numbers(alone)
    assert workers[0] not in client.run(os.getpid).values()


class Watched(Scatter):
    """Criterion that is slow, and records which process scored how many columns."""

    def __init__(self, log=""):
        super().__init__("J3")
        self.log = log

    def gain(self, subset, candidates):
        with open(self.log, "a") as stream:
            stream.write(f"{os.getpid()} {len(subset)}\n")
        time.sleep(0.1)
        return super().gain(subset, candidates)


def valued(log):
    """Return the numbers of columns that each process scored, in order."""
    found = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        pid, size = map(int, line.split())
        found.setdefault(pid, []).append(size)
    return found


@pytest.mark.parametrize(
    "place",
    [
        "memory",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("file", "file on another host")),
    ],
)
@pytest.mark.posix
def test_a_search_continues_after_its_worker_was_killed(cluster, tmp_path, monkeypatch, place):
    """The record is passed on by the scheduler, or by the store if the worker can write to it."""
    _, client = cluster
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    if place == "file on another host":  # in any worker
        monkeypatch.setattr(checkpoint, "_identity", lambda path: ("another-host", 1, 1))
    client.wait_for_workers(2, timeout=60)
    store = None if place == "memory" else tmp_path / "s.sqlite"
    wine, plan, log = load("wine"), Realizations(1), tmp_path / "log"

    def search(**options):
        method = Forward(Watched(str(log)), n_features_to_select=10)
        return evaluate(method, wine, plan, "n_features", sizes="own", **options)

    def kill():
        while sum(map(len, valued(log).values())) < 6:
            time.sleep(0.01)
        (pid,) = valued(log)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = search(cluster=client, store=store)
    killer.join()
    first, second = valued(log).values()
    assert first[0] == 0
    assert len(first) >= 6
    assert second[0] >= len(first) - 2  # only the current steps are repeated
    assert second[-1] == 9
    log.unlink()
    assert numbers(search()) == numbers(found)
    assert client.run_on_scheduler(left_behind) == []


def left_behind(dask_scheduler):
    return list(dask_scheduler.extensions["variables"].variables)


@pytest.mark.slow
@pytest.mark.posix
def test_a_cluster_that_loses_all_workers_is_sent_the_data_again(cluster):
    _, client = cluster
    alone = experiment({"slow": Slow()}, n=10)
    workers, killed = list(client.run(os.getpid).values()), []

    def kill(n_done, _):
        if n_done >= 6 and not killed:
            killed.extend(workers)
            for pid in workers:
                os.kill(pid, signal.SIGKILL)

    together = experiment({"slow": Slow()}, n=10, cluster=client, progress=kill)
    assert len(killed) == 2
    assert numbers(together) == numbers(alone)


def test_data_are_sent_only_once(cluster, monkeypatch):
    """A source counts how often it is pickled. Tasks must only contain a reference."""
    from tamis.evaluation import sources

    _, client = cluster
    sent = []

    def reduced(self):
        sent.append(self.name)
        return sources.Fixed, (self.name, self.rows)

    monkeypatch.setattr(sources.Fixed, "__reduce__", reduced, raising=False)
    X, y = np.random.default_rng(0).normal(size=(500, 40)), np.repeat([0, 1], 250)
    evaluate({"f": FISHER}, (X, y), Realizations(30), "n_features", sizes=[1], cluster=client)
    # once for its hash, once for sending, and maybe once more for a second worker
    assert 1 <= len(sent) <= 4


def test_a_missing_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr(_parallel, "REACH", 1)
    with pytest.raises(ClusterLost, match="No Dask scheduler answers at tcp"):
        experiment(cluster="tcp://127.0.0.1:9")

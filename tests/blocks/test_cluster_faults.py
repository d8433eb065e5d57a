"""Clusters of real processes that lose a worker, all workers, or their scheduler."""

import os
import signal
import socket
import subprocess
import sys
from threading import Timer

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from tamis.blocks import ClusterBlocks, Parquet, dask_cluster
from tamis.criteria import MRMR
from tamis.exceptions import ClusterLost
from tamis.search import Forward

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # sockets and event loops of a cluster that is shut down hard
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]


class Machines:
    """A scheduler and workers, each in a process that is not restarted."""

    def __init__(self, folder, n_workers=2):
        self.folder, self.processes = folder, []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start_scheduler()
        self.start_workers(n_workers)

    def _started(self, *command):
        log = open(self.folder / "dask_cluster.log", "a")  # noqa: SIM115 - the process writes to it
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command, "--no-dashboard"], stdout=log, stderr=log
        )
        self.processes.append(process)
        return process

    def start_scheduler(self):
        where = "--host", "127.0.0.1", "--port", str(self.port)
        self.scheduler = self._started("scheduler", *where)

    def start_workers(self, n_workers):
        options = "--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder)
        started = [self._started("worker", self.address, *options) for _ in range(n_workers)]
        self.workers = started

    def client(self, n_workers=2):
        client = distributed.Client(self.address, timeout=60, set_as_default=False)
        client.wait_for_workers(n_workers, timeout=60)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            process.kill()
            process.wait()


class InThePick:
    """Callback that stops processes after a number of steps, and kills them in the next step."""

    def __init__(self, n_steps, *processes):
        self.n_steps, self.processes, self.killed = n_steps, processes, False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **told):
        pass

    def on_fit_task_end(self, estimator, context, **told):
        if not self.killed and len(estimator.trace_) == self.n_steps:
            self.killed = True
            for process in self.processes:  # it keeps its work and will not finish it
                os.kill(process.pid, signal.SIGSTOP)
            Timer(0.5, self._kill).start()
        return False

    def _kill(self):
        for process in self.processes:
            process.kill()
            process.wait()


def search(*callbacks):
    return Forward(MRMR(n_bins=5), n_features_to_select=6).set_callbacks(*callbacks)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 9))
    X[:, 3:] += X[:, :6]
    y = (X[:, 0] + X[:, 4] + rng.normal(size=2000) > 0).astype(int)
    where = tmp_path / "table"
    where.mkdir()
    for number in range(4):
        rows = slice(500 * number, 500 * number + 500)
        table = {f"x{j}": X[rows, j] for j in range(9)}
        file = where / f"{number}.parquet"
        pq.write_table(pa.table({**table, "y": y[rows]}), file, row_group_size=130)
    return where


@pytest.fixture
def alone(folder):
    return search().fit(folder, target="y")


def source(folder, client):
    return ClusterBlocks(Parquet(folder, target="y"), client)


def check_same(found, alone):
    assert_array_equal(found.order_, alone.order_)
    assert_array_equal(found.scores_, alone.scores_)


def test_a_worker_killed_during_a_step_does_not_change_the_result(folder, alone, tmp_path):
    with Machines(tmp_path) as machines, machines.client() as client:
        fault = InThePick(3, machines.workers[0])
        check_same(search(fault).fit(source(folder, client)), alone)
        assert fault.killed
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1


def test_a_search_can_be_resumed_after_all_workers_were_killed(
    folder, alone, tmp_path, monkeypatch
):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 2)
    with Machines(tmp_path) as machines, machines.client() as client:
        lost = search(InThePick(3, *machines.workers))
        with pytest.raises(ClusterLost, match=r"has no workers left.*record_: start workers"):
            lost.fit(source(folder, client))
        assert len(lost.trace_) == 3
        machines.start_workers(2)
        client.wait_for_workers(2, timeout=60)
        check_same(search().resume(source(folder, client), record=lost.record_), alone)


def test_restarted_workers_do_not_change_the_result(folder, alone, tmp_path):
    with Machines(tmp_path) as machines, machines.client() as client:
        fault = InThePick(3, *machines.workers)
        Timer(1.0, machines.start_workers, [1]).start()
        check_same(search(fault).fit(source(folder, client)), alone)
        assert fault.killed


def test_a_search_can_be_resumed_after_the_scheduler_was_lost(folder, alone, tmp_path):
    with Machines(tmp_path) as machines:
        client = machines.client()
        lost = search(InThePick(3, machines.scheduler))
        with pytest.raises(ClusterLost, match=r"record_: start workers"):
            lost.fit(source(folder, client))
        assert len(lost.trace_) == 3
        with pytest.raises(ClusterLost, match=r"lost workers or its scheduler"):
            search().resume(source(folder, client), record=lost.record_)
        machines.start_scheduler()
        machines.start_workers(2)
        with machines.client() as anew:
            check_same(search().resume(source(folder, anew), record=lost.record_), alone)
        client.close()

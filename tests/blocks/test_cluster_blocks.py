"""Row blocks on the workers of a cluster, and Dask collections."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis.blocks import ClusterBlocks, MemoryMap, Parquet, as_blocks, dask_cluster
from tamis.blocks.source import RowStatistic
from tamis.criteria import JMI, MRMR, Correlation, Scatter
from tamis.exceptions import InvalidTable, InvalidTarget
from tamis.search import Forward, Ranking

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = [
    # sockets and event loops of a cluster that is shut down hard
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]

SEARCHES = [Forward(MRMR(n_bins=5), n_features_to_select=4), Forward(Scatter("J3"))]


def made(n=1000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 3] += X[:, 0]
    return X, (X[:, 0] + X[:, 2] + rng.normal(size=n) > 0).astype(int)


def machines(n_workers, *, processes):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None
    )


@pytest.fixture(scope="module")
def client():
    with (
        machines(2, processes=False) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def folder(tmp_path):
    X, y = made()
    for number in range(5):
        rows = slice(200 * number, 200 * number + 200)
        table = {f"x{j}": X[rows, j] for j in range(X.shape[1])}
        pq.write_table(
            pa.table({**table, "y": y[rows]}), tmp_path / f"{number}.parquet", row_group_size=60
        )
    return tmp_path


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_workers_give_the_same_result_as_one_process(client, folder, search, monkeypatch):
    alone = Forward(search.criterion, n_features_to_select=4).fit(folder, target="y")
    for most in (32, 1):  # gathered, or merged on the workers first
        monkeypatch.setattr(dask_cluster, "MOST_GATHERED", most)
        source = ClusterBlocks(Parquet(folder), client)
        found = Forward(search.criterion, n_features_to_select=4).fit(source, target="y")
        assert_array_equal(found.order_, alone.order_)
        assert_allclose(found.scores_, alone.scores_, rtol=1e-12)
        assert found.record_.data == alone.record_.data


def test_errors_of_workers_have_the_usual_messages(client, folder):
    X, y = made(50)
    X[20, 1] = np.nan
    table = {f"x{j}": X[:, j] for j in range(6)}
    pq.write_table(pa.table({**table, "y": y}), folder / "7.parquet")
    with pytest.raises(InvalidTable, match=r"'x1' has missing.*7\.parquet"):
        Forward(Scatter()).fit(ClusterBlocks(Parquet(folder), client), target="y")


@pytest.mark.parametrize("criterion", [JMI(n_bins=5), Scatter("J3")], ids=str)
@pytest.mark.parametrize("on_cluster", [True, False])
def test_dask_collections_are_accepted_as_tables(client, criterion, on_cluster):
    X, y = made()
    alone = Forward(criterion, n_features_to_select=3).fit(X, y)
    arrays = da.from_array(X, chunks=(130, 4)), da.from_array(y, chunks=500)
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    frames = dd.from_pandas(frame, npartitions=4)
    if on_cluster:
        with client.as_current():
            by_array = Forward(criterion, n_features_to_select=3).fit(*arrays)
            by_frame = Forward(criterion, n_features_to_select=3).fit(frames, target="y")
    else:
        by_array = Forward(criterion, n_features_to_select=3).fit(*arrays)
        by_frame = Forward(criterion, n_features_to_select=3).fit(
            frames.drop(columns="y"), frames["y"]
        )
    assert_array_equal(by_array.order_, alone.order_)
    assert_array_equal(by_frame.order_, alone.order_)
    assert by_frame.columns == [list("abcdef")[j] for j in alone.columns]


def test_invalid_dask_collections_are_refused():
    X, y = made(40)
    table, answers = da.from_array(X, chunks=20), da.from_array(y, chunks=20)
    with pytest.raises(InvalidTarget, match=r"fit\(X, y\)"):
        Ranking(Correlation()).fit(table)
    with pytest.raises(InvalidTarget, match="2 blocks of rows, but y has 1"):
        as_blocks(table, da.from_array(y[:30], chunks=30))
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "y": y}), npartitions=2)
    with pytest.raises(InvalidTarget, match="Did you mean y"):
        as_blocks(frame, target="yy")
    with pytest.raises(InvalidTarget, match="or a Series y"):
        as_blocks(frame)
    text = dd.from_pandas(pd.DataFrame({"a": ["u", "v"], "y": [0, 1]}), npartitions=1)
    with pytest.raises(InvalidTable, match="needs rows and columns of numbers"):
        Ranking(Correlation()).fit(text, target="y")
    assert answers.npartitions == 2


def test_a_memory_map_is_pickled_by_its_path(tmp_path):
    import pickle

    X, y = made(5000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    sent = pickle.dumps(MemoryMap(tmp_path / "X.npy", tmp_path / "y.npy", block_rows=7))
    assert len(sent) < 1000
    assert next(pickle.loads(sent).chunk(1)).start == 7


class Holders(RowStatistic):
    """Statistic that records the rows that each worker processed."""

    def empty(self):
        return {}

    def learn_block(self, state, block):
        own = {distributed.get_worker().address: int(block[0])}
        return self.merge(state, own)

    def merge(self, state, other):
        return {name: state.get(name, 0) + other.get(name, 0) for name in state | other}


def test_a_worker_that_joins_later_gets_its_share(folder, monkeypatch):
    with (
        machines(1, processes=False) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        kept = ClusterBlocks(Parquet(folder, target="y"), client).kept(_length, 0)
        (alone,) = kept.reduce(Holders()).values()
        workers.scale(2)
        client.wait_for_workers(2, timeout=30)
        assert len(kept.reduce(Holders())) == 1  # not checked again yet
        monkeypatch.setattr(dask_cluster, "NEWCOMERS", 0.0)
        shares = kept.reduce(Holders())
        assert len(shares) == 2
        assert sum(shares.values()) == alone == 1000
        assert min(shares.values()) >= 400
        assert kept.reduce(Holders()) == shares  # it keeps them from then on


class KillsItsWorker(RowStatistic):
    """Statistic that counts rows and kills the first process that computes it.

    A file marks the kill.
    """

    def __init__(self, path):
        self.path = str(path)

    def empty(self):
        return 0

    def learn_block(self, state, block):
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return state + int(block[0])
        return os.kill(os.getpid(), signal.SIGKILL)

    def merge(self, state, other):
        return state + other


@pytest.mark.slow
@pytest.mark.posix
def test_a_killed_worker_does_not_change_the_result(folder, tmp_path):
    alone = Forward(MRMR(n_bins=5), n_features_to_select=4).fit(folder, target="y")
    with machines(2, processes=True) as workers, distributed.Client(workers) as client:
        search = Forward(MRMR(n_bins=5), n_features_to_select=4)
        found = search.fit(ClusterBlocks(Parquet(folder), client), target="y")
        assert_array_equal(found.scores_, alone.scores_)
        kept = ClusterBlocks(Parquet(folder, target="y"), client).kept(_length, 0)
        assert kept.reduce(KillsItsWorker(tmp_path / "killed")) == 1000
        assert (tmp_path / "killed").exists()


def _length(block):
    return np.array([len(block.y)])

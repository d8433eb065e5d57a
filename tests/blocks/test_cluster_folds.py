"""Folds, groups of columns and composed searches on the workers of a cluster."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tamis.blocks import ClusterBlocks, MemoryMap, Parquet
from tamis.criteria import HSIC, MRMR, CrossValidated, FisherScore
from tamis.search import Forward, Ranking, Then

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

pytestmark = [
    # sockets and event loops of a cluster that is shut down hard
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]

LDA = CrossValidated(LinearDiscriminantAnalysis(), cv=3)
FIRST = Ranking(FisherScore(), n_features_to_select=4)
SEARCHES = [
    Forward(LDA, n_features_to_select=2),
    Then(FIRST, Forward(LDA, n_features_to_select=2)),
    Then(FIRST, Forward(HSIC(), n_features_to_select=2)),
    Forward(MRMR(n_bins=3), n_features_to_select=2, feature_groups={"a": [1, 2]}),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("search", SEARCHES, ids=["folds", "then", "then held", "groups"])
def test_workers_give_the_same_result_as_the_table_in_memory(client, tmp_path, search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] + X[:, 2] + rng.normal(size=300) > 0).astype(int)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(6)}, "y": y})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=40)
    held = search.fit(X, y)
    order, scores = held.order_, held.scores_
    chunks = da.from_array(X, chunks=(70, 6)), da.from_array(y, chunks=70)
    with client.as_current():
        for source in (
            (ClusterBlocks(Parquet(tmp_path / "t.parquet", target="y"), client),),
            (ClusterBlocks(MemoryMap(X, y, block_rows=50), client),),
            chunks,
        ):
            found = search.fit(*source)
            assert_array_equal(found.order_, order)
            assert_allclose(found.scores_, scores, rtol=1e-9, atol=1e-12)

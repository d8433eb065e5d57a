"""Large objects are sent to the processes of a computer once, not with every task."""

import pickle
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB

import tamis._parallel as parallel
from tamis._parallel import filed
from tamis.evaluation import GivenSplits, evaluate


class Recorded:
    """Replacement of joblib's Parallel that pickles and unpickles each task before it runs."""

    sizes: list[int]

    def __init__(self, **options):
        pass

    def __call__(self, tasks):
        for function, args, options in tasks:
            sent = cloudpickle.dumps((function, args, options))
            Recorded.sizes.append(len(sent))
            function, args, options = pickle.loads(sent)
            yield function(*args, **options)


@pytest.fixture
def recorded(monkeypatch):
    Recorded.sizes = []
    monkeypatch.setattr(parallel, "Parallel", Recorded)
    return Recorded.sizes


def splits(n_rows, n_splits):
    rng = np.random.default_rng(0)
    orders = [rng.permutation(n_rows) for _ in range(n_splits)]
    return GivenSplits([o[: n_rows // 2] for o in orders], [o[n_rows // 2 :] for o in orders])


def test_tables_and_given_splits_are_not_sent_with_a_task(recorded):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 40)), rng.integers(0, 2, 2000)
    plan = splits(2000, 30)
    assert len(pickle.dumps(plan)) > 400_000
    there = evaluate(SelectKBest(k=3), (X, y), plan, estimators=GaussianNB(), sizes="own", n_jobs=2)
    assert len(recorded) == 30
    assert max(recorded) < 10_000
    here = evaluate(SelectKBest(k=3), (X, y), plan, estimators=GaussianNB(), sizes="own")
    assert [cell.mean for cell in there.means()] == [cell.mean for cell in here.means()]


def test_shared_objects_are_removed_afterwards(recorded):
    big = np.arange(1 << 18, dtype=float)
    seen = list(
        parallel.parallel_stream(lambda x: (x.sum(), x.flags.writeable), [(0, (big,))], n_jobs=2,
                                 shared=[big])
    )  # fmt: skip
    assert seen == [(0, (big.sum(), True))]
    with filed([big]) as (sent,):
        assert (sent.inside == big).all()
        assert Path(sent.folder, "buffer-0").stat().st_size == big.nbytes
        sent.inside[0] = 5.0  # only in this process
        assert np.fromfile(Path(sent.folder, "buffer-0"), dtype=float)[0] == 0
    assert not Path(sent.folder).exists()


def test_processes_can_read_shared_objects():
    big = np.arange(1 << 18, dtype=float)
    tasks = [(-k, (big, k)) for k in range(4)]
    found = parallel.parallel_stream(_entry, tasks, n_jobs=2, shared=[big])
    assert sorted(found) == [(-3, 3), (-2, 2), (-1, 1), (0, 0)]


def _entry(array, k):
    return float(array[k])

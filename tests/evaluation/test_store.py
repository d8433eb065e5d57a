"""The store: resuming, sharing, foreign files, full disks and killed processes."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import FunctionTransformer

from tamis.criteria import FisherScore
from tamis.datasets import load, make_weston
from tamis.evaluation import Realizations, Store, evaluate
from tamis.evaluation.store import COLUMNS, Address, checksum
from tamis.exceptions import DamagedRow, InvalidParameter, InvalidStore
from tamis.search import Ranking

WINE = load("wine")
KNN = KNeighborsClassifier()
FISHER = Ranking(FisherScore())
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def content(path):
    """Return everything in a store except times and the order of rows."""
    with closing(sqlite3.connect(path)) as file, file:
        query = (
            "SELECT key, expression, data, fingerprint, realization, seed, version, protocol, "
            "outcome FROM task"
        )
        return sorted(file.execute(query).fetchall())


def numbers(results):
    return [(p.method, p.data, p.realization, p.outcome._replace(seconds=0)) for p in results.tasks]


class Counted(Ranking):
    """Search that counts its fits."""

    fits = 0

    def fit(self, X, y=None, **params):
        type(self).fits += 1
        return super().fit(X, y, **params)


def test_finished_tasks_are_not_run_again(tmp_path):
    path = tmp_path / "s.sqlite"
    Counted.fits = 0
    few = evaluate({"f": Counted(FisherScore())}, WINE, Realizations(3), "n_features", store=path)
    assert Counted.fits == 3
    more = evaluate({"f": Counted(FisherScore())}, WINE, Realizations(5), "n_features", store=path)
    assert Counted.fits == 5
    assert numbers(more)[:3] == numbers(few)
    again = evaluate({"g": Counted(FisherScore())}, WINE, Realizations(5), "n_features", store=path)
    assert Counted.fits == 5  # a different name for the same method
    assert again.methods == ["g"]


@pytest.mark.parametrize(
    "change",
    [
        {"methods": {"f": Ranking(FisherScore(), n_features_to_select=2)}},
        {"data": (WINE.X + 1e-9, WINE.y)},
        {"plan": Realizations(2, seed=1)},
        {"plan": Realizations(2, train=0.4)},
        {"metrics": ["n_features", "useless"]},
        {"sizes": [1]},
        {"normalise": False},
        {"estimators": KNN},
    ],
    ids=lambda change: next(iter(change)),
)
def test_everything_that_changes_a_result_is_part_of_the_key(tmp_path, change):
    path = tmp_path / "s.sqlite"
    given = {
        "methods": {"f": FISHER},
        "data": (WINE.X, WINE.y),
        "plan": Realizations(2),
        "metrics": "n_features",
    }
    evaluate(**given, store=path)
    evaluate(**{**given, **change}, store=path)
    with Store(path) as store:
        assert len(store) == 4


def test_different_fitted_parts_and_functions_have_different_keys(tmp_path):
    path = tmp_path / "s.sqlite"
    frozen = [FrozenEstimator(SelectKBest(k=2).fit(X, WINE.y)) for X in (WINE.X, -WINE.X[:, ::-1])]
    functions = [FunctionTransformer(np.abs), FunctionTransformer(np.sign)]
    from tamis.evaluation.protocol import identify

    for pair in (frozen, functions):
        assert len({identify(method, True) for method in pair}) == 2
    with pytest.raises(InvalidParameter, match="named functions"):
        evaluate(FunctionTransformer(lambda x: x), WINE, Realizations(1), store=path)


def test_a_store_can_be_opened_later_and_read_as_a_frame(tmp_path):
    path = tmp_path / "s.sqlite"
    evaluate({"f": FISHER}, WINE, Realizations(2), "n_features", store=path, sizes=[3])
    with Store(path) as store:
        frame = store.to_frame()
        assert repr(store) == f"<Store {path}>"
    assert frame["realization"].to_list() == [0, 1]
    assert frame["expression"].to_list() == ["Ranking(FisherScore())"] * 2


def test_numbers_are_stored_exactly(tmp_path):
    given = ({"f": FISHER, "k": KNN}, make_weston(80, random_state=0), Realizations(3))
    in_memory = evaluate(*given, estimators=KNN)
    kept = evaluate(*given, estimators=KNN, store=tmp_path / "s.sqlite")
    again = evaluate(*given, estimators=KNN, store=tmp_path / "s.sqlite")
    assert numbers(in_memory) == numbers(kept) == numbers(again)


def test_progress_includes_stored_tasks(tmp_path):
    path, calls = tmp_path / "s.sqlite", []
    evaluate(FISHER, WINE, Realizations(2), "n_features", store=path)
    evaluate(
        FISHER,
        WINE,
        Realizations(4),
        "n_features",
        store=path,
        progress=lambda *counts: calls.append(counts),
    )
    assert calls == [(2, 4), (3, 4), (4, 4)]


# ---- files that cannot be used ----


def test_a_foreign_database_is_not_changed(tmp_path):
    path = tmp_path / "foreign.sqlite"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE task (mine)")
    before = path.read_bytes()
    with pytest.raises(InvalidStore, match="another program and was not changed"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_not_a_database_is_not_changed(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n" * 1000)
    before = path.read_bytes()
    with pytest.raises(InvalidStore, match="is not a store and was not changed"):
        evaluate(FISHER, WINE, Realizations(1), "n_features", store=path)
    assert path.read_bytes() == before


def test_a_damaged_store_is_reported(tmp_path):
    path = tmp_path / "s.sqlite"
    evaluate(FISHER, WINE, Realizations(40), "n_features", store=path)
    whole = bytearray(path.read_bytes())
    whole[4096:] = os.urandom(len(whole) - 4096)
    path.write_bytes(whole)
    with pytest.raises(InvalidStore, match="damaged"):
        evaluate(FISHER, WINE, Realizations(40), "n_features", store=path)


def test_a_truncated_store_is_reported(tmp_path):
    path = tmp_path / "s.sqlite"
    evaluate(FISHER, WINE, Realizations(40), "n_features", store=path)
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(InvalidStore, match="cannot be used"):
        evaluate(FISHER, WINE, Realizations(40), "n_features", store=path)


def test_a_different_format_is_refused(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).close()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(InvalidStore, match=r"another version of tamis \(format 99"):
        Store(path)


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(InvalidStore, match="is not a folder"):
        Store(tmp_path / "nowhere" / "s.sqlite")
    with pytest.raises(InvalidStore, match="cannot be opened"):
        Store(tmp_path)


def changed(path, statement, *values):
    """Change a store from outside."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(statement, values)


DAMAGE = {
    "another outcome": (
        "UPDATE task SET outcome = replace(outcome, '1', '2') WHERE realization = 1",
    ),
    "another time": ("UPDATE task SET seconds = seconds + 1 WHERE realization = 1",),
    "another method": ("UPDATE task SET expression = 'x' WHERE realization = 1",),
    "an empty outcome": ("UPDATE task SET outcome = '{}' WHERE realization = 1",),
    "null": ("UPDATE task SET outcome = 'null' WHERE realization = 1",),
    "deep JSON": ("UPDATE task SET outcome = ? WHERE realization = 1", "[" * 100_000),
    "no UTF-8": ("UPDATE task SET outcome = CAST(x'ff80fe' AS TEXT) WHERE realization = 1",),
    "bytes": ("UPDATE task SET outcome = x'00ff' WHERE realization = 1",),
    "a number": ("UPDATE task SET outcome = 7 WHERE realization = 1",),
    "another checksum": ("UPDATE task SET checksum = 'x' WHERE realization = 1",),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_row_is_reported_and_computed_again(tmp_path, name):
    path = tmp_path / "s.sqlite"
    asked = ({"f": FISHER}, WINE, Realizations(3), "n_features")
    whole = evaluate(*asked, store=path)
    changed(path, *DAMAGE[name])
    method = "x" if name == "another method" else r"Ranking\(FisherScore\(\)\)"
    with pytest.warns(DamagedRow, match=rf"s\.sqlite is damaged: {method} on wine, realization 1"):
        again = evaluate(*asked, store=path)
    assert numbers(again) == numbers(whole)
    assert evaluate(*asked, store=path).tasks == again.tasks  # without a warning


@pytest.mark.parametrize("text", ["null", "[" * 100_000, '{"scores": 3}', "7", ""])
def test_an_invalid_outcome_with_a_correct_checksum_is_computed_again(tmp_path, text):
    """A wrong outcome with a correct checksum causes no traceback either."""
    path = tmp_path / "s.sqlite"
    whole = evaluate({"f": FISHER}, WINE, Realizations(1), "n_features", store=path)
    with closing(sqlite3.connect(path)) as file, file:
        query = f"SELECT {', '.join(COLUMNS)} FROM task"
        *address, _, seconds = file.execute(query).fetchone()
        row = (text, checksum(*address, text, seconds))
        file.execute("UPDATE task SET outcome = ?, checksum = ?", row)
    with pytest.warns(DamagedRow):
        again = evaluate({"f": FISHER}, WINE, Realizations(1), "n_features", store=path)
    assert numbers(again) == numbers(whole)


def test_no_flipped_bit_changes_an_outcome(tmp_path):
    """Every outcome is the stored one, or the file is refused."""
    path, asked = tmp_path / "s.sqlite", ({"f": FISHER}, WINE, Realizations(4), "n_features")
    whole = evaluate(*asked, store=path, sizes=[2])
    sound, draw = path.read_bytes(), np.random.default_rng(0)
    held = [i for i, byte in enumerate(sound) if byte]  # most of a file is empty
    said = {"computed again": 0, "refused": 0, "the same": 0}
    for place in draw.choice(held, 120, replace=False):
        flipped = bytearray(sound)
        flipped[place] ^= 1 << draw.integers(8)
        path.write_bytes(flipped)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = evaluate(*asked, store=path, sizes=[2])
            except InvalidStore:
                said["refused"] += 1
                continue
        assert numbers(found) == numbers(whole)
        damaged = any(issubclass(w.category, DamagedRow) for w in caught)
        said["computed again" if damaged else "the same"] += 1
    assert min(said.values()) > 0


def test_a_damaged_checkpoint_is_reported_and_ignored(tmp_path):
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.checkpoint("k", "one")
        store.checkpoint("l", "two")
    changed(path, "UPDATE checkpoint SET record = 'other' WHERE key = 'k'")
    with Store(path) as store:
        assert store.checkpointed("k") is None
        assert store.checkpointed("l") == "two"
        assert store.drop_damaged() == ["the checkpoint of task k"]
        assert store.checkpoints() == {"l"}


@pytest.mark.parametrize("text", ["null", "[" * 100_000, "{}", "\udcff"])
def test_a_checkpoint_that_is_not_a_record_is_ignored(tmp_path, text):
    path, asked = tmp_path / "s.sqlite", ({"f": FISHER}, WINE, Realizations(1), "n_features")
    whole = evaluate(*asked, store=tmp_path / "whole.sqlite")
    with Store(tmp_path / "whole.sqlite") as store:
        (key,) = store.keys()
    with Store(path) as store:
        store.checkpoint(key, text.encode("utf-8", "replace").decode())
    assert numbers(evaluate(*asked, store=path)) == numbers(whole)


def test_nothing_is_lost_if_the_disk_is_full(tmp_path):
    """SQLite's limit on the number of pages causes the error of a full disk."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store._file.execute("PRAGMA max_page_count = 12")
        with pytest.raises(
            InvalidStore, match=r"disk is full\. Free some space and run again"
        ) as caught:
            evaluate(FISHER, WINE, Realizations(60), "n_features", store=store)
        done = len(store)
    assert "Finished tasks are kept" in str(caught.value)
    assert 0 < done < 60
    whole = evaluate(FISHER, WINE, Realizations(60), "n_features", store=path)
    assert len(whole.tasks) == 60


# ---- checkpoints ----


def test_a_checkpoint_is_stored_until_it_is_deleted(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        assert store.checkpointed("k") is None
        store.checkpoint("k", "one")
        store.checkpoint("k", "two")
        assert store.checkpointed("k") == "two"
        store.forget_checkpoint("k")
        assert store.checkpointed("k") is None


def test_addresses_differ_in_every_part():
    parts = ("e", "d", "f", 1, 2, "v", "p")
    keys = {Address(*parts).key}
    for i, part in enumerate(parts):
        changed = list(parts)
        changed[i] = part + 1 if isinstance(part, int) else part + "x"
        keys.add(Address(*changed).key)
    assert len(keys) == len(parts) + 1


# ---- processes ----

EXPERIMENT = textwrap.dedent("""
    import sys, time
    from sklearn.neighbors import KNeighborsClassifier
    from tamis.criteria import FisherScore, KolmogorovSmirnov
    from tamis.datasets import make_weston
    from tamis.evaluation import Realizations, evaluate
    from tamis.search import Ranking

    def experiment(path, n, pause):
        evaluate(
            {"f": Ranking(FisherScore()), "ks": Ranking(KolmogorovSmirnov())},
            make_weston(120, random_state=0),
            Realizations(n, train=60),
            estimators=KNeighborsClassifier(),
            sizes=[1, 2],
            store=path,
            progress=lambda *_: time.sleep(pause),
        )
""")


class Forked:
    """Run the experiment in a fork of this process, which starts at once."""

    def __init__(self, path, n, pause):
        names = {}
        exec(EXPERIMENT, names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # warnings about forks with threads
            self.pid = os.fork()
        if self.pid == 0:
            try:
                names["experiment"](path, n, pause)
            finally:
                os._exit(sys.exc_info()[0] is not None)
        self.code = None

    def poll(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self):
        while self.poll() is None:
            time.sleep(0.002)
        return self.code

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def started(path, n, pause):
    """Run the experiment in a new process."""
    code = f"{EXPERIMENT}\nexperiment(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))"
    return subprocess.Popen([sys.executable, "-c", code, str(path), str(n), str(pause)])


def rows_in(path):
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as file, file:
            return file.execute("SELECT count(*) FROM task").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def killed_until_done(start, path, n, n_kills, seed):
    """Kill the process at random moments while it writes tasks, and finally let it finish."""
    draw = np.random.default_rng(seed)
    for _ in range(n_kills):
        process, before = start(path, n, 0.01), rows_in(path)
        while process.poll() is None and rows_in(path) <= before:
            time.sleep(0.002)
        time.sleep(draw.random() * 0.05)
        assert process.poll() is None, "done before it could be killed"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert rows_in(path) < 2 * n
    assert start(path, n, 0.0).wait() == 0


@needs_fork
@pytest.mark.posix
def test_killed_runs_end_with_the_same_results(tmp_path):
    assert Forked(tmp_path / "whole.sqlite", 30, 0.0).wait() == 0
    killed_until_done(Forked, tmp_path / "killed.sqlite", 30, n_kills=3, seed=0)
    assert content(tmp_path / "killed.sqlite") == content(tmp_path / "whole.sqlite")


@pytest.mark.slow
@pytest.mark.posix
def test_a_run_killed_twenty_times_ends_with_the_same_results(tmp_path):
    assert started(tmp_path / "whole.sqlite", 200, 0.0).wait() == 0
    killed_until_done(started, tmp_path / "killed.sqlite", 200, n_kills=20, seed=1)
    assert content(tmp_path / "killed.sqlite") == content(tmp_path / "whole.sqlite")


@needs_fork
@pytest.mark.posix
def test_many_processes_can_create_a_store_at_the_same_time(tmp_path):
    for attempt in range(10):
        path, go = tmp_path / f"{attempt}.sqlite", time.time() + 0.05
        children = []
        for name in range(6):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                try:
                    while time.time() < go:
                        pass
                    with Store(path) as store:
                        store.checkpoint(str(name), "here")
                finally:
                    os._exit(sys.exc_info()[0] is not None)
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
        assert codes == [0] * 6
        with Store(path) as store:
            assert len(store.checkpoints()) == 6


@needs_fork
@pytest.mark.posix
def test_two_processes_share_a_store(tmp_path):
    path = tmp_path / "shared.sqlite"
    both = [Forked(path, 30, 0.005) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert Forked(tmp_path / "whole.sqlite", 30, 0.0).wait() == 0
    assert content(path) == content(tmp_path / "whole.sqlite")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
@pytest.mark.slow
def test_nothing_is_lost_if_the_file_system_is_full(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        with pytest.raises(InvalidStore, match="disk is full"):
            evaluate(FISHER, WINE, Realizations(900), "n_features", store=small / "s.sqlite")
        shutil.copytree(small, tmp_path / "rescued")
    finally:
        subprocess.run(["umount", small], check=True)
    with Store(tmp_path / "rescued" / "s.sqlite") as store:
        assert 0 < len(store) < 900

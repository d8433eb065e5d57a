"""``tamis select`` of a table that is read in blocks of rows."""

import json
import shlex

import fsspec
import pytest

from tamis.blocks import dispatch
from tamis.cli import blocks
from tamis.density.planes import PivotCounts
from tamis.exceptions import ClusterLost


@pytest.fixture
def parquet(folder, frame):
    """The table as a folder of two files."""
    (folder / "wine").mkdir()
    for number, rows in enumerate((frame[:100], frame[100:])):
        rows.write_parquet(folder / "wine" / f"{number}.parquet", row_group_size=30)
    frame.write_parquet(folder / "wine.parquet")
    return folder


@pytest.mark.parametrize("method", ["mrmr", "sffs-j3", "fisher-score"])
def test_a_folder_gives_what_the_table_gives(tamis, parquet, method):
    held = tamis("select", "wine.csv", method, "-t", "kind", "-k", 2, "--json")
    found = tamis("select", "wine", method, "-t", "kind", "-k", 2, "--json")
    assert found.exit_code == 0, found.output
    held, found = json.loads(held.stdout), json.loads(found.stdout)
    assert found["selected"] == held["selected"]
    assert found["task"] == "classification"
    told = tamis("select", "wine", method, "-t", "kind", "-k", 2).stdout
    assert told.startswith("wine: 178 rows in blocks, 6 columns, target kind (3 classes)\n")


def test_a_file_that_does_not_fit_is_read_in_blocks(tamis, parquet, monkeypatch):
    held = tamis("select", "wine.parquet", "mrmr", "-t", "kind", "-k", 2)
    assert "in blocks" not in held.stdout
    monkeypatch.setattr(blocks, "free_memory", lambda: 1000.0)
    found = tamis("select", "wine.parquet", "mrmr", "-t", "kind", "-k", 2)
    assert "178 rows in blocks" in found.stdout
    assert found.stdout.splitlines()[3:] == held.stdout.splitlines()[3:]


def test_columns_are_left_out_and_the_record_is_continued(tamis, parquet):
    first = ("select", "wine", "-t", "kind", "--drop", "alcohol")
    found = tamis(*first, "mrmr", "-k", 1, "--save-record", "steps.json", "--quiet")
    assert found.exit_code == 0, found.output
    longer = tamis(*first, "mrmr", "-k", 2, "--resume", "steps.json", "--json")
    assert longer.exit_code == 0, longer.output
    assert "alcohol" not in longer.stdout
    assert len(json.loads(longer.stdout)["selected"]) == 2


def test_a_lost_cluster_leaves_a_record_to_continue_from(tamis, parquet, monkeypatch):
    whole = tamis("select", "wine", "mrmr", "-t", "kind", "-k", 4)
    own, left = PivotCounts.learn_block, iter(range(2 * 7 + 1))  # the class, a pick, and a block

    def learn_block(self, state, block):
        if next(left, None) is None:
            raise ClusterLost("The cluster is gone.")
        return own(self, state, block)

    with monkeypatch.context() as patch:
        patch.setattr(PivotCounts, "learn_block", learn_block)
        lost = tamis("select", "wine", "mrmr", "-t", "kind", "-k", 4)
    assert lost.exit_code == 2
    kept, gone = lost.stderr.splitlines()
    told, _, command = kept.partition(" To continue, write: tamis ")
    assert told == "tamis: the cluster was lost; 2 steps are in tamis-wine/record.json."
    assert gone == "tamis: The cluster is gone."
    again = tamis(*shlex.split(command))
    assert again.exit_code == 0, again.output
    assert again.stdout == whole.stdout


def test_the_automatic_selection_looks_at_rows_of_a_folder(tamis, parquet, monkeypatch):
    whole = tamis("select", "wine.csv", "-t", "kind", "--budget", "1s", "--json", "--folder", "a")
    same = tamis("select", "wine", "-t", "kind", "--budget", "1s", "--json", "--folder", "b")
    assert json.loads(same.stdout)["selected"] == json.loads(whole.stdout)["selected"]
    assert "drawn" not in same.output
    monkeypatch.setattr(dispatch, "SAMPLE", 120)
    asked = "select", "wine", "-t", "kind", "--budget", "1s", "--folder", "c"
    found = tamis(*asked)
    assert found.exit_code == 0, found.output
    told = "120 of 178 rows, drawn at random with seed 0"
    assert f"note: The table is large; {told}, are used" in found.stderr
    assert f"rows used: {told}" in found.stdout
    assert f"rows: {told}" in (parquet / "c" / "report.html").read_text()
    assert told in (parquet / "c" / "record.json").read_text()
    again = tamis("select", "wine", "-t", "kind", "--resume", "c/record.json")
    assert again.exit_code == 0, again.output
    assert f"rows used: {told}" in again.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("-t", "kind", "--dask", "local"), "Leave --dask out, or name a METHOD, such as mrmr"),
        (("mrmr", "-t", "kind", "--report"), "--report needs the whole table"),
        (("mrmr", "-t", "kind", "--dry-run"), "--dry-run needs the whole table"),
        (("mrmr", "-t", "kin"), "no column 'kin'. Did you mean kind?"),
        (("mrmr",), "Which column is the target? Write --target with"),
        (("mrmr", "-t", "kind", "--drop", "alcool"), "Did you mean alcohol?"),
        (("svm-rfe", "-t", "kind"), "sample"),
    ],
)
def test_options_that_need_the_whole_table_are_refused(refused, parquet, args, told):
    assert told in refused("select", "wine", *args)


def test_workers_of_a_cluster_can_be_named(refused, parquet, monkeypatch):
    monkeypatch.setattr("tamis._parallel.REACH", 1)
    told = refused("select", "wine", "mrmr", "-t", "kind", "--dask", "tcp://127.0.0.1:9")
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in told


@pytest.mark.slow
def test_a_local_cluster_prints_the_same_result(tamis, parquet):
    alone = tamis("select", "wine", "mrmr", "-t", "kind", "-k", 3)
    found = tamis("select", "wine", "mrmr", "-t", "kind", "-k", 3, "--dask", "local", "--jobs", 2)
    assert found.exit_code == 0, found.output
    assert found.stdout == alone.stdout


@pytest.fixture
def store(parquet):
    """An object store with the table in it."""
    files = fsspec.filesystem("memory")
    for file in sorted((parquet / "wine").glob("*.parquet")):
        files.pipe(f"/visits/year=2025/{file.name}", file.read_bytes())
    files.pipe("/visits/_temporary/0.parquet", b"half written")
    yield files
    files.rm("/visits", recursive=True)


@pytest.mark.parametrize("method", [("mrmr", "-k", 2), ("--budget", "1s", "--folder", "a")])
def test_a_store_gives_what_a_folder_gives(tamis, store, method):
    asked = (*method, "-t", "kind", "--json")
    here = json.loads(tamis("select", "wine", *asked).stdout)
    found = tamis("select", "memory://visits", *asked, *(["--force"] if "-k" not in method else []))
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["selected"] == here["selected"]
    assert json.loads(found.stdout)["file"] == "memory://visits"


def test_files_of_object_stores_and_file_addresses_are_read(tamis, store, parquet):
    for where in ("memory://visits/year=2025/0.parquet", f"file://{parquet}/wine/0.parquet"):
        found = tamis("select", where, "mrmr", "-t", "kind", "-k", 1)
        assert found.stdout.startswith("0.parquet: 100 rows in blocks"), found.output


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("memory://visit", "There is nothing at memory://visit"),
        ("nowhere://visits", "nowhere://visits cannot be reached: Protocol not known: nowhere"),
    ],
)
def test_an_invalid_store_is_reported_in_one_sentence(refused, store, where, told):
    assert told in refused("select", where, "mrmr", "-t", "kind")


def test_a_missing_package_of_a_store_is_reported_in_one_sentence(refused, monkeypatch):
    def missing(where):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    told = refused("select", "s3://bucket/visits", "mrmr", "-t", "kind")
    assert told == (
        "s3://bucket/visits needs a package that is not installed: Install s3fs to access S3. "
        "Write pip install with its name."
    )

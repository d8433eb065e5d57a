"""Every command that reads a table, on tables that are none: one sentence, exit code 2, no file."""

import errno
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

EXPERIMENT = """
title = "Mine"
data = "{table}"
target = "{target}"
train = 0.75
sizes = [1]
[methods]
Fisher = "Ranking(FisherScore())"
[estimators]
ridge = "RidgeClassifier()"
"""


def select(folder, table, target, *more):
    return ["select", table, "-t", target, "fisher-score", "-k", "1", *more]


def auto(folder, table, target, *more):
    return ["select", table, "-t", target, "--budget", "0.1s", *more]


def compare(folder, table, target, *more):
    return ["compare", table, "-t", target, "fisher-score", "-r", "2", *more]


def tune(folder, table, target, *more):
    return ["tune", table, "-t", target, "--kernel", "linear", *more]


def reproduce(folder, table, target, *more):
    (folder / "mine.toml").write_text(EXPERIMENT.format(table=table, target=target))
    return ["reproduce", "mine.toml", "--realizations", "2", *more]


COMMANDS = [select, auto, compare, tune, reproduce]
every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.__name__)


def numbers(n=30):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(n, 3)), schema=["a", "b", "c"])
    return frame.with_columns(pl.Series("y", ["no", "yes"] * (n // 2) + ["no"] * (n % 2)))


ENDLESS = numbers(2).with_columns(a=pl.lit(float("inf")))


def text_of(frame, **options):
    return frame.write_csv(**options).encode()


#: What a file holds, the target that is asked for, and what the sentence names.
CASES = {
    "wrong delimiter": (text_of(numbers(), separator=":"), "y", "no column 'y'"),
    "empty": (b"", "y", "empty"),
    "blank": (b"\n\n  \n", "y", "t.csv"),
    "header only": (b"a,b,y\n", "y", "no rows"),
    "target missing": (text_of(numbers()), "z", "no column 'z'"),
    "target alone": (text_of(numbers().select("y")), "y", "No column is left"),
    "target constant": (text_of(numbers().with_columns(y=pl.lit("no"))), "y", "same value"),
    "target with gaps": (
        text_of(numbers()).replace(b",no\n", b",\n", 3), "y", "3 missing values"
    ),
    "names twice": (b"a,a,y\n1,2,0\n2,3,1\n4,5,0\n", "y", "more than one column called 'a'"),
    "one row": (b"a,b,y\n1,2,0\n", "y", "row"),
    "binary": (bytes(range(256)) * 40, "y", "not a text file"),
    "dos": ("a,größe,y\n1,2,0\n".encode("cp850"), "y", "UTF-8"),
    "ragged": (b"a,b,y\n1,2,0\n1,2,0,7,8\n1,2,1\n", "y", "t.csv"),
    "infinite": (text_of(numbers().vstack(ENDLESS)), "y", "infinite"),
    "only constants": (b"a,b,y\n" + b"1,2,0\n1,2,1\n" * 9, "y", "left"),
}  # fmt: skip


@every_command
@pytest.mark.parametrize("case", CASES)
def test_tables_that_are_none(refused, folder, command, case):
    content, target, named = CASES[case]
    (folder / "t.csv").write_bytes(content)
    sentence = refused(*command(folder, "t.csv", target))
    assert named in sentence
    assert sentence.endswith((".", "?"))


@every_command
@pytest.mark.parametrize(
    ("table", "named"), [("nothing.csv", "no file"), ("inside", "is a folder"), ("t.xyz", "format")]
)
def test_files_that_are_none(refused, folder, command, table, named):
    (folder / "inside").mkdir()
    (folder / "t.xyz").write_bytes(text_of(numbers()))
    assert named in refused(*command(folder, table, "y"))


def test_results_are_written_if_the_report_needs_too_much_memory(tamis, folder):
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    (folder / "t.csv").write_bytes(text_of(numbers()))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (60 * 2**30, most))
    try:
        result = tamis("select", folder / "t.csv", "-t", "y", "mrmr", "--report")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert "ulimit -v unlimited. selected.csv, ranking.csv and record.json are in tamis-t" in last
    files = {path.name for path in (folder / "tamis-t").iterdir()}
    assert files == {"selected.csv", "ranking.csv", "record.json"}


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (select, ["-o", "{}/r.csv"]),
        (select, ["--save-record", "{}/r.json"]),
        (select, ["--folder", "{}/new"]),
        (auto, ["--folder", "{}/new"]),
        (compare, ["-o", "{}/r.csv"]),
        (compare, ["--folder", "{}/new"]),
        (compare, ["--store", "{}/r.sqlite"]),
        (tune, ["-o", "{}/r.csv"]),
        (reproduce, ["-o", "{}/r.csv"]),
        (reproduce, ["--store", "{}/r.sqlite"]),
    ],
)
@pytest.mark.parametrize(
    "place", [pytest.param("/proc", marks=pytest.mark.posix), "nowhere", "t.csv"]
)
def test_places_that_cannot_be_written(refused, folder, command, more, place):
    if (more[0], place) == ("--folder", "nowhere"):
        pytest.skip("is made")
    (folder / "t.csv").write_bytes(text_of(numbers()))
    args = command(folder, "t.csv", "y", *(word.format(place) for word in more))
    sentence = refused(*args)
    assert place in sentence


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (select, ["-o", "r.csv"]),
        (select, ["-o", "r.json"]),
        (select, ["--save-record", "r.json"]),
        (select, ["--report", "--resamples", "0"]),
        (auto, []),
        (compare, ["-o", "r.csv"]),
        (tune, ["-o", "r.csv"]),
        (reproduce, ["-o", "r.csv"]),
    ],
)
def test_a_full_disk_leaves_no_partial_files(tamis, folder, monkeypatch, command, more):
    (folder / "t.csv").write_bytes(text_of(numbers()))
    args = command(folder, "t.csv", "y", *more)
    before = sorted(folder.rglob("*"))

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "replace", full)
    result = tamis(*args)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert "No space left" in last
    assert "r." in last or "tamis-t" in last
    assert sorted(folder.rglob("*")) == before


def test_the_error_of_a_model_ends_with_one_period(refused):
    model = 'Forward(CrossValidated(SVC(), scoring="neg_log_loss"))'
    sentence = refused("select", "wine.csv", "-t", "kind", model)
    assert "SVC failed in fold 0" in sentence
    assert sentence.endswith("predict_proba.")
    assert not sentence.endswith("..")

"""A folder with tables in every format, and a way to run the command there."""

import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from tamis.cli import folder as results
from tamis.cli.app import app
from tamis.datasets import load


def wine_frame():
    """Six columns of the wine table and a target of text."""
    X, y, names, classes, *_ = load("wine")
    frame = pl.DataFrame(X[:, :6], schema=names[:6].tolist())
    return frame.with_columns(pl.Series("kind", classes[y]))


@pytest.fixture(autouse=True)
def _no_refits(monkeypatch):
    """Save the time of fits without each column."""
    monkeypatch.setattr(results, "REFITS", 0.0)


@pytest.fixture
def frame():
    return wine_frame()


@pytest.fixture
def folder(tmp_path, monkeypatch, frame):
    """A temporary folder, entered, with ``wine.csv`` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    frame.write_csv("wine.csv")
    return tmp_path


@pytest.fixture
def tamis(folder):
    """Run the command with these arguments inside the folder."""

    def run(*args):
        return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="tamis")

    return run


@pytest.fixture
def refused(tamis, folder):
    """Run a command that must fail: exit code 2, one sentence, nothing written; the sentence."""

    def run(*args):
        before = sorted(folder.rglob("*"))
        result = tamis(*args)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("tamis: ")
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith("\n")
        assert "Traceback" not in result.stderr
        assert sorted(folder.rglob("*")) == before
        return result.stderr.strip().removeprefix("tamis: ")

    return run


@pytest.fixture
def libsvm(folder):
    """Write the wine table as a LIBSVM file that counts from this number."""

    def write(name, start):
        X, y, *_ = load("wine")
        dump_svmlight_file(X[:, :6], y, name, zero_based=start == 0)
        return folder / name

    return write

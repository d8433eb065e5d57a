"""A user's table in an experiment file. It must be in the folder of the file or below."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis.criteria import Correlation, FisherScore
from tamis.datasets import load
from tamis.evaluation import Realizations, evaluate
from tamis.exceptions import InvalidSpec
from tamis.recipes import recipe
from tamis.search import Ranking
from tamis.table import TableEncoder, TableSelector
from tamis.table import read as read_table
from tamis.table.rows import FrameSource, frame_rows
from tamis_book import read, reproduce

MINE = """
title = "My table"
data = "wine.csv"
target = "kind"
train = 0.75
sizes = [1, 3]
realizations = 4
[methods]
Fisher = "Ranking(FisherScore())"
r = "correlation"
[estimators]
ridge = "RidgeClassifier()"
"""


@pytest.fixture
def folder(tmp_path):
    X, y, names, classes, *_ = load("wine")
    frame = pl.DataFrame(X[:, :6], schema=names[:6].tolist())
    frame.with_columns(pl.Series("kind", classes[y])).write_csv(tmp_path / "wine.csv")
    (tmp_path / "mine.toml").write_text(MINE)
    return tmp_path


def rewritten(folder, *changes):
    text = MINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "mine.toml").write_text(text)
    return str(folder / "mine.toml")


def test_the_numbers_agree_with_evaluate(folder):
    found = reproduce(str(folder / "mine.toml"))
    assert not found.missing
    X, y, _, classes, *_ = load("wine")
    expected = evaluate(
        {"Fisher": Ranking(FisherScore()), "r": Ranking(Correlation())},
        {"wine.csv": (X[:, :6], classes[y])},
        Realizations(4, train=0.75),
        estimators=RidgeClassifier(),
        sizes=[1, 3],
    )
    assert [cell.part for cell in found.cells] == ["wine.csv"] * 4
    for cell in found.cells:
        values = expected.values("error", cell.method, size=cell.size).values()
        assert cell.ours == pytest.approx(np.mean(list(values)), abs=1e-12)
        assert cell.published is None


def test_a_part_may_name_a_table_too(folder):
    text = """
title = "Mine"
source = "me"
[methods]
r = "correlation"
[estimators]
ridge = "RidgeClassifier()"
[[parts]]
name = "all of it"
data = { read = "wine.csv", target = "kind", drop = ["ash"] }
folds = 3
realizations = 3
"""
    (folder / "parts.toml").write_text(text.replace("realizations = 3\n", ""))
    found = reproduce(str(folder / "parts.toml"), realizations=3)
    assert not found.missing
    assert found.cells[0].part == "all of it"
    assert found.results["all of it"].tasks[0].outcome.n_features == 5


def test_a_mixed_table_is_encoded_from_its_training_rows(folder):
    frame = pl.read_csv(folder / "wine.csv")
    levels = pl.Series("site", ["north", "south", None] * (len(frame) // 3) + ["north"])
    frame.with_columns(levels[: len(frame)]).write_csv(folder / "mixed.csv")
    name = rewritten(folder, ('"wine.csv"', '"mixed.csv"'), ('"correlation"', '"ridge-rfe"'))
    found = reproduce(name)
    assert not found.missing
    table = read_table(folder / "mixed.csv", "kind")
    data = table.labelled()
    expected = evaluate(
        {"r": TableSelector(recipe("ridge-rfe"))},
        {"mixed.csv": FrameSource("mixed.csv", frame_rows(data.X, data.y, "mixed.csv"))},
        Realizations(4, train=0.75),
        estimators=make_pipeline(TableEncoder(), StandardScaler(), RidgeClassifier()),
        sizes=[1, 3],
        normalise=False,
    )
    for cell in (cell for cell in found.cells if cell.method == "r"):
        values = expected.values("error", "r", size=cell.size).values()
        assert cell.ours == pytest.approx(np.mean(list(values)), abs=1e-12)


@pytest.mark.parametrize(
    "path", ["../wine.csv", "/etc/passwd", "sub/../../wine.csv", "~/wine.csv", "-", "", "."]
)
def test_a_table_outside_the_folder_of_the_file_is_refused(folder, path):
    inside = folder / "deep"
    inside.mkdir()
    name = rewritten(folder, ('"wine.csv"', f'"{path}"'))
    (folder / "mine.toml").rename(inside / "mine.toml")
    with pytest.raises(InvalidSpec, match="next to the experiment file"):
        read(str(inside / "mine.toml"))
    assert name


@pytest.mark.posix
def test_a_link_out_of_the_folder_is_refused(folder):
    inside = folder / "deep"
    inside.mkdir()
    (inside / "wine.csv").symlink_to(folder / "wine.csv")
    (folder / "mine.toml").rename(inside / "mine.toml")
    with pytest.raises(InvalidSpec, match="next to the experiment file"):
        read(str(inside / "mine.toml"))


def test_a_table_in_a_subfolder_is_read(folder):
    (folder / "tables").mkdir()
    (folder / "wine.csv").rename(folder / "tables/wine.csv")
    found = reproduce(rewritten(folder, ('"wine.csv"', '"tables/wine.csv"')), realizations=2)
    assert not found.missing


def test_an_unreadable_table_is_reported(folder):
    found = reproduce(rewritten(folder, ('"wine.csv"', '"win.csv"')))
    assert len(found.missing) == 1
    assert "There is no file" in found.missing[0]
    found = reproduce(rewritten(folder, ('"kind"', '"knd"')))
    assert "Did you mean kind" in found.missing[0]
    with pytest.raises(InvalidSpec, match="target"):
        read(rewritten(folder, ('target = "kind"\n', "")))
    with pytest.raises(InvalidSpec, match="target can only be used"):
        read(rewritten(folder, ('data = "wine.csv"', 'data = { load = "wine" }')))
    with pytest.raises(InvalidSpec, match="unknown key 'taget'"):
        read(rewritten(folder, ('target = "kind"', 'taget = "kind"')))


def test_a_method_for_a_different_target_is_left_out_with_a_reason(folder):
    found = reproduce(rewritten(folder, ('"correlation"', '"svr-rfe"')), realizations=2)
    assert {cell.method for cell in found.cells} == {"Fisher"}
    assert "needs a numeric target" in found.missing[0]

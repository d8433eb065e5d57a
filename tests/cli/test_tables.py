"""``tamis select`` on tables as people have them."""

import gzip
import json

import numpy as np
import polars as pl
import pytest

from tamis.datasets import make_genes, make_mixed
from tests.cli.test_select import kept


@pytest.fixture
def genes(folder):
    made = make_genes(80, random_state=0, n_genes=120, n_gaps=9)
    frame = made.to_frame().with_columns(pl.Series("kind", made.y))
    (folder / "genes.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    return frame


def notes(result):
    return [line for line in result.stderr.splitlines() if line.startswith("tamis: note: ")]


def test_the_hard_table_needs_no_options(tamis, genes):
    result = tamis("select", "genes.csv.gz", "-t", "kind", "-k", 8, "-o", "r.json")
    assert result.exit_code == 0, result.output
    first, *_ = result.stdout.splitlines()
    assert first == "genes.csv.gz: 80 rows, 124 columns, target kind (3 classes)"
    assert len(kept(result)) == 8
    assert not {"sample", "code"} & set(kept(result))
    assert set(kept(result)) <= set(genes.columns)
    said = " ".join(notes(result))
    found = (
        "'sample' is left out",
        "'code' is left out",
        "9 columns have missing values",
        "'g3_copy'",
    )
    assert all(words in said for words in found)
    assert "'taken' is used as its position in time" in said
    with open("r.json") as stream:
        written = json.load(stream)
    assert len(written["alerts"]) == len(notes(result)) == 5
    assert sorted(written["selected"]) == sorted(kept(result))
    assert written["method"].startswith("TableSelector(Auto(")


def test_columns_that_are_left_out_can_be_kept(tamis, genes):
    args = ["select", "genes.csv.gz", "-t", "kind", "fisher-score", "-k", 1]
    result = tamis(*args, "--keep", "code")
    assert kept(result) == ["code"]
    assert "'code' alone predicts the target almost perfectly" in result.stderr
    assert "--keep" in tamis("select", "--help").stdout


@pytest.mark.parametrize("args", [["--target", "kind"], []])
def test_a_dry_run_shows_the_table(tamis, genes, folder, args):
    before = sorted(folder.iterdir())
    result = tamis("select", "genes.csv.gz", "--dry-run", *args)
    assert result.exit_code == 0, result.output
    assert "sample" in result.stdout
    assert "identifier" in result.stdout
    assert result.stderr == ""
    assert sorted(folder.iterdir()) == before


def test_python_gives_the_same_result(tamis, genes):
    from tamis.table import read

    table = read("genes.csv.gz", target="kind")
    said = [
        line.removeprefix("tamis: note: ")
        for line in notes(tamis("select", "genes.csv.gz", "-t", "kind"))
    ]
    assert sorted(said) == sorted(str(alert) for alert in table.alerts)


def test_standard_input_gives_the_same_selection(tamis, folder, frame, monkeypatch):
    expected = tamis("select", "wine.csv", "-t", "kind")
    content = (folder / "wine.csv").read_bytes()
    from typer.testing import CliRunner

    from tamis.cli.app import app

    result = CliRunner().invoke(app, ["select", "-", "-t", "kind"], input=content)
    assert result.exit_code == 0, result.output
    assert kept(result) == kept(expected)


@pytest.mark.parametrize("like", ["passengers", "incomes", "houses", "visits"])
def test_relevant_columns_of_mixed_tables_are_selected(tamis, folder, like):
    made = make_mixed(400, random_state=0, like=like)
    frame = made.to_frame().with_columns(pl.Series("y", made.y))
    frame.write_parquet("t.parquet")
    frame.write_csv("t.csv")
    method = "ridge-rfe" if isinstance(made.y[0], str | np.integer) else "ridge-regression-rfe"
    asked, relevant = [method, "-t", "y", "-k", 3], sorted(made.relevant)
    if like == "visits":  # they depend on the weekday
        asked, relevant = [*asked, "--calendar"], ["pressure", "smoker", "start_weekday"]
    results = [tamis("select", f"t.{end}", *asked) for end in ("parquet", "csv")]
    assert [result.exit_code for result in results] == [0, 0], results[0].output
    assert sorted(kept(results[0])) == sorted(kept(results[1])) == relevant


def test_a_record_of_a_mixed_table_can_be_resumed(tamis, folder):
    made = make_mixed(100, random_state=0, like="incomes")
    made.to_frame().with_columns(pl.Series("y", made.y)).write_csv("t.csv")
    args = ["select", "t.csv", "-t", "y"]
    first = tamis(*args, "sfs-j3", "-k", 3, "--save-record", "r.json")
    assert first.exit_code == 0, first.output
    again = tamis(*args, "--resume", "r.json")
    assert again.exit_code == 0, again.output
    assert kept(again) == kept(first)
    longer = tamis(*args, "sfs-j3", "-k", 4, "--resume", "r.json")
    assert longer.exit_code == 0, longer.output
    assert kept(longer)[:3] == kept(first)


def test_groups_and_fixed_columns_of_a_mixed_table(tamis, folder):
    made = make_mixed(100, random_state=0, like="incomes")
    made.to_frame().with_columns(pl.Series("y", made.y)).write_csv("t.csv")
    result = tamis(
        "select", "t.csv", "-t", "y", "-k", 2, "--group", "job=hours,workclass", "--fixed", "race"
    )
    assert result.exit_code == 0, result.output
    assert "race" in kept(result)


SMALL = {
    "gaps": "a,b,y\n1,2,u\nNA,3,v\n,4,v\n2,2,u\n",
    "text": "a,name,y\n1,bob,u\n2,eve,v\n4,ann,u\n",
    "index": ",a,y\n0,1,u\n1,2,v\n2,5,u\n",
}


@pytest.mark.parametrize("name", SMALL)
def test_small_tables_that_were_refused_once(tamis, folder, name):
    (folder / "t.csv").write_text(SMALL[name])
    result = tamis("select", "t.csv", "--target", "y", "-k", 1, "fisher-score")
    assert result.exit_code == 0, result.output
    assert kept(result) in (["a"], ["b"])
    assert len(notes(result)) >= 1


def test_sheets_and_encodings_can_be_named_on_the_command_line(tamis, refused, folder):
    pytest.importorskip("fastexcel")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    first = pl.DataFrame({" größe ": np.arange(40.0) % 7, "y": [0, 1] * 20})
    with xlsxwriter.Workbook("t.xlsx") as book:
        first.write_excel(book, "first")
        first.rename({"y": "z"}).write_excel(book, "second one")
    args = ["fisher-score", "-k", 1]
    result = tamis("select", "t.xlsx", "-t", "y", *args)
    assert kept(result) == ["größe"]  # the fixture strips cells
    assert '--sheet "second one"' in result.stderr
    assert tamis("select", "t.xlsx", "-t", "z", *args, "--sheet", 2).exit_code == 0
    for target in (["-t", "z"], []):  # the sheets are named although the target is not found
        assert '--sheet "second one"' in refused("select", "t.xlsx", *target, *args)
    assert "has no sheet 'third'" in refused("select", "t.xlsx", "-t", "y", "--sheet", "third")
    (folder / "t.csv").write_bytes(first.write_csv().encode("cp1252"))
    result = tamis("select", "t.csv", "-t", "y", *args)
    assert "is read as cp1252" in result.stderr
    (folder / "t.csv").write_bytes(first.write_csv().encode("cp850"))
    assert "Write --encoding" in refused("select", "t.csv", "-t", "y", *args)
    for command in (["select", "t.csv", "-t", "y", *args], ["compare", "t.csv", "-t", "y", "mrmr"]):
        assert tamis(*command, "--encoding", "cp850").exit_code == 0
    again = ["--encoding", "cp850", "--keep", "größe"]
    assert "no column 'größe'" in refused("select", "t.csv", "-t", "y", *args, *again)


def test_a_table_with_amounts_and_codes_is_selected_from(tamis, folder):
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    pl.DataFrame(
        {
            "cost": [f"{v:,.2f} $" for v in 2000 * y + rng.uniform(500, 3000, 120)],
            "age": np.where(np.arange(120) % 9 == 0, -999, rng.integers(20, 60, 120)),
            "y": y,
        }
    ).write_parquet("t.parquet")
    result = tamis("select", "t.parquet", "-t", "y", "fisher-score", "-k", 1)
    assert kept(result) == ["cost"]
    assert "-999 (14 rows) in 'age'" in result.stderr
    assert "Text read as numbers" in result.stderr

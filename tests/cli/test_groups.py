"""``--group`` and ``--fixed`` on the command line."""

import json

import pytest
from typer.testing import CliRunner

from tamis.cli.app import app
from tamis.testing.problem import make_table as table


@pytest.fixture
def file(tmp_path):
    X, y = table()
    lines = ["a,b,c,d,e,f,g,y"]
    lines += [",".join([*map(str, row), str(label)]) for row, label in zip(X, y, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    return path


def invoke(file, *words):
    return CliRunner().invoke(app, ["select", str(file), "--target", "y", *words])


def test_groups_and_fixed_columns(file, tmp_path):
    out = tmp_path / "ranking.json"
    words = ["fisher-score", "-k", "2", "--group", "pair=b,e", "--group", "three=c, d,g"]
    words += ["--fixed", "a", "--output", str(out)]
    result = invoke(file, *words)
    assert result.exit_code == 0, result.output
    assert "2 of 4 units kept" in result.output
    assert "pair" in result.output
    found = json.loads(out.read_text())
    assert "a" in found["selected"]
    assert {row["column"] for row in found["ranking"]} == {"a", "pair", "three", "f"}
    assert found["record"]["units"]["groups"] == [["pair", [1, 4]], ["three", [2, 3, 6]]]


def test_a_record_brings_its_groups_along(file, tmp_path):
    saved = tmp_path / "record.json"
    words = ["Forward(Scatter())", "-k", "2", "--group", "pair=b,e", "--fixed", "pair"]
    assert invoke(file, *words, "--save-record", str(saved)).exit_code == 0
    result = invoke(file, "--resume", str(saved), "-k", "3")
    assert result.exit_code == 0, result.output
    assert "3 of 6 units kept" in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--group", "b,e"], "--group needs a name and columns"),
        (["--group", "x=b,q"], "names the column 'q'"),
        (["--group", "x=b", "--group", "x=c"], "given twice for 'x'"),
        (["--group", "x=b,c", "--group", "z=c"], "in two of the feature_groups"),
        (["--fixed", "a,q"], "names the column 'q'"),
        (["--group", "x="], "has no columns"),
    ],
    ids=str,
)
def test_impossible_options_are_refused(file, words, sentence):
    result = invoke(file, "fisher-score", *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())

"""``--costs`` and ``--cost-limit`` on the command line."""

import json

import pytest
from typer.testing import CliRunner

from tamis.cli.app import app
from tamis.testing.problem import make_table as table

COSTS = (
    "name,cost,group,fee\na,1,,\nb,7.27,blood,2.10\nc,5.20,blood,2.10\nd,3,,\ne,4,,\nf,2,,\ng,9,,\n"
)


@pytest.fixture
def file(tmp_path):
    X, y = table()
    lines = ["a,b,c,d,e,f,g,y"]
    lines += [",".join([*map(str, row), str(label)]) for row, label in zip(X, y, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    (tmp_path / "costs.csv").write_text(COSTS)
    return tmp_path / "table.csv"


def invoke(file, *words):
    words = [str(file.parent / word) if word == "costs.csv" else word for word in words]
    return CliRunner().invoke(app, ["select", str(file), "--target", "y", *words])


def test_a_limit_is_kept_and_the_price_is_printed(file, tmp_path):
    out, saved = tmp_path / "out.json", tmp_path / "record.json"
    words = ["Forward(Scatter())", "--costs", "costs.csv", "--cost-limit", "13"]
    result = invoke(file, *words, "--output", str(out), "--save-record", str(saved))
    assert result.exit_code == 0, result.output
    assert "within the limit of 13." in " ".join(result.output.split())
    found = json.loads(out.read_text())
    assert found["cost"] <= 13
    again = invoke(file, "--resume", str(saved), "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["selected"] == found["selected"]


def test_a_share_and_prices_without_a_limit(file):
    words = ["Forward(Scatter())", "--costs", "costs.csv"]
    result = invoke(file, *words, "--cost-limit", "50%")
    assert result.exit_code == 0, result.output
    assert "(50% of the full price)" in " ".join(result.output.split())
    result = invoke(file, *words, "-k", "2")
    assert result.exit_code == 0, result.output
    assert "all columns: 29.37" in result.output


def test_a_limit_below_every_price_keeps_nothing(file):
    words = ["Forward(Scatter())", "--costs", "costs.csv", "--cost-limit", "0.5"]
    result = invoke(file, *words)
    assert result.exit_code == 0, result.output
    assert "No column fits within the limit of 0.5; the cheapest costs 1." in result.output
    assert "0 of 7 columns kept" in result.output


def test_the_automatic_selection_prints_its_front(file, tmp_path):
    folder = tmp_path / "results"
    words = [
        "--costs",
        "costs.csv",
        "--cost-limit",
        "50%",
        "--budget",
        "1",
        "--folder",
        str(folder),
    ]
    result = invoke(file, *words)
    assert result.exit_code == 0, result.output
    assert result.output.count("price: ") == 1
    assert "error within each price:" in result.output
    assert (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--cost-limit", "5"],
            "needs the prices of the columns. Write --costs FILE.",
        ),
        (["--costs", "costs.csv", "--cost-limit", "many"], "--cost-limit needs a price such as 50"),
        (["--costs", "costs.csv", "--cost-limit", "-1"], "CostLimit needs limit to be"),
        (["--costs", "costs.csv", "--cost-limit", "5", "-k", "2"], "Leave one of them out"),
        (["--costs", "nowhere.csv"], "cannot be read"),
        (
            ["HonestSize(Ranking(FisherScore()))", "--costs", "costs.csv", "--cost-limit", "5"],
            "HonestSize takes no cost_limit (--cost-limit)",
        ),
        (["--costs", "costs.csv", "--drop", "a"], "names the column 'a', which does not exist"),
    ],
    ids=str,
)
def test_invalid_prices_are_reported_in_one_sentence(file, words, sentence):
    words = words if "(" in words[0] else ["Forward(Scatter())", *words]
    result = invoke(file, *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())

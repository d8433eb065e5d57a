"""The command ``tamis reproduce``."""

import json
import re

import polars as pl
import pytest

from tamis.evaluation import compare
from tamis_book import names, read, reproduce

OWN = """
title = "Hits"
source = "Nobody (2020), table 1"
metric = "hit"
notes = ["A note."]
[methods]
Fisher = "Ranking(FisherScore())"
Later = "Forward(NotYetThere())"
Odd = "Ranking(Correlation())"
[unsound]
Odd = "not specified: the formula"
[[parts]]
name = "100 rows"
data = { make = "make_weston", n_samples = 300 }
train = 100
published = { Fisher = 0, Later = 30, Odd = 30 }
"""


def test_the_list_has_a_name_and_title_per_line(tamis):
    result = tamis("reproduce", "--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == names()
    assert [line.split(maxsplit=1)[1] for line in lines] == [read(name).title for name in names()]


def test_the_summary_shows_stored_results_without_running_an_experiment(tamis, folder, refused):
    result = tamis("reproduce", "--summary", "thesis-5.10", "thesis-3.7", "-o", "all.csv")
    assert result.exit_code == 0, result.output
    rows = pl.read_csv("all.csv").to_dicts()
    assert [row["experiment"] for row in rows] == ["thesis-5.10", "thesis-3.7", "all"]
    assert rows[0]["agree"] == rows[2]["agree"] > 0
    assert "no data" in result.stdout
    assert "placebo %" in result.stdout
    assert "No experiment is called 'thesis-9.9'" in refused("reproduce", "--summary", "thesis-9.9")
    assert "Write --output summary.csv" in refused("reproduce", "--summary", "--folder", "out")


def test_our_numbers_are_next_to_the_published_ones(tamis, folder):
    (folder / "own.toml").write_text(OWN)
    result = tamis("reproduce", "own.toml", "--realizations", 3, "--store", "s.sqlite")
    assert result.exit_code == 0
    assert "0 (0) =" in result.stdout
    assert "(30) ?" in result.stdout
    assert "? Odd: not specified: the formula" in result.stdout
    assert "A note." in result.stdout
    assert "1 =, 1 ?." in result.stdout
    assert result.stderr.startswith("tamis: own: Later is left out: ")
    assert result.stderr.count("\n") == 1
    assert (folder / "s.sqlite").is_file()


def test_a_curve_is_printed_as_a_row_per_size(tamis, folder):
    text = OWN.replace('metric = "hit"', 'metric = "useless"')
    text = text.replace("train = 100", "train = 100\nsizes = [1, 5]")
    text = text.replace("Fisher = 0, Later = 30, Odd = 30", "Fisher = [0.5, 0.8]")
    (folder / "own.toml").write_text(text)
    result = tamis("reproduce", "own.toml", "--realizations", 2)
    assert result.exit_code == 0
    assert "(0.80)" in result.stdout


def test_a_stability_is_printed_with_its_interval(tamis, folder):
    text = OWN.replace('metric = "hit"', 'metric = "stability"')
    text = text.replace("train = 100", "train = 100\nsizes = [2]")
    (folder / "own.toml").write_text(text.replace("Fisher = 0, Later = 30, Odd = 30", "Fisher = 1"))
    result = tamis("reproduce", "own.toml", "--realizations", 3)
    assert result.exit_code == 0
    assert re.search(r"\d\.\d\d \[-?\d\.\d\d, \d\.\d\d\] \(1\.00\)", result.stdout)
    assert "published number within the interval" in result.stdout


def test_baselines_are_printed_next_to_every_number(tamis, folder):
    (folder / "own.toml").write_text(
        """
title = "Accuracies"
source = "Nobody (2020), table 1"
metric = "accuracy"
scale = 100
agreement = 2
[baselines]
F = "Ranking(FisherScore())"
[estimators]
knn = "KNeighborsClassifier()"
[[parts]]
name = "iris"
data = { load = "iris" }
folds = 5
steps = [1, 2]
methods = { J3 = 'Forward(Scatter("J3"), n_features_to_select=1.0)' }
published = { J3 = [10, 99.5] }
published_columns = { J3 = [1.4, 2] }
"""
    )
    result = tamis("reproduce", "own.toml", "--realizations", 2)
    assert result.exit_code == 0
    heading, *rows = [
        line for line in result.stdout.splitlines() if "step" in line or "J3 " in line
    ]
    assert heading.split() == ["step", "columns", "accuracy", "F"]
    assert [row.split()[:4] for row in rows] == [
        ["J3", "1", "1.0", "(1.4)"],
        ["J3", "2", "2.0", "(2.0)"],
    ]
    assert "(10.00) +" in rows[0]
    assert "(99.50) -" in rows[1]
    assert "= difference of at most 2  + ours higher  - ours lower" in result.stdout


def test_several_parts_are_printed_as_rows_with_ranges(tamis, folder):
    text = """
title = "Errors"
source = "Nobody (2020), table 2"
agreement = "range"
[methods]
SVM = "SVC()"
"""
    for name, odd in (("one", ""), ("two", 'unsound = "impossible: the label leaks"')):
        text += f"""
[[parts]]
name = "{name}"
data = {{ make = "make_weston", n_samples = 60 }}
train = 40
{odd}
published = {{ SVM = 0.999 }}
"""
    (folder / "own.toml").write_text(text)
    result = tamis("reproduce", "own.toml", "--realizations", 3)
    assert re.search(r"^one +0\.\d{3}-0\.\d{3} \(0\.999\) \+", result.stdout, re.MULTILINE)
    assert re.search(r"^two .*\(0\.999\) !", result.stdout, re.MULTILINE)
    assert "! two: impossible: the label leaks" in result.stdout
    assert "= published number within ours" in result.stdout


def test_signs_of_tests_are_printed(tamis, folder):
    text = OWN.replace('metric = "hit"', 'metric = "useless"\nreference = "Odd"')
    text = text.replace("train = 100", 'train = 100\nsizes = [1]\nsigns = { Fisher = ["+"] }')
    text = text.replace("{ Fisher = 0, Later = 30, Odd = 30 }", "{ Fisher = [0.5] }")
    (folder / "own.toml").write_text(text)
    result = tamis("reproduce", "own.toml", "--realizations", 2)
    assert "./+" in result.stdout
    assert "signs of the paired t-tests, ours / published; + if Odd is better" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "needs the name of an experiment"),
        (["thesis-9.9"], "No experiment is called 'thesis-9.9'"),
        (["thesis-3.2", "thesis-9.9"], "No experiment is called 'thesis-9.9'"),
        (["thesis-3.2", "--store", "wine.csv"], "is not a store and was not changed"),
        (["thesis-3.2", "--store", "no/where.sqlite"], "is not a folder"),
        (["thesis-3.2", "--realizations", "0"], "Invalid value for '--realizations'"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(refused, arguments, sentence):
    assert sentence in refused("reproduce", *arguments)


def test_an_unreadable_file_is_reported_in_one_sentence(refused, folder):
    for content in (b"title = ", b"title = '\xff'", b"title = " + b"[" * 100_000):
        (folder / "own.toml").write_bytes(content)
        assert "own.toml cannot be read as an experiment" in refused("reproduce", "own.toml")


MINE = """
title = "My table"
data = "wine.csv"
target = "kind"
train = 0.75
sizes = [1, 3]
scale = 100
[methods]
Fisher = "Ranking(FisherScore())"
"r & | _ r" = "correlation"
[estimators]
ridge = "RidgeClassifier()"
"""


def test_a_users_table_is_printed_with_tests(tamis, folder):
    (folder / "mine.toml").write_text(MINE)
    result = tamis("reproduce", "mine.toml", "--realizations", 3)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "published" not in result.stdout
    assert "corrected t-test" in result.stdout
    assert "nothing could be compared" not in result.stdout


def test_an_experiment_is_written_in_every_format(tamis, folder):
    (folder / "mine.toml").write_text(MINE)
    ways = [word for end in ("csv", "md", "tex", "json") for word in ("-o", f"found.{end}")]
    result = tamis("reproduce", "mine.toml", "--realizations", 3, *ways)
    assert result.exit_code == 0, result.output
    found = reproduce("mine.toml", realizations=3)
    frame = pl.read_csv("found.csv")
    assert frame["ours"].to_list() == [cell.ours for cell in found.cells]
    tests = {(t.method, t.size): t for t in compare(found.results["wine.csv"]).contrasts}
    for row in frame.iter_rows(named=True):
        if row["p"] is not None:
            test = tests[row["method"], row["columns"]]
            assert (row["p"], row["adjusted_p"]) == (test.p_value, test.p_adjusted)
    assert frame["p"].null_count() == 2
    assert r"r \& \textbar{} \_ r" in (folder / "found.tex").read_text()
    assert r"r \& \| \_ r" in (folder / "found.md").read_text()
    plain = json.loads((folder / "found.json").read_text())
    assert plain["experiments"][0]["cells"][0]["ours"] == found.cells[0].ours


def test_published_tables_are_written_too(tamis, folder):
    (folder / "own.toml").write_text(OWN)
    assert tamis("reproduce", "own.toml", "--realizations", 3, "-o", "x.csv", "-q").exit_code == 0
    assert pl.read_csv("x.csv")["mark"].to_list() == ["agree", "not specified"]


def test_a_file_that_cannot_be_written_is_refused_before_any_work(refused, folder):
    (folder / "mine.toml").write_text(MINE)
    before = refused("reproduce", "mine.toml", "-o", "found.xml")
    assert ".csv, .md, .tex or .json" in before
    assert "no folder" in refused("reproduce", "mine.toml", "-o", "nowhere/found.csv")


def test_the_output_folder_has_a_report_tables_and_charts(tamis, folder, refused):
    (folder / "own.toml").write_text(OWN)
    asked = ("reproduce", "own.toml", "--realizations", 2, "--quiet")
    found = tamis(*asked, "--folder", "out", "--report", "own.html")
    assert found.exit_code == 0, found.output
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {"own.html", "own.csv", "own.md", "own.tex", "own.json", "own-1.svg"}
    page = (folder / "own.html").read_text()
    assert page == (folder / "out" / "own.html").read_text()
    assert "tamis reproduce own.toml --realizations 2" in page
    assert "1 of 1 number agree" in page
    assert "--folder" in refused("reproduce", "own.toml", "thesis-3.1", "--report", "a.html")
    assert ".html" in refused("reproduce", "own.toml", "--report", "a.pdf")
    assert "is a file" in refused("reproduce", "own.toml", "--folder", "own.toml")


def test_without_the_book_the_command_explains_how_to_install_it(tamis, refused, monkeypatch):
    monkeypatch.setattr("tamis.cli.app._entries", lambda **which: ())
    sentence = refused("reproduce", "--list")
    assert sentence == (
        "tamis reproduce is in tamis-book, which is not installed. Run pip install ./book in the "
        "folder of the repository."
    )
    assert "reproduce" not in tamis("--help").stdout
    assert "No such command" in refused("reproduse")

"""Names that a terminal would obey, or a spreadsheet run, are shown and written as words."""

import csv
import json
import unicodedata

import polars as pl
import pytest

from tamis._format import mask_control

HOSTILE = {
    "screen cleared": "\x1b[2J\x1b[H",
    "title set": "\x1b]0;owned\x07",
    "Latin-1 escape": "\x9b2J",
    "next line": "\x85",
    "carriage return": "\r",
    "tab": "\t",
    "line feed": "\n",
    "form feed": "\x0c",
    "backspaces": "\x08\x08\x08",
    "delete": "\x7f",
    "right to left": "\u202egnp.exe",
    "isolate": "\u2067txt\u2069",
    "mark": "\u200f",
    "Arabic mark": "\u061c",
    "line separator": "\u2028",
    "annotation": "\ufff9",
    "tag": "\U000e0041",
}


def obeyed(words):
    """Characters that a terminal would interpret, by their Unicode category."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "AL"}
    return [
        character
        for character in words
        if character != "\n"
        and (
            unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
            or (unicodedata.category(character) == "Cf" and character not in "\u200b\u200c\u200d")
            or (unicodedata.bidirectional(character) in turning and not character.isalpha())
        )
    ]


@pytest.fixture
def hostile_table(folder, frame):
    """Columns, a target and classes with such names, in a file with such a name."""
    names = [f"g{j}{ending}" for j, ending in enumerate(HOSTILE.values())]
    columns = {name: frame.to_series(j % 6) for j, name in enumerate(names)}
    columns["kind\x1b[31m"] = frame["kind"].replace("class_0", "class\x1b[0m\u202e")
    path = folder / "wine\x1b[2J\u202e.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_every_character_is_replaced(name):
    assert obeyed(mask_control(HOSTILE[name]).replace("\n", "\x00")) == []
    assert "\ufffd" in mask_control(HOSTILE[name])


def test_ordinary_names_stay_as_they_are():
    for name in ("größe", "年齢", "غن", "α×β", "a b", "ab\u200dc", "\N{GRINNING FACE}", "[red]x"):
        assert mask_control(name) == name


def test_a_selection_with_hostile_names_prints_no_control_characters(tamis, hostile_table):
    result = tamis(
        "select", hostile_table, "-t", "kind\x1b[31m", "fisher-score", "-o", "r.csv", "--rows", 50
    )
    assert result.exit_code == 0, result.output
    assert obeyed(result.stdout + result.stderr) == []
    assert result.stdout.count("\ufffd") > len(HOSTILE)


@pytest.mark.parametrize(
    "args",
    [
        ["--target", "none\x1b[2J"],
        ["--target", "kind\x1b[31m", "--drop", "\x9b\u202e"],
        ["--target", "kind\x1b[31m", "meth\x1b[2Jod"],
        ["--target", "kind\x1b[31m", 'Forward("\x9b\u202e")'],
        ["--target", "kind\x1b[31m", "-k", "\x1b[2J"],
        ["--target", "kind\x1b[31m", "-o", "no\x1b[2J/r.csv"],
        ["--target", "kind\x1b[31m", "--task", "\x1b[2J"],
        ["--target", "kind\x1b[31m", "--format", "\u202e"],
        ["--target", "kind\x1b[31m", "--resume", "\u202e.json"],
        ["--\x1b[2J"],
    ],
)
def test_refusals_print_no_control_characters(refused, hostile_table, args):
    assert obeyed(refused("select", hostile_table, *args)) == []


def test_a_hostile_name_of_a_missing_file_prints_no_control_characters(refused, folder):
    assert obeyed(refused("select", "none\x1b[2J.csv", "-t", "y")) == []
    assert obeyed(refused("methods", "none\x1b[2J\u202e")) == []
    assert obeyed(refused("none\x1b[2J")) == []


def test_a_hostile_experiment_prints_no_control_characters(tamis, folder):
    word = "\\u001b[2J\\u202e\\u009b"
    (folder / "own.toml").write_text(
        f"""
title = "Hits {word}"
source = "Nobody {word}"
metric = "hit"
notes = ["A note. {word}"]
[methods]
"Fisher{word}" = "Ranking(FisherScore())"
"Odd{word}" = "Forward('{word}')"
[unsound]
"Fisher{word}" = "impossible: {word}"
[[parts]]
name = "[red]{word}"
note = "{word}"
data = {{ make = "make_weston", n_samples = 90 }}
train = 30
published = {{ "Fisher{word}" = 0 }}
"""
    )
    result = tamis("reproduce", "own.toml", "--realizations", 2)
    assert result.exit_code == 0, result.output
    assert obeyed(result.stdout + result.stderr) == []
    assert "[red]" in result.stdout


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\x1bx", "=cmd|' /C calc'!A0"]


@pytest.fixture
def formulas(folder, frame):
    columns = {name: frame.to_series(j % 6) for j, name in enumerate(FORMULAS)}
    table = pl.DataFrame({**columns, "plain": frame["ash"], "kind": frame["kind"]})
    table.write_parquet(folder / "f.parquet")
    return ["select", "f.parquet", "-t", "kind", "fisher-score", "-o"]


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_formulas_are_written_as_text(tamis, formulas):
    assert tamis(*formulas, "r.csv").exit_code == 0
    names = {row["column"] for row in rows_of("r.csv")}
    assert names == {"plain", *(f"'{name}" for name in FORMULAS)}
    assert all(float(row["score"]) >= 0 for row in rows_of("r.csv"))


def test_names_are_kept_on_request_and_in_json(tamis, formulas):
    assert tamis(*formulas, "r.csv", "--no-safe-csv").exit_code == 0
    assert {row["column"] for row in rows_of("r.csv")} == {"plain", *FORMULAS}
    assert tamis(*formulas, "r.json").exit_code == 0
    with open("r.json", encoding="utf-8") as stream:
        assert {row["column"] for row in json.load(stream)["ranking"]} == {"plain", *FORMULAS}


def test_the_help_mentions_it(tamis):
    assert "--safe-csv" in tamis("select", "--help").stdout

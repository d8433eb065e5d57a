"""The page on experiments, run with fewer realizations."""

import re
import textwrap
from pathlib import Path

import polars as pl

from tamis.datasets import load
from tamis_book import reproduce

PAGE = Path(__file__).parents[2] / "docs" / "experiments.rst"


def blocks(language, page=PAGE):
    pattern = rf"\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)"
    return [textwrap.dedent(block) for block in re.findall(pattern, page.read_text())]


def test_the_first_example_runs():
    scope = {}
    exec(blocks("python")[0].replace("Realizations(30", "Realizations(2"), scope)
    assert len(scope["results"].tasks) == 6


def test_the_experiment_file_runs(tmp_path):
    text, _ = blocks("toml")
    path = tmp_path / "page.toml"
    path.write_text(text.replace("10000", "200"))
    found = reproduce(str(path), realizations=1)
    assert not found.missing
    assert {cell.method for cell in found.cells} == {"Fisher", "wrapper"}


def test_the_experiment_file_for_a_users_table_runs(tmp_path):
    _, text = blocks("toml")
    (tmp_path / "page.toml").write_text(text)
    X, y, names, *_ = load("wine")
    frame = pl.DataFrame(X[:, :4], schema=names[:4].tolist())
    frame.with_columns(pl.Series("y", y)).write_csv(tmp_path / "mine.csv")
    found = reproduce(str(tmp_path / "page.toml"), realizations=2)
    assert not found.missing
    assert {cell.method for cell in found.cells} == {"mrmr", "ranking"}


def test_the_example_of_a_comparison_runs():
    (text,) = blocks("python", PAGE.with_name("compare.rst"))
    scope = {}
    exec(text.replace("Realizations(20", "Realizations(3"), scope)
    assert {row.method for row in scope["found"].rows} == {"mrmr", "ridge-rfe"}

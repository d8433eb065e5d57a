"""The page on the command line, run as it stands."""

from pathlib import Path

import numpy as np
import polars as pl

from tests.pages import commands


def test_every_command_of_the_page_runs(tamis, folder):
    ran = 0
    for words in commands("docs/command_line.rst"):
        if words == [
            "--install-completion"
        ]:  # which would write to the shell of who runs the tests
            continue
        result = tamis(*words)
        assert result.exit_code == 0, (words, result.output)
        ran += 1
    assert ran == 14
    assert sorted(path.name for path in (folder / "tamis-wine").iterdir()) == [
        "ranking.csv",
        "record.json",
        "report.html",
        "selected.csv",
    ]


def test_a_number_and_a_category_have_no_correlation_on_the_page(tamis, folder):
    rng = np.random.default_rng(0)
    site, number = rng.integers(0, 3, 60), rng.normal(size=60)
    frame = pl.DataFrame({"site": site, "number": number, "y": number + site > 1})
    frame.with_columns(site="s" + pl.col("site").cast(str)).write_csv("t.csv")
    result = tamis("select", "t.csv", "-t", "y", "mrmr", "-k", "2", "--report", "--resamples", "2")
    assert result.exit_code == 0, result.output
    page = Path("tamis-t/report.html").read_text(encoding="utf-8")
    assert "Fewer than two of the kept columns are numeric" in page

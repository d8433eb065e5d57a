"""``tamis select`` with options about rows: folds, groups, weights and scores."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tamis as library
from tamis.auto import Auto

QUICK = ("--budget", "0.3s", "--quiet", "--json", "--force")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with an identifier that repeats, a date and weights."""
    rng = np.random.default_rng(0)
    n = 240
    a, b = rng.normal(size=(2, n))
    day = np.datetime64("2024-01-01") + rng.permutation(n).astype("timedelta64[D]")
    frame = pl.DataFrame(
        {"a": a, "b": b, "c": rng.normal(size=n), "customer": rng.integers(60, size=n),
         "weight": rng.uniform(1, 2, size=n), "when": day.astype(str),
         "y": np.where(a + b + 0.5 * rng.normal(size=n) > 0.9, "yes", "no")}
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    frame.write_csv("shop.csv")
    return frame


def answer(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_groups_and_weights_are_columns_that_are_not_offered(tamis, table):
    found = answer(tamis("select", "shop.csv", "-t", "y", "--groups", "customer", "--weights",
                         "weight", *QUICK))  # fmt: skip
    assert found["selected"] == ["a", "b"]
    names = {row["column"] for row in found["ranking"]}
    assert names == {"a", "b", "c", "when"}
    frame = table.drop("weight", "customer").with_columns(pl.col("when").str.to_date())
    same = library.select(
        frame, target="y", method=Auto(budget=0.3), random_state=0,
        groups=table["customer"].cast(str).to_numpy(), sample_weight=table["weight"].to_numpy(),
    )  # fmt: skip
    assert found["summary"] == same.summary().splitlines()


def test_environments_are_a_column_that_is_not_offered(tamis, table):
    table.with_columns(site=pl.Series(["north", "south"] * 120)).write_csv("shop.csv")
    found = answer(tamis("select", "shop.csv", "-t", "y", "--environments", "site", "--drop",
                         "customer", *QUICK))  # fmt: skip
    assert "site" not in {row["column"] for row in found["ranking"]}
    assert any("predicted from the others: north: " in line for line in found["summary"])
    search = "InvariantSelection(Ranking(Correlation(), n_features_to_select=2), random_state=0)"
    found = answer(tamis("select", "shop.csv", "-t", "y", search, "--environments", "site",
                         "--drop", "customer", "--json"))  # fmt: skip
    assert "(north, south)" in found["summary"][1]


def test_honest_size_has_the_loss_in_each_environment(tamis, table):
    sites = pl.Series(["north", "south"] * 120)
    table.select("a", "b", "c", "y").with_columns(site=sites).write_csv("shop.csv")
    found = answer(tamis("select", "shop.csv", "-t", "y", "HonestSize(Ranking(Correlation()))",
                         "--environments", "site", "--json"))  # fmt: skip
    assert "In an environment without training rows, the loss is" in found["summary"][1]


@pytest.mark.parametrize("option", ["--groups", "--environments"])
def test_the_target_is_not_a_label_of_rows(tamis, table, option):
    result = tamis("select", "shop.csv", "-t", "y", option, "y", *QUICK)
    assert result.exit_code == 2
    assert f"{option} y is the target. Name another column" in " ".join(result.output.split())


def test_a_search_without_environments_says_which_selections_use_them(tamis, table):
    for search in ("jmi", "Probes(Ranking(Correlation()))"):
        result = tamis("select", "shop.csv", "-t", "y", search, "--environments", "customer")
        assert result.exit_code == 2
        said = " ".join(result.output.split())
        assert "Leave environments out, or use InvariantSelection(...) or HonestSize(...)" in said


def test_slopes_that_differ_between_environments_are_printed_and_shown(tamis, table):
    flips = pl.Series([1.0, -1.0] * 120) * (table["y"] == "yes") + table["c"]
    numbers = table.select("a", "b", "y").with_columns(flips=flips)
    numbers.with_columns(site=pl.Series(["north", "south"] * 120)).write_csv("sites.csv")
    search = "InvariantSelection(Ranking(Correlation(), n_features_to_select=1.0), random_state=0)"
    asked = ("select", "sites.csv", "-t", "y", search, "--environments", "site", "--report")
    result = tamis(*asked)
    assert "slopes of flips differ (p < 0.001): north 0." in " ".join(result.output.split())
    assert "Slope of the target on each column" in Path("tamis-sites/report.html").read_text()
    result = tamis(*asked, "--force", "--resamples", "5")
    assert result.exit_code == 2
    assert "--resamples cannot be used with InvariantSelection" in " ".join(result.output.split())


def test_confirm_adds_q_values(tamis, table):
    found = answer(tamis("select", "shop.csv", "-t", "y", "--drop", "customer", "--drop", "weight",
                         "--confirm", *QUICK))  # fmt: skip
    q = {row["column"]: row["q"] for row in found["ranking"]}
    assert q["a"] < 0.01 < q["c"]
    result = tamis("select", "shop.csv", "-t", "y", "--confirm", "mrmr")
    assert result.exit_code == 2
    assert "confirm is for the automatic selection" in result.output
    text = tamis("select", "shop.csv", "-t", "y", "ConditionalTest(Ranking(Correlation()))").output
    assert "q tests a column given all others" in " ".join(text.split())


def test_folds_in_time_order(tamis, table):
    found = answer(tamis("select", "shop.csv", "-t", "y", "--cv", "time:when", *QUICK))
    assert "TimeSeriesSplit" in found["method"]
    assert set(found["selected"]) >= {"a", "b"}
    other = answer(tamis("select", "shop.csv", "-t", "y", "--cv", "3", *QUICK))
    assert "cv=3" in other["method"]


def test_scores(tamis, table):
    found = answer(tamis("select", "shop.csv", "-t", "y", "--scoring", "roc_auc", *QUICK))
    assert any(
        line.startswith("held-out rows: ") and "AUC 0.9" in line for line in found["summary"]
    )
    weighed = answer(tamis("select", "shop.csv", "-t", "y", "--class-weight", "balanced", *QUICK))
    assert any("baseline (majority class): 5" in line for line in weighed["summary"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cv", "weeks"), "--cv needs a number of folds or time:COLUMN, not 'weeks'."),
        (("--cv", "time:y"), "needs dates or numbers, but 'y' holds values such as"),
        (("--cv", "time:wen"), "There is no column 'wen'. Did you mean when?"),
        (("--cv", "1"), "number of folds of at least 2"),
        (("--groups", "client"), "There is no column 'client'."),
        (("--weights", "y"), "--weights needs numbers, but 'y' holds values such as"),
        (("--scoring", "auc"), "such as 'roc_auc'"),
        (("--scoring", "r2"), "cannot use scoring='r2' for classification"),
        (("mrmr", "--scoring", "roc_auc"), "scoring is for the automatic selection, and mrmr"),
        (("--class-weight", "even"), "cannot use class_weight"),
    ],
)
def test_options_that_cannot_be(tamis, table, options, sentence):
    result = tamis("select", "shop.csv", "-t", "y", *options, "--quiet")
    assert result.exit_code == 2, result.output
    assert sentence in " ".join(result.stderr.split())


def test_rows_without_an_environment_are_refused(tamis, table):
    sites = pl.Series("site", ["a", "b", None] * 80)
    table.with_columns(sites).write_csv("sites.csv")
    result = tamis("select", "sites.csv", "-t", "y", "--environments", "site", *QUICK)
    assert result.exit_code == 2, result.output
    assert "'site'" in result.stderr
    assert "80" in result.stderr

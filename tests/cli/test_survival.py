"""``tamis select --time --event``: a censored target of a file."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tamis.criteria import CoxScore, Variance
from tamis.exceptions import IncompatibleCriterion
from tamis.recipes import prepare, select
from tamis.search import Ranking


@pytest.fixture
def lives(tmp_path, monkeypatch):
    """A file of six columns, of which b predicts the time of the event."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)).round(3)
    time = rng.exponential(np.exp(-2 * X[:, 1])).round(3)
    frame = pl.DataFrame(X, schema=list("abcdef")).with_columns(
        days=np.minimum(time, 2.0), died=(time < 2).astype(int)
    )
    monkeypatch.chdir(tmp_path)
    frame.write_csv("lives.csv")
    return frame


def test_two_columns_are_the_target(tamis, lives):
    result = tamis("select", "lives.csv", "--time", "days", "--event", "died", "-o", "out.json")
    assert result.exit_code == 0, result.output
    first, *_ = result.stdout.splitlines()
    n_events = int(lives["died"].sum())
    assert first == f"lives.csv: 80 rows, 6 columns, target days ({n_events} events)"
    assert "column order: Cox score; model: Cox regression" in result.stdout
    assert "held-out rows: concordance 0." in result.stdout
    with open("out.json") as file:
        written = json.load(file)
    assert written["task"] == "survival"
    assert written["selected"] == ["b"]


def test_the_description_of_a_censored_target(tamis, lives):
    result = tamis("select", "lives.csv", "--time", "days", "--event", "died", "--dry-run")
    assert result.exit_code == 0, result.output
    assert f"target days ({int(lives['died'].sum())} events)" in result.stdout
    assert "without regard to censoring" in " ".join(result.stdout.split())


def test_the_page_of_a_censored_target_names_its_loss(tamis, lives):
    result = tamis("select", "lives.csv", "--time", "days", "--event", "died", "--folder", "out")
    assert result.exit_code == 0, result.output
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "egative log partial likelihood" in page
    assert "oot mean squared error" not in page


def test_a_survival_method_selects_with_time_and_event(tamis, lives):
    target = ("--time", "days", "--event", "died")
    result = tamis("select", "lives.csv", "Ranking(CoxScore())", *target, "-o", "out.json")
    assert result.exit_code == 0, result.output
    y = lives.select("days", "died").to_numpy()
    chosen = Ranking(CoxScore()).fit(lives.drop("days", "died"), y).get_feature_names_out()
    with open("out.json") as file:
        assert sorted(json.load(file)["selected"]) == sorted(chosen)


def test_a_filter_that_looks_at_no_target(tamis, lives):
    target = ("--time", "days", "--event", "died")
    for method in ("Ranking(Variance())", "Then(Ranking(Variance()), Ranking(CoxScore()))"):
        result = tamis("select", "lives.csv", method, *target)
        assert result.exit_code == 0, result.output


def test_a_comparison_reports_that_it_has_no_measure(refused, lives):
    asked = ("compare", "lives.csv", "--time", "days", "--event", "died", "correlation")
    sentence = refused(*asked)
    assert "has no metric for censored times" in sentence
    assert "tamis select" in sentence


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time", "days"], "--time needs --event too"),
        (["--event", "died"], "--event needs --time too"),
        (["--time", "days", "--event", "died", "--target", "a"], "leave --target out"),
        (["--time", "days", "--event", "dead"], "Did you mean died?"),
        (["--time", "died", "--event", "days"], "the event as 1 if it happened"),
        (["--time", "days", "--event", "died", "fisher-score"], "needs classes, but y is a cens"),
        (["--target", "died", "Ranking(CoxScore())"], "needs a censored target, but y is"),
    ],
)
def test_targets_that_cannot_be_used(tamis, lives, options, said):
    result = tamis("select", "lives.csv", *options)
    assert result.exit_code != 0
    assert said in " ".join(result.stderr.split())


def test_select_knows_a_censored_target(lives):
    y = np.array(list(lives.select(pl.col("died") == 1, "days").iter_rows()), dtype="?,f8")
    assert "b" in select(lives.drop("days", "died"), y).get_feature_names_out()
    X, columns = lives.drop("days", "died"), lives.select("days", "died").to_numpy()
    assert "b" in select(X, columns, "Ranking(CoxScore())").get_feature_names_out()
    assert isinstance(prepare(Ranking(Variance()), y).criterion, Variance)
    with pytest.raises(IncompatibleCriterion, match="structured array of event and time"):
        prepare("Ranking(CoxScore())", np.array([0, 1, 0, 1]))

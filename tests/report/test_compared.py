"""The page of a comparison: it agrees with the tests, for any names."""

import re

import numpy as np
import pytest

from tamis.evaluation import Standings, friedman
from tamis.evaluation.standings import PairTest, Point, Standing
from tamis.exceptions import InvalidParameter
from tamis.report import MeasuredTable, compared
from tamis.report.comparison import Failed
from tamis.validation.stability import Stability
from tests.page_cases import HOSTILE

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")


def stood(data, method, mean, *, p=float("nan"), error=0.02, curve=True, stable=0.8, n=20):
    """One method on one table."""
    points = [Point(k, mean + 0.3 / k, error) for k in (1, 2, 4, 8)] if curve else []
    agreed = Stability(stable, stable - 0.1, stable + 0.1, 0.95, stable, stable, np.ones(9) / 2)
    return Standing(
        data, method, n, 0, tuple(points), 8.0, 4.0, mean, error,
        dict.fromkeys(range(n), mean), agreed if curve else None, 0.01 + mean, p,
    )  # fmt: skip


def standing_of(*tables, metric="error", ranks=None):
    rows = tuple(row for table in tables for row in table)
    pairs = tuple(
        PairTest(table[0].data, table[0].method, row.method, -0.1, row.p_value, row.p_value)
        for table in tables
        for row in table[1:]
    )
    return Standings(metric, False, 0.05, rows, pairs, ranks)


def one_table(names=("mrmr", "jmi", "relief"), data="wine.csv", p=(0.4, 0.001), guess=0.0):
    first, second, third = names
    return [
        stood(data, first, 0.10),
        stood(data, second, 0.12, p=p[0]),
        stood(data, third, 0.30, p=p[1]),
        stood(data, "all columns", 0.11, p=0.9, curve=False),
        stood(data, "baseline", 0.60, p=guess, curve=False, error=0.0),
    ]


def text_of(page):
    """What a reader reads."""
    body = re.sub(r"(?s)<(style|script|svg).*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body).replace("\u00a0", " "))


def test_the_best_method_comes_first_then_those_not_distinguishable():
    page = compared(standing_of(one_table())).html()
    assert "<h1>mrmr is the best of 3 methods; 1 is not distinguishable from it</h1>" in page
    said = text_of(page)
    assert "mrmr is best: 10.0 ± 2.0 % with 8 columns; 4 are hardly worse." in said
    assert "Not distinguishable from it: jmi (p 0.4). Worse: relief (p 0.001)." in said
    for heading in (
        "The methods",
        "Error against the number of columns",
        "Differences",
        "Stability",
        "Time",
    ):
        assert f">{heading}</h2>" in page
    assert "± 0.0" not in said


def test_methods_that_do_not_beat_the_baseline_are_the_first_caveat():
    report = compared(standing_of(one_table(guess=0.5)))
    assert "None of 3 methods is shown to beat the baseline" in report.html()
    assert report.cares[0].fact == "No method is shown to beat the baseline."


def test_the_report_names_a_clear_winner_and_warns_about_few_resamples():
    rows = [row._replace(n_realizations=4) for row in one_table(p=(0.01, 0.01))]
    report = compared(standing_of(rows))
    assert "<h1>mrmr is the best of 3 methods</h1>" in report.html()
    assert any(care.fact == "Only 4 resamples." for care in report.cares)


def test_several_tables_have_ranks_with_their_critical_difference():
    names = ["mrmr", "jmi", "relief"]
    ranks = friedman([[0.1, 0.2, 0.3]] * 3, names)
    tables = [one_table(data=f"{k}.csv") for k in "abc"]
    page = compared(standing_of(*tables, ranks=ranks)).html()
    assert "mrmr ranks best of 3 methods on 3 tables" in page
    assert f"critical difference {ranks.critical_difference:.2f}" in page  # in the picture
    assert page.count("<h3>") == 6  # methods and curves of each
    assert "ranks over the tables" in text_of(page)


def test_methods_that_failed_have_a_row_with_their_error():
    failed = (Failed("svm-rfe", 0, "svm-rfe needs two classes."),)
    report = compared(standing_of(one_table()), [MeasuredTable("wine.csv", "y", 178, 13, failed)])
    assert "svm-rfe failed: svm-rfe needs two classes." in text_of(report.html())
    assert "178 rows × 13 columns" in report.html()


def test_methods_that_decide_themselves_have_no_curve():
    rows = [stood("a", "probes", 0.1, curve=False), stood("a", "boruta", 0.2, p=0.3, curve=False)]
    page = compared(standing_of(rows)).html()
    assert 'id="size"' not in page
    assert "#size" not in page


def test_infinite_errors_are_listed_but_not_drawn():
    worse = stood("a", "jmi", 0.2, p=0.3)
    broken = [Point(1, float("inf"), float("nan")), *worse.curve[1:]]
    lost = stood("a", "mrmr", 0.3)._replace(
        curve=tuple(Point(k, float("inf"), float("nan")) for k in (1, 2)), mean=float("inf")
    )
    rows = [stood("a", "f", 0.1), worse._replace(curve=tuple(broken)), lost]
    report = compared(standing_of(rows, metric="mse"))
    assert [curve.method for curve in report.outcomes[0].curves] == ["f", "jmi"]
    assert "∞" in text_of(report.html())


def test_errors_of_a_real_target_are_not_percentages():
    said = text_of(compared(standing_of(one_table(), metric="rmse")).html())
    assert "Root mean squared error" in said
    assert "0.100 ± 0.020" in said or "0.1 ± 0.02" in said
    assert "%" not in said.replace("95 %", "").replace("5&nbsp;% level", "")


def hostile():
    """A comparison whose methods, tables and targets have the worst names there are."""
    data, *others = HOSTILE
    rows = [stood(data, name, 0.1 + k / 50, p=0.5) for k, name in enumerate(HOSTILE)]
    failed = [Failed(name, k % 2, name) for k, name in enumerate(HOSTILE)]
    table = MeasuredTable(data, others[0], 9, 9, failed, HOSTILE)
    return compared(standing_of(rows), [table], command=others[1], details=[(others[2], others[3])])


def test_hostile_names_are_text():
    page = hostile().html()
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "\x00" not in page
    assert len(page) < 1_000_000


def test_other_things_than_standings_are_refused():
    with pytest.raises(InvalidParameter, match=r"standings\(results\), not dict"):
        compared({})

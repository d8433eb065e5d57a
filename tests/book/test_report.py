"""The report of an experiment: its numbers are those of the cells, for any names."""

import re

import pytest

from tamis import plot
from tamis.exceptions import InvalidParameter
from tamis.report import reproduced
from tamis_book import Cell, Reproduction, read
from tamis_book.cells import agreement_range, mark_cell
from tamis_book.chart import cells_of
from tests.page_cases import HOSTILE

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")

FILE = """
title = {title}
source = "Nobody (2020), table 1"
metric = "{metric}"
agreement = {agreement}
realizations = 30
scale = {scale}
notes = ["A note."]
[methods]
Fisher = "Ranking(FisherScore())"
MI = "Ranking(MutualInformation())"
[unsound]
MI = "not specified: the formula"
[[parts]]
name = "wine"
data = {{ load = "wine" }}
train = 0.5
published = {{ Fisher = 1, MI = 1 }}
"""


@pytest.fixture
def experiment(tmp_path):
    """Return an experiment that is not run."""

    def made(metric="error", agreement='"chance"', scale=100, title='"Errors on wine"'):
        path = tmp_path / "own.toml"
        path.write_text(
            FILE.format(metric=metric, agreement=agreement, scale=scale, title=title),
            encoding="utf-8",
        )
        return read(str(path))

    return made


def cell(experiment, method="Fisher", size=None, ours=12.0, published=13.0, part="wine", n=20):
    """Return a cell with a computed and a published number, and its mark."""
    made = Cell(part, method, size, ours, 3.0, ours - 5, ours + 6, n, None, "", None, None)
    if published is None:
        return made
    return made._replace(published=published, mark=mark_cell(experiment, made, published))


def said(page):
    body = re.sub(r"(?s)<(style|script|svg).*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body).replace("\u00a0", " "))


def test_the_report_counts_the_numbers_that_agree(experiment):
    own = experiment()
    numbers = [(1, 12.0, 13.0), (2, 8.0, 20.0), (4, 20.0, 8.0)]
    cells = [cell(own, size=k, ours=a, published=b) for k, a, b in numbers]
    cells.append(cell(own, "MI", 1, published=None)._replace(published=9.0, mark="?"))
    page = reproduced(Reproduction(own, tuple(cells), ("MI is late.",))).html()
    assert "<h1>Errors on wine</h1>" in page
    text = said(page)
    assert "1 of 3 numbers agree with the published ones. Ours is lower in 1." in text
    assert "Ours is higher in 1. Not compared (see the notes): 1 not specified." in text
    assert "20.00 (8.00) −" in text
    assert "? MI: not specified: the formula" in text
    assert "20 realizations of 30." in text
    assert "MI is late." in text
    assert 'class="worse"' in page
    assert page.count("<figure") == 1


def test_a_users_table_has_no_published_numbers(experiment):
    own = experiment()
    page = reproduced(Reproduction(own, (cell(own, published=None),), ())).html()
    assert "1 number over 20 realizations; none is published." in said(page)
    assert "(published)" not in page


def test_a_single_realization_cannot_contradict_a_published_number(experiment):
    own = experiment()
    single = cell(own, published=None)._replace(published=9.0, mark="", n_realizations=1)
    text = said(reproduced(Reproduction(own, (single,), ())).html())
    assert "1 number over 1 realization; 1 are published, but a comparison needs" in text


def test_a_report_without_results_can_be_written(experiment):
    page = reproduced(Reproduction(experiment(), (), ("wine is left out.",))).html()
    assert "wine is left out." in page
    assert 'id="numbers"' not in page


@pytest.mark.parametrize(
    ("metric", "agreement"),
    [("error", '"chance"'), ("error", '"range"'), ("error", "2.0"), ("hit", '"chance"')],
)
def test_the_interval_contains_the_published_numbers_that_would_agree(
    experiment, metric, agreement
):
    own = experiment(metric, agreement)
    one = cell(own, published=None)
    low, high = agreement_range(own, one)
    step = 1 if metric == "hit" or "range" in agreement else 0.01  # published numbers are integers
    for inside in (low, high):
        assert mark_cell(own, one, inside) == "="
    outside = [value for value in (low - step, high + step) if 0 <= value <= 30]
    assert outside
    assert all(mark_cell(own, one, value) != "=" for value in outside)


def test_a_chart_shows_both_numbers(experiment):
    own = experiment("hit")
    found = Reproduction(own, (cell(own, ours=10.0, published=30.0),), ())
    (row,) = plot.published(found).to_dict()["data"]["values"]
    assert (row["value"], row["other"]) == (50.0, 100.0)  # out of 20, and out of 30
    assert row["low"] <= 50 <= row["high"] < 100
    assert cells_of(found, "wine") == list(found.cells)


def test_published_numbers_are_hollow_points_of_a_curve(experiment):
    own = experiment()
    cells = [cell(own, name, k) for name in ("Fisher", "MI") for k in (1, 2, 4)]
    layers = plot.published(Reproduction(own, tuple(cells), ())).to_dict()["layer"]
    printed = [layer for layer in layers if layer["data"]["name"] == "printed"]
    assert [row["value"] for row in printed[0]["data"]["values"]] == [13.0] * 6


def hostile(experiment):
    """Return an experiment whose parts and methods have hostile names."""
    own = experiment(title='"<script>alert(1)</script>"')
    cells = [cell(own, name, part=name) for name in HOSTILE]
    return reproduced(Reproduction(own, tuple(cells), tuple(HOSTILE)), command=HOSTILE[0])


def test_hostile_names_are_escaped(experiment):
    page = hostile(experiment).html()
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "\x00" not in page
    assert len(page) < 1_000_000


@pytest.mark.parametrize("function", [reproduced, plot.published])
def test_other_objects_are_refused(function):
    with pytest.raises(InvalidParameter, match=r"reproduce\(name\), not dict"):
        function({})


def test_an_unknown_part_is_refused(experiment):
    own = experiment()
    with pytest.raises(InvalidParameter, match="'wine'"):
        plot.published(Reproduction(own, (cell(own),), ()), "beer")

"""The book: stored results of every experiment, or the reason why there are none, and its pages."""

import re

import pytest

from book import pages, run
from tamis_book import names, read, reproduce, result_files
from tamis_book.result_files import ENDING, RESULTS, load_results, results_path

#: Its two realizations take a second, on data that are always available.
QUICK = "thesis-5.10"
STORED = sorted(path.name.removesuffix(ENDING) for path in RESULTS.iterdir())


def scores(found):
    """Return the scores of the first two realizations."""
    return {
        (part, beside, *row[:-1]): row.value
        for beside, parts in enumerate((found.results, found.baselines))
        for part, results in parts.items()
        for row in results.rows()
        if row.realization < 2 and row.metric in (found.experiment.metric, "n_features")
    }


def test_every_experiment_has_results_or_a_reason_why_not():
    waiting = pages.waiting()
    assert set(STORED) <= set(names())
    assert waiting.keys() <= set(names())
    for name in names():
        assert name in STORED or waiting.get(name, "").endswith("."), name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == QUICK else pytest.mark.experiment) for name in STORED],
)
def test_two_realizations_computed_again_agree_with_the_stored_ones(name):
    stored = load_results(results_path(name))
    if not stored.is_current:
        pytest.skip("the experiment file has changed since")
    again, before = scores(reproduce(name, realizations=2)), scores(stored.found)
    # a table that is not available here has no scores
    assert again.keys() <= before.keys()
    assert again or stored.found.missing
    # scores are stored with nine digits; other CPUs may differ in the last ones
    assert again == pytest.approx({key: before[key] for key in again}, rel=1e-6, abs=1e-9)


def test_the_stored_results_of_the_quick_experiment_are_current():
    assert load_results(results_path(QUICK)).is_current


def test_a_run_stores_results_and_can_be_continued(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(result_files, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results")
    words = ["--store", str(tmp_path / "tasks.sqlite"), "--realizations", "2", QUICK]
    assert run.main(words) == 0
    stored = load_results(tmp_path / "results" / f"{QUICK}{ENDING}")
    assert stored.realizations == 2
    assert run.main(words) == 0
    assert "has results" in capsys.readouterr().out
    assert not run.is_done(read(QUICK), 3)
    assert run.main([*words, "--again", "--most", "0"]) == 0
    assert "skipped" in capsys.readouterr().out


def test_pages_show_published_and_computed_numbers(tmp_path, monkeypatch):
    some = (read(QUICK), read("thesis-3.7"))  # all would take a minute to draw
    monkeypatch.setattr(pages, "experiments", lambda: some)
    pages.write_book(tmp_path)
    text = (tmp_path / f"{QUICK}.rst").read_text()
    for words in ("Numbers", "Charts", "Notes", "with seed 0", "numpy", f"reproduce {QUICK}"):
        assert words in text
    assert re.search(r"[\d.]+ ± [\d.]+\n +\| \([\d.]+\) [=+-]", text)
    assert re.search(r"\([\d.]+\) \?", text)
    assert "Who wins" in text
    assert (tmp_path / "pictures" / f"{QUICK}-1.svg").read_text().startswith("<svg")
    index = (tmp_path / "index.rst").read_text()
    assert all(f":doc:`{one.name}`" in index for one in some)
    assert "1 are computed" in index
    assert "1 lack their data (thesis-3.7)" in index
    assert re.search(r"agrees with its own in \d+ % and with the placebo in \d+ %", index)
    assert "left out" in (tmp_path / "thesis-3.7.rst").read_text()  # its table is not available


def test_special_characters_are_escaped():
    assert pages._plain("RMB* of a_b, `x` |y|") == r"RMB\* of a\_b, \`x\` \|y\|"


def test_every_figure_that_a_page_shows_is_drawn():
    static = pages.BOOK.parent / "docs" / "_static" / "book"
    shown = {f"figure-{number}.svg" for some in pages.FIGURES.values() for number in some}
    assert {path.name for path in static.iterdir()} == shown
    assert pages.FIGURES.keys() <= set(names())

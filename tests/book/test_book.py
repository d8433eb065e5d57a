"""The book: stored results of every experiment, or the reason why there are none, and its pages."""

import re

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_info

from book import pages, run
from tamis.datasets import load
from tamis.exceptions import InvalidTable
from tamis_book import experiments, names, read, reproduce, result_files
from tamis_book.cells import COMPARED, win_of
from tamis_book.result_files import ENDING, RESULTS, load_results, results_path, stored_results

#: Its two realizations take a second, on data that are always available.
QUICK = "thesis-5.10"
#: Stored before spans were computed from a more exact SVM, so SpanB-RFE removes other columns in
#: some realizations. Remove a name when the experiment has been computed again.
MOVED = {"thesis-4.6", "thesis-4.6-scc", "thesis-4.8", "thesis-4.8-scc"}
#: OpenBLAS kernels with which the scores were stored.
KERNELS = "SkylakeX"
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


def test_every_experiment_has_results():
    assert set(STORED) == set(names())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == QUICK else pytest.mark.experiment) for name in STORED],
)
def test_two_realizations_computed_again_agree_with_the_stored_ones(name):
    stored = load_results(results_path(name))
    if not stored.is_current:
        pytest.skip("the experiment file has changed since")
    if stored.found.experiment.metric == "seconds":
        pytest.skip("times are different in every run")
    again, before = scores(reproduce(name, realizations=2)), scores(stored.found)
    # a table that is not available here has no scores
    assert again.keys() <= before.keys()
    assert again or stored.found.missing
    # scores are stored with nine digits; other CPUs may differ in the last ones
    expected = pytest.approx({key: before[key] for key in again}, rel=1e-6, abs=1e-9)
    if again != expected and name in MOVED:
        pytest.xfail("the spans have moved, and the experiment is not computed again yet")
    if again != expected and trains_networks(name) and KERNELS not in kernels():
        pytest.xfail(f"networks depend on rounding: run this with OPENBLAS_CORETYPE={KERNELS}")
    assert again == expected


def trains_networks(name):
    experiment = read(name)
    parts = [text for part in experiment.parts for text in part.estimators.values()]
    texts = [*experiment.estimators.values(), *experiment.all_methods.values(), *parts]
    return any(word in text for text in texts for word in ("MLP", "Network", "Gate"))


def kernels():
    return {info.get("architecture") for info in threadpool_info()}


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
    drawn, draw = [], pages.to_svg
    monkeypatch.setattr(pages, "to_svg", lambda chart: drawn.append(chart) or draw(chart))
    pages.write_book(tmp_path)
    assert drawn
    assert all(chart["padding"]["left"] >= 24 for chart in drawn)  # for wider fonts
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


UNSOUND = (pages.BOOK.parent / "docs" / "unsound.rst").read_text(encoding="utf-8")
#: Tables of errors in chapters 3 and 5 of Yang (2011), which may be plain or balanced errors.
ERRORS = [name for name in names() if re.fullmatch(r"thesis-(3|5)\.\d+", name)]
ERRORS = [name for name in ERRORS if read(name).metric in ("error", "ber")]


def readings():
    """Return the rows of the table of plain and balanced errors, by table."""
    section = UNSOUND.partition("The error rate of the thesis")[2].partition("Withdrawn")[0]
    rows = re.findall(r"   \* - (.+)\n((?:     - ?.*\n)+)", section)
    cells = {head: [line[7:].strip() for line in rest.splitlines()] for head, rest in rows}
    return {
        f"thesis-{table}": row
        for head, row in cells.items()
        for table in re.findall(r"\d+\.\d+", head)
    }


def test_the_balanced_error_was_tested_on_every_table_of_errors():
    assert set(ERRORS) == readings().keys()


@pytest.mark.parametrize("name", ERRORS)
def test_the_page_of_every_table_states_the_reading_of_its_error(name):
    experiment = read(name)
    (note,) = (note for note in experiment.notes if "balanced" in note)
    assert ("read as the balanced error" in note) == (experiment.metric == "ber")


@pytest.mark.parametrize("name", sorted(readings()))
def test_the_counts_of_both_readings_agree_with_the_stored_results(name):
    compared, plain, balanced, _, reading = readings()[name]
    experiment = read(name)
    assert (reading == "balanced") == (experiment.metric == "ber")
    stored = stored_results(experiment)
    few = re.search(rf"   \* - {name.removeprefix('thesis-')} \((\d+) realizations\)", UNSOUND)
    if compared and (few is None or int(few[1]) == stored.realizations):
        counts = stored.found.counts()
        assert counts["="] == int(balanced if reading == "balanced" else plain)
        assert sum(counts.get(mark, 0) for mark in "=+-") == int(compared)


def test_every_reversed_difference_is_discussed_in_a_note():
    for name in STORED:
        found = load_results(results_path(name)).found
        cells = [cell for cell in found.cells if cell.mark in COMPARED]
        for method in {cell.method for cell in cells if win_of(cell) == "reversed"}:
            notes = [note for note in found.experiment.notes if method in note]
            assert any("in our runs" in note.lower() for note in notes), (name, method)


@pytest.mark.parametrize(("name", "separable"), [("sonar", True), ("wbcd", False)])
def test_a_plane_separates_all_rows_of_sonar_but_not_of_wbcd(name, separable):
    try:
        X, y, *_ = load(name)
    except InvalidTable:
        pytest.skip("the table is not available")
    rows = np.where(y == 1, 1, -1)[:, None] * np.c_[scale(X), np.ones(len(X))]
    zero, ones = np.zeros(rows.shape[1]), np.ones(len(X))
    found = linprog(zero, A_ub=-rows, b_ub=-ones, bounds=(None, None))
    assert found.status == (0 if separable else 2)  # 2: infeasible


def test_every_published_table_is_linked_from_the_page_by_source():
    text = (pages.BOOK.parent / "docs" / "sources.rst").read_text(encoding="utf-8")
    linked = set(re.findall(r"<book/([\w.-]+)>", text))
    published = {name for name in names() if name.startswith(("fspp", "gates", "svr", "thesis"))}
    assert linked == published


def test_tables_of_the_same_realizations_have_the_same_methods():
    twins = [
        (one, read(name))
        for one in experiments()
        for name in names()
        if one.also and one.name.startswith(f"{name}-")
    ]
    assert len(twins) == 12
    for one, other in twins:
        assert one.all_methods == other.all_methods
        assert {one.metric, *one.also} == {other.metric, *other.also}
        known = {part.name: part for part in other.parts}
        for part in one.parts:
            whole = known[part.name]
            for of in ("data", "train", "test", "folds", "points", "methods", "estimators"):
                assert getattr(part, of) == getattr(whole, of), (one.name, of)

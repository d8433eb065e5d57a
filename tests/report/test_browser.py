"""Pages in a real browser: nothing is requested, nothing complains, everything can be used."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis.criteria import FisherScore
from tamis.report import report
from tamis.search import Ranking
from tamis_book import read
from tests.book.test_report import FILE
from tests.book.test_report import hostile as hostile_experiment
from tests.browser import Browser, chromium
from tests.page_cases import HOSTILE
from tests.report.test_compared import hostile as hostile_comparison

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.skipif(
    chromium() is None, reason="needs Debian's chromium: apt install chromium"
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory, eliminated, wine, resampled, hostile):
    """Files of pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    chosen, frame = hostile
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 10_000))
    X[y == 1, :10] += 1
    ranked = Ranking(FisherScore(), n_features_to_select=30).fit(X, y)
    told = {name: f"what {name} is" for name in HOSTILE}
    made = {
        "wine": report(eliminated, wine.X, wine.y, results=resampled, target="cultivar"),
        "wide": report(ranked, X, y, names=[f"gene {j}" for j in range(10_000)]),
        "hostile": report(
            chosen,
            frame,
            np.array(["<script>alert(1)</script>", "{{7*7}}", '"><img src=x>'])[wine.y],
            target="<img src=x onerror=alert(1)>",
            descriptions=told,
            command="tamis '</pre><script>'",
        ),
    }
    made |= {"compared": hostile_comparison(), "reproduced": hostile_experiment(_read(folder))}
    for name, gathered in made.items():
        gathered.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


def _read(folder):
    """Experiments that are read from a file."""

    def made(**asked):
        text = FILE.format(metric="error", agreement='"chance"', scale=100, **asked)
        (folder / "own.toml").write_text(text, encoding="utf-8")
        return read(str(folder / "own.toml"))

    return made


def opened(browser, path):
    browser.open(path)
    browser.settle()
    return browser


def rows(browser):
    return browser.run(
        "[...document.querySelectorAll('#all tbody tr')].map(r => r.cells[1].textContent)"
    )


@pytest.mark.parametrize("name", ["wine", "wide", "hostile", "compared", "reproduced"])
@pytest.mark.parametrize("width", [1180, 320])
def test_the_page_makes_no_requests_and_has_no_errors(browser, pages, name, width):
    browser.resize(width, 900)
    page = opened(browser, pages[name])
    assert page.requests == []
    assert page.complaints == []
    assert page.run("document.scripts.length") == (1 if name.endswith("ed") else 2)
    assert page.run("document.querySelectorAll('img, iframe, main script').length") == 0
    # only the long table and the map scroll sideways, in themselves
    assert page.run("document.documentElement.scrollWidth") <= width
    browser.resize(1180, 900)


def test_hostile_names_stay_text(browser, pages):
    page = opened(browser, pages["hostile"])
    assert page.run("document.querySelectorAll('img, iframe, main script').length") == 0
    assert sorted(
        page.run("JSON.parse(document.querySelector('#data').textContent).raw")
    ) == sorted(HOSTILE)
    assert "<script>alert(1)</script>" in rows(page)[0] + "".join(rows(page))
    assert page.run("window.alerted ?? 'no'") == "no"


def test_a_script_that_slipped_in_would_not_run(browser, pages, tmp_path):
    """The policy lets the page's own script run and no other."""
    text = pages["wine"].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(
        text.replace(
            "</h1>", "</h1><script>window.bad = 1</script><img src=x onerror='window.bad=2'>", 1
        )
    )
    page = opened(browser, broken)
    assert page.run("window.bad ?? 'no'") == "no"
    assert any("Content Security Policy" in said for said in page.complaints)
    assert len(rows(page)) == 13


def looked_for(page, words):
    page.run(f"document.querySelector('#q').value = {words!r}")
    page.run("document.querySelector('#q').dispatchEvent(new Event('input'))")
    page.settle()
    return page.run("document.querySelector('#count').textContent")


def test_the_search_field_finds_every_word(browser, pages):
    """Each word is looked for by itself, wherever it stands."""
    page = opened(browser, pages["wide"])
    there = [f"gene {j}" for j in range(10_000) if "123" in str(j)]
    said = looked_for(page, "gene 123")
    assert said == f"1–{len(there)} of {len(there)} found among 10000 columns"
    assert sorted(rows(page)) == sorted(there)
    assert looked_for(page, "nonsense") == "No column matches."


def test_the_table_can_show_only_selected_columns(browser, pages):
    page = opened(browser, pages["wide"])
    page.run("document.querySelector('#only').click()")
    assert len(rows(page)) == 30
    assert page.run("document.querySelectorAll('#all tr.on').length") == 30


def test_sorting_both_ways_with_what_has_no_value_last(browser, pages):
    page = opened(browser, pages["wine"])
    click = "document.querySelector('#all th[data-key={}] button').click()"
    page.run(click.format("score"))
    scores = "[...document.querySelectorAll('#all tbody tr')].map(r => r.cells[2].textContent)"
    down = [float(text.replace("−", "-")) for text in page.run(scores)]
    assert down == sorted(down, reverse=True)
    assert page.run("document.querySelector('th[data-key=score]').ariaSort") == "descending"
    page.run(click.format("score"))
    assert [float(t.replace("−", "-")) for t in page.run(scores)] == sorted(down)
    page.run(click.format("name"))
    assert rows(page) == sorted(rows(page))
    assert page.run("document.querySelectorAll('th[aria-sort]').length") == 1


def test_no_score_is_sorted_last_both_ways(browser, wine, tmp_path):
    chosen = tamis.recipe("fisher-score", n_features_to_select=3).fit(wine.X, wine.y)
    chosen.scores_ = np.where(np.arange(13) == chosen.order_[1], np.nan, chosen.scores_)
    report(chosen, wine.X, wine.y).save(tmp_path / "page.html")
    page = opened(browser, tmp_path / "page.html")
    for _ in range(2):
        page.run("document.querySelector('#all th[data-key=score] button').click()")
        assert (
            page.run("document.querySelector('#all tbody tr:last-child').cells[2].textContent")
            == "–"
        )


def test_the_table_has_pages_of_fifty_rows(browser, pages):
    page = opened(browser, pages["wide"])
    first = rows(page)
    assert len(first) == 50
    assert page.run("document.querySelector('#prev').disabled")
    page.run("document.querySelector('#next').click()")
    assert len(rows(page)) == 50
    assert not set(rows(page)) & set(first)
    assert page.run("document.querySelector('#count').textContent") == "51–100 of 10000 columns"
    page.run("document.querySelector('#prev').click()")
    assert rows(page) == first


def test_the_theme_button_changes_the_theme(browser, pages):
    browser.prefer("light")
    page = opened(browser, pages["wine"])
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.run(ground)
    click = "document.querySelector('#theme').click(); document.querySelector('#theme').textContent"
    assert [page.run(click) for _ in range(3)] == ["Theme: light", "Theme: dark", "Theme: auto"]
    page.run("document.querySelector('#theme').click(); document.querySelector('#theme').click()")
    assert page.run(ground) != light
    browser.prefer("dark")
    page = opened(browser, pages["wine"])
    assert page.run(ground) != light
    browser.prefer("light")


def test_copying_gives_the_names_as_they_are(browser, pages):
    page = opened(browser, pages["hostile"])
    page.run(
        "navigator.clipboard.writeText = t => { window.copied = t; return Promise.resolve(); }"
    )
    page.run("document.querySelector('[data-copy=names]').click()")
    data = page.run("JSON.parse(document.querySelector('#data').textContent)")
    assert page.run("window.copied") == "\n".join(data["raw"][: data["kept"]])


def test_the_table_is_saved_as_csv(browser, pages):
    page = opened(browser, pages["hostile"])
    page.run(
        "window.saved = []; URL.createObjectURL = b => { window.saved.push(b); return '#'; };"
        "HTMLAnchorElement.prototype.click = function () { window.name_ = this.download; };"
        "document.querySelector('#csv').click()"
    )
    import csv

    text = page.run("window.saved[0].text()")
    lines = list(csv.reader(text.splitlines(keepends=True)))
    assert page.run("window.name_") == "ranking.csv"
    assert lines[0][:4] == ["rank", "column", "score", "kept"]
    assert len(lines) == len(HOSTILE) + 1
    assert {re.sub(r"\r\n?", "\n", line[1]) for line in lines[1:]} == {
        re.sub(r"\r\n?", "\n", name) for name in HOSTILE
    }


def test_more_than_twenty_five_wait_behind_a_button(browser, pages):
    page = opened(browser, pages["wide"])
    seen = "[...document.querySelectorAll('.answer tbody tr')].filter(r => r.offsetHeight).length"
    assert page.run(seen) == 25
    page.run("document.querySelector('#more button').click()")
    assert page.run(seen) == 30


def test_the_keyboard_suffices(browser, pages):
    page = opened(browser, pages["wine"])
    seen = set()
    for _ in range(60):
        page.press("Tab", "Tab", 9)
        here = page.run("(e => e.id || e.ariaLabel)(document.activeElement)")
        seen.add(here)
        if here == "Sort by Column":
            page.press("Enter", "Enter", 13)
            break
    assert {"theme", "q", "only", "csv"} <= seen
    assert rows(page) == sorted(rows(page))


def test_without_javascript_the_page_is_read(browser, pages):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["wide"])
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
        assert len(rows(browser)) == 50
        assert browser.run("document.querySelector('#tools').hidden")
        assert browser.run(
            "[...document.querySelectorAll('.answer tbody tr')].every(r => r.offsetHeight)"
        )
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


def test_charts_have_labels_for_screen_readers(browser, pages):
    """Strips have medians as labels, tables have heads, every control has a name."""
    page = opened(browser, pages["wine"])
    assert page.run(
        "[...document.querySelectorAll('.spark svg')].every(s => /median/.test(s.ariaLabel))"
    )
    assert page.run(
        "[...document.querySelectorAll('figure svg')].every(s => s.ariaHidden === 'true')"
    )
    assert page.run(
        "[...document.querySelectorAll('figure')].every(f => f.querySelector('figcaption'))"
    )
    assert page.run("[...document.querySelectorAll('thead th')].every(h => h.scope === 'col')")
    assert page.run(
        "[...document.querySelectorAll('button, input')].filter(e => e.offsetParent).every("
        "e => e.ariaLabel || e.textContent.trim() || e.closest('label'))"
    )
    ids = page.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def axe():
    """Path of axe-core: in the folder of npm, or in the environment variable AXE_CORE."""
    given = os.environ.get("AXE_CORE")
    places = [Path(given)] if given else []
    places.append(Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js")
    return next((place for place in places if place.is_file()), None)


@pytest.mark.skipif(axe() is None, reason="needs axe-core: npm install axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1180, 390])
@pytest.mark.parametrize("name", ["wine", "compared", "reproduced"])
def test_axe_finds_nothing_serious(browser, pages, name, scheme, width):
    browser.prefer(scheme)
    browser.resize(width, 900)
    page = opened(browser, pages[name])
    page.run(axe().read_text(encoding="utf-8") + ";1")
    found = page.run(
        "axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes[0].html]))"
    )
    browser.prefer("light")
    browser.resize(1180, 900)
    assert [each for each in found if each[0] in ("serious", "critical")] == []


@pytest.mark.parametrize("name", ["wine", "compared", "reproduced"])
def test_print_cuts_no_picture(browser, pages, name, tmp_path):
    page = opened(browser, pages[name])
    page.show_as("print")
    page.resize(700, 990)  # the width of a page of paper between its margins
    assert page.run(
        "[...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width)"
        ".every(s => s.getBoundingClientRect().right <= innerWidth + 1)"
    )
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.show_as("screen")
    page.resize(1180, 900)
    page.printed(tmp_path / "page.pdf")
    # the hostile ones have 17 methods, alerts and failures
    most = 8 if name == "wine" else 16
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") <= most

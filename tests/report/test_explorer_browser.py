"""The explorer in a real browser: its numbers are Python's, and names stay text."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tamis.criteria import Correlation
from tamis.meta import HonestSize
from tamis.report import fit_without, report
from tamis.search import Ranking
from tests.browser import Browser, chromium
from tests.page_cases import HOSTILE
from tests.report.test_browser import axe, opened

pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")
pytestmark = pytest.mark.skipif(
    chromium() is None, reason="needs Debian's chromium: apt install chromium"
)

NAMES = [
    *HOSTILE, "javascript:alert(1)", "<svg/onload=alert(1)>", "\u2028alert(1)\u2029",
    "__proto__", "constructor", "<b>bold</b>", "a, b and c", "\\u003cscript\\u003e",
    "<style>*{display:none}</style>", "\ud7ff\u200b\ufeff", "<template><script>alert(1)</script>",
]  # fmt: skip
CLASSES = ["<script>alert(1)</script>", "{{7*7}}", '"><img src=x onerror=alert(1)>']


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def gathered(wine):
    """Return a report of a selection of 28 hostile columns, with fits without some of them."""
    pd = pytest.importorskip("pandas")
    assert len(NAMES) == 28
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(178, 28)), columns=NAMES)
    frame.iloc[:, :13] = wine.X
    y = np.array(CLASSES)[wine.y]
    chosen = HonestSize(Ranking(Correlation()), n_errors=3, random_state=0).fit(frame, y)
    first = [NAMES[unit] for unit in chosen.order_[:2]]
    without = fit_without(chosen, frame, y, {"<script>alert('group')</script>": first})
    return report(chosen, frame, y, target="<img src=x>", without=without)


@pytest.fixture(scope="module")
def path(gathered, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    gathered.save(path)
    return path


def text(page, selector):
    return page.run(f"document.querySelector({selector!r}).textContent").replace("\xa0", " ")


def shown(page):
    """Return the positions in the ranking of the columns of the list."""
    rows = "document.querySelectorAll('#explore-list tbody tr')"
    return page.run(f"[...{rows}].map(row => +row.dataset.column)")


def set_slider(page, index):
    page.run(
        f"(s => {{ s.value = {index}; s.dispatchEvent(new Event('input')); }})"
        "(document.querySelector('#explore-size'))"
    )


def press(page, selector, index=0):
    page.run(f"document.querySelectorAll({selector!r})[{index}].click()")


def ranks(gathered, units):
    order = gathered.units.order.tolist()
    return [order.index(unit) for unit in units]


def words(gathered, one):
    measure = gathered.curve.measure
    value = f"{one.size} column{'s' * (one.size > 1)}, squared loss {measure.format(one.error)}"
    return f"{value} ({measure.format_error(one.standard_error)})".replace("\xa0", " ")


def own(gathered):
    return [one for one in gathered.candidates if not one.without]


def test_the_slider_shows_the_lists_of_the_fit(browser, path, gathered):
    page = opened(browser, path)
    assert page.complaints == []
    assert text(page, "#explore-at").startswith(f"{gathered.n_kept} column")
    for index, one in enumerate(own(gathered)):
        set_slider(page, index)
        assert words(gathered, one) in text(page, "#explore-words")
        if one.size < 28:
            assert f"Stability {one.stability:.2f}." in text(page, "#explore-words")
        assert shown(page) == ranks(gathered, one.units)
        cells = "document.querySelectorAll('#explore-list td.num')"
        shares = page.run(f"[...{cells}].map(cell => parseInt(cell.textContent))")
        assert shares == [round(100 * one.share.get(unit, 0.0)) for unit in one.units]
        columns = "1 column" if one.size == 1 else f"{one.size} columns"
        assert page.run("document.querySelector('#explore-size').ariaValueText") == columns
    press(page, "#explore-reset")
    assert text(page, "#explore-at").startswith(f"{gathered.n_kept} column")


def test_a_column_is_left_out_and_put_back(browser, path, gathered):
    page = opened(browser, path)
    for position, unit in enumerate(gathered.kept):
        press(page, "#explore-list tbody button", position)
        one = next(
            one
            for one in gathered.candidates
            if one.without == (unit,) and one.size == gathered.n_kept
        )
        lists = [one for one in gathered.candidates if one.size == gathered.n_kept]
        before = next(one for one in lists if not one.without)
        assert words(gathered, one) in text(page, "#explore-words")
        assert shown(page) == ranks(gathered, one.units)
        change = abs(one.error - before.error)
        found = re.search(r"([\d.e-]+) (more|less) than", text(page, "#explore-words"))
        assert float(found[1]) == pytest.approx(change, rel=0.06, abs=2e-4)
        assert found[2] == ("more" if one.error > before.error else "less")
        assert page.run("document.activeElement.textContent") == "Put back"
        press(page, "#explore-out button")
        assert shown(page) == ranks(gathered, before.units)
        assert page.run("document.activeElement.id") == "explore-size"


def test_a_list_that_was_not_evaluated_is_not_shown(browser, path, gathered):
    page = opened(browser, path)
    assert gathered.n_kept >= 3
    press(page, "#explore-list tbody button", 1)
    kept = shown(page)
    press(page, "#explore-list tbody button", kept.index(2))
    assert "No list of" in text(page, "#explore-words")
    assert "was evaluated" in text(page, "#explore-words")
    assert page.run("document.querySelector('#explore-list').hidden")
    press(page, "#explore-reset")
    assert "No list" not in text(page, "#explore-words")


def test_a_list_that_does_not_need_the_missing_column_is_the_same_as_before(
    browser, path, gathered
):
    page = opened(browser, path)
    press(page, "#explore-list tbody button", gathered.n_kept - 1)
    assert "the same list" not in text(page, "#explore-words")
    set_slider(page, 0)
    assert "the same list as with all columns available" in text(page, "#explore-words")
    assert shown(page) == ranks(gathered, own(gathered)[0].units)


def test_a_group_is_left_out_as_a_whole(browser, path, gathered):
    page = opened(browser, path)
    press(page, "#explore-groups button")
    columns = gathered.omissions[-1].columns
    one = next(
        one for one in gathered.candidates if one.without == columns and one.size == gathered.n_kept
    )
    assert words(gathered, one) in text(page, "#explore-words")
    assert "Without <script>alert('group')</script>:" in text(page, "#explore-words")
    assert page.run("document.querySelectorAll('#explore-groups button').length") == 0


def test_the_keyboard_moves_the_slider(browser, path, gathered):
    page = opened(browser, path)
    page.run("document.querySelector('#explore-size').focus()")
    page.press("Home", "Home", 36)
    assert text(page, "#explore-at") == "1 column"
    page.press("ArrowRight", "ArrowRight", 39)
    assert text(page, "#explore-at") == "2 columns"
    page.press("End", "End", 35)
    assert text(page, "#explore-at") == f"{own(gathered)[-1].size} columns"


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_the_price_finds_the_best_list_that_costs_no_more(browser, gathered, tmp_path, unit):
    prices = [unit * price for price in (3.0, 8.5, 2.25, 40.0, 15.0)]
    lists = [one._replace(price=price) for one, price in zip(own(gathered), prices, strict=False)]
    replace(gathered, candidates=lists).save(tmp_path / "priced.html")
    page = opened(browser, tmp_path / "priced.html")
    for index, limit in enumerate(sorted(prices)):
        page.run(
            f"(s => {{ s.value = {index}; s.dispatchEvent(new Event('input')); }})"
            "(document.querySelector('#explore-price'))"
        )
        best = min((one for one in lists if one.price <= limit), key=lambda one: one.error)
        assert words(gathered, best) in text(page, "#explore-words")
        said = re.search(r"Price (\S+)\. ", text(page, "#explore-words"))
        assert float(said[1]) == pytest.approx(best.price, rel=1e-4)
        assert shown(page) == ranks(gathered, best.units)
    for limit in (sorted(prices)[2] + 0.1, 1.0):  # between two lists, and below all of them
        page.run(
            f"(s => {{ s.value = {limit}; s.dispatchEvent(new Event('input')); }})"
            "(document.querySelector('#explore-cap'))"
        )
        within = [one for one in lists if one.price <= limit]
        best = min(within, key=lambda one: one.error, default=None)
        said = f"No list for at most {limit:g}" if best is None else words(gathered, best)
        assert said in text(page, "#explore-words")
        assert float(page.run("document.querySelector('#explore-cap').value")) == limit
    assert page.complaints == []
    set_slider(page, 0)
    assert words(gathered, lists[0]) in text(page, "#explore-words")


def test_a_price_limit_holds_when_a_column_is_left_out(browser, gathered, tmp_path):
    lists = [one._replace(price=10.0 + one.size) for one in gathered.candidates]
    limit = 10.5 + gathered.n_kept
    replace(gathered, candidates=lists, price_limit=limit).save(tmp_path / "limited.html")
    page = opened(browser, tmp_path / "limited.html")
    unit = gathered.kept[0]
    press(page, "#explore-list tbody button", 0)
    usable = [
        one
        for one in lists
        if one.price <= limit and set(one.without) <= {unit} and unit not in one.units
    ]
    best = min(usable, key=lambda one: one.error)
    assert words(gathered, best) in text(page, "#explore-words")
    assert shown(page) == ranks(gathered, best.units)
    assert page.run("document.querySelector('#explore-cap').value") == f"{limit:g}"
    press(page, "#explore-reset")
    assert text(page, "#explore-at").startswith(f"{gathered.n_kept} column")
    assert page.complaints == []


def test_a_price_limit_has_a_tolerance_for_rounding(browser, gathered, tmp_path):
    lists = [one._replace(price=0.1 * one.size) for one in gathered.candidates]
    limit = 0.1 * gathered.n_kept * (1 - 1e-12)
    replace(gathered, candidates=lists, price_limit=limit).save(tmp_path / "rounded.html")
    page = opened(browser, tmp_path / "rounded.html")
    press(page, "#explore-list tbody button", 0)
    unit = gathered.kept[0]
    within = [one for one in lists if one.size <= gathered.n_kept]
    usable = [one for one in within if set(one.without) <= {unit} and unit not in one.units]
    best = min(usable, key=lambda one: one.error)
    assert best.size == gathered.n_kept
    assert words(gathered, best) in text(page, "#explore-words")


@pytest.mark.parametrize("width", [1180, 400, 320])
def test_hostile_names_run_no_script(browser, path, gathered, width):
    browser.resize(width, 900)
    page = opened(browser, path)
    for index in range(len(own(gathered))):
        set_slider(page, index)
    press(page, "#explore-list tbody button")
    press(page, "#explore-reset")
    press(page, "#explore-groups button")
    page.settle()
    assert page.complaints == []
    assert page.requests == []
    assert page.run("document.querySelectorAll('img, iframe, main script, main style').length") == 0
    assert page.run("document.documentElement.scrollWidth") <= width
    browser.resize(1180, 900)


def test_print_shows_the_chosen_state(browser, path, gathered):
    page = opened(browser, path)
    press(page, "#explore-list tbody button")
    said = text(page, "#explore-words")
    page.show_as("print")
    seen = "getComputedStyle(document.querySelector({!r})).display !== 'none'"
    assert text(page, "#explore-words") == said
    assert all(page.run(seen.format(f"#explore-{part}")) for part in ("words", "list", "chart"))
    assert page.run("document.querySelector('#explore-size').getBoundingClientRect().width") == 0
    page.show_as("screen")


def test_without_javascript_the_curve_and_the_table_are_there(browser, path):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("document.querySelector('#explorer').hidden")
    assert browser.run("document.querySelector('#curve svg').getBoundingClientRect().width") > 0
    assert "stability" in text(browser, "#size details")


@pytest.mark.skipif(axe() is None, reason="needs axe-core: npm install axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1180, 400])
def test_axe_finds_nothing_serious_in_the_explorer(browser, path, scheme, width):
    browser.prefer(scheme)
    browser.resize(width, 900)
    page = opened(browser, path)
    press(page, "#explore-list tbody button")
    page.run(axe().read_text(encoding="utf-8") + ";1")
    found = page.run(
        "axe.run('#size').then(r => r.violations.map(v => [v.impact, v.id, v.nodes[0].html]))"
    )
    browser.prefer("light")
    browser.resize(1180, 900)
    assert found == []

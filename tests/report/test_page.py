"""A page agrees with the selection and the results, whatever is missing."""

import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import tamis
from tamis.auto import Auto
from tamis.criteria import Correlation, FisherScore, Scatter, Variance
from tamis.datasets import make_mixed
from tamis.evaluation import Realizations, Stability, evaluate
from tamis.exceptions import InvalidParameter, InvalidTable, MissingExtra, NothingFound, TableAlert
from tamis.meta import HonestSize, StabilitySelection
from tamis.report import Report, report, resampled, write_report
from tamis.report.columns import numbers_of
from tamis.search import Forward, Ranking
from tamis.svm import SVCPathCV
from tamis.table import TableSelector
from tests.page_cases import HOSTILE

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytest.importorskip("jinja2")


class Page(HTMLParser):
    """The text of each section, the tags, and what opens or closes out of turn."""

    VOID = frozenset({"meta", "input", "br", "img", "link"})

    def __init__(self, html):
        super().__init__()
        self.html, self.sections, self.tags, self.open, self.wrong = html, {}, [], [], []
        self.section, self.text = "head", {"head": ""}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self.section = dict(attrs)["id"]
            self.text[self.section] = ""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text[self.section] += data

    @property
    def said(self):
        return {name: " ".join(text.split()) for name, text in self.text.items()}

    @property
    def data(self):
        return json.loads(re.search(r'id="data">(.*?)</script>', self.html, re.S)[1])


@pytest.fixture(scope="module")
def whole(eliminated, wine, resampled):
    gathered = report(
        eliminated, wine.X, wine.y, results=resampled, source="wine.csv", target="cultivar"
    )
    return gathered, Page(gathered.html())


def test_the_result_comes_first(whole):
    gathered, page = whole
    assert isinstance(gathered, Report)
    assert page.said["head"].count("Keep 5 of 13 columns to predict cultivar") == 2
    assert "wine.csv · 178 rows" not in page.html  # dots are drawn by the style sheet
    assert "178 rows × 13 columns" in page.said["head"]
    assert list(page.text) == [
        "head", "care", "columns", "size", "ranking", "redundancy", "method",
    ]  # fmt: skip


def test_the_page_is_well_formed_and_loads_nothing(whole):
    _, page = whole
    assert page.wrong == []
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag not in ("img", "link", "iframe", "object", "embed", "form", "base")
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert not attributes.get("src")
        assert attributes.get("href", "#").startswith("#")
    assert "http:" not in page.html.replace('http-equiv="', "")
    assert "https:" not in page.html
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'sha256-" in policy


def test_the_errors_are_those_of_the_results(whole, resampled, wine):
    gathered, page = whole
    mean = {
        k: 100 * np.mean(list(resampled.values("error", "rfe", size=k).values())) for k in (5, 13)
    }
    assert gathered.errors.kept.value == pytest.approx(mean[5])
    assert gathered.errors.whole.value == pytest.approx(mean[13])
    assert gathered.errors.guess == pytest.approx(100 * (1 - np.bincount(wine.y).max() / 178))
    paired = [
        100 * (a - b)
        for a, b in zip(
            resampled.values("error", "rfe", size=5).values(),
            resampled.values("error", "rfe", size=13).values(),
            strict=True,
        )
    ]
    assert gathered.errors.lost.value == pytest.approx(np.mean(paired))
    assert f"{mean[5]:.1f}\u00a0%" in page.html
    assert "A linear SVM trained on these 5 columns" in page.said["head"]


def test_stability_and_ranks_are_those_of_the_results(whole, resampled):
    from tamis.evaluation import stability

    gathered, page = whole
    masks = resampled.supports("rfe", size=5)
    assert gathered.agreement.index == pytest.approx(stability(masks).nogueira)
    assert gathered.agreement.share == pytest.approx(masks.mean(axis=0))
    places = np.array([np.argsort(order) + 1 for order in resampled.orders("rfe")])
    low = np.quantile(places, 0.1, axis=0, method="nearest")
    assert (gathered.ranks.low == low).all()
    assert "share of the 6 resamples" in page.said["columns"]


def test_the_data_of_the_table_are_the_ranking(whole, eliminated, wine):
    _, page = whole
    order = eliminated.order_
    assert page.data["name"] == [str(wine.feature_names[j]) for j in order]
    assert page.data["kept"] == 5
    assert page.data["score"] == pytest.approx(eliminated.scores_[order].tolist(), rel=1e-3)
    r = np.abs(np.corrcoef(wine.X.T))
    kept = np.flatnonzero(eliminated.support_)
    for place, column in enumerate(order):
        others = [j for j in kept if j != column]
        best = max(others, key=lambda j: r[column, j])
        assert page.data["r"][place] == pytest.approx(r[column, best], abs=0.006)
        assert order[page.data["near"][place]] == best


def test_replacements_are_close_and_not_kept(whole, eliminated, wine):
    gathered, _ = whole
    r = np.abs(np.corrcoef(wine.X.T))
    for unit, swaps in gathered.swaps.items():
        others = [j for j in range(13) if not eliminated.support_[j] and r[unit, j] >= 0.7]
        assert {swap.unit for swap in swaps} == set(sorted(others, key=lambda j: -r[unit, j])[:3])


def test_tried_swaps_are_shown(eliminated, wine):
    from types import SimpleNamespace as Tried

    kept, others = (
        eliminated.columns,
        [n for n in wine.feature_names if n not in eliminated.columns],
    )
    tried = [
        (kept[0], others[0], 0.001, True),
        (kept[0], others[1], 0.123, False),
        (kept[1], others[2], np.nan, None),
    ]
    # the page has one correlation for a pair of columns, whatever was found after encoding
    swaps = [
        Tried(column=a, substitute=b, correlation=0.9, loss_change=change, stands_in=stands_in)
        for a, b, change, stands_in in tried
    ]
    gathered = report(eliminated, wine.X, wine.y, substitutes=swaps)
    page = Page(gathered.html())
    r = np.abs(np.corrcoef(wine.X.T))
    place = list(wine.feature_names).index
    for (a, b, *_), note in zip(tried, (" · same", " · +0.12", ""), strict=True):
        assert f"{b} {r[place(a), place(b)]:.2f}{note}" in page.said["columns"]
    assert "rise of the loss" in page.said["columns"]


def test_a_code_of_a_kept_category_is_closest_to_it():
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    site = rng.integers(0, 4, 200)
    y = np.isin(site, [1, 3]).astype(int)
    y[:20] = rng.integers(0, 2, 20)
    site_names = np.array(["Ulm", "Bonn", "Graz", "Bern"])[site]
    frame = pl.DataFrame({"x": rng.normal(size=200), "site": site_names, "site_code": site})
    selection = TableSelector(Ranking(FisherScore(), n_features_to_select=1)).fit(frame, y)
    assert selection.columns == ["site"]
    substitutes = selection.substitutes(frame, y)
    gathered = report(selection, frame, y, substitutes=substitutes)
    near, r = gathered.closest
    assert (near[2], r[2]) == (1, pytest.approx(next(iter(substitutes)).correlation))
    assert gathered.swaps[1][0].r == r[2] > 0.9


def test_effects_on_a_model_are_shown(eliminated, wine):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from tamis.response import effects

    kept = np.flatnonzero(eliminated.support_)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(wine.X[:, kept], wine.y)
    gathered = report(eliminated, wine.X, wine.y, model=model)
    found = effects(model, wine.X[:, kept])
    for k, column in enumerate(kept):
        assert gathered.effects[column].means == pytest.approx(found[k].means)
    page = Page(gathered.html())
    assert page.said["effects"].count("mean probability of ") == 5
    with pytest.raises(InvalidParameter, match="trained on the 5 kept columns"):
        report(eliminated, wine.X, wine.y, model=LogisticRegression().fit(scale(wine.X), wine.y))


def test_the_text_names_the_class_that_stands_out(whole, wine):
    gathered, page = whole
    column = list(wine.feature_names).index("flavanoids")
    medians = [np.median(wine.X[wine.y == c, column]) for c in range(3)]
    assert gathered.strips[column].shapes[0].median == pytest.approx(medians[0])
    assert re.search(r"(high|low) in [012]: median [\d.]+, others [\d.]+", page.said["columns"])


# -- what may be missing --------------------------------------------------------------------------


def test_without_resamples_there_is_no_error_and_no_stability(wine):
    chosen = Forward(Scatter("J3"), n_features_to_select=4).fit(wine.X, wine.y)
    gathered = report(chosen, wine.X, wine.y, command="tamis select wine.csv --target y sfs-j3")
    page = Page(gathered.html())
    assert gathered.errors is None
    assert gathered.agreement is None
    assert "stability" not in page.text
    assert "There is no error estimate" in page.said["head"]
    assert "on the rows used for the selection. This is not an error estimate." in page.said["size"]
    assert "tamis select wine.csv --target y sfs-j3 --resamples 20" in page.said["size"]
    assert "Kept in resamples" not in page.said["columns"]
    assert gathered.values.value == pytest.approx(chosen.trace_.values)


def test_a_real_target_has_thirds_and_a_root_with_r2(wine):
    X, y = wine.X[:, 1:], wine.X[:, 0]
    chosen = SelectKBest(f_regression, k=3).fit(X, y)
    results = resampled(chosen, X, y, 4)
    gathered = report(chosen, X, y, results=results, target="alcohol")
    page = Page(gathered.html())
    assert gathered.task == "regression"
    assert [group.n_rows for group in gathered.groups] == pytest.approx([178 / 3] * 3, abs=3)
    mse = list(results.values("mse", "SelectKBest", size=3).values())
    assert gathered.errors.kept.value == pytest.approx(np.sqrt(mse).mean())
    assert gathered.errors.guess == pytest.approx(y.std())
    assert "root mean squared error" in page.said["head"]
    assert "R²" in page.said["head"]
    assert "baseline (mean)" in page.said["head"]
    assert re.search(r"(rises|falls) with the target: median", page.said["columns"])


def test_without_a_target_there_is_one_strip_and_no_error(wine):
    chosen = Ranking(Variance(), n_features_to_select=4).fit(wine.X)
    gathered = report(chosen, wine.X)
    page = Page(gathered.html())
    assert "Keep 4 of 13 columns" in page.said["head"]
    assert "to predict" not in page.said["head"]
    assert "No target was given" in page.said["head"]
    assert all(len(strip.shapes) == 1 for strip in gathered.strips.values())
    assert re.search(r"median [\d.]+, middle half [\d.]+ to [\d.]+", page.said["columns"])


def test_many_classes_have_two_strips():
    rng = np.random.default_rng(0)
    y = np.repeat(list("abcdefghi"), 12)
    X = rng.normal(size=(len(y), 4))
    X[y == "d", 2] += 5
    chosen = Ranking(FisherScore(), n_features_to_select=2).fit(X, y)
    gathered = report(chosen, X, y)
    assert [len(strip.shapes) for strip in gathered.strips.values()] == [2, 2]
    assert gathered.strips[2].words.startswith("high in d: median ")
    page = Page(gathered.html())
    assert "Top line: the named class" in page.said["columns"]
    assert (
        "Few rows: 12 of “a”, 12 of “b”, 12 of “c”, 12 of “d” and 5 more classes."
        in page.said["care"]
    )


def test_a_ranking_has_no_path(wine):
    chosen = Ranking(FisherScore(), n_features_to_select=4).fit(wine.X, wine.y)
    page = Page(report(chosen, wine.X, wine.y).html())
    assert "path" not in page.text
    assert "#path" not in page.html


def test_a_tuned_svm_has_its_curve(wine, tuned):
    chosen = Ranking(FisherScore(), n_features_to_select=4).fit(wine.X, wine.y)
    page = Page(report(chosen, wine.X, wine.y, tuned=tuned).html())
    assert "exact at every C, not sampled" in page.said["tuning"]
    assert "tuning" not in Page(report(chosen, wine.X, wine.y).html()).text


def test_a_constant_curve_is_described_in_one_sentence(wine):
    X = np.column_stack([wine.y * 10.0, wine.X[:, 0]])
    search = SVCPathCV("linear", cv=3, lambda_range=(0.01, 0.1)).fit(scale(X), wine.y)
    assert np.ptp(search.curve_.coefficients) == 0
    chosen = Ranking(FisherScore(), n_features_to_select=1).fit(X + 1e-3 * wine.X[:, :2], wine.y)
    page = Page(report(chosen, X, wine.y, tuned=search).html())
    assert "has the same cross-validated error rate, none" in page.said["tuning"]
    assert "<svg" not in page.html.split('id="tuning"')[1].split("</section>")[0]


def test_a_report_of_one_column_states_it(wine):
    chosen = Ranking(FisherScore(), n_features_to_select=1).fit(wine.X, wine.y)
    page = Page(report(chosen, wine.X, wine.y).html())
    assert "Only one column is kept." in page.said["redundancy"]
    assert "Keep 1 of 13 columns" in page.said["head"]


def test_more_than_forty_show_the_closest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 60))
    X[:, 50] = X[:, 3] + 0.01 * rng.normal(size=80)
    chosen = Ranking(Correlation(), n_features_to_select=55).fit(X, X[:, 3] + X[:, 50])
    gathered = report(chosen, X, X[:, 3])
    page = Page(gathered.html())
    assert "the 40 closest of the 55 kept columns" in page.said["redundancy"]
    assert ("tr", {"role": "row", "class": "rest"}) in page.tags
    assert "Show all 55" in page.said["columns"]
    assert "and 15 more" in page.said["head"]


def test_columns_without_a_close_one_are_marked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    chosen = Ranking(Correlation(), n_features_to_select=2).fit(X, X[:, 0] + X[:, 1])
    page = Page(report(chosen, X, X[:, 0]).html())
    assert page.said["columns"].count("no column with |r| ≥ 0.7") == 2


def test_columns_without_a_score_have_a_dash_and_null(wine):
    chosen = Forward(FisherScore(), n_features_to_select=2).fit(wine.X, wine.y)
    chosen.scores_ = np.where(chosen.support_, chosen.scores_, np.nan)
    page = Page(report(chosen, wine.X, wine.y).html())
    assert page.data["score"].count(None) == 11
    assert "–" in page.said["ranking"]


def test_a_report_states_that_nothing_is_selected():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    with pytest.warns(NothingFound):
        chosen = HonestSize(Ranking(Correlation()), random_state=0).fit(X, y)
    page = Page(report(chosen, X, y).html())
    assert page.said["head"].count("No column is worth keeping") == 2
    assert "squared loss on held-out rows" in page.said["head"]
    assert "columns" not in page.text
    assert "redundancy" not in page.text
    assert "ranking" in page.text


def test_a_stopped_search_prints_how_to_resume(wine):
    chosen = tamis.recipe("ridge-rfe", n_features_to_select=3)

    class Stop:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, *args, **kwargs): ...
        def on_fit_task_end(self, *args, **kwargs):
            return True

    chosen.set_callbacks(Stop()).fit(wine.X, wine.y)
    assert not chosen.record_.finished
    gathered = report(chosen, wine.X, wine.y, resume="tamis select wine.csv --resume r.json")
    page = Page(gathered.html())
    assert gathered.cares[0].fact == "The search was stopped before its end."
    assert "tamis select wine.csv --resume r.json" in page.said["care"]
    assert "So far, keep" in page.said["head"]


def test_failed_resamples_are_reported(eliminated, wine, resampled):
    from dataclasses import replace

    from tamis.evaluation import Failure

    broken = replace(resampled, failures=(Failure("rfe", "wine", 7, "no memory"),))
    cares = report(eliminated, wine.X, wine.y, results=broken).cares
    assert any(c.fact == "1 resample failed." and "no memory" in c.consequence for c in cares)


def test_a_size_read_off_the_curve_is_a_caveat(eliminated, wine, resampled):
    given = {"results": resampled, "size_from_results": True}
    cares = report(eliminated, wine.X, wine.y, **given).cares
    assert any("chosen by the same errors" in care.fact for care in cares)


def test_no_error_seen_is_not_no_error(wine):
    X = np.column_stack([wine.y * 10 + wine.X[:, 0] / 100, wine.X])
    chosen = Ranking(FisherScore(), n_features_to_select=1).fit(X, wine.y)
    gathered = report(chosen, X, wine.y, results=resampled(chosen, X, wine.y, 3))
    assert gathered.errors.kept.value == 0
    page = Page(gathered.html())
    bound = 100 * (1 - 0.05 ** (1 / 178))
    assert f"a true error rate of {bound:.1f}\u00a0%" in page.text["care"]
    assert "error rate of none on held-out rows" in page.said["head"]
    assert "± 0.0" not in page.said["head"]


def test_wide_tables_are_warned_of():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 300))
    chosen = Ranking(Correlation(), n_features_to_select=3).fit(X, X[:, 0])
    cares = report(chosen, X, X[:, 0]).cares
    assert any(care.fact == "300 columns for 20 rows." for care in cares)


# -- other selections and tables ------------------------------------------------------------------


def test_a_selection_with_held_out_errors_has_a_curve(wine):
    X, y = wine.X[:, 1:], wine.X[:, 0]
    chosen = HonestSize(Ranking(Correlation()), random_state=0).fit(X, y)
    gathered = report(chosen, X, y)
    assert gathered.curve.size.tolist() == chosen.sizes_[1:].tolist()
    assert gathered.curve.mean == pytest.approx(chosen.losses_[1:])
    page = Page(gathered.html())
    assert "size" in page.text
    assert "path" not in page.text
    assert "Importance" not in page.said["columns"]  # its scores are places counted down
    assert "ranks columns without scoring them" in page.said["columns"]


def test_a_selection_by_halves_has_its_own_stability(wine):
    X, y = wine.X[:, 1:], wine.X[:, 0]
    chosen = StabilitySelection(Ranking(Correlation()), n_pairs=5, random_state=0).fit(X, y)
    gathered = report(chosen, X, y)
    assert gathered.agreement.share == pytest.approx(chosen.frequency_)
    assert gathered.agreement.n == 10
    assert "share of the 10 resamples" in Page(gathered.html()).said["columns"]


def test_a_selection_inside_an_encoder_has_its_own_estimates(wine):
    """Columns are those of the frame, with what was set aside among them."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(wine.X[:, 1:], columns=wine.feature_names[1:])
    frame.insert(2, "sample", [f"s{i}" for i in range(178)])
    frame.insert(5, "kind", np.array(list("uvw"))[wine.y])
    y = wine.X[:, 0]
    halves = StabilitySelection(Ranking(Correlation()), n_pairs=5, random_state=0)
    with pytest.warns(TableAlert):
        chosen = TableSelector(halves).fit(frame, y)
    gathered = report(chosen, frame, y)
    share = dict(zip(gathered.units.names, gathered.agreement.share, strict=True))
    assert share["sample"] == 0
    names = [n for n in frame.columns if n != "sample"]
    assert [share[n] for n in names] == pytest.approx(chosen.search_.frequency_)
    with pytest.warns(TableAlert):
        chosen = TableSelector(HonestSize(Ranking(Correlation()), random_state=0)).fit(frame, y)
    gathered = report(chosen, frame, y)
    assert gathered.curve.mean == pytest.approx(chosen.search_.losses_[1:])
    assert np.isnan(gathered.units.scores).all()


def test_an_automatic_selection_has_its_own_errors(eliminated, wine):
    """Whatever has these attributes is read: no class is asked for."""
    from types import SimpleNamespace as Facts

    def held(loss, wrong):
        return Facts(
            loss=loss, standard_error=0.01, wrong=wrong, wrong_error=0.02, rmse=None, r2=None
        )

    eliminated = tamis.recipe("ridge-rfe", n_features_to_select=5).fit(wine.X, wine.y)
    eliminated.error_, eliminated.error_all_ = held(0.1, 0.05), held(0.08, 0.03)
    eliminated.error_guess_ = held(0.6, 0.6)
    eliminated.path_, eliminated.model_ = "information", "ridge"
    points = [
        ("information", "ridge", 1, 0.5),
        ("information", "ridge", 5, 0.1),
        ("forest", "ridge", 1, 0.2),
    ]
    eliminated.curve_ = [
        Facts(path=p, model=m, size=k, loss=loss, standard_error=0.01) for p, m, k, loss in points
    ]
    eliminated.plan_ = [Facts(name="forest", tried=False, seconds=9.0, reason="it would take 9 s")]
    gathered = report(eliminated, wine.X, wine.y)
    assert gathered.errors.kept.value == pytest.approx(5)
    assert gathered.curve.size.tolist() == [1, 5]
    assert gathered.curve.whole == pytest.approx(0.08)
    page = Page(gathered.html())
    assert "A ridge regression trained on these 5 columns: error rate of 5.0" in page.said["head"]
    assert "forest: it would take 9 s" in page.said["method"]
    eliminated.stability_ = Facts(
        nogueira=0.5, low=0.2, high=0.8, frequency=np.full(13, 0.4), n_selections=15
    )
    eliminated.curve_all_ = Facts(loss=0.07)
    eliminated.error_all_ = eliminated.error_  # all columns are kept
    gathered = report(eliminated, wine.X, wine.y)
    assert gathered.curve.whole == pytest.approx(0.07)
    page = Page(gathered.html())
    assert "with all" not in page.said["head"]
    assert "Lost" not in page.said["head"]
    assert "share of the 15 resamples" in page.said["columns"]
    eliminated.error_, eliminated.error_all_ = eliminated.error_guess_, held(0.08, 0.03)
    assert report(eliminated, wine.X, wine.y).errors.lost is None  # nothing is kept


@pytest.mark.parametrize(("n_kept", "n_weak"), [(1, 1), (5, 1), (5, 2)])
def test_columns_that_resamples_rarely_keep_are_a_caveat(n_kept, n_weak, wine):
    chosen = Ranking(FisherScore(), n_features_to_select=n_kept).fit(wine.X, wine.y)
    share = np.ones(13)
    share[chosen.order_[:n_weak]] = 0.2
    chosen.stability_ = Stability(0.5, 0.2, 0.8, 0.95, 0.5, 0.5, share, 5)
    bold = {
        (1, 1): "The one column was kept in less than half of the resamples.",
        (5, 1): "1 of the 5 was kept in less than half of the resamples.",
        (5, 2): "2 of the 5 were kept in less than half of the resamples.",
    }
    assert bold[n_kept, n_weak] in Page(report(chosen, wine.X, wine.y).html()).said["care"]


def test_a_group_is_shown_as_one_unit(wine):
    groups = {"phenols": [5, 6, 7], "ash": [2, 3]}
    chosen = Ranking(FisherScore(), n_features_to_select=3, feature_groups=groups)
    chosen.fit(wine.X, wine.y)
    page = Page(report(chosen, wine.X, wine.y).html())
    assert "phenols" in page.said["ranking"]
    assert "All 10 columns and groups" in page.said["ranking"]


def test_a_mixed_table_has_a_report():
    table = make_mixed(300, random_state=0, like="incomes")
    chosen = tamis.select(table.to_frame(), table.y, n_features_to_select=4)
    gathered = report(chosen, table.to_frame(), table.y)
    kinds = {strip.kind for strip in gathered.strips.values()}
    assert "levels" in kinds
    page = Page(gathered.html())
    assert "Bars are shares of the most frequent values" in page.said["columns"]
    assert "numeric kept columns" in page.said["redundancy"]
    assert page.wrong == []


def test_descriptions_are_shown_next_to_names(eliminated, wine):
    told = {"flavanoids": "a kind of <phenol>"}
    page = Page(report(eliminated, wine.X, wine.y, descriptions=told).html())
    assert "a kind of <phenol>" in page.said["ranking"]


def test_another_table_or_target_is_refused(eliminated, wine):
    with pytest.raises(InvalidTable, match="was fitted to 13"):
        report(eliminated, wine.X[:, :4], wine.y)
    with pytest.raises(InvalidTable, match="one target for each of the 178 rows"):
        report(eliminated, wine.X, wine.y[:9])
    with pytest.raises(InvalidParameter, match="task as one of"):
        report(eliminated, wine.X, wine.y, task="classes")


def test_a_wide_page_stays_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10_000))
    y = np.repeat([0, 1], 30)
    X[y == 1, :10] += 1
    chosen = Ranking(FisherScore(), n_features_to_select=20).fit(X, y)
    names = [f"IMAGE:{j:06d}" for j in range(10_000)]
    page = report(chosen, X, y, names=names).html()
    assert len(page.encode()) < 1_000_000
    assert len(Page(page).data["name"]) == 10_000


# -- hostile names --------------------------------------------------------------------------------


def test_names_cannot_do_harm(hostile, wine):
    chosen, frame = hostile
    y = np.array(['<img src=x onerror="alert(1)">', "</script>", "\x00"])[wine.y]
    told = {name: f"what {name} is" for name in HOSTILE}
    gathered = report(
        chosen, frame, y, target="<b>y</b>", source="<i>.csv", descriptions=told,
        command="tamis select '<script>alert(1)</script>'", alerts=["<u>careful</u>"],
    )  # fmt: skip
    page = Page(gathered.html())
    assert page.wrong == []
    assert page.open == []
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"img", "b1", "u", "iframe"}
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert "\x00" not in page.html
    assert "\u202e" not in page.html
    assert sorted(page.data["raw"]) == sorted(HOSTILE)  # copies and CSV keep names as they are
    assert "{{ 7 * 7 }}" in page.said["ranking"]


def test_a_hostile_title_adds_no_script(eliminated, wine):
    page = Page(report(eliminated, wine.X, wine.y, title="</title><script>x</script>").html())
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert page.wrong == []


# -- writing --------------------------------------------------------------------------------------


def test_a_page_replaces_the_old_file(whole, tmp_path):
    gathered, page = whole
    path = tmp_path / "report.html"
    path.write_text("old")
    gathered.save(path)
    assert path.read_text(encoding="utf-8") == page.html
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="nowhere"):
        write_report(gathered, tmp_path / "nowhere" / "report.html")


def test_a_notebook_shows_it_in_a_frame_of_its_own(whole):
    gathered, _ = whole
    assert gathered._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_a_table_with_text_and_missing_values_is_resampled():
    """It is encoded by the training rows, separately in every resample."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    word = rng.integers(3, size=120)
    y = (word == 1) ^ (rng.uniform(size=120) < 0.1)
    number = rng.normal(size=120)
    number[::7] = np.nan
    frame = pl.DataFrame(
        {
            "word": np.array(["red", "green", "blue"])[word],
            "number": number,
            "noise": rng.normal(size=120),
        }
    )
    chosen = tamis.select(frame, y, "mrmr", n_features_to_select=1)
    results = resampled(chosen, frame, y, 4)
    assert not results.failures
    gathered = report(chosen, frame, y, results=results)
    assert gathered.errors.kept.value < 20 < gathered.errors.guess
    assert gathered.errors.machine == "A linear SVM"
    assert gathered.agreement.share.tolist() == [1, 0, 0]


def test_the_strongest_pairs_are_shown_if_there_are_any(wine, eliminated):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 6))
    y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    chosen = tamis.select(X, y, "pair-scan", n_features_to_select=2)
    page = report(chosen, X, y, names=["a", "<b>", "c", "d", "e", "f"]).html()
    assert 'href="#pairs"' in page
    best = chosen.interactions_[0].information
    assert f"&lt;b&gt; and e carry {best:.2g} nats of information about the target" in page
    assert "All 15 pairs were scored" in page
    assert "#pairs" not in report(eliminated, wine.X, wine.y).html()


@pytest.mark.parametrize("module", ["jinja2", "vl_convert"])
def test_without_the_extra_one_sentence_names_what_to_install(whole, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    for drawing in ("selection_page", "template"):
        monkeypatch.delitem(sys.modules, f"tamis.report.{drawing}", raising=False)
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[app\]'"):
        whole[0].html()


def test_results_of_another_metric_are_shown_unchanged(wine, eliminated):
    method = tamis.recipe("ridge-rfe", n_features_to_select=5)
    results = evaluate(
        {"rfe": method}, wine, Realizations(3), ["ber", "accuracy"], estimators=SVC(), sizes=[5, 13]
    )
    page = Page(report(eliminated, wine.X, wine.y, results=results, metric="accuracy").html())
    assert "Accuracy on held-out rows" in page.said["head"]


def test_a_pair_of_columns_has_one_correlation():
    pl, rng = pytest.importorskip("polars"), np.random.default_rng(0)
    a, c = rng.normal(size=(2, 200))
    b = np.where(rng.random(200) < 0.4, np.nan, a + 0.3 * rng.normal(size=200))
    frame, y = pl.DataFrame({"a": a, "b": b, "c": c}), a + c
    chosen = tamis.select(frame, y, "correlation", n_features_to_select=2)
    (swap,) = chosen.substitutes(frame, y, random_state=0)
    assert swap.correlation < 0.75  # after missing values were filled in
    gathered = report(chosen, frame, y, substitutes=[swap])
    both = np.isfinite(b)
    want = abs(np.corrcoef(a[both], b[both])[0, 1])
    assert gathered.swaps[0][0].r == pytest.approx(want, rel=1e-10)
    assert gathered.closest[1][1] == pytest.approx(want, rel=1e-10)


def test_close_columns_have_one_definition_on_the_page():
    rng = np.random.default_rng(3)
    base = rng.normal(size=(120, 2))
    X = np.column_stack([base[:, [0, 0, 0, 1]] + 0.3 * rng.normal(size=(120, 4)), base[:, 1] ** 3])
    y = X[:, :4].sum(axis=1)
    chosen = Ranking(Correlation(), n_features_to_select=4).fit(X, y)
    kept = np.flatnonzero(chosen.get_support())
    assert len(kept) == 4
    r = np.abs(np.corrcoef(X.T))
    np.fill_diagonal(r, 0)
    among = (r[np.ix_(kept, kept)] >= 0.7).sum(axis=1)
    dropped = (np.delete(r[kept], kept, axis=1) >= 0.7).any(axis=1)
    assert among.any()
    assert not dropped[among > 0].all()
    said = Page(report(chosen, X, y).html()).said
    for n in set(among.tolist()) - {0}:
        words = f"no dropped column; close to {n} kept column{'s' * (n > 1)}"
        assert said["columns"].count(words) == ((among == n) & ~dropped).sum()
    assert said["columns"].count("no column with |r| ≥ 0.7") == ((among == 0) & ~dropped).sum()
    assert f"{among.sum() // 2} of 6 pairs of kept columns have |r| ≥ 0.7." in said["redundancy"]


def test_a_gain_is_shown_with_the_standard_error_of_the_difference(wine):
    chosen = Auto(budget=1, random_state=0, n_features_to_select=3).fit(wine.X, wine.y)
    lost = chosen.error_lost_
    word, size = "Gain" if lost.wrong < 0 else "Loss", abs(100 * lost.wrong)
    verb = "is within" if size <= 100 * lost.wrong_error else "exceeds"
    shown = Page(report(chosen, wine.X, wine.y).html()).said["head"]
    gained = f"{word} compared with all columns{size:.1f} points ± {100 * lost.wrong_error:.1f}"
    assert f"{gained} for the difference, which {verb} one standard error" in shown


def test_the_plan_of_auto_is_described_as_text(wine):
    chosen = Auto(budget=1, random_state=0, n_features_to_select=3).fit(wine.X, wine.y)
    html = report(chosen, wine.X, wine.y).html()
    assert "column order by joint mutual information: always tried" in html
    assert "ridge regression: always tried" in html
    assert not re.search(r"(path|model|all columns): \w+:", html)


def test_the_share_of_resamples_counts_the_folds_that_keep_a_column(wine):
    chosen = Auto(budget=1, random_state=0, n_features_to_select=3).fit(wine.X, wine.y)
    rounds = chosen.record_.trace.state["rounds"].values()
    folds = [subsets[chosen.path_]["3"] for _, subsets, *_ in rounds]
    page = report(chosen, wine.X, wine.y)
    expected = [np.mean([unit in units for units in folds]) for unit in range(wine.X.shape[1])]
    np.testing.assert_allclose(page.agreement.share, expected)
    assert f"share of the {len(folds)} resamples" in Page(page.html()).said["columns"]


def test_columns_of_a_frame_are_read_by_position_without_listing_all_names(monkeypatch):
    import pandas as pd
    import polars as pl

    twins = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    assert numbers_of(twins, np.array([1, 0])).tolist() == [[2, 1], [4, 3]]
    wide, names, listed = pl.DataFrame(np.eye(50)), pl.DataFrame.columns, []
    count = property(lambda frame: listed.append(1) or names.fget(frame), names.fset)
    monkeypatch.setattr(pl.DataFrame, "columns", count)
    assert (numbers_of(wide, np.arange(50)) == np.eye(50)).all()
    assert len(listed) < 5

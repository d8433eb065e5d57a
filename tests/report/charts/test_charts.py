"""Charts show the numbers of selections and results."""

import json
import pickle
import re
import sys
from html import unescape

import numpy as np
import polars as pl
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.svm import SVC

import tamis
from tamis import plot
from tamis._format import format_name
from tamis.choice.front import PricedList
from tamis.criteria import Correlation, FisherScore
from tamis.evaluation import Realizations, evaluate, friedman
from tamis.exceptions import InvalidParameter, InvalidTable, MissingExtra, NotEnoughMemory
from tamis.meta import ConditionalTest, InvariantSelection, Probes
from tamis.report.charts.curves import push_apart as apart
from tamis.report.charts.style import LETTERS, LIGHT, PAGE
from tamis.report.error_curve import error_curves
from tamis.report.svg import to_svg
from tamis.report.units import chosen_units
from tamis.search import Forward, Ranking
from tests.page_cases import HOSTILE

pytest.importorskip("altair")
vl_convert = pytest.importorskip("vl_convert")


def svg(chart):
    return vl_convert.vegalite_to_svg(chart.to_dict(validate=False))


def rows(chart, name):
    """The data that a chart has under a name."""
    found = {}

    def look(part):
        if isinstance(part, dict):
            if part.get("name") and "values" in part:
                found[part["name"]] = part["values"]
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(chart.to_dict(validate=False))
    return found[name]


def test_a_notebook_shows_a_chart_without_loading_anything(eliminated, monkeypatch):
    chart = plot.path(eliminated)
    for shown in (chart, chart.properties(width=300), pickle.loads(pickle.dumps(chart))):
        (kind, drawn), *others = shown._repr_mimebundle_().items()
        assert (kind, others) == ("image/svg+xml", [])
        assert set(re.findall(r"https?://[^\s\"'<>]+", drawn)) == {
            "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink",
        }  # fmt: skip
        plain = to_svg(shown.to_dict())  # fonts of the notebook may be wider
        widths = [float(re.search(r'width="([\d.]+)"', svg)[1]) for svg in (drawn, plain)]
        assert widths[0] > widths[1] + 30
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # then altair shows it
    assert "text/html" in chart._repr_mimebundle_()


def test_charts_with_too_little_address_space_are_refused(eliminated, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 * 2**30, resource.RLIM_INFINITY))
    chart = plot.path(eliminated)
    with pytest.raises(NotEnoughMemory, match=r"need 66 GiB .* is 8 GiB\. Write ulimit"):
        to_svg(chart.to_dict())
    assert "text/html" in chart._repr_mimebundle_()  # then altair shows it


def test_a_notebook_shows_a_chart_by_the_renderer_that_the_user_chose(eliminated):
    import altair

    chart, before = plot.path(eliminated), altair.renderers.active
    assert before == "default"
    with altair.renderers.enable("json"):
        assert "application/json" in chart._repr_mimebundle_()[0]
    assert altair.renderers.active == before


def test_a_curve_has_the_means_and_corrected_errors_of_the_results(resampled):
    shown = rows(plot.curve(resampled, chosen=5), "points")
    for row in shown:
        values = list(resampled.values("error", "rfe", size=row["size"]).values())
        factor = 1 / len(values) + resampled.test_ratio()
        assert row["value"] == pytest.approx(100 * np.mean(values))
        error = 100 * np.std(values, ddof=1) * factor**0.5
        assert row["high"] - row["value"] == pytest.approx(error)
    assert [row["size"] for row in shown] == [1, 2, 3, 5, 8, 13]


def test_the_chosen_size_is_marked_and_all_columns_are_dashed(resampled, eliminated):
    chart = plot.curve(resampled, eliminated)
    (marked,) = rows(chart, "chosen")
    assert marked["label"] == "chosen: 5"
    assert rows(chart, "all columns")[0]["label"].startswith("all 13: ")
    assert "chosen: 5" in svg(chart)


def test_several_methods_are_named_at_their_ends(wine):
    methods = {"first": SelectKBest(k=3), "second": tamis.recipe("fisher-score")}
    results = evaluate(methods, wine, Realizations(3), estimators=SVC(), sizes=[1, 2, 4])
    drawn = svg(plot.curve(results))
    assert "first" in drawn
    assert "second" in drawn
    assert len(rows(plot.curve(results), "names")) == 2


def test_the_smallest_good_size_is_by_paired_losses(resampled):
    (line,) = error_curves(resampled)
    size, best = line.smallest_good()
    values = {k: resampled.values("error", "rfe", size=k) for k in line.size.tolist()}
    factor = (1 / len(values[1]) + resampled.test_ratio()) ** 0.5

    def good(k):
        loss = np.array([100 * (values[k][i] - values[best][i]) for i in values[k]])
        return loss.mean() <= loss.std(ddof=1) * factor

    assert best == min(values, key=lambda k: (np.mean(list(values[k].values())), k))
    assert size == next(k for k in sorted(values) if good(k) or k == best)


def test_perfect_results_do_not_ask_for_all_columns(wine):
    """The best error is 0 in every realization, and so is its standard error."""
    X = np.column_stack([wine.y + 1e-3 * wine.X[:, 0], wine.X])
    results = evaluate(
        SelectKBest(k=2), (X, wine.y), Realizations(4), estimators=SVC(), sizes=[1, 2, 14]
    )
    (line,) = error_curves(results)
    assert line.smallest_good()[0] in (1, 2)


def test_a_curve_of_a_real_target_is_its_root(wine):
    from sklearn.feature_selection import f_regression
    from sklearn.linear_model import Ridge

    X, y = wine.X[:, 1:], wine.X[:, 0]
    method = SelectKBest(f_regression, k=3)
    results = evaluate(
        {"f": method}, (X, y), Realizations(3), "mse", estimators=Ridge(), sizes=[2, 4]
    )
    values = list(results.values("mse", "f", size=2).values())
    assert rows(plot.curve(results), "points")[0]["value"] == pytest.approx(np.sqrt(values).mean())


def test_a_path_is_the_trace(eliminated):
    shown = rows(plot.path(eliminated), "steps")
    trace = eliminated.trace_
    before = np.r_[trace.start.sum(), trace.sizes]
    moved = [step for step in range(len(trace)) if len(trace[step].moved)]
    assert [row["size"] for row in shown] == [before[step] for step in moved]
    assert [row["worth"] for row in shown] == pytest.approx(
        [trace[step].score.mean() for step in moved]
    )


def test_a_forward_path_grows(wine):
    found = Forward(FisherScore(), n_features_to_select=4).fit(wine.X, wine.y)
    assert [row["size"] for row in rows(plot.path(found), "steps")] == [1, 2, 3, 4]


def test_a_ranking_has_no_path(wine):
    with pytest.raises(InvalidParameter, match=r"path needs a search with steps"):
        plot.path(Ranking(FisherScore()).fit(wine.X, wine.y))


def test_a_ranking_shows_scores_in_order(eliminated):
    shown = rows(plot.ranking(eliminated, n=7), "ranking")
    first = eliminated.order_[:7]
    assert [row["score"] for row in shown] == pytest.approx(eliminated.scores_[first].tolist())
    assert [row["kept"] for row in shown] == eliminated.unit_support_[first].tolist()


def test_a_guest_is_ranked_too(wine):
    shown = rows(plot.ranking(SelectKBest(k=2).fit(wine.X, wine.y)), "ranking")
    assert [row["kept"] for row in shown[:3]] == [True, True, False]


def test_columns_without_a_score_have_no_bar(wine):
    found = Forward(FisherScore(), n_features_to_select=2).fit(wine.X, wine.y)
    found.scores_ = np.full(13, np.nan)
    shown = rows(plot.ranking(found), "ranking")
    assert {row["score"] for row in shown} == {None}
    assert svg(plot.ranking(found)).count("no score") >= 13


def test_the_probe_line_is_where_the_promise_ends(wine):
    probes = Probes(Ranking(Correlation()), n_rounds=5, random_state=0)
    probes.fit(wine.X[:, 1:], wine.X[:, 0])
    (line,) = rows(plot.ranking(probes), "probe")
    kept = probes.scores_ >= line["score"] * (1 - 1e-9)
    assert (kept == probes.unit_support_).all()
    assert rows(plot.ranking(probes, probe=2.5), "probe")[0]["score"] == 2.5


def test_redundancy_is_the_correlation_of_kept_columns(eliminated, wine):
    shown = rows(plot.redundancy(eliminated, wine.X), "pairs")
    kept = np.flatnonzero(eliminated.support_)
    r = np.abs(np.corrcoef(wine.X[:, kept].T))
    assert sorted(row["r"] for row in shown) == pytest.approx(
        sorted(r[np.tril_indices(5, -1)]), abs=1e-4
    )


def test_redundancy_of_many_columns_shows_the_closest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    X[:, 20] = X[:, 10] + 0.01 * rng.normal(size=60)
    found = Ranking(Correlation(), n_features_to_select=30).fit(X, X[:, 0])
    chart = plot.redundancy(found, X, n=6)
    names = [row["name"] for row in rows(chart, "names")]
    assert len(names) == 6
    assert abs(names.index("x10") - names.index("x20")) == 1


@pytest.mark.parametrize(
    ("X", "kind"), [(np.ones((5, 3)), InvalidTable), (np.ones(3), InvalidTable)]
)
def test_another_table_is_refused(eliminated, X, kind):
    with pytest.raises(kind):
        plot.redundancy(eliminated, X)


def test_stability_is_the_share_of_supports(resampled, eliminated):
    shown = rows(plot.stability(resampled, eliminated), "shares")
    share = resampled.supports("rfe", size=5).mean(axis=0)
    kept = [unit for unit in eliminated.order_ if eliminated.support_[unit]]
    assert [row["share"] for row in shown[:5]] == pytest.approx(100 * share[kept], abs=0.05)
    rivals = sum(share[j] >= 0.3 for j in range(13) if not eliminated.support_[j])
    assert sum(row["rival"] for row in shown) == rivals == len(shown) - 5


def test_tuning_is_the_exact_curve(tuned):
    search, chart = tuned, plot.tuning(tuned)
    corners = rows(chart, "curve")
    inside = np.sqrt(search.curve_.breakpoints[:-1] * search.curve_.breakpoints[1:])
    assert [row["value"] for row in corners[::2]] == pytest.approx(100 * search.curve_(inside))
    assert rows(chart, "chosen")[0]["C"] == search.best_C_
    assert "chosen: C = " in svg(chart)


def test_names_cannot_do_harm(hostile, resampled):
    found, frame = hostile
    for chart in (plot.ranking(found, 30), plot.redundancy(found, frame)):
        drawn = svg(chart)
        assert not re.search(r"<(script|img|b>)|<svg[^>]*onload", drawn)
        assert "\x00" not in drawn
        assert "\u202e" not in drawn
        assert max(len(unescape(name)) for name in re.findall(r">([^<>]*)</text>", drawn)) <= 34
    assert len(rows(plot.ranking(found, 30), "ranking")) == len(HOSTILE)


def test_unprintable_characters_of_a_name_are_replaced():
    assert format_name("\ud800a\x85\u2028") == "\ufffda\ufffd\ufffd"


def test_equal_names_stay_apart(wine):
    pd = pytest.importorskip("pandas")
    found = tamis.recipe("fisher-score").fit(pd.DataFrame(wine.X), wine.y)
    found.feature_names_in_ = np.array(["same"] * 13, dtype=object)
    assert svg(plot.ranking(found)).count(">same<") == 13


def test_a_wide_table_shows_only_the_first():
    d = 100_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, d))
    found = Ranking(Correlation(), n_features_to_select=15).fit(X, X[:, 7])
    assert len(rows(plot.ranking(found), "ranking")) == 20
    assert len(json.dumps(plot.redundancy(found, X).to_dict())) < 100_000


def test_a_chart_may_have_one_column():
    X = np.arange(10.0)[:, None]
    found = Ranking(Correlation(), n_features_to_select=1).fit(X, X[:, 0])
    assert "x0" in svg(plot.ranking(found))
    with pytest.raises(InvalidParameter, match="at least two kept columns"):
        plot.redundancy(found, X)


def test_an_automatic_selection_has_bars_of_how_often_its_folds_agree(wine):
    found = tamis.select(wine.X, wine.y, random_state=0)
    chart = plot.ranking(found).to_dict()
    shares = {row["name"]: row["score"] for row in chart["data"]["values"]}
    names = [f"x{j}" for j in found.order_]
    np.testing.assert_allclose(
        [shares[name] for name in names], found.stability_.frequency[found.order_]
    )
    assert "share of folds" in svg(plot.ranking(found))


def test_groups_are_shown_by_their_names(wine):
    found = Ranking(
        FisherScore(), n_features_to_select=3, feature_groups={"phenols": [5, 6, 7], "ash": [2, 3]}
    )
    found.fit(wine.X, wine.y)
    units = chosen_units(found)
    assert "phenols" in units.names
    assert len(units.names) == 10
    shown = rows(plot.redundancy(found, wine.X), "names")
    assert len(shown) == 3


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_charts_are_saved(eliminated, tmp_path, suffix):
    path = tmp_path / f"ranking.{suffix}"
    plot.ranking(eliminated).save(str(path))
    assert path.stat().st_size > 1000


def test_charts_are_what_altair_takes_and_can_stand_side_by_side(
    eliminated, resampled, tuned, wine, paired
):
    charts = [
        plot.ranking(eliminated, probe=0.1),
        plot.path(eliminated),
        plot.curve(resampled, eliminated),
        plot.stability(resampled, eliminated),
        plot.redundancy(eliminated, wine.X),
        plot.classes(eliminated, wine.X, wine.y),
        plot.tuning(tuned),
        plot.comparison(friedman(np.arange(12.0).reshape(4, 3), list("abc"))),
        plot.rank_agreement({"one": eliminated, "other": eliminated}),
        plot.interactions(paired),
    ]
    both = charts[0]
    for chart in charts[1:]:
        both |= chart
    assert len(both.to_dict()["hconcat"]) == 10  # which checks each against the schema


def test_the_page_has_variables_for_colours(eliminated):
    drawn = svg(plot.ranking(eliminated, theme="page"))
    assert PAGE.accent in drawn
    assert LIGHT.accent not in drawn
    with pytest.raises(InvalidParameter, match='theme="light" or "page"'):
        plot.ranking(eliminated, theme="dark")


@pytest.fixture(scope="module")
def paired():
    """An exclusive or of two columns among six, found by looking at all pairs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, len(HOSTILE)))
    y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    pd = pytest.importorskip("pandas")
    method = tamis.recipe("pair-scan", n_features_to_select=2)
    return method.fit(pd.DataFrame(X, columns=HOSTILE), y)


def test_the_strongest_pairs_are_those_of_the_selection(paired):
    chart = plot.interactions(paired, n=3)
    assert {paired.interactions_[0].first, paired.interactions_[0].second} == {1, 4}
    shown = {row["label"] for row in rows(chart, "pairs") if row["label"]}
    assert shown == {f"{100 * pair.information:.0f}" for pair in paired.interactions_[:3]}
    names = {
        format_name(HOSTILE[unit], LETTERS)
        for pair in paired.interactions_[:3]
        for unit in pair[:2]
    }
    assert {row["name"] for row in rows(chart, "names")} == names
    assert format_name(HOSTILE[1], LETTERS) in unescape(svg(chart))  # as text


def test_what_looked_at_no_pairs_has_none(eliminated, paired):
    with pytest.raises(InvalidParameter, match="pair-scan"):
        plot.interactions(eliminated)
    with pytest.raises(InvalidParameter, match="needs n to be an int of at least 1"):
        plot.interactions(paired, n=0)


def test_without_the_extra_one_sentence_names_what_to_install(eliminated, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tamis\[app\]'"):
        plot.ranking(eliminated)


def test_names_at_ends_are_pushed_apart_as_little_as_needed():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.normal(size=6)
        moved = apart(values, 0.5)
        assert np.diff(np.sort(moved)).min() >= 0.5 - 1e-9
        assert (np.argsort(moved) == np.argsort(values)).all()
        assert moved.mean() == pytest.approx(values.mean())
    far = np.array([0.0, 3.0, 1.5])
    assert (apart(far, 0.5) == far).all()


def test_classes_are_means_in_deviations(wine):
    found = tamis.recipe("fisher-score", n_features_to_select=3).fit(wine.X, wine.y)
    shown = rows(plot.classes(found, wine.X, wine.y), "classes")
    kept = [unit for unit in found.order_ if found.support_[unit]]
    Z = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    for row in shown:
        mean = Z[wine.y == row["row"], kept[row["column"]]].mean()
        assert row["label"] == f"{mean:+.1f}".replace("-", "−")
        assert row["size"] == pytest.approx(abs(mean))
    assert "below the mean" in svg(plot.classes(found, wine.X, wine.y))


def test_the_area_of_a_class_is_its_gate(wine):
    found = tamis.recipe("fisher-score", n_features_to_select=3).fit(wine.X, wine.y)
    found.class_gates_ = np.arange(39.0).reshape(3, 13) / 39
    kept = [unit for unit in found.order_ if found.support_[unit]]
    for row in rows(plot.classes(found, wine.X, wine.y), "classes"):
        assert row["size"] == pytest.approx(found.class_gates_[row["row"], kept[row["column"]]])


def test_classes_of_hostile_names_run_nothing(hostile, wine):
    found, frame = hostile
    y = np.array(["'] + alert(1) + ['", "\\", "{{x}}"])[wine.y]
    drawn = svg(plot.classes(found, frame, y))
    assert "'] + alert(1) + ['" in unescape(drawn)
    assert "&lt;script&gt;" in drawn


@pytest.mark.parametrize("n_methods", [2, 5, 9])
def test_a_comparison_has_every_method_and_every_group(n_methods):
    rng = np.random.default_rng(0)
    names = [f"method {k}" for k in range(n_methods)]
    table = rng.normal(size=(8, n_methods)) + np.arange(n_methods)
    ranks = friedman(table, names)
    chart = plot.comparison(ranks)
    shown = {row["name"].rpartition(" ")[0]: row["rank"] for row in rows(chart, "methods")}
    assert shown == pytest.approx(dict(zip(names, ranks.ranks, strict=True)))
    places = [(row["left"], row["y"]) for row in rows(chart, "methods")]
    assert len(set(places)) == n_methods
    if ranks.groups:
        assert len(rows(chart, "groups")) == len(ranks.groups)
    assert "average rank (1 is best)" in svg(chart)


def test_rank_agreement_is_kendalls_tau(wine):
    from scipy.stats import kendalltau

    names = ("fisher-score", "ridge-rfe", "mrmr")
    fitted = {name: tamis.select(wine.X, wine.y, name) for name in names}
    shown = rows(plot.rank_agreement(fitted), "pairs")
    for row in shown:
        one, other = (np.argsort(fitted[names[k]].order_) for k in (row["row"], row["column"]))
        assert row["r"] == pytest.approx(kendalltau(one, other).statistic, abs=1e-4)
    assert len(shown) == 3


def test_rank_agreement_of_results_is_a_mean(wine):
    methods = {"f": tamis.recipe("fisher-score"), "m": tamis.recipe("mrmr")}
    results = evaluate(methods, wine, Realizations(3), "n_features")
    (pair,) = rows(plot.rank_agreement(results), "pairs")
    assert -1 <= pair["r"] <= 1
    reverse = {"up": Ranking(FisherScore()).fit(wine.X, wine.y)}
    with pytest.raises(InvalidParameter, match="at least two methods"):
        plot.rank_agreement(reverse)


@pytest.mark.parametrize(
    "draw", [plot.comparison, plot.rank_agreement, plot.tuning, plot.curve, plot.published]
)
def test_charts_refuse_wrong_input(draw):
    with pytest.raises(InvalidParameter, match=f"{draw.__name__} needs"):
        draw(3)


def frame_with_sites():
    """Return a frame with a text column, a decoy and two sites, one of which flips a relation."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 200))
    site, colour = np.repeat(["x", "y"], 100), rng.choice(["red", "green", "blue"], 200)
    target = a + 2 * np.where(site == "x", 1, -1) * b + (colour == "red") + rng.normal(size=200)
    return pl.DataFrame({"a": a, "b": b, "c": c, "colour": colour}), target, site


def test_conditional_tests_have_the_effects_and_q_values_of_columns():
    X, y, _ = frame_with_sites()
    test = ConditionalTest(Ranking(Correlation(), n_features_to_select=3), random_state=0)
    found = tamis.select(X, y, test)
    inner = found.search_
    shown = rows(plot.conditional_tests(found, n=2), "intervals")
    best = int(inner.p_values_.argmin())
    assert shown[0]["name"] == found.feature_names_in_[best]
    first, error = shown[0], inner.effect_errors_[best]
    assert first["value"] == pytest.approx(inner.effects_[best])
    assert first["high"] - first["low"] == pytest.approx(4 * error)
    assert first["label"].startswith("q ")
    assert len(shown) == 2
    assert "effect given all other columns" in svg(plot.conditional_tests(found))
    with pytest.raises(InvalidParameter, match="needs a fitted ConditionalTest"):
        plot.conditional_tests(Ranking(FisherScore()).fit(X[["a", "b"]], y > 0))


def test_environments_have_a_row_for_each_column_and_site():
    X, y, site = frame_with_sites()
    search = InvariantSelection(Ranking(Correlation(), n_features_to_select=4), random_state=0)
    found = tamis.select(X, y, search, environments=site)
    shown = rows(plot.environments(found), "intervals")
    names = [row["name"] for row in shown]
    assert {"a, x", "a, y", "b, x", "b, y", "colour (1), x"} <= set(names)
    values = {row["name"]: row["value"] for row in shown}
    assert values["b, x"] > 1
    assert values["b, y"] < -1
    assert {row["quiet"] for row in shown if row["name"].startswith("b,")} == {True}
    assert "slope per standard deviation" in svg(plot.environments(found))
    with pytest.raises(InvalidParameter, match="needs a fitted InvariantSelection"):
        plot.environments(Ranking(FisherScore()).fit(X[["a", "b"]], y > 0))


def test_a_report_shows_tests_and_slopes():
    X, y, site = frame_with_sites()
    search = InvariantSelection(Ranking(Correlation(), n_features_to_select=4), random_state=0)
    page = tamis.select(X, y, search, environments=site).report(X, y).html()
    assert "Slopes by environment" in page
    assert "Conditional test" not in page
    test = ConditionalTest(Ranking(Correlation(), n_features_to_select=3), random_state=0)
    page = tamis.select(X, y, test).report(X, y).html()
    assert "Conditional test" in page
    assert "not a test of this list" in page
    assert "Slopes by environment" not in page


def test_a_front_has_steps_and_names_what_enters():
    lists = [
        PricedList(10, 0.25, 0.02, ("age", "ca", *HOSTILE[:3]), 0.3),
        PricedList(1, 0.3, 0.03, ("age",)),
        PricedList(20, 0.28, 0.02, ("thal",)),
    ]
    chart = plot.front(lists)
    assert [row["price"] for row in rows(chart, "front")] == [1, 10]
    assert rows(chart, "front")[0]["label"] == "age"
    assert rows(chart, "front")[1]["label"].startswith("ca, ")
    assert [row["blind"] for row in rows(chart, "blind")] == [0.3]
    assert "<script" not in svg(chart)
    free = plot.front([PricedList(0, 0.3), PricedList(5, 0.1)], theme="page")
    assert free.to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"] == "symlog"
    with pytest.raises(InvalidParameter, match="front needs at least one PricedList"):
        plot.front([])
    with pytest.raises(InvalidParameter, match=r"got Ranking. Fit Auto with a cost_limit, and"):
        plot.front(Ranking(FisherScore()))

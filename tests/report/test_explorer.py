"""The lists of the explorer are those that were evaluated, with the errors of the fit."""

from dataclasses import replace
from types import SimpleNamespace as Facts

import numpy as np
import pytest

import tamis
from tamis import FeatureCosts
from tamis._format import format_p_value
from tamis.auto import Auto
from tamis.criteria import Correlation, Scatter
from tamis.evaluation import stability
from tamis.exceptions import InvalidParameter, NothingFound, TableAlert
from tamis.meta import HonestSize
from tamis.meta.honest_size import sizes_of
from tamis.report import fit_without, report, resampled
from tamis.report.explorer import explorer_data
from tamis.search import Forward, Ranking, RecursiveElimination
from tamis.table import TableSelector
from tests.report.test_page import Page

pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def honest(wine):
    return HonestSize(Ranking(Correlation()), random_state=0).fit(wine.X, wine.y)


@pytest.fixture(scope="module")
def without(honest, wine):
    return fit_without(honest, wine.X, wine.y, {"first <two>": [0, 1]})


@pytest.fixture(scope="module")
def gathered(honest, wine, without):
    return report(honest, wine.X, wine.y, names=wine.feature_names, without=without)


def own(gathered):
    return [one for one in gathered.candidates if not one.without]


def test_lists_of_honest_size_have_its_losses(gathered, honest):
    assert [one.size for one in own(gathered)] == honest.sizes_[1:].tolist()
    assert [one.error for one in own(gathered)] == honest.losses_[1:].tolist()
    assert [one.standard_error for one in own(gathered)] == honest.errors_[1:].tolist()
    for one in own(gathered):
        assert list(one.units) == honest.order_[: one.size].tolist()
    assert gathered.curve.baseline == honest.losses_[0]


def test_shares_and_stability_count_the_lists_of_the_folds(gathered, honest):
    for one in own(gathered):
        lists = [units.tolist() for units in honest.fold_lists_[one.size]]
        assert len(lists) == honest.n_folds
        shares = {j: np.mean([j in units for units in lists]) for j in range(13)}
        assert one.share == {j: share for j, share in shares.items() if share}
        if one.size < 13:
            assert one.stability == stability(lists, 13).nogueira
        else:
            assert np.isnan(one.stability)


def test_honest_size_stores_what_the_search_selects_in_each_fold(wine):
    X, y = wine.X, wine.y
    found = HonestSize(Ranking(Correlation()), n_folds=3, random_state=0).fit(X, y)
    assert list(found.fold_lists_) == sizes_of(13)
    for fold, (rows, *_) in enumerate(found.record_.trace.state["rounds"].values()):
        train = np.setdiff1d(np.arange(len(y)), rows)
        order = Ranking(Correlation(), n_features_to_select=13).fit(X[train], y[train]).order_
        for size, lists in found.fold_lists_.items():
            assert sorted(lists[fold]) == sorted(order[:size])
    again = HonestSize(Ranking(Correlation()), n_folds=3, random_state=0)
    again.resume(X, y, record=found.record_)
    for size, lists in found.fold_lists_.items():
        assert [one.tolist() for one in again.fold_lists_[size]] == [one.tolist() for one in lists]


def test_a_list_that_the_search_did_not_reach_is_not_invented(wine):
    """A forward search on all rows stops at the selected size."""
    found = HonestSize(Forward(Scatter("J3")), n_errors=4, random_state=0).fit(wine.X, wine.y)
    page = report(found, wine.X, wine.y)
    n = int(found.support_.sum())
    assert 1 < n < 10
    for one in page.candidates:
        assert (one.units is None) == (n < one.size < 13)
        assert one.share
    facts = explorer_data(page, dict(enumerate(range(13))))["lists"]
    for one in facts:
        if one.get("folds"):
            assert all(share >= 50 for share in one["share"])
    # an elimination stops at the selected size from above
    found = HonestSize(RecursiveElimination(Scatter("J3")), n_errors=4, random_state=0).fit(
        wine.X, wine.y
    )
    n = int(found.support_.sum())
    known = [one.size for one in report(found, wine.X, wine.y).candidates if one.units]
    assert known == [n, 13]


def test_a_column_that_is_left_out_is_replaced_by_a_fit_without_it(gathered, honest, wine, without):
    column = without[0].columns[0]
    rest = np.delete(np.arange(13), column)
    again = HonestSize(Ranking(Correlation()), random_state=0).fit(wine.X[:, rest], wine.y)
    lists = [one for one in gathered.candidates if one.without == (column,)]
    assert [one.error for one in lists] == again.losses_[1:].tolist()
    for one in lists:
        assert list(one.units) == rest[again.order_[: one.size]].tolist()
        assert column not in one.share
    kept = honest.order_[honest.support_[honest.order_]].tolist()
    assert [one.columns for one in without] == [*((unit,) for unit in kept), (0, 1)]


def test_a_seed_that_was_drawn_is_used_again(wine):
    """Without ``random_state`` the folds are random, but a comparison needs the same folds."""
    found = HonestSize(Ranking(Correlation())).fit(wine.X, wine.y)
    rows = [rows for rows, *_ in found.record_.trace.state["rounds"].values()]
    for one in fit_without(found, wine.X, wine.y)[:2]:
        again = one.selection.record_.trace.state["rounds"].values()
        assert [rows for rows, *_ in again] == rows


def test_a_frame_is_encoded_again_without_the_column(wine):
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(wine.X[:, 1:7], columns=list("abcdef")), wine.X[:, 0]
    frame.insert(2, "sample", [f"s{i}" for i in range(178)])
    frame.insert(5, "kind", np.array(list("uvw"))[wine.y])
    with pytest.warns(TableAlert):
        found = TableSelector(HonestSize(Ranking(Correlation()), random_state=0)).fit(frame, y)
    page = report(found, frame, y, without=fit_without(found, frame, y))
    names = page.units.names
    assert names[5] == "kind"
    for one in page.candidates:
        if one.units is not None:
            assert not set(one.units) & set(one.without)
            assert names.index("sample") not in one.units
    at = next(one for one in own(page) if one.size == page.n_kept)
    assert [names[unit] for unit in at.units] == [names[unit] for unit in page.kept]
    lists = found.search_.fold_lists_[page.n_kept]
    inner = list(found.search_.units_.unit_names(list(range(found.search_.n_features_in_))))
    assert at.share[5] == np.mean([[inner[u] for u in units].count("kind") for units in lists])


def test_lists_of_auto_have_the_losses_of_its_curve(wine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 13))
    y = X[:, 2] + X[:, 5] + 0.5 * X[:, 7] + rng.normal(size=150)
    chosen = Auto(budget=1, random_state=0).fit(X, y)
    page = report(chosen, X, y)
    losses = {}
    for point in chosen.curve_:
        if point.path == chosen.path_:
            losses[point.size] = min(point.loss, losses.get(point.size, np.inf))
    assert [one.size for one in page.candidates] == sorted(losses)
    assert [one.error**2 for one in page.candidates] == pytest.approx(
        [losses[one.size] for one in page.candidates]
    )
    assert page.curve.baseline**2 == pytest.approx(chosen.error_guess_.loss)
    at = next(one for one in page.candidates if one.size == page.n_kept)
    assert set(at.units) == set(page.kept)
    assert at.stability == pytest.approx(chosen.stability_.nogueira)
    assert [at.share.get(j, 0.0) for j in range(13)] == chosen.stability_.frequency.tolist()


def test_lists_of_auto_under_a_price_limit_have_its_error_rates(wine):
    """The lists without a column have the same limit."""
    costs = FeatureCosts({j: j + 5 for j in range(13)}, shared={"lab": (4.0, [6, 9, 12])})
    chosen = Auto(budget=0.5, random_state=0, feature_costs=costs, cost_limit="20%")
    chosen.fit(wine.X, wine.y)
    without = fit_without(chosen, wine.X, wine.y)
    assert without[-1].name == "lab"
    limit = 0.2 * costs.of(range(13))
    for one in without:
        rest = np.delete(np.arange(13), one.columns)
        assert one.selection.cost_ == costs.of(rest[one.selection.support_]) <= limit
    page = report(chosen, wine.X, wine.y, without=without)
    assert page.price_limit == pytest.approx(limit)
    rates = {point.size: 100 * point.wrong
             for point in sorted(chosen.curve_, key=lambda point: -point.loss)
             if point.path == chosen.path_}  # fmt: skip
    for one in own(page):
        assert one.error == pytest.approx(rates[one.size])
        assert one.price == costs.of(one.units)
        assert one.size == len(one.units)
    at = next(one for one in own(page) if one.size == page.n_kept)
    ranks, note = page.units.order.argsort(), "The error at the top of the page is corrected"
    for corrected in (at.error + 0.5, at.error):
        errors = replace(page.errors, kept=page.errors.kept._replace(value=corrected))
        changed = replace(page, errors=errors)
        differs = corrected > at.error
        expected = f"{corrected:.1f}\xa0%" if differs else None
        assert explorer_data(changed, dict(enumerate(ranks.tolist()))).get("corrected") == expected
        assert (note in changed.html()) == differs


def test_lists_of_results_have_their_errors(wine):
    chosen = tamis.select(wine.X, wine.y, "ridge-rfe", n_features_to_select=3)
    results = resampled(chosen, wine.X, wine.y, 4)
    page = report(chosen, wine.X, wine.y, results=results)
    method = results.methods[0]
    for one in page.candidates:
        mean = 100 * np.mean(list(results.values("error", method, size=one.size).values()))
        assert one.error == pytest.approx(mean)
        shares = results.supports(method, size=one.size).mean(axis=0)
        assert [one.share.get(j, 0.0) for j in range(13)] == shares.tolist()
        if one.units is not None:
            again = tamis.recipe("ridge-rfe", n_features_to_select=one.size).fit(wine.X, wine.y)
            assert set(one.units) == set(np.flatnonzero(again.support_))


def test_prices_are_those_of_the_lists(wine):
    costs = FeatureCosts({j: j + 5 for j in range(13)}, shared={"lab": (4.0, [6, 9, 12])})
    search = Ranking(Correlation(), feature_costs=costs)
    chosen = HonestSize(search, random_state=0).fit(wine.X, wine.y)
    without = fit_without(chosen, wine.X, wine.y)
    assert without[-1].name == "lab"
    assert without[-1].columns == (6, 9, 12)
    page = report(chosen, wine.X, wine.y, without=without)
    for one in page.candidates:
        assert one.price == costs.of(one.units)
    assert {one.without for one in page.candidates} >= {(), (6, 9, 12)}


def test_the_short_and_the_best_list_of_an_automatic_selection_are_shown(honest, wine):
    error = Facts(wrong=0.123, wrong_error=0.02, rmse=None, scores={})
    support = np.isin(np.arange(13), honest.order_[:2])
    honest.short_, honest.best_ = (
        Facts(support=support, error=error),
        Facts(support=honest.support_),
    )
    try:
        page = report(honest, wine.X, wine.y, names=["<b>", *map(str, range(1, 13))])
    finally:
        del honest.short_, honest.best_
    names = ", ".join(page.units.names[unit] for unit in honest.order_[:2])
    assert (
        f"The short list has 2 columns (12.3 ± 2.0 % error): {names}."
        in Page(page.html()).said["size"]
    )
    assert [name for name, *_ in page.alternatives] == ["short"]


def test_q_values_are_those_of_the_selection(gathered):
    q = np.linspace(0, 1, 13)
    q[3] = np.nan
    tested = replace(gathered, units=replace(gathered.units, q_values=q))
    order = gathered.units.order
    shown = explorer_data(tested, {int(unit): k for k, unit in enumerate(order)})["q"]
    assert shown == [format_p_value(q[unit]) for unit in order]


def test_nothing_selected_has_no_lists(wine):
    y = np.random.default_rng(0).normal(size=178)
    with pytest.warns(NothingFound):
        chosen = Auto(budget=0.5, random_state=0).fit(wine.X, y)
    page = report(chosen, wine.X, y)
    assert page.candidates == []
    assert "explorer" not in Page(page.html()).data


def test_unsuitable_selections_and_groups_are_refused(honest, wine):
    chosen = Ranking(Correlation(), n_features_to_select=3).fit(wine.X, wine.y)
    with pytest.raises(InvalidParameter, match="its own error estimate"):
        fit_without(chosen, wine.X, wine.y)
    with pytest.raises(InvalidParameter, match="'nonsense' is not one"):
        fit_without(honest, wine.X, wine.y, {"all": ["nonsense"]})
    grouped = HonestSize(Ranking(Correlation(), feature_groups={"a": [0, 1]}), random_state=0)
    with pytest.raises(InvalidParameter, match="feature_groups or fixed_features"):
        fit_without(grouped.fit(wine.X, wine.y), wine.X, wine.y)


def test_without_javascript_a_table_has_the_lists(gathered):
    page = Page(gathered.html())
    assert "stability" in page.said["size"]
    for one in own(gathered)[1:4]:
        entered = set(one.units) - set(own(gathered)[0].units)
        assert all(gathered.units.names[unit] in page.said["size"] for unit in entered)
    assert "first <two>" in page.said["size"]
    assert page.wrong == []


@pytest.mark.parametrize(("n_columns", "most"), [(30, 300_000), (1000, 1_000_000)])
def test_a_page_with_an_explorer_stays_small(n_columns, most):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, n_columns))
    X[:, :8] += y[:, None]
    names = [f"measurement number {j:04d}" for j in range(n_columns)]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=names)
    found = HonestSize(Ranking(Correlation()), n_errors=0, random_state=0).fit(frame, y)
    assert found.support_.sum() >= 5
    page = report(found, frame, y, without=fit_without(found, frame, y))
    assert len(page.html().encode()) < most

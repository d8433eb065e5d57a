"""The laws of searches for the whole catalogue, and wrong searches that break them."""

from functools import partial

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tamis._arrays import EMPTY
from tamis.contract import Scores, Step
from tamis.contract.costs import Limit
from tamis.criteria import Correlation, FisherScore, Scatter
from tamis.exceptions import InvalidStep, NothingToAdd
from tamis.search import BranchAndBound, Exhaustive, Forward, Genetic, Ranking, Then
from tamis.testing import search_laws as laws
from tests.laws.catalogue import name, searches


def maker(cls):
    """Return a function that makes the search. Random searches have a seed and few generations."""
    if cls is Genetic:
        return partial(Genetic, random_state=3, population_size=20, n_generations=12)
    return cls


def ranked_then_grown(criterion, *, n_features_to_select):
    """Return a composed search whose first part continues beyond the selected step."""
    first = Ranking(criterion, n_features_to_select=1.0 if n_features_to_select == 7 else 5)
    return Then(first, Forward(criterion, n_features_to_select=n_features_to_select))


@pytest.mark.parametrize("cls", searches(), ids=name)
@pytest.mark.parametrize("law", laws.LAWS, ids=name)
def test_every_search_obeys_the_laws(law, cls):
    law(maker(cls))


# The others compare sums, in which small scores have no digits next to a huge one.
@pytest.mark.parametrize(
    "cls", [c for c in searches() if c not in (Exhaustive, BranchAndBound, Genetic)], ids=name
)
def test_one_huge_score_does_not_hide_the_others(cls):
    laws.one_huge_score_hides_no_other(maker(cls))


# Ranking selects both of a pair, and a genetic search scores only some tied subsets.
@pytest.mark.parametrize("cls", [c for c in searches() if c not in (Ranking, Genetic)], ids=name)
def test_ties_go_to_the_lowest_index(cls):
    laws.ties_go_to_the_lowest_index(maker(cls))


@pytest.mark.parametrize("cls", [c for c in searches() if c is not BranchAndBound], ids=name)
def test_a_size_without_gain_is_reported(cls):
    laws.a_size_without_gain_is_reported(maker(cls))


@pytest.mark.parametrize(
    "law",
    [
        laws.the_trace_matches_the_criterion,
        laws.the_size_is_what_was_asked,
        laws.order_and_ranking_agree_with_the_support,
        laws.stopped_anywhere_and_resumed_it_ends_the_same,
        laws.columns_may_come_in_any_order,
        laws.a_failed_fit_leaves_nothing_behind,
        laws.fitting_twice_gives_the_same,
    ],
    ids=name,
)
def test_then_obeys_the_laws_too(law):
    law(ranked_then_grown)


def test_the_record_of_a_composed_search_is_extended():
    sizes = ((3, 5), (2, 3), (5, 3))
    laws.a_record_is_extended_to_another_size(ranked_then_grown, sizes)


@pytest.mark.parametrize("cls", [c for c in searches() if c is not BranchAndBound], ids=name)
def test_a_search_over_all_sizes_can_be_resumed_too(cls):
    if cls is Ranking:
        pytest.skip("Ranking never values subsets by Scatter")
    laws.stopped_anywhere_and_resumed_it_ends_the_same(maker(cls), sizes=["best"])


class FollowsPrices(Forward):
    """Search that adds cheap columns first, even without a limit."""

    def _open(self, X, y, params, done):
        source = super()._open(X, y, params, done)
        if done.grouping.prices is not None:
            source.limit = Limit(done.grouping.prices, 2.0)
        return source


class IgnoresTheLimit(Forward):
    def _settle(self, record, X, y):
        super()._settle(record, X, y)
        if self.units_.prices is not None:
            self.cost_ = self.units_.prices.full


@pytest.mark.parametrize(
    ("cls", "law"),
    [
        (FollowsPrices, laws.unit_prices_change_nothing),
        (IgnoresTheLimit, laws.a_price_limit_is_kept),
    ],
    ids=name,
)
def test_a_search_that_misuses_prices_is_rejected(cls, law):
    with pytest.raises((AssertionError, NothingToAdd)):
        law(cls)


class _Wrong(Forward):
    """Forward search that each subclass breaks in one way."""


class LiesAboutScores(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        for step in super()._steps(criterion, n_units, size, done):
            scores = step.scores._replace(values=step.scores.values * 1.01)
            yield step._replace(scores=scores)


class LiesAboutValues(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        for step in super()._steps(criterion, n_units, size, done):
            yield step._replace(value=step.value + 1e-3)


class StopsEarly(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        yield from super()._steps(criterion, n_units, size - 1, done)


class OrdersBackwards(_Wrong):
    def _settle(self, record, X, y):
        super()._settle(record, X, y)
        self.order_ = self.order_[::-1]


class AsksInSecret(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        for step in super()._steps(criterion, n_units, size, done):
            criterion.criterion.gain(EMPTY, np.arange(2))
            yield step


class ForgetsWhereItWas(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        if len(done):
            yield Step(done[-1].subset)
        yield from super()._steps(criterion, n_units, size, done)


class LooksAhead(_Wrong):
    """Search whose steps depend on the size, although it does not declare this."""

    def _steps(self, criterion, n_units, size, done):
        for k in range(len(done), size):
            yield Step((np.arange(k + 1) + size) % n_units)


class LikesTheFirstColumns(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        for k in range(len(done), size):
            yield Step(np.arange(k + 1), scores=Scores(np.array([k]), np.ones(1)))


class LikesTheFirstRow(_Wrong):
    def fit(self, X, y=None, **params):
        return super().fit(X[30:], y[30:], **params)


class KeepsTheLast(_Wrong):
    def fit(self, X, y=None, **params):
        super().fit(X, y, **params)
        self.support_ = self.support_[::-1]
        return self


class NeverStandardizes(_Wrong):
    def __init__(self, criterion, *, n_features_to_select=0.5, standardize=False):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )


class LikesTheFirstOfTheSmall(_Wrong):
    """Search that compares scores relative to the greatest."""

    def _steps(self, criterion, n_units, size, done):
        scores = criterion.gain(EMPTY, np.arange(n_units))
        order = np.argsort(-np.round(scores / scores.max(), 12), kind="stable")
        for k in range(size):
            yield Step(order[: k + 1], scores=Scores(order[[k]], scores[order[[k]]]))


class FearsInfinity(_Wrong):
    def _steps(self, criterion, n_units, size, done):
        scores = np.nan_to_num(criterion.gain(EMPTY, np.arange(n_units)), posinf=-1)
        order = np.argsort(-scores)
        for k in range(size):
            yield Step(order[: k + 1], scores=Scores(order[[k]], scores[order[[k]]]))


class SaysItAlways(_Wrong):
    def _settle(self, record, X, y):
        super()._settle(record, X, y)
        self.gains_until_ = 1


class KeepsItToItself(_Wrong):
    def _warnings(self, criterion):
        return []


class NeverForgets(_Wrong):
    def _forget(self): ...


class WritesDefaultsBack(_Wrong):
    def fit(self, X, y=None, **params):
        self.n_features_to_select = int(self.n_features_to_select)
        self.standardize = None
        return super().fit(X, y, **params)


class NeverTheSame(_Wrong):
    _times = 0

    def fit(self, X, y=None, **params):
        self._times += 1
        super().fit(X, y, **params)
        self.order_ = np.roll(self.order_, self._times)
        return self


@pytest.mark.parametrize(
    ("law", "member"),
    [
        (laws.the_trace_matches_the_criterion, LiesAboutValues),
        (laws.the_trace_matches_the_criterion, LiesAboutScores),
        (laws.the_size_is_what_was_asked, StopsEarly),
        (laws.order_and_ranking_agree_with_the_support, OrdersBackwards),
        (laws.every_score_is_counted, AsksInSecret),
        (laws.stopped_anywhere_and_resumed_it_ends_the_same, ForgetsWhereItWas),
        (laws.a_record_is_extended_to_another_size, LooksAhead),
        (laws.columns_may_come_in_any_order, LikesTheFirstColumns),
        (laws.rows_may_come_in_any_order, LikesTheFirstRow),
        (laws.ties_go_to_the_lowest_index, KeepsTheLast),
        (laws.scaling_columns_changes_nothing, NeverStandardizes),
        (laws.one_huge_score_hides_no_other, LikesTheFirstOfTheSmall),
        (laws.an_infinite_score_is_the_best, FearsInfinity),
        (laws.a_size_without_gain_is_reported, SaysItAlways),
        (laws.a_size_without_gain_is_reported, KeepsItToItself),
        (laws.a_failed_fit_leaves_nothing_behind, NeverForgets),
        (laws.fit_leaves_parameters_and_data_alone, WritesDefaultsBack),
        (laws.fitting_twice_gives_the_same, NeverTheSame),
    ],
    ids=name,
)
def test_the_law_rejects_a_wrong_search(law, member):
    with pytest.raises((AssertionError, InvalidStep)):
        law(member)


#: The checks are about the search. Criteria other than the first belong to the slow tests.
CHECKED = [
    pytest.param(cls, criterion, marks=pytest.mark.slow if k and cls is not Forward else ())
    for cls in (*searches(), Then)
    for k, criterion in enumerate((Correlation(), Scatter("J3"), FisherScore()))
]


@pytest.mark.parametrize(("cls", "criterion"), CHECKED, ids=name)
def test_searches_pass_the_checks_of_scikit_learn(cls, criterion):
    if cls is Then:
        search = Then(Ranking(criterion, n_features_to_select=1.0), Forward(criterion))
    else:
        search = maker(cls)(criterion, n_features_to_select=0.5)
    results = check_estimator(search, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert len([r for r in results if r["status"] == "passed"]) > 40


def test_the_catalogue_contains_all_eleven_searches():
    assert len(searches()) >= 11
    assert BranchAndBound in searches()

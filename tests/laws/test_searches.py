"""The laws of searches over the whole catalogue, and over members that break them."""

from functools import partial

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tamis._arrays import EMPTY
from tamis.criteria import Correlation, FisherScore, Scatter
from tamis.search import BranchAndBound, Forward, Genetic, Ranking, Then
from tamis.trace import Step
from tests.laws import search_laws as laws
from tests.laws.catalogue import name, searches

LAWS = [
    laws.the_trace_tells_the_truth,
    laws.the_answer_is_what_was_asked,
    laws.order_and_ranking_agree_with_the_support,
    laws.every_price_is_counted,
    laws.stopped_anywhere_and_resumed_it_ends_the_same,
    laws.columns_may_come_in_any_order,
    laws.rows_may_come_in_any_order,
    laws.scaling_columns_changes_nothing,
    laws.fit_leaves_parameters_and_data_alone,
    laws.fitting_twice_gives_the_same,
]


def maker(cls):
    """Builds the search: random ones with a seed and a short life."""
    if cls is Genetic:
        return partial(Genetic, random_state=3, population_size=20, n_generations=12)
    return cls


def grown_twice(criterion, *, n_features_to_select):
    """A composed search: two forward searches, one after the other."""
    first = Forward(criterion, n_features_to_select=5)
    return Then(first, Forward(criterion, n_features_to_select=n_features_to_select))


@pytest.mark.parametrize("cls", searches(), ids=name)
@pytest.mark.parametrize("law", LAWS, ids=name)
def test_every_search(law, cls):
    law(maker(cls))


# Ranking takes both of a pair, and a genetic search sees only some of the equal subsets.
@pytest.mark.parametrize("cls", [c for c in searches() if c not in (Ranking, Genetic)], ids=name)
def test_of_equals_the_lowest_index_is_kept(cls):
    laws.of_equals_the_lowest_index_is_kept(maker(cls))


@pytest.mark.parametrize(
    "law",
    [
        laws.the_answer_is_what_was_asked,
        laws.order_and_ranking_agree_with_the_support,
        laws.stopped_anywhere_and_resumed_it_ends_the_same,
        laws.columns_may_come_in_any_order,
        laws.fitting_twice_gives_the_same,
    ],
    ids=name,
)
def test_then_obeys_them_too(law):
    law(grown_twice)


class _Wrong(Forward):
    """A forward search that each subclass spoils in one way."""


class LiesAboutMoves(_Wrong):
    def _walk(self, criterion, n_units, target, done):
        for step in super()._walk(criterion, n_units, target, done):
            yield step._replace(value=step.value + 1e-3)


class StopsEarly(_Wrong):
    def _walk(self, criterion, n_units, target, done):
        yield from super()._walk(criterion, n_units, target - 1, done)


class LosesSteps(_Wrong):
    """Reports two moves as one unit, so the order cannot hold all that is kept."""

    def _settle(self, record):
        super()._settle(record)
        self.order_ = self.order_[::-1]


class AsksInSecret(_Wrong):
    def _walk(self, criterion, n_units, target, done):
        for step in super()._walk(criterion, n_units, target, done):
            criterion.criterion.gain(EMPTY, np.arange(2))
            yield step


class ForgetsWhereItWas(_Wrong):
    def _walk(self, criterion, n_units, target, done):
        start = Step(np.array([6]), 0.0, np.array([6])) if len(done) else None
        if start is not None:
            yield Step(done[-1].subset)
        yield from super()._walk(criterion, n_units, target, done)


class LikesTheFirstColumns(_Wrong):
    def _walk(self, criterion, n_units, target, done):
        for k in range(len(done), target):
            yield Step(np.arange(k + 1), moved=np.array([k]), prices=np.ones(1))


class LikesTheFirstRow(_Wrong):
    def fit(self, X, y=None, **params):
        return super().fit(X[5:], y[5:], **params)


class KeepsTheLast(_Wrong):
    def fit(self, X, y=None, **params):
        super().fit(X, y, **params)
        self.support_ = self.support_[::-1]
        return self


class SeesTheScale(_Wrong):
    def fit(self, X, y=None, **params):
        self.widest_ = int(np.argmax(X.std(axis=0)))
        super().fit(X, y, **params)
        self.order_ = np.roll(self.order_, self.widest_)
        return self


class WritesDefaultsBack(_Wrong):
    def fit(self, X, y=None, **params):
        self.n_features_to_select = int(self.n_features_to_select)
        self.standardize = None
        return super().fit(X, y, **params)


class NeverTheSame(_Wrong):
    def fit(self, X, y=None, **params):
        self.times_ = getattr(self, "times_", 0) + 1
        super().fit(X, y, **params)
        self.order_ = np.roll(self.order_, self.times_)
        return self


@pytest.mark.parametrize(
    ("law", "member"),
    [
        (laws.the_trace_tells_the_truth, LiesAboutMoves),
        (laws.the_answer_is_what_was_asked, StopsEarly),
        (laws.order_and_ranking_agree_with_the_support, LosesSteps),
        (laws.every_price_is_counted, AsksInSecret),
        (laws.stopped_anywhere_and_resumed_it_ends_the_same, ForgetsWhereItWas),
        (laws.columns_may_come_in_any_order, LikesTheFirstColumns),
        (laws.rows_may_come_in_any_order, LikesTheFirstRow),
        (laws.of_equals_the_lowest_index_is_kept, KeepsTheLast),
        (laws.scaling_columns_changes_nothing, SeesTheScale),
        (laws.fit_leaves_parameters_and_data_alone, WritesDefaultsBack),
        (laws.fitting_twice_gives_the_same, NeverTheSame),
    ],
    ids=name,
)
def test_the_law_rejects_a_wrong_member(law, member):
    with pytest.raises(AssertionError):
        law(member)


@pytest.mark.parametrize("criterion", [Correlation(), Scatter("J3"), FisherScore()], ids=name)
@pytest.mark.parametrize("cls", [*searches(), grown_twice], ids=name)
def test_scikit_learn_finds_no_fault(cls, criterion):
    make = maker(cls)
    size = 0.5 if cls is not grown_twice else 1
    if cls is grown_twice:
        search = Then(
            Forward(criterion, n_features_to_select=1.0),
            Forward(criterion, n_features_to_select=size),
        )
    else:
        search = make(criterion, n_features_to_select=size)
    results = check_estimator(search, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert len([r for r in results if r["status"] == "passed"]) > 40


def test_the_catalogue_holds_all_eleven_searches():
    assert len(searches()) >= 11
    assert BranchAndBound in searches()

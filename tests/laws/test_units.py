"""The laws of units for the whole catalogue, and wrong members that break them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis._arrays import EMPTY
from tamis.compiled import thresholds
from tamis.contract import SubsetCriterion
from tamis.contract.criterion import Criterion
from tamis.contract.steps import Step
from tamis.criteria import JMI, MRMR, FisherScore, Scatter
from tamis.criteria.information import PairwiseInformation
from tamis.exceptions import InvalidParameter
from tamis.search import Backward, BranchAndBound, Exhaustive, Forward, Ranking, Then
from tamis.testing.problem import make_table as table
from tests.laws import unit_laws as laws
from tests.laws.catalogue import every, name, searches
from tests.laws.test_searches import maker

FOR_SUBSET_CRITERIA = [
    laws.a_group_is_worth_what_its_columns_are,
    laws.changes_are_differences_of_values,
    laws.scores_depend_on_the_units_alone,
]
FOR_SEARCHES = [
    laws.a_search_without_groups_ignores_them,
    laws.groups_are_taken_or_left,
    laws.a_grouped_search_is_a_search_over_unions,
    laws.fixed_features_always_stay,
    laws.a_grouped_search_goes_on_where_it_stopped,
]


@pytest.mark.parametrize("criterion", every(Criterion), ids=name)
def test_groups_of_one_column_change_nothing(criterion):
    laws.groups_of_one_column_change_nothing(criterion)


@pytest.mark.parametrize("criterion", every(SubsetCriterion), ids=name)
@pytest.mark.parametrize("law", FOR_SUBSET_CRITERIA, ids=name)
def test_every_subset_criterion_obeys_the_laws_of_groups(law, criterion):
    law(criterion)


@pytest.mark.parametrize("criterion", [c for c in every(SubsetCriterion) if c.monotone], ids=name)
def test_bounds_hold_for_groups(criterion):
    laws.a_bound_is_never_passed(criterion)


@pytest.mark.parametrize("criterion", every(PairwiseInformation), ids=name)
def test_a_group_is_one_discrete_variable(criterion):
    laws.a_group_is_one_discrete_variable(criterion)
    laws.scores_depend_on_the_units_alone(criterion)


@pytest.mark.parametrize("cls", searches(), ids=name)
@pytest.mark.parametrize("law", FOR_SEARCHES, ids=name)
def test_every_search_obeys_the_laws_of_groups(law, cls):
    law(maker(cls))


@pytest.mark.parametrize("fixed", [None, ["pair"], [0, 5]], ids=str)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("cls", [Exhaustive, BranchAndBound])
@pytest.mark.parametrize("measure", ["J2", "J3"])
def test_exact_searches_find_the_best_union(measure, cls, size, fixed):
    X, y = table()
    how = {"feature_groups": laws.GROUPS, "fixed_features": fixed}
    search = cls(Scatter(measure), n_features_to_select=size, **how).fit(X, y)
    held = search.units_.fixed_units
    unions = [s for s in laws.SUBSETS if len(s) == size and np.isin(held, s).all()]
    values = Scatter(measure).fit(X, y).values([laws.columns_of(s) for s in unions])
    best = unions[int(values.argmax())]
    assert_array_equal(search.get_support(indices=True), laws.columns_of(best))


class ReadsUnitsAsColumns(Scatter):
    def columns(self, subset):
        return subset


class GainsOfTheFirstColumn(Scatter):
    def gain(self, subset, candidates):
        first = np.array([laws.UNITS[j][0] for j in candidates], dtype=np.intp)
        return self.form_.gains(self.columns(subset))[first]


class BoundByUnits(Scatter):
    def most_columns(self, subset, size):
        return size


class LooksAtTheFirstColumn(FisherScore):
    def _unit_scores(self, scores):
        return self.over_units(scores, lambda some: some[0])


class FirstColumnOfAGroup(MRMR):
    def _learn(self, X, y, **params):
        units, self._unit_columns = self._unit_columns, None
        first = slice(None) if units is None else [unit[0] for unit in units]
        super()._learn(X[:, first], y, **params)
        self._unit_columns = units


class ShiftsSingles(Scatter):
    def value(self, subset):
        return super().value(subset) + (self._unit_columns is not None)


@pytest.mark.parametrize(
    ("law", "member"),
    [
        (laws.groups_of_one_column_change_nothing, ShiftsSingles()),
        (laws.a_group_is_worth_what_its_columns_are, ReadsUnitsAsColumns()),
        (laws.a_group_is_worth_what_its_columns_are, LooksAtTheFirstColumn()),
        (laws.changes_are_differences_of_values, GainsOfTheFirstColumn()),
        (laws.a_bound_is_never_passed, BoundByUnits()),
        (laws.a_group_is_one_discrete_variable, FirstColumnOfAGroup()),
        (laws.scores_depend_on_the_units_alone, LooksAtTheFirstColumn()),
    ],
    ids=name,
)
def test_the_law_rejects_a_wrong_criterion(law, member):
    with pytest.raises(AssertionError):
        law(member)


class DropsWhatIsFixed(Forward):
    def _steps(self, criterion, n_units, size, done):
        criterion.fixed = EMPTY
        yield from super()._steps(criterion, n_units, size, done)


class SplitsGroups(Forward):
    def _settle(self, record, X, y):
        super()._settle(record, X, y)
        self.support_ = np.arange(len(self.support_)) < self.n_features_


class LikesGroups(Forward):
    """Search that prefers to add groups."""

    def _steps(self, criterion, n_units, size, done):
        favourite = 1 if n_units < criterion.criterion.n_features_in_ else 0
        rest = np.setdiff1d(np.arange(n_units), [favourite])
        for n in range(size):
            held = np.sort(np.r_[favourite, rest[:n]])
            yield Step(held, criterion.value(held))


class ForgetsGroups(Forward):
    def _steps(self, criterion, n_units, size, done):
        if len(done):
            yield Step(done[-1].subset)
        yield from super()._steps(criterion, n_units, size, done)


@pytest.mark.parametrize(
    ("law", "member"),
    [
        (laws.fixed_features_always_stay, DropsWhatIsFixed),
        (laws.groups_are_taken_or_left, SplitsGroups),
        (laws.a_grouped_search_is_a_search_over_unions, LikesGroups),
        (laws.a_grouped_search_goes_on_where_it_stopped, ForgetsGroups),
    ],
    ids=name,
)
def test_the_law_rejects_a_wrong_search(law, member):
    with pytest.raises((AssertionError, ValueError)):
        law(member)


def ranked_then(second):
    """Return a composed search whose first part selects one unit more than the second."""

    def make(criterion, *, n_features_to_select, **how):
        first = Ranking(criterion, n_features_to_select=min(4, n_features_to_select + 1))
        return Then(first, second(criterion, n_features_to_select=n_features_to_select), **how)

    return make


@pytest.mark.parametrize("second", [Forward, Backward, Exhaustive], ids=name)
@pytest.mark.parametrize(
    "law", [law for law in FOR_SEARCHES if "unions" not in law.__name__], ids=name
)
def test_then_obeys_the_laws_of_groups_too(law, second):
    law(ranked_then(second))


def test_groups_in_a_part_of_then_are_refused():
    X, y = table()
    with pytest.raises(InvalidParameter, match=r"Write Then.*feature_groups"):
        Then(Ranking(FisherScore(), feature_groups=laws.GROUPS), Forward(Scatter())).fit(X, y)


@pytest.mark.parametrize("criterion", [MRMR(), JMI()], ids=name)
def test_compiled_counts_support_groups(criterion, monkeypatch):
    monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 1)
    laws.a_group_is_one_discrete_variable(criterion)

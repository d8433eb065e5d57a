"""The laws of criteria for the whole catalogue, and wrong criteria that break them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

from tamis.blocks import MemoryMap
from tamis.blocks.labels import TargetLabels
from tamis.blocks.table import BlockTable
from tamis.contract import BackwardCriterion, ForwardCriterion, SubsetCriterion
from tamis.contract.criterion import Criterion
from tamis.criteria import (
    JMI,
    Correlation,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    Penalised,
    Scatter,
    ScoreSensitivity,
)
from tamis.exceptions import InvalidParameter, InvalidTable, TamisError
from tamis.testing import criterion_laws as laws
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import every, name


@pytest.mark.parametrize("criterion", every(Criterion), ids=name)
@pytest.mark.parametrize("law", laws.FOR_ALL, ids=name)
def test_every_criterion_obeys_the_laws(law, criterion):
    law(criterion)


@pytest.mark.parametrize("criterion", every(SubsetCriterion), ids=name)
@pytest.mark.parametrize("law", laws.FOR_SUBSET_CRITERIA, ids=name)
def test_every_subset_criterion_obeys_the_laws(law, criterion):
    law(criterion)


@pytest.mark.parametrize("criterion", every(ForwardCriterion), ids=name)
def test_every_forward_criterion_obeys_the_law_of_candidates(criterion):
    laws.candidates_may_be_some_and_in_any_order(criterion)


@pytest.mark.parametrize("criterion", [c for c in every(SubsetCriterion) if c.monotone], ids=name)
def test_criteria_declared_monotone_are_monotone(criterion):
    laws.monotone_means_that_more_is_worth_more(criterion)


@pytest.mark.parametrize("criterion", [c for c in every(SubsetCriterion) if c.additive], ids=name)
def test_criteria_declared_additive_are_additive(criterion):
    laws.additive_means_a_sum(criterion)


@pytest.mark.parametrize(
    "criterion", [c for c in every(Criterion) if not getattr(c, "_makes_folds", False)], ids=name
)
def test_rows_may_come_in_any_order(criterion):
    laws.rows_may_come_in_any_order(criterion)


#: Criteria that depend on constant columns, and why.
COUNT_CONSTANTS = {
    "CrossValidated(BernoulliNB(), cv=2, scoring='neg_log_loss')": "its priors smooth every column",
    "Divergence()": "without a ridge it refuses constant columns",
    "Divergence(ridge=0.001)": "the ridge is a share of the mean variance of all columns",
    "Scatter(measure='J2')": "without a ridge it refuses constant columns",
    "Scatter()": "without a ridge it refuses constant columns",
    "Scatter(ridge=0.001)": "the ridge is a share of the mean variance of all columns",
    "Remembered(Scatter(measure='J2'))": "as what it remembers",
    "Penalised(Scatter(), per_feature=0.5)": "as what it penalises",
    "Penalised(FisherScore())": "every column has its price",
    "PosteriorSensitivity(SVC(), by='derivative')": "gamma='scale' has one mean for all columns",
    "PosteriorSensitivity(LinearDiscriminantAnalysis(), by='removal')": "trains on it alone",
    "PosteriorSensitivity(SVC(), by='permutation', on='held-out', random_state=0)": (
        "shuffles are drawn by the number of columns"
    ),
    "Span(SVC(gamma=0.1, tol=1e-11), retrain=True)": "trains on it alone",
}


@pytest.mark.parametrize("criterion", every(Criterion), ids=name)
def test_a_constant_column_does_not_change_the_scores(criterion):
    if name(criterion) not in COUNT_CONSTANTS:
        laws.a_constant_column_changes_no_score(criterion)
        return
    with pytest.raises((AssertionError, TamisError)):
        laws.a_constant_column_changes_no_score(criterion)


#: Criteria for which a weight of 2 is not equivalent to a duplicate row, and why.
COUNT_ROWS = {
    "CrossValidated": "folds are drawn by rows",
    "OutputInformation": "the rows for validation are drawn",
    "PosteriorSensitivity": "weights train; the average over rows is not weighted",
    "DensitySensitivity": "weights train; the average over rows is not weighted",
    "ScoreSensitivity": "weights train; the average over rows is not weighted",
    "Span": "one of two copies can be left out at no cost",
}
WEIGHTED = [
    c
    for c in every(Criterion)
    if c.takes_metadata and has_fit_parameter(c.estimator, "sample_weight")
]


@pytest.mark.parametrize("criterion", WEIGHTED, ids=name)
def test_a_weight_of_2_is_equivalent_to_a_duplicate_row(criterion):
    if type(criterion).__name__ not in COUNT_ROWS:
        laws.a_weight_of_two_is_a_copied_row(criterion)
        return
    with pytest.raises((AssertionError, InvalidParameter)):
        laws.a_weight_of_two_is_a_copied_row(criterion)


@pytest.mark.parametrize(
    "criterion",
    [
        c
        for c in every(Criterion)
        if c.needs_target and getattr(c, "task", "auto") == "auto" and "classification" in c.targets
    ],
    ids=name,
)
def test_string_labels_are_classes(criterion):
    laws.string_labels_are_classes(criterion)


IMPUTING = make_pipeline(SimpleImputer(), LogisticRegression())
TAKING_NAN = [c for c in every(Criterion) if c.takes_missing]
TAKING_NAN += [CrossValidated(IMPUTING, cv=3), Penalised(MutualInformation(missing="pairs"))]
TAKING_NAN += [ScoreSensitivity(IMPUTING, n_values=4), JMI(missing="pairs")]


@pytest.mark.parametrize("criterion", TAKING_NAN, ids=name)
def test_criteria_declared_to_accept_nan_do(criterion):
    laws.nan_is_accepted(criterion)


@pytest.mark.parametrize(
    "criterion", [c for c in every(Criterion) if not c.takes_missing], ids=name
)
def test_other_criteria_refuse_nan(criterion):
    X, y = table()
    X[3, 2] = np.nan
    with pytest.raises(InvalidTable, match=r"1 missing value\(s\) \(NaN\) in column\(s\) 2\."):
        criterion.fit(X, y)


@pytest.mark.parametrize("criterion", [c for c in every(Criterion) if c.takes_categories], ids=name)
def test_criteria_that_accept_categories_ignore_the_order_of_codes(criterion):
    laws.codes_have_no_order(criterion)


# scikit-learn breaks ties of distances differently for a sparse table
TIED = KNeighborsClassifier


@pytest.mark.parametrize(
    "criterion",
    [
        c
        for c in every(Criterion)
        if c.takes_sparse and not isinstance(getattr(c, "estimator", None), TIED)
    ],
    ids=name,
)
def test_criteria_declared_to_accept_sparse_tables_do(criterion):
    laws.sparse_is_dense(criterion)


@pytest.mark.parametrize("criterion", [c for c in every(Criterion) if c.takes_blocks], ids=name)
def test_criteria_declared_to_accept_row_blocks_do(criterion):
    laws.blocks_are_the_table(criterion)


@pytest.mark.parametrize(
    "criterion",
    [c for c in every(Criterion) if not c.takes_blocks and type(c).fit is Criterion.fit],
    ids=name,
)
def test_other_criteria_refuse_row_blocks(criterion):
    X, y = table()
    source = MemoryMap(X, y)
    labels = source.reduce(TargetLabels("law"), target_only=True)
    with pytest.raises(InvalidParameter, match="cannot learn from row blocks"):
        criterion.fit(BlockTable(source, labels, "law"))


@pytest.mark.parametrize("criterion", [c for c in every(Criterion) if not c.takes_sparse], ids=name)
def test_other_criteria_refuse_a_sparse_table(criterion):
    X, y = table()
    with pytest.raises(InvalidTable, match="X is sparse"):
        criterion.fit(csr_array(X), y)


@pytest.mark.parametrize(
    "criterion",
    [
        c
        for c in every(Criterion)
        if c.takes_several_targets and "survival" not in c.targets and not hasattr(c, "estimator")
    ],
    ids=name,
)
def test_criteria_that_accept_several_targets_treat_them_equally(criterion):
    laws.targets_may_be_several(criterion)


@pytest.mark.parametrize("criterion", [c for c in every(Criterion) if c.opinion], ids=name)
def test_a_second_opinion_is_about_the_resulting_subset(criterion):
    laws.an_opinion_is_of_the_subset_that_results(criterion)


def test_some_criteria_have_a_second_opinion():
    assert sum(bool(c.opinion) for c in every(Criterion)) >= 3


# Each law must reject a criterion that breaks it. Otherwise it would test nothing.


class WrongGain(Scatter):
    def gain(self, subset, candidates):
        return super().gain(subset, candidates) * (1 + 1e-6)


class WrongLoss(Scatter):
    def loss(self, subset):
        return super().loss(subset)[::-1]


class WrongValues(Scatter):
    def values(self, subsets):
        values = super().values(subsets)
        return values if len(values) < 3 else np.sort(values)


class NoEmptyValue(FisherScore):
    def value(self, subset):
        return super().value(subset) if len(subset) else np.nan


class TooLowBound(Scatter):
    def bounds(self, subsets, size):
        return super().bounds(subsets, size) - 0.5


class FalselyMonotone(Scatter):
    @property
    def monotone(self):
        return True


class LikesWhoMoves(CrossValidated):
    """Criterion whose opinion is about the unit that moved, not about the resulting subset."""

    def second_opinion(self, subset, units):
        return super().second_opinion(subset, units) + 1e-3 * units


class FalselyAdditive(Scatter):
    additive = True


class Forgetful(FisherScore):
    """Criterion whose scores drift with every call."""

    def gain(self, subset, candidates):
        self.asked_ = getattr(self, "asked_", 0) + 1
        return super().gain(subset, candidates) + 1e-3 * self.asked_


class LikesTheFirstColumn(FisherScore):
    def _scores(self, X, y):
        return super()._scores(X, y) + 1e-3 * np.arange(X.shape[1])


class LikesTheFirstRow(FisherScore):
    def _scores(self, X, y):
        return super()._scores(X[:-5], y[:-5])


class CountsColumns(FisherScore):
    def _scores(self, X, y):
        return super()._scores(X, y) / X.shape[1]


class ForgetsWeights(Importances):
    def fit(self, X, y=None, **params):
        return super().fit(X, y)


class IgnoresCandidates(FisherScore):
    def gain(self, subset, candidates):
        return super().gain(subset, np.sort(candidates))


class WritesIntoTheData(FisherScore):
    def _learn(self, X, y, **params):
        X = X.view()
        X.flags.writeable = True
        X *= 2
        super()._learn(X, y, **params)


class HoldsALock(FisherScore):
    def _learn(self, X, y, **params):
        super()._learn(X, y, **params)
        self.generator_ = (i for i in range(3))


class NeedsNumbers(FisherScore):
    def _scores(self, X, y):
        return super()._scores(X, y.astype(float))


class DividesByZero(FisherScore):
    def _scores(self, X, y):
        with np.errstate(invalid="ignore"):
            return X.var(axis=0) / X.var(axis=0)


class FalselyTakesNaN(FisherScore):
    takes_missing = True


class ForgetsTheZeros(FisherScore):
    def _scores(self, X, y):
        return super()._scores(X, y) if isinstance(X, np.ndarray) else abs(X).sum(axis=0)


class AddsTargets(Correlation):
    def _scores(self, X, y):
        self.asked_ = getattr(self, "asked_", 0) + 1
        return super()._scores(X, y) * self.asked_


class CutsCategories(MutualInformation):
    def _learn(self, X, y, **params):
        self.categories = None
        super()._learn(X, y, **params)


class LosesOnCopies(BackwardCriterion):
    """Backward criterion whose loss is NaN for a constant column."""

    def _learn(self, X, y, **params):
        self.spread_ = X.std(axis=0)

    def loss(self, subset):
        return np.full(len(subset), np.nan)


@pytest.mark.parametrize(
    ("law", "member"),
    [
        (laws.gain_is_a_difference_of_values, WrongGain()),
        (laws.loss_is_a_difference_of_values, WrongLoss()),
        (laws.values_are_the_values, WrongValues()),
        (laws.the_empty_subset_has_a_value, NoEmptyValue()),
        (laws.a_bound_is_never_passed, TooLowBound()),
        (laws.monotone_means_that_more_is_worth_more, FalselyMonotone("J1")),
        (laws.additive_means_a_sum, FalselyAdditive()),
        (laws.an_opinion_is_of_the_subset_that_results, LikesWhoMoves(GaussianNB())),
        (laws.a_score_depends_on_the_subset_alone, Forgetful()),
        (laws.columns_may_come_in_any_order, LikesTheFirstColumn()),
        (laws.rows_may_come_in_any_order, LikesTheFirstRow()),
        (laws.a_constant_column_changes_no_score, CountsColumns()),
        (laws.a_weight_of_two_is_a_copied_row, ForgetsWeights(RidgeClassifier())),
        (laws.candidates_may_be_some_and_in_any_order, IgnoresCandidates()),
        (laws.the_input_stays_as_it_is, WritesIntoTheData()),
        (laws.a_fitted_criterion_can_be_stored, HoldsALock()),
        (laws.string_labels_are_classes, NeedsNumbers()),
        (laws.no_nan_on_constant_and_copied_columns, DividesByZero()),
        (laws.no_nan_on_constant_and_copied_columns, LosesOnCopies()),
        (laws.nan_is_accepted, FalselyTakesNaN()),
        (laws.codes_have_no_order, CutsCategories()),
        (laws.sparse_is_dense, ForgetsTheZeros()),
        (laws.targets_may_be_several, AddsTargets()),
    ],
    ids=name,
)
def test_the_law_rejects_a_wrong_criterion(law, member):
    # numpy, pickle and float() raise errors of their own for these
    others = {"WritesIntoTheData": ValueError, "HoldsALock": TypeError, "NeedsNumbers": ValueError}
    with pytest.raises(others.get(type(member).__name__, AssertionError)):
        law(member)


def test_a_criterion_with_a_missing_method_cannot_be_instantiated():
    class Unfinished(SubsetCriterion):
        def _learn(self, X, y, **params): ...

    with pytest.raises(TypeError, match="abstract"):
        Unfinished()


def test_the_catalogue_is_not_empty():
    assert len(every(SubsetCriterion)) >= 12
    assert any(isinstance(c, Correlation) for c in every(Criterion))

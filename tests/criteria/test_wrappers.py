"""The wrappers Remembered, Penalised and Scored."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis.criteria import Correlation, FisherScore, Penalised, Remembered, Scatter, Scored
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidScore
from tamis.search import BranchAndBound, FloatingForward, Forward, Ranking
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import between_rows


def test_remembered_computes_each_value_once():
    X, y = table()
    plain = FloatingForward(Scatter("J2"), n_features_to_select=4).fit(X, y)
    saved = FloatingForward(Remembered(Scatter("J2")), n_features_to_select=4).fit(X, y)
    assert_array_equal(plain.support_, saved.support_)
    criterion = Remembered(Scatter("J2")).fit(X, y)
    subset = np.array([1, 2])
    criterion.gain(subset, np.array([0, 3]))
    computed = criterion.n_computed_
    criterion.gain(subset, np.array([3, 0]))
    criterion.loss(np.array([0, 1, 2]))  # one of its values is cached
    assert criterion.n_computed_ == computed + 2


def test_tuning_clears_the_cache():
    class Tunable(FisherScore):
        def tune(self, subset):
            self.scores_ = self.scores_ * 2
            return {"twice": True}

        def use(self, params):
            if params:
                self.scores_ = self.scores_ * 2

    X, y = table()
    criterion, subset = Remembered(Tunable()).fit(X, y), np.array([0, 1])
    before = criterion.value(subset)
    assert criterion.tune(subset) == {"twice": True}
    assert_allclose(criterion.value(subset), 2 * before)
    criterion.use({"twice": True})
    assert_allclose(criterion.value(subset), 4 * before)


def test_a_penalty_is_the_same_for_each_feature():
    X, y = table()
    plain, dear = Scatter().fit(X, y), Penalised(Scatter(), per_feature=0.25).fit(X, y)
    subset = np.array([0, 2, 3])
    assert_allclose(dear.value(subset), plain.value(subset) - 0.75)
    assert not dear.monotone
    assert Penalised(Scatter(), per_feature=0.0).monotone
    with pytest.raises(IncompatibleCriterion, match="monotone"):
        BranchAndBound(Penalised(Scatter())).fit(X, y)


def test_additive_stays_additive():
    X, y = table()
    scores = FisherScore().fit(X, y).scores_
    cut = float(np.median(scores))
    criterion = Penalised(FisherScore(), per_feature=cut)
    search = Ranking(criterion, n_features_to_select="best").fit(X, y)
    assert_array_equal(search.support_, scores > cut)


def test_a_lambda_can_be_a_criterion():
    X, y = table()
    search = Forward(Scored(lambda X, y: -abs(X.shape[1] - 3.0)), n_features_to_select="best")
    assert search.fit(X, y).n_features_ == 3
    assert Scored(between_rows, empty=-5.0).fit(X, y).value(np.array([], dtype=int)) == -5


def test_processes_do_not_change_values():
    X, y = table()
    subsets = [np.array([j]) for j in range(7)]
    one = Scored(between_rows).fit(X, y).values(subsets)
    assert_array_equal(one, Scored(between_rows, n_jobs=2).fit(X, y).values(subsets))


def test_invalid_parameters_are_refused():
    X, y = table()
    with pytest.raises(InvalidParameter, match="function of"):
        Scored(3).fit(X, y)
    with pytest.raises(IncompatibleCriterion, match="scores subsets"):
        Remembered(5).fit(X, y)
    with pytest.raises(InvalidParameter, match="per_feature to be a finite number"):
        Penalised(Scatter(), per_feature=np.inf).fit(X, y)


def test_a_wrapper_has_the_task_of_the_wrapped_criterion():
    X, y = table()
    inside = Correlation(task="regression").fit(X, y)
    around = Remembered(Correlation(task="regression")).fit(X, y)
    assert around.task_ == inside.task_ == "regression"
    assert_array_equal(around.values([[j] for j in range(7)]), inside.scores_)


@pytest.mark.parametrize("answer", [None, "much", np.arange(3), {}])
def test_a_function_that_returns_no_number_is_refused(answer):
    with pytest.raises(InvalidScore, match=f"one number, not {type(answer).__name__}. Write"):
        Forward(Scored(lambda X, y: answer)).fit(*table())

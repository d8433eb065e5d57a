"""Recursive elimination: schedules, tuning and ties."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.contract import BackwardCriterion, Record
from tamis.criteria import FisherScore
from tamis.exceptions import InvalidParameter
from tamis.search import RecursiveElimination
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop, outcome

TIERS = [(100, 100), (20, 20), (0, 1)]


class Index(BackwardCriterion):
    """Criterion whose loss of a column is its index. Tuning records the number of columns."""

    def _learn(self, X, y, **params):
        self.level_ = 0

    def loss(self, subset):
        return subset + 1000.0 * self.level_

    def tune(self, subset):
        self.level_ = len(subset)
        return {"level": self.level_}

    def use(self, params):
        self.level_ = params.get("level", self.level_)


def sizes(d, **options):
    X = np.random.default_rng(0).normal(size=(4, d))
    search = RecursiveElimination(Index(), **options).fit(X, [0, 1, 0, 1])
    assert_array_equal(search.trace_[-1].subset, np.arange(d - len(search.trace_[-1].subset), d))
    return search.trace_.sizes.tolist()


def test_steps_never_go_below_a_threshold_or_the_requested_size():
    found = sizes(530, step=TIERS, n_features_to_select=17)
    assert found == [530, 430, 330, 230, 130, 100, 80, 60, 40, 20, 19, 18, 17]
    assert sizes(530, step=TIERS, n_features_to_select=90)[-3:] == [130, 100, 90]
    assert sizes(30, step=[(10, 7)], n_features_to_select=8) == [30, 23, 16, 10, 9, 8]


def test_steps_are_given_by_number_or_fraction():
    assert sizes(10, step=3, n_features_to_select=2) == [10, 7, 4, 2]
    assert sizes(10, step=0.5, n_features_to_select=1) == [10, 5, 3, 2, 1]
    assert sizes(10, step=0.01, n_features_to_select=8) == [10, 9, 8]


@pytest.mark.parametrize("step", [0, -1, 0.0, 1.0, 1.5, True, "all", [], [(10,)], [(5, 0)]])
def test_an_invalid_step_is_refused(step):
    with pytest.raises(InvalidParameter, match="tiers such as"):
        sizes(10, step=step)


@pytest.mark.parametrize("retune", [0, 1.0, "tier", "often", True])
def test_an_invalid_retune_is_refused(retune):
    with pytest.raises(InvalidParameter, match="retune"):
        sizes(10, retune=retune)


@pytest.mark.parametrize(
    ("retune", "expected"),
    [
        (1, {12: 12, 11: 11, 10: 10, 9: 9, 8: 8, 7: 7}),
        (3, {12: 12, 9: 9}),
        (0.2, {12: 12, 9: 9, 7: 7}),
        (None, {}),
    ],
)
def test_the_criterion_is_tuned_when_due(retune, expected):
    X, y = table(60, 12)
    search = RecursiveElimination(Index(), n_features_to_select=6, retune=retune).fit(X, y)
    before = search.trace_.sizes[:-1]
    steps = list(search.trace_)[1:]
    chosen = {int(n): s.params["level"] for n, s in zip(before, steps, strict=True) if s.params}
    assert chosen == expected


def test_the_criterion_is_tuned_at_the_start_of_each_tier():
    X = np.random.default_rng(0).normal(size=(4, 40))
    search = RecursiveElimination(
        Index(), n_features_to_select=5, step=[(20, 10), (10, 5), (0, 1)], retune="tier"
    ).fit(X, [0, 1, 0, 1])
    assert [s.params["level"] for s in search.trace_ if s.params] == [40, 20, 10]


@pytest.mark.parametrize("retune", [1, 3, 0.2])
def test_tuned_parameters_are_restored_on_resume(retune):
    X, y = table(60, 12)
    make = lambda: RecursiveElimination(Index(), n_features_to_select=2, retune=retune)  # noqa: E731
    whole = make().fit(X, y)
    for after in range(1, len(whole.trace_) + 1):
        record = make().set_callbacks(Stop(after)).fit(X, y).record_
        resumed = make().resume(X, y, record=Record.from_dict(record.to_dict()))
        assert outcome(resumed) == outcome(whole)
        assert_array_equal(resumed.scores_, whole.scores_)


def test_tied_columns_are_removed_by_the_highest_index_first():
    class Equal(FisherScore):
        def _scores(self, X, y):
            return np.ones(X.shape[1]) + 1e-15 * np.arange(X.shape[1])[::-1]

    X, y = table()
    search = RecursiveElimination(Equal(), n_features_to_select=2, step=3).fit(X, y)
    assert [step.moved.tolist() for step in search.trace_] == [[], [6, 5, 4], [3, 2]]


def test_selected_columns_are_ordered_by_their_last_score():
    X, y = table()
    search = RecursiveElimination(Index(), n_features_to_select=3).fit(X, y)
    assert_array_equal(search.order_, [6, 5, 4, 3, 2, 1, 0])
    assert_array_equal(search.ranking_, [5, 4, 3, 2, 1, 1, 1])
    assert_array_equal(search.scores_, Index().fit(X, y).loss(np.arange(7)))


@pytest.mark.parametrize("step", [1, 2])
def test_values_are_computed_with_the_current_tuning(step):
    class Levelled(FisherScore):
        additive = False

        def tune(self, subset):
            self.scores_ = self.scores_ + 1.0
            return {"level": float(self.scores_[0])}

    X, y = table()
    plain = FisherScore().fit(X, y)
    search = RecursiveElimination(Levelled(), n_features_to_select=1, step=step, retune=2)
    for place, found in enumerate(search.fit(X, y).trace_):
        tuned = (place + 1) // 2
        np.testing.assert_allclose(
            found.value, plain.value(found.subset) + tuned * len(found.subset)
        )

"""Steps: moves are derived from subsets, and contradictions are refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.contract import Entries, Scores, Search, Step, SubsetCriterion, Trace
from tamis.contract.steps import BEST
from tamis.criteria import FisherScore, Scatter, Scored
from tamis.exceptions import InvalidStep, NothingGained, TiedScores
from tamis.search import Forward, Ranking, RecursiveElimination
from tamis.testing.problem import make_table as table


class Scripted(Search):
    """A search that yields given subsets."""

    needs = (SubsetCriterion,)
    nested = True

    def __init__(self, criterion, subsets=(), *, n_features_to_select=2, standardize=True):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
        self.subsets = subsets

    def _steps(self, criterion, n_units, size, done):
        for subset in self.subsets:
            yield Step(np.array(subset))


class Jumping(Scripted):
    """A search that yields given subsets, which need not be nested."""

    nested = False


def test_moves_are_derived_from_the_subsets():
    X, y = table()
    search = Jumping(Scatter(), [[3], [3, 5], [5, 1], [1, 5, 0], [0, 1]]).fit(X, y)
    assert [step.moved.tolist() for step in search.trace_] == [[3], [5], [1, 3], [0], [5]]
    assert [step.entered.tolist() for step in search.trace_][2] == [True, False]
    assert_array_equal(search.trace_.sizes, [1, 2, 2, 3, 2])
    assert_array_equal(np.flatnonzero(search.support_), [0, 1])


@pytest.mark.parametrize(
    ("subsets", "sentence"),
    [
        ([[3], [3]], "step 2, moves no unit"),
        ([[3], [4, 5]], "step 2, both adds and removes"),
        ([[3], [3, 4], [3]], "step 3, both adds and removes"),
        ([[3], [3, 4, 5]], "step 2, goes from 1 to 3 units and skips the 2 asked for"),
        ([[3], [3, 3]], "step 2, contains unit 3 twice"),
        ([[3], [3, 7]], "step 2, contains unit 7, but units go from 0 to 6"),
        ([[3], [3, -1]], "step 2, contains unit -1"),
        ([[0.5]], "step 1, yields .* a subset needs an array of indices"),
        ([[3]], "asked for 2 unit.s., but it ended without"),
    ],
)
def test_an_invalid_step_is_refused_with_the_name_of_the_search(subsets, sentence):
    search = Scripted(Scatter(), subsets)
    with pytest.raises(InvalidStep, match=rf"Scripted.*{sentence}"):
        search.fit(*table())
    good = len(subsets) if "it ended" in sentence else len(subsets) - 1
    assert len(search.trace_) == good  # invalid steps are not recorded
    assert not hasattr(search, "support_")


def test_scores_need_units():
    with pytest.raises(InvalidStep, match="2 scores for 1 units"):
        Trace(3).append(Step(np.array([0]), scores=Scores(np.array([0]), np.ones(2))))
    trace = Trace(3)
    trace.append(Step(np.array([0])))
    with pytest.raises(InvalidStep, match="already in the subset"):
        trace.extend(Entries(np.array([0]), Scores(np.array([0]), np.ones(1))))


def test_a_trace_may_start_with_all_units():
    trace = Trace(3)
    trace.append(Step(np.arange(3)))
    assert trace.start.all()
    assert len(trace[0].moved) == 0
    assert trace.growing is None
    trace.append(Step(np.array([0, 2])))
    assert trace.growing is False


def test_all_scores_of_a_step_are_stored():
    X, y = table()
    search = Forward(Scatter(), n_features_to_select=3).fit(X, y)
    criterion = Scatter().fit(X, y)
    subset = np.empty(0, dtype=np.intp)
    for step in search.trace_:
        candidates = np.setdiff1d(np.arange(7), subset)
        gains = criterion.gain(subset, candidates)
        order = np.argsort(-gains)
        assert_array_equal(step.scores.units, candidates[order])
        np.testing.assert_allclose(step.scores.values, gains[order])
        subset = step.subset
    # the score of a column that never moved is its last one
    np.testing.assert_allclose(search.scores_[candidates], gains)


def test_only_the_best_of_many_candidates_are_stored():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(30, 3 * BEST)), np.arange(30) % 2
    search = Forward(FisherScore(), n_features_to_select=2).fit(X, y)
    scores = FisherScore().fit(X, y).scores_
    for step in search.trace_:
        assert len(step.scores.units) == BEST
        assert step.moved[0] == step.scores.units[0]
        assert (np.diff(step.scores.values) <= 0).all()
    assert_array_equal(search.trace_[0].scores.units, np.argsort(-scores)[:BEST])
    np.testing.assert_allclose(np.sort(search.scores_), np.sort(scores), rtol=1e-6)


def test_the_score_of_a_removed_unit_is_stored_even_if_many_are_smaller():
    trace, n = Trace(3 * BEST), 3 * BEST
    trace.append(Step(np.arange(n)))
    trace.append(Step(np.arange(n - 1), scores=Scores(np.arange(n), np.arange(n, dtype=float))))
    assert trace[1].score[0] == n - 1
    assert n - 1 in trace[1].scores.units


def test_infinite_and_missing_values_can_be_stored_as_json():
    trace = Trace(4)
    scores = Scores(np.arange(4), np.array([1.0, np.inf, -np.inf, 0.5]))
    trace.append(Step(np.array([1]), -np.inf, scores, params={"C": 2.0}))
    plain = json.loads(json.dumps(trace.to_dict(), allow_nan=False))
    again = Trace.from_dict(plain)
    assert again.to_dict() == trace.to_dict()
    assert again[0].params == {"C": 2.0}
    assert_array_equal(again.given, [1.0, np.inf, -np.inf, 0.5])


def test_a_trace_can_be_converted_to_a_frame():
    X, y = table()
    trace = RecursiveElimination(Scatter(), n_features_to_select=4, step=2).fit(X, y).trace_
    frame = trace.to_frame()
    assert frame["size"].to_list() == [7, 5, 4]
    assert frame["left"].to_list() == [step.moved.tolist() for step in trace]
    assert frame["entered"].to_list() == [[], [], []]
    assert frame["n_evaluations"].to_list()[-1] == trace.n_evaluations


class TestTies:
    X, y = table(n_features=5)

    def test_a_step_counts_its_ties_and_a_warning_reports_them(self):
        X = np.column_stack([self.X, self.X, self.X])
        search = Forward(Scatter("J3", ridge=1e-3), n_features_to_select=2)
        with pytest.warns(TiedScores, match="step 1 of 2 column .* scored the same") as said:
            search.fit(X, self.y)
        assert len(said) == 1
        assert_array_equal(search.trace_.n_equal, [3, 3])

    def test_a_tie_that_does_not_matter_is_not_reported(self, recwarn):
        X = np.column_stack([self.X, self.X[:, 0]])
        search = Ranking(FisherScore(), n_features_to_select=6).fit(X, self.y)
        Ranking(FisherScore(), n_features_to_select=1).fit(self.X, self.y)
        assert max(search.trace_.n_equal) == 2
        assert not [w for w in recwarn if issubclass(w.category, TiedScores)]

    def test_a_ranking_cut_inside_a_tie_causes_a_warning(self):
        best = FisherScore().fit(self.X, self.y).scores_.argmax()
        X = np.column_stack([self.X, self.X[:, best], self.X[:, best]])
        with pytest.warns(TiedScores, match=f"column {best} and column 5 and column 6 scored"):
            Ranking(FisherScore(), n_features_to_select=1).fit(X, self.y)

    def test_removing_several_but_not_all_tied_units_causes_a_warning(self):
        class Flat(FisherScore):
            def _scores(self, X, y):
                return np.ones(X.shape[1])

        with pytest.warns(TiedScores, match="RecursiveElimination: at step 2 of 2"):
            RecursiveElimination(Flat(), n_features_to_select=3, step=2).fit(self.X, self.y)


class TestNothingGained:
    X, y = table()

    def test_a_warning_names_the_size_at_which_the_score_stopped_rising(self):
        search = Forward(Scored(lambda X, y: min(X.shape[1], 2.0)), n_features_to_select=4)
        said = "Forward: more than 2 columns add no value: the value is 2 with 2, and 2 with"
        with pytest.warns(NothingGained, match=said) as warned:
            search.fit(self.X, self.y)
        assert len([w for w in warned if w.category is NothingGained]) == 1
        assert search.gains_until_ == 2
        assert "more than 2 columns add no value" in search.summary()

    def test_a_value_that_falls_causes_a_warning(self):
        search = Forward(Scored(lambda X, y: -abs(X.shape[1] - 3.0)), n_features_to_select=5)
        with pytest.warns(NothingGained, match="more than 3 columns .* 0 with 3, and -2 with"):
            search.fit(self.X, self.y)
        assert search.gains_until_ == 3

    def test_a_resumed_search_finds_it_too(self):
        search = Forward(Scored(_few), n_features_to_select=4).fit(self.X, self.y)
        again = Forward(Scored(_few), n_features_to_select=1).fit(self.X, self.y)
        again.set_params(n_features_to_select=4).resume(self.X, self.y, record=again.record_)
        assert again.gains_until_ == search.gains_until_ == 2

    @pytest.mark.parametrize(
        "search",
        [
            Forward(Scatter("J3"), n_features_to_select=4),
            Forward(Scored(lambda X, y: min(X.shape[1], 2.0)), n_features_to_select="best"),
            RecursiveElimination(FisherScore(), n_features_to_select=2),
        ],
        ids=["gains to the end", "chosen by value", "only ranks"],
    )
    def test_a_search_that_gains_causes_no_warning(self, search, recwarn):
        assert search.fit(self.X, self.y).gains_until_ is None
        assert not [w for w in recwarn if w.category is NothingGained]


def _few(X, y):
    return min(X.shape[1], 2.0)

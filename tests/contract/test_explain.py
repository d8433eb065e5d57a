"""Explanations of why a column was selected or left out."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError

from tamis.contract.steps import BEST
from tamis.criteria import FisherScore, Scatter
from tamis.exceptions import InvalidParameter, RecordMismatch
from tamis.search import (
    Backward,
    BranchAndBound,
    Exhaustive,
    FloatingForward,
    Forward,
    Genetic,
    Ranking,
    RecursiveElimination,
    Then,
)
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import searches

DATA = load_breast_cancer(as_frame=True)


def forward():
    return Forward(Scatter(), n_features_to_select=5).fit(DATA.data, DATA.target)


def test_explain_describes_selected_and_unselected_columns():
    search = forward()
    first, last = search.order_[[0, 4]]
    assert search.explain("worst concave points") == search.explain(int(first))
    assert search.explain(int(first)) == (
        "'worst concave points' is among the 5 of 30 columns that Forward selects; its rank is 1. "
        "It was added at step 1 of 5, with a score of 2.701, the best of 30; the next best was "
        "'worst perimeter' with 2.584."
    )
    assert "It was added at step 5 of 5" in search.explain(int(last))
    text = search.explain("mean radius")
    assert text.startswith("'mean radius' is not among the 5 of 30 columns that Forward")
    assert "It was scored in 5 step(s) and never added" in text
    assert "'worst concave points' won with 2.701" in text
    assert "It came closest at step 4" in text


def test_explain_describes_removals():
    search = RecursiveElimination(Scatter(), n_features_to_select=5).fit(DATA.data, DATA.target)
    assert "never removed: step 26 removed 'smoothness error'" in search.explain("worst radius")
    assert "It was removed at step 25 of 26, with a loss of" in search.explain("worst concavity")


def test_ranks():
    search = Ranking(FisherScore(), n_features_to_select=5).fit(DATA.data, DATA.target)
    text = search.explain("mean radius")
    assert "It scored 1.141 and was added at step 7; the last one selected, 'mean perim" in text


def test_searches_that_only_score_subsets():
    X, y = table()
    for cls in (Exhaustive, BranchAndBound):
        text = cls(Scatter(), n_features_to_select=3).fit(X, y).explain(0)
        assert "scores subsets, so no column has a score of its own" in text
    assert np.isnan(Genetic(Scatter(), random_state=0, n_generations=2).fit(X, y).scores_).all()


def test_columns_that_the_first_search_did_not_select():
    first = Ranking(FisherScore(), n_features_to_select=10)
    search = Then(first, Forward(Scatter(), n_features_to_select=3)).fit(DATA.data, DATA.target)
    text = search.explain("mean smoothness")
    assert text.startswith(
        "The first search did not pass it on to the second. In the first, 'mean smoothness' is"
    )
    assert "that Then selects" in search.explain("mean radius")


def test_columns_that_were_never_among_the_best():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(30, 3 * BEST)), np.arange(30) % 2
    search = Forward(FisherScore(), n_features_to_select=2).fit(X, y)
    worst = int(np.argmin(FisherScore().fit(X, y).scores_))
    assert f"never among the {BEST} best of a step" in search.explain(worst)


@pytest.mark.parametrize("cls", searches())
def test_every_search_explains_every_column(cls):
    X, y = table()
    search = cls(Scatter(), n_features_to_select=3).fit(X, y)
    for column in range(7):
        text = search.explain(column)
        assert text.startswith(f"column {column} is ")
        assert ("is not among" in text) != search.support_[column]
        assert "nan" not in text


def test_ties_are_explained():
    X, y = table()
    search = Forward(Scatter(ridge=1e-3), n_features_to_select=2).fit(np.c_[X, X], y)
    assert "2 columns were tied; the lowest index is selected" in search.explain(
        int(search.order_[0])
    )


@pytest.mark.parametrize("column", ["colour", 30, -31, 1.5, None, True])
def test_an_unknown_column_is_refused(column):
    with pytest.raises(InvalidParameter, match=r"Forward\.explain needs"):
        forward().explain(column)


def test_an_unfitted_search_is_refused():
    with pytest.raises(NotFittedError):
        Forward(Scatter()).explain(0)


class TestCompare:
    def test_by_names(self):
        one = forward().record_
        other = Ranking(FisherScore(), n_features_to_select=5).fit(DATA.data, DATA.target).record_
        found = one.compare(other)
        assert set(found.both) == {"worst concave points", "worst radius"}
        assert set(found.only_first) == {"worst texture", "worst area", "smoothness error"}
        assert len(found.only_second) == 3
        assert -1 < found.rank_agreement < 1
        assert one.compare(one).rank_agreement == pytest.approx(1)
        shuffled = DATA.data[DATA.data.columns[::-1]]
        again = Forward(Scatter(), n_features_to_select=5).fit(shuffled, DATA.target)
        assert set(one.compare(again.record_).both) == set(one.compare(one).both)

    def test_records_without_names_are_compared_by_position(self):
        X, y = table()
        one = Forward(Scatter(), n_features_to_select=3).fit(X, y)
        other = Backward(Scatter(), n_features_to_select=3).fit(X, y)
        found = one.record_.compare(other.record_)
        assert set(found.both) == set(np.flatnonzero(one.support_ & other.support_))
        short = FloatingForward(Scatter(), n_features_to_select=2).fit(X[:, :5], y)
        with pytest.raises(RecordMismatch, match="Records of 7 and of 5 columns"):
            one.record_.compare(short.record_)
        with pytest.raises(InvalidParameter, match="compare needs the record"):
            one.record_.compare(other)

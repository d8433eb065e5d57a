"""One order from those of several searches, against places added up by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from tamis.choice import Fusion, Threshold
from tamis.contract import Record
from tamis.criteria import JMI, FisherScore, Importances, MutualInformation
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.search import Forward, Ranking, RecursiveElimination
from tests.laws.catalogue import table

SEARCHES = [
    Ranking(FisherScore()),
    Forward(JMI()),
    RecursiveElimination(Importances(RidgeClassifier())),
]


@pytest.mark.parametrize("by", ["borda", "mean-rank", "reciprocal"])
def test_places_are_added_up(by):
    X, y = table()
    found = Fusion(SEARCHES, by=by, n_features_to_select=3, random_state=0).fit(X, y)
    ranks = [rankdata(-Ranking(FisherScore()).fit(X, y).scores_)]
    for search in (Forward(JMI(), n_features_to_select=7), clone(SEARCHES[2])):
        order = search.set_params(n_features_to_select=7 if search.grows else 1).fit(X, y).order_
        places = np.empty(7)
        places[order] = np.arange(1, 8)
        ranks.append(places)
    ranks = np.array(ranks)
    assert_allclose(found.ranks_, ranks)
    score = {
        "borda": (7 - ranks).sum(axis=0),
        "mean-rank": -ranks.mean(axis=0),
        "reciprocal": (1 / (60 + ranks)).sum(axis=0),
    }[by]
    assert_allclose(found.scores_, score)
    assert set(np.argsort(-score, kind="stable")[:3]) == set(np.flatnonzero(found.support_))


def test_columns_a_walk_never_came_to_share_their_places():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 60)), rng.integers(0, 2, 60)
    found = Fusion([Forward(JMI())], random_state=0).fit(X, y)
    last = found.ranks_[0] == found.ranks_[0].max()
    assert last.sum() == 20
    assert found.ranks_[0].max() == 50.5


def test_equal_searches_change_nothing():
    X, y = table()
    one = Ranking(MutualInformation(), n_features_to_select=3)
    both = Fusion([one, one], n_features_to_select=3, random_state=0).fit(X, y)
    assert_array_equal(both.support_, one.fit(X, y).support_)


def test_stopped_and_resumed_and_on_two_processes():
    X, y = table()
    whole = Fusion(SEARCHES, n_features_to_select=2, random_state=3).fit(X, y)
    trace = whole.record_.trace.head(0)
    trace.state = {"ranks": {"1": whole.ranks_[1].tolist()}}
    begun = replace(whole.record_, trace=trace, finished=False, chosen=0)
    saved = Record.from_dict(json.loads(json.dumps(begun.to_dict())))
    again = Fusion(SEARCHES, n_features_to_select=2, random_state=3, n_jobs=2)
    again.resume(X, y, record=saved)
    assert_array_equal(again.order_, whole.order_)


def test_groups_stand_together():
    X, y = table()
    found = Fusion(
        SEARCHES[:2], n_features_to_select=1, feature_groups={"pair": [1, 4]}, random_state=0
    ).fit(X, y)
    assert found.units_.n_units == 6
    assert found.support_[1] == found.support_[4]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Fusion([]), IncompatibleCriterion, "list of searches"),
        (lambda: Fusion(SEARCHES[0]), IncompatibleCriterion, "list of searches"),
        (lambda: Fusion([FisherScore()]), IncompatibleCriterion, "needs searches"),
        (lambda: Fusion(SEARCHES, by="vote"), InvalidParameter, "mean-rank"),
        (
            lambda: Fusion([Ranking(FisherScore(), fixed_features=[0])]),
            IncompatibleCriterion,
            "of its own",
        ),
    ],
)
def test_what_it_cannot_use_is_a_sentence(make, error, match):
    with pytest.raises(error, match=match):
        make().fit(*table())


def test_a_choice_reads_the_points():
    found = Fusion(SEARCHES, n_features_to_select=Threshold(12), random_state=0).fit(*table())
    assert (found.scores_[found.support_] >= 12).all()

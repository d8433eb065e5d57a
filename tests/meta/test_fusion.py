"""Fusion of the orders of several searches, compared with ranks combined by hand."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from tamis._expression import write
from tamis._seeds import seed_of, stream
from tamis.choice import Knee, OneStandardError, Threshold
from tamis.contract import Record
from tamis.criteria import (
    JMI,
    Correlation,
    FisherScore,
    Importances,
    MutualInformation,
    PairMRMR,
)
from tamis.datasets import make_mixed
from tamis.evaluation import stability
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidTable
from tamis.meta import Fusion, Probes
from tamis.recipes.book import targets_of
from tamis.search import Forward, Ranking, RecursiveElimination, Then
from tamis.table import TableSelector
from tamis.testing.problem import make_table as table
from tamis.validation.resamples import parts_of

SEARCHES = [
    Ranking(FisherScore()),
    Forward(JMI()),
    RecursiveElimination(Importances(RidgeClassifier())),
]


@pytest.mark.parametrize("by", ["borda", "mean-rank", "reciprocal"])
def test_ranks_are_combined(by):
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


def test_columns_that_a_search_never_reached_share_their_mean_rank():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 60)), rng.integers(0, 2, 60)
    found = Fusion([Forward(JMI())], random_state=0).fit(X, y)
    last = found.ranks_[0] == found.ranks_[0].max()
    assert last.sum() == 20
    assert found.ranks_[0].max() == 50.5


def test_equal_searches_do_not_change_the_order():
    X, y = table()
    one = Ranking(MutualInformation(), n_features_to_select=3)
    both = Fusion([one, one], n_features_to_select=3, random_state=0).fit(X, y)
    assert_array_equal(both.support_, one.fit(X, y).support_)


def test_a_resumed_or_parallel_run_gives_the_same_result():
    X, y = table()
    whole = Fusion(SEARCHES, n_features_to_select=2, random_state=3).fit(X, y)
    trace = whole.record_.trace.head(0)
    trace.state = {"ranks": {"1": whole.ranks_[1].tolist()}}
    begun = replace(whole.record_, trace=trace, finished=False, chosen=0)
    saved = Record.from_dict(json.loads(json.dumps(begun.to_dict())))
    again = Fusion(SEARCHES, n_features_to_select=2, random_state=3, n_jobs=2)
    again.resume(X, y, record=saved)
    assert_array_equal(again.order_, whole.order_)


def test_groups_are_ranked_together():
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
            "has its own",
        ),
        (
            lambda: Fusion([Probes(SEARCHES[0])]),
            IncompatibleCriterion,
            r"Probes chooses the number of columns itself.* write Probes\(Fusion\(\[\.\.\.\]\)\)",
        ),
        (
            lambda: Fusion(
                [Then(Ranking(FisherScore(), n_features_to_select=Knee()), Forward(JMI()))]
            ),
            IncompatibleCriterion,
            "depends on the data",
        ),
        (lambda: Fusion(SEARCHES, by=["borda"]), InvalidParameter, "mean-rank"),
        (
            lambda: Fusion(SEARCHES, n_features_to_select=Knee()),
            IncompatibleCriterion,
            r"not marginal gains.* Ask for a number of features\.$",
        ),
        (
            lambda: Fusion(SEARCHES, n_features_to_select=OneStandardError()),
            IncompatibleCriterion,
            "; Fusion does not",
        ),
    ],
)
def test_unsupported_searches_are_refused(make, error, match):
    with pytest.raises(error, match=match):
        make().fit(*table())


@pytest.mark.parametrize("damage", ["gone", "abc", [1.0, 2.0], None])
def test_damaged_ranks_are_reported(damage):
    X, y = table()
    fusion = Fusion(SEARCHES, random_state=0)
    plain = json.loads(json.dumps(clone(fusion).fit(X, y).record_.to_dict()))
    if damage == "gone":
        del plain["trace"]["state"]["ranks"]["1"]
    else:
        plain["trace"]["state"]["ranks"]["1"] = damage
    del plain["checksum"]
    with pytest.raises(InvalidTable, match="damaged record"):
        clone(fusion).resume(X, y, record=Record.from_dict(plain))


def test_a_choice_uses_the_combined_scores():
    found = Fusion(SEARCHES, n_features_to_select=Threshold(12), random_state=0).fit(*table())
    assert (found.scores_[found.support_] >= 12).all()


def test_missing_values_categories_and_several_targets_are_passed_on_if_supported():
    X, y = table()
    assert not Fusion(SEARCHES).takes_categories
    takes = Fusion([Forward(JMI()), Ranking(MutualInformation())], n_features_to_select=2)
    assert takes.takes_categories
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    found = takes.fit(gaps, y)
    ranks = Ranking(MutualInformation()).fit(gaps, y).scores_
    assert_allclose(found.ranks_[1], rankdata(-ranks))
    with pytest.raises(InvalidTable, match="number in every entry"):
        Fusion(SEARCHES).fit(gaps, y)
    several = Fusion([Ranking(Correlation()), Ranking(MutualInformation())]).fit(X, np.c_[y, y])
    assert_array_equal(several.order_, clone(several).fit(X, y).order_)


def test_categories_of_a_frame_are_passed_to_the_searches():
    mixed = make_mixed(200, random_state=0, like="incomes")
    frame = mixed.to_frame()
    fusion = Fusion([Ranking(MutualInformation()), Forward(JMI())], n_features_to_select=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = TableSelector(fusion).fit(frame, mixed.y)
        alone = TableSelector(Ranking(MutualInformation())).fit(frame, mixed.y)
    told = [search.criterion.categories for search in found.search_.searches]
    assert told == [alone.search_.criterion.categories] * 2
    assert told[0]
    assert_allclose(found.search_.ranks_[0], rankdata(-alone.search_.scores_))
    swaps = found.substitutes(frame, mixed.y, min_correlation=0, random_state=0)
    assert {swap.column for swap in swaps} == set(found.columns)


def test_the_stability_is_reported_next_to_that_of_each_search():
    X, y = table()
    fusion = Fusion(SEARCHES, n_features_to_select=3, random_state=5)
    found = fusion.stability(X, y, n_resamples=4)
    assert list(found) == ["Fusion", *map(write, SEARCHES)]
    kept = []
    for index in range(4):
        (rows,) = parts_of(y, (48,), stream(5, "rows", index))
        part = clone(fusion).set_params(random_state=seed_of(5, "fit", index))
        part.fit(X[rows], y[rows])
        fisher = Ranking(FisherScore(), n_features_to_select=3).fit(X[rows], y[rows])
        kept.append((part.support_, fisher.support_))
    for name, masks in zip(list(found)[:2], zip(*kept, strict=True), strict=True):
        assert found[name].nogueira == stability(masks).nogueira
        assert found[name].low <= found[name].nogueira <= found[name].high
    assert {s.frequency.sum() for s in found.values()} == {3.0}
    assert list(Fusion([SEARCHES[0]] * 2).stability(X, y, n_resamples=2))[2].endswith(" #2")


def test_stability_supports_groups_and_refuses_invalid_input():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    grouped = Fusion(
        SEARCHES[:2], n_features_to_select=2, feature_groups={"pair": ["b", "e"]}, random_state=0
    )
    assert len(grouped.stability(frame, y, n_resamples=3)["Fusion"].frequency) == 6
    with pytest.raises(InvalidParameter, match="n_resamples to be an int of at least 2"):
        grouped.stability(frame, y, n_resamples=1)
    with pytest.raises(InvalidParameter, match="share to be a number in"):
        grouped.stability(frame, y, share=1)


def test_the_kinds_of_target_are_those_that_all_searches_support():
    assert targets_of(Fusion([Ranking(Correlation()), Forward(JMI())])) == {
        "classification",
        "regression",
    }
    assert targets_of(Fusion([Ranking(Correlation()), Ranking(FisherScore())])) == {
        "classification"
    }


def test_a_sparse_table_is_accepted_if_all_searches_accept_it():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 8)) < 0.3, rng.normal(size=(60, 8)), 0.0)
    y = (X[:, 2] + X[:, 5] > 0).astype(int)
    members = [Ranking(FisherScore()), Ranking(MutualInformation())]
    both = Fusion(members, n_features_to_select=2, random_state=0)
    assert both.__sklearn_tags__().input_tags.sparse
    dense = clone(both).fit(X, y)
    for n_jobs in (None, 2):
        sparse = clone(both).set_params(n_jobs=n_jobs).fit(csr_array(X), y)
        assert_allclose(sparse.ranks_, dense.ranks_)
    found, expected = (both.stability(table, y, n_resamples=3) for table in (csr_array(X), X))
    assert found.keys() == expected.keys()
    assert found["Fusion"].nogueira == pytest.approx(expected["Fusion"].nogueira)
    mixed = Fusion([*members, Forward(PairMRMR())], random_state=0)
    with pytest.raises(InvalidTable, match="Fusion needs a dense table"):
        mixed.fit(csr_array(X), y)

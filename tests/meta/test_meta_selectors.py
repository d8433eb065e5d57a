"""Meta-selectors: their counts, selections and messages."""

import json
import math
import warnings
from dataclasses import replace

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR, LinearSVC

from tamis._seeds import stream
from tamis.choice import Knee
from tamis.cli.progress import ProgressBar
from tamis.contract import Record, Search, Step, SubsetCriterion
from tamis.criteria import (
    JMI,
    Correlation,
    CoxScore,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    PValue,
    Scatter,
    Scored,
)
from tamis.exceptions import (
    DegenerateData,
    IncompatibleCriterion,
    InvalidParameter,
    InvalidScore,
    InvalidTable,
    InvalidTarget,
    NothingFound,
    NothingSelected,
)
from tamis.meta import (
    ConditionalTest,
    Contest,
    Fusion,
    HonestSize,
    Knockoffs,
    Probes,
    StabilitySelection,
    repeats,
)
from tamis.meta.honest_size import first_units, sizes_of
from tamis.meta.knockoffs import (
    correlations,
    gaussian_knockoffs,
    knockoff_threshold,
    mvr_strengths,
    sdp_strengths,
)
from tamis.meta.search_repeats import count_ahead
from tamis.search import (
    Backward,
    Exhaustive,
    FloatingForward,
    Forward,
    Ranking,
    RecursiveElimination,
    Then,
)
from tamis.table import TableSelector


def signal(n=120, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 2] - X[:, min(7, d - 1)] + 0.5 * rng.normal(size=n)


def noise(n=150, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


class Speechless(RegressorMixin, BaseEstimator):
    """Regressor that predicts NaN if it has three columns."""

    def fit(self, X, y):
        self.width_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), np.nan if self.width_ == 3 else 0.0)


AROUND = [
    Probes(Ranking(Correlation()), expected_false=0.2, n_rounds=6, random_state=0),
    Contest(Ranking(Correlation()), n_rounds=10, random_state=0),
    Contest(Ranking(Correlation()), n_rounds=40, early_rejection=True, random_state=0),
    StabilitySelection(Ranking(Correlation()), n_pairs=4, random_state=0),
    Knockoffs(Ranking(PValue()), fdr=0.5, random_state=0),
    HonestSize(Ranking(Correlation()), n_folds=3, random_state=0),
    ConditionalTest(Ranking(Correlation()), n_folds=3, random_state=0),
]


def name(value):
    return type(value).__name__


@pytest.mark.parametrize("around", AROUND, ids=name)
def test_relevant_columns_are_selected_and_reported(around):
    X, y = signal()
    found = clone(around).fit(X, y)
    assert found.support_[[2, 7]].all()
    assert found.n_features_ <= 4
    assert str(found.n_features_) in found.choice_.reason
    assert found.transform(X).shape == (len(X), found.n_features_)
    assert_array_equal(np.sort(found.order_[: found.n_features_]), np.flatnonzero(found.support_))


@pytest.mark.parametrize("around", AROUND, ids=name)
def test_nothing_may_be_selected(around):
    X, y = noise(seed=7)
    strict = clone(around)
    if isinstance(around, Probes):
        strict.set_params(expected_false=0.2)
    with pytest.warns(NothingFound, match="keeps no column"):
        found = strict.fit(X, y)
    assert not found.support_.any()
    assert found.n_features_ == 0
    assert len(found.order_) == X.shape[1]
    with pytest.warns(UserWarning, match="No features"):
        assert found.transform(X).shape == (len(X), 0)
    saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
    assert len(saved.kept) == 0
    with pytest.warns(NothingFound):
        again = clone(strict).resume(X, y, record=saved)
    assert not again.support_.any()


@pytest.mark.parametrize("around", AROUND, ids=name)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupted_run_can_be_resumed_with_the_same_result(around, n_jobs):
    X, y = signal()
    whole = clone(around).fit(X, y)
    state = whole.record_.trace.state
    done = dict(list(state["rounds"].items())[: len(state["rounds"]) // 2])
    trace = whole.record_.trace.head(0)
    trace.state = {"rounds": done}
    begun = replace(whole.record_, trace=trace, finished=False, chosen=0)
    saved = Record.from_dict(json.loads(json.dumps(begun.to_dict())))
    again = clone(around).set_params(n_jobs=n_jobs).resume(X, y, record=saved)
    assert_array_equal(again.order_, whole.order_)
    assert_array_equal(again.support_, whole.support_)
    assert again.choice_ == whole.choice_


@pytest.mark.parametrize("around", AROUND, ids=name)
def test_a_seed_makes_the_result_reproducible(around):
    X, y = signal()
    assert_array_equal(clone(around).fit(X, y).scores_, clone(around).fit(X, y).scores_)


@pytest.mark.parametrize(
    "search",
    [
        Forward(Scatter("J3")),
        Forward(JMI()),
        Backward(Scatter("J3")),
        FloatingForward(Scatter("J3")),
        RecursiveElimination(Importances(LinearSVC())),
        Then(Ranking(FisherScore(), n_features_to_select=8), Forward(Scatter("J3"))),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "kind", [Probes, Contest, StabilitySelection, HonestSize], ids=lambda k: k.__name__
)
def test_any_search_can_be_used(kind, search):
    X, y = signal(d=8)
    labels = np.where(y > 0, "high", "low")
    quick = {
        Probes: {"n_rounds": 3},
        Contest: {"n_rounds": 8},
        StabilitySelection: {"n_pairs": 3},
        HonestSize: {"n_folds": 3},
    }
    found = kind(search, random_state=0, **quick[kind]).fit(X, labels)
    assert found.support_[[2, 7]].all()
    assert search.n_features_to_select == 0.5 if hasattr(search, "criterion") else True


# ------------------------------------------------------------------------------------------ probes


def test_probes_that_score_better_are_counted():
    rng = np.random.default_rng(0)
    standing = np.array([5.0, 1.0, 3.0, 4.0, 2.0, 0.0])  # columns 0-2, probes 3-5
    assert_array_equal(count_ahead(standing, 3, rng), [0, 2, 1])


def test_ties_of_column_and_probe_are_broken_at_random():
    rng = np.random.default_rng(0)
    found = np.mean([count_ahead(np.zeros(8), 4, rng) for _ in range(4000)], axis=0)
    assert_allclose(found, 2.0, atol=0.1)  # two of four probes, on average


def test_p_values_agree_with_their_definition():
    X, y = signal(n=40, d=5)
    found = Probes(Ranking(Correlation()), n_rounds=7, random_state=3).fit(X, y)
    ahead = np.zeros(5)
    for index in range(7):
        rng = stream(3, "probes", index)
        probes = X[rng.permutation(len(X))]
        own = [abs(np.corrcoef(X[:, j], y)[0, 1]) for j in range(5)]
        others = np.array([abs(np.corrcoef(probes[:, j], y)[0, 1]) for j in range(5)])
        ahead += [(others > score).sum() for score in own]
    assert_allclose(found.p_values_, (1 + ahead) / (1 + 7 * 5))
    assert_array_equal(found.support_, found.p_values_ <= 1 / 5)


def test_a_false_discovery_rate_may_be_given():
    X, y = signal()
    found = Probes(Ranking(Correlation()), fdr=0.2, n_rounds=10, random_state=0).fit(X, y)
    p = np.sort(found.p_values_)
    passing = np.flatnonzero(p <= 0.2 * np.arange(1, 13) / 12)
    assert found.n_features_ == passing[-1] + 1
    assert "share of 0.2" in found.choice_.reason
    assert "unrelated to the target" in found.choice_.reason


def test_probes_select_about_the_stated_number_of_noise_columns():
    kept = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        for seed in range(40):
            X, y = noise(60, 20, seed)
            around = Probes(Ranking(Correlation()), n_rounds=5, random_state=seed)
            kept.append(around.fit(X, y).n_features_)
    assert 0.4 < np.mean(kept) < 1.7  # one is expected; with 40 draws the standard error is a fifth


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"expected_false": 0.01}, "at least 100"),
        ({"fdr": 0.01}, "at least 100"),
        ({"fdr": 1.0}, r"\(0, 1\)"),
        ({"expected_false": 0}, "above 0"),
        ({"n_rounds": 0}, "n_rounds"),
    ],
)
def test_probes_refuse_parameters_that_could_never_select_a_column(params, match):
    with pytest.raises(InvalidParameter, match=match):
        Probes(Ranking(Correlation()), **params).fit(*signal())


def test_all_columns_are_selected_if_all_may_be_false():
    X, y = noise(d=1)
    found = Probes(Ranking(Correlation()), random_state=0).fit(X, y)
    assert found.choice_.reason.startswith("all of 1 column: expected_false=1 allows all of them")


def test_a_search_is_needed():
    with pytest.raises(IncompatibleCriterion, match="needs a search"):
        Probes(Correlation()).fit(*signal())


# ----------------------------------------------------------------------------------------- contest


def test_wins_and_p_values_agree_with_their_definition():
    X, y = signal(n=40, d=5)
    found = Contest(Ranking(Correlation()), n_rounds=9, random_state=3).fit(X, y)
    wins = np.zeros(5, dtype=int)
    for index in range(9):
        rng = stream(3, "probes", index)
        probes = X[rng.permutation(len(X))]
        own = np.array([abs(np.corrcoef(X[:, j], y)[0, 1]) for j in range(5)])
        wins += own > max(abs(np.corrcoef(probes[:, j], y)[0, 1]) for j in range(5))
    assert_array_equal(found.wins_, wins)
    p = [sum(math.comb(9, k) for k in range(won, 10)) / 2**9 for won in wins]
    assert_allclose(found.p_values_, p)
    assert_array_equal(found.support_, found.p_values_ <= 0.05 / 5)
    assert_array_equal(wins[found.order_], np.sort(wins)[::-1])
    assert "does not control the error rate" in found.choice_.reason


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alpha": 0}, r"alpha to be a number in \(0, 1\)"),
        ({"alpha": 1.0}, r"alpha to be a number in \(0, 1\)"),
        ({"n_rounds": 0}, "Contest needs n_rounds"),
        ({"n_rounds": 7}, "at least 8 for 12 columns, not 7"),
        ({"early_rejection": 1}, "early_rejection to be True or False, got 1"),
    ],
)
def test_a_contest_refuses_parameters_that_could_never_select_a_column(params, match):
    with pytest.raises(InvalidParameter, match=match):
        Contest(Ranking(Correlation()), **params).fit(*signal())


def coin(wins, n_rounds):
    """Return the probability that a fair coin wins at least this number of times."""
    return sum(math.comb(n_rounds, k) for k in range(wins, n_rounds + 1)) / 2**n_rounds


def played_by_hand(X, y, seed, n_rounds, alpha=0.05):
    """Return wins, selected and rejected columns of Boruta with correlations, computed by loops."""
    d = X.shape[1]
    wins, kept, out = np.zeros(d, dtype=int), set(), set()
    looks = {*range(math.ceil(math.log2(d / alpha)), n_rounds, 5), n_rounds}
    field = list(range(d))
    for index in range(n_rounds):
        rng = stream(seed, "probes", index)
        probes = X[rng.permutation(len(X))]
        best = max(abs(np.corrcoef(probes[:, j], y)[0, 1]) for j in field)
        for j in field:
            wins[j] += abs(np.corrcoef(X[:, j], y)[0, 1]) > best
        if index + 1 in looks:
            for j in set(field) - kept - out:
                if coin(wins[j], index + 1) <= alpha / d:
                    kept.add(j)
                elif coin(index + 1 - wins[j], index + 1) <= alpha / d:
                    out.add(j)
            if len(kept | out) == d:
                break
            stay = [j for j in range(d) if j not in out]
            spare = sorted(out, key=lambda j: (-wins[j], j))
            field = sorted(stay + spare[: max(0, 5 - len(stay))])
    return wins, kept, out


@pytest.mark.parametrize("seed", range(4))
def test_rejected_columns_are_dropped_with_their_probes(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 60))
    y = X[:, :6] @ np.linspace(1, 0.2, 6) + rng.normal(size=50)
    contest = Contest(Ranking(Correlation()), n_rounds=60, early_rejection=True, random_state=seed)
    found = contest.fit(X, y)
    wins, kept, out = played_by_hand(X, y, seed, 60)
    assert_array_equal(found.wins_, wins)
    assert_array_equal(np.flatnonzero(found.support_), sorted(kept))
    assert_array_equal(np.flatnonzero(found.rejected_), sorted(out))
    assert out  # the run above had early rejections
    plain = Contest(Ranking(Correlation()), n_rounds=60, random_state=seed).fit(X, y)
    assert not plain.rejected_.any()
    assert (plain.n_rounds_ == 60).all()


def test_a_contest_ends_when_all_columns_are_decided_and_reports_the_others():
    X, y = signal(n=300)
    sure = Contest(Ranking(Correlation()), n_rounds=200, early_rejection=True, random_state=0)
    found = sure.fit(X, y)
    assert found.n_rounds_.max() < 40
    assert "Undecided" not in found.choice_.reason
    X, y = noise(n=40, d=40, seed=5)
    X[:, 0] = y
    found = clone(sure).set_params(n_rounds=16).fit(X, y)
    n_open = 40 - found.n_features_ - found.rejected_.sum()
    assert n_open > 0
    assert f"Undecided and not selected: {n_open} column" in found.choice_.reason


def test_groups_are_rejected_together():
    X, y = signal(d=12)
    search = Ranking(Scatter("J3"), feature_groups=[*"aabbccddeeff"])
    contest = Contest(search, n_rounds=60, early_rejection=True, random_state=0)
    found = contest.fit(X, np.where(y > 0, "high", "low"))
    assert_array_equal(found.get_support(indices=True), [2, 3, 6, 7])
    assert found.rejected_.sum() == 4


# ---------------------------------------------------------------------------------------- stability


def test_the_bound_determines_the_number_of_best_columns():
    X, y = signal()
    found = StabilitySelection(
        Ranking(Correlation()), expected_false=1.5, threshold=0.75, n_pairs=3, random_state=0
    ).fit(X, y)
    assert found.n_best_ == 3  # q^2 <= 1.5 * 0.5 * 12 = 9
    assert_allclose(found.frequency_.sum(), 3)
    assert found.stability_.low <= found.stability_.nogueira <= found.stability_.high
    with pytest.raises(InvalidParameter, match="none of 12 columns"):
        StabilitySelection(Ranking(Correlation()), expected_false=0.01).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"\(0.5, 1\]"):
        StabilitySelection(Ranking(Correlation()), threshold=0.5).fit(X, y)


def test_both_halves_contain_every_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), np.repeat(["a", "b", "c"], [22, 4, 4])
    X[:, 1] += np.unique(y, return_inverse=True)[1] * 3
    found = StabilitySelection(Ranking(FisherScore()), n_pairs=3, random_state=0).fit(X, y)
    assert found.support_[1]


@pytest.mark.parametrize("search", [Ranking(Correlation()), Forward(JMI())], ids=str)
def test_ties_between_columns_are_broken_at_random_in_each_half(search):
    """If no column is informative, the first ones are not selected again and again."""
    X, y = np.ones((40, 50)), np.arange(40) % 2
    X[:, 30] = y + 0.1 * np.arange(40)
    found = StabilitySelection(search, random_state=0).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [30])


def test_shuffled_columns_keep_their_units():
    X, y = signal(d=8)
    groups = {"b": [7, 2], "a": [0, 5], "c": [1, 3], "d": [4], "e": [6]}
    search = Ranking(MutualInformation(), feature_groups=groups)
    found = StabilitySelection(search, expected_false=1.6, n_pairs=3, random_state=0).fit(X, y)
    assert_array_equal(found.get_support(indices=True), [2, 7])
    assert found.units_.n_units == len(found.frequency_) == 5


@pytest.mark.parametrize(
    "around",
    [
        StabilitySelection(Ranking(FisherScore()), n_pairs=3, random_state=0),
        HonestSize(Ranking(FisherScore()), n_folds=3, random_state=0),
    ],
    ids=name,
)
def test_a_class_with_one_row_is_refused(around):
    X, _ = signal(n=30)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with pytest.raises(InvalidTarget, match=rf"{name(around)} .* there is 1 row of class 'b'"):
            around.fit(X, np.repeat(["a", "b"], [29, 1]))
    assert {one.category for one in heard} <= {DegenerateData}


@pytest.mark.parametrize(
    "around",
    [
        StabilitySelection(Ranking(Correlation())),
        HonestSize(Ranking(Correlation()), n_folds=2),
    ],
    ids=name,
)
def test_subsamples_of_a_single_row_are_refused(around):
    X, y = signal(n=3, d=8)
    with pytest.raises(InvalidTable, match=f"{name(around)} .* has a single row"):
        around.fit(X, y)


# ---------------------------------------------------------------------------------------- knockoffs

#: Results of knockpy 1.3.5 for 0.7^|i - j|, which it shrinks by a thousandth.
MVR = [0.360399, 0.2287, 0.233887, 0.228719, 0.360402]
SDP = [0.992178, 0.025057, 0.663847, 0.025057, 0.992178]


def decaying(d, rho=0.7):
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def test_strengths_agree_with_knockpy():
    C = decaying(5)
    assert_allclose(mvr_strengths(C), MVR, rtol=2e-3)
    best = sdp_strengths(C)
    assert best.sum() >= np.sum(SDP)
    assert_allclose(best, SDP, atol=0.01)


def test_mvr_strengths_are_a_stationary_point():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 12))
    C = np.corrcoef(A)
    s = mvr_strengths(C)
    inverse = np.linalg.inv(2 * C - np.diag(s))
    assert_allclose(1 / s**2, np.diag(inverse @ inverse), rtol=1e-4)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_strengths_of_two_columns_agree_with_a_hand_calculation(rho):
    C = np.array([[1.0, rho], [rho, 1.0]])
    assert_allclose(sdp_strengths(C).sum(), 2 * min(1, 2 * (1 - rho)), atol=2e-3)


@pytest.mark.parametrize("strengths", [mvr_strengths, sdp_strengths])
def test_knockoffs_have_the_correlations_of_their_columns(strengths):
    rng = np.random.default_rng(0)
    C = decaying(4)
    Z = rng.normal(size=(200_000, 4)) @ np.linalg.cholesky(C).T
    Z = (Z - Z.mean(0)) / Z.std(0)
    s = strengths(correlations(Z))
    knockoffs = gaussian_knockoffs(Z, s, rng)
    assert_allclose(np.cov(knockoffs.T), C, atol=0.015)
    assert_allclose(Z.T @ knockoffs / len(Z), C - np.diag(s), atol=0.015)


def test_the_threshold_agrees_with_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        W = np.round(rng.normal(0.5, 1, size=15), 1)
        good = [
            t
            for t in np.unique(np.abs(W[W != 0]))
            if (1 + (-t >= W).sum()) / max(1, (t <= W).sum()) <= 0.3
        ]
        assert knockoff_threshold(W, 0.3) == (good[0] if good else np.inf)


def test_knockoffs_rarely_select_redundant_columns():
    shares, power = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 30))
        X[:, 10:20] = 0.8 * X[:, :10] + 0.6 * X[:, 10:20]
        y = X[:, :10].sum(axis=1) + rng.normal(size=600)
        found = Knockoffs(Ranking(PValue()), random_state=seed).fit(X, y)
        shares.append(found.support_[10:].sum() / max(1, found.n_features_))
        power.append(found.support_[:10].mean())
    assert np.mean(power) >= 0.8
    assert np.mean(shares) <= 0.35  # 0.2 is the bound; with eight draws the standard error is 0.06
    assert_allclose(found.strengths_, mvr_strengths(np.corrcoef(X.T)), rtol=1e-3)


def test_constant_columns_have_a_statistic_of_0():
    X, y = signal(n=100, d=8)
    X[:, [0, 5]] = 3.0
    found = Knockoffs(Ranking(Correlation()), fdr=0.5, random_state=0).fit(X, y)
    assert_array_equal(found.statistics_[[0, 5]], [0, 0])
    assert found.support_[[2, 7]].all()


def test_knockoffs_need_enough_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 20)), rng.normal(size=30)
    with pytest.raises(InvalidTable, match="3 rows per column"):
        Knockoffs(Ranking(PValue())).fit(X, y)
    with pytest.warns((DegenerateData, NothingFound)) as said:
        Knockoffs(Ranking(PValue()), random_state=0).fit(X[:, :6], y)
    assert any("fewer than 10 per column" in str(w.message) for w in said)
    with pytest.raises(InvalidTable, match="linearly independent"):
        Knockoffs(Ranking(PValue())).fit(np.column_stack([X[:, :2], X[:, 0]]), y)
    with pytest.raises(InvalidParameter, match="mvr"):
        Knockoffs(Ranking(PValue()), strengths="equi").fit(X[:, :2], y)


# -------------------------------------------------------------------------------------- honest size


def test_sizes_that_are_compared():
    assert sizes_of(3) == [0, 1, 2, 3]
    assert sizes_of(12) == [0, 1, 2, 3, 4, 5, 7, 10, 12]
    assert sizes_of(500)[-1] == 40


def test_losses_are_computed_on_held_out_rows():
    X, y = signal(n=60, d=6)
    found = HonestSize(Ranking(Correlation()), LinearRegression(), n_folds=4, random_state=1).fit(
        X, y
    )
    from tamis.validation.resamples import folds_of

    losses = np.empty((60, 7))
    for train, test in folds_of(y, np.arange(60), 4, 1):
        score = [abs(np.corrcoef(X[train, j], y[train])[0, 1]) for j in range(6)]
        order = np.argsort(-np.array(score))
        losses[test, 0] = (y[test] - y[train].mean()) ** 2
        for size in range(1, 7):
            columns = order[:size]
            model = LinearRegression().fit(X[train][:, columns], y[train])
            losses[test, size] = (model.predict(X[test][:, columns]) - y[test]) ** 2
    assert_array_equal(found.sizes_, np.arange(7))
    assert_allclose(found.losses_, losses.mean(axis=0), rtol=1e-8)
    error = losses.std(axis=0, ddof=1) / np.sqrt(60)
    assert_allclose(found.errors_, error, rtol=1e-8)
    best = losses.mean(axis=0).argmin()
    close = losses.mean(axis=0) <= losses.mean(axis=0)[best] + error[best]
    assert found.n_features_ == np.flatnonzero(close)[0]


@pytest.mark.parametrize("estimator", [None, KNeighborsClassifier(), LinearSVC()], ids=str)
def test_estimators_with_or_without_probabilities_work_for_classes(estimator):
    X, y = signal(n=150)
    labels = np.digitize(y, [-1, 1]).astype(str)
    found = HonestSize(Ranking(FisherScore()), estimator, random_state=0).fit(X, labels)
    assert found.support_[[2, 7]].all()
    assert found.losses_[0] > found.losses_.min()


def test_a_search_that_is_not_nested_has_its_own_subset_of_each_size():
    X, y = signal(n=80, d=8)
    labels = np.where(y > 0, 1, 0)
    walked = FloatingForward(Scatter("J3"), n_features_to_select=6).fit(X, labels)
    for size in (1, 3, 6):
        values = [s.value for s in walked.trace_ if len(s.subset) == size]
        subset = first_units(walked, size)
        assert len(subset) == size
        assert_allclose(
            Scatter("J3").fit((X - X.mean(0)) / X.std(0), labels).value(subset), max(values)
        )


@pytest.mark.parametrize(
    "first",
    [Ranking(Correlation(), n_features_to_select=4), Forward(JMI(), n_features_to_select=4)],
)
def test_a_composition_without_values_has_an_honest_size(first):
    X, y = signal(n=80, d=8)
    found = HonestSize(Then(first, Forward(JMI())), n_folds=3, random_state=0).fit(X, y)
    assert found.support_[[2, 7]].all()
    assert found.n_features_ < 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_regressor_with_a_single_output_works_for_classes(n_classes):
    X, y = signal(n=80, d=8)
    labels = np.digitize(y, [-0.5, 0.5][: n_classes - 1])
    found = HonestSize(Ranking(FisherScore()), SVR(), n_folds=3, random_state=0).fit(X, labels)
    assert found.support_[[2, 7]].all()


@pytest.mark.parametrize(
    ("estimator", "task", "error", "match"),
    [
        (KNeighborsClassifier(), "auto", InvalidTarget, "KNeighborsClassifier is a classifier"),
        ("ridge", "auto", InvalidParameter, "an estimator that predicts"),
        (LinearSVC, "auto", InvalidParameter, "an estimator that predicts"),
        (Speechless(), "auto", InvalidScore, r"Speechless, trained on 3 column\(s\)"),
    ],
    ids=str,
)
def test_unsuitable_estimators_are_refused(estimator, task, error, match):
    X, y = signal(n=60, d=5)
    with pytest.raises(error, match=match):
        HonestSize(Ranking(Correlation()), estimator, task=task, n_folds=3).fit(X, y)


def test_labels_are_refused_for_regression():
    X, y = signal(n=60, d=5)
    with pytest.raises(
        InvalidTarget, match="needs numbers in y for regression, but y holds labels"
    ):
        HonestSize(Ranking(Correlation()), task="regression").fit(X, np.where(y > 0, "a", "b"))


def test_a_composition_has_the_task_of_its_last_criterion():
    X, y = signal(n=60, d=5)
    counts = np.digitize(y, [-1, 0, 1])
    last = Ranking(Correlation(task="regression"))
    around = HonestSize(Then(Ranking(Correlation(), n_features_to_select=4), last), random_state=0)
    losses = around.fit(X, counts).losses_
    assert_allclose(losses[0], counts.var(), rtol=0.1)


def test_folds_depend_on_the_task():
    """The numbers could be classes, each with fewer rows than there are folds."""
    X, y = signal(n=60, d=5)
    ranks = np.argsort(np.argsort(y)) // 3
    found = HonestSize(Ranking(Correlation()), task="regression", random_state=0).fit(X, ranks)
    assert found.support_[2]
    halves = np.digitize(y, [0]) + 0.5  # numeric labels
    found = HonestSize(Ranking(Correlation()), task="classification", random_state=0)
    assert found.fit(X, halves).support_[2]


@pytest.mark.parametrize("unit", [1e150, 1e-150])
def test_the_unit_of_the_target_does_not_matter(unit):
    X, y = signal(n=80, d=8)
    around = HonestSize(Ranking(Correlation()), n_folds=3, random_state=0)
    found, other = clone(around).fit(X, y), clone(around).fit(X, y * unit)
    assert_array_equal(found.support_, other.support_)
    assert_allclose(other.errors_ / unit / unit, found.errors_)


def test_a_target_is_needed():
    from tamis.criteria import ColumnSubset

    with pytest.raises(InvalidTarget, match="HonestSize needs a target"):
        HonestSize(Forward(ColumnSubset())).fit(signal()[0])


def test_nothing_leaks_in_a_pipeline():
    X, y = noise(n=60, d=40, seed=1)
    labels = np.where(y > 0, "a", "b")
    from sklearn.model_selection import cross_val_score

    around = Probes(Ranking(FisherScore()), expected_false=3, n_rounds=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = cross_val_score(
            make_pipeline(around, LogisticRegression()), X, labels, error_score=0.5
        )
    assert score.mean() < 0.7


def test_searches_with_wrapped_models_work():
    X, y = signal(n=60, d=4)
    labels = np.where(y > 0, 1, 0)
    search = Forward(CrossValidated(KNeighborsClassifier(), cv=3))
    assert (
        HonestSize(search, KNeighborsClassifier(), n_folds=3, random_state=0)
        .fit(X, labels)
        .n_features_
    )


@pytest.mark.parametrize("around", AROUND, ids=name)
def test_groups_of_the_search_are_selected_as_a_whole(around):
    X, y = signal(n=200)
    groups = {"first": [2, 0], "second": [7, 1], "other": [4, 3, 5]}
    search = clone(around.search).set_params(feature_groups=groups)
    found = clone(around).set_params(search=search).fit(X, y)
    assert found.support_[[0, 1, 2, 7]].all()
    assert found.units_.n_units == 8
    assert found.support_[[3, 4, 5]].sum() in (0, 3)
    singles = clone(around).set_params(search__feature_groups=[str(j) for j in range(12)])
    assert_array_equal(singles.fit(X, y).support_, clone(around).fit(X, y).support_)


def test_the_penalty_of_a_group_counts_all_of_its_columns():
    from tamis.choice import Information

    X, y = signal(n=200)
    search = Ranking(
        Correlation(),
        n_features_to_select=Information("bic"),
        feature_groups={"pair": [2, 7], "other": [0, 1, 3]},
    ).fit(X, y)
    assert_array_equal(search.get_support(indices=True), [2, 7])


def test_fixed_features_are_refused():
    with pytest.raises(IncompatibleCriterion, match="fixed_features"):
        Probes(Ranking(Correlation(), fixed_features=[0])).fit(*signal())


@pytest.mark.parametrize("around", [Probes, StabilitySelection, Knockoffs, HonestSize])
def test_unsuitable_searches_are_refused(around):
    ranking = Ranking(Correlation())
    with pytest.raises(IncompatibleCriterion, match="chooses the number of columns itself"):
        around(Probes(ranking)).fit(*signal())
    with pytest.raises(IncompatibleCriterion, match="chooses the number of columns itself"):
        around(Then(ranking, Probes(ranking))).fit(*signal())
    with pytest.raises(IncompatibleCriterion, match=r"write TableSelector\("):
        around(TableSelector(ranking)).fit(*signal())
    with pytest.raises(IncompatibleCriterion, match="after the first part of Then"):
        around(Then(Ranking(Correlation(), n_features_to_select=Knee()), ranking)).fit(*signal())


@pytest.mark.parametrize("around", [Probes, Knockoffs, HonestSize])
def test_a_search_for_a_single_subset_is_refused_if_an_order_is_needed(around):
    search = Exhaustive(CrossValidated(LinearRegression()), n_features_to_select=2)
    with pytest.raises(IncompatibleCriterion, match="Exhaustive finds one subset"):
        around(search).fit(*signal(d=4))
    found = StabilitySelection(search, expected_false=2, n_pairs=3, random_state=0)
    assert found.fit(*signal(d=4)).get_support(indices=True).tolist() == [2, 3]


def test_fixed_units_of_a_composition_are_selected_too():
    X, y = signal()
    ranking = Ranking(Correlation())
    first = Ranking(Correlation(), n_features_to_select=5)
    probes = Probes(ranking, expected_false=0.2, n_rounds=6, random_state=0)
    free = Then(first, probes).fit(X, y)
    kept = set(free.get_support(indices=True).tolist())
    assert kept > {2, 7}
    for fixed in (int(np.setdiff1d(free.first_.get_support(indices=True), [*kept])[0]), 7):
        found = Then(first, probes, fixed_features=fixed).fit(X, y)
        assert set(found.get_support(indices=True).tolist()) == kept | {fixed}
        assert found.choice_.reason.startswith(free.choice_.reason)
        assert found.choice_.reason.endswith("This does not apply to the fixed features.")


def test_groups_of_the_search_apply_in_any_composition():
    X, y = signal()
    names = [f"x{j}" for j in range(X.shape[1])]
    grouped = Probes(
        Ranking(Correlation(), feature_groups={"pair": ["x0", "x2"]}), n_rounds=6, random_state=0
    )
    frame = pd.DataFrame(X, columns=names)
    found = TableSelector(grouped).fit(frame, y)
    assert found.support_[[0, 2, 7]].all()
    assert " units" in found.choice_.reason
    with pytest.raises(InvalidParameter, match="feature_groups for both"):
        Then(Ranking(Correlation()), grouped).fit(frame, y)


def test_an_empty_selection_inside_a_composition_is_reported():
    X, y = noise(d=6)
    first = Ranking(Correlation())
    strict = Probes(first, expected_false=0.05, random_state=0)
    for search in (Then(first, strict), TableSelector(strict)):
        with pytest.warns(NothingFound, match="keeps no column"):
            assert search.fit(X, y).n_features_ == 0
    with pytest.raises(NothingSelected, match="nothing is left for Ranking, as Probes keeps no"):
        Then(strict, first).fit(X, y)
    with pytest.warns(NothingFound):
        assert "nothing was selected" in strict.fit(X, y).explain(0)


@pytest.mark.parametrize("around", [Probes, Contest, StabilitySelection])
def test_inputs_that_the_search_accepts_are_passed_on(around):
    X, y = signal()
    rng = np.random.default_rng(1)
    gaps = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    found = around(Ranking(MutualInformation()), random_state=0).fit(gaps, y)
    assert set(found.get_support(indices=True)) & {2, 7}
    several = around(Ranking(Correlation()), random_state=0).fit(X, np.c_[y, y])
    assert_array_equal(several.support_, around(several.search, random_state=0).fit(X, y).support_)
    times = np.array(list(zip(rng.random(len(y)) < 0.8, np.exp(y), strict=True)), dtype=CENSORED)
    assert set(around(Ranking(CoxScore()), random_state=0).fit(X, times).get_support(True)) & {2, 7}


def test_unsupported_inputs_are_refused_without_useless_advice():
    X, y = signal()
    times = np.array([(True, time) for time in np.exp(y)], dtype=CENSORED)
    with pytest.raises(InvalidTable, match=r"but X is sparse\. Write X\.toarray\(\)\.$"):
        Probes(Ranking(Correlation())).fit(csr_array(X), y)
    with pytest.raises(InvalidTarget, match=r"HonestSize .* censored"):
        HonestSize(Ranking(CoxScore())).fit(X, times)
    with pytest.raises(InvalidTarget, match=r"Give one of them\.$"):
        HonestSize(Ranking(Correlation())).fit(X, np.c_[y, y])
    with pytest.raises(
        InvalidTable, match=r"make_pipeline\(SimpleImputer\(\), Knockoffs\(\.\.\.\)\)\.$"
    ):
        Knockoffs(Ranking(MutualInformation())).fit(np.where(X > 1, np.nan, X), y)


CENSORED = [("event", bool), ("time", float)]


@pytest.mark.parametrize("around", AROUND, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("damage", ["abc", None, {}, "gone", "no rounds"])
def test_damaged_rounds_are_reported(around, damage):
    X, y = signal()
    plain = json.loads(json.dumps(clone(around).fit(X, y).record_.to_dict()))
    rounds = plain["trace"]["state"]["rounds"]
    first = rounds.pop("0")
    if damage == "no rounds":
        plain["trace"]["state"]["rounds"] = [1, 2]
    elif damage == "gone":
        rounds["99"] = first
    else:
        rounds["0"] = damage
    del plain["checksum"]
    with pytest.raises(InvalidTable, match="damaged record"):
        clone(around).resume(X, y, record=Record.from_dict(plain))


def breaks_on_all_rows(X, y):
    if len(X) == 120:
        raise ValueError("something of a criterion")
    return abs(np.corrcoef(X[:, 0], y)[0, 1])


def test_errors_of_a_resumed_search_are_not_blamed_on_the_record():
    X, y = signal()
    around = HonestSize(Ranking(Scored(breaks_on_all_rows)), n_folds=3, random_state=0)
    with pytest.raises(ValueError, match=r"^something of a criterion$"):
        around.fit(X, y)


def test_rounds_are_sent_to_processes_without_callbacks(monkeypatch):
    """A callback may hold a terminal, like the progress bar of the command line."""
    bar = ProgressBar(quiet=True)
    with pytest.raises(TypeError):
        cloudpickle.dumps(bar)
    sent = []

    def stream_of(function, items, *, n_jobs, shared):
        sent.append(cloudpickle.dumps(shared))
        yield from ((key, function(*item)) for key, item in items)

    monkeypatch.setattr(repeats, "parallel_stream", stream_of)
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.tile([0, 1], 20)
    X[:, 1] += 5 * y
    search = Probes(Ranking(FisherScore()), n_rounds=2, n_jobs=2, random_state=0)
    assert 1 in search.set_callbacks(bar).fit(X, y).columns
    assert sent


class Plain(Search):
    """Search without feature_groups and fixed_features, as in the guide."""

    needs = (SubsetCriterion,)
    nested = True

    def __init__(self, criterion, *, n_features_to_select=0.5, standardize=True):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )

    def _steps(self, criterion, n_units, size, done):
        held = done[-1].subset if len(done) else np.array([], dtype=int)
        while len(held) < (size or n_units):
            others = np.setdiff1d(np.arange(n_units), held)
            best = others[np.argmax(criterion.gain(held, others))]
            held = np.sort(np.append(held, best))
            yield Step(held, criterion.value(held))


@pytest.mark.parametrize(
    "around",
    [
        lambda search: StabilitySelection(search, n_pairs=5, random_state=0),
        lambda search: Probes(search, n_rounds=3, random_state=0),
        lambda search: HonestSize(search, n_folds=3, random_state=0),
        lambda search: Contest(search, n_rounds=9, random_state=0),
        lambda search: Fusion([search, Ranking(Correlation())], random_state=0),
    ],
)
def test_a_search_need_not_have_a_parameter_for_groups(around):
    X, y = signal()
    plain, known = (around(kind(Correlation())).fit(X, y) for kind in (Plain, Forward))
    assert_array_equal(plain.support_, known.support_)
    assert_array_equal(plain.order_, known.order_)

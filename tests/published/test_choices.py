"""Numbers of columns that choices select from noise and from known tables, as documented."""

import warnings

import numpy as np
import pytest

from tamis.auto import Auto
from tamis.criteria import JMI, Correlation, PValue, Scatter
from tamis.datasets import load, make_weston
from tamis.datasets import names as table_names
from tamis.exceptions import NothingFound
from tamis.meta import Contest, HonestSize, Knockoffs, Probes, StabilitySelection
from tamis.recipes import recipe
from tamis.search import Forward, Ranking

pytestmark = [
    pytest.mark.experiment,
    pytest.mark.filterwarnings("ignore::tamis.exceptions.NothingFound"),
]


def noise(seed, *, classes):
    """Return 50 or 500 columns of noise with 100 or 500 rows."""
    rng = np.random.default_rng(seed)
    n, d = (100, 500)[seed % 2], (50, 500)[seed // 2 % 2]
    X = rng.normal(size=(n, d))
    return X, rng.integers(0, 2, n) if classes else rng.normal(size=n)


def decoys(seed, n=300):
    """Return five relevant columns, a correlated column for each (0.8), and 40 of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 50))
    X[:, 5:10] = 0.8 * X[:, :5] + 0.6 * X[:, 5:10]
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def supports(make, table, draws):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        return np.array([make(seed).fit(*table(seed)).support_ for seed in range(draws)])


def test_probes_select_about_one_noise_column():
    kept = [
        Probes(Ranking(Correlation()), random_state=seed)
        .fit(*noise(seed, classes=seed % 8 < 4))
        .n_features_
        for seed in range(200)
    ]
    assert 0.75 <= np.mean(kept) <= 1.25


def test_probes_find_the_relevant_columns():
    found = supports(lambda s: Probes(Ranking(Correlation()), random_state=s), decoys, 30)
    assert found[:, :5].sum(axis=1).mean() >= 4.7


def test_probes_with_information_find_an_interaction():
    def table(seed):
        problem = make_weston(200, random_state=seed)
        return problem.X, problem.y

    found = supports(lambda s: Probes(Forward(JMI()), random_state=s), table, 10)
    assert found[:, :2].sum(axis=1).mean() >= 1.9


@pytest.mark.skipif("madelon" not in table_names(), reason="needs madelon (TAMIS_DATA)")
def test_probes_with_information_find_the_useful_columns_of_madelon():
    """The table has 600 rows, the 20 useful columns first, and 80 of its probes."""
    problem = load("madelon")
    useful = np.asarray(problem.extras["relevant_idx"])
    others = np.setdiff1d(np.arange(problem.X.shape[1]), useful)

    def table(seed):
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(problem.y), 600, replace=False)
        columns = np.concatenate([useful, rng.choice(others, 80, replace=False)])
        return problem.X[np.ix_(rows, columns)], problem.y[rows]

    found = supports(lambda s: Probes(Forward(JMI()), random_state=s), table, 10)
    assert found[:, :20].sum(axis=1).mean() >= 16
    assert found[:, 20:].sum(axis=1).mean() <= 1.3


def test_contests_select_few_noise_columns_and_most_relevant_ones():
    """No level is guaranteed. With alpha=0.05, a column was selected in 17 of 100 tables."""
    kept = [
        Contest(Ranking(Correlation()), random_state=seed)
        .fit(*noise(seed, classes=seed % 8 < 4))
        .n_features_
        for seed in range(100)
    ]
    assert np.mean(np.array(kept) > 0) <= 0.25
    found = supports(lambda s: Contest(Ranking(Correlation()), random_state=s), decoys, 30)
    assert found[:, :5].sum(axis=1).mean() >= 4.3


@pytest.mark.skipif("colon" not in table_names(), reason="needs colon (TAMIS_DATA)")
def test_boruta_finds_something_among_two_thousand_columns():
    X, y, *_ = load("colon")
    found = recipe("boruta").set_params(random_state=0).fit(X, y)
    assert 5 <= found.n_features_ <= 40
    assert found.rejected_.sum() > 1500


def test_stability_selection_keeps_its_bound_and_finds_most_relevant_columns():
    kept = [
        StabilitySelection(Ranking(Correlation()), random_state=seed)
        .fit(*noise(seed, classes=seed % 8 < 4))
        .n_features_
        for seed in range(60)
    ]
    assert np.mean(kept) <= 0.4

    def classes(seed):
        X, y = decoys(seed)
        return X, (y > 0).astype(int)

    found = supports(
        lambda s: StabilitySelection(Forward(Scatter("J3")), random_state=s), classes, 20
    )
    assert found[:, :5].sum(axis=1).mean() >= 3.3


def test_knockoffs_keep_their_rate_including_redundant_columns():
    found = supports(
        lambda s: Knockoffs(Ranking(PValue()), random_state=s), lambda s: decoys(s, 1000), 48
    )
    rate = found[:, 5:].sum(axis=1) / np.maximum(1, found.sum(axis=1))
    assert rate.mean() <= 0.22
    assert found[:, :5].mean() >= 0.7


def test_honest_size_selects_no_noise_and_finds_linear_effects():
    nothing = [
        HonestSize(Ranking(Correlation()), random_state=seed)
        .fit(*noise(seed, classes=True))
        .n_features_
        == 0
        for seed in range(139)
    ]
    assert np.mean(nothing) >= 0.90
    found = supports(lambda s: HonestSize(Ranking(Correlation()), random_state=s), decoys, 46)
    assert found[:, 10:].sum(axis=1).mean() <= 0.2
    assert found[:, :5].sum(axis=1).mean() >= 4.3


def test_auto_selects_no_noise_and_finds_the_relevant_columns():
    nothing = [
        Auto(random_state=seed).fit(*noise(seed, classes=seed % 8 < 4)).n_features_ == 0
        for seed in range(15)
    ]
    assert sum(nothing) >= 13  # 14 here
    kept = supports(lambda s: Auto(random_state=s), lambda s: decoys(s, 100), 7)
    assert kept[:, :5].all()

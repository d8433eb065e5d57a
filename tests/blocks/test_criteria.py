"""Criteria that learn from row blocks, compared with the table in memory."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from tamis.blocks import BlockIterator, MemoryMap
from tamis.blocks.column_summary import Apart, Survey
from tamis.blocks.labels import TargetLabels
from tamis.blocks.moments import ClassMoments, ShiftedSums
from tamis.blocks.source import RowBlock
from tamis.blocks.table import BlockTable
from tamis.choice import BestPrefix, Information
from tamis.criteria import (
    CIFE,
    CMIM,
    DISR,
    HSIC,
    JMI,
    MIFS,
    MIFSU,
    MRMR,
    NMIFS,
    Correlation,
    CrossValidated,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    KolmogorovSmirnov,
    MutualInformation,
    PairInformation,
    PairMRMR,
    PValue,
    Scatter,
)
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.search import FloatingForward, Forward, Ranking, Then


def made(n=600, d=8, seed=0, *, mean=0.0):
    """Return columns with a duplicate and a constant, three classes, and a numeric target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.5, 3, d)) + mean
    X[:, 4], X[:, 5] = X[:, 1], 7.0
    z = X[:, 0] - mean + 2 * (X[:, 2] - mean) + rng.normal(size=n)
    return X, np.digitize(z, np.quantile(z, [0.3, 0.8])), z


def cut(X, y, where):
    """Return blocks that end at the given rows."""
    ends = [0, *where, len(X)]
    pairs = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(ends)]
    return BlockIterator(lambda: iter(pairs))


def partitions(n, seed=0):
    """Return partitions into one block, uneven blocks, empty blocks, and blocks of few rows."""
    rng = np.random.default_rng(seed)
    yield []
    yield [n // 3, n // 3, n // 2]
    yield np.sort(rng.choice(n, 37, replace=False)).tolist()
    yield np.sort(rng.choice(n, 499, replace=False)).tolist()


MOMENTS = [
    FisherScore(),
    DiscriminantRatio(),
    Correlation(),
    PValue(),
    Scatter("J1"),
    Scatter("J2", ridge=1e-3),
    Scatter("J3"),
    Divergence(ridge=1e-3),
]


@pytest.mark.parametrize("criterion", MOMENTS, ids=str)
@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_the_result_does_not_depend_on_the_blocks(criterion, mean):
    X, y, _ = made(mean=mean)
    order = np.argsort(y, kind="stable")  # blocks in which classes are missing
    X, y = X[order], y[order]
    held = FloatingForward(criterion, n_features_to_select=4).fit(X, y)
    for where in partitions(len(X)):
        found = FloatingForward(criterion, n_features_to_select=4).fit(cut(X, y, where))
        assert_array_equal(found.order_, held.order_)
        assert_array_equal(found.support_, held.support_)
        # standardising the full table loses digits because of the mean
        assert_allclose(found.trace_.values, held.trace_.values, rtol=1e-12 + 1e-15 * mean)
        assert found.n_evaluations_ == held.n_evaluations_


@pytest.mark.parametrize("criterion", [Correlation(), PValue()], ids=str)
def test_a_numeric_target_is_read_from_blocks(criterion):
    X, _, z = made()
    held = Ranking(criterion).fit(X, z)
    for where in partitions(len(X)):
        found = Ranking(criterion).fit(cut(X, z, where))
        assert_array_equal(found.order_, held.order_)
        assert_allclose(found.scores_, held.scores_, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("products", ["columns", "total", "classes"])
def test_sums_agree_with_two_passes_in_extended_precision(products):
    X, y, _ = made(mean=1e8)
    source = cut(X, y, range(50, 600, 50))
    labels = source.reduce(TargetLabels("test"), target_only=True)
    n_matrices = {"columns": 0, "total": 1, "classes": None}[products]
    spread = ClassMoments.of_blocks(BlockTable(source, labels, "test"), n_matrices)
    long = X.astype(np.longdouble)
    within = [(long[y == k] - long[y == k].mean(axis=0)) for k in range(3)]
    exact = np.array([(w.T @ w / len(w)).astype(float) for w in within])
    varying = np.flatnonzero(X.std(axis=0) > 0)
    found, wanted = {
        "columns": (spread.variances, np.einsum("kjj->kj", exact)),
        "total": (lambda: spread.within(0.0), np.tensordot(spread.priors, exact, axes=1)),
        "classes": (lambda: spread.covariances(0.0), exact),
    }[products]
    found = found()[..., varying]
    wanted = wanted[..., varying]
    size = np.sqrt(exact[:, varying, varying].mean(axis=0))
    assert_allclose(found / size, wanted / size, rtol=1e-12, atol=1e-12 * size.max())


def test_merging_is_associative_and_empty_blocks_add_nothing():
    X, y, _ = made()
    labels = cut(X, y, []).reduce(TargetLabels("test"), target_only=True)
    sums = ShiftedSums(X[:10].mean(axis=0), labels, 1)
    blocks = [RowBlock(X[a:b], y[a:b], a, "") for a, b in [(0, 100), (100, 100), (100, 600)]]
    states = [sums.learn_block(sums.empty(), block) for block in blocks]
    left = sums.merge(sums.merge(states[0], states[1]), states[2])
    states = [sums.learn_block(sums.empty(), block) for block in blocks]
    right = sums.merge(states[0], sums.merge(states[1], states[2]))
    assert_array_equal(left.counts, right.counts)
    assert_allclose(np.triu(left.products), np.triu(right.products), rtol=1e-14)


def test_labels_and_ranges_do_not_depend_on_the_order_of_the_blocks():
    X, y, _ = made()
    ends = [0, *sorted(np.random.default_rng(1).choice(600, 20, replace=False)), 600]
    blocks = [RowBlock(X[a:b], y[a:b], a, "") for a, b in itertools.pairwise(ends)]
    labels, survey = TargetLabels("test"), Survey("test", None, 8, False)
    plain = np.zeros(8), np.ones(8)
    for statistic in (labels, survey, Apart(np.array([1, 0]), np.array([4, 1]), *plain)):
        states = [statistic.learn_block(statistic.empty(), block) for block in blocks]
        there, back = statistic.empty(), statistic.empty()
        for state in states:
            there = statistic.merge(there, state)
        for state in states[::-1]:
            back = statistic.merge(state, back)
        for one, other in zip(there, back, strict=True):
            assert_allclose(one, other, rtol=1e-14)
    assert_array_equal(back, there)  # the last one has a duplicate
    assert there[0] == 0 < there[1]


def test_uninformative_columns_come_last():
    X, y, _ = made()
    found = Ranking(FisherScore(), n_features_to_select=3).fit(cut(X, y, [100, 200]))
    held = Ranking(FisherScore(), n_features_to_select=3).fit(X, y)
    assert_array_equal(found.order_[-2:], held.order_[-2:])
    assert set(found.order_[-2:]) == {4, 5}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("criterion", [Correlation(), MRMR(n_bins=4)])
def test_duplicate_columns_are_found_for_any_type_and_scale(kind, criterion):
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(5000, 7)), dtype=kind)
    X[:, 6], X[:, 4] = X[:, 0], 4 * X[:, 1]
    y = (X[:, 0] + X[:, 1] + X[:, 2] > 0).astype(int)
    source = MemoryMap(X, y, block_rows=777)
    held = Forward(clone(criterion), n_features_to_select=5).fit(X.astype(float), y)
    found = Forward(clone(criterion), n_features_to_select=5).fit(source)
    assert set(found.order_[-2:]) == {4, 6}
    assert_array_equal(found.order_, held.order_)


def test_a_column_with_different_missing_values_is_not_a_duplicate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    X[::9, 0] = np.nan
    X[:, 1], X[:, 2] = 2 * X[:, 0], np.where(np.arange(300) % 9, 2 * X[:, 0], 0.0)
    held = Forward(MRMR(n_bins=4), n_features_to_select=4).fit(X, y)
    found = Forward(MRMR(n_bins=4), n_features_to_select=4).fit(cut(X, y, [50, 120]))
    assert_array_equal(found.order_, held.order_)


def test_rounding_of_a_large_mean_is_not_treated_as_variation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    X[:, 1] = 2.0**53 + 2 * y
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    held, found = MutualInformation(), MutualInformation()
    parts = Ranking(found).fit(cut(gaps, y, [50, 120])).scores_
    assert_allclose(parts, Ranking(held).fit(gaps, y).scores_, atol=1e-12)
    for criterion in (MutualInformation(), FisherScore()):
        held = Ranking(criterion).fit(X, y).scores_
        found = Ranking(criterion).fit(cut(X, y, [50, 120])).scores_
        assert held[1] == found[1] == 0


@pytest.mark.parametrize(
    "criterion", [FisherScore(), PValue(), Correlation(), Scatter("J3"), DiscriminantRatio()]
)
def test_columns_of_any_scale_have_finite_squares(criterion):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    X[:, :2] += y[:, None]
    X *= [1e-200, 1e250, 1e-310, 1.0]
    held = Ranking(clone(criterion)).fit(X, y)
    found = Ranking(clone(criterion)).fit(cut(X, y, [50, 120]))
    assert_allclose(found.scores_, held.scores_, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-250, 1e250, 1.0])
def test_numeric_targets_of_any_scale_have_finite_squares(size):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = size * (X[:, 1] + X[:, 2])
    held = Ranking(Correlation(task="regression")).fit(X, y)
    found = Ranking(Correlation(task="regression")).fit(cut(X, y, [50, 120]))
    assert_allclose(found.scores_, held.scores_, rtol=1e-9)


def drawn_column(rng, n):
    """Return a column with ties, zeros of both signs, a large mean or heavy tails."""
    z = rng.normal(size=n)
    kinds = [
        rng.choice([-0.0, 0.0, 1.0], n),
        np.where(np.arange(n) == n // 2, 8.0, 7.0),
        rng.integers(0, 3, n) * 1.0,
        np.round(z, 1),
        1e6 + z,
        np.exp(3 * z),
        np.where(rng.random(n) < 0.9, 0.0, z),
        z,
    ]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.filterwarnings("ignore")  # about ties and idle columns, which are intended
@pytest.mark.parametrize("seed", range(12))
def test_small_tables_of_any_kind_have_the_same_order_in_blocks(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 90)), int(rng.integers(1, 8))
    X = np.column_stack([drawn_column(rng, n) for _ in range(d)])
    X[:, -1] = X[:, 0]
    y = (rng.random(n) + (X[:, 0] > np.median(X[:, 0])) > 0.7) ^ (np.arange(n) == 3)
    cuts = sorted(rng.integers(0, n + 1, 5).tolist())  # some blocks are empty
    for criterion in (MRMR(), JMI(n_bins=50), CMIM(n_bins=3, binning="width"), PValue()):
        held = Forward(clone(criterion), n_features_to_select=d).fit(X, y)
        found = Forward(clone(criterion), n_features_to_select=d).fit(cut(X, y, cuts))
        assert_array_equal(found.order_, held.order_)


def test_groups_of_columns_are_units():
    X, y, _ = made()
    groups = {"first": [0, 1], "last": [6, 7]}
    held = Forward(Scatter("J3", ridge=1e-6), n_features_to_select=2, feature_groups=groups)
    found = Forward(Scatter("J3", ridge=1e-6), n_features_to_select=2, feature_groups=groups)
    assert_array_equal(held.fit(X, y).order_, found.fit(cut(X, y, [300])).order_)


def test_a_search_on_blocks_resumes_from_its_record(tmp_path):
    X, y, _ = made()
    short = Forward(Scatter("J3"), n_features_to_select=2).fit(cut(X, y, [300]))
    short.record_.save(tmp_path / "record.json")
    longer = Forward(Scatter("J3"), n_features_to_select=4)
    longer.resume(cut(X, y, [300]), record=str(tmp_path / "record.json"))
    whole = Forward(Scatter("J3"), n_features_to_select=4).fit(X, y)
    assert_array_equal(longer.order_, whole.order_)


@pytest.mark.parametrize(
    "search", [Forward(HSIC()), Forward(CrossValidated(GaussianNB())), Then(Ranking(HSIC()), None)]
)
def test_searches_that_cannot_use_blocks_are_refused_with_a_remedy(search):
    X, y, _ = made()
    if isinstance(search, Then):
        search = Then(search.first, Forward(Scatter()))
    with pytest.raises(InvalidParameter, match=r"sample.*n_rows=20000.*FisherScore"):
        search.fit(cut(X, y, [300]))


@pytest.mark.parametrize("choice", [Information("bic"), BestPrefix()])
def test_a_choice_that_fits_a_model_is_refused(choice):
    X, y, _ = made()
    search = Forward(FisherScore(), n_features_to_select=choice)
    with pytest.raises(InvalidParameter, match=r"not row blocks\. Ask for a number"):
        search.fit(cut(X[:, :3], y, [300]))
    assert not search.takes_blocks


def test_the_best_prefix_of_a_path_is_found_in_blocks():
    X, y, _ = made()
    choice = BestPrefix(LinearDiscriminantAnalysis())
    held = Forward(MRMR(n_bins=4), n_features_to_select=choice).fit(X, y)
    found = Forward(MRMR(n_bins=4), n_features_to_select=choice).fit(cut(X, y, [40, 300]))
    assert found.takes_blocks
    assert found.columns == held.columns
    assert found.choice_ == held.choice_


def test_a_missing_value_is_reported_with_its_block_and_column():
    X, y, _ = made()
    X[431, 3] = np.nan
    with pytest.raises(InvalidTable, match=r"column 3 has missing.*block 17 .*row 431 "):
        Ranking(FisherScore()).fit(cut(X, y, range(25, 600, 25)))


def test_an_unusable_target_is_refused():
    X, _, z = made()
    with pytest.raises(InvalidTarget, match="real numbers"):
        Ranking(FisherScore()).fit(cut(X, z, [300]))
    with pytest.raises(InvalidTarget, match="two classes"):
        Ranking(FisherScore()).fit(cut(X, np.zeros(600, dtype=int), [300]))
    z[431] = np.nan
    with pytest.raises(InvalidTarget, match=r"block 17 of the iterator.*missing"):
        Ranking(Correlation()).fit(cut(X, z, range(25, 600, 25)))


def test_a_target_with_very_many_values_is_read():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2))
    found = Ranking(Correlation(), n_features_to_select=1).fit(
        cut(X, X[:, 1] + rng.normal(size=30_000), [10_000, 20_000])
    )
    assert found.columns == [1]


def test_columns_too_large_to_square_are_refused():
    X, y, _ = made()
    X[5, 2] = 1e200
    with pytest.raises(InvalidTable, match="column 2 reaches 1e"):
        Ranking(Scatter("J3"), standardize=False).fit(cut(X, y, [300]))


# -- information criteria ------------------------------------------------------------------------


def mixed(n=700, seed=0):
    """Return columns with large means, few values, heavy tails, codes and missing values."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    X[:, 1] += 1e6
    X[:, 2] = np.round(X[:, 2], 1)
    X[:, 4], X[:, 5] = X[:, 0], 3.3
    X[:, 6] = rng.integers(0, 4, n)
    X[:, 7] = np.exp(3 * X[:, 7])
    z = 2 * X[:, 0] + X[:, 2] + rng.normal(size=n)
    y = np.digitize(z, [-1.0, 1.0]) + (X[:, 6] == 2)
    X[rng.random(n) < 0.1, 8] = np.nan
    return X, y, z


INFORMATION = [
    MutualInformation(),
    MIFS(),
    MIFSU(n_bins=5),
    MRMR(),
    MRMR(binning="width", n_bins=4),
    MRMR(binning="codes"),
    NMIFS(categories=[6, 2], n_bins=3),
    CMIM(n_bins=40),
    CIFE(n_bins=4),
    JMI(),
    DISR(n_bins=3),
    MutualInformation(adjusted=True),
    MRMR(adjusted=True),
    CMIM(n_bins=40, adjusted=True),
    DISR(adjusted=True),
]


@pytest.mark.parametrize("criterion", INFORMATION, ids=str)
def test_counts_do_not_depend_on_the_blocks(criterion):
    X, y, z = mixed()
    targets = [y] if criterion.binning == "codes" else [y, z]
    for target in targets:
        order = np.argsort(target, kind="stable")  # blocks in which classes are missing
        X, target = X[order], target[order]
        search = Forward(criterion, n_features_to_select=4, standardize=False)
        held = clone(search).fit(X, target)
        for where in ([], [200, 200, 233], sorted(np.random.default_rng(0).permutation(700)[:60])):
            found = clone(search).fit(cut(X, target, where))
            assert_array_equal(found.order_, held.order_)
            assert_allclose(found.scores_, held.scores_, rtol=0, atol=1e-12)


def test_pairs_of_columns_are_found_in_blocks():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 7))
    y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    for criterion, search in ((PairInformation(top=2), Ranking), (PairMRMR(), Forward)):
        held = search(criterion, n_features_to_select=2).fit(X, y)
        for where in ([], [200, 200, 233], range(20, 900, 20)):
            found = search(clone(criterion), n_features_to_select=2).fit(cut(X, y, where))
            assert found.columns == [1, 4]
            assert_array_equal(found.order_, held.order_)
            assert_allclose(found.scores_, held.scores_, rtol=0, atol=1e-12)
    inside = PairInformation().fit(BlockTable(cut(X, y, [300]), _labels(X, y), "test"))
    whole = PairInformation().fit(X, y)
    assert_array_equal(inside.partners_, whole.partners_)
    found, held = ([pair[:2] for pair in c.interactions_[:5]] for c in (inside, whole))
    assert found == held


def _labels(X, y):
    return cut(X, y, []).reduce(TargetLabels("test"), target_only=True)


@pytest.mark.parametrize(("listed", "refined"), [(1 << 20, 1 << 21), (0, 1 << 12)])
def test_distances_of_distributions_agree_with_sorting(monkeypatch, listed, refined):
    monkeypatch.setattr("tamis.blocks.quantiles.LISTED", listed)
    monkeypatch.setattr("tamis.blocks.quantiles.REFINED", refined)
    X, y, _ = mixed(400)
    X = X[:, :8]
    search = Ranking(KolmogorovSmirnov(), n_features_to_select=1, standardize=False)
    held = clone(search).fit(X, y)
    for where in ([], [200, 200, 233], range(16, 400, 16)):
        found = clone(search).fit(cut(X, y, where))
        assert_array_equal(found.scores_, held.scores_)
        assert_array_equal(found.order_, held.order_)


def test_permuted_blocks_give_identical_results():
    X, y, _ = mixed()
    blocks = np.array_split(np.arange(700), 25)
    there = Forward(JMI(), n_features_to_select=4).fit(cut(X, y, range(28, 700, 28)))
    rows = np.concatenate([blocks[k] for k in np.random.default_rng(0).permutation(25)])
    back = Forward(JMI(), n_features_to_select=4).fit(cut(X[rows], y[rows], range(28, 700, 28)))
    assert_array_equal(there.scores_, back.scores_)


FAMILY = [MutualInformation, MIFS, MIFSU, MRMR, NMIFS, CMIM, CIFE, JMI, DISR, PairMRMR]


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("missing", ["level", "pairs"])
@pytest.mark.parametrize("groups", [None, {"a": [0, 8], "b": [2, 5, 6]}], ids=["columns", "groups"])
def test_missing_values_and_groups_are_counted_in_blocks(kind, missing, groups):
    X, y, _ = mixed(300)
    X[::11, 2] = np.nan
    search = Forward(kind(n_bins=3, missing=missing), n_features_to_select=4, feature_groups=groups)
    held = clone(search).fit(X, y)
    for where in ([], [100, 100, 133], sorted(np.random.default_rng(0).permutation(300)[:30])):
        found = clone(search).fit(cut(X, y, where))
        assert_array_equal(found.order_, held.order_)
        assert_allclose(found.scores_, held.scores_, rtol=0, atol=1e-12)


def test_a_group_of_very_many_columns_is_one_variable():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 70, 400)
    X = np.column_stack([np.eye(70)[kinds], rng.normal(size=400)])  # 70 of 2^70 keys occur
    y = kinds % 3
    search = Forward(MRMR(n_bins=3), n_features_to_select=1, feature_groups={"a": range(70)})
    held = clone(search).fit(X, y)
    found = clone(search).fit(cut(X, y, [100, 300]))
    assert_allclose(found.scores_, held.scores_, rtol=0, atol=1e-12)
    assert found.n_features_ == 70


def test_pairs_of_groups_are_found_in_blocks():
    X, y, _ = mixed(300)
    search = Ranking(PairInformation(), n_features_to_select=1, feature_groups={"a": [2, 8]})
    held = clone(search).fit(X, y)
    found = clone(search).fit(cut(X, y, [40, 200]))
    assert_array_equal(found.order_, held.order_)
    assert_allclose(found.scores_, held.scores_, rtol=0, atol=1e-12)


def test_information_criteria_refuse_unsupported_options_on_blocks(monkeypatch):
    monkeypatch.setattr("tamis.density.levels.MOST_COMBINATIONS", 16)
    X, y, z = mixed()
    source = cut(X, y, [300])
    wide = {"a": [0, 1, 2, 3]}
    with pytest.raises(InvalidParameter, match=r"up to 16 combinations.*4 columns has more"):
        Forward(MRMR(n_bins=4), feature_groups=wide).fit(source)
    with pytest.raises(InvalidParameter, match="for a numeric target in row blocks"):
        Forward(MRMR(binning="codes")).fit(cut(X, z, [300]))
    with pytest.raises(InvalidParameter, match="n_bins"):
        Forward(MRMR(n_bins=1)).fit(source)

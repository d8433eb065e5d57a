"""The scan over all pairs of columns, compared with a loop over contingency tables."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from tamis._seeds import stream
from tamis.blocks import MemoryMap
from tamis.contract import Record
from tamis.criteria import JMI, MRMR, FisherScore, MutualInformation, PairInformation, PairMRMR
from tamis.density import scan
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidTable
from tamis.recipes import recipe
from tamis.search import Forward, Ranking, Then
from tamis.table import TableSelector


def entropy(*columns):
    counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1]
    share = counts / counts.sum()
    return -(share * np.log(share)).sum()


def conditional(i, y, j):
    """Return I(i; y | j)."""
    return entropy(i, j) - entropy(j) - entropy(i, j, y) + entropy(j, y)


def adjusted_conditional(i, y, j):
    """Return I(i; y | j) minus its expectation within each level of j."""
    total = 0.0
    for level in np.unique(j):
        x, z = i[j == level], y[j == level]
        expected = expected_mutual_information(contingency_matrix(x, z), len(x))
        total += len(x) / len(y) * (mutual_info_score(x, z) - expected)
    return total


def by_loop(codes, y, term=conditional):
    d = codes.shape[1]
    told = np.full((d, d), -1.0)
    for i in range(d):
        for j in range(d):
            if i != j:
                told[i, j] = term(codes[:, i], y, codes[:, j])
    return told


def table(seed=0, n=160, d=12, levels=(2, 3, 4, 1)):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(levels[j % len(levels)], size=n) for j in range(d)])
    y = (X[:, 0] + X[:, 2] + rng.integers(2, size=n)) % 3
    return X.astype(float), y


@pytest.mark.parametrize("rows", [2**20, 5], ids=["one block", "many blocks"])
@pytest.mark.parametrize("top", [1, 3])
def test_scores_agree_with_a_loop_over_contingency_tables(monkeypatch, rows, top):
    monkeypatch.setattr(scan, "LEVELS", rows)
    X, y = table()
    criterion = PairInformation(binning="codes", top=top).fit(X, y)
    told = by_loop(X, y)
    best = np.sort(told, axis=1)[:, -top:].mean(axis=1)
    np.testing.assert_allclose(criterion.scores_, best, atol=1e-12)
    if top == 1:
        chosen = told[np.arange(len(told)), criterion.partners_]
        np.testing.assert_allclose(chosen, best, atol=1e-12)


@pytest.mark.parametrize("rows", [2**20, 5], ids=["one block", "many blocks"])
def test_scores_corrected_for_chance_agree_with_a_loop(monkeypatch, rows):
    monkeypatch.setattr(scan, "LEVELS", rows)
    X, y = table(n=70, d=7, levels=(2, 3, 20, 1))
    criterion = PairInformation(binning="codes", adjusted=True).fit(X, y)
    told = by_loop(X, y, adjusted_conditional)
    np.testing.assert_allclose(criterion.scores_, told.max(axis=1), atol=1e-10)
    own = MutualInformation(binning="codes", adjusted=True).fit(X, y).scores_
    beyond = (told - own[:, None] + told.T - own) / 2
    for first, second, information, _ in criterion.interactions_:
        assert information == pytest.approx(beyond[first, second], abs=1e-10)
    inside = Ranking(PairInformation(binning="codes", adjusted=True), standardize=False)
    inside.fit(MemoryMap(X, y, block_rows=20))
    np.testing.assert_allclose(inside.scores_, criterion.scores_, atol=1e-12)
    wanted = [
        PairInformation(binning="codes", adjusted=True).fit(X, other).scores_.max()
        for other in (stream(3, "null", draw).permutation(y) for draw in range(3))
    ]
    found = criterion.null_maxima(X, y, n_permutations=3, random_state=3)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_counting_in_chunks_of_rows_changes_nothing(monkeypatch):
    X, y = table(n=500)
    whole = PairInformation(binning="codes").fit(X, y)
    monkeypatch.setattr(scan, "CELLS", 64)
    parts = PairInformation(binning="codes").fit(X, y)
    np.testing.assert_array_equal(whole.scores_, parts.scores_)
    np.testing.assert_array_equal(whole.partners_, parts.partners_)


def test_bins_are_those_of_the_information_criteria():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 6))
    y = (X[:, 1] * X[:, 4] > 0).astype(int)
    codes = np.argsort(np.argsort(X, axis=0), axis=0) * 4 // 200  # four bins of equal frequency
    told = by_loop(codes, y)
    criterion = PairInformation(n_bins=4).fit(X, y)
    np.testing.assert_allclose(criterion.scores_, told.max(axis=1), atol=1e-12)
    assert set(np.argsort(criterion.scores_)[-2:]) == {1, 4}


def test_interacting_columns_come_first():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(1000, 60))
    y = (X[:, 7] - 0.5) * (0.5 - X[:, 31]) >= 0
    assert set(Ranking(PairInformation()).fit(X, y).order_[:2]) == {7, 31}
    assert set(recipe("pair-scan").fit(X, y).order_[:2]) == {7, 31}
    for blind in (MRMR(), JMI()):
        first = Forward(blind, n_features_to_select=2).fit(X, y)
        assert set(np.flatnonzero(first.support_)) != {7, 31}


def test_the_interactions_are_the_strongest_pairs():
    X, y = table(d=8)
    criterion = PairInformation(binning="codes", n_interactions=5).fit(X, y)
    told, alone = by_loop(X, y), MutualInformation(binning="codes").fit(X, y).scores_
    together = told - alone[:, None]  # I(i; y | j) - I(i; y), the same from both sides
    i, j = np.triu_indices(8, 1)
    best = np.argsort(-together[i, j], kind="stable")[:5]
    found = criterion.interactions_
    np.testing.assert_allclose([p.information for p in found], together[i, j][best], atol=1e-12)
    for pair in found:
        assert pair.first < pair.second
        assert pair.information == pytest.approx(together[pair.first, pair.second], abs=1e-12)


def test_a_forward_search_finds_pairs_without_duplicates():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(800, 30))
    y = ((X[:, 3] - 0.5) * (0.5 - X[:, 9]) >= 0.03) | ((X[:, 14] - 0.5) * (0.5 - X[:, 21]) >= 0.03)
    X[:, 28] = X[:, 3] + 0.02 * rng.normal(size=800)
    kept = Forward(PairMRMR(), n_features_to_select=4).fit(X, y).get_support(indices=True)
    assert kept.tolist() in ([3, 9, 14, 21], [9, 14, 21, 28])


def test_pair_mrmr_subtracts_the_mean_redundancy():
    X, y = table(d=7)
    criterion = PairMRMR(binning="codes").fit(X, y)
    scores = PairInformation(binning="codes").fit(X, y).scores_
    shared = [
        np.mean([entropy(X[:, j]) + entropy(X[:, i]) - entropy(X[:, i], X[:, j]) for i in (1, 2)])
        for j in (0, 4, 5)
    ]
    gain = criterion.gain(np.array([1, 2]), np.array([0, 4, 5]))
    np.testing.assert_allclose(gain, scores[[0, 4, 5]] - shared, atol=1e-12)


def test_null_maxima_agree_with_permuted_targets():
    rng = np.random.default_rng(4)
    X = rng.integers(3, size=(120, 10)).astype(float)
    y = rng.integers(2, size=120)
    criterion = PairInformation(binning="codes").fit(X, y)
    maxima = criterion.null_maxima(X, y, n_permutations=30, random_state=0)
    assert maxima.shape == (30,)
    assert maxima.min() > 0
    again = criterion.null_maxima(X, y, n_permutations=30, random_state=0)
    np.testing.assert_array_equal(maxima, again)
    assert criterion.scores_.max() < np.quantile(maxima, 0.999)
    y = (X[:, 2] == X[:, 5]).astype(int)
    assert criterion.fit(X, y).scores_.max() > maxima.max()


def nulls_by_loop(X, y, n_permutations, seed):
    """Return the greatest score and the strongest interaction for each permuted target."""
    scores, pairs = [], []
    for draw in range(n_permutations):
        other = stream(seed, "null", draw).permutation(y)
        told = by_loop(X, other)
        alone = np.array([conditional(column, other, 0 * column) for column in X.T])
        beyond = told - alone[:, None]
        scores.append(told.max())
        pairs.append(beyond[~np.eye(len(told), dtype=bool)].max())
    return np.array(scores), np.array(pairs)


@pytest.mark.parametrize("levels", [2**20, 5], ids=["one block", "many blocks"])
def test_p_values_agree_with_permuted_targets(monkeypatch, levels):
    monkeypatch.setattr(scan, "LEVELS", levels)
    X, y = table(n=60, d=6)
    criterion = PairInformation(binning="codes", n_permutations=9, random_state=3).fit(X, y)
    scores, pairs = nulls_by_loop(X, y, 9, 3)
    np.testing.assert_allclose(criterion.null_maxima_, scores, atol=1e-12)
    np.testing.assert_allclose(
        criterion.null_maxima(X, y, n_permutations=9, random_state=3), scores, atol=1e-12
    )
    above = (scores >= criterion.scores_[:, None] - 1e-12).sum(axis=1)
    np.testing.assert_allclose(criterion.p_values_, (1 + above) / 10)
    for pair in criterion.interactions_:
        above = (pairs >= pair.information - 1e-12).sum()
        assert pair.p_value == pytest.approx((1 + above) / 10)
    plain = PairInformation(binning="codes").fit(X, y)
    np.testing.assert_array_equal(plain.scores_, criterion.scores_)
    assert not hasattr(plain, "p_values_")
    assert plain.interactions_[0].p_value is None


def test_p_values_keep_their_level_on_noise_and_detect_an_exclusive_or():
    rng = np.random.default_rng(0)
    found, paired = [], []
    for _ in range(50):
        X, y = rng.uniform(size=(50, 8)), rng.integers(2, size=50)
        criterion = PairInformation(n_permutations=9).fit(X, y)
        found.append(criterion.p_values_.min() <= 0.1)
        paired.append(criterion.interactions_[0].p_value <= 0.1)
    # one of ten is expected; with 50 draws the standard error is 0.04
    assert np.mean(found) <= 0.2
    assert np.mean(paired) <= 0.2
    X = rng.uniform(size=(300, 12))
    y = (X[:, 3] - 0.5) * (X[:, 8] - 0.5) > 0
    criterion = PairInformation(n_permutations=19).fit(X, y)
    assert np.flatnonzero(criterion.p_values_ <= 0.05).tolist() == [3, 8]
    assert [pair[:2] for pair in criterion.interactions_ if pair.p_value <= 0.05] == [(3, 8)]


def test_null_maxima_of_row_blocks_agree_with_the_full_table(tmp_path):
    X, y = table()
    np.save(tmp_path / "table.npy", X)
    source = MemoryMap(tmp_path / "table.npy", y)
    with pytest.raises(IncompatibleCriterion, match=r"n_permutations .* whole table"):
        Ranking(PairInformation(n_permutations=9)).fit(source)
    with pytest.raises(InvalidParameter, match="n_permutations to be an int of at least 0"):
        PairInformation(n_permutations=-1).fit(X, y)


def test_p_values_of_pairs_are_stored_in_the_record(tmp_path):
    X, y = table()
    search = Ranking(PairInformation(n_permutations=5), n_features_to_select=3).fit(X, y)
    assert search.interactions_[0].p_value is not None
    search.record_.save(tmp_path / "record.json")
    assert list(Record.load(tmp_path / "record.json").interactions) == search.interactions_
    seen = Then(Ranking(FisherScore(), n_features_to_select=6), search).fit(X, y).interactions_
    assert all(pair.p_value is not None for pair in seen)


def test_numeric_targets_categories_and_missing_values_are_accepted():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 8))
    X[:, 2] = rng.integers(3, size=300)
    y = X[:, 1] * (X[:, 2] - 1)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    criterion = PairInformation(categories=[2]).fit(X, y)
    assert set(np.argsort(criterion.scores_)[-2:]) == {1, 2}


@pytest.mark.parametrize("top", [0, 1.5, "2"])
def test_an_invalid_top_is_refused(top):
    with pytest.raises(InvalidParameter, match="top"):
        PairInformation(top=top).fit(*table())


def test_one_column_has_no_pair():
    X, y = table()
    X = X[:, :1]
    criterion = PairInformation(binning="codes").fit(X, y)
    alone = MutualInformation(binning="codes").fit(X, y)
    np.testing.assert_allclose(criterion.scores_, alone.scores_, atol=1e-12)
    assert criterion.interactions_ == []


@pytest.mark.parametrize(
    "search",
    [
        Ranking(PairInformation(), n_features_to_select=3),
        Forward(PairMRMR(), n_features_to_select=3),
    ],
    ids=["scan", "mrmr"],
)
def test_pairs_are_stored_in_the_record_and_restored(search, tmp_path):
    X, y = table()
    search.fit(X, y)
    expected = PairInformation().fit(X, y).interactions_
    assert search.interactions_ == expected
    search.record_.save(tmp_path / "record.json")
    loaded = Record.load(tmp_path / "record.json")
    assert loaded.interactions == tuple(expected)
    assert search.resume(X, y, record=loaded).interactions_ == expected


def test_pairs_of_a_second_search_refer_to_the_full_table():
    """The second search gets the columns that the first one selected, with new indices."""
    X, y = table()
    first = Ranking(FisherScore(), n_features_to_select=6)
    both = Then(first, Ranking(PairInformation(), n_features_to_select=2)).fit(X, y)
    seen = np.flatnonzero(both.first_.support_)
    own = PairInformation().fit(X[:, seen], y).interactions_
    assert [(p.first, p.second) for p in both.interactions_] == [
        (seen[p.first], seen[p.second]) for p in own
    ]
    other = Then(Ranking(PairInformation(), n_features_to_select=6), first).fit(X, y)
    assert other.interactions_ == PairInformation().fit(X, y).interactions_


def test_pairs_after_an_encoder_refer_to_the_columns_of_the_frame():
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 300))
    frame = pl.DataFrame(
        {
            "id": [f"row {i}" for i in range(300)],
            "noise": rng.normal(size=300),
            "a": np.where(a, "yes", "no"),
            "b": np.where(b, "up", "down"),
        }
    )
    with pytest.warns(UserWarning, match="id"):
        found = TableSelector(Ranking(PairInformation(), n_features_to_select=2)).fit(frame, a ^ b)
    names = [frame.columns[unit] for unit in found.interactions_[0][:2]]
    assert sorted(names) == ["a", "b"]


def test_a_search_without_pairs_reports_none():
    X, y = table()
    found = Ranking(FisherScore()).fit(X, y)
    assert found.interactions_ == []
    assert "interactions" not in found.record_.to_dict()


@pytest.mark.parametrize("pairs", [3, [[0, 1]], [[0, 99, 0.5]], [[0, 1, "x"]]])
def test_damaged_pairs_are_refused(pairs):
    X, y = table()
    plain = Ranking(PairInformation(), n_features_to_select=3).fit(X, y).record_.to_dict()
    with pytest.raises(InvalidTable, match="interactions"):
        Record.from_dict({**plain, "interactions": pairs})

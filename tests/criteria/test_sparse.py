"""Sparse tables compared with the same tables in dense form."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_array, csc_matrix, csr_array, csr_matrix, random_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tamis._arrays import fingerprint, idle_columns, in_range, standardised
from tamis._sparse import canonical
from tamis.criteria import (
    CMIM,
    HSIC,
    JMI,
    MRMR,
    Correlation,
    CrossValidated,
    DiscriminantRatio,
    FisherScore,
    Importances,
    MutualInformation,
    PValue,
    Variance,
)
from tamis.density.discrete import coded_columns
from tamis.exceptions import InvalidTable
from tamis.search import Forward, Ranking, RecursiveElimination, Then


def made(n=120, d=60, seed=0, *, kind="counts"):
    """Return a table with few entries, including constant, full, empty and duplicate columns."""
    rng = np.random.default_rng(seed)
    X = random_array((n, d), density=0.15, rng=rng, format="csc").toarray()
    X = np.where(X > 0, np.ceil(3 * X) if kind == "counts" else np.round(X - 0.4, 3), 0.0)
    X[:, 3], X[:, 5], X[:, 7], X[:, 9] = 2.0, rng.integers(1, 4, n), 0.0, X[:, 8]
    z = X[:, 0] + X[:, 1] - 2 * X[:, 2] + rng.normal(size=n)
    return X, np.digitize(z, np.quantile(z, [0.3, 0.7])), z


@pytest.mark.parametrize("kind", ["counts", "real"])
@pytest.mark.parametrize("binning", ["frequency", "width", "codes"])
@pytest.mark.parametrize("n_bins", [2, 5, None])
def test_levels_agree_with_the_dense_table(kind, binning, n_bins):
    X, y, _ = made(kind=kind)
    categories = np.arange(60) < 20
    dense = coded_columns(np.asfortranarray(X), n_bins, binning, categories)
    sparse = coded_columns(canonical(csr_array(X)), n_bins, binning, categories)
    for j in range(60):
        pairs = set(zip(dense.column(j).tolist(), sparse.column(j).tolist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert_allclose(sparse.entropy, dense.entropy, atol=1e-12)
    assert_allclose(sparse.information(y), dense.information(y), atol=1e-12)
    pivot = dense.column(4) * 3 + y
    assert_allclose(sparse.joint_entropy(pivot), dense.joint_entropy(pivot), atol=1e-12)


UNIVARIATE = [FisherScore, DiscriminantRatio, Correlation, PValue, MutualInformation, Variance]


@pytest.mark.parametrize("kind", ["counts", "real"])
@pytest.mark.parametrize("cls", UNIVARIATE)
def test_scores_agree_with_the_dense_table(cls, kind):
    X, y, z = made(kind=kind)
    for target in [y] if "regression" not in cls.targets else [y, z]:
        dense, sparse = cls().fit(X, target), cls().fit(csc_array(X), target)
        assert_allclose(sparse.scores_, dense.scores_, rtol=1e-9, atol=1e-11)
        assert_array_equal(sparse.idle_, dense.idle_)


@pytest.mark.parametrize(
    "criterion",
    [MRMR(), JMI(), CMIM(n_bins=4), MRMR(adjusted=True), JMI(adjusted=True)],
    ids=str,
)
@pytest.mark.parametrize("form", [csc_array, csr_array, csc_matrix, csr_matrix])
def test_the_order_agrees_with_the_dense_table(criterion, form):
    X, y, _ = made()
    dense = Forward(criterion, n_features_to_select=15).fit(X, y)
    sparse = Forward(criterion, n_features_to_select=15).fit(form(X), y)
    assert_array_equal(sparse.order_[:15], dense.order_[:15])
    assert_allclose(sparse.scores_, dense.scores_, rtol=1e-9, atol=1e-9)
    kept = sparse.transform(form(X))
    assert kept.format == "csr"
    assert_array_equal(kept.toarray(), X[:, sparse.support_])


@pytest.mark.parametrize("scale", [1.0, 2.0**600, 2.0**-600])
def test_helpers_agree_with_the_dense_table(scale):
    X, _, _ = made(kind="real")
    S = canonical(csc_array(X * scale))
    assert_array_equal(idle_columns(S), idle_columns(X * scale))
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    scaled[:, [3, 7]] = 0
    assert_allclose(standardised(S).toarray(), scaled)
    if scale == 1:
        assert in_range(S) is S
    assert fingerprint(S, None) == fingerprint(canonical(csr_matrix(X * scale)), None)
    assert fingerprint(S, None) != fingerprint(S[:, ::-1], None)


def test_entries_may_be_repeated_or_zero():
    X, y, _ = made()
    rows, columns = np.nonzero(X)
    twice = coo_array(
        (np.r_[X[rows, columns] - 1, np.ones(len(rows)), 0.0],
         (np.r_[rows, rows, 0], np.r_[columns, columns, 7])), shape=X.shape,
    ).tocsr()  # fmt: skip
    twice.sum_duplicates()
    before = twice.data.copy()
    assert_array_equal(canonical(twice).toarray(), X)
    assert_allclose(MRMR().fit(twice, y).relevance_, MRMR().fit(X, y).relevance_, atol=1e-11)
    assert_array_equal(twice.data, before)


def test_models_get_the_sparse_table(monkeypatch):
    X, y, _ = made()
    S = csr_array(X)
    subset = np.array([0, 2, 5, 11])
    for model in (LogisticRegression(), KNeighborsClassifier(3), SVC(kernel="linear")):
        expected = cross_val_score(model, S[:, subset], y, cv=3).mean()
        assert_allclose(CrossValidated(model, cv=3).fit(S, y).value(subset), expected)
    dense, sparse = (Importances(SVC(kernel="linear")).fit(T, y).loss(subset) for T in (X, S))
    assert_allclose(sparse, dense, rtol=1e-4)
    seen = []
    fit = LinearSVC.fit
    monkeypatch.setattr(LinearSVC, "fit", lambda self, X, y: (seen.append(X), fit(self, X, y))[1])
    path = RecursiveElimination(Importances(LinearSVC()), n_features_to_select=5).fit(S, y)
    assert path.n_features_ == 5
    assert {type(table).__name__ for table in seen} == {"csc_array"}
    both = Then(Ranking(FisherScore(), n_features_to_select=20), Forward(MRMR()))
    assert_array_equal(both.fit(S, y).support_, both.fit(X, y).support_)


def test_searches_on_sparse_tables_can_be_resumed():
    X, y, _ = made()
    S = csr_array(X)
    three = Forward(MRMR(), n_features_to_select=3).fit(S, y)
    nine = Forward(MRMR(), n_features_to_select=9).resume(S, y, record=three.record_)
    assert_array_equal(nine.order_, Forward(MRMR(), n_features_to_select=9).fit(S, y).order_)
    pickle.loads(pickle.dumps(nine.criterion))


def test_criteria_that_need_a_dense_table_refuse_a_sparse_one():
    X, y, _ = made()
    S = csr_array(X)
    for selection in (HSIC(), Forward(HSIC()), Then(Ranking(FisherScore()), Forward(HSIC()))):
        with pytest.raises(InvalidTable, match="X is sparse"):
            selection.fit(S, y)
    S = S.copy()
    S.data[5] = np.nan
    with pytest.raises(InvalidTable, match=r"1 missing value\(s\)"):
        MRMR().fit(S, y)


def test_a_wide_sparse_table_is_never_made_dense():
    rng = np.random.default_rng(0)
    X = random_array((200, 20_000), density=0.01, rng=rng, format="csr")
    X.data[:] = np.ceil(3 * X.data)
    y = rng.integers(0, 2, 200)
    search = Forward(MRMR(), n_features_to_select=3)
    search.fit(X, y)  # compiled and imported code is not counted
    tracemalloc.start()
    search.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 20_000 * 8 / 2


def test_tiny_and_huge_numbers_are_compared():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(40, 4)) * np.array([5e-324, 1e-310, 1.0, 1e30])
    y = rng.integers(0, 2, 40)
    for criterion in (Correlation(), MRMR(), Variance()):
        for standardize in (True, False):
            ranked = Ranking(criterion, standardize=standardize)
            assert np.isfinite(ranked.fit(csc_array(X), y).scores_).all()

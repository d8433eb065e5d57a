"""The Relief family compared with its definition and with scikit-rebate."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tamis.compiled import thresholds
from tamis.criteria import Relief
from tamis.exceptions import InvalidParameter
from tamis.search import Ranking

ALGORITHMS = ["relieff", "surf", "multisurf"]


def problem(kind, n_classes=2, n_rows=60, seed=0, gaps=0.0):
    """Return columns of numbers, codes or both, and a target. It is numeric for 0 classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 7))
    codes = {"numbers": [], "mixed": [1, 4], "codes": list(range(7))}[kind]
    X[:, codes] = rng.integers(0, 4, size=(n_rows, len(codes)))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows)
    y = signal
    if n_classes:
        y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y, codes


def by_definition(X, y, codes, algorithm, n_neighbors, real):
    """Return the scores, computed by a loop over rows, columns and neighbours."""
    n, d = X.shape
    gaps = np.isnan(X).any()
    code = np.isin(np.arange(d), codes)
    ranges = np.where(code, 1.0, np.nanmax(X, axis=0) - np.nanmin(X, axis=0))
    spread = np.nanstd(X, axis=0) if 0 < code.sum() < d else np.full(d, np.inf)

    def apart(i, j, k, ramp):
        if code[k]:
            return float(X[i, k] != X[j, k])
        raw = abs(X[i, k] - X[j, k])
        return 1.0 if ramp and raw > spread[k] else raw / ranges[k]

    def distance(i, j):
        both = [k for k in range(d) if not np.isnan(X[i, k] + X[j, k])]
        if gaps:
            return np.mean([apart(i, j, k, False) for k in both])
        weight = np.where(code, d / max(1, code.sum()), 1.0)
        return sum(weight[k] * apart(i, j, k, False) for k in both)

    D = np.array([[distance(i, j) for j in range(n)] for i in range(n)])
    scores = np.zeros(d)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        same = np.abs(y - y[i]) < y.std(ddof=1) if real else y == y[i]
        kinds = np.where(same, -1, 0 if real else y)
        if algorithm == "relieff":
            D[i, i] = np.inf
            order = np.argsort(D[i], kind="stable")
            near = [j for c in np.unique(kinds) for j in order[kinds[order] == c][:n_neighbors]]
            D[i, i] = 0
        elif algorithm == "surf":
            near = [j for j in others if D[i, j] < D.mean() - 1e-11]
        else:
            reach = D[i, others].mean() - D[i, others].std() / 2
            near = [j for j in others if D[i, j] < reach - 1e-11]
        for k in range(d):
            there = [j for j in near if not np.isnan(X[i, k] + X[j, k])]
            hits = [apart(i, j, k, True) for j in there if same[j]]
            misses = [j for j in there if not same[j]]
            n_others = 1 if real else len(np.unique(y)) - 1
            for c in np.unique(kinds[misses]) if misses else []:
                of = [apart(i, j, k, True) for j in misses if kinds[j] == c]
                scores[k] += n_others * sum(of) * len(of) / len(misses) ** 2
            scores[k] -= np.mean(hits) if hits else 0
    return scores / n


@pytest.mark.parametrize("gaps", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["numbers", "mixed", "codes"])
@pytest.mark.parametrize("n_classes", [2, 4, 0])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_scores_agree_with_the_definition(algorithm, n_classes, kind, gaps):
    X, y, codes = problem(kind, n_classes, n_rows=30, gaps=gaps)
    criterion = Relief(algorithm, n_neighbors=4, categories=codes).fit(X, y)
    expected = by_definition(X, y, codes, algorithm, 4, n_classes == 0)
    assert_allclose(criterion.scores_, expected, atol=1e-12)


def peer(algorithm, monkeypatch):
    """Return a class of scikit-rebate that breaks ties of distances by the lowest index."""
    skrebate = pytest.importorskip("skrebate", reason="skrebate is not installed")
    names = {"relieff": "ReliefF", "surf": "SURF", "multisurf": "MultiSURF"}
    stable = SimpleNamespace(**vars(np))
    stable.argsort = lambda values: np.argsort(values, kind="stable")
    monkeypatch.setattr("skrebate.relieff.np", stable)
    return getattr(skrebate, names[algorithm])


@pytest.mark.parametrize("kind", ["numbers", "mixed", "codes"])
@pytest.mark.parametrize("n_classes", [2, 3, 0])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_scores_agree_with_scikit_rebate(algorithm, n_classes, kind, monkeypatch):
    X, y, codes = problem(kind, n_classes)
    # the default of 100 neighbours is more than there are
    for n_neighbors in [5, 100] if algorithm == "relieff" else [100]:
        more = {"n_neighbors": n_neighbors} if algorithm == "relieff" else {}
        theirs = peer(algorithm, monkeypatch)(categorical_features=codes, **more).fit(X.copy(), y)
        ours = Relief(algorithm, n_neighbors=n_neighbors, categories=codes).fit(X, y)
        assert_allclose(ours.scores_, theirs.feature_importances_, atol=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("n_classes", [2, 3, 0])
@pytest.mark.parametrize("algorithm", ["relieff", "multisurf"])  # its SURF halves the mean with NaN
def test_scores_with_missing_values_agree_with_scikit_rebate(
    algorithm, n_classes, kind, monkeypatch
):
    X, y, codes = problem(kind, n_classes, gaps=0.1)
    more = {"n_neighbors": 5} if algorithm == "relieff" else {}
    theirs = peer(algorithm, monkeypatch)(categorical_features=codes, **more).fit(X.copy(), y)
    ours = Relief(algorithm, n_neighbors=5, categories=codes).fit(X, y)
    assert_allclose(ours.scores_, theirs.feature_importances_, atol=1e-9)


@pytest.mark.parametrize("kind", ["numbers", "mixed"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_compiled_loop_and_blocks_of_rows_change_nothing(algorithm, kind, monkeypatch):
    X, y, codes = problem(kind, 3)
    plain = Relief(algorithm, n_neighbors=5, categories=codes).fit(X, y).scores_
    monkeypatch.setattr(thresholds, "COMPARED_PAIRS", 0)
    monkeypatch.setattr(thresholds, "ONE_CALL", 2000)
    monkeypatch.setattr("tamis.criteria.relief.PAIRS", 1500)
    again = Relief(algorithm, n_neighbors=5, categories=codes).fit(X, y).scores_
    assert_allclose(again, plain, atol=1e-12)


def test_interactions_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 20))
    y = (X[:, 3] - 0.5) * (X[:, 11] - 0.5) > 0
    for algorithm in ALGORITHMS:
        scores = Relief(algorithm).fit(X, y).scores_
        assert set(np.argsort(scores)[-2:]) == {3, 11}


def test_empty_and_constant_columns_score_0():
    X, y, _ = problem("numbers")
    X[:, 2], X[:, 5] = 3.0, np.nan
    scores = Relief().fit(X, y).scores_
    assert scores[2] == scores[5] == 0
    assert np.isfinite(scores).all()


def test_invalid_parameters_are_refused():
    X, y, _ = problem("numbers")
    with pytest.raises(InvalidParameter, match="algorithm to be 'relieff', 'surf' or 'multisurf'"):
        Relief("relief").fit(X, y)
    for wrong in (0, 2.5, True):
        with pytest.raises(InvalidParameter, match="n_neighbors to be an int of at least 1"):
            Relief(n_neighbors=wrong).fit(X, y)


@pytest.mark.parametrize("algorithm", ["relieff", "surf", "multisurf"])
def test_all_columns_score_0_for_a_constant_target(algorithm):
    X = np.random.default_rng(0).normal(size=(30, 3))
    assert not Relief(algorithm).fit(X, np.full(30, 2.5)).scores_.any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_constant_column_is_ranked_behind_noise(algorithm):
    """A constant column scores 0, and noise scores less."""
    X, y, _ = problem("numbers")
    X = np.column_stack([np.full(len(X), 3.0), X])
    search = Ranking(Relief(algorithm, n_neighbors=5), n_features_to_select=7).fit(X, y)
    assert (search.scores_ < 0).any()
    assert search.order_[-1] == 0
    assert not search.support_[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_table_without_values_scores_0_without_a_warning(algorithm):
    scores = Relief(algorithm).fit(np.full((30, 2), np.nan), np.arange(30) % 3).scores_
    assert not scores.any()

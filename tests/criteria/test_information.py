"""Pairwise information criteria compared with their formulas on joint tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import mutual_info_score
from sklearn.utils.estimator_checks import check_estimator

from tamis.compiled import thresholds
from tamis.criteria import (
    CIFE,
    CMIM,
    DISR,
    JMI,
    MIFS,
    MIFSU,
    MRMR,
    NMIFS,
    MutualInformation,
)
from tamis.density.discrete import Coded
from tamis.exceptions import DegenerateData, InvalidParameter
from tamis.search import Forward

EVERY = [MIFS(beta=0.7), MIFSU(beta=0.9), MRMR(), NMIFS(), CMIM(), CIFE(), JMI(), DISR()]
NAMES = [type(criterion).__name__ for criterion in EVERY]


def joined(*columns):
    """Combine several coded columns into one."""
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()


def entropy(*columns):
    share = np.unique(joined(*columns), return_counts=True)[1] / len(columns[0])
    return -(share * np.log(share)).sum()


def information(a, b):
    """Return the sum of p(a, b) log p(a, b) / p(a) p(b), level by level."""
    terms = 0.0
    for level in np.unique(a):
        for other in np.unique(b):
            both = np.mean((a == level) & (b == other))
            if both > 0:
                terms += both * np.log(both / np.mean(a == level) / np.mean(b == other))
    return terms


def conditional(a, b, given):
    """Return I(a; b | given) as the mean over the levels of ``given``."""
    parts = [
        (given == level).mean() * information(a[given == level], b[given == level])
        for level in np.unique(given)
    ]
    return sum(parts)


def ratio(above, below):
    return above / below if below > 0 else 0.0


FORMULAS = {
    "MIFS": lambda x, y, S: information(x, y) - 0.7 * sum(information(x, s) for s in S),
    "MIFSU": lambda x, y, S: (
        information(x, y)
        - 0.9 * sum(ratio(information(y, s), entropy(s)) * information(x, s) for s in S)
    ),
    "MRMR": lambda x, y, S: information(x, y) - np.mean([information(x, s) for s in S]),
    "NMIFS": lambda x, y, S: (
        information(x, y)
        - np.mean([ratio(information(x, s), min(entropy(x), entropy(s))) for s in S])
    ),
    "CMIM": lambda x, y, S: min(conditional(x, y, s) for s in S),
    "CIFE": lambda x, y, S: (
        information(x, y) - sum(information(x, s) - conditional(x, s, y) for s in S)
    ),
    "JMI": lambda x, y, S: sum(information(joined(x, s), y) for s in S),
    "DISR": lambda x, y, S: sum(ratio(information(joined(x, s), y), entropy(x, s, y)) for s in S),
}


def random_table(seed):
    """Return a small table of codes in which columns and target depend on each other."""
    rng = np.random.default_rng(seed)
    n, d, levels = int(rng.integers(8, 60)), 6, int(rng.integers(2, 6))
    X = rng.integers(0, levels, (n, d))
    X[:, 1] = np.where(rng.random(n) < 0.6, X[:, 0], X[:, 1])
    X[:, 5] = 0 if seed % 3 == 0 else X[:, 2]  # a constant, or a duplicate
    y = np.where(rng.random(n) < 0.6, X[:, 0], rng.integers(0, 3, n))
    y[:2] = 0, 1
    return X.astype(float), y


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"])
def either_path(request, monkeypatch):
    """Run a test with numpy and with compiled loops."""
    monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 0 if request.param else 10**12)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_scores_equal_their_formula_on_random_tables(criterion, either_path):
    formula = FORMULAS[type(criterion).__name__]
    for seed in range(50):
        X, y = random_table(seed)
        fitted = clone(criterion).set_params(binning="codes").fit(X, y)
        for chosen in ([2], [0, 1, 5]):
            rest = np.setdiff1d(np.arange(6), chosen)
            expected = [formula(X[:, j], y, [X[:, s] for s in chosen]) for j in rest]
            assert_allclose(fitted.gain(np.array(chosen), rest), expected, atol=1e-11)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_the_first_pick_is_the_most_informative_column(criterion):
    X, y = load_iris(return_X_y=True)
    alone = MutualInformation().fit(X, y).scores_
    fitted = clone(criterion).fit(X, y)
    assert_array_equal(fitted.gain(np.array([], dtype=int), np.arange(4)), alone)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_cached_terms_do_not_change_the_scores(criterion):
    X, y = load_breast_cancer(return_X_y=True)
    walked, fresh = clone(criterion).fit(X, y), clone(criterion)
    rest = np.arange(20, 30)
    for subset in ([17], [4, 17], [2, 4, 17], [2, 4, 9, 17], [4, 9], [0, 1, 2]):
        subset = np.array(subset)
        first_asked = fresh.fit(X, y).gain(subset, rest)
        assert_array_equal(walked.gain(subset, rest), first_asked)


@pytest.mark.parametrize("levels", [2, 3, 9, 40])
@pytest.mark.parametrize("n_samples", [3, 63, 64, 65, 200])
def test_pair_entropies_agree_with_contingency_tables(n_samples, levels, either_path):
    rng = np.random.default_rng(levels)
    X = rng.integers(0, levels, (n_samples, 7)).astype(float)
    coded = Coded(np.asfortranarray(X), levels)
    pivot = coded.column(3)
    expected = [mutual_info_score(X[:, 3], X[:, j]) for j in range(7)]
    shared = coded.entropy + coded.entropy[3] - coded.joint_entropy(pivot)
    assert_allclose(shared, expected, atol=1e-12)
    assert_allclose(coded.entropy, [entropy(X[:, j]) for j in range(7)], atol=1e-12)


def test_few_values_are_levels_and_many_are_cut_evenly(either_path):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=90), rng.integers(0, 3, 90) * 7.5, np.full(90, 2.5), np.r_[[9], [0] * 89]]
    )
    coded = Coded(np.asfortranarray(X), 5)
    assert_array_equal(np.bincount(coded.codes[0]), [18] * 5)
    assert_array_equal(coded.codes[1], X[:, 1] / 7.5)
    assert_array_equal(coded.n_levels, [5, 3, 1, 2])
    for j in range(4):
        assert_array_equal(coded.column(j), coded.codes[j])


def test_equal_values_share_a_bin(either_path):
    x = np.r_[np.zeros(70), np.arange(1, 31)]
    coded = Coded(np.asfortranarray(x[:, None]), 4)
    assert coded.codes[0, :70].max() == 0
    assert_array_equal(np.bincount(coded.codes[0]), [75, 25])


def test_bins_of_equal_width(either_path):
    x = np.r_[np.linspace(0, 1, 50), 10.0]
    coded = Coded(np.asfortranarray(x[:, None]), 4, "width")
    assert_array_equal(np.bincount(coded.codes[0]), [50, 0, 0, 1])


def test_codes_make_every_value_a_level(either_path):
    x = np.random.default_rng(0).permutation(100) / 3
    assert_array_equal(Coded(x[:, None], 4, "codes").column(0), np.argsort(np.argsort(x)))


def test_compiled_counting_agrees_with_numpy(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    for n_bins in (3, 40):  # bit sets and histograms
        monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 10**12)
        narrow = Forward(JMI(n_bins=n_bins), n_features_to_select=12).fit(X, y)
        monkeypatch.setattr(thresholds, "COUNTED_ENTRIES", 0)
        wide = Forward(JMI(n_bins=n_bins), n_features_to_select=12).fit(X, y)
        assert_array_equal(wide.order_, narrow.order_)


def test_a_numeric_target_is_cut_like_a_column():
    X, y = load_diabetes(return_X_y=True)
    codes = Coded(y[:, None].astype(float), 8).column(0)
    real = MRMR(n_bins=8).fit(X, y)
    cut = MRMR(n_bins=8).fit(X, codes)
    assert_array_equal(real.relevance_, cut.relevance_)


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_constant_columns_and_equal_rows_have_finite_scores(criterion):
    X = np.zeros((12, 3))
    y = np.arange(12) % 2
    gains = clone(criterion).fit(X, y).gain(np.array([0, 1]), np.array([2]))
    assert_array_equal(gains, [0.0])


@pytest.mark.parametrize("criterion", EVERY, ids=NAMES)
def test_duplicates_tie_and_the_first_is_added_first(criterion):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, 50)
    X = np.column_stack([rng.integers(0, 4, 50), x, x, x]).astype(float)
    with pytest.warns(DegenerateData, match=r"duplicates of others \(2, 3\)"):
        search = Forward(clone(criterion), n_features_to_select=4).fit(X, x > 1)
    added = [int(step.moved[0]) for step in search.trace_]
    assert added.index(1) < added.index(2) < added.index(3)


def test_mrmr_agrees_with_a_hand_calculation():
    # y = x0; x1 repeats x0 in three of four rows, x2 is independent of both
    X = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]], dtype=float)
    fitted = MRMR(binning="codes").fit(X, X[:, 0].astype(int))
    ln2 = np.log(2)
    shared = 1.5 * ln2 - 0.75 * np.log(3)  # H(1/4) + ln 2 - H(1/2, 1/4, 1/4)
    assert_allclose(fitted.relevance_, [ln2, shared, 0], atol=1e-12)
    assert_allclose(fitted.gain(np.array([0]), np.array([1, 2])), [0, 0], atol=1e-12)
    assert_allclose(fitted.gain(np.array([1]), np.array([2])), [-shared], atol=1e-12)


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (MRMR(n_bins=1), "MRMR needs n_bins to be an int of at least 2"),
        (JMI(n_bins=2.5), "JMI needs n_bins to be an int of at least 2"),
        (CMIM(binning="kmeans"), "CMIM needs binning to be 'frequency'"),
        (MIFS(beta=-1), "MIFS needs beta to be a number of at least 0"),
        (MutualInformation(binning="x"), "MutualInformation needs binning"),
    ],
)
def test_invalid_parameters_are_refused(criterion, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        criterion.fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize(
    "criterion",
    # the checks are about the search, so one criterion suffices
    [EVERY[0], *(pytest.param(criterion, marks=pytest.mark.slow) for criterion in EVERY[1:])],
    ids=NAMES,
)
def test_searches_pass_the_checks_of_scikit_learn(criterion):
    check_estimator(Forward(clone(criterion)), on_skip=None)

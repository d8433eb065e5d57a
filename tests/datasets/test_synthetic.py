"""Synthetic problems compared with independent formulations of their definitions."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from tamis import datasets
from tamis.datasets import (
    make_additive,
    make_class_redundancy,
    make_complementary,
    make_corral,
    make_decoys,
    make_exponential,
    make_interactions,
    make_interactive,
    make_madelon,
    make_monks,
    make_weston,
    make_xor,
)
from tamis.exceptions import InvalidParameter

EVERY = {
    "weston": (make_weston, {}),
    "corral-6": (make_corral, {"variant": 6}),
    "corral-46": (make_corral, {"variant": 46}),
    "corral-47": (make_corral, {"variant": 47}),
    "monks-1": (make_monks, {"problem": 1}),
    "monks-2": (make_monks, {"problem": 2}),
    "monks-3": (make_monks, {"problem": 3, "noise": 0.05}),
    "additive": (make_additive, {}),
    "interactive": (make_interactive, {}),
    "interactive-linear": (make_interactive, {"square": False}),
    "exponential": (make_exponential, {}),
    "xor": (make_xor, {}),
    "complementary": (make_complementary, {}),
    "class-redundancy": (make_class_redundancy, {}),
    "madelon": (make_madelon, {"n_probes": 20}),
    "decoys": (make_decoys, {}),
    "ring": (make_interactions, {}),
    "ring+xor+sum": (make_interactions, {"problem": "ring+xor+sum"}),
    "decoys-real": (make_decoys, {"task": "regression"}),
}
REAL_TARGET = {"additive", "interactive", "interactive-linear", "exponential", "decoys-real"}


@pytest.fixture(params=EVERY)
def case(request):
    make, options = EVERY[request.param]
    return request.param, lambda n=97, seed=0: make(n, random_state=seed, **options)


def same(one, other):
    return np.array_equal(one.X, other.X) and np.array_equal(one.y, other.y)


# Laws of every maker


def test_every_maker_is_covered():
    makers = {getattr(datasets, name) for name in datasets.__all__ if name.startswith("make_")}
    # mixed tables are frames and are tested in tests/table
    frames = {datasets.make_mixed, datasets.make_genes}
    assert {make for make, _ in EVERY.values()} == makers - frames


def test_arrays_have_the_promised_types(case):
    name, draw = case
    X, y, relevant, equivalent = draw(n=97)
    assert X.dtype == np.float64
    assert len(X) == len(y) == 97
    assert y.dtype == (np.float64 if name in REAL_TARGET else np.int64)
    if name not in REAL_TARGET:
        assert_array_equal(np.unique(y), np.arange(y.max() + 1))
    assert relevant.dtype == np.intp
    assert (np.diff(relevant) > 0).all()
    assert relevant[0] >= 0
    assert relevant[-1] < X.shape[1]
    assert len(equivalent) == len(relevant)


def test_equivalent_columns_are_equal_and_include_a_relevant_one(case):
    _, draw = case
    X, _, relevant, equivalent = draw()
    for j, group in zip(relevant, equivalent, strict=True):
        assert j in group
        copies = [i for i in range(X.shape[1]) if np.array_equal(X[:, i], X[:, j])]
        assert list(group) == copies


def test_an_integer_seed_repeats_the_problem_and_another_does_not(case):
    _, draw = case
    assert same(draw(seed=3), draw(seed=3))
    assert not same(draw(seed=3), draw(seed=4))
    assert not same(draw(seed=None), draw(seed=None))


def test_a_generator_is_used_and_advanced(case):
    _, draw = case
    rng = np.random.default_rng(3)
    first, second = draw(seed=rng), draw(seed=rng)
    assert same(first, draw(seed=3))
    assert not same(first, second)


def test_a_random_state_is_reproducible_too(case):
    _, draw = case
    assert same(draw(seed=np.random.RandomState(3)), draw(seed=np.random.RandomState(3)))


# Weston


def test_the_clusters_of_weston_have_the_published_centres():
    X, y, relevant, _ = make_weston(20_000, random_state=0)
    assert X.shape == (20_000, 10)
    assert_array_equal(relevant, [0, 1])
    assert Counter(y.tolist()) == {0: 10_000, 1: 10_000}
    # clusters are three deviations from 0 in the second column, so its sign identifies them
    centres = {
        (0, True): (0.75, 3),
        (0, False): (-0.75, -3),
        (1, True): (-3, 3),
        (1, False): (3, -3),
    }
    for (label, up), centre in centres.items():
        clump = X[(y == label) & (np.sign(X[:, 1]) == (1 if up else -1)), :2]
        assert len(clump) == pytest.approx(5000, abs=200)
        assert_allclose(clump.mean(axis=0), centre, atol=0.06)
        assert clump[:, 0].std() == pytest.approx(1, abs=0.05)


def test_weston_noise_is_noise():
    X, y, *_ = make_weston(20_000, random_state=1, noise=20.0, n_features=6)
    assert_allclose(X[:, 2:].std(axis=0), 20, rtol=0.03)
    assert_allclose(X[:, 2:].mean(axis=0), 0, atol=0.6)
    assert abs(np.corrcoef(X[:, 2:].T, y)[-1, :-1]).max() < 0.03


def test_weston_has_the_known_bayes_error():
    X, y, *_ = make_weston(100_000, random_state=2)

    def density(centre):
        return np.exp(-((X[:, :2] - centre) ** 2).sum(axis=1) / 2)

    zero = density((0.75, 3)) + density((-0.75, -3))
    one = density((3, -3)) + density((-3, 3))
    assert np.mean((one > zero) != y) == pytest.approx(0.031, abs=0.003)


def test_weston_odd_rows_differ_by_one():
    assert sorted(Counter(make_weston(41, random_state=0).y.tolist()).values()) == [20, 21]


# Corral


@pytest.mark.parametrize("variant", [6, 46, 47])
def test_corral_target_is_the_concept_of_its_relevant_columns(variant):
    X, y, relevant, _ = make_corral(400, random_state=0, variant=variant)
    assert X.shape == (400, variant)
    assert set(np.unique(X)) == {0, 1}
    assert_array_equal(relevant, [0, 1, 2, 3])
    concept = {bits: any([all(bits[:2]), all(bits[2:])]) for bits in product((0, 1), repeat=4)}
    assert y.tolist() == [concept[tuple(row)] for row in X[:, :4].astype(int).tolist()]


@pytest.mark.parametrize("variant", [6, 47])
def test_corral_last_column_agrees_with_the_target_on_three_quarters(variant):
    X, y, *_ = make_corral(random_state=0, variant=variant)
    assert (X[:, -1] == y).sum() == 96


def test_corral_copies_agree_as_published():
    X, _, _, equivalent = make_corral(random_state=0, variant=46)
    for j in range(4):
        block = X[:, 4 + 7 * j : 11 + 7 * j]
        assert_array_equal((block == X[:, [j]]).sum(axis=0), 128 * np.arange(16, 9, -1) / 16)
    assert equivalent == ((0, 4), (1, 11), (2, 18), (3, 25))


def test_corral_has_two_irrelevant_columns_and_their_copies():
    X = make_corral(2000, random_state=0, variant=46).X[:, 32:]
    assert X.shape[1] == 14
    _, counts = np.unique(X, axis=1, return_counts=True)
    assert counts.tolist() == [7, 7]
    assert_allclose(X.mean(axis=0), 0.5, atol=0.05)


def test_corral_47_adds_one_column_to_corral_46():
    small, large = (make_corral(random_state=5, variant=v) for v in (46, 47))
    assert_array_equal(large.X[:, :46], small.X)
    assert_array_equal(large.y, small.y)


def test_corral_relevant_columns_are_independent():
    X = make_corral(20_000, random_state=0).X[:, :5]
    assert abs(np.corrcoef(X.T) - np.eye(5)).max() < 0.03


# MONK's problems


def monks_by_words(problem, row):
    x1, x2, x3, x4, x5, x6 = row
    if problem == 1:
        return x5 == 1 or x1 == x2
    if problem == 2:
        return [x1, x2, x3, x4, x5, x6].count(1) == 2
    return (x4 == 1 and x5 == 3) or (x2 in (1, 2) and x5 in (1, 2, 3))


@pytest.mark.parametrize(("problem", "ones"), [(1, 216), (2, 142), (3, 228)])
def test_monks_is_the_published_domain_and_rule(problem, ones):
    X, y, *_ = make_monks(problem=problem, random_state=0)
    rows = [tuple(row) for row in X.astype(int).tolist()]
    assert sorted(rows) == list(product(*(range(1, k + 1) for k in (3, 3, 2, 3, 4, 2))))
    assert y.tolist() == [monks_by_words(problem, row) for row in rows]
    assert y.sum() == ones


def matters(X, y, j):
    """Return whether two rows that differ only in column j can differ in class."""
    rest = [tuple(row) for row in np.delete(X, j, axis=1)]
    return len(set(zip(rest, y, strict=True))) > len(set(rest))


@pytest.mark.parametrize("problem", [1, 2, 3])
def test_monks_relevant_columns_are_exactly_those_that_change_the_class(problem):
    X, y, relevant, _ = make_monks(problem=problem, random_state=0)
    assert_array_equal(relevant, [j for j in range(6) if matters(X, y, j)])


def test_monks_repeats_rows_only_after_the_whole_domain():
    few, many = make_monks(200, random_state=0).X, make_monks(1000, random_state=0).X
    assert len(np.unique(few, axis=0)) == 200
    counts = Counter(map(tuple, many))
    assert len(counts) == 432
    assert set(counts.values()) == {2, 3}


def test_monks_noise_flips_the_given_share():
    clean, noisy = (make_monks(200, problem=3, noise=s, random_state=0) for s in (0.0, 0.05))
    assert_array_equal(clean.X, noisy.X)
    assert (clean.y != noisy.y).sum() == 10


# Regression


def additive_by_terms(x):
    logistic = (1 + np.tanh(10 * (x[1] - 0.5))) / 2
    return np.exp(4 * x[0]) / 10 + 4 * logistic + np.dot((3, 2, 1), x[2:5])


def exponential_by_factors(x):
    return 10 * np.exp(-(x[0] ** 2)) * np.exp(-(x[1] ** 2))


@pytest.mark.parametrize(
    ("make", "formula", "relevant"),
    [
        (make_additive, additive_by_terms, 5),
        (make_exponential, exponential_by_factors, 2),
    ],
)
def test_regression_without_noise_equals_the_formula(make, formula, relevant):
    problem = make(50, random_state=0, noise=0.0)
    assert_allclose(problem.y, [formula(row) for row in problem.X])
    assert_array_equal(problem.relevant, np.arange(relevant))


def friedman_expanded(x):
    parabola = 20 * x[2] ** 2 - 20 * x[2] + 5
    return 10 * np.sin(np.pi * x[0] * x[1]) + parabola + np.dot((10, 5), x[3:5])


def test_interactive_is_friedmans_first_function():
    ours = make_interactive(50, random_state=0, noise=0.0)
    theirs, friedman = make_friedman1(50, n_features=10, noise=0.0, random_state=0)
    assert_allclose([friedman_expanded(row) for row in theirs], friedman)
    assert_allclose([friedman_expanded(row) for row in ours.X], ours.y)
    assert_array_equal(ours.relevant, np.arange(5))


def test_interactive_as_printed_has_no_square():
    square, plain = (make_interactive(50, random_state=0, square=s) for s in (True, False))
    assert_array_equal(square.X, plain.X)
    third = square.X[:, 2] - 0.5
    assert_allclose(plain.y - square.y, 20 * third - 20 * third**2)


@pytest.mark.parametrize(
    ("make", "low", "deviation"),
    [(make_additive, 0, 0.1), (make_interactive, 0, 0.1), (make_exponential, -1, 0.2)],
)
def test_regression_columns_are_uniform_and_the_noise_gaussian(make, low, deviation):
    noisy, clean = make(20_000, random_state=0), make(20_000, random_state=0, noise=0.0)
    assert_array_equal(noisy.X, clean.X)
    residual = noisy.y - clean.y
    assert residual.std() == pytest.approx(deviation, rel=0.03)
    assert residual.mean() == pytest.approx(0, abs=0.01)
    assert np.mean(residual**4) / residual.var() ** 2 == pytest.approx(3, abs=0.2)
    assert noisy.X.shape[1] == 10
    assert low <= noisy.X.min()
    assert noisy.X.max() <= 1
    quartiles = np.quantile(noisy.X, [0.25, 0.5, 0.75], axis=0)
    assert_allclose(quartiles, np.tile(low + (1 - low) * np.c_[[0.25, 0.5, 0.75]], 10), atol=0.03)


# XOR


def test_xor_has_two_classes_on_opposite_corners():
    X, y, relevant, _ = make_xor(4000, random_state=0, spread=0.3)
    assert_array_equal(relevant, [0, 1])
    for corner, label in {(-1, -1): 0, (1, 1): 0, (1, -1): 1, (-1, 1): 1}.items():
        clump = (np.abs(X[:, :2] - corner) < 0.9).all(axis=1)
        assert clump.sum() == pytest.approx(1000, abs=20)
        assert np.mean(y[clump] == label) > 0.99
        assert_allclose(X[clump, :2].mean(axis=0), corner, atol=0.05)
        assert_allclose(X[clump, :2].std(axis=0), 0.3, atol=0.03)


def test_xor_is_informative_only_in_two_columns():
    X, y, *_ = make_xor(400, random_state=0)
    alone = [cross_val_score(SVC(), X[:, [j]], y).mean() for j in range(4)]
    assert max(alone) < 0.6
    assert cross_val_score(SVC(), X[:, :2], y).mean() > 0.98
    assert cross_val_score(SVC(), X[:, [0, 2]], y).mean() < 0.6


# Complementary columns


def test_complementary_columns_alone_rank_as_published():
    X, y, *_ = make_complementary(4000, random_state=0)
    for score in (f_classif(X, y)[0], mutual_info_classif(X, y, random_state=0)):
        assert score[0] > 1.1 * score[1]
        assert score[1] == pytest.approx(score[2], rel=0.1)
        assert min(score[1], score[2]) > 1.1 * score[3]


def test_complementary_best_pair_is_the_best_and_the_worst_column():
    X, y, relevant, _ = make_complementary(1000, random_state=0)
    model = QuadraticDiscriminantAnalysis()
    error = {
        pair: 1 - cross_val_score(model, X[:, pair], y).mean() for pair in combinations(range(4), 2)
    }
    assert min(error, key=error.get) == tuple(relevant) == (0, 3)
    assert error[0, 3] < 0.02
    # half of the rows of classes 4 and 5 are wrong, which are two fifths of all rows
    assert all(error[0, j] > 0.15 for j in (1, 2))


def test_complementary_last_column_separates_only_the_last_two_classes():
    X, y, *_ = make_complementary(2000, random_state=0)
    model = QuadraticDiscriminantAnalysis()
    pairs = {
        pair: cross_val_score(model, X[np.isin(y, pair)][:, [3]], y[np.isin(y, pair)]).mean()
        for pair in combinations(range(5), 2)
    }
    assert pairs.pop((3, 4)) > 0.98
    assert max(pairs.values()) < 0.92


# Redundancy inside classes


@pytest.mark.parametrize("n_samples", [600, 601, 90, 12])
def test_class_redundancy_inside_classes_is_exactly_the_published_one(n_samples):
    X, y, *_ = make_class_redundancy(n_samples, random_state=0)
    printed = [  # (1,2), (2,3), (3,1)
        (0.99083612, 0.9515664, 0.96333222),
        (0.98955383, 0.9470847, 0.95429516),
        (0.98866423, 0.9584851, 0.96633191),
    ]
    for k, expected in enumerate(printed):
        inside = np.corrcoef(X[y == k].T)
        assert_allclose([inside[0, 1], inside[1, 2], inside[2, 0]], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_class_redundancy_overall_is_the_published_one(seed):
    overall = abs(np.corrcoef(make_class_redundancy(random_state=seed).X.T))
    assert_allclose([overall[0, 1], overall[1, 2], overall[0, 2]], [0.09, 0.19, 0.72], atol=0.03)


def test_class_redundancy_is_solved_by_its_relevant_pair_alone():
    X, y, relevant, _ = make_class_redundancy(random_state=0)
    model = SVC(kernel="linear", C=100)
    accuracy = {
        pair: cross_val_score(model, X[:, pair], y).mean() for pair in combinations(range(3), 2)
    }
    assert tuple(relevant) == (0, 2)
    assert accuracy[0, 2] == 1
    assert accuracy[0, 1] < 0.97
    assert accuracy[1, 2] < 0.97


# MADELON-like


def test_madelon_useful_columns_have_the_rank_of_the_informative_ones():
    X, _, relevant, equivalent = make_madelon(300, random_state=0)
    assert X.shape == (300, 500)
    assert len(relevant) == 20
    assert np.linalg.matrix_rank(X[:, relevant] - X[:, relevant].mean(axis=0)) == 5
    assert len({group for group in equivalent}) == 10
    probes = np.delete(X, relevant, axis=1)
    assert np.linalg.matrix_rank(probes - probes.mean(axis=0)) == 299
    assert_allclose(probes.std(), 1, atol=0.02)


def test_madelon_is_solved_by_its_useful_columns_and_not_by_a_line():
    X, y, relevant, _ = make_madelon(2000, random_state=0, n_probes=20)
    assert Counter(y.tolist())[0] == pytest.approx(1000, abs=30)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = {
        kernel: cross_val_score(SVC(kernel=kernel, C=8), X[:, relevant], y, cv=3).mean()
        for kernel in ("rbf", "linear")
    }
    assert score["rbf"] > 0.83
    assert score["linear"] < 0.75
    probes = np.delete(X, relevant, axis=1)
    assert cross_val_score(SVC(C=8), probes, y, cv=3).mean() < 0.55


def test_madelon_class_is_a_function_of_the_corner():
    X, y, relevant, equivalent = make_madelon(
        960, random_state=0, n_redundant=0, n_repeated=0, n_probes=3, separation=50.0, noise=0.0
    )
    assert equivalent == tuple((j,) for j in relevant)
    corner = [tuple(row) for row in X[:, relevant] > 0]
    assert set(Counter(corner).values()) == {30}
    label = dict(zip(corner, y, strict=True))
    assert len(label) == 32
    assert [label[c] for c in corner] == y.tolist()
    assert sum(label.values()) == 16


def test_madelon_columns_are_in_random_order():
    places = [make_madelon(50, random_state=seed).relevant for seed in (0, 1)]
    assert not np.array_equal(*places)
    assert places[0].max() > 250


# Errors


@pytest.mark.parametrize(
    "make", sorted({make for make, _ in EVERY.values()}, key=lambda make: make.__name__)
)
@pytest.mark.parametrize("n_samples", [0, -3, 10.0, "10", True, None])
def test_invalid_numbers_of_rows_are_refused(make, n_samples):
    sentence = rf"{make.__name__} needs n_samples to be an int of at least \d+, got "
    with pytest.raises(InvalidParameter, match=sentence):
        make(n_samples)


@pytest.mark.parametrize(
    ("make", "options", "sentence"),
    [
        (make_monks, {"problem": 4}, "problem to be 1, 2 or 3, got 4"),
        (make_monks, {"problem": True}, "problem to be 1, 2 or 3, got True"),
        (make_monks, {"problem": 1.0}, "got 1.0"),
        (make_monks, {"noise": 1.5}, r"noise to be a number in \[0, 1\], got 1.5"),
        (make_corral, {"variant": 7}, "variant to be 6, 46 or 47, got 7"),
        (make_corral, {"variant": "46"}, "got '46'"),
        (make_interactive, {"square": "no"}, "square to be True or False, got 'no'"),
        (make_interactive, {"n_features": 4}, "n_features to be an int of at least 5, got 4"),
        (make_additive, {"noise": -0.1}, "noise to be a number of at least 0, got -0.1"),
        (make_exponential, {"noise": float("nan")}, "got nan"),
        (make_weston, {"noise": float("inf")}, "got inf"),
        (make_weston, {"n_features": 1}, "n_features to be an int of at least 2"),
        (make_weston, {"random_state": "seed"}, "random_state to be .*; got 'seed'"),
        (make_weston, {"random_state": -1}, "random_state to be a non-negative integer.*got -1"),
        (make_xor, {"spread": None}, "spread to be a number of at least 0, got None"),
        (make_complementary, {"separation": -1}, "separation to be"),
        (make_class_redundancy, {"n_samples": 11}, "n_samples to be an int of at least 12"),
        (make_madelon, {"n_informative": 13}, "an int from 1 to 12, got 13"),
        (make_madelon, {"n_probes": -1}, "n_probes to be an int of at least 0"),
    ],
)
def test_invalid_options_are_refused(make, options, sentence):
    with pytest.raises(InvalidParameter, match=f"{make.__name__} needs .*{sentence}"):
        make(**options)


def test_numpy_numbers_are_accepted():
    expected = make_corral(50, variant=46, random_state=0)
    assert same(make_corral(np.int64(50), variant=np.int32(46), random_state=np.int64(0)), expected)


# Decoys


def test_only_decoys_are_correlated_with_relevant_columns():
    X, y, relevant, equivalent = make_decoys(20_000, random_state=1, task="regression", noise=0.0)
    assert equivalent == tuple((j,) for j in relevant)
    correlation = np.abs(np.corrcoef(X.T)[relevant])
    alike = (correlation > 0.5).sum(axis=1)
    assert_array_equal(alike, 3)  # itself and its two decoys
    assert_allclose(correlation[(correlation > 0.5) & (correlation < 0.99)], 0.9, atol=0.01)
    u = np.array([np.argsort(np.argsort(X[:, j])) / len(X) for j in relevant])
    f = lambda a, b, c, d, e: (  # noqa: E731
        10 * np.sin(np.pi * u[a] * u[b]) + 20 * (u[c] - 0.5) ** 2 + 10 * u[d] + 5 * u[e]
    )
    fits = [
        np.corrcoef(f(*order), y)[0, 1]
        for order in product(range(5), repeat=5)
        if len(set(order)) == 5
    ]
    assert max(fits) > 0.999


def test_classes_of_decoys_are_halves():
    y = make_decoys(251, random_state=0).y
    assert_array_equal(np.bincount(y), [126, 125])
    with pytest.raises(InvalidParameter, match="n_features to be an int of at least 15"):
        make_decoys(n_features=14)
    with pytest.raises(InvalidParameter, match="task to be 'classification'"):
        make_decoys(task="classes")


@pytest.mark.parametrize("problem", ["ring", "xor", "ring+xor", "ring+xor+sum"])
def test_interactions_agree_with_their_definition(problem):
    X, y, relevant, _ = make_interactions(20_000, random_state=3, n_features=8, problem=problem)
    a, b, c, d, e, f = X.T[:6] - 0.5
    distance = np.abs(np.sqrt(a**2 + b**2) - 0.35)
    n_relevant = {"ring": 2, "xor": 2, "ring+xor": 4, "ring+xor+sum": 6}[problem]
    assert relevant.tolist() == list(range(n_relevant))
    assert 0.48 < y.mean() < 0.52
    assert X.min() >= 0
    assert X.max() <= 1
    if problem == "ring+xor+sum":
        certain = (distance <= 0.0479) | (-c * d >= 0.0598)
        assert y[certain].all()
        rest = ~certain
        # a sum blurred by 0.2 is a step of that width at 1.4074
        share = [y[rest & (np.abs(e + f + 1 - at) < 0.05)].mean() for at in (1.0, 1.4074, 1.8)]
        assert np.abs(np.array(share) - [0.02, 0.5, 0.98]).max() < 0.06
    else:
        rule = {
            "ring": distance <= 0.1151,
            "xor": -a * b >= 0,
            "ring+xor": (distance <= 0.0704) | (-c * d >= 0.0337),
        }[problem]
        assert (y == rule).all()


def test_interactions_need_enough_columns():
    with pytest.raises(InvalidParameter, match="n_features to be an int of at least 6"):
        make_interactions(n_features=4, problem="ring+xor+sum")
    with pytest.raises(InvalidParameter, match="problem to be 'ring'"):
        make_interactions(problem="and")

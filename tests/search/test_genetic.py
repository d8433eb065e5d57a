"""Genetic search: operators, sizes and seeds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis._seeds import stream
from tamis.criteria import Penalised, Remembered, Scatter
from tamis.exceptions import InvalidParameter
from tamis.search import Exhaustive, Genetic
from tamis.search.genetic import CROSSOVERS, SELECTIONS, Population, resize_rows, tournament
from tamis.testing.problem import make_table as table


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("crossover", CROSSOVERS)
def test_every_operator_finds_a_good_subset(selection, crossover):
    X, y = table(80, 12, seed=4)
    optimum = Exhaustive(Scatter(), n_features_to_select=5).fit(X, y).trace_[-1].value
    search = Genetic(
        Scatter(),
        n_features_to_select=5,
        selection=selection,
        crossover=crossover,
        n_generations=40,
        random_state=0,
    ).fit(X, y)
    assert search.trace_[-1].value >= 0.98 * optimum
    assert (np.diff(search.trace_.values) >= 0).all()


def test_better_parents_are_drawn_more_often():
    values = np.array([0.0, 1.0, 2.0, 3.0])
    people = Population(np.eye(4, dtype=bool), values, values, 0)
    for name, select in SELECTIONS.items():
        drawn = np.bincount(select(people, 4000, stream(0, name)), minlength=4)
        assert (np.diff(drawn) > 0).all(), name


def test_universal_sampling_has_the_least_spread():
    """Each individual is drawn its expected number of times, rounded up or down."""
    values = np.array([1.0, 2.0, 3.0, 10.0])
    people = Population(np.eye(4, dtype=bool), values, values, 0)
    weight = values - 1 + 0.01 * (values - 1).mean()
    expected = 100 * weight / weight.sum()
    drawn = np.bincount(SELECTIONS["universal"](people, 100, stream(0)), minlength=4)
    assert (np.abs(drawn - expected) < 1).all()


def test_equal_values_can_be_drawn():
    people = Population(np.eye(3, dtype=bool), np.ones(3), np.ones(3), 0)
    for select in SELECTIONS.values():
        assert set(select(people, 300, stream(1))) == {0, 1, 2}


def test_crossovers_exchange_the_right_bits():
    one = CROSSOVERS["one-point"](200, 9, stream(0))
    two = CROSSOVERS["two-point"](200, 9, stream(0))
    assert (np.abs(np.diff(one.astype(int), axis=1)).sum(axis=1) == 1).all()
    assert (np.abs(np.diff(two.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert 0.45 < CROSSOVERS["uniform"](200, 9, stream(0)).mean() < 0.55


def test_resizing_keeps_members_and_gives_the_exact_size():
    bits = stream(5).random((50, 10)) < 0.5
    bits[0] = False
    sized = resize_rows(bits, 4, stream(6))
    assert (sized.sum(axis=1) == 4).all()
    small = bits.sum(axis=1) <= 4
    assert (sized[small] >= bits[small]).all()
    assert (sized[~small] <= bits[~small]).all()
    free = resize_rows(bits, None, stream(6))
    assert_array_equal(free[1:], bits[1:])
    assert free[0].sum() == 1


def test_free_size_with_a_penalty_finds_the_best_size():
    X, y = table(80, 8, seed=4)
    judge = Penalised(Scatter(), per_feature=1.2)
    search = Genetic(judge, n_features_to_select="best", random_state=0).fit(X, y)
    expected = Exhaustive(judge, n_features_to_select="best").fit(X, y)
    assert_array_equal(search.support_, expected.support_)


def test_the_result_is_determined_by_the_seed():
    X, y = table(80, 12)
    fit = lambda seed: Genetic(  # noqa: E731
        Scatter(), n_features_to_select=4, n_generations=3, random_state=seed
    ).fit(X, y)
    values = [fit(seed).trace_.values.tolist() for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


def test_a_cache_avoids_repeated_evaluations():
    X, y = table()
    plain = Genetic(Scatter(), n_features_to_select=3, random_state=0).fit(X, y)
    saved = Genetic(Remembered(Scatter()), n_features_to_select=3, random_state=0).fit(X, y)
    assert_array_equal(plain.support_, saved.support_)
    assert plain.n_evaluations_ == saved.n_evaluations_ > 35  # there are 35 subsets


@pytest.mark.parametrize("selection", SELECTIONS)
def test_subsets_without_a_value_are_skipped(selection):
    """Subsets with a duplicate or a constant have the value -inf."""
    X, y = table()
    X = np.column_stack([X, X[:, 0], np.ones(60)])
    search = Genetic(Scatter(), n_features_to_select=3, selection=selection, random_state=0)
    search.fit(X, y)
    assert np.isfinite(search.trace_[-1].value)
    assert not search.support_[8]


def test_numpy_numbers_are_accepted():
    sizes = {"population_size": np.int64(10), "n_generations": np.int64(2)}
    assert Genetic(Scatter(), n_features_to_select=2, **sizes).fit(*table()).n_features_ == 2


@pytest.mark.parametrize(
    "options",
    [
        {"selection": "best"},
        {"crossover": "three-point"},
        {"population_size": 1},
        {"n_generations": 0},
        {"n_elite": 50},
        {"mutation_rate": 2},
        {"crossover_rate": -0.1},
        {"crossover_rate": None},
        {"crossover_rate": "a"},
        {"selection": ["a"]},
        {"population_size": 10.0},
    ],
)
def test_invalid_options_are_refused(options):
    with pytest.raises(InvalidParameter, match="Genetic needs"):
        Genetic(Scatter(), **options).fit(*table())


def test_idle_units_are_used_only_if_others_do_not_suffice():
    bits = stream(8).random((200, 6)) < 0.5
    free = resize_rows(bits.copy(), None, stream(9), idle=np.array([1, 4]))
    assert not free[:, [1, 4]].any()
    assert free.any(axis=1).all()
    sized = resize_rows(bits.copy(), 5, stream(9), idle=np.array([1, 4]))
    assert sized[:, [0, 2, 3, 5]].all()
    assert (sized.sum(axis=1) == 5).all()
    fixed = resize_rows(bits.copy(), 2, stream(9), np.array([1]), np.array([1, 4]))
    assert fixed[:, 1].all()
    assert not fixed[:, 4].any()


def test_larger_tournaments_are_won_by_the_best():
    values = np.arange(6.0)
    people = Population(np.eye(6, dtype=bool), values, values, 0)
    shares = [np.mean(tournament(people, 4000, stream(0, n), n) == 5) for n in (1, 2, 4)]
    # the best of n draws is the best of 6 with probability 1 - (5/6)^n
    assert_allclose(shares, [1 - (5 / 6) ** n for n in (1, 2, 4)], atol=0.03)
    with pytest.raises(InvalidParameter, match="tournament_size to be an int of at least 1, got 0"):
        Genetic(Scatter(), tournament_size=0).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("selection", sorted(SELECTIONS))
@pytest.mark.parametrize(
    "values", [[1e308, 1.7e308, -1.7e308, 0.0], [np.inf, 1.0, -np.inf, 2.0], [-3.0] * 4, [0.0] * 4]
)
def test_every_selection_rule_works_for_any_values(selection, values):
    nothing = np.zeros(4)
    people = Population(np.eye(4, dtype=bool), np.array(values), nothing, 0)
    drawn = SELECTIONS[selection](people, 50, stream(0))
    assert len(drawn) == 50
    assert set(drawn) <= set(range(4))


def test_a_raw_roulette_draws_in_proportion_to_the_value():
    values = np.array([-1.0, 0.0, 1.0, 3.0])
    people = Population(np.eye(4, dtype=bool), values, values, 0)
    drawn = np.bincount(SELECTIONS["raw-roulette"](people, 4000, stream(0)), minlength=4)
    assert_allclose(drawn / 4000, [0, 0, 0.25, 0.75], atol=0.03)

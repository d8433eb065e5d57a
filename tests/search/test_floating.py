"""Facts about the floating searches: never worse than what they saw, and they end."""

import numpy as np
import pytest

from tamis.criteria import Scatter, Scored
from tamis.search import Backward, Exhaustive, FloatingBackward, FloatingForward, Forward
from tests.laws.catalogue import table


def value_of(search):
    return search.trace_[search.record_.chosen].value


@pytest.mark.parametrize(
    ("floating", "greedy"), [(FloatingForward, Forward), (FloatingBackward, Backward)]
)
def test_at_least_as_good_as_the_greedy_search_nearly_always(floating, greedy):
    good, better = 0, 0
    for seed in range(100):
        X, y = table(80, 10, seed=seed)
        one = value_of(floating(Scatter(), n_features_to_select=5).fit(X, y))
        other = value_of(greedy(Scatter(), n_features_to_select=5).fit(X, y))
        good += one >= other * (1 - 1e-12)
        better += one > other * (1 + 1e-12)
    assert good >= 95
    assert better >= 1  # otherwise it would be the greedy search itself


@pytest.mark.parametrize("cls", [FloatingForward, FloatingBackward])
def test_at_every_size_as_good_as_all_it_visited(cls):
    for seed in range(20):
        X, y = table(80, 10, seed=seed)
        for size in (3, 6):
            search = cls(Scatter(), n_features_to_select=size).fit(X, y)
            visited = [s.value for s in search.trace_ if len(s.subset) == size]
            assert value_of(search) == max(visited)


@pytest.mark.parametrize("cls", [FloatingForward, FloatingBackward])
@pytest.mark.parametrize("seed", range(20))
def test_ends_for_any_function_of_subsets(cls, seed):
    """Random values, neither monotone nor smooth: each step back must beat a record."""
    numbers = np.random.default_rng(seed).random(2**8)
    X = np.eye(8) + np.arange(8)  # row 0 identifies the columns

    def value(columns, y):
        return numbers[sum(1 << int(np.argmax(column) % 8) for column in columns.T)]

    search = cls(Scored(value), n_features_to_select=4, standardize=False).fit(X)
    assert search.n_features_ == 4
    optimum = Exhaustive(Scored(value), n_features_to_select=4, standardize=False).fit(X)
    assert value_of(search) <= value_of(optimum)
    backs = np.diff(search.trace_.sizes) * (1 if cls is FloatingForward else -1) < 0
    assert backs.any() or len(search.trace_) <= 9

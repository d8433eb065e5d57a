"""Floating searches: never worse than the subsets they scored, and they end."""

import numpy as np
import pytest

from tamis.criteria import FisherScore, Scatter, Scored
from tamis.search import Backward, Exhaustive, FloatingBackward, FloatingForward, Forward
from tamis.testing.problem import make_table as table


def value_of(search):
    return search.trace_[search.record_.chosen].value


@pytest.mark.parametrize(
    ("floating", "greedy"), [(FloatingForward, Forward), (FloatingBackward, Backward)]
)
def test_floating_searches_are_nearly_always_as_good_as_greedy_ones(floating, greedy):
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
def test_the_best_subset_of_each_size_is_the_best_that_was_scored(cls):
    """For each size on the search path, the best subset is the best of all that were scored."""
    for seed in range(20):
        X, y = table(80, 10, seed=seed)
        priced = {}

        class Recording(Scatter):
            def gain(self, subset, candidates, priced=priced):
                gains = super().gain(subset, candidates)
                seen = priced.setdefault(len(subset) + 1, [])
                seen.append(self.value(subset) + gains.max())
                return gains

            def loss(self, subset, priced=priced):
                losses = super().loss(subset)
                seen = priced.setdefault(len(subset) - 1, [])
                seen.append(self.value(subset) - losses.min())
                return losses

        search = cls(Recording(), n_features_to_select=5).fit(X, y)
        for size in set(search.trace_.sizes) & set(priced):
            held = search.trace_.values[search.trace_.sizes == size].max()
            assert held >= max(priced[size]) - 1e-9


@pytest.mark.parametrize("cls", [FloatingForward, FloatingBackward])
@pytest.mark.parametrize("seed", range(20))
def test_floating_searches_end_for_any_function_of_subsets(cls, seed):
    """Values are random, neither monotone nor smooth.

    Each step back must beat the best known value.
    """
    numbers = np.random.default_rng(seed).random(2**8)
    X = np.eye(8) + np.arange(8)  # column j is greatest in row j

    def value(columns, y):
        return numbers[sum(1 << int(np.argmax(column)) for column in columns.T)]

    search = cls(Scored(value), n_features_to_select=4, standardize=False).fit(X)
    optimum = Exhaustive(Scored(value), n_features_to_select=4, standardize=False).fit(X)
    assert search.n_features_ == 4
    assert value_of(search) <= value_of(optimum)
    sizes, values = search.trace_.sizes, search.trace_.values
    onwards = 1 if cls is FloatingForward else -1
    for place in range(1, len(sizes)):
        known = values[:place][sizes[:place] == sizes[place]]
        if (sizes[place] - sizes[place - 1]) * onwards < 0:
            assert values[place] > known.max()
        elif len(known):  # otherwise it continues from the best known subset of that size
            assert values[place] >= known.max()


@pytest.mark.parametrize(("cls", "onwards"), [(FloatingForward, 1), (FloatingBackward, -1)])
def test_some_floating_searches_step_back(cls, onwards):
    """Otherwise the tests above would pass for greedy searches too."""
    tables = (table(80, 10, seed=seed) for seed in range(100))
    sizes = (cls(Scatter(), n_features_to_select=5).fit(X, y).trace_.sizes for X, y in tables)
    assert any((np.diff(size) * onwards < 0).any() for size in sizes)


class Drifts(FisherScore):
    """Criterion whose rounding errors make a cycle look like a gain."""

    def fit(self, X, y=None):
        self.calls = 0
        return super().fit(X, y)

    def loss(self, subset):
        self.calls += 1
        assert self.calls < 1000, "the search runs in a cycle"
        return super().loss(subset) - 1e-6


@pytest.mark.parametrize("search", [FloatingForward, FloatingBackward])
def test_rounding_does_not_cause_an_endless_loop(search):
    assert search(Drifts(), n_features_to_select="best").fit(*table()).n_features_ >= 1

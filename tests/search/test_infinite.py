"""Infinite scores cause no warning of numpy and no NaN."""

import numpy as np
import pytest

from tamis.contract import SubsetCriterion
from tamis.search import Backward, Forward, Ranking, RecursiveElimination
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import searches


class Boundless(SubsetCriterion):
    """Criterion whose columns have infinite, minus infinite or zero values."""

    additive = True

    def _learn(self, X, y, **params):
        self.worth = np.array([np.inf, -np.inf, 1.0, 0.0, np.inf, -np.inf, 2.0])

    def value(self, subset):
        worth = self.worth[subset]
        if (worth == -np.inf).any():
            return -np.inf
        return float(worth.sum()) if len(worth) else 0.0


@pytest.mark.parametrize("cls", [Forward, Backward, RecursiveElimination])
def test_infinity_minus_infinity_causes_no_warning(cls):
    search = cls(Boundless(), n_features_to_select=3).fit(*table())
    assert search.n_features_ == 3
    assert not search.support_[[1, 5]].any()


def test_infinite_scores_of_both_signs_are_ranked():
    class Alone(Boundless):
        def gain(self, subset, candidates):
            return self.worth[candidates]

    search = Ranking(Alone(), n_features_to_select=4).fit(*table())
    assert list(search.order_[:4]) == [0, 4, 6, 2]


@pytest.mark.parametrize("cls", searches())
def test_every_search_works_with_infinite_values(cls):
    class Monotone(Boundless):
        @property
        def monotone(self):
            return True

        def value(self, subset):
            return float(np.isin(subset, [0, 4]).sum()) * 1e300 * 1e10 if len(subset) else 0.0

    assert cls(Monotone(), n_features_to_select=2).fit(*table()).n_features_ == 2

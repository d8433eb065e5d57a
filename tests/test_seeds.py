"""Seeds by label: independent of order, fixed once, and restored."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import KFold

from tamis._seeds import draw_seed, fix_seeds, stream
from tamis.criteria import CrossValidated, Importances, Scatter
from tamis.search import Forward, Genetic


def test_a_stream_is_determined_by_its_labels():
    first = stream(0, "split", "wine", 3).random(4)
    assert (stream(0, "split", "wine", 3).random(4) == first).all()
    for other in (stream(1, "split", "wine", 3), stream(0, "split", "wine", 4), stream(0, "wine")):
        assert not (other.random(4) == first).any()


def test_arrays_can_be_labels():
    subset = np.array([1, 200, 3000])
    assert stream(0, subset).random() == stream(0, subset.astype(np.int32)).random()
    assert stream(0, subset).random() != stream(0, subset[:2]).random()


def test_any_random_state_becomes_a_number():
    assert draw_seed(7) == draw_seed(np.int64(7)) == 7
    assert draw_seed(np.random.default_rng(0)) == draw_seed(np.random.default_rng(0))
    assert draw_seed(np.random.RandomState(0)) == draw_seed(np.random.RandomState(0))
    assert draw_seed() != draw_seed()


def test_given_seeds_are_not_changed():
    given = Importances(ExtraTreesClassifier(random_state=5))
    assert fix_seeds(given) == {}
    assert given.estimator.random_state == 5
    opened = Importances(ExtraTreesClassifier())
    seeds = fix_seeds(opened)
    assert seeds == {"estimator__random_state": opened.estimator.random_state}
    again = Importances(ExtraTreesClassifier())
    assert fix_seeds(again, seeds) == seeds
    assert again.estimator.random_state == opened.estimator.random_state


def test_a_seeded_search_seeds_its_parts():
    make = lambda: Genetic(Importances(ExtraTreesClassifier()), random_state=3)  # noqa: E731
    assert fix_seeds(make()) == fix_seeds(make())


def test_a_root_seed_fixes_everything_without_a_seed():
    search = Forward(CrossValidated(ExtraTreesClassifier(), cv=KFold(shuffle=True)))
    seeds = fix_seeds(search, root=4)
    assert (
        fix_seeds(Forward(CrossValidated(ExtraTreesClassifier(), cv=KFold(shuffle=True))), root=4)
        == seeds
    )
    assert len(set(seeds.values())) == 2


def test_splitters_are_fixed_in_a_copy():
    splitter = KFold(3, shuffle=True)
    search = Forward(CrossValidated(ExtraTreesClassifier(), cv=splitter))
    seeds = fix_seeds(search)
    assert sorted(seeds) == [
        "criterion__cv__random_state",
        "criterion__estimator__random_state",
    ]
    assert splitter.random_state is None
    assert search.criterion.cv.random_state == seeds["criterion__cv__random_state"]
    assert (
        fix_seeds(Forward(CrossValidated(ExtraTreesClassifier(random_state=0), cv=KFold(3)))) == {}
    )


@pytest.mark.parametrize(
    "random_state",
    [0, None, np.random.default_rng(1), np.random.RandomState(1)],
)
def test_every_kind_of_random_state_works(random_state):
    X = np.random.default_rng(0).normal(size=(40, 6))
    search = Genetic(Scatter(), n_features_to_select=2, n_generations=2, random_state=random_state)
    assert search.fit(X, np.arange(40) % 2).n_features_ == 2

"""Plans: sets of rows, classes and labels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tamis.evaluation import CrossValidation, GivenSplits, Realizations
from tamis.exceptions import InvalidParameter

CLASSES = np.repeat([0, 1, 2], [20, 30, 50])
REAL = np.random.default_rng(0).normal(size=100)
PLANS = [
    Realizations(6, train=0.5),
    Realizations(6, train=30, test=40, validation=20),
    Realizations(6, train=30, inner=3),
    CrossValidation(3, n_repeats=2),
    CrossValidation(3, n_repeats=2, inner=4),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
@pytest.mark.parametrize("y", [CLASSES, REAL], ids=["classification", "regression"])
def test_training_test_and_inner_rows_do_not_overlap(plan, y):
    assert len(plan) == 6
    for i in range(6):
        train, test, inner = plan.split(y, "data", i)
        assert not np.intersect1d(train, test).size
        assert len(np.unique(train)) == len(train)
        for fit, check in inner:
            assert not np.intersect1d(fit, check).size
            assert not np.intersect1d(np.concatenate([fit, check]), test).size


def test_counts_and_shares_of_rows_are_exact():
    split = Realizations(train=30, test=40, validation=20).split(CLASSES, "data", 0)
    assert (len(split.train), len(split.test), len(split.inner[0][1])) == (30, 40, 20)
    assert_array_equal(split.inner[0][0], split.train)
    assert len(Realizations(train=0.25).split(CLASSES, "data", 0).test) == 75


def test_classes_keep_their_proportions():
    for i in range(5):
        split = Realizations(train=10, test=50, seed=3).split(CLASSES, "data", i)
        assert_array_equal(np.bincount(CLASSES[split.train]), [2, 3, 5])
        assert_array_equal(np.bincount(CLASSES[split.test]), [10, 15, 25])


def test_remaining_rows_are_drawn_at_random():
    """The eleventh of eleven rows goes to the class with the largest remainder, ties at random."""
    y = np.repeat([0, 1], 50)
    odd = [np.bincount(y[Realizations(train=11).split(y, "data", i).train])[0] for i in range(40)]
    assert set(odd) == {5, 6}


def test_without_stratification_proportions_vary():
    plan = Realizations(train=20, stratify=False)
    counts = {tuple(np.bincount(CLASSES[plan.split(CLASSES, "d", i).train])) for i in range(20)}
    assert len(counts) > 1


def test_a_split_depends_only_on_seed_name_and_number():
    plan = Realizations(30, train=0.5, seed=1)
    again = Realizations(5, train=0.5, seed=1).split(CLASSES, "data", 3)
    assert_array_equal(plan.split(CLASSES, "data", 3).train, again.train)
    for other in (
        plan.split(CLASSES, "data", 4),
        plan.split(CLASSES, "other", 3),
        Realizations(30, train=0.5, seed=2).split(CLASSES, "data", 3),
    ):
        assert not np.array_equal(other.train, again.train)


def test_every_row_is_equally_likely_to_train():
    plan = Realizations(train=25)
    counts = np.zeros(100)
    for i in range(400):
        counts[plan.split(CLASSES, "data", i).train] += 1
    # 400 draws at 1/4: standard deviation 8.7
    assert abs(counts - 100).max() < 5 * 8.7


def test_folds_cover_all_rows_once():
    plan = CrossValidation(5, n_repeats=2)
    for repeat in range(2):
        tests = [plan.split(CLASSES, "data", 5 * repeat + fold).test for fold in range(5)]
        assert_array_equal(np.sort(np.concatenate(tests)), np.arange(100))
    assert not np.array_equal(plan.split(CLASSES, "d", 0).test, plan.split(CLASSES, "d", 5).test)


def test_inner_folds_cover_the_training_rows():
    split = CrossValidation(5, inner=4).split(CLASSES, "data", 2)
    checks = np.concatenate([check for _, check in split.inner])
    assert_array_equal(np.sort(checks), split.train)


@pytest.mark.parametrize("plan", [*PLANS, GivenSplits([[0], [1], [2]], [[3], [4], [5]])], ids=repr)
def test_the_first_realizations_do_not_depend_on_their_number(plan):
    some = plan.first(2)
    assert len(some) == 2
    for i in range(2):
        assert some.label(i) == plan.label(i)
        assert_array_equal(
            some.split(CLASSES, "data", i).train, plan.split(CLASSES, "data", i).train
        )


def test_more_folds_than_one_repeat_continue_with_the_next_repeat():
    plan = CrossValidation(3).first(5)
    assert len(plan) == 5
    again = CrossValidation(3, n_repeats=2).split(CLASSES, "data", 4)
    assert_array_equal(plan.split(CLASSES, "data", 4).test, again.test)


def test_given_splits_are_not_changed():
    plan = GivenSplits([[3, 1], [0, 2]], [[0], [1, 3]])
    assert_array_equal(plan.split(CLASSES, "data", 0).train, [3, 1])
    assert plan.label(0) != plan.label(1)
    assert repr(plan) == "<GivenSplits: 2 realizations>"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Realizations(0), "n_realizations to be an int of at least 1"),
        (lambda: Realizations(train=1.5), "train to be a number of rows or a share"),
        (lambda: Realizations(train=None), "train to be a number"),
        (lambda: Realizations(test=0), "test to be a number of rows"),
        (lambda: Realizations(validation=0.2, inner=3), "got both"),
        (lambda: Realizations(inner=1), "inner to be an int of at least 2"),
        (lambda: Realizations(train=90, test=20).split(CLASSES, "wine", 0), "wine has 100"),
        (lambda: Realizations(train=100).split(CLASSES, "wine", 0), "wine has 100"),
        (lambda: CrossValidation(1), "n_folds to be an int of at least 2"),
        (lambda: CrossValidation(60).split(CLASSES, "d", 0), "60 folds cannot be made"),
        (lambda: GivenSplits([[0]], []), "1 and 0"),
        (lambda: GivenSplits([[0, 1]], [[1]]), "1 in both"),
        (
            lambda: GivenSplits([[0]], [[100]]).split(CLASSES, "wine", 0),
            "between 0 and 99.*got 100",
        ),
        (lambda: GivenSplits([[-1]], [[1]]).split(CLASSES, "wine", 0), "got -1"),
    ],
)
def test_invalid_input_is_refused(make, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        make()

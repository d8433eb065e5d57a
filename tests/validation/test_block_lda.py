"""Discriminant analysis cross-validated on row blocks, compared with scikit-learn."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, cross_val_score

from tamis.blocks import BlockIterator
from tamis.blocks.labels import TargetLabels
from tamis.blocks.table import BlockTable
from tamis.criteria import CrossValidated, Remembered
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidTarget
from tamis.search import FloatingForward, Forward, RecursiveElimination
from tamis.validation.block_folds import folds_of_blocks


def cut(X, y, where):
    """Return blocks that end at the given rows."""
    pairs = [(X[a:b], y[a:b]) for a, b in itertools.pairwise([0, *where, len(X)])]
    return BlockIterator(lambda: iter(pairs))


def in_blocks(X, y, where):
    source = cut(X, y, where)
    return BlockTable(source, source.reduce(TargetLabels("t"), target_only=True), "t")


def made(n=400, d=7, n_classes=3, seed=0, mean=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[:, :3] += np.array([0.9, 0.5, 0.0])[:3] * y[:, None]
    return X + mean, y


def partitions(n):
    rng = np.random.default_rng(0)
    yield []
    yield [n // 3, n // 3, n // 2]
    yield np.sort(rng.choice(n, 37, replace=False)).tolist()


GIVEN = [(np.setdiff1d(np.arange(400), t), t) for t in np.array_split(np.arange(400)[::-1], 3)]


@pytest.mark.parametrize("cv", [2, 5, KFold(4), StratifiedKFold(7), GIVEN], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_agree_with_the_full_table(cv, n_classes):
    X, y = made(n_classes=n_classes)
    y = np.roll(y, 3)[::-1].copy()  # the first row is not of the first class
    splitter = StratifiedKFold(cv) if isinstance(cv, int) else cv
    splits = cv if isinstance(cv, list) else list(splitter.split(X, y))
    wanted = np.empty(len(y), dtype=int)
    for fold, (_, test) in enumerate(splits):
        wanted[test] = fold
    for where in partitions(400):
        rule = folds_of_blocks("t", in_blocks(X, y, where), cv)
        ends = [0, *where, 400]
        found = [rule.of(a, y[a:b].astype(np.intp)) for a, b in itertools.pairwise(ends)]
        assert_array_equal(np.concatenate(found), wanted)


@pytest.mark.parametrize("seed", range(20))
def test_classes_with_few_rows_have_the_same_folds(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([3, 1, 2, 7], [*rng.integers(1, 6, 3), 9])
    rng.shuffle(y)
    X, n_folds = rng.normal(size=(len(y), 1)), int(rng.integers(2, 7))
    labels = np.unique(y, return_inverse=True)[1]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        wanted = StratifiedKFold(n_folds)._make_test_folds(X, y)
        rule = folds_of_blocks("t", in_blocks(X, y, sorted(rng.integers(0, len(y), 4))), n_folds)
    assert [w.category for w in said] in ([], [UserWarning, DegenerateData])
    assert_array_equal(rule.of(0, labels), wanted)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_every_subset_has_the_accuracy_of_scikit_learn(n_classes, mean):
    X, y = made(d=4, n_classes=n_classes)
    lda = LinearDiscriminantAnalysis()
    subsets = [np.array(s) for k in (1, 2, 3, 4) for s in itertools.combinations(range(4), k)]
    wanted = [cross_val_score(lda, X[:, s], y).mean() for s in subsets]
    for where in partitions(400):
        found = CrossValidated(lda).fit(in_blocks(X + mean, y, where))
        assert_allclose(found.values(subsets), wanted, rtol=0, atol=1e-15)
        assert found.value(subsets[0][:0]) == CrossValidated(lda).fit(X, y).value(subsets[0][:0])


def test_blocks_may_have_one_row_or_lack_a_class():
    X, y = made()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    lda = CrossValidated(LinearDiscriminantAnalysis())
    subsets = [np.array([0, 1, 4]), np.array([2]), np.arange(7)]
    wanted = lda.fit(X, y).values(subsets)
    for where in (range(1, 400), [0, 0, 7, 300, 400]):
        assert_allclose(lda.fit(in_blocks(X, y, where)).values(subsets), wanted, rtol=1e-14)


@pytest.mark.parametrize("search", [FloatingForward, RecursiveElimination, Forward])
@pytest.mark.parametrize("ties", ["loss", "index"])
def test_a_search_on_blocks_agrees_with_the_table(search, ties):
    X, y = made()
    X[:, 5], X[:, 4] = X[:, 0], 3.0  # a copy, and a constant
    walk = search(
        CrossValidated(LinearDiscriminantAnalysis(), cv=4, ties=ties), n_features_to_select=3
    )
    held = walk.fit(X, y)
    order, values = held.order_, held.trace_.values
    for where in partitions(400):
        found = walk.fit(cut(X, y, where))
        assert_array_equal(found.order_, order)
        assert_allclose(found.trace_.values, values, rtol=0, atol=1e-15)


def test_priors_groups_and_cached_values():
    X, y = made()
    lda = LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5])
    groups = {"a": [0, 3], "b": [1, 2, 6]}
    walk = Forward(Remembered(CrossValidated(lda)), n_features_to_select=2, feature_groups=groups)
    held = walk.fit(X, y)
    order, values = held.order_, held.trace_.values
    found = walk.fit(cut(X, y, [50, 170]))
    assert_array_equal(found.order_, order)
    assert_allclose(found.trace_.values, values, rtol=0, atol=1e-15)
    with pytest.raises(InvalidParameter, match="priors"):
        CrossValidated(LinearDiscriminantAnalysis(priors=[0.5, 0.5])).fit(in_blocks(X, y, []))


def test_fold_scores_and_second_opinion_agree_with_the_table():
    X, y = made()
    for classes in (y, (y > 0).astype(int)):
        held = CrossValidated(LinearDiscriminantAnalysis()).fit(X, classes)
        found = CrossValidated(LinearDiscriminantAnalysis()).fit(in_blocks(X, classes, [33, 200]))
        some = np.array([0, 2, 4])
        assert_allclose(found.fold_scores(some), held.fold_scores(some), rtol=1e-14)
        assert_allclose(found.test_ratio, held.test_ratio, rtol=1e-14)
        for units in (np.array([1, 3]), some):
            wanted = held.second_opinion(some, units)
            assert_allclose(found.second_opinion(some, units), wanted, atol=1e-11)
        empty = some[:0], np.array([1])
        assert_allclose(found.second_opinion(*empty), held.second_opinion(*empty), atol=1e-11)
        assert_allclose(
            found.second_opinion(some[:1], some[:1]), held.second_opinion(some[:1], some[:1])
        )


def test_columns_that_are_constant_within_classes_predict_the_nearest_mean():
    X, y = made()
    X[:, 1] = np.array([5.0, 1.0, 1.0])[y]
    X[:, 2] = y == 2
    held = CrossValidated(LinearDiscriminantAnalysis()).fit(X, y)
    found = CrossValidated(LinearDiscriminantAnalysis()).fit(in_blocks(X, y, [33, 200]))
    for subset in ([1], [2], [1, 2], [0, 1], [0, 1, 2, 3]):
        assert_allclose(found.value(np.array(subset)), held.value(np.array(subset)), rtol=1e-14)
    assert_allclose(
        found.second_opinion(np.array([1]), np.array([2, 3])),
        held.second_opinion(np.array([1]), np.array([2, 3])),
        atol=1e-10,
    )


def test_a_class_without_training_rows_is_never_predicted():
    X, y = made(n_classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    lda = CrossValidated(LinearDiscriminantAnalysis(), cv=KFold(3))
    held = lda.fit(X, y).values([np.array([0]), np.array([0, 1, 3])])
    found = lda.fit(in_blocks(X, y, [33, 200])).values([np.array([0]), np.array([0, 1, 3])])
    assert_allclose(found, held, rtol=1e-14)


def test_columns_of_any_scale_are_accepted():
    X, y = made(n_classes=2)
    scales = np.array([1e-200, 1e200, 1.0, 1e-3, 1e30, 1e80, 1e-80])
    lda = CrossValidated(LinearDiscriminantAnalysis())
    plain = Forward(lda, n_features_to_select=4).fit(X, y).order_
    assert_array_equal(
        Forward(lda, n_features_to_select=4).fit(cut(X * scales, y, [99])).order_, plain
    )


def test_unsupported_folds_are_refused():
    X, y = made()
    table = in_blocks(X, y, [])
    for cv in (ShuffleSplit(3), KFold(3, shuffle=True), 1, "five"):
        with pytest.raises(InvalidParameter, match=r"cv= an int from 2, KFold or Strat"):
            folds_of_blocks("CrossValidated", table, cv)
    for wrong in (
        [(GIVEN[0][0][1:], GIVEN[0][1])],
        GIVEN[:1] * 2,
        [(np.array([900]), GIVEN[0][1])],
    ):
        with pytest.raises(InvalidParameter, match=r"in one test fold and in the training rows"):
            folds_of_blocks("CrossValidated", table, wrong)
    with pytest.raises(InvalidParameter, match="row 0 is in no test fold"):
        folds_of_blocks("CrossValidated", table, GIVEN[:1])
    with pytest.raises(InvalidTarget, match=r"500 folds, but no class has more than"):
        folds_of_blocks("CrossValidated", table, 500)

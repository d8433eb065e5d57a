"""Shapes of trees, numbers of rows and threads, and what must hold of every answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from tamis.response import Model
from tamis.response.distances import Statistic
from tamis.response.perturbations import EveryValue, Shuffle
from tamis.response.predictions import as_it_is
from tamis.response.trees import TreeEngine, cells, ensemble
from tamis.response.trees.ensemble import TreeEnsemble
from tamis.response.trees.forest import Trees
from tests.response.tree_models import (
    D,
    N,
    absolute,
    absolute_of_shuffle,
    added_up,
    asked,
    at,
    copies_at,
    copies_shuffled,
    effects_of,
    every_shuffled,
    made,
    opened,
    part_of,
    singles,
    table,
    target,
)


@pytest.fixture
def forest():
    X = table("tied")
    model = made("RandomForest", "3", n_estimators=20).fit(X, target(X, "3"))
    return X, model, opened(model, "predict_proba", X)


def test_every_value_is_the_mean_over_all_cyclic_donors(forest):
    X, _, engine = forest
    before = engine.outputs()
    total = np.zeros(D)
    for shift in range(N):
        known, after = engine.shuffled(X, np.roll(np.arange(N), shift), singles())
        total[known] += np.abs(after - before).sum(axis=(1, 2))
    assert_allclose(absolute(engine, X), total / N, atol=1e-10)


class Terms(Statistic):
    """Two sums, of which one is scaled by units."""

    n_sums = 2

    def __init__(self, before):
        self.before = before

    def terms(self, rows, change, units):
        assert change.shape[-1] == 3
        return [change[..., 0] * (1 + rows), change[..., 1] ** 2 * (1.0 + units)]

    def scores(self, sums):
        return sums[0]


def test_sums_of_any_terms(forest):
    X, model, engine = forest
    before, donors = engine.outputs(), np.random.default_rng(0).permutation(N)
    expected = copies_shuffled(asked(model, "predict_proba"), X, donors, singles())
    expected = np.abs(expected - before).sum(axis=(1, 2))
    assert_allclose(absolute_of_shuffle(engine, X, donors), expected, atol=1e-10)
    change, scales, rows = at(engine, X) - before[:, None], np.arange(1.0, D + 1), np.arange(N)
    sums = [
        (change[..., 0] * (1 + rows[:, None])).sum(axis=(1, 2)) / N,
        (change[..., 1] ** 2).sum(axis=(1, 2)) * scales / N,
    ]
    units = np.arange(D)[:, None]
    found = engine.sums(units, EveryValue(X, None), part_of(engine), Terms(before))
    assert_allclose(found, sums, atol=1e-9)


def test_shuffles_in_blocks_of_rows_give_the_same_sums(forest, monkeypatch):
    X, _, engine = forest
    donors = np.random.default_rng(0).permutation(N)
    draw, statistic = Shuffle(X, donors), Terms(engine.outputs())
    whole = added_up(engine, draw, statistic=statistic)
    monkeypatch.setattr("tamis.response.trees.engine.AT_ONCE", 200)
    assert_allclose(added_up(engine, draw, statistic=statistic), whole, atol=1e-12)


def test_weights_of_points(forest):
    X, _, engine = forest
    draw = np.random.default_rng(1)
    points, weights = X[draw.integers(0, N, 7)], draw.random((7, D))
    weights[2] = 0.0
    weights /= weights.sum(axis=0)
    moved = np.abs(at(engine, points) - engine.outputs()[:, None]).sum(axis=(1, 3))
    assert_allclose(absolute(engine, points, weights), (moved * weights.T).sum(axis=1), atol=1e-12)


def test_points_beyond_all_values(forest):
    X, model, engine = forest
    points = np.array([np.full(D, -1e6), np.full(D, 1e6), np.zeros(D)])
    expected = copies_at(asked(model, "predict_proba"), X, points, singles())
    assert_allclose(at(engine, points), expected, atol=1e-14)


def test_columns_without_a_test_change_nothing(forest):
    X, _, engine = forest
    assert 4 not in engine.ensemble.used  # it is constant
    assert absolute(engine, X)[4] == 0.0
    assert 4 not in engine.shuffled(X, np.arange(N)[::-1], singles())[0]
    assert_array_equal(at(engine, X)[4], np.repeat(engine.outputs()[:, None], N, axis=1))


def test_batches_return_the_outputs_of_the_model(forest):
    X, model, engine = forest
    raw = asked(model, "predict_proba")
    donors = np.random.default_rng(0).permutation(N)
    for units in (np.arange(D)[:, None], np.array([[0, 3], [5, 2], [1, 4]])):
        (batch,) = engine.batches(units)
        assert_array_equal(batch.units, np.arange(len(units)))
        found = batch.paired(X[donors][:, units])
        assert found.shape == (len(units), N, 1, 3)
        assert_allclose(found[:, :, 0], copies_shuffled(raw, X, donors, units), atol=1e-14)
        points = X[:5][:, units[1:3]].swapaxes(0, 1)
        found = batch.at(slice(1, 3), slice(10, 30), points)
        assert_allclose(found, copies_at(raw, X, X[:5], units)[1:3, 10:30], atol=1e-14)


def test_batches_of_few_columns_give_the_same_outputs(forest, monkeypatch):
    X, _, engine = forest
    units = np.arange(D)[:, None]
    (whole,) = engine.batches(units)
    expected = whole.paired(X[::-1, :, None])
    monkeypatch.setattr("tamis.response.trees.engine.AT_ONCE", 2 * N * 3)
    batches = list(engine.batches(units))
    assert [list(batch.units) for batch in batches] == [[0, 1], [2, 3], [4, 5]]
    found = [batch.paired(X[::-1][:, batch.columns]) for batch in batches]
    assert_array_equal(np.concatenate(found), expected)


def test_the_engine_supports_these_models():
    X = table("continuous")
    y = target(X, "2")
    forest, boosting = (made(name, "2").fit(X, y) for name in ("RandomForest", "GradientBoosting"))
    asks = [
        (fitted, method) for fitted in (forest, boosting) for method in ("predict_proba", "codes")
    ]
    for fitted, method in [*asks, (boosting, "decision_function")]:
        model = Model(fitted, method, asked(fitted, method), as_it_is)
        assert TreeEngine.knows(model)
        engine = TreeEngine.opened(model, X, X.min(axis=0), X.max(axis=0))
        assert_allclose(engine.outputs(), model.raw(X), atol=1e-14)


def test_classes_that_a_model_has_not_seen_are_left_to_copies():
    X = table("continuous")
    model = made("RandomForest", "2").fit(X, target(X, "2"))
    more = Model(model, "codes", lambda rows: np.eye(3)[model.predict(rows)], as_it_is)
    assert TreeEngine.opened(more, X, X.min(axis=0), X.max(axis=0)) is None


@pytest.mark.parametrize("kind", ["tied", "missing"])
def test_threads_change_no_bit(kind):
    draw = np.random.default_rng(0)
    X = np.repeat(table(kind), 30, axis=0)
    X += draw.normal(size=X.shape) * (kind == "missing")
    model = made("HistGradientBoosting", "3").fit(X, np.repeat(target(table(kind), "3"), 30))
    donors = draw.permutation(len(X))
    one, two = (opened(model, "predict_proba", X, n_jobs=n) for n in (1, 2))
    assert_array_equal(one.outputs(), two.outputs())
    assert_array_equal(one.shuffled(X, donors, singles())[1], two.shuffled(X, donors, singles())[1])
    assert_array_equal(absolute(one, X), absolute(two, X))
    groups = [np.array([0, 2]), np.array([1])]
    assert_array_equal(absolute(one, X[:50], None, groups), absolute(two, X[:50], None, groups))


def test_many_rows_and_columns_are_split_into_blocks():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(3000, 40))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    engine, raw = opened(model, "predict", X), asked(model, "predict")
    assert engine.codes.dtype == np.uint16
    donors, units = draw.permutation(3000), [np.array([0]), np.array([17]), np.array([1, 2])]
    found = every_shuffled(engine, X, donors, units)
    assert_allclose(found, copies_shuffled(raw, X, donors, units), atol=1e-13)
    points = X[:30]
    expected = copies_at(raw, X[1000:1100], points, units)
    assert_allclose(at(engine.some(slice(1000, 1100)), points, units), expected, atol=1e-13)


def chain(depth):
    """A tree whose every test cuts one more value off: x <= 0, x <= 1, ..."""
    inner = np.arange(depth)
    left, right = np.full((2, 2 * depth + 1), -1, dtype=np.int32)
    left[:depth], right[:depth] = depth + inner, inner + 1
    right[depth - 1] = 2 * depth
    return Trees(
        n_columns=2, starts=np.array([0, 2 * depth + 1]), left=left, right=right,
        column=np.r_[inner % 2 if depth % 2 else np.zeros(depth, int), np.zeros(depth + 1, int)],
        threshold=np.r_[inner, np.zeros(depth + 1)].astype(float),
        values=np.r_[np.zeros(depth), inner**2.0, -1.0][:, None],
        outputs=np.zeros(1, dtype=int), bias=np.zeros(1), link="identity",
    )  # fmt: skip


@pytest.mark.parametrize("depth", [1, 2, 1000, 1001])
def test_a_chain_of_tests_of_any_depth_is_followed(depth):
    draw = np.random.default_rng(0)
    trees = chain(depth)
    X = draw.uniform(-1, depth + 1, size=(200, 2))

    def raw(rows):
        tested = rows[:, trees.column[:depth]]
        left = tested <= trees.threshold[:depth]
        first = np.where(left.any(axis=1), left.argmax(axis=1), depth)
        return np.r_[np.arange(depth) ** 2.0, -1.0][first][:, None]

    engine = TreeEngine(TreeEnsemble(trees), "predict", raw, X)
    assert_array_equal(engine.outputs(), raw(X))
    donors = draw.permutation(200)
    for units in ([np.array([0]), np.array([1])], [np.array([0, 1])]):
        assert_array_equal(
            every_shuffled(engine, X, donors, units), copies_shuffled(raw, X, donors, units)
        )
        assert_array_equal(at(engine, X[:50], units), copies_at(raw, X, X[:50], units))


def test_units_that_share_a_column(forest):
    X, _, engine = forest
    with pytest.raises(ValueError, match="need to be disjoint"):
        absolute(engine, X, None, [np.array([0, 1]), np.array([1])])


@pytest.mark.parametrize("task", ["2", "regression"])
def test_trees_may_have_one_leaf(task):
    X = np.zeros((N, D))
    y = target(table("tied"), task)
    method = "predict" if task == "regression" else "predict_proba"
    for name in ("RandomForest", "GradientBoosting", "HistGradientBoosting"):
        model = made(name, task).fit(X, y)
        engine = opened(model, method, X)
        assert not len(engine.ensemble.used)
        assert_allclose(engine.outputs(), asked(model, method)(X), atol=1e-12)
        assert_array_equal(absolute(engine, X), np.zeros(D))
        known, moved = engine.shuffled(X, np.arange(N), singles())
        assert not len(known)
        assert moved.shape == (0, N, 1)
        assert_allclose(effects_of(engine, X[:2])[0], np.repeat(engine.outputs()[:1], 2, axis=0))


def test_some_trees_may_have_one_leaf():
    X = table("continuous")
    model = RandomForestRegressor(30, max_depth=1, min_samples_leaf=30, random_state=0)
    model.fit(X, target(X, "regression"))
    sizes = {tree.tree_.node_count for tree in model.estimators_}
    assert sizes == {1, 3}
    engine, raw = opened(model, "predict", X), asked(model, "predict")
    assert_allclose(at(engine, X), copies_at(raw, X, X, singles()), atol=1e-13)


def test_trees_may_have_one_column():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 1))
    model = DecisionTreeRegressor().fit(X, draw.normal(size=300))
    engine, raw = opened(model, "predict", X), asked(model, "predict")
    assert_allclose(at(engine, X)[0], copies_at(raw, X, X, [np.array([0])])[0], atol=1e-13)


@pytest.mark.parametrize("kind", ["tied", "missing"])
def test_more_cells_than_a_word_holds(kind, monkeypatch):
    X = table(kind)
    model = made("RandomForest", "3").fit(X, target(X, "3"))
    expected = opened(model, "predict_proba", X)
    monkeypatch.setattr(cells, "MOST_CELLS", 1)
    engine = opened(model, "predict_proba", X)
    assert engine.ensemble.layout.words is None
    assert_array_equal(engine.outputs(), expected.outputs())
    donors = np.random.default_rng(0).permutation(N)
    found, same = (one.shuffled(X, donors, singles())[1] for one in (engine, expected))
    assert_allclose(found, same, atol=1e-14)
    assert_allclose(absolute(engine, X), absolute(expected, X), atol=1e-12)
    assert_allclose(effects_of(engine, X), effects_of(expected, X), atol=1e-12)


def test_more_cells_than_16_bits_use_wider_codes():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(70_000, 2))
    model = ExtraTreesRegressor(2, random_state=0).fit(X, draw.normal(size=len(X)))
    some = X[:400]
    engine, raw = opened(model, "predict", some), asked(model, "predict")
    assert engine.codes.dtype == np.uint32
    donors = draw.permutation(400)
    found = every_shuffled(engine, some, donors, list(np.arange(2)[:, None]))
    expected = copies_shuffled(raw, some, donors, list(np.arange(2)[:, None]))
    assert_allclose(found, expected, atol=1e-13)


def test_buffers_grow_for_rows_with_many_notes(monkeypatch):
    """Lists that are too short at first grow."""
    monkeypatch.setattr(ensemble, "ROOM", 2)
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 3))
    model = RandomForestClassifier(40, random_state=0).fit(X, draw.integers(0, 4, 150))
    engine, raw = opened(model, "predict_proba", X), asked(model, "predict_proba")
    units = list(np.arange(3)[:, None])
    assert_allclose(at(engine, X[:20]), copies_at(raw, X, X[:20], units), atol=1e-13)


def test_unreachable_nodes_do_not_matter():
    """XGBoost keeps pruned nodes in its arrays."""
    trees = chain(2)
    more = {
        name: np.r_[getattr(trees, name), [filler] * 2]
        for name, filler in {"left": -1, "right": -1, "column": 1, "threshold": 7.0}.items()
    }
    pruned = Trees(
        n_columns=2, starts=np.array([0, 7]), values=np.r_[trees.values, [[99.0], [99.0]]],
        outputs=trees.outputs, bias=trees.bias, link="identity", **more,
    )  # fmt: skip
    X = np.random.default_rng(0).uniform(-1, 3, size=(50, 2))
    found, same = (one.sums(one.encode(X)) for one in map(TreeEnsemble, (pruned, trees)))
    assert_array_equal(found, same)


def test_values_between_32_bit_neighbours_are_rounded_as_in_a_forest():
    """A forest sees 32 bits: values that fall together there are one."""
    draw = np.random.default_rng(0)
    X = 1 + np.arange(60)[:, None] * 2.0**-23 + draw.uniform(-1, 1, size=(60, 2)) * 2.0**-25
    model = RandomForestRegressor(10, random_state=0).fit(X, draw.normal(size=60))
    engine, raw = opened(model, "predict", X), asked(model, "predict")
    points = 1 + draw.uniform(0, 60, size=(80, 2)) * 2.0**-23
    units = list(np.arange(2)[:, None])
    assert_allclose(at(engine, points), copies_at(raw, X, points, units), atol=1e-14)


@pytest.mark.parametrize("task", ["2", "regression"])
def test_behind_scalers(task):
    X = table("tied") * [1e3, 1, 0.1, 1, 1, 1] / 3
    y = target(X, task)
    scalers = [StandardScaler(), MinMaxScaler((-1, 2))]
    inner = make_pipeline(RobustScaler(), made("HistGradientBoosting", task))
    for pipe in (make_pipeline(*scalers, made("RandomForest", task)), make_pipeline(inner)):
        fitted = pipe.fit(X, y)
        for method in ["predict"] if task == "regression" else ["predict_proba", "codes"]:
            model = Model(fitted, method, asked(fitted, method), as_it_is)
            assert TreeEngine.knows(model)
            engine = TreeEngine.opened(model, X, X.min(axis=0), X.max(axis=0))
            expected = copies_at(model.raw, X, X, singles())
            assert_allclose(at(engine, X), expected, atol=1e-12)
            donors = np.random.default_rng(0).permutation(N)
            found = every_shuffled(engine, X, donors, singles())
            assert_allclose(found, copies_shuffled(model.raw, X, donors, singles()), atol=1e-12)


def test_trees_after_a_step_that_mixes_columns_are_not_supported():
    X = table("continuous")
    pipe = make_pipeline(PCA(3), made("RandomForest", "2")).fit(X, target(X, "2"))
    assert not TreeEngine.knows(Model(pipe, "codes", asked(pipe, "codes"), as_it_is))

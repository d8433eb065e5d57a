"""Importance and effects of fitted trees: by their engine as by altered copies of the rows."""

import tracemalloc
import warnings
from threading import get_ident

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import partial_dependence

import tamis.response.trees.engine as engines
from tamis._parallel import AHEAD
from tamis.criteria import DensitySensitivity, PosteriorSensitivity, ScoreSensitivity
from tamis.exceptions import LoopInstead
from tamis.response import GenericEngine, Marginal, effects, importance
from tamis.response.trees import TreeEngine
from tamis.response.trees.models import warn_of_copies
from tests.response.tree_models import (
    D,
    N,
    absolute,
    absolute_of_shuffle,
    effects_of,
    made,
    opened,
    table,
    target,
)

WAYS = {"marginal": "marginal", "quantiles": Marginal(5), "permutation": "permutation"}


def refuse(*_):
    raise AssertionError("altered copies are made")


def asked_both_ways(function, monkeypatch):
    """An answer by the engine, and by altered copies."""
    with monkeypatch.context() as patch:
        patch.setattr(GenericEngine, "batches", refuse)
        fast = function()
    with monkeypatch.context() as patch:
        patch.setattr(TreeEngine, "knows", classmethod(lambda *_: False))
        slow = function()
    return fast, slow


@pytest.mark.parametrize("way", [*WAYS, "zero"])
@pytest.mark.parametrize(
    "name", ["DecisionTree", "RandomForest", "GradientBoosting", "HistGradientBoosting"]
)
def test_regressions_need_no_target(name, way, monkeypatch):
    X = table("tied")
    model = made(name, "regression").fit(X, target(X, "regression"))
    by = WAYS.get(way, way)

    def answer():
        return importance(model, X, by=by, n_repeats=2, random_state=0).importances

    fast, slow = asked_both_ways(answer, monkeypatch)
    assert_allclose(fast, slow, atol=1e-13)
    assert (fast[4] == 0).all()  # constant, so that no tree tests it
    if way == "marginal":
        before = model.predict(X)
        moved = [np.abs(model.predict(np.c_[v * np.ones(N), X[:, 1:]]) - before) for v in X[:, 0]]
        assert_allclose(fast[0, 0], np.mean(moved), atol=1e-13)


def with_categories(name, task, X):
    y, named = target(X, task), [1, 4]
    if name == "HistGradientBoosting":
        return made(name, task, categorical_features=named).fit(X, y)
    small = {"min_data_per_group": 2, "max_cat_to_onehot": 1, "cat_smooth": 1.0}
    return made(name, task, **small).fit(X, y, categorical_feature=named)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", ["3", "regression"])
@pytest.mark.parametrize("name", ["HistGradientBoosting", "LGBM"])
def test_missing_values_and_categories_use_the_engine(name, task, way, monkeypatch):
    """The marginal over them is the engine's own, too."""
    X = table("both")
    model = with_categories(name, task, X)
    for truth in (None, target(X, task)):
        options = {"by": WAYS[way], "n_repeats": 2, "random_state": 0}

        def answer(truth=truth, options=options):
            return importance(model, X, truth, **options).importances

        fast, slow = asked_both_ways(answer, monkeypatch)
        assert_allclose(fast, slow, atol=1e-12)
        assert fast[1].max() > 0  # a column with categories


GROUPS = [[1, 4], [0], [2, 3, 5]]


class Grouped:
    """Units that are groups of columns."""

    @property
    def n_units_(self):
        return len(GROUPS)

    def columns(self, subset):
        return np.sort(np.concatenate([GROUPS[unit] for unit in subset]))


class GroupedPosterior(Grouped, PosteriorSensitivity):
    pass


class GroupedScore(Grouped, ScoreSensitivity):
    pass


class GroupedDensity(Grouped, DensitySensitivity):
    pass


@pytest.mark.parametrize("way", [*WAYS, "zero"])
@pytest.mark.parametrize(
    ("kind", "task"),
    [(GroupedPosterior, "3"), (GroupedScore, "2"), (GroupedDensity, "regression")],
)
def test_groups_on_held_out_rows(kind, task, way, monkeypatch):
    X = table("tied")
    y = target(X, task)
    for name in ("RandomForest", "HistGradientBoosting"):
        criterion = kind(made(name, task), by=WAYS.get(way, way), on="held-out", random_state=0)

        def answer(criterion=criterion):
            return criterion.fit(X, y).loss(np.arange(len(GROUPS)))

        fast, slow = asked_both_ways(answer, monkeypatch)
        assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("task", ["2", "3", "regression"])
@pytest.mark.parametrize("name", ["RandomForest", "GradientBoosting", "HistGradientBoosting"])
def test_effects_are_partial_dependence(name, task, monkeypatch):
    X = table("tied")
    model = made(name, task).fit(X, target(X, task))
    method = "predict" if task == "regression" else "predict_proba"
    monkeypatch.setattr(GenericEngine, "batches", refuse)
    monkeypatch.setattr(TreeEngine, "min_altered", 0)
    for n_values in (5, None):
        for j, effect in enumerate(effects(model, X, n_values=n_values)):
            expected = partial_dependence(
                model, X, [j], kind="average", method="brute", response_method="auto",
                custom_values={j: effect.values},
            )["average"].T  # fmt: skip
            assert_allclose(effect.means, expected, atol=1e-12, err_msg=f"{method} {j}")


def test_effects_take_one_pass(monkeypatch):
    X = table("continuous")
    model = made("RandomForest", "3").fit(X, target(X, "3"))
    monkeypatch.setattr(TreeEngine, "batches", refuse)
    monkeypatch.setattr(TreeEngine, "min_altered", 0)
    assert len(effects(model, X, n_jobs=2)) == D


def test_effects_load_the_compiled_loops_only_for_many_altered_rows(monkeypatch):
    X = table("continuous")
    model = made("RandomForest", "3").fit(X, target(X, "3"))
    n_altered = N * D * 5
    monkeypatch.setattr(TreeEngine, "min_altered", n_altered + 1)
    with monkeypatch.context() as patch:
        patch.setattr(TreeEngine, "opened", refuse)
        few = effects(model, X, n_values=5)
    monkeypatch.setattr(TreeEngine, "min_altered", n_altered)
    monkeypatch.setattr(GenericEngine, "batches", refuse)
    for one, other in zip(few, effects(model, X, n_values=5), strict=True):
        assert_array_equal(one.values, other.values)
        assert_allclose(one.means, other.means, rtol=0, atol=1e-12)


def mine():
    class Mine(RandomForestClassifier):
        pass

    return Mine(4, random_state=0)


def corrupted():
    model = made("RandomForest", "2")
    X = table("continuous")
    model.fit(X, target(X, "2"))
    own = model.predict_proba
    model.predict_proba = lambda rows: own(rows) / 2 + 0.25
    return model


LOOPS = {
    "linear leaves": lambda: made("LGBM", "2", linear_tree=True),
    "a linear booster": lambda: made("XGB", "2", booster="gblinear", max_depth=None),
    "vector leaves": lambda: made(
        "XGB", "regression", multi_strategy="multi_output_tree", tree_method="hist"
    ),
    "several targets": lambda: made("XGB", "regression"),
    "a forest of several targets": lambda: made("RandomForest", "regression"),
    "a subclass": mine,
    "a corrupted model": corrupted,
}


@pytest.mark.parametrize("case", LOOPS)
def test_unsupported_models_are_evaluated_on_copies_with_one_warning(case):
    model, X = LOOPS[case](), table("continuous")
    y = target(X, "2")
    if case in ("vector leaves", "several targets", "a forest of several targets"):
        y = np.stack([target(X, "regression"), X[:, 0]], axis=1)
    if case != "a corrupted model":
        model.fit(X, y)
    warn_of_copies.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            found = importance(model, X, by="zero").importances_mean
    assert [w.category for w in said].count(LoopInstead) == 1
    method = model.predict if y.ndim > 1 else model.predict_proba
    before = np.asarray(method(X), dtype=float)
    if y.ndim == 1:
        before = before[:, 1:]
    expected = []
    for j in range(D):
        altered = X.copy()
        altered[:, j] = 0.0
        after = np.asarray(method(altered), dtype=float)
        expected.append(np.abs((after[:, 1:] if y.ndim == 1 else after) - before).mean())
    assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("by", ["marginal", "permutation"])
def test_threads_change_no_bit(by, monkeypatch):
    monkeypatch.setattr(TreeEngine, "min_altered", 0)
    X = np.repeat(table("continuous"), 12, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    y = np.repeat(target(table("continuous"), "3"), 12)
    model = made("HistGradientBoosting", "3").fit(X, y)
    options = {"by": by, "n_repeats": 2, "random_state": 0}
    for truth in (None, y):
        one, two, three = (
            importance(model, X, truth, n_jobs=n, **options).importances for n in (1, 2, 3)
        )
        assert_array_equal(one, two)
        assert_array_equal(one, three)
    one, two = (effects(model, X, n_jobs=n) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert_array_equal(first.means, second.means)
    one, two = (
        PosteriorSensitivity(
            made("RandomForest", "3"), by=by, on="held-out", random_state=0, n_jobs=n
        ).fit(X, y).loss(np.arange(D))
        for n in (1, 2)
    )  # fmt: skip
    assert_array_equal(one, two)


def test_rows_are_shared_by_threads(monkeypatch):
    """A criterion's n_jobs reaches the loops over trees, also in the folds."""
    seen = []
    kept = engines.TreeEngine._answers

    def counted(self, sums, altered):
        seen.append((self.n_jobs, get_ident()))
        return kept(self, sums, altered)

    monkeypatch.setattr(engines.TreeEngine, "_answers", counted)
    X = np.repeat(table("continuous"), 30, axis=0)
    y = np.repeat(target(table("continuous"), "2"), 30)
    criterion = PosteriorSensitivity(made("RandomForest", "2"), on="held-out", n_jobs=2)
    criterion.fit(X, y).loss(np.arange(D))
    assert {n for n, _ in seen} == {2}
    assert len({thread for _, thread in seen}) > 2  # two pools, and the one that asked


def test_few_blocks_are_ready_ahead():
    started = []
    X = table("tied")
    ensemble = opened(
        made("DecisionTree", "2").fit(X, target(X, "2")), "predict_proba", X, n_jobs=2
    ).ensemble
    blocks = ensemble._over_rows(1000, 1, lambda block: started.append(block) or len(started))
    next(blocks)
    assert len(started) <= 2 * AHEAD + 1
    assert len(list(blocks)) == 999


def test_memory_does_not_grow_with_the_rows(monkeypatch):
    """What is held beyond codes and sums, which an engine has from its opening, are blocks."""
    monkeypatch.setattr(engines, "AT_ONCE", 60_000)
    draw = np.random.default_rng(0)
    X = draw.normal(size=(12_000, 20))
    y = np.digitize(X[:, :4].sum(axis=1), [-1.0, 1.0])
    model = made("HistGradientBoosting", "3").fit(X[:500], y[:500])
    points = X[:50].copy()

    def peaks(rows):
        engine = opened(model, "predict_proba", rows)
        engine.outputs()
        donors = draw.permutation(len(rows))
        for passes in (
            lambda: absolute_of_shuffle(engine, rows, donors),
            lambda: absolute(engine, points),
            lambda: effects_of(engine, points),
        ):
            passes()  # codes of the table are kept
            tracemalloc.start()
            passes()
            yield tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

    short, long = list(peaks(X[:3000])), list(peaks(X))
    assert (np.array(long) < 1.3 * np.array(short) + 1e5).all(), (short, long)


def test_shap_is_a_guest_that_agrees_on_what_matters():
    """On columns that nothing else resembles the mean size of SHAP values has the same order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that it loads
        shap = pytest.importorskip("shap", reason="shap is not installed")
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, D))
    model = made("RandomForest", "regression").fit(X, X @ [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    found = np.abs(shap.TreeExplainer(model).shap_values(X)).mean(axis=0)
    ours = importance(model, X).importances_mean
    assert_array_equal(found[:3].argsort(), ours[:3].argsort())
    assert found[3:].max() < found[2]
    assert ours[3:].max() < ours[2]

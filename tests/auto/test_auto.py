"""Auto on tables with known relevant columns: selection, summary and resuming."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import tamis
from tamis.auto import Auto, selection
from tamis.auto.fold_paths import Work
from tamis.auto.plan import Planning
from tamis.auto.splits import balanced_folds
from tamis.auto.target import Truth
from tamis.contract import Record
from tamis.contract.units import Grouping
from tamis.criteria import Correlation
from tamis.exceptions import (
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    NothingFound,
    RecordMismatch,
)
from tamis.search import Ranking, Then
from tamis.spec import parse, write
from tests.behaviour import Stop


def signal(n=120, d=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 2] - X[:, min(7, d - 1)] + 0.5 * rng.normal(size=n)


def noise(n=100, d=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


#: A plan of all orders with ridge and the SVM, which takes a second on one core.
QUICK = Auto(budget=2, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return clone(QUICK).fit(*signal())


# ------------------------------------------------------------------------------ selections


def test_the_relevant_columns_of_a_regression_are_selected(fitted):
    assert fitted.columns == [2, 7]
    assert_array_equal(np.sort(fitted.order_[:2]), [2, 7])
    assert sorted(fitted.order_) == list(range(10))
    assert fitted.error_.loss < 0.3 * fitted.error_guess_.loss
    assert fitted.error_.rmse == pytest.approx(fitted.error_.loss**0.5)
    assert fitted.error_.r2 == pytest.approx(
        1 - fitted.error_.loss / fitted.error_guess_.loss, abs=0.05
    )
    assert fitted.error_.wrong is None
    assert fitted.stability_.nogueira == 1
    assert fitted.transform(signal()[0]).shape == (120, 2)


def test_classes_may_have_any_type():
    X, y = signal(n=200)
    labels = np.digitize(y, [-1, 1])
    found = clone(QUICK).fit(X, labels)
    assert set(found.columns) >= {2, 7}
    assert found.n_features_ <= 4
    assert 0 < found.error_.wrong < found.error_guess_.wrong
    assert found.error_.rmse is None
    names = np.array(["low", "middle", "high"])[labels]
    again = clone(QUICK).fit(X, names)
    assert abs(again.error_.wrong - found.error_.wrong) < 0.1


@pytest.mark.parametrize("n_classes", [3, 30])
def test_classes_that_look_like_numbers(n_classes):
    X, y = signal(n=4 * n_classes, d=3)
    order = np.argsort(np.argsort(y))
    classes = order // 4 + 0.5  # halves, more distinct values than classes usually have
    task = "classification"
    plan = Planning(len(X), 3, 3, budget=9, n_folds=2, sizes=(1, 2), task=task).plan()
    work = Work(plan, task, Grouping(3), Truth.of(classes, task), [])
    names = np.array([f"{code:03d}" for code in order // 4])
    paths = ("information", "forest", "floating", "interactions")
    found, expected = (work.orders(paths, X, y, np.arange(len(X)), 0) for y in (classes, names))
    for path in paths:
        assert_array_equal(found[path].ranking, expected[path].ranking)


def test_correlated_decoys_are_mostly_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    X[:, 5:10] = 0.8 * X[:, :5] + 0.6 * X[:, 5:10]
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=300) > 0).astype(int)
    found = Auto(budget=3, random_state=0).fit(X, y)
    assert found.support_[:5].sum() >= 4
    assert found.n_features_ <= 10


@pytest.mark.parametrize("of_classes", [False, True])
def test_nothing_is_selected_from_pure_noise(of_classes):
    nothing = 0
    for seed in range(3):
        X, y = noise(seed=seed)
        y = (y > 0).astype(int) if of_classes else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingFound)
            found = clone(QUICK).fit(X, y)
        nothing += not found.n_features_
        if not found.n_features_:
            assert found.path_ is found.model_ is found.estimator_ is None
            assert found.error_ == found.error_guess_
    assert nothing >= 2


def test_an_empty_selection_comes_with_a_warning():
    X, y = noise(seed=1)
    with pytest.warns(NothingFound, match="significantly better than the baseline"):
        found = clone(QUICK).fit(X, y)
    assert not found.support_.any()
    assert "baseline (mean)" in found.summary()
    assert "no set of columns is significantly better" in found.summary()
    assert sorted(found.order_) == list(range(30))
    assert found.order_.tolist() != list(range(30))  # the order of a search, not of the table
    assert found.best_ is found.short_ is None
    assert found.stability_ is None
    saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
    with pytest.warns(NothingFound):
        assert not clone(QUICK).resume(X, y, record=saved).support_.any()


def test_interacting_columns_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(210, 5))
    y = (X[:, 1] * X[:, 4] > 0).astype(int)
    found = Auto(budget=7, random_state=0).fit(X, y)
    assert found.columns == [1, 4]
    assert found.path_ in ("forest", "distinct forest", "interactions")
    assert found.model_ in ("machine", "trees")
    assert found.error_.wrong < 0.25


def test_a_threshold_effect_of_one_column_is_found_with_trees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    found = Auto(budget=4, cv=3, random_state=0).fit(X, (X[:, 4] > 0).astype(int))
    assert (found.columns, found.model_) == ([4], "trees")


@pytest.fixture(scope="module")
def product():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    return X, 1.5 / y.std() * y


@pytest.fixture(scope="module")
def of_three(product):
    return Auto(budget=2, n_features_to_select=3, cv=2, random_state=0).fit(*product)


@pytest.mark.parametrize("exponent", [-30, 60])
def test_the_units_of_the_target_do_not_matter(product, of_three, exponent):
    X, y = product
    found = clone(of_three).fit(X, np.ldexp(y, exponent))
    assert {"ridge", "machine", "trees"} <= {point.model for point in of_three.curve_}
    assert {"information", "forest"} == {point.path for point in of_three.curve_}
    assert (found.columns, found.model_) == (of_three.columns, of_three.model_)
    expected = np.array([point.loss for point in of_three.curve_])
    losses = np.array([point.loss for point in found.curve_])
    assert_allclose(np.ldexp(losses, -2 * exponent), expected, rtol=1e-4)


@pytest.mark.parametrize("size", [1e200, 1e-200, 1e80, 1e-80])  # losses are squared too
def test_a_target_whose_squares_overflow_is_refused(size):
    X, y = signal(n=30)
    with pytest.raises(InvalidTarget, match="other units"):
        clone(QUICK).fit(X, size * y)


def test_a_relevant_column_is_found_with_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500))
    y = (3 * X[:, 3] + X[:, 400] > 0).astype(int)
    found = Auto(budget=2, random_state=0).fit(X, y)
    assert found.support_[3]
    assert found.n_features_ <= 14


# ------------------------------------------------------------------------------ the summary


def test_the_plan_the_curve_and_the_summary_are_consistent(fitted):
    tried = {step.name for step in fitted.plan_ if step.tried}
    assert "path: information" in tried
    assert all(step.reason for step in fitted.plan_)
    points = {(point.path, point.model, point.size): point for point in fitted.curve_}
    kept = points[fitted.path_, fitted.model_, fitted.n_features_]
    least = min(fitted.curve_, key=lambda point: point.loss)
    assert kept.loss <= 1.05 * least.loss
    assert all(p.loss > least.loss for p in fitted.curve_ if p.size < kept.size)
    assert fitted.best_.size >= fitted.n_features_ >= fitted.short_.size
    assert "held-out rows" in fitted.choice_.reason
    lines = fitted.summary().splitlines()
    assert lines[0] == "2 of 10 columns are kept: 2, 7"
    assert any(line.startswith("with all columns: ") for line in lines)
    assert lines[1] == "target: numbers (regression); task='classification' reads them as classes"
    assert any(line.startswith("gradient boosting skipped (only used for") for line in lines)


def test_sizes_of_the_list():
    X, y = signal(n=100, d=12, seed=3)
    y = y + 0.4 * X[:, 0] + 0.2 * X[:, 5]
    n_kept = [clone(QUICK).set_params(size=size).fit(X, y).n_features_ for size in
              ("short", "balanced", "best")]  # fmt: skip
    assert n_kept == sorted(n_kept)
    assert n_kept[0] < n_kept[-1]


def test_a_requested_number_of_columns_is_selected(fitted):
    X, y = signal()
    assert clone(QUICK).set_params(n_features_to_select=3).fit(X, y).n_features_ == 3
    half = clone(QUICK).set_params(n_features_to_select=0.5).fit(X, y)
    assert half.n_features_ == 5
    assert {point.size for point in half.curve_} == {5}
    drawn = noise(d=6, seed=1)
    kept = clone(QUICK).set_params(n_features_to_select=2).fit(*drawn)
    assert kept.n_features_ == 2
    assert "not significantly better than the baseline" in kept.choice_.reason


def test_the_estimator_can_be_trained_on_the_selected_columns(fitted):
    X, y = signal(seed=0)
    new = signal(n=2000, seed=5)
    model = make_pipeline(clone(fitted), fitted.estimator_).fit(X, y)
    loss = ((model.predict(new[0]) - new[1]) ** 2).mean()
    assert loss == pytest.approx(fitted.error_.loss, rel=0.3)


def test_the_reported_error_agrees_with_the_error_on_new_rows():
    said, true = [], []
    for seed in range(4):
        X, y = signal(n=80, d=20, seed=seed)
        new, labels = signal(n=1000, d=20, seed=50 + seed)
        found = clone(QUICK).set_params(random_state=seed).fit(X, (y > 0).astype(int))
        model = clone(found.estimator_).fit(found.transform(X), y > 0)
        said.append(found.error_.wrong)
        true.append((model.predict(found.transform(new)) != (labels > 0)).mean())
    assert abs(np.mean(said) - np.mean(true)) < 0.06  # four times 80 rows determine it to 0.02


# ------------------------------------------------------------------------------ resuming


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_interrupted_run_can_be_resumed_with_the_same_result(fitted, n_jobs):
    X, y = signal()
    state = fitted.record_.trace.state
    begun = clone(QUICK).set_callbacks(Stop(4))
    begun.fit(X, y)
    assert len(begun.record_.trace.state["rounds"]) == 4
    assert not begun.record_.finished
    saved = Record.from_dict(json.loads(json.dumps(begun.record_.to_dict())))
    again = clone(QUICK).set_params(n_jobs=n_jobs).resume(X, y, record=saved)
    assert_array_equal(again.order_, fitted.order_)
    assert again.choice_ == fitted.choice_
    assert again.curve_ == fitted.curve_
    assert again.record_.trace.state["rounds"] == state["rounds"]


def test_the_record_restores_all_results(fitted):
    X, y = signal()
    saved = Record.from_dict(json.loads(json.dumps(fitted.record_.to_dict())))
    again = clone(QUICK).resume(X, y, record=saved)
    for name in ("error_", "error_all_", "error_guess_", "curve_", "plan_", "path_", "model_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert again.summary() == fitted.summary()
    assert pickle.loads(pickle.dumps(fitted)).summary() == fitted.summary()
    assert saved.seconds > 0.05  # the time of all rounds, not of restoring them
    assert saved.expression == write(QUICK)


@pytest.mark.parametrize("made", [None, 3])
def test_a_record_for_a_different_number_of_columns_is_refused(fitted, made):
    X, y = signal()
    asked = clone(QUICK).set_params(n_features_to_select=made)
    record = fitted.record_ if made is None else Record.begin(asked, X, y, {}, Grouping(10))
    with pytest.raises(RecordMismatch, match="depend on the number of features asked for"):
        clone(QUICK).set_params(n_features_to_select=4).resume(X, y, record=record)
    with pytest.raises(RecordMismatch, match=r"selector that made it, or call fit") as refusal:
        clone(QUICK).set_params(size="short").resume(X, y, record=fitted.record_)
    assert "may differ" not in str(refusal.value)


def test_ranks_are_not_reported_as_scores(fitted):
    assert fitted.explain(2).endswith("The columns are only ranked, so none has a score.")
    assert "scored" not in fitted.explain(0)


def test_the_reason_reports_the_lowest_loss():
    found = clone(QUICK).set_params(size="best").fit(*signal(n=60))
    assert ": the number with the lowest loss; held-out rows" in found.choice_.reason


def test_text_columns_are_reported_as_columns():
    X, y = signal(n=90, d=4)
    words = np.array(["red", "green", "blue"])[np.digitize(X[:, 2], [-0.5, 0.5])]
    table = pd.DataFrame(X).add_prefix("x").assign(x2=words)
    search = tamis.select(table, y, Auto(budget=0.3, size="short", random_state=0))
    assert not search.search_.units_.plain
    said = search.summary() + search.choice_.reason
    assert "unit" not in said
    assert "column" in search.choice_.reason
    saved = Record.from_dict(json.loads(json.dumps(search.record_.to_dict())))
    assert saved.parts[0].grouping.word == "column"


def test_stability_counts_all_columns_and_all_folds():
    X, _ = signal(n=60, d=4)
    y = X[:, 2] - X[:, 3]
    X = np.insert(X, 0, 3.0, axis=1)  # a constant column, which stability ignores
    found = Auto(budget=0.55, n_features_to_select=2, cv=2, random_state=0).fit(X, y)
    assert found.stability_.n_selections == 6  # cross-validation was repeated three times
    assert found.stability_.frequency.shape == (5,)
    assert_array_equal(found.stability_.frequency[[0, 3, 4]] > 0.8, [False, True, True])
    assert found.stability_.frequency[0] == 0
    agreement = found.report(X, y).agreement
    assert agreement.n == 6
    assert agreement.share[3] == found.stability_.frequency[3]


def test_a_record_of_an_older_version_is_refused(fitted):
    X, y = signal()
    trace = fitted.record_.trace.head(0)
    first = [*fitted.record_.trace.state["rounds"]["0"]]
    first[3] = [entry for entry in first[3] if entry[0] != "machine"]
    trace.state = {"rounds": {"0": first}}
    begun = replace(fitted.record_, trace=trace, finished=False, chosen=0)
    with pytest.raises(RecordMismatch, match="another version of Auto"):
        clone(QUICK).resume(X, y, record=begun)


def test_damaged_rounds_are_reported(fitted):
    plain = json.loads(json.dumps(fitted.record_.to_dict()))
    plain["trace"]["state"]["rounds"]["0"] = {"path": 3}
    del plain["checksum"]
    with pytest.raises(InvalidTable, match="damaged record"):
        clone(QUICK).resume(*signal(), record=Record.from_dict(plain))


def test_the_result_depends_on_the_seed_but_not_on_processes(fitted):
    X, y = signal()
    two = clone(QUICK).set_params(n_jobs=2).fit(X, y)
    assert two.curve_ == fitted.curve_
    assert_array_equal(two.order_, fitted.order_)
    other = clone(QUICK).set_params(random_state=1).fit(X, y)
    assert other.curve_ != fitted.curve_


def test_the_time_limit_keeps_the_finished_rounds(monkeypatch):
    monkeypatch.setattr(selection, "PATIENCE", 0.0)
    monkeypatch.setattr(selection, "LEAST_SECONDS", 0.0)
    X, y = signal(n=220, d=6)
    found = Auto(budget=5, random_state=0).fit(X, y)
    assert found.stopped_
    assert 2 <= len(found.record_.trace.state["rounds"]) < 5
    assert found.columns == [2, 5]
    assert "stopped early" in found.summary()
    again = Auto(budget=5, random_state=0).resume(X, y, record=found.record_)
    assert again.stopped_


def test_it_passes_the_checks_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Auto(budget=0.01, random_state=0), on_fail=None, on_skip=None)
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []


# ------------------------------------------------------------------------------ odd tables


@pytest.mark.parametrize("n", [4, 5, 9])
def test_very_few_rows_are_accepted(n):
    X, y = signal(n=n, d=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        assert clone(QUICK).fit(X, y).n_features_ <= 4
        clone(QUICK).fit(X, np.arange(n) % 2)


def test_constant_columns_are_dropped():
    X, y = signal(d=8)
    wide = np.insert(X, [0, 3], 5.0, axis=1)
    found = clone(QUICK).fit(wide, y)
    assert found.columns == [3, 9]
    assert found.n_features_in_ == 10
    with pytest.warns(NothingFound, match="same value in all rows"):
        nothing = clone(QUICK).fit(np.ones((30, 3)), y[:30])
    assert nothing.columns == []
    assert "0 of 3 columns" in nothing.summary()
    assert nothing.error_ is None


def test_classes_may_have_few_rows():
    X, y = signal(n=80, d=5)
    labels = np.where(y > 0, 1, 0)
    labels[:2], labels[2] = 2, 3  # two rows of a class, and one row of another
    found = Auto(budget=4, random_state=0).fit(X, labels)
    assert "forest" in {point.path for point in found.curve_}
    assert set(found.columns) >= {2}
    everyone = np.arange(80) // 2  # every class has fewer rows than there are folds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        clone(QUICK).fit(X, everyone.astype(str))


def test_rows_are_sampled_and_columns_screened(monkeypatch):
    from tamis.auto import orders, plan

    monkeypatch.setattr(plan, "MOST_ROWS", 100)
    monkeypatch.setitem(orders.SCREENED, "information", 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X[:, 50] + 0.5 * rng.normal(size=400)
    found = clone(QUICK).fit(X, y)
    assert found.n_rows_ == 100
    assert 50 in found.columns
    assert sorted(found.order_) == list(range(60))


def test_rows_of_a_group_stay_together():
    groups = np.repeat(np.arange(20), 6)
    codes = np.tile([0, 1], 60)
    for train, test in balanced_folds(codes, 120, groups, 5, 0):
        assert not set(groups[train]) & set(groups[test])
    X, y = signal()
    assert clone(QUICK).fit(X, y, groups=groups).support_[[2, 7]].all()
    with pytest.raises(InvalidParameter, match="2 group"):
        clone(QUICK).fit(X, y, groups=groups // 10)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (np.arange(9), r"for each of the 120 rows, not .* \(9,\)"),
        (np.arange(240), r"for each of the 120 rows, not .* \(240,\)"),
        (np.zeros((120, 1)), r"\(120, 1\)"),
        (np.array(["a", 1] * 60, dtype=object), r"of one type.*astype\(str\)"),
    ],
)
def test_invalid_groups_are_refused(groups, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        clone(QUICK).fit(*signal(), groups=groups)


def test_every_fold_has_a_group():
    of_groups = [[7, 0], [0, 9], [6, 0], [0, 6], [0, 3]]  # rows of each class
    groups = np.repeat(np.arange(5), np.sum(of_groups, axis=1))
    codes = np.concatenate([np.repeat([0, 1], rows) for rows in of_groups])
    for seed in range(3):
        folds = balanced_folds(codes, 31, groups, 5, seed)
        assert sorted(groups[test[0]] for _, test in folds) == list(range(5))
    X = np.random.default_rng(0).normal(size=(31, 2))
    asked = Auto(budget=0.01, n_features_to_select=1, random_state=0)
    assert asked.fit(X, codes, groups=groups).error_.wrong > 0


def test_groups_of_columns_and_fixed_ones():
    X, y = signal()
    units = {"pair": [2, 3], "other": [0, 1]}
    # a forest order is needed: information of groups is too large if there are few rows
    grouped = Auto(budget=4, feature_groups=units, random_state=0).fit(X, y)
    assert grouped.columns == [2, 3, 7]
    assert " units" in grouped.choice_.reason
    fixed = clone(QUICK).set_params(fixed_features=[0]).fit(X, y)
    assert fixed.support_[[0, 2, 7]].all()
    assert fixed.n_features_ <= 4


def test_a_frame_may_have_missing_values_and_categories():
    X, y = signal(n=150, d=5)
    frame = pd.DataFrame(X.copy(), columns=list("abcde"))  # pandas 2 shares the array
    frame.loc[::9, "c"] = np.nan
    frame["kind"] = np.where(X[:, 4] > 0, "x", "z")
    found = tamis.select(frame, y + 2 * X[:, 2], Auto(budget=0.5), random_state=0)
    assert {"c", "kind"} & set(found.columns) or {"c", "e"} <= set(found.columns)
    assert found.search_.error_.loss < found.search_.error_guess_.loss


@pytest.mark.parametrize(
    ("given", "sentence", "kind"),
    [
        ({"budget": 0}, "budget to be a number above 0", InvalidParameter),
        ({"size": "tiny"}, "'balanced', 'short' or 'best'", InvalidParameter),
        ({"cv": 1}, "number of folds of at least 2", InvalidParameter),
        ({"cv": "time:when"}, "a splitter of scikit-learn", InvalidParameter),
        ({"scoring": "roc_acu"}, "such as .roc_auc.", InvalidParameter),
        ({"class_weight": "balanced"}, "needs classes for class_weight", InvalidParameter),
        ({"n_features_to_select": "best"}, "size='best'", InvalidParameter),
        ({"n_features_to_select": 99}, "between 1 and 10.*or leave it out", InvalidParameter),
        ({"task": "ranks"}, "needs task=", InvalidParameter),
    ],
)
def test_invalid_parameters_are_refused(given, sentence, kind):
    with pytest.raises(kind, match=sentence):
        Auto(**given).fit(*signal())


def test_invalid_targets_and_tables_are_refused():
    X, y = signal()
    with pytest.raises(InvalidTarget, match="takes one target"):
        Auto().fit(X, np.c_[y, y])
    with pytest.raises(InvalidTarget, match="at least two classes"):
        Auto().fit(X, np.zeros(120, dtype=int))
    with pytest.raises(InvalidTarget, match="that varies"):
        Auto(task="regression").fit(X, np.zeros(120))
    with pytest.raises(InvalidTable, match="dense"):
        Auto().fit(sp.csr_array(X), y)
    with pytest.raises(InvalidTable, match="at least 4 rows"):
        Auto().fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="requires y"):
        Auto().fit(X)


# ------------------------------------------------------------------------------ usage


def test_it_can_be_written_as_an_expression():
    made = parse("Auto(budget=5, size='short')")
    assert write(made) == "Auto(budget=5, size='short')"
    assert isinstance(made, Auto)


def test_it_is_the_default_method(monkeypatch):
    X, y = signal()
    prepared = tamis.recipes.prepare(None, y, random_state=3, n_jobs=2, n_features_to_select=4)
    assert write(prepared) == "Auto(budget=0.5, n_features_to_select=4, random_state=3, n_jobs=2)"
    monkeypatch.setitem(tamis.recipes.request.DEFAULTS, "regression", "Auto(budget=0.5)")
    found = tamis.select(X, y, random_state=0)
    assert found.columns == [2, 7]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]).assign(y=y)
    assert tamis.select(frame, target="y", random_state=0).columns == ["x2", "x7"]


def test_it_can_follow_another_search():
    X, y = signal()
    first = Ranking(Correlation(), n_features_to_select=5)
    found = Then(first, clone(QUICK)).fit(X, y)
    assert found.columns == [2, 7]
    assert found.second_.error_.loss < found.second_.error_guess_.loss
    with pytest.warns(NothingFound, match="keeps no column"):
        assert Then(first, clone(QUICK)).fit(*noise(d=6, seed=1)).columns == []


def test_the_summary_reports_the_size_of_a_short_list():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 12))
    y = X[:, 0] + 0.25 * X[:, 1] + 0.2 * X[:, 2] + 0.15 * X[:, 3] + rng.normal(size=150)
    balanced, short = (
        Auto(budget=0.5, size=s, random_state=0).fit(X, y) for s in ("balanced", "short")
    )
    assert short.n_features_ < balanced.n_features_
    (line,) = [line for line in balanced.summary().splitlines() if line.startswith("short list: ")]
    assert line.startswith(f"short list: {short.n_features_} column")
    assert line.endswith("compared with the best list)")
    assert balanced.short_.columns == short.columns == np.flatnonzero(short.support_).tolist()
    assert balanced.short_.lost.loss == pytest.approx(balanced.short_.loss - balanced.best_.loss)


def test_a_finished_record_holds_no_predictions(fitted):
    rounds = fitted.record_.trace.state["rounds"].values()
    assert rounds
    for rows, subsets, entries, packed in rounds:
        assert list(subsets) == [fitted.path_]
        assert all(len(units) == int(size) for size, units in subsets[fitted.path_].items())
        assert rows == entries == packed == []


def test_similar_columns_are_reported_with_the_column_that_stands_for_them():
    X, y = signal(n=200, d=8)
    rng = np.random.default_rng(5)
    X[:, 5] = X[:, 2] + 0.2 * rng.normal(size=200)
    X[:, 0] = -X[:, 2] + 0.3 * rng.normal(size=200)
    found = clone(QUICK).fit(pd.DataFrame(X).add_prefix("x"), y)
    assert found.columns == ["x2", "x7"]
    assert found.stands_for_ == {"x2": ["x5", "x0"]}
    assert "similar columns left out (|r| > 0.9): x5, x0 (like x2)" in found.summary()


def test_equally_spaced_real_numbers_are_a_regression():
    X, y = signal(n=100, d=4)
    stars = np.clip(np.round(y), -2, 2)
    numbers = clone(QUICK).fit(X, stars)
    assert numbers.error_.rmse is not None
    classes = clone(QUICK).set_params(task="classification").fit(X, stars)
    assert classes.error_.wrong is not None
    assert "target: 5 classes (classification)" in classes.summary()
    assert clone(QUICK).fit(X, stars.astype(int)).error_.wrong is not None


def test_an_interaction_among_many_columns_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 120))
    y = (X[:, 17] * X[:, 90] > 0).astype(int)
    found = Auto(budget=8, cv=3, random_state=0).fit(X, y)
    assert found.support_[[17, 90]].all()
    assert found.error_.wrong < 0.15
    assert found.short_.size <= 5

"""The runner: training rows, metrics and stored results."""

import json
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_selection import RFE, SelectFpr, SelectFromModel, SelectKBest, f_classif
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from tamis.contract import Step
from tamis.criteria import Correlation, FisherScore
from tamis.datasets import load, make_additive, make_corral, make_weston
from tamis.evaluation import (
    CrossValidation,
    Fresh,
    GivenSplits,
    Realizations,
    Steps,
    Store,
    compare,
    evaluate,
    rank,
    stability,
)
from tamis.evaluation.metrics import path_events, path_still
from tamis.exceptions import (
    InvalidParameter,
    InvalidTable,
    PiecesFailed,
    SelectedOutside,
    TamisError,
)
from tamis.search import Ranking, Threshold
from tamis.svm import SVCPath

WINE = load("wine")
FISHER = Ranking(FisherScore())
KNN = KNeighborsClassifier()


class Chosen(BaseEstimator):
    """Selector that selects by a function of its rows, and records them."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        type(self).seen.append((X, y))
        self.order_ = np.arange(X.shape[1])
        self.support_ = np.ones(X.shape[1], dtype=bool)
        return self


class Breaks(BaseEstimator):
    """Selector that fails on some realizations."""

    def __init__(self, share=1.0):
        self.share = share

    def fit(self, X, y):
        if X.sum() % 1 < self.share:
            raise ValueError("no luck today")
        self.order_ = np.arange(X.shape[1])
        return self


class Remembers(ClassifierMixin, BaseEstimator):
    """Classifier that records its seed."""

    seeds: list = []  # noqa: RUF012

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        type(self).seeds.append(self.random_state)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_selection_agrees_with_a_direct_computation():
    plan = Realizations(1, train=0.6, seed=4)
    train, test, _ = plan.split(WINE.y, "wine", 0)
    scaler = StandardScaler().fit(WINE.X[train])
    X, X_test = scaler.transform(WINE.X[train]), scaler.transform(WINE.X[test])
    order = np.argsort(-f_classif(X, WINE.y[train])[0])
    found = evaluate(FISHER, WINE, plan, ["error", "ber"], estimators=KNN, sizes=[1, 3])
    assert_array_equal(found.orders(found.methods[0])[0], order)
    for size in (1, 3):
        fitted = KNeighborsClassifier().fit(X[:, order[:size]], WINE.y[train])
        predicted = fitted.predict(X_test[:, order[:size]])
        values = {m: found.values(m, found.methods[0], size=size)[0] for m in ("error", "ber")}
        assert_allclose(values["error"], np.mean(predicted != WINE.y[test]))
        assert_allclose(values["ber"], 1 - balanced_accuracy_score(WINE.y[test], predicted))


def test_scores_of_one_method_can_be_read_alone():
    methods = {name: Ranking(FisherScore()) for name in ("one", "two")}
    found = evaluate(methods, load("iris"), Realizations(2), estimators=SVC(), sizes=[1, 2])
    assert [*found.rows("two")] == [row for row in found.rows() if row.method == "two"]
    assert len([*found.rows("two")]) == 4


def test_a_method_gets_only_scaled_training_rows():
    Chosen.seen.clear()
    plan = Realizations(2, train=0.4)
    evaluate(Chosen(), WINE, plan, "n_features", sizes="own")
    for i, (X, y) in enumerate(Chosen.seen):
        train = plan.split(WINE.y, "wine", i).train
        assert_array_equal(y, WINE.y[train])
        assert_allclose(X.mean(axis=0), 0, atol=1e-12)
        assert_allclose(X.std(axis=0), 1)


class ByTwo(BaseEstimator):
    """Search that adds two columns per step, and finally one."""

    def fit(self, X, y):
        self.trace_ = [Step(np.arange(k)) for k in (2, 4, 5)]
        self.order_ = np.arange(X.shape[1])
        return self


def test_a_trace_is_scored_after_each_step():
    plan = CrossValidation(3)
    found = evaluate(
        ByTwo(), WINE, plan, ["error", "n_features"], estimators=KNN, sizes=Steps([1, 3, 9])
    )
    by_size = evaluate(ByTwo(), WINE, plan, "error", estimators=KNN, sizes=[2, 5])
    for step, size in ((1, 2), (3, 5), (9, 5)):  # there are no changes after its last step
        rule = f"step {step}"
        assert found.values("error", "ByTwo()", rule=rule) == by_size.values(
            "error", "ByTwo()", size=size
        )
        assert set(found.values("n_features", "ByTwo()", rule=rule).values()) == {size}
    assert {cell.size for cell in found.means() if cell.rule == "step 9"} == {5}


def test_the_same_columns_are_trained_only_once():
    Remembers.seeds.clear()
    evaluate(ByTwo(), WINE, CrossValidation(2), estimators=Remembers(), sizes=Steps([1, 3, 8, 9]))
    assert len(Remembers.seeds) == 4  # two subsets in two folds


def test_every_realization_may_have_its_own_sizes(tmp_path):
    plan, store = CrossValidation(3), tmp_path / "s.sqlite"
    asked = {"methods": FISHER, "data": WINE, "plan": plan, "estimators": KNN, "store": store}
    whole = evaluate(**asked, sizes=[1, 4])
    own = evaluate(**asked, sizes={0: [4], 2: [1, 4]})
    (name,) = whole.methods
    assert [(row.realization, row.size) for row in own.rows()] == [(0, 4), (2, 1), (2, 4)]
    at_4 = whole.values("error", name, size=4)
    assert own.values("error", name, size=4) == {0: at_4[0], 2: at_4[2]}
    with Store(store) as kept:
        assert len(kept) == 5  # the last realization was stored already


def test_a_store_distinguishes_steps_from_sizes(tmp_path):
    store, plan = tmp_path / "s.sqlite", CrossValidation(2)
    for sizes in ([1, 2], Steps([1, 2])):
        evaluate(ByTwo(), WINE, plan, estimators=KNN, sizes=sizes, store=store)
    with Store(store) as kept:
        assert len(kept) == 4


def test_steps_need_a_trace_and_a_number():
    with pytest.raises(TamisError, match="needs a method with trace_, and Chosen has none"):
        evaluate(Chosen(), WINE, CrossValidation(2), estimators=KNN, sizes=Steps([1]))
    with pytest.raises(InvalidParameter, match=r"at least 1, not \[0, 2\]"):
        Steps([0, 2])


def test_without_columns_the_most_frequent_class_is_predicted():
    method, plan = Ranking(Correlation(), n_features_to_select=Threshold(2)), CrossValidation(3)
    found = evaluate(
        {"none": method}, WINE, plan, ["error", "n_features"], estimators=KNN, sizes="own"
    )
    assert set(found.values("n_features", "none").values()) == {0}
    for i, error in found.values("error", "none").items():
        train, test, _ = plan.split(WINE.y, "wine", i)
        most = np.bincount(WINE.y[train]).argmax()
        assert_allclose(error, np.mean(WINE.y[test] != most))


def test_without_columns_the_mean_is_predicted():
    data = make_additive(60, random_state=0)
    method = Ranking(Correlation(), n_features_to_select=Threshold(2))
    plan = Realizations(1, train=0.5)
    found = evaluate(
        {"none": method}, data, plan, "mse", estimators=LinearRegression(), sizes="own"
    )
    train, test, _ = plan.split(data.y, "data", 0)
    expected = np.mean((data.y[test] - data.y[train].mean()) ** 2)
    assert_allclose(found.values("mse", "none")[0], expected)


def test_a_method_that_selects_nothing_cannot_be_scored_at_given_sizes():
    method = Ranking(Correlation(), n_features_to_select=Threshold(2))
    with pytest.raises(TamisError, match="NothingSelected: No feature reaches the threshold"):
        evaluate(method, WINE, CrossValidation(2), estimators=KNN, sizes=[1, 2])


def test_columns_are_not_scaled_on_request():
    Chosen.seen.clear()
    plan = Realizations(1, train=0.4)
    evaluate(Chosen(), WINE, plan, "n_features", sizes="own", normalise=False)
    assert_array_equal(Chosen.seen[0][0], WINE.X[plan.split(WINE.y, "wine", 0).train])


def test_a_tuned_classifier_reports_its_cross_validated_error():
    plan = Realizations(2, train=60)
    grid = {"C": [0.01, 1.0]}
    searches = {
        "search": GridSearchCV(SVC(), grid, cv=3),
        "spelled out": GridSearchCV(SVC(), grid, cv=3, scoring="accuracy"),
    }
    found = evaluate(searches, WINE, plan, ["cv_error", "error"])
    train = plan.split(WINE.y, "wine", 0).train
    X = StandardScaler().fit_transform(WINE.X[train])
    scores = [cross_val_score(SVC(C=C), X, WINE.y[train], cv=3).mean() for C in grid["C"]]
    for name in searches:
        assert found.values("cv_error", name)[0] == pytest.approx(1 - max(scores))


@pytest.mark.parametrize("method", [SVC(), GridSearchCV(SVC(), {"C": [1]}, scoring="f1_macro")])
def test_cross_validated_errors_need_a_search_by_error(method):
    with pytest.raises(TamisError, match="cv_error needs a search with best_score_"):
        evaluate(method, WINE, Realizations(1, train=60), "cv_error")


def test_a_path_is_measured_by_breakpoints_and_changed_rows():
    X, y = StandardScaler().fit_transform(WINE.X[:130, [1, 2, 3]]), WINE.y[:130]
    path = SVCPath("linear").fit(X[::2], y[::2])
    at, rows = path.breakpoints_, X[1::2]
    assert path_events(path, rows, y[1::2]) == len(at)
    still = 0
    for low, high in pairwise(at):
        ends = [path.predict(rows, C=C) for C in np.geomspace(low, high, 5)]
        still += all((one == ends[0]).all() for one in ends)
    found = path_still(path, rows, y[1::2])
    assert found == pytest.approx(still / (len(at) - 1))
    assert 0 < found < 1
    with pytest.raises(TamisError, match=r"path_still needs a regularization path .* not SVC\."):
        path_still(SVC().fit(X, y), X, y)


def test_regression_metrics_agree_with_a_direct_computation():
    problem = make_additive(300, random_state=0)
    plan = Realizations(1, train=100)
    train, test, _ = plan.split(problem.y, "data", 0)
    fitted = LinearRegression().fit(problem.X[train], problem.y[train])
    predicted, y = fitted.predict(problem.X[test]), problem.y[test]
    found = evaluate({"line": LinearRegression()}, problem, plan, ["mse", "scc", "r2"])
    assert_allclose(found.values("mse", "line")[0], np.mean((predicted - y) ** 2))
    n, cross = len(y), (predicted * y).sum()
    above = (n * cross - predicted.sum() * y.sum()) ** 2
    below = (n * (predicted**2).sum() - predicted.sum() ** 2) * (n * (y**2).sum() - y.sum() ** 2)
    assert_allclose(found.values("scc", "line")[0], above / below)
    assert_allclose(found.values("r2", "line")[0], fitted.score(problem.X[test], y))


def test_the_auc_is_defined_for_two_and_for_more_classes():
    plan = Realizations(1, train=0.5)
    for data in (WINE, load("wdbc")):
        train, test, _ = plan.split(data.y, data.name, 0)
        scaler = StandardScaler().fit(data.X[train])
        model = LogisticRegression().fit(scaler.transform(data.X[train]), data.y[train])
        scores = model.predict_proba(scaler.transform(data.X[test]))
        scores = scores[:, 1] if len(model.classes_) == 2 else scores
        expected = roc_auc_score(data.y[test], scores, multi_class="ovr")
        found = evaluate({"lr": LogisticRegression()}, data, plan, "auc")
        assert_allclose(found.values("auc", "lr")[0], expected)


def test_measures_of_columns():
    problem = make_weston(400, random_state=0)
    fixed = {"good": [1, 0, 5], "bad": [0, 5, 1]}
    with pytest.warns(SelectedOutside):
        found = evaluate(
            fixed,
            problem,
            Realizations(2),
            ["hit", "useless", "found", "n_features"],
            sizes=[1, 2, 3],
        )
    assert [found.values("found", "bad", size=k)[0] for k in (1, 2, 3)] == [0.5, 0.5, 1.0]
    assert list(found.values("hit", "good").values()) == [1, 1]
    assert list(found.values("hit", "bad").values()) == [0, 0]
    assert found.values("useless", "bad", size=1)[0] == 0
    assert found.values("useless", "bad", size=2)[0] == 0.5
    assert_allclose(found.values("useless", "bad", size=3)[0], 1 / 3)
    assert found.values("n_features", "bad", size=3)[1] == 3


def test_a_table_may_list_its_relevant_columns():
    table = WINE._replace(extras={"relevant_idx": np.array([0, 6])})
    with pytest.warns(SelectedOutside):
        found = evaluate({"c": [6, 1, 0]}, table, Realizations(1), ["useless"], sizes=[1, 2])
    assert [row.value for row in found.rows()] == [0, 0.5]


def test_useless_columns_are_unknown_for_an_ordinary_table():
    found = evaluate(FISHER, WINE, Realizations(1), ["useless", "found", "hit"], sizes=[2])
    assert all(np.isnan(row.value) for row in found.rows())


@pytest.mark.parametrize(
    ("method", "has_order"),
    [
        (SelectKBest(k=4), True),
        (RFE(LogisticRegression(), n_features_to_select=4), True),
        (SelectFromModel(LogisticRegression(), max_features=4), False),
        (make_pipeline(SelectKBest(k=4)), True),
        (FISHER, True),
    ],
)
def test_selectors_of_other_libraries_are_accepted(method, has_order):
    found = evaluate({"it": method}, WINE, Realizations(1), estimators=KNN, sizes="all")
    sizes = [row.size for row in found.rows()]
    assert sizes == list(range(1, 14)) if has_order else len(sizes) <= 4
    assert found.supports("it").sum() == (4 if method is not FISHER else 6)


def test_an_svm_uses_all_columns():
    found = evaluate({"svm": SVC()}, WINE, Realizations(1), ["error", "n_features"])
    assert {row.estimator for row in found.rows()} == {"itself"}
    assert found.values("n_features", "svm")[0] == 13
    assert found.tasks[0].outcome.order is None


def test_a_pipeline_that_predicts_is_scored_itself():
    found = evaluate({"p": make_pipeline(SelectKBest(k=3), KNN)}, WINE, Realizations(2))
    assert len(list(found.rows())) == 2
    assert all(0 < row.value < 0.3 for row in found.rows())


def test_the_number_of_columns_of_a_pipeline_is_that_of_its_selector():
    plan, metrics = Realizations(2), ["error", "n_features"]
    found = evaluate({"p": make_pipeline(SelectKBest(k=3), KNN)}, WINE, plan, metrics)
    assert found.values("n_features", "p") == {0: 3, 1: 3}


@pytest.mark.parametrize("last", [KNN, LogisticRegression()], ids=lambda one: type(one).__name__)
def test_a_pipeline_that_selects_no_column_predicts_the_most_frequent_class(last):
    metrics = ["error", "n_features"]
    methods = {
        "p": make_pipeline(SelectFpr(alpha=0.0), StandardScaler(), last),
        "none": DummyClassifier(),
    }
    found = evaluate(methods, WINE, Realizations(2), metrics)
    assert found.values("n_features", "p") == {0: 0, 1: 0}
    assert found.values("error", "p") == found.values("error", "none")


def test_a_classifier_without_columns_predicts_the_most_frequent_of_many_integer_classes():
    X, y = np.random.default_rng(0).normal(size=(300, 4)), np.arange(300) % 30
    methods = {
        "p": make_pipeline(SelectFpr(alpha=0.0), KNN),
        "selector": SelectFpr(alpha=0.0),
    }
    found = evaluate(methods, (X, y), Realizations(1), ["ber"], estimators=KNN, sizes="own")
    assert [row.size for row in found.rows()] == [0, 0]
    assert [row.value for row in found.rows()] == pytest.approx([29 / 30, 29 / 30])


def test_a_pipeline_that_fails_for_other_reasons_is_an_error():
    failing = make_pipeline(SelectKBest(k=3), SVC(C=-1.0))
    with pytest.raises(TamisError, match="The 'C' parameter"):
        evaluate({"p": failing}, WINE, Realizations(1))


def test_rfe_without_estimators_is_scored_itself():
    found = evaluate({"rfe": RFE(LogisticRegression())}, WINE, Realizations(1))
    assert [row.estimator for row in found.rows()] == ["itself"]
    assert [row.size for row in found.rows()] == [6]


def test_the_best_size_agrees_with_a_direct_computation():
    problem = make_weston(600, random_state=1)
    plan = Realizations(1, train=100, validation=100, test=300)
    tree = {"tree": DecisionTreeClassifier(random_state=0)}
    best = evaluate(
        {"f": FISHER}, problem, plan, ["error", "n_features"], estimators=tree, sizes="best"
    )
    split = plan.split(problem.y, "data", 0)
    on_validation = evaluate(
        {"f": FISHER},
        problem,
        GivenSplits([split.train], [split.inner[0][1]]),
        "error",
        estimators=tree,
        sizes="all",
    )
    errors = [on_validation.values("error", "f", size=k)[0] for k in range(1, 11)]
    size = int(np.argmin(errors)) + 1
    assert [row.size for row in best.rows()] == [size, size]
    given = evaluate(
        {"f": FISHER},
        problem,
        GivenSplits([split.train], [split.test]),
        "error",
        estimators=tree,
        sizes=[size],
    )
    assert_allclose(best.values("error", "f")[0], given.values("error", "f")[0])


def test_nested_cross_validation_agrees_with_a_direct_computation():
    problem = make_weston(150, random_state=2)
    plan = CrossValidation(3, inner=4, seed=5)
    found = evaluate({"f": FISHER}, problem, plan, "error", estimators={"knn": KNN}, sizes="best")
    for i in range(3):
        split = plan.split(problem.y, "data", i)
        curves = []
        for fit, check in split.inner:
            inner = evaluate(
                {"f": FISHER},
                problem,
                GivenSplits([fit], [check]),
                "error",
                estimators={"knn": KNN},
                sizes="all",
            )
            curves.append([inner.values("error", "f", size=k)[0] for k in range(1, 11)])
        size = int(np.argmin(np.round(np.mean(curves, axis=0), 12))) + 1
        outer = evaluate(
            {"f": FISHER},
            problem,
            GivenSplits([split.train], [split.test]),
            "error",
            estimators={"knn": KNN},
            sizes=[size],
        )
        assert found.tasks[i].outcome.scores[0].size == size
        assert_allclose(found.values("error", "f")[i], outer.values("error", "f")[0])


def test_seeds_depend_on_the_label_and_the_realization():
    Remembers.seeds.clear()
    for _ in range(2):
        evaluate({"r": Remembers()}, WINE, Realizations(3))
    first, second = Remembers.seeds[:3], Remembers.seeds[3:]
    assert first == second
    assert len(set(first)) == 3
    assert None not in first
    Remembers.seeds.clear()
    evaluate({"r": Remembers(random_state=7)}, WINE, Realizations(2))
    assert Remembers.seeds == [7, 7]


def test_results_do_not_depend_on_the_other_methods():
    methods = {"forest": DecisionTreeClassifier(), "knn": KNN, "dummy": DummyClassifier()}
    together = evaluate(methods, WINE, Realizations(3))
    alone = evaluate({"x": DecisionTreeClassifier()}, WINE, Realizations(2))
    assert list(together.values("error", "forest").values())[:2] == list(
        alone.values("error", "x").values()
    )


def test_a_failing_method_does_not_stop_the_rest(tmp_path):
    store = tmp_path / "s.sqlite"
    with pytest.warns(PiecesFailed, match=r"2 of 4 tasks failed.*no luck today"):
        found = evaluate(
            {"bad": Breaks(), "good": FISHER},
            WINE,
            Realizations(2),
            "n_features",
            store=store,
            sizes=[1],
        )
    assert [(f.method, f.realization) for f in found.failures] == [("bad", 0), ("bad", 1)]
    assert found.methods == ["good"]
    with Store(store) as kept:
        assert len(kept) == 2  # a failure is tried again


def test_an_error_is_raised_if_all_methods_fail():
    with pytest.raises(TamisError, match=r"failed in all tasks.*no luck today"):
        evaluate({"bad": Breaks()}, WINE, Realizations(2), "n_features")


def test_fresh_draws_differ_between_realizations_and_are_reproducible():
    data = Fresh(make_corral, 64, {"variant": 47})
    found = evaluate({"f": FISHER}, data, Realizations(3, train=0.5), "hit")
    again = evaluate({"f": FISHER}, data, Realizations(2, train=0.5), "hit")
    assert len(set(found.orders("f"))) == 3
    assert found.orders("f")[:2] == again.orders("f")
    assert found.data == ["make_corral"]


def test_several_data_sets_and_ranks():
    data = {"wine": WINE, "iris": load("iris"), "wdbc": load("wdbc")}
    found = evaluate({"svm": SVC(), "dummy": DummyClassifier(), "knn": KNN}, data, Realizations(2))
    ranks = rank(found)
    assert ranks.methods == ("svm", "dummy", "knn")
    assert ranks.ranks[1] == 3
    assert found.data == list(data)


def test_compare_finds_a_difference_and_prints_it():
    found = evaluate({"knn": KNN, "dummy": DummyClassifier(), "again": KNN}, WINE, Realizations(8))
    result = compare(found, "knn")
    assert [c.method for c in result.contrasts] == ["dummy", "again"]
    assert [c.sign for c in result.contrasts] == ["+", ""]
    assert [c.printed for c in result.contrasts] == ["0.00+", "1.00"]
    assert result.to_frame().shape == (2, 11)
    loser = compare(found, "dummy", test="paired t").contrasts
    assert [c.sign for c in loser] == ["-", "-"]
    assert repr(result).endswith("wins 1, loses 0 of 2>")


def test_p_values_are_adjusted_over_all_contrasts():
    found = evaluate(
        {"a": FISHER, "b": SelectKBest()}, WINE, Realizations(5), estimators=KNN, sizes=[1, 2, 3]
    )
    result = compare(found, "a", test="wilcoxon")
    assert len(result.contrasts) == 3
    assert all(c.p_adjusted >= c.p_value for c in result.contrasts)


def test_supports_can_be_passed_to_stability():
    found = evaluate({"f": FISHER}, WINE, Realizations(5), "n_features", sizes=[3])
    assert found.supports("f", size=3).sum(axis=1).tolist() == [3] * 5
    assert 0 < stability(found.supports("f", size=3)).nogueira <= 1


def test_frames_have_one_row_per_score():
    found = evaluate({"f": FISHER}, WINE, Realizations(2), "error", estimators=KNN, sizes=[1, 2])
    frame = found.to_frame()
    assert frame.shape == (4, 8)
    assert sorted(frame["value"].to_list()) == sorted(row.value for row in found.rows())
    assert found.means()[0].n_realizations == 2


# ---- extreme numbers ----


@pytest.mark.parametrize("scale", [1e150, 1e200, 1e300, 1e307, 1e-200, 1e-300])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_scale_of_columns_changes_nothing(task, scale):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int) if task == "classification" else X[:, 0] + X[:, 1]
    scale = 2.0 ** np.round(np.log2(scale))  # no digit changes
    method = {"f": Ranking(Correlation())}
    metrics = ["error", "auc"] if task == "classification" else ["mse", "scc"]
    model = KNN if task == "classification" else KNeighborsRegressor()
    asked = {"plan": Realizations(3), "metrics": metrics, "estimators": model, "sizes": [1, 2]}
    usual = evaluate(method, (X, y), **asked)
    scaled = evaluate(method, (X * [scale, 1, scale, 1 / scale], y), **asked)
    assert list(scaled.rows()) == list(usual.rows())


def test_errors_that_overflow_are_infinite():
    X, y = np.arange(40.0)[:, None] % 7, 1e200 * np.arange(40.0)
    found = evaluate({"line": DummyRegressor()}, (X, y), Realizations(2), ["mse", "scc"])
    assert set(found.values("mse", "line").values()) == {np.inf}
    assert set(found.values("scc", "line").values()) == {0.0}
    assert [cell.mean for cell in found.means()] == [np.inf, 0.0]


# ---- leakage ----


def test_selection_outside_the_folds_is_optimistic_on_noise():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(60, 500)), np.repeat([0, 1], 30)
    plan = Realizations(40, train=0.5)
    inside = evaluate(
        {"f": SelectKBest(k=5)}, (X, y), plan, "accuracy", estimators=KNN, sizes="own"
    )
    values = np.array(list(inside.values("accuracy", "f").values()))
    # forty splits of sixty rows are not independent: use the corrected standard error
    error = np.sqrt(values.var(ddof=1) * (1 / 40 + 1))
    assert abs(values.mean() - 0.5) < 2 * error
    outside = np.argsort(-f_classif(X, y)[0])[:5]
    with pytest.warns(SelectedOutside, match="fitted before the rows were split"):
        optimistic = evaluate({"f": outside}, (X, y), plan, "accuracy", estimators=KNN, sizes="own")
    assert np.mean(list(optimistic.values("accuracy", "f").values())) > 0.65


@pytest.mark.parametrize(
    "method",
    [
        FrozenEstimator(SelectKBest(k=3).fit(WINE.X, WINE.y)),
        SelectFromModel(LogisticRegression(max_iter=9999).fit(WINE.X, WINE.y), prefit=True),
        make_pipeline(FrozenEstimator(SelectKBest(k=3).fit(WINE.X, WINE.y)), KNN),
        np.array([1, 2]),
        WINE.X[0] > 3,
    ],
    ids=["frozen", "prefit", "frozen in a pipeline", "columns", "mask"],
)
def test_a_selection_made_outside_the_folds_causes_a_warning(method):
    with pytest.warns(SelectedOutside):
        evaluate({"it": method}, WINE, Realizations(1), estimators=KNN, sizes="own")


def test_a_fitted_method_is_fitted_again_in_each_fold():
    fitted = SelectKBest(k=1).fit(np.eye(4, 2), [0, 1, 0, 1])
    found = evaluate({"it": fitted}, WINE, Realizations(1), estimators=KNN, sizes="own")
    assert found.tasks[0].outcome.n_features == 13


# ---- messages ----


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"methods": []}, "at least one method"),
        ({"methods": "svm"}, "scikit-learn estimators as methods, not 'svm'"),
        ({"methods": [SVC, KNN]}, "estimators as methods"),
        ({"methods": [KNN, KNeighborsClassifier()]}, "two of them are written alike"),
        ({"metrics": "errror"}, "No metric is called 'errror'"),
        ({"metrics": "train_errror"}, "No metric is called 'errror'"),
        ({"metrics": "train_found"}, "No metric is called 'train_found'"),
        ({"metrics": ["error", "stability"]}, "not a metric of one realization"),
        ({"metrics": []}, "at least one metric"),
        ({"sizes": "some"}, "sizes='all', 'own', 'best'"),
        ({"sizes": [0]}, "at least 1"),
        ({"sizes": "best"}, "metric of their predictions"),
        ({"data": {}}, "needs data"),
        ({"data": 3}, "as a pair"),
    ],
)
def test_invalid_input_is_refused(arguments, sentence):
    given = {"methods": FISHER, "data": WINE, "plan": Realizations(1), **arguments}
    with pytest.raises(InvalidParameter, match=sentence):
        evaluate(**given)


def test_invalid_tables_are_refused():
    for data in (([["a"]], [0]), (np.eye(3), [0, 1]), (np.zeros(3), [0, 1, 1])):
        with pytest.raises(InvalidTable):
            evaluate(KNN, data, Realizations(1))


def test_a_selector_without_estimators_is_refused_with_a_remedy():
    with pytest.raises(TamisError, match=r"Write estimators=SVC\(\)"):
        evaluate(FISHER, WINE, Realizations(1))


def test_a_method_that_neither_selects_nor_predicts_is_refused():
    with pytest.raises(TamisError, match="nothing to measure"):
        evaluate(StandardScaler(), WINE, Realizations(1))


def test_best_needs_validation_rows():
    with pytest.raises(TamisError, match=r"validation=0\.25"):
        evaluate(FISHER, WINE, Realizations(1), estimators=KNN, sizes="best")


def test_an_ambiguous_request_lists_the_options():
    found = evaluate({"f": FISHER}, WINE, Realizations(1), estimators=KNN, sizes=[1, 2])
    with pytest.raises(InvalidParameter, match=r"one of size \[1, 2\]"):
        found.values("error", "f")
    with pytest.raises(InvalidParameter, match="no scores for metric='auc'"):
        found.values("auc", "f")
    with pytest.raises(InvalidParameter, match="method among f, got 'g'"):
        found.orders("g")
    with pytest.raises(InvalidParameter, match="as reference"):
        compare(found, "g")
    assert json.dumps([row._asdict() for row in found.rows()])


def test_the_time_of_a_method_can_be_the_metric():
    found = evaluate({"fisher": FISHER}, WINE, Realizations(2), "seconds")
    values = found.values("seconds", "fisher")
    assert len(values) == 2
    assert all(value > 0 for value in values.values())


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.zeros((0, 3)), [], "at least two rows"),
        (np.zeros((5, 0)), [0, 1, 0, 1, 0], "and one column"),
        (np.zeros((4, 2)), np.array(["a", 1, "a", 1], dtype=object), r"one type.*y\.astype\(str\)"),
    ],
)
def test_unusable_rows_are_refused(X, y, sentence):
    with pytest.raises(InvalidTable, match=sentence):
        evaluate(DummyClassifier(), (X, y))


def test_a_method_with_an_estimator_is_scored_by_it():
    named = SelectFromModel(LogisticRegression(), threshold=0.5)
    plan, metrics = Realizations(2, train=100), ["error", "n_features"]
    found = evaluate({"named": named}, WINE, plan, metrics, sizes="own")
    given = evaluate(
        {"named": named}, WINE, plan, metrics, sizes="own", estimators=LogisticRegression()
    )
    for metric in metrics:
        assert found.values(metric, "named") == given.values(metric, "named")


@pytest.mark.parametrize("normalise", [True, False])
def test_metrics_of_the_training_rows_agree_with_an_explicit_loop(normalise):
    plan = Realizations(2, train=60, seed=3)
    metrics = ["train_error", "error", "train_balanced_accuracy"]
    methods = {"fisher": FISHER, "all": make_pipeline(StandardScaler(), KNN)}
    how = {"sizes": [3], "estimators": KNN, "normalise": normalise}
    found = evaluate(methods, WINE, plan, metrics, **how)
    for i in range(2):
        train, test, *_ = plan.split(WINE.y, WINE.name, i)
        X = WINE.X
        if normalise:
            X = StandardScaler().fit(X[train]).transform(X)
        order = found.orders("fisher")[i]
        for method, columns in (("fisher", list(order[:3])), ("all", slice(None))):
            fitted = KNN if method == "fisher" else methods["all"]
            fitted = fitted.fit(X[train][:, columns], WINE.y[train])
            predicted = fitted.predict(X[train][:, columns])
            where = {"size": 3} if method == "fisher" else {}
            values = [found.values(name, method, **where)[i] for name in metrics]
            assert values == pytest.approx(
                [
                    np.mean(predicted != WINE.y[train]),
                    np.mean(fitted.predict(X[test][:, columns]) != WINE.y[test]),
                    balanced_accuracy_score(WINE.y[train], predicted),
                ]
            )

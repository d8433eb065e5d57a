"""Integration with scikit-learn: tables, routing, callbacks, pipelines and errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.callback import ProgressBar
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis.criteria import (
    Correlation,
    CrossValidated,
    FisherScore,
    Importances,
    MutualInformation,
    Scatter,
    Scored,
)
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidScore,
    InvalidTable,
    InvalidTarget,
    NotProvenOptimal,
    RecordMismatch,
)
from tamis.search import (
    Backward,
    BranchAndBound,
    Exhaustive,
    FloatingForward,
    Forward,
    Genetic,
    Ranking,
    RecursiveElimination,
    Then,
)
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop
from tests.laws.catalogue import searches


class TestTables:
    X, y = load_iris(return_X_y=True)
    names = ("sepal length", "sepal width", "petal length", "petal width")

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_frames_keep_their_column_names(self, frame):
        table = frame(dict(zip(self.names, self.X.T, strict=True)))
        search = Forward(Scatter(), n_features_to_select=2).fit(table, self.y)
        plain = Forward(Scatter(), n_features_to_select=2).fit(self.X, self.y)
        assert_array_equal(search.support_, plain.support_)
        assert list(search.get_feature_names_out()) == list(np.array(self.names)[plain.support_])
        assert search.record_.feature_names == self.names
        assert search.record_.data == plain.record_.data

    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    def test_transform_can_return_frames(self, kind):
        table = pd.DataFrame(self.X, columns=list(self.names))
        search = Ranking(FisherScore(), n_features_to_select=2).set_output(transform=kind)
        out = search.fit_transform(table, self.y)
        assert type(out).__module__.startswith(kind)
        assert list(out.columns) == ["petal length", "petal width"]

    def test_string_labels_and_string_series(self):
        labels = np.array(["setosa", "versicolor", "virginica"])[self.y]
        plain = Forward(Scatter(), n_features_to_select=2).fit(self.X, self.y)
        for y in (labels, pd.Series(labels), pl.Series(labels), labels.astype(object)):
            search = Forward(Scatter(), n_features_to_select=2).fit(self.X, y)
            assert_array_equal(search.support_, plain.support_)

    @pytest.mark.parametrize("scale", [1e-200, 1e160])
    def test_columns_of_any_scale(self, scale):
        plain = Forward(FisherScore(), n_features_to_select=2).fit(self.X, self.y)
        search = Forward(FisherScore(), n_features_to_select=2).fit(self.X * scale, self.y)
        assert_array_equal(search.support_, plain.support_)

    def test_only_the_criterion_gets_standardised_columns(self):
        X = self.X * [1, 1e3, 1, 1]
        wide = Scored(lambda X, y: float(X.var(axis=0).max()))
        assert Forward(wide, n_features_to_select=1, standardize=False).fit(X).support_[1]
        assert Forward(wide, n_features_to_select=1).fit(X).support_[0]  # all are tied: the first
        out = Forward(Scatter("J1"), n_features_to_select=4).fit(X, self.y).transform(X)
        assert_array_equal(out, X)


class TestBadInput:
    X, y = table()

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("cls", searches())
    def test_missing_and_infinite_numbers_are_refused(self, cls, bad):
        X = self.X.copy()
        X[3, 2] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            cls(Scatter(), n_features_to_select=2).fit(X, self.y)

    @pytest.mark.parametrize("bad", [np.inf, -np.inf])
    @pytest.mark.parametrize("made", [np.asarray, list, pd.Series])
    def test_an_infinite_target_is_refused(self, bad, made):
        y = self.X[:, 0].copy()
        y[[3, 5]] = bad
        with pytest.raises(InvalidTarget, match=r"y is infinity in 2 row\(s\): 3, 5\. Leave"):
            Ranking(Correlation()).fit(self.X, made(y))

    def test_shapes(self):
        with pytest.raises(ValueError, match="1 sample"):
            Forward(Scatter()).fit(self.X[:1], self.y[:1])
        with pytest.raises(ValueError, match="minimum of 1 is required"):
            Forward(Scatter()).fit(self.X[:, :0], self.y)
        with pytest.raises(ValueError, match="0 sample"):
            Forward(Scatter()).fit(self.X[:0], self.y[:0])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            Forward(Scatter()).fit(self.X, self.y[:-1])
        with pytest.raises(ValueError, match="Expected 2D array"):
            Forward(Scatter()).fit(self.X[:, 0], self.y)

    def test_text_in_a_table_is_refused(self):
        with pytest.raises(ValueError, match="could not convert string to float"):
            Forward(Scatter()).fit(np.array([["a", "b"], ["c", "d"]], dtype=object), [0, 1])
        numbers = self.X.astype(object)
        assert Forward(Scatter(), n_features_to_select=2).fit(numbers, self.y).n_features_ == 2

    def test_a_single_class_is_refused(self):
        with pytest.raises(InvalidTarget, match="at least two classes"):
            Forward(Scatter()).fit(self.X, np.zeros(60))

    def test_a_numeric_target_is_refused_if_classes_are_needed(self):
        with pytest.raises(InvalidTarget, match="needs classes"):
            Ranking(FisherScore()).fit(self.X, self.X[:, 0])

    def test_labels_of_several_types(self):
        mixed = np.array([None, "a"] * 30, dtype=object)
        with pytest.raises((InvalidTarget, ValueError), match=r"one type|None|NaN"):
            Forward(Scatter()).fit(self.X, mixed)
        with pytest.raises((InvalidTarget, ValueError), match=r"one type|mix"):
            Forward(Scatter()).fit(self.X, np.array([1, "a"] * 30, dtype=object))

    @pytest.mark.parametrize("random_state", [-1, "a", 1.5])
    def test_an_invalid_seed_is_refused(self, random_state):
        with pytest.raises(InvalidParameter, match="random_state needs"):
            Genetic(Scatter(), random_state=random_state).fit(self.X, self.y)

    def test_a_missing_target_is_refused(self):
        with pytest.raises(ValueError, match="requires y to be passed"):
            Forward(Scatter()).fit(self.X)

    def test_sparse_tables_are_refused(self):
        from scipy import sparse

        with pytest.raises(InvalidTable, match="X is sparse"):
            Forward(Scatter()).fit(sparse.csr_array(self.X), self.y)

    def test_a_score_of_nan_is_refused(self):
        failing = Scored(lambda X, y: np.nan)
        with pytest.raises(InvalidScore, match="returned NaN"):
            Forward(failing).fit(self.X, self.y)

    def test_fewer_rows_than_columns_are_accepted(self):
        draw = np.random.default_rng(0)
        X, y = draw.normal(size=(10, 40)), np.arange(10) % 2
        for criterion in (FisherScore(), MutualInformation(), Importances(SVC(kernel="linear"))):
            assert Ranking(criterion, n_features_to_select=3).fit(X, y).n_features_ == 3


class TestCapabilities:
    X, y = table()

    @pytest.mark.parametrize("cls", [Forward, FloatingForward, Exhaustive, Genetic])
    def test_the_error_names_search_and_criterion_and_a_remedy(self, cls):
        search = cls(Importances(SVC(kernel="linear")))
        sentence = (
            rf"{cls.__name__} needs .*Importances only scores removals\. "
            r"Use RecursiveElimination\(Importances\(\.\.\.\)\)"
        )
        with pytest.raises(IncompatibleCriterion, match=sentence):
            search.fit(None, None)  # before the data are used

    @pytest.mark.parametrize("thing", [SVC(), "J3", None, 3, Scatter])
    def test_an_object_that_is_not_a_criterion_is_refused(self, thing):
        with pytest.raises(IncompatibleCriterion, match="CrossValidated"):
            Forward(thing).fit(self.X, self.y)

    def test_ranking_accepts_forward_and_backward_criteria(self):
        importances = Importances(SVC(kernel="linear"))
        search = Ranking(importances, n_features_to_select=3).fit(self.X, self.y)
        expected = importances.fit(*table()).loss(np.arange(7))
        assert_array_equal(search.order_, np.argsort(-expected))
        with pytest.raises(IncompatibleCriterion, match="by='removal'"):
            Ranking(importances, by="alone").fit(self.X, self.y)
        with pytest.raises(InvalidParameter, match="by to be"):
            Ranking(importances, by="chance").fit(self.X, self.y)


class TestScikitLearn:
    X, y = load_breast_cancer(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)

    @pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (5, 3), (2, 4)])
    def test_elimination_agrees_with_rfe(self, size, step):
        svc = SVC(kernel="linear")
        ours = RecursiveElimination(Importances(svc), n_features_to_select=size, step=step)
        theirs = RFE(svc, n_features_to_select=size, step=step).fit(self.scaled, self.y)
        assert_array_equal(ours.fit(self.scaled, self.y).ranking_, theirs.ranking_)

    def test_grid_search_can_set_parameters_of_the_criterion(self):
        pipe = make_pipeline(
            StandardScaler(), RecursiveElimination(Importances(SVC(kernel="linear")), step=5), SVC()
        )
        grid = GridSearchCV(
            pipe,
            {
                "recursiveelimination__n_features_to_select": [5, 10],
                "recursiveelimination__criterion__estimator__C": [0.1, 1.0],
            },
            cv=3,
        ).fit(self.X, self.y)
        assert grid.best_score_ > 0.93
        kept = grid.best_estimator_["recursiveelimination"]
        assert kept.n_features_ == grid.best_params_["recursiveelimination__n_features_to_select"]

    def test_a_selection_runs_inside_the_folds(self):
        pipe = make_pipeline(Ranking(FisherScore(), n_features_to_select=3), LogisticRegression())
        assert cross_val_score(pipe, self.scaled, self.y).mean() > 0.9


class TestMetadata:
    X, y = table(90, 6)

    def weights(self):
        return np.where(np.arange(90) < 45, 1.0, 0.0)

    def test_weights_are_passed_to_the_estimator(self):
        search = RecursiveElimination(Importances(LogisticRegression()), n_features_to_select=2)
        half = RecursiveElimination(Importances(LogisticRegression()), n_features_to_select=2)
        search.set_params(standardize=False).fit(self.X, self.y, sample_weight=self.weights())
        half.set_params(standardize=False).fit(self.X[:45], self.y[:45])
        np.testing.assert_allclose(search.scores_, half.scores_, rtol=1e-3)

    def test_weights_are_routed_to_the_estimator_on_request(self):
        with config_context(enable_metadata_routing=True):
            estimator = LogisticRegression().set_fit_request(sample_weight=True)
            routed = RecursiveElimination(Importances(estimator), n_features_to_select=2)
            routed.fit(self.X, self.y, sample_weight=self.weights())
        plain = RecursiveElimination(Importances(LogisticRegression()), n_features_to_select=2)
        plain.fit(self.X, self.y, sample_weight=self.weights())
        np.testing.assert_allclose(routed.scores_, plain.scores_)

    def test_groups_are_passed_to_the_splitter(self):
        groups = np.arange(90) // 9
        judge = CrossValidated(LogisticRegression(), cv=GroupKFold(5))
        search = Forward(judge, n_features_to_select=2, standardize=False)
        search.fit(self.X, self.y, groups=groups)
        subset = np.flatnonzero(search.support_)
        expected = cross_val_score(
            LogisticRegression(), self.X[:, subset], self.y, groups=groups, cv=GroupKFold(5)
        ).mean()
        np.testing.assert_allclose(search.trace_[-1].value, expected)

    def test_a_filter_cannot_use_weights(self):
        with pytest.raises(InvalidParameter, match="cannot use sample_weight"):
            Ranking(FisherScore()).fit(self.X, self.y, sample_weight=self.weights())


class TestCallbacks:
    def test_a_callback_sees_every_step_and_may_stop(self):
        X, y = table()
        seen = []

        class Watch(Stop):
            def on_fit_task_end(self, estimator, context):
                if context.task_name == "step":
                    seen.append(estimator.trace_[-1].subset.tolist())
                return super().on_fit_task_end(estimator, context)

        search = Backward(Scatter(), n_features_to_select=2).set_callbacks(Watch(4)).fit(X, y)
        assert [len(subset) for subset in seen] == [7, 6, 5, 4]
        assert search.n_features_ == 4
        assert not search.record_.finished

    def test_scikit_learns_progress_bar_works(self, capsys):
        X, y = table()
        Forward(Scatter(), n_features_to_select=3).set_callbacks(ProgressBar()).fit(X, y)
        assert "Forward" in capsys.readouterr().out

    def test_the_library_prints_nothing(self, capsys):
        X, y = table()
        Forward(Scatter(), n_features_to_select=3).fit(X, y)
        captured = capsys.readouterr()
        assert captured.out == captured.err == ""


class TestThen:
    X, y = load_breast_cancer(return_X_y=True)

    def test_results_refer_to_the_original_columns(self):
        first = Ranking(FisherScore(), n_features_to_select=10)
        second = Exhaustive(Scatter(), n_features_to_select=3)
        search = Then(first, second).fit(self.X, self.y)
        top = np.sort(first.fit(self.X, self.y).order_[:10])
        expected = top[second.fit(self.X[:, top], self.y).support_]
        assert_array_equal(np.flatnonzero(search.support_), expected)
        assert_array_equal(np.sort(search.order_), np.arange(30))
        assert set(search.order_[:10]) == set(top)
        assert search.n_evaluations_ == 30 + 120
        assert search.record_.parts[0].expression == search.first_.record_.expression

    def test_compositions_can_be_nested(self):
        search = Then(
            Ranking(FisherScore(), n_features_to_select=20),
            Then(
                Ranking(MutualInformation(), n_features_to_select=10),
                Forward(Scatter(), n_features_to_select=2),
            ),
        ).fit(self.X, self.y)
        assert search.n_features_ == 2
        assert_array_equal(np.sort(search.order_[:2]), np.flatnonzero(search.support_))

    def test_a_share_is_relative_to_the_columns_of_the_second_search(self):
        first = Ranking(FisherScore(), n_features_to_select=10)
        search = Then(first, Ranking(MutualInformation(), n_features_to_select=0.5))
        assert search.fit(self.X, self.y).n_features_ == 5

    def test_the_parts_must_be_searches(self):
        with pytest.raises(IncompatibleCriterion, match="two searches"):
            Then(Scatter(), Forward(Scatter())).fit(self.X, self.y)

    def test_both_parts_are_checked_before_any_work(self):
        asked = []
        first = Forward(Scored(lambda X, y: asked.append(1) or 1.0), n_features_to_select=3)
        with pytest.raises(IncompatibleCriterion, match="Importances only scores removals"):
            Then(first, Forward(Importances(SVC(kernel="linear")))).fit(self.X, self.y)
        with pytest.raises(InvalidParameter, match="between 1 and 3"):
            Then(first, Forward(Scatter(), n_features_to_select=4)).fit(self.X, self.y)
        assert asked == []

    def test_a_filter_before_a_weighted_search(self):
        weights = np.where(np.arange(len(self.y)) % 2, 1.0, 0.2)
        filtered = Ranking(FisherScore(), n_features_to_select=4)

        def search(estimator):
            return Then(
                filtered, RecursiveElimination(Importances(estimator), n_features_to_select=2)
            )

        by_use = search(LogisticRegression()).fit(self.X, self.y, sample_weight=weights)
        with config_context(enable_metadata_routing=True):
            asking = LogisticRegression().set_fit_request(sample_weight=True)
            by_request = search(asking).fit(self.X, self.y, sample_weight=weights)
        assert_array_equal(by_use.scores_, by_request.scores_)
        unweighted = search(LogisticRegression()).fit(self.X, self.y)
        assert (by_use.second_.scores_ != unweighted.second_.scores_).any()
        with pytest.raises(InvalidParameter, match="cannot use sample_weight"):
            Then(filtered, filtered).fit(self.X, self.y, sample_weight=weights)


class TestResume:
    X, y = table()

    def stopped(self, search, after=2, **params):
        return search.set_callbacks(Stop(after)).fit(self.X, self.y, **params).record_

    def test_the_number_of_processes_may_change(self):
        judge = CrossValidated(LogisticRegression(), n_jobs=1)
        record = self.stopped(Forward(judge, n_features_to_select=3))
        other = Forward(judge.set_params(n_jobs=2), n_features_to_select=3)
        assert other.resume(self.X, self.y, record=record).n_features_ == 3

    def test_a_budget_may_be_raised(self):
        X, y = table(150, 14, seed=1)
        short = BranchAndBound(Scatter(), n_features_to_select=7, max_evaluations=20)
        with pytest.warns(NotProvenOptimal):
            record = short.fit(X, y).record_
        assert not record.finished
        long = BranchAndBound(Scatter(), n_features_to_select=7).resume(X, y, record=record)
        whole = BranchAndBound(Scatter(), n_features_to_select=7).fit(X, y)
        assert long.gap_ == 0
        assert_array_equal(long.support_, whole.support_)

    def test_weights_are_part_of_the_data(self):
        def search():
            return RecursiveElimination(Importances(LogisticRegression()), n_features_to_select=2)

        record = self.stopped(search(), sample_weight=np.linspace(0.1, 1, 60))
        with pytest.raises(RecordMismatch, match="weights"):
            search().resume(self.X, self.y, record=record)

    def test_a_finished_record_is_restored_without_work(self):
        search = FloatingForward(Scatter(), n_features_to_select=4).fit(self.X, self.y)
        again = FloatingForward(Scatter(), n_features_to_select=4)
        again.resume(self.X, self.y, record=search.record_)
        assert again.n_evaluations_ == search.n_evaluations_

    def test_a_search_can_be_resumed_from_a_file(self, tmp_path):
        record = self.stopped(Forward(Scatter(), n_features_to_select=3))
        record.save(tmp_path / "record.json")
        search = Forward(Scatter(), n_features_to_select=3)
        search.resume(self.X, self.y, record=tmp_path / "record.json")
        assert search.n_features_ == 3
        with pytest.raises(InvalidParameter, match="resume needs a record"):
            search.resume(self.X, self.y, record=3)


def test_selected_columns_are_listed_by_name_or_by_index():
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = Ranking(FisherScore(), n_features_to_select=2)
    with pytest.raises(NotFittedError):
        _ = search.columns
    assert search.fit(X, y).columns == ["petal length (cm)", "petal width (cm)"]
    assert search.fit(X.to_numpy(), y).columns == [2, 3]
    both = Then(Ranking(FisherScore(), n_features_to_select=3), search)
    assert both.fit(X, y).columns == ["petal length (cm)", "petal width (cm)"]

"""Importances against scikit-learn's RFE."""

import json
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    make_classification,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFE
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, SVR

from tamis.criteria.importances import Importances, importances
from tamis.criteria.model import is_tuner, plain_params
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, MissingExtra
from tamis.search import RecursiveElimination
from tamis.svm import SVCPathCV


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


class TestLikeRFE:
    @pytest.mark.parametrize("size", [1, 5])
    @pytest.mark.parametrize("step", [1, 3])
    def test_a_linear_svm_gives_the_ranking_of_sklearn(self, cancer, size, step):
        model = SVC(kernel="linear")
        theirs = RFE(model, n_features_to_select=size, step=step).fit(*cancer)
        ours = RecursiveElimination(Importances(model), n_features_to_select=size, step=step)
        assert_array_equal(ours.fit(*cancer).ranking_, theirs.ranking_)

    def test_several_outputs_give_the_ranking_of_sklearn(self):
        X, y = load_iris(return_X_y=True)
        X, model = scale(X), LogisticRegression()
        theirs = RFE(model, n_features_to_select=1).fit(X, y)
        ours = RecursiveElimination(Importances(model), n_features_to_select=1).fit(X, y)
        assert_array_equal(ours.ranking_, theirs.ranking_)

    def test_a_regression_gives_the_ranking_of_sklearn(self):
        X, y = load_diabetes(return_X_y=True)
        X = scale(X)
        theirs = RFE(SVR(kernel="linear"), n_features_to_select=2).fit(X, y)
        ours = RecursiveElimination(Importances(SVR(kernel="linear")), n_features_to_select=2)
        assert_array_equal(ours.fit(X, y).ranking_, theirs.ranking_)

    def test_pipeline(self, cancer):
        X, y = cancer[0][:, :12], cancer[1]
        model = Pipeline([("scale", StandardScaler()), ("clf", Ridge())])
        path = "named_steps.clf.coef_"
        theirs = RFE(model, n_features_to_select=3, importance_getter=path).fit(X, y)
        ours = RecursiveElimination(
            Importances(model, importance_getter=path), n_features_to_select=3
        ).fit(X, y)
        assert_array_equal(ours.ranking_, theirs.ranking_)

    def test_a_forest_gives_the_ranking_of_sklearn(self, cancer):
        X, y = cancer[0][:, :10], cancer[1]
        model = RandomForestClassifier(20, random_state=0)
        theirs = RFE(model, n_features_to_select=1).fit(X, y)
        ours = RecursiveElimination(Importances(model), n_features_to_select=1).fit(X, y)
        assert_array_equal(ours.ranking_, theirs.ranking_)


class TestImportances:
    def test_squares_are_summed_over_outputs(self):
        X, y = load_iris(return_X_y=True)
        subset = np.array([0, 3])
        coef = SVC(kernel="linear").fit(X[:, subset], y).coef_
        found = Importances(SVC(kernel="linear")).fit(X, y).loss(subset)
        assert_allclose(found, (coef**2).sum(axis=0))

    def test_importances_of_a_forest_are_not_changed(self):
        X, y = load_iris(return_X_y=True)
        model = RandomForestClassifier(5, random_state=0)
        found = Importances(model).fit(X, y).loss(np.arange(4))
        assert_array_equal(found, clone(model).fit(X, y).feature_importances_)

    def test_sparse_coefficients(self):
        class Model:
            coef_ = csr_array([[1.0, 0, -2], [3, 0, 0]])

        assert_array_equal(importances(Model()), [10, 0, 4])

    def test_the_importances_may_be_a_function(self):
        X, y = load_diabetes(return_X_y=True)
        found = Importances(LinearRegression(), importance_getter=lambda m: m.coef_).fit(X, y)
        assert_allclose(found.loss(np.arange(10)), LinearRegression().fit(X, y).coef_ ** 2)

    def test_a_loss_is_a_function_of_the_subset(self):
        X, y = load_iris(return_X_y=True)
        criterion = Importances(RandomForestClassifier(5)).fit(X, y)
        assert_array_equal(criterion.loss(np.arange(4)), criterion.loss(np.arange(4)))

    def test_weights_are_passed_to_fit(self):
        X, y = load_iris(return_X_y=True)
        weight = np.linspace(0.1, 1, 150)
        found = Importances(SVC(kernel="linear")).fit(X, y, sample_weight=weight).loss(np.arange(4))
        coef = SVC(kernel="linear").fit(X, y, sample_weight=weight).coef_
        assert_allclose(found, (coef**2).sum(axis=0))

    def test_constant_columns_have_no_importance(self):
        X = np.random.default_rng(0).normal(size=(6, 20))
        X[:, 4] = 0
        found = Importances(SVC(kernel="linear")).fit(X, [0, 1] * 3).loss(np.arange(20))
        assert found[4] == 0
        assert (found >= 0).all()


class TestBadInput:
    def test_rbf_is_refused_before_training(self, monkeypatch):
        monkeypatch.setattr(SVC, "fit", lambda *_: 1 / 0)
        with pytest.raises(IncompatibleCriterion, match=r"kernel='rbf'.*CrossValidated\(SVC"):
            Importances(SVC()).fit(*load_iris(return_X_y=True))

    def test_the_message_for_a_pipeline_contains_the_path(self):
        X, y = load_iris(return_X_y=True)
        criterion = Importances(make_pipeline(StandardScaler(), SVC(kernel="linear"))).fit(X, y)
        with pytest.raises(IncompatibleCriterion, match=r"named_steps\.svc\.coef_"):
            criterion.loss(np.arange(4))

    def test_an_unknown_path_is_refused(self):
        X, y = load_iris(return_X_y=True)
        criterion = Importances(SVC(kernel="linear"), importance_getter="weights_").fit(X, y)
        with pytest.raises(InvalidParameter, match="finds no 'weights_'"):
            criterion.loss(np.arange(4))

    def test_an_invalid_getter_is_refused(self):
        with pytest.raises(InvalidParameter, match="importance_getter"):
            Importances(SVC(kernel="linear"), importance_getter=3).fit([[0.0], [1]], [0, 1])

    def test_transformed_columns_are_refused(self):
        X, y = load_iris(return_X_y=True)
        model = make_pipeline(PCA(2), SVC(kernel="linear"))
        criterion = Importances(model, importance_getter="named_steps.svc.coef_").fit(X, y)
        with pytest.raises(InvalidParameter, match="one importance per column"):
            criterion.loss(np.arange(4))

    def test_groups_are_refused_because_there_are_no_folds(self):
        with pytest.raises(InvalidParameter, match="makes no folds"):
            Importances(SVC(kernel="linear")).fit([[0.0], [1]], [0, 1], groups=[0, 1])


class TestTuning:
    def test_a_tuned_elimination_can_be_resumed(self):
        X, y = load_breast_cancer(return_X_y=True)
        X, y = scale(X)[::4, :8], y[::4]
        grid = GridSearchCV(SVC(kernel="linear"), {"C": np.array([0.01, 1.0])}, cv=3)
        search = RecursiveElimination(Importances(grid), n_features_to_select=2, retune=2)
        search.fit(X, y)
        params = [step.params for step in search.trace_]
        assert any(params)
        json.dumps(params)
        first = search.record_
        again = clone(search).fit(X, y)
        assert_array_equal(again.order_, search.order_)
        assert [s.params for s in again.record_.trace] == [s.params for s in first.trace]

    def test_a_hyper_parameter_search_runs_once_on_the_full_set(self, cancer):
        X, y = cancer[0][:, :6], cancer[1]
        grid = GridSearchCV(SVC(kernel="linear"), {"C": [0.001, 1.0]})
        criterion = Importances(grid).fit(X, y)
        best = clone(grid).fit(X, y).best_params_
        coef = SVC(kernel="linear", **best).fit(X[:, :2], y).coef_
        assert_allclose(criterion.loss(np.array([0, 1])), coef[0] ** 2)

    def test_a_search_without_refit_is_refused(self):
        grid = GridSearchCV(SVC(kernel="linear"), {"C": [1]}, refit=False)
        with pytest.raises(InvalidParameter, match="refit=True"):
            Importances(grid).fit(*load_iris(return_X_y=True))

    def test_a_custom_search_over_parameters_works(self):
        X, y = load_iris(return_X_y=True)
        criterion = Importances(_Halved()).fit(X, y)
        assert criterion.estimator_.C == 0.5
        assert criterion.tune(np.array([0, 1]))["C"] == 0.5
        criterion.use({"C": 2.0})
        assert criterion.estimator_.C == 2.0

    def test_estimators_are_refused_as_recorded_parameters(self):
        with pytest.raises(InvalidParameter, match="that a record can store"):
            plain_params("Importances", {"step": SVC()})

    def test_searches_over_parameters_are_recognised(self):
        assert is_tuner(_Halved())
        assert not is_tuner(SVC())


class _Halved(ClassifierMixin, BaseEstimator):
    """A search over hyper-parameters that is recognisable only by its annotations."""

    best_estimator_: Any

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.best_estimator_ = SVC(kernel="linear", C=0.5).fit(X, y)
        return self


def test_the_certified_best_c_is_used_and_tuned_again():
    """The estimator of the criterion is the search of tamis over C."""
    X, y = load_breast_cancer(return_X_y=True)
    search = RecursiveElimination(
        Importances(SVCPathCV("linear", cv=3)), n_features_to_select=5, step=5, retune=0.5
    ).fit(X[:150], y[:150])
    tuned = [step.params for step in search.trace_ if step.params]
    assert len(tuned) == 2
    assert all(params["C"] > 0 for params in tuned)


class TestShap:
    def shap(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the libraries that it loads
            return pytest.importorskip("shap", reason="shap is not installed")

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_absolute_shap_values_are_summed_over_outputs(self, n_classes):
        shap = self.shap()
        X, y = make_classification(
            60, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
        )
        forest = RandomForestClassifier(5, random_state=0)
        criterion = Importances(forest, importance_getter="shap").fit(X, y)
        some = np.array([0, 2, 3])
        values = shap.TreeExplainer(forest.fit(X[:, some], y)).shap_values(X[:, some])
        assert_allclose(criterion.loss(some), np.abs(values).mean(axis=0).sum(axis=1))

    def test_a_model_that_shap_does_not_support_is_refused(self):
        self.shap()
        criterion = Importances(SVC(kernel="linear"), importance_getter="shap")
        with pytest.raises(IncompatibleCriterion, match="boosting model that shap supports"):
            criterion.fit([[0.0], [1], [2], [3]], [0, 0, 1, 1]).loss(np.array([0]))

    def test_a_missing_shap_is_reported(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "shap", None)
        criterion = Importances(RandomForestClassifier(2), importance_getter="shap")
        with pytest.raises(MissingExtra, match=r"pip install 'tamis\[guests\]'"):
            criterion.fit([[0.0], [1], [2], [3]], [0, 0, 1, 1]).loss(np.array([0]))

"""CrossValidated compared with scikit-learn's cross-validation."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from tamis._arrays import EMPTY
from tamis.choice import BestPrefix
from tamis.compiled import thresholds
from tamis.contract import SubsetCriterion
from tamis.contract.criterion import with_unit
from tamis.criteria import CrossValidated, PValue, ScoreSensitivity
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidScore,
    InvalidTarget,
)
from tamis.search import Backward, Forward, Ranking
from tamis.validation import knn
from tamis.validation.knn import KNNFolds
from tamis.validation.lda import LDAFolds
from tests.laws.catalogue import name

LDA, KNN = LinearDiscriminantAnalysis, KNeighborsClassifier


def _random_classes():
    X, y = make_classification(200, 20, n_informative=8, n_redundant=0, n_classes=4, random_state=3)
    return X, np.array(["spring", "summer", "autumn", "winter"])[y]


DATA = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "four seasons": _random_classes,
}


@pytest.fixture(params=DATA, scope="module")
def data(request):
    X, y = DATA[request.param]()
    return np.asfortranarray(scale(X)), y


@pytest.fixture
def compiled(monkeypatch):
    """Use compiled loops for neighbours even for small data."""
    monkeypatch.setattr(thresholds, "NEIGHBOUR_COLUMNS", 1)


def reference(estimator, X, y, subset, **options):
    return np.mean(cross_val_score(estimator, X[:, subset], y, error_score="raise", **options))


def some_subsets(n_features, seed=0):
    rng = np.random.default_rng(seed)
    sizes = {1, 2, 3, n_features // 2, n_features - 1}
    return [np.sort(rng.choice(n_features, size, replace=False)) for size in sorted(sizes)]


def check_like_sklearn(criterion, X, y, subset):
    """Check that value, gains and losses are identical to cross_val_score."""
    options = {"cv": criterion.cv, "scoring": criterion.scoring}
    others = np.setdiff1d(np.arange(X.shape[1]), subset)[:6]
    base = criterion.value(subset)
    grown = [reference(criterion.estimator, X, y, with_unit(subset, j), **options) for j in others]
    assert_array_equal(criterion.gain(subset, others), np.array(grown) - base)
    if len(subset):
        assert base == reference(criterion.estimator, X, y, subset, **options)
    if len(subset) > 1:
        rest = [
            reference(criterion.estimator, X, y, np.delete(subset, i), **options)
            for i in range(len(subset))
        ][:6]
        assert_array_equal(criterion.loss(subset)[:6], base - np.array(rest))


class TestDefinition:
    @pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss", "roc_auc_ovr"])
    def test_values_equal_cross_val_score(self, scoring):
        X, y = load_iris(return_X_y=True)
        model = LogisticRegression(C=0.1, max_iter=500)
        criterion = CrossValidated(model, scoring=scoring).fit(X, y)
        for subset in some_subsets(4):
            expected = reference(model, X, y, subset, cv=5, scoring=scoring)
            assert_allclose(criterion.value(subset), expected, rtol=1e-10)

    @pytest.mark.parametrize(
        "cv",
        [
            3,
            KFold(4),
            StratifiedKFold(3, shuffle=True, random_state=1),
            LeaveOneOut(),
            RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
            StratifiedShuffleSplit(3, random_state=0),
        ],
    )
    @pytest.mark.parametrize("model", [LDA(), KNN(3)])
    @pytest.mark.usefixtures("compiled")
    def test_any_splitter_gives_the_scores_of_sklearn(self, cv, model):
        X, y = load_iris(return_X_y=True)
        X, y = X[::3], y[::3]
        if isinstance(cv, KFold):
            X, y = X[(order := np.random.default_rng(0).permutation(50))], y[order]
        check_like_sklearn(CrossValidated(model, cv=cv).fit(X, y), X, y, np.array([1, 3]))

    def test_a_regression_has_the_scores_of_sklearn(self):
        X, y = load_diabetes(return_X_y=True)
        criterion = CrossValidated(Ridge(), cv=4, scoring="neg_mean_absolute_error").fit(X, y)
        subset = np.array([2, 8])
        expected = reference(Ridge(), X, y, subset, cv=4, scoring="neg_mean_absolute_error")
        assert_allclose(criterion.value(subset), expected, rtol=1e-12)

    def test_gain_and_loss_are_differences_of_values(self):
        X, y = load_diabetes(return_X_y=True)
        criterion = CrossValidated(LinearRegression()).fit(X, y)
        subset, new = np.array([1, 2, 8]), np.array([0, 3])
        assert_allclose(criterion.gain(subset, new), SubsetCriterion.gain(criterion, subset, new))
        assert_allclose(criterion.loss(subset), SubsetCriterion.loss(criterion, subset))

    @pytest.mark.parametrize(
        ("model", "dummy", "load"),
        [
            (SVC(), DummyClassifier(strategy="prior"), load_wine),
            (LDA(), DummyClassifier(strategy="prior"), load_breast_cancer),
            (Ridge(), DummyRegressor(strategy="mean"), load_diabetes),
        ],
    )
    def test_the_empty_subset_has_the_score_of_a_dummy(self, model, dummy, load):
        X, y = load(return_X_y=True)
        criterion = CrossValidated(model).fit(X, y)
        assert criterion.value(EMPTY) == cross_val_score(dummy, X, y, cv=5).mean()

    def test_splits_are_made_once(self):
        X, y = load_iris(return_X_y=True)
        cv = StratifiedShuffleSplit(3, test_size=0.3)  # new splits at every call
        criterion = CrossValidated(DecisionTreeClassifier(), cv=cv).fit(X, y)
        subset = np.array([0, 1])
        assert criterion.value(subset) == criterion.value(subset)
        criterion.gain(subset, np.array([2]))
        assert criterion.value(subset) == criterion.value(subset)

    def test_n_jobs_changes_nothing(self):
        X, y = load_wine(return_X_y=True)
        subsets = [np.array([0]), np.array([1, 4]), np.array([2, 5, 6]), EMPTY]
        model = DecisionTreeClassifier(random_state=0)
        one = CrossValidated(model).fit(X, y).values(subsets)
        assert_array_equal(CrossValidated(model, n_jobs=2).fit(X, y).values(subsets), one)

    def test_the_given_estimator_is_not_changed(self):
        X, y = load_iris(return_X_y=True)
        model = SVC()
        CrossValidated(model).fit(X, y).value(np.array([0]))
        assert not hasattr(model, "classes_")

    def test_without_target(self):
        X = load_iris().data
        criterion = CrossValidated(KernelDensity(), cv=KFold(3)).fit(X)
        expected = cross_val_score(KernelDensity(), X[:, [0, 2]], cv=KFold(3)).mean()
        assert_allclose(criterion.value(np.array([0, 2])), expected)
        assert criterion.value(EMPTY) == 0.0


class TestDiscriminantAnalysis:
    def test_accuracies_are_identical_to_scikit_learn(self, data):
        X, y = data
        criterion = CrossValidated(LDA()).fit(X, y)
        assert isinstance(criterion._folds, LDAFolds)
        for subset in [EMPTY, *some_subsets(X.shape[1])]:
            check_like_sklearn(criterion, X, y, subset)

    @pytest.mark.parametrize("priors", [[0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    def test_given_priors_give_the_scores_of_sklearn(self, priors):
        X, y = load_wine(return_X_y=True)
        criterion = CrossValidated(LDA(priors=priors)).fit(X, y)
        assert isinstance(criterion._folds, LDAFolds)
        check_like_sklearn(criterion, X, y, np.array([1, 7, 9]))

    def test_origin_and_scale_do_not_matter(self):
        X, y = load_wine(return_X_y=True)
        X = X * np.logspace(-4, 4, 13) + 1e5
        check_like_sklearn(CrossValidated(LDA()).fit(X, y), X, y, np.array([0, 4, 12]))

    def test_scikit_learn_is_hardly_ever_needed(self, data, monkeypatch):
        X, y = data
        criterion = CrossValidated(LDA()).fit(X, y)
        monkeypatch.setattr("tamis.criteria.validation.FoldScores.mean_score", lambda *_: 1 / 0)
        for subset in some_subsets(X.shape[1]):
            criterion.gain(subset, np.setdiff1d(np.arange(X.shape[1]), subset))
            criterion.loss(subset) if len(subset) > 1 else None

    @pytest.mark.parametrize(
        "model",
        [
            LDA(solver="lsqr"),
            LDA(solver="lsqr", shrinkage="auto"),
            LDA(n_components=1),
            make_pipeline(StandardScaler(), LDA()),
        ],
    )
    def test_other_estimators_are_left_to_sklearn(self, model):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(model).fit(X, y)
        assert criterion._folds is None
        check_like_sklearn(criterion, X, y, np.array([0, 2]))

    def test_other_scores_are_left_to_sklearn(self):
        X, y = load_iris(return_X_y=True)
        for scoring in ("f1_macro", make_scorer(accuracy_score)):
            criterion = CrossValidated(LDA(), scoring=scoring).fit(X, y)
            assert criterion._folds is None
            check_like_sklearn(criterion, X, y, np.array([0, 2]))

    def test_duplicate_and_dependent_columns_give_the_scores_of_sklearn(self):
        X, y = load_wine(return_X_y=True)
        X = scale(np.c_[X, X[:, 2], X[:, 0] + 2 * X[:, 5]])
        criterion = CrossValidated(LDA()).fit(X, y)
        for subset in ([2], [2, 13], [0, 5], [0, 5, 14], [0, 2, 5, 13, 14]):
            check_like_sklearn(criterion, X, y, np.array(subset))

    def test_fewer_rows_than_columns_give_the_scores_of_sklearn(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(24, 40)), np.repeat([0, 1], 12)
        X[:, 3] += 2 * y
        criterion = CrossValidated(LDA(), cv=3).fit(X, y)
        for size in (1, 5, 13, 14, 15, 16, 25):
            check_like_sklearn(criterion, X, y, np.arange(size))

    def test_constant_columns_are_ignored(self):
        X, y = load_iris(return_X_y=True)
        for constant in (0.0, 0.1, -3e7):
            Z = np.insert(X, 2, constant, axis=1)
            criterion = CrossValidated(LDA()).fit(Z, y)
            assert criterion.value(np.array([2])) == criterion.value(EMPTY)
            gains = criterion.gain(np.array([0, 1]), np.array([2, 3]))
            assert gains[0] == 0 < gains[1]
            losses = criterion.loss(np.array([0, 1, 2, 3]))
            assert losses[2] == 0 != losses[3]
            assert losses[3] == criterion.value(np.array([0, 1, 2, 3])) - criterion.value(
                np.array([0, 1])
            )
            assert criterion.gain(EMPTY, np.array([2])) == [0]

    def test_a_column_that_is_constant_in_a_fold_has_no_gain(self):
        # it varies in one row, which one training fold does not contain
        X, y = load_iris(return_X_y=True)
        X[:, 1] = 2.0
        X[17, 1] = 3.0
        criterion = CrossValidated(LDA()).fit(X, y)
        assert_allclose(criterion.gain(EMPTY, np.array([1])), 0, atol=0.02)
        both, others = np.array([0, 1]), np.array([2, 3])
        assert criterion.value(both) == reference(LDA(), X, y, both, cv=5)
        grown = [reference(LDA(), X, y, [0, 1, j], cv=5) for j in others]
        assert_array_equal(criterion.gain(both, others), np.array(grown) - criterion.value(both))
        search = Forward(CrossValidated(LDA()), n_features_to_select=3).fit(X, y)
        assert search.support_.sum() == 3

    def test_a_column_that_equals_the_class_predicts_perfectly(self):
        # scikit-learn cannot fit columns that are constant within classes: the nearest mean is used
        X, y = load_iris(return_X_y=True)
        X = np.column_stack([X, y, y == 1])
        criterion = CrossValidated(LDA()).fit(X, y)
        assert criterion.value(np.array([4])) == criterion.value(np.array([4, 5])) == 1
        assert criterion.value(np.array([5])) == pytest.approx(2 / 3)
        assert criterion.loss(np.array([4, 5])).tolist() == [1 - criterion.value(np.array([5])), 0]
        alone = Forward(CrossValidated(LDA()), n_features_to_select=1).fit(X, y)
        assert alone.support_[4]

    @pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # scikit-learn's own
    def test_equal_class_means_are_decided_as_by_sklearn(self):
        # exclusive or: equal class means, so that rounding alone decides every row
        X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]] * 10)
        y = np.array([0, 1, 1, 0] * 10)
        criterion = CrossValidated(LDA()).fit(X, y)
        with warnings.catch_warnings(action="error"):
            criterion.gain(EMPTY, np.array([0, 1]))
        check_like_sklearn(criterion, X, y, np.array([0]))

    def test_directions_below_the_tolerance_of_sklearn_are_dropped(self):
        # the second direction between the classes is a millionth of the first
        rng = np.random.default_rng(5)
        X, y = rng.normal(size=(300, 3)), np.repeat([0, 1, 2], 100)
        X[:, 0] += 1e5 * y
        X[y == 1, 1] += 0.2
        check_like_sklearn(CrossValidated(LDA()).fit(X, y), X, y, np.array([0]))
        check_like_sklearn(CrossValidated(LDA()).fit(X, y), X, y, np.array([0, 1]))

    def test_the_selection_agrees_with_sklearn(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = scale(X)[:, :15]
        theirs = SequentialFeatureSelector(LDA(), n_features_to_select=5, cv=5).fit(X, y)
        ours = Forward(CrossValidated(LDA()), n_features_to_select=5).fit(X, y)
        assert_array_equal(ours.support_, theirs.support_)

    def test_memory_is_bounded(self, monkeypatch):
        X, y = load_wine(return_X_y=True)
        subset, new = np.arange(6), np.arange(6, 13)
        expected = CrossValidated(LDA()).fit(X, y).gain(subset, new)
        monkeypatch.setattr("tamis.validation.lda.KEPT", 200)
        monkeypatch.setattr("tamis.validation.lda.BLOCK", 300)
        criterion = CrossValidated(LDA()).fit(X, y)
        assert_array_equal(criterion.gain(subset, new), expected)
        assert len(criterion._folds.moments._rows) <= 3


@pytest.mark.usefixtures("compiled")
class TestNeighbours:
    @pytest.mark.parametrize("model", [KNN(), KNN(1), KNN(4, algorithm="brute")])
    def test_accuracies_are_identical_to_scikit_learn(self, data, model):
        X, y = data
        criterion = CrossValidated(model).fit(X, y)
        assert isinstance(criterion._folds, KNNFolds)
        for subset in [EMPTY, *some_subsets(X.shape[1])]:
            check_like_sklearn(criterion, X, y, subset)

    @pytest.mark.parametrize("algorithm", ["auto", "kd_tree", "ball_tree", "brute"])
    def test_ties_are_broken_as_in_sklearn(self, algorithm):
        rng = np.random.default_rng(1)
        X = rng.integers(0, 3, size=(80, 18)).astype(float)  # all distances are tied
        y = rng.integers(0, 3, size=80)
        criterion = CrossValidated(KNN(algorithm=algorithm, leaf_size=7)).fit(X, y)
        for size in (0, 1, 3, 14, 15, 16):
            check_like_sklearn(criterion, X, y, np.arange(size))

    def test_duplicate_rows_and_constant_columns_give_the_scores_of_sklearn(self):
        X, y = load_iris(return_X_y=True)
        X = np.c_[X[::2], np.ones(75)].repeat(2, axis=0)
        y = np.where(np.arange(150) % 7, y[::2].repeat(2), 0)
        check_like_sklearn(CrossValidated(KNN()).fit(X, y), X, y, np.array([0, 4]))
        check_like_sklearn(CrossValidated(KNN()).fit(X, y), X, y, np.array([4]))

    def test_one_column_dominates_the_distances(self):
        X, y = load_wine(return_X_y=True)
        X = scale(X)
        X[:, 3] *= 1e7  # without it, little is left of the sums
        check_like_sklearn(CrossValidated(KNN()).fit(X, y), X, y, np.arange(8))

    @pytest.mark.parametrize(
        "model", [KNN(weights="distance"), KNN(p=1), KNN(metric="chebyshev"), KNN(119)]
    )
    def test_other_estimators_are_left_to_sklearn(self, model):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(model).fit(X, y)
        assert (criterion._folds is None) == (model.n_neighbors < 100)
        check_like_sklearn(criterion, X, y, np.array([0, 2]))

    def test_splitting_into_blocks_changes_nothing(self, monkeypatch):
        X, y = load_wine(return_X_y=True)
        criterion = CrossValidated(KNN()).fit(X, y)
        subset, new = np.arange(3), np.arange(3, 13)
        expected = criterion.gain(subset, new)
        monkeypatch.setattr(knn, "AT_ONCE", 3)
        assert_array_equal(criterion.gain(subset, new), expected)


@pytest.mark.parametrize("model", [LDA(), KNN(), SVC()])
@pytest.mark.usefixtures("compiled")
def test_a_fitted_criterion_can_be_pickled(model):
    criterion = CrossValidated(model).fit(*load_iris(return_X_y=True))
    twin = pickle.loads(pickle.dumps(criterion))
    assert_array_equal(twin.loss(np.arange(4)), criterion.loss(np.arange(4)))


@pytest.mark.parametrize("model", [LDA(), KNN(), SVC()])
@pytest.mark.usefixtures("compiled")
def test_no_candidates_give_no_gains(model):
    criterion = CrossValidated(model).fit(*load_iris(return_X_y=True))
    assert criterion.gain(np.arange(4), EMPTY).shape == (0,)


def test_few_columns_are_not_worth_compiling():
    criterion = CrossValidated(KNN()).fit(*load_iris(return_X_y=True))
    assert criterion._folds is None


class TestTuning:
    def test_the_best_estimator_is_validated(self):
        X, y = load_wine(return_X_y=True)
        search = GridSearchCV(KNN(), {"n_neighbors": [1, 9]})
        criterion = CrossValidated(search).fit(X, y)
        best = GridSearchCV(KNN(), {"n_neighbors": [1, 9]}).fit(X, y).best_estimator_
        assert criterion.estimator_.n_neighbors == best.n_neighbors
        assert criterion.value(np.array([0, 1])) == reference(best, X, y, [0, 1], cv=5)

    def test_hyper_parameters_are_tuned_again_and_restored(self):
        X, y = load_wine(return_X_y=True)
        criterion = CrossValidated(GridSearchCV(KNN(), {"n_neighbors": np.array([1, 25])}))
        criterion.fit(X, y)
        subset = np.array([2, 3])
        found = criterion.tune(subset)
        expected = GridSearchCV(KNN(), {"n_neighbors": [1, 25]}).fit(X[:, subset], y).best_params_
        assert found == expected
        assert type(found["n_neighbors"]) is int
        again = clone(criterion).fit(X, y)
        again.use(found)
        assert again.value(subset) == criterion.value(subset)
        other = {"n_neighbors": 26 - found["n_neighbors"]}
        criterion.gain(EMPTY, np.array([2]))  # caches the best value, which must be cleared
        criterion.use(other)
        assert criterion.value(np.array([2])) == reference(KNN(**other), X, y, [2], cv=5)

    def test_an_estimator_without_search_has_nothing_to_tune(self):
        assert CrossValidated(SVC()).fit(*load_iris(return_X_y=True)).tune(np.array([0])) == {}


class TestMetadata:
    def test_weights_are_used_in_every_fold(self):
        X, y = load_iris(return_X_y=True)
        weight = np.random.default_rng(0).uniform(size=150)
        criterion = CrossValidated(DecisionTreeClassifier(random_state=0))
        criterion.fit(X, y, sample_weight=list(weight))
        model = DecisionTreeClassifier(random_state=0)
        expected = reference(model, X, y, [0, 1], cv=5, params={"sample_weight": weight})
        assert criterion.value(np.array([0, 1])) == expected
        assert criterion.value(np.array([0, 1])) != reference(model, X, y, [0, 1], cv=5)

    def test_groups_are_passed_to_the_splitter(self):
        X, y = load_iris(return_X_y=True)
        groups = np.arange(150) % 7
        criterion = CrossValidated(LDA(), cv=GroupKFold(3)).fit(X, y, groups=groups)
        expected = reference(LDA(), X, y, [0, 1], cv=GroupKFold(3), groups=groups)
        assert criterion.value(np.array([0, 1])) == expected

    def test_an_estimator_that_does_not_accept_weights_is_refused(self):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(InvalidParameter, match=r"KNeighborsClassifier\.fit does not take it"):
            CrossValidated(KNN()).fit(X, y, sample_weight=np.ones(150))

    def test_weights_for_a_pipeline_need_the_name_of_a_step(self):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(make_pipeline(StandardScaler(), SVC()))
        with pytest.raises(InvalidParameter, match="svc__sample_weight"):
            criterion.fit(X, y, sample_weight=np.ones(150))
        weight = np.random.default_rng(0).uniform(size=150)
        params = {"svc__sample_weight": weight}
        expected = reference(criterion.estimator, X, y, [0, 1], cv=5, params=params)
        assert criterion.fit(X, y, **params).value(np.array([0, 1])) == expected

    def test_weights_need_one_number_per_row(self):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(InvalidParameter, match="one sample_weight per row: 150, not 3"):
            CrossValidated(SVC()).fit(X, y, sample_weight=np.ones(3))

    def test_metadata_are_routed_to_estimator_and_splitter(self):
        X, y = load_iris(return_X_y=True)
        groups = np.arange(150) % 7
        weight = np.random.default_rng(0).uniform(size=150)
        given = {"sample_weight": weight, "groups": groups}
        with config_context(enable_metadata_routing=True):
            svc = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            for model in (
                svc,
                make_pipeline(StandardScaler().set_fit_request(sample_weight=False), svc),
            ):
                expected = reference(model, X, y, [0, 1], cv=GroupKFold(3), params=given)
                criterion = CrossValidated(model, cv=GroupKFold(3)).fit(X, y, **given)
                assert_allclose(criterion.value(np.array([0, 1])), expected, rtol=1e-14)
            search = Forward(CrossValidated(svc, cv=GroupKFold(3)), n_features_to_select=2)
            assert search.fit(X, y, **given).support_.sum() == 2
            with pytest.raises(UnsetMetadataPassedError):
                CrossValidated(SVC()).fit(X, y, sample_weight=weight)

    def test_routing_through_a_search(self):
        X, y = load_iris(return_X_y=True)
        weight = np.random.default_rng(0).uniform(size=150)
        with config_context(enable_metadata_routing=True):
            svc = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            criterion = CrossValidated(GridSearchCV(svc, {"C": [0.1]}))
            criterion.fit(X, y, sample_weight=weight)
            model = clone(svc).set_params(C=0.1)
            expected = reference(model, X, y, [0], cv=5, params={"sample_weight": weight})
            assert criterion.value(np.array([0])) == expected

    def test_a_search_over_parameters_gets_weights_and_groups(self):
        X, y = load_iris(return_X_y=True)
        search = GridSearchCV(SVC(), {"C": [0.1]}, cv=GroupKFold(2))
        given = {"sample_weight": np.arange(1.0, 151), "groups": np.arange(150) % 5}
        criterion = CrossValidated(search, cv=GroupKFold(3)).fit(X, y, **given)
        expected = reference(
            SVC(C=0.1),
            X,
            y,
            [0],
            cv=GroupKFold(3),
            groups=given["groups"],
            params={"sample_weight": given["sample_weight"]},
        )
        assert criterion.value(np.array([0])) == expected


class TestBadInput:
    def test_a_class_instead_of_an_instance_is_refused(self):
        with pytest.raises(InvalidParameter, match=r"Write CrossValidated\(SVC\(\)\)"):
            CrossValidated(SVC).fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(InvalidParameter, match=r"Write CrossValidated\(SVC\(\)\)"):
            Forward(CrossValidated(SVC)).fit([[0.0, 1.0], [1.0, 2.0]], [0, 1])

    def test_a_missing_estimator_is_refused(self):
        with pytest.raises(InvalidParameter, match="needs a scikit-learn estimator"):
            CrossValidated("svc").fit([[0.0], [1.0]], [0, 1])

    def test_targets(self):
        assert CrossValidated(make_pipeline(StandardScaler(), SVC())).targets == {"classification"}
        assert CrossValidated(GridSearchCV(Ridge(), {"alpha": [1]})).targets == {"regression"}
        assert CrossValidated(KernelDensity()).targets == {"classification", "regression"}
        with pytest.raises(InvalidTarget, match="needs classes"):
            CrossValidated(LDA()).fit(np.ones((4, 2)), [0.1, 0.2, 0.3, 0.4])

    def test_a_failing_fold_is_an_error(self):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(SVC(C=-1)).fit(X, y)
        with pytest.raises(ValueError, match="'C' parameter") as raised:
            criterion.value(np.array([1, 2]))
        assert "SVC failed in fold 0 on column(s) [1, 2]" in raised.value.__notes__[0]

    def test_a_score_that_is_nan_is_an_error(self):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(SVC(), scoring=_nan_for_two_columns).fit(X, y)
        with pytest.raises(InvalidScore, match=r"NaN in fold 0 on column\(s\) \[0, 1\]"):
            criterion.value(np.array([0, 1]))

    def test_several_scores_are_refused(self):
        with pytest.raises(InvalidParameter, match="needs one score"):
            CrossValidated(SVC(), scoring=["accuracy", "f1"]).fit(*load_iris(return_X_y=True))

    @pytest.mark.parametrize(
        "criterion",
        [
            CrossValidated(StandardScaler()),
            CrossValidated(StandardScaler(), scoring="accuracy"),
            CrossValidated(make_pipeline(SVC(), StandardScaler())),
            CrossValidated(GridSearchCV(StandardScaler(), {"with_mean": [True, False]})),
            ScoreSensitivity(StandardScaler()),
        ],
        ids=name,
    )
    def test_an_estimator_that_does_not_predict_is_refused(self, criterion):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(IncompatibleCriterion, match=r"predicts the target, but .* does not"):
            Backward(criterion).fit(X, y)
        with pytest.raises(IncompatibleCriterion, match=r"StandardScaler does not\. Give a class"):
            Ranking(PValue(), n_features_to_select=BestPrefix(StandardScaler())).fit(X, y)

    @pytest.mark.parametrize("model", [LDA(), KNN()])
    def test_tiny_classes_cause_the_warning_of_sklearn(self, model):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 4)), np.array([0] * 15 + [1] * 12 + [2] * 3)
        with pytest.warns(UserWarning, match="least populated class"):
            criterion = CrossValidated(model).fit(X, y)
        with pytest.warns(UserWarning, match="least populated class"):
            expected = reference(model, X, y, [0, 1], cv=5)
        assert criterion.value(np.array([0, 1])) == expected
        with pytest.raises(InvalidParameter, match=r"the 6 rows.*n_splits=5 cannot .* fewer"):
            CrossValidated(model).fit(X[12:18], y[12:18])

    def test_a_class_missing_from_training_is_left_to_sklearn(self):
        X, y = load_iris(return_X_y=True)
        criterion = CrossValidated(LDA(), cv=KFold(3)).fit(X, y)  # folds are the classes
        assert criterion._folds is None
        assert criterion.value(np.array([0, 1])) == 0


def _nan_for_two_columns(model, X, y):
    return np.nan if X.shape[1] == 2 else 0.5

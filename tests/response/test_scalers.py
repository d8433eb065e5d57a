"""Pipelines of scalers are followed by the engine of their last step, and by nothing else."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR

import tamis.response.engines.registry as registry
from tamis.criteria import DensitySensitivity, PosteriorSensitivity, Zero
from tamis.exceptions import IncompatibleCriterion
from tamis.response.engines.base import GenericEngine

ALL = np.arange(5)


def table(n_classes=2):
    X, y = make_classification(
        70, 5, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        random_state=0,
    )  # fmt: skip
    X = X * [1.0, 0.1, 5.0, 1.0, 1.0] + [0.0, 0.0, 3.0, 4.0, 2.0]  # units of all sizes
    X[:, 4] = 2.0
    return X, y


SCALERS = [
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False), MinMaxScaler((-1, 2))],
    [RobustScaler(unit_variance=True)],
    [RobustScaler(with_centering=False)],
    [MaxAbsScaler(), "passthrough", StandardScaler()],
]


def network(kind):
    return kind(
        hidden_layer_sizes=(5,), activation="tanh", solver="lbfgs", alpha=1.0, max_iter=2000,
        random_state=0,
    )  # fmt: skip


def both_ways(criterion, X, y, monkeypatch):
    """Scores of the fast engine, and those of altered copies of the rows."""
    fast = criterion.fit(X, y).loss(ALL)
    with monkeypatch.context() as patch:
        for engine in registry.ENGINES:
            patch.setattr(engine, "opened", lambda *_: None)
        slow = criterion.fit(X, y).loss(ALL)
    return fast, slow


def refuse(*_):
    raise AssertionError("altered copies are made")


@pytest.mark.parametrize("by", ["marginal", "permutation", "zero"])
@pytest.mark.parametrize("scalers", SCALERS, ids=str)
def test_posteriors(scalers, by, monkeypatch):
    for n_classes in (2, 3):
        X, y = table(n_classes)
        pipe = make_pipeline(*scalers, SVC(gamma=0.3))
        criterion = PosteriorSensitivity(pipe, by=by, random_state=0)
        fast, slow = both_ways(criterion, X, y, monkeypatch)
        assert_allclose(fast, slow, atol=1e-9)


def test_an_engine_is_exact_for_a_column_far_from_zero(monkeypatch):
    X, y = table()
    X[:, 3] += 1e6
    criterion = PosteriorSensitivity(make_pipeline(StandardScaler(), SVC(gamma=0.3)))
    fast, slow = both_ways(criterion, X, y, monkeypatch)
    assert_allclose(fast, slow, atol=1e-9)


@pytest.mark.parametrize("output", ["probability", "decision"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "last",
    [SVC(gamma=0.3), SVC(kernel="poly", gamma=0.3, coef0=1.0), network(MLPClassifier),
     LogisticRegression()],
    ids=["rbf", "poly", "network", "logistic"],
)  # fmt: skip
def test_no_copies_are_made(last, n_classes, output, monkeypatch):
    X, y = table(n_classes)
    if output == "decision" and isinstance(last, LogisticRegression):
        last = SVC(kernel="linear")
    criterion = PosteriorSensitivity(make_pipeline(StandardScaler(), last), output=output)
    fast, slow = both_ways(criterion, X, y, monkeypatch)
    assert_allclose(fast, slow, atol=1e-9)
    monkeypatch.setattr(GenericEngine, "batches", refuse)
    assert_allclose(criterion.fit(X, y).loss(ALL), fast)


@pytest.mark.parametrize("last", [SVR(C=20.0), network(MLPRegressor), Ridge()], ids=str)
def test_density_sensitivity_is_the_same_after_scalers(last, monkeypatch):
    X, y = make_regression(60, 5, n_informative=3, random_state=0)
    criterion = DensitySensitivity(make_pipeline(RobustScaler(), last))
    fast, slow = both_ways(criterion, X, y / y.std(), monkeypatch)
    assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(GenericEngine, "batches", refuse)
    assert_allclose(criterion.fit(X, y / y.std()).loss(ALL), fast)


@pytest.mark.parametrize("first", [PCA(4), MinMaxScaler(clip=True)], ids=str)
def test_a_step_that_does_not_scale_columns_uses_altered_copies(first, monkeypatch):
    X, y = load_iris(return_X_y=True)
    criterion = PosteriorSensitivity(make_pipeline(first, SVC(gamma=0.3)), n_values=3).fit(X, y)
    monkeypatch.setattr(GenericEngine, "batches", refuse)
    with pytest.raises(AssertionError, match="altered copies"):
        criterion.loss(np.arange(4))


def test_centres_of_a_pipeline_are_refused():
    criterion = PosteriorSensitivity(make_pipeline(StandardScaler(), SVC()), by=Zero(centres=True))
    with pytest.raises(IncompatibleCriterion, match="got Pipeline"):
        criterion.fit(*table()).loss(ALL)

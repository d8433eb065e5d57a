"""Required results of the automatic selection on twelve tables, on splits used for nothing else."""

import os

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from tamis.auto import Auto
from tamis.auto.models import estimator_of, tuning_of
from tamis.auto.target import Truth
from tamis.datasets import load

pytestmark = [
    pytest.mark.experiment,
    pytest.mark.skipif("TAMIS_DATA" not in os.environ, reason="tables are read from TAMIS_DATA"),
    pytest.mark.filterwarnings("ignore::tamis.exceptions.NothingFound"),
]
#: Number of training rows of each table.
CLASSES = {
    **{"colon": 41, "leukemia": 48, "srbct": 55, "sonar": 139, "heart": 180, "wdbc": 200},
    **{"german": 400, "madelon": 600, "waveform40": 300},
}
NUMBERS = {"boston": 339, "auto_mpg": 262, "abalone": 300}
N_SPLITS = 3


def error(estimator, X, y, train, test, task):
    """Return the error rate, or the squared error divided by the variance, on the test rows."""
    said = estimator.fit(X[train], y[train]).predict(X[test])
    if task == "classification":
        return float(np.mean(said != y[test]))
    return float(np.mean((said - y[test]) ** 2) / y[test].var())


def split(name, seed):
    """Return the errors of Auto and of all columns, the size and the reported error of a split."""
    table = load(name)
    X, y = table.X, table.y
    task = "classification" if name in CLASSES else "regression"
    kind = StratifiedShuffleSplit if name in CLASSES else ShuffleSplit
    size = {**CLASSES, **NUMBERS}[name]
    train, test = next(kind(1, train_size=size, random_state=1000 + seed).split(X, y))
    auto = Auto(task=task, random_state=seed).fit(X[train], y[train])
    model = auto.estimator_ if auto.n_features_ else None
    if model is None:
        model = (DummyClassifier if name in CLASSES else DummyRegressor)()
    kept = X[:, auto.support_] if auto.n_features_ else X[:, :1]
    own = error(model, kept, y, train, test, task)
    # the model for all columns is the one that the same folds prefer
    whole = auto.curve_all_.model
    tuning = tuning_of(whole, X[train], Truth.of(y[train], task), seed)
    best = estimator_of(whole, X.shape[1], task, seed, tuning)
    everything = error(best, X, y, train, test, task)
    said = auto.error_
    stated = said.wrong if name in CLASSES else said.loss / y[test].var()
    return own, everything, auto.n_features_, stated


@pytest.fixture(scope="module")
def found():
    """Return the results of all tables, with a row for each split."""
    tables = [*CLASSES, *NUMBERS]
    found = np.array([[split(name, seed) for seed in range(N_SPLITS)] for name in tables])
    return dict(zip(tables, found, strict=True))


def test_few_columns_have_a_lower_error_than_all_columns(found):
    means = np.array([table.mean(axis=0) for table in found.values()])
    # 0.01 is added to both errors, because an error of 0 has no logarithm
    ratio = np.exp(np.mean(np.log((means[:, 0] + 0.01) / (means[:, 1] + 0.01))))
    assert ratio <= 0.95
    assert np.median(np.concatenate([table[:, 2] for table in found.values()])) <= 12
    assert found["madelon"][:, 0].mean() <= 0.22


def test_the_reported_error_is_close_to_the_true_error(found):
    apart = [np.mean(table[:, 3] - table[:, 0]) for table in found.values()]
    assert abs(np.mean(apart)) <= 0.02

"""A regression target is never treated as classes by default."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from tamis.contract import SubsetCriterion
from tamis.criteria import (
    CrossValidated,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    KolmogorovSmirnov,
    KwakInformation,
    ParzenInformation,
    Penalised,
    ReducedParzenInformation,
    Remembered,
    Scatter,
)
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.search import Forward, RecursiveElimination
from tamis.testing.problem import make_table as table
from tests.laws.catalogue import name

FOR_CLASSES = [
    FisherScore(),
    DiscriminantRatio(),
    KolmogorovSmirnov(),
    Scatter("J3"),
    Divergence(ridge=1e-3),
    ParzenInformation(),
    KwakInformation(),
    ReducedParzenInformation(),
    CrossValidated(KNeighborsClassifier(1), cv=[(np.arange(60), np.arange(60, 90))]),
]


@pytest.mark.parametrize("criterion", FOR_CLASSES, ids=name)
def test_many_distinct_numbers_are_not_classes_by_default(criterion):
    X, y = load_diabetes(return_X_y=True)
    kind = Forward if isinstance(criterion, SubsetCriterion) else RecursiveElimination
    with pytest.raises(InvalidTarget, match=r"214 different numbers such as 151.*Write task='cl"):
        kind(criterion).fit(X, y)
    # 30 classes with three rows each
    X, y = X[:90], np.arange(90) % 30
    with pytest.raises(InvalidTarget, match="30 different numbers"):
        clone(criterion).fit(X, y)
    told = clone(criterion).set_params(task="classification").fit(X, y)
    text = clone(criterion).fit(X, np.char.zfill(y.astype(str), 2))
    assert told.task_ == text.task_ == "classification"
    assert_allclose(told.loss(np.arange(4)), text.loss(np.arange(4)))


def test_wrappers_use_the_task_of_the_wrapped_criterion():
    X, y = load_diabetes(return_X_y=True)
    for wrapper in (Remembered, Penalised):
        with pytest.raises(InvalidTarget, match="needs classes"):
            wrapper(Scatter("J3")).fit(X, y)
        wrapper(Scatter("J3", task="classification")).fit(X[:90], np.arange(90) % 30)


def test_real_numbers_are_never_classes():
    X, y = table()
    with pytest.raises(InvalidTarget, match="discretise y"):
        FisherScore(task="classification").fit(X, y + 0.5)


def test_an_unsupported_task_is_refused():
    X, y = table()
    with pytest.raises(InvalidParameter, match="FisherScore supports only classification"):
        FisherScore(task="regression").fit(X, y)
    with pytest.raises(InvalidParameter, match="CrossValidated supports only regression"):
        CrossValidated(Ridge(), task="classification").fit(X, y)
    with pytest.raises(InvalidParameter, match="task='auto'"):
        CrossValidated(LinearDiscriminantAnalysis(), task="classes").fit(X, y)

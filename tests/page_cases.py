"""Selections and results for tests of charts and reports."""

import numpy as np
import pytest
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import tamis
from tamis.datasets import load
from tamis.evaluation import Realizations, evaluate
from tamis.svm import SVCPathCV

#: Hostile names: tags, quotes, templates, line breaks, text directions, empty, long.
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'); alert(1); ('",
    "{{ 7 * 7 }}{% raw %}",
    "${alert(1)}`",
    "<!--",
    "]]>",
    "a\nb\r\nc",
    "\x00nul",
    "\u202eright to left",
    "",
    "   ",
    "x" * 300,
    "=SUM(A1:A9)",
    "&lt;b&gt;&amp;",
    "e" + "\u0301" * 40,
]


@pytest.fixture(scope="session")
def wine():
    return load("wine")


@pytest.fixture(scope="session")
def eliminated(wine):
    method = tamis.recipe("ridge-rfe", n_features_to_select=5)
    pd = pytest.importorskip("pandas")
    return method.fit(pd.DataFrame(wine.X, columns=wine.feature_names), wine.y)


@pytest.fixture(scope="session")
def resampled(wine):
    method = tamis.recipe("ridge-rfe", n_features_to_select=5)
    machine = SVC(kernel="linear")
    sizes = [1, 2, 3, 5, 8, 13]
    return evaluate({"rfe": method}, wine, Realizations(6), estimators=machine, sizes=sizes)


@pytest.fixture(scope="session")
def tuned(wine):
    two = wine.y < 2  # one SVM in each fold instead of three
    return SVCPathCV("linear", cv=3).fit(scale(wine.X[two]), wine.y[two])


@pytest.fixture(scope="session")
def hostile(wine):
    """Return a selection whose columns have hostile names."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(len(wine.y), len(HOSTILE))), columns=HOSTILE)
    frame.iloc[:, : wine.X.shape[1]] = wine.X
    return tamis.recipe("fisher-score", n_features_to_select=9).fit(frame, wine.y), frame

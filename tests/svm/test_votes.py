"""Votes of pairs of classes compared with SVC."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from tamis.svm.machine import vote_counts, vote_values


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
def test_votes_agree_with_svc(n_classes):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    model = SVC(C=1e-3, decision_function_shape="ovo").fit(X[::2], y[::2])
    decisions = model.decision_function(X[1::2]).reshape(len(X[1::2]), -1)
    # for more than two classes, LIBSVM's values are positive for the first of a pair
    second = decisions > 0 if n_classes == 2 else ~(decisions > 0)
    counts = vote_counts(second, n_classes)
    assert (counts.sum(axis=1) == n_classes * (n_classes - 1) / 2).all()
    np.testing.assert_array_equal(counts.argmax(axis=1), model.predict(X[1::2]))
    if n_classes > 2:
        model.decision_function_shape = "ovr"
        values = vote_values(-decisions, n_classes)
        np.testing.assert_allclose(values, model.decision_function(X[1::2]))


def test_votes_are_counted_along_any_leading_axes():
    second = np.random.default_rng(0).random((2, 5, 6)) < 0.5
    whole = vote_counts(second, 4)
    assert whole.shape == (2, 5, 4)
    np.testing.assert_array_equal(whole[1, 3], vote_counts(second[1, 3], 4))

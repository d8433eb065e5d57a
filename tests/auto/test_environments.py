"""The automatic selection with environments and with conditional tests."""

import json
import re
from html import escape

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from tamis.auto import Auto
from tamis.auto.models import predict_rows
from tamis.auto.sentences import describe_error
from tamis.auto.target import Truth
from tamis.contract import Record
from tamis.exceptions import InvalidParameter, InvalidTarget

SITES = np.repeat(["a", "b", "c"], 60)
QUICK = {"budget": 0.5, "random_state": 0}


def flipped(seed=0):
    """Return a table in which column 1 is stable and the relation to column 5 flips at site c."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(180, 7))
    X[:, 2] = 0.85 * X[:, 1] + 0.5 * rng.normal(size=180)  # a decoy
    return X, 2 * X[:, 1] + np.where(SITES == "c", -1, 1) * X[:, 5] + rng.normal(size=180)


def test_environments_add_the_error_in_each_and_change_nothing_else():
    X, y = flipped()
    plain = Auto(**QUICK).fit(X, y)
    found = Auto(**QUICK).fit(X, y, environments=SITES)
    assert_array_equal(found.support_, plain.support_)
    assert found.error_ == plain.error_
    assert plain.environment_errors_ == {}
    assert list(found.environment_errors_) == ["a", "b", "c"]
    assert "each environment predicted from the others: a: root mean" in found.summary()
    saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
    again = Auto(**QUICK).resume(X, y, record=saved, environments=SITES)
    assert again.environment_errors_ == found.environment_errors_


def test_the_report_has_the_error_in_each_environment():
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    X, y = flipped()
    sites = np.array(["<script>alert(1)</script>", "b", "c"])[
        np.unique(SITES, return_inverse=True)[1]
    ]
    found = Auto(**QUICK).fit(X, y, environments=sites)
    page = found.report(X, y).html()
    assert "<script>alert(1)" not in page
    for label, error in found.environment_errors_.items():
        shown = f'{escape(label)}</bdi></td><td class="num">{describe_error(error)}</td>'
        assert shown in re.sub(r"\s*\n\s*", "", page)
    assert 'id="environments"' not in Auto(**QUICK).fit(X, y).report(X, y).html()


def test_the_error_in_an_environment_is_that_of_a_model_trained_on_the_others():
    X, y = flipped()
    found = Auto(**QUICK, n_features_to_select=7).fit(X, y, environments=SITES)
    truth = Truth.of(y, "regression")
    train, test = np.flatnonzero(SITES != "c"), np.flatnonzero(SITES == "c")
    predicted = predict_rows(found.model_, X, truth, train, test, 0)
    expected = np.mean((predicted[:, 0] - y[test]) ** 2)
    error = found.environment_errors_["c"]
    assert_allclose([error.loss, error.rmse**2], expected)
    base = np.mean((y[test] - y[train].mean()) ** 2)
    assert_allclose(error.r2, 1 - expected / base)


def test_classes_have_an_error_rate_in_each_environment():
    X, y = flipped()
    found = Auto(**QUICK).fit(X, y > 0, environments=SITES)
    assert all(0 <= error.wrong <= 1 for error in found.environment_errors_.values())
    assert found.environment_errors_["c"].wrong > found.environment_errors_["a"].wrong


def test_confirm_tests_the_columns_over_all_columns_and_keeps_the_selection():
    X, y = flipped()
    plain = Auto(**QUICK).fit(X, y)
    found = Auto(**QUICK, confirm=True).fit(X, y)
    assert_array_equal(found.support_, plain.support_)
    assert plain.q_values_ is None
    assert found.q_values_[1] < 0.01
    assert len(found.p_values_) == 7
    assert (found.p_values_[found.found_in_ == 0] == 1).all()
    assert_allclose(found.q_values_, stats.false_discovery_control(found.p_values_))
    assert "conditional test: " in found.summary()
    saved = Record.from_dict(json.loads(json.dumps(found.record_.to_dict())))
    again = Auto(**QUICK, confirm=True).resume(X, y, record=saved)
    assert_array_equal(again.q_values_, found.q_values_)


def test_confirm_works_with_classes_constant_columns_and_groups_of_rows():
    X, y = flipped()
    X[:, 0] = 1.0
    rows = np.repeat(np.arange(60), 3)
    found = Auto(**QUICK, confirm=True).fit(X, np.where(y > 0, "yes", "no"), groups=rows)
    assert found.p_values_[0] == 1
    assert found.q_values_[1] < 0.05


def test_unsupported_targets_and_weights_are_refused():
    X, y = flipped()
    censored = np.array([(True, t) for t in np.abs(y)], dtype=[("event", bool), ("time", float)])
    with pytest.raises(InvalidTarget, match="classes or numbers for confirm"):
        Auto(**QUICK, confirm=True).fit(X, censored)
    with pytest.raises(InvalidTarget, match="classes or numbers for environments"):
        Auto(**QUICK).fit(X, censored, environments=SITES)
    with pytest.raises(InvalidParameter, match=r"cannot use weights with confirm=True"):
        Auto(**QUICK, confirm=True).fit(X, y, sample_weight=np.ones(180))
    with pytest.raises(InvalidParameter, match="got 1 environment"):
        Auto(**QUICK).fit(X, y, environments=np.zeros(180))
    with pytest.raises(InvalidParameter, match="confirm"):
        Auto(**QUICK, confirm="yes").fit(X, y)

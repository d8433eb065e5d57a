"""Harrell's concordance against a loop over all pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tamis.auto.concordance import concordance, concordances
from tamis.exceptions import InvalidParameter, InvalidTarget

CENSORED = [("event", bool), ("time", float)]


def survival(n=60, seed=0, *, n_times=8, n_risks=6):
    """Draw censored times and risks, both with many ties."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=CENSORED)
    y["time"] = rng.integers(1, n_times + 1, n)
    y["event"] = rng.random(n) < 0.6
    return rng.integers(0, n_risks, n) - y["time"] / 4, y


def by_loops(risk, y, weights=None, folds=None):
    """Compare every pair of rows in turn."""
    n = len(y)
    event, time, risk = y["event"].tolist(), y["time"].tolist(), risk.tolist()
    weights = [1.0] * n if weights is None else weights.tolist()
    folds = [0] * n if folds is None else folds.tolist()
    right = total = 0.0
    for i in filter(event.__getitem__, range(n)):
        for j in range(n):
            later = time[j] > time[i] or (time[j] == time[i] and not event[j])
            if later and folds[i] == folds[j]:
                pair = weights[i] * weights[j]
                total += pair
                right += pair * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    return right / total


@pytest.mark.parametrize("seed", range(6))
def test_concordance_is_the_share_of_ordered_pairs(seed):
    risk, y = survival(seed=seed)
    rng = np.random.default_rng(seed)
    weights, folds = rng.random(len(y)), rng.integers(3, 6, len(y))
    found = concordance(risk, y)
    assert 0.5 < found < 1
    assert_allclose(found, by_loops(risk, y), rtol=1e-12)
    assert_allclose(concordance(risk, y, weights), by_loops(risk, y, weights), rtol=1e-12)
    expected = by_loops(risk, y, weights, folds)
    assert_allclose(concordance(risk, y, weights, folds), expected, rtol=1e-12)
    assert_allclose(concordance(-risk, y), 1 - found, rtol=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_the_concordance_is_computed_for_many_candidates_and_draws(whole):
    """Bootstrap counts are exact in single precision. Other weights need double precision."""
    rng = np.random.default_rng(1)
    n = 700
    _, y = survival(n, n_times=300)
    risks = np.column_stack([rng.integers(0, 40, n) - y["time"] / s for s in (1, 20, 1e9)])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=4).astype(float)
    weights = weights if whole else weights * rng.random(weights.shape) * 1e-9
    folds = rng.integers(0, 4, n)
    for labels in (None, folds):
        found = concordances(risks, y, weights, labels)
        assert found.shape == (4, 3)
        assert (found[:, 0] > found[:, 1]).all()
        slow = by_loops(risks[:, 1], y, weights[2], labels)
        assert_allclose(found[2, 1], slow, rtol=1e-12)


def test_a_weight_counts_the_copies_of_a_row():
    risk, y = survival()
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), counts)
    assert_allclose(concordance(risk, y, counts), concordance(risk[copies], y[copies]), rtol=1e-12)


def test_only_the_order_of_times_and_risks_matters():
    risk, y = survival()
    longer = y.copy()
    longer["time"] *= 1e6
    expected = concordance(risk, y)
    assert concordance(risk, longer) == expected
    assert concordance(np.exp(risk), y) == expected
    assert concordance(risk * 1e300, y) == expected
    shuffled = np.random.default_rng(0).permutation(len(y))
    assert concordance(risk[shuffled], y[shuffled]) == expected
    columns = np.column_stack([y["time"], y["event"]])
    assert concordance(risk, columns) == expected


def test_constant_risks_give_one_half():
    _, y = survival()
    assert concordance(np.zeros(len(y)), y) == 0.5


def test_without_comparable_pairs_the_concordance_is_undefined():
    risk, y = survival(n=10)
    y["event"] = False
    assert np.isnan(concordance(risk, y))
    y["event"], y["time"] = True, 3.0
    assert np.isnan(concordance(risk, y))
    risk, y = survival(n=10)
    assert np.isnan(concordance(risk, y, folds=np.arange(10)))
    weights = np.zeros((2, 10))
    weights[1] = 1
    assert_array_equal(np.isnan(concordances(risk[:, None], y, weights))[:, 0], [True, False])


def test_missing_risks_make_the_concordance_of_their_candidate_undefined():
    risk, y = survival()
    risks = np.column_stack([risk, np.where(risk == risk.max(), np.nan, risk)])
    assert_array_equal(np.isnan(concordances(risks, y, np.ones((1, len(y)))))[0], [False, True])


def test_folds_without_events_have_no_comparable_pairs():
    risk, y = survival()
    folds = np.arange(len(y)) % 3
    y["event"][folds == 1] = False
    rest = folds != 1
    expected = concordance(risk[rest], y[rest], folds=folds[rest])
    assert concordance(risk, y, folds=folds) == expected


def test_invalid_inputs_are_refused():
    risk, y = survival()
    with pytest.raises(InvalidParameter, match=r"needs one risk for each of 60 rows.*59"):
        concordance(risk[1:], y)
    for weights in (np.ones(59), np.full(60, -1.0), np.full(60, np.inf)):
        with pytest.raises(InvalidParameter, match=r"needs weights"):
            concordance(risk, y, weights)
    with pytest.raises(InvalidTarget, match="a time and an event"):
        concordance(risk, y["time"])


def test_the_concordance_agrees_with_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")
    for seed in range(4):
        risk, y = survival(seed=seed)
        expected = metrics.concordance_index_censored(y["event"], y["time"], risk)[0]
        assert_allclose(concordance(risk, y), expected, rtol=1e-12)

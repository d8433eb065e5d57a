"""Ridge-penalised proportional hazards against numerical maximisation and other libraries."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis.auto.concordance import concordance
from tamis.auto.cox import RidgeCoxCV
from tamis.exceptions import InvalidParameter, InvalidTarget, NotConverged

CENSORED = [("event", bool), ("time", float)]


def survival(n=60, d=4, seed=0, *, ties=True):
    """Draw columns of different scales and censored times that depend on the first two."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 50, d) + 3
    time = rng.exponential(np.exp(-(X - 3)[:, :2] / np.geomspace(1, 50, d)[:2] @ [1.0, -0.7][:d]))
    end = rng.exponential(2.0, n)
    y = np.zeros(n, dtype=CENSORED)
    y["event"], y["time"] = time < end, np.minimum(time, end)
    if ties:
        y["time"] = np.ceil(4 * y["time"])
    return X, y


def log_likelihood(risk, y, weights=None):
    """Return Breslow's log partial likelihood, one event at a time."""
    weights = np.ones(len(y)) if weights is None else weights
    total = 0.0
    for i in np.flatnonzero(y["event"]):
        at_risk = y["time"] >= y["time"][i]
        total += weights[i] * (risk[i] - np.log(weights[at_risk] @ np.exp(risk[at_risk])))
    return total


def one_penalty(alpha=1.0):
    return RidgeCoxCV(alphas=[alpha])


def maximised(Z, y, alpha, weights=None):
    """Return the coefficients of the penalised likelihood by numerical gradients."""

    def loss(b):
        return alpha / 2 * b @ b - log_likelihood(Z @ b, y, weights)

    return minimize(loss, np.zeros(Z.shape[1]), jac="3-point", options={"gtol": 1e-7}).x


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("alpha", [0.05, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_maximise_the_penalised_likelihood(ties, alpha, weighted):
    X, y = survival(n=40, d=3, ties=ties)
    weights = np.random.default_rng(1).random(len(y)) * 3 if weighted else None
    model = one_penalty(alpha).fit(X, y, sample_weight=weights)
    mean = np.average(X, axis=0, weights=weights)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    expected = maximised((X - mean) / deviation, y, alpha, weights)
    assert_allclose(model.coef_ * deviation, expected, rtol=1e-6, atol=1e-7)
    risk = model.predict(X)
    assert_allclose(risk - risk[0], (X - X[0]) @ model.coef_, atol=1e-9)


def check_gradient(X, y, alpha):
    """Compare the slope of the likelihood in every column with that of the penalty."""
    d = X.shape[1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    b = one_penalty(alpha).fit(X, y).coef_ * X.std(axis=0)
    risk = Z @ b
    slope = np.zeros(d)
    for i in np.flatnonzero(y["event"]):
        at_risk = y["time"] >= y["time"][i]
        share = np.exp(risk[at_risk]) / np.exp(risk[at_risk]).sum()
        slope += Z[i] - share @ Z[at_risk]
    assert np.abs(b).max() > 0.01
    assert_allclose(slope, alpha * b, atol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(12, 30), (12, 11), (12, 12), (5, 200)])
def test_the_gradient_is_zero_with_more_columns_than_rows(n, d):
    check_gradient(*survival(n, d), 0.3)


def test_the_gradient_is_zero_for_columns_with_long_tails():
    """The first Newton step is too long here and has to be halved."""
    X, y = survival(ties=False)
    X = np.exp(3 * np.random.default_rng(0).normal(size=X.shape))
    check_gradient(X, y, 0.01)


def test_a_weight_counts_the_copies_of_a_row():
    X, y = survival()
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), counts)
    weighted = one_penalty(2.0).fit(X, y, sample_weight=counts)
    repeated = one_penalty(2.0).fit(X[copies], y[copies])
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)
    fewer = RidgeCoxCV(cv=3).fit(X[counts > 0], y[counts > 0], sample_weight=counts[counts > 0])
    zero = RidgeCoxCV(cv=3).fit(X, y, sample_weight=counts)
    assert_array_equal(zero.coef_, fewer.coef_)


@pytest.mark.parametrize("kind", [one_penalty, RidgeCoxCV])
def test_the_fit_does_not_depend_on_units_and_order(kind):
    X, y = survival()
    model = kind().fit(X, y)
    longer = y.copy()
    longer["time"] = y["time"] * 1e6
    assert_array_equal(kind().fit(X, longer).coef_, model.coef_)
    assert_allclose(kind().fit(X[:, ::-1], y).coef_[::-1], model.coef_, rtol=1e-7)
    scaled = kind().fit(X * [1e-200, 1e200, 1, 1e6] + [0, 0, 1e3, 0], y)
    assert_allclose(scaled.predict(X * [1e-200, 1e200, 1, 1e6] + [0, 0, 1e3, 0]), model.predict(X))
    constant = kind().fit(np.column_stack([X, np.full(len(y), 1e8 + 0.1)]), y)
    assert_allclose(constant.coef_, [*model.coef_, 0.0], rtol=1e-7)
    columns = np.column_stack([y["time"], y["event"]])
    assert_array_equal(kind().fit(X, columns).coef_, model.coef_)


def test_equal_rows_have_equal_risks():
    """Rounding must not break the ties of discrete columns, which count one half."""
    rng = np.random.default_rng(0)
    for d in (9, 30, 100):
        distinct = rng.integers(0, 3, (7, d)).astype(float)
        X = distinct[rng.integers(0, 7, 203)]
        model = one_penalty().fit(X, survival(203)[1])
        for table in (X, np.asfortranarray(X)):
            assert len(np.unique(model.predict(table))) == 7


@pytest.mark.parametrize("kind", [one_penalty, RidgeCoxCV])
def test_degenerate_targets_and_tables_are_fitted(kind):
    X, y = survival(n=30)
    same = y.copy()
    same["time"] = 2.0
    assert np.isfinite(kind().fit(X, same).coef_).all()
    alone = y.copy()
    alone["event"] = False
    alone["event"][np.argmin(alone["time"])] = True  # most folds have no event
    assert np.isfinite(kind().fit(X, alone).coef_).all()
    alone["event"] = False
    alone["event"][np.argmax(alone["time"])] = True
    alone["time"][alone["event"]] += 1  # the only row at risk
    assert_array_equal(kind().fit(X, alone).coef_, 0)
    assert_array_equal(kind().fit(np.ones((30, 2)), y).predict(np.eye(2)), 0)
    assert np.isfinite(kind().fit(X[:2], same[:2]).coef_).all()


def test_a_column_that_orders_the_times_has_a_finite_coefficient():
    X, y = survival(n=80, ties=False)
    X[:, 1] = -y["time"]
    X[3, 2] = 1e9  # an outlier
    for model in (one_penalty(0.01), RidgeCoxCV()):
        assert model.fit(X, y).score(X, y) > 0.99
    with pytest.warns(NotConverged, match="penalty 1e-06 did not converge. Use a greater"):
        tiny = one_penalty(1e-6).fit(X, y)
    assert tiny.score(X, y) > 0.99
    chosen = RidgeCoxCV(alphas=[0.01, 1e-6]).fit(X, y)
    assert chosen.alpha_ == 0.01
    assert chosen.cv_log_likelihoods_[1] == -np.inf


def likelihoods_by_loops(X, y, alphas, n_folds):
    """Return the cross-validated likelihood of Verweij and van Houwelingen, fold by fold."""
    order = np.lexsort((y["time"], y["event"]))
    folds = np.empty(len(y), dtype=int)
    folds[order] = np.arange(len(y)) % n_folds
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = []
    for alpha in alphas:
        total = 0.0
        for fold in range(n_folds):
            train = folds != fold
            b = np.zeros(X.shape[1])
            if y["event"][train].any():
                b = maximised(Z[train], y[train], alpha)
            total += log_likelihood(Z @ b, y) - log_likelihood(Z[train] @ b, y[train])
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("n_events", [None, 2])
def test_the_penalty_maximises_the_cross_validated_likelihood(n_events):
    X, y = survival(n=30, d=2, seed=3)
    if n_events is not None:
        y["event"][np.flatnonzero(y["event"])[n_events:]] = False
    alphas = [100.0, 10.0, 1.0, 0.1]
    model = RidgeCoxCV(alphas=alphas, cv=3).fit(X, y)
    expected = likelihoods_by_loops(X, y, alphas, 3)
    assert_allclose(model.cv_log_likelihoods_, expected, rtol=1e-6)
    assert_array_equal(model.alphas_, alphas)
    assert model.alpha_ == alphas[expected.argmax()]
    assert_array_equal(model.coef_, one_penalty(model.alpha_).fit(X, y).coef_)
    assert_array_equal(RidgeCoxCV(alphas=alphas[::-1], cv=3).fit(X, y).coef_, model.coef_)


def test_noise_is_shrunk_more_than_signal():
    X, y = survival(n=200, ties=False)
    noise = np.random.default_rng(5).normal(size=X.shape)
    assert RidgeCoxCV().fit(noise, y).alpha_ > 10 * RidgeCoxCV().fit(X, y).alpha_


def test_a_signal_is_found_among_many_columns():
    """The signal of two columns is found among 2000 others from 120 rows."""
    rng = np.random.default_rng(4)
    X, y = survival(n=240, d=2, ties=False)
    X = np.column_stack([X, rng.normal(size=(240, 2000)) + X[:, [0]] / 2])
    model = RidgeCoxCV().fit(X[:120], y[:120])
    assert model.score(X[120:], y[120:]) > 0.6


@pytest.mark.parametrize("kind", [one_penalty, RidgeCoxCV])
def test_they_are_scikit_learn_estimators(kind):
    X, y = survival()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = kind().fit(frame, y)
    assert list(model.feature_names_in_) == list("abcd")
    assert model.score(frame, y) == concordance(model.predict(frame), y)
    assert clone(model).get_params() == kind().get_params()
    scores = cross_val_score(make_pipeline(StandardScaler(), kind()), X, y, cv=3)
    assert (scores > 0.55).all()
    assert_array_equal(kind().fit(frame, y).coef_, model.coef_)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (RidgeCoxCV(alphas="cv"), "RidgeCoxCV needs alphas to be numbers above 0 or None"),
        (RidgeCoxCV(alphas=[]), "RidgeCoxCV needs alphas to be numbers above 0 or None"),
        (RidgeCoxCV(alphas=[1.0, -1]), "RidgeCoxCV needs alphas to be numbers above 0 or None"),
        (RidgeCoxCV(cv=1), "RidgeCoxCV needs cv to be an int of at least 2, got 1"),
    ],
)
def test_invalid_parameters_are_refused(model, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        model.fit(*survival())


def test_invalid_targets_are_refused():
    X, y = survival()
    with pytest.raises(InvalidTarget, match="RidgeCoxCV needs a time and an event"):
        one_penalty().fit(X, y["time"])
    with pytest.raises(InvalidTarget, match="RidgeCoxCV needs a row in which the event happened"):
        one_penalty().fit(X, y, sample_weight=~y["event"])
    y["event"] = False
    with pytest.raises(InvalidTarget, match="all 60 are censored"):
        RidgeCoxCV().fit(X, y)


@pytest.mark.parametrize("ties", [False, True])
def test_coefficients_agree_with_statsmodels(ties):
    """A vanishing penalty leaves the maximum of the likelihood alone."""
    hazards = pytest.importorskip("statsmodels.duration.hazard_regression")
    X, y = survival(n=100, ties=ties)
    fitted = hazards.PHReg(y["time"], X, status=y["event"].astype(int), ties="breslow").fit()
    assert_allclose(one_penalty(1e-7).fit(X, y).coef_, fitted.params, rtol=1e-5)


def test_coefficients_agree_with_scikit_survival():
    linear = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed")
    X, y = survival()
    Z = StandardScaler().fit_transform(X)
    for alpha in (0.1, 10.0):
        expected = linear.CoxPHSurvivalAnalysis(alpha=alpha).fit(Z, y)
        found = one_penalty(alpha).fit(Z, y)
        assert_allclose(found.coef_, expected.coef_, rtol=1e-4)
        assert_allclose(found.score(Z, y), expected.score(Z, y))

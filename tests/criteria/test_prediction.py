"""Sensitivity of predictive densities and of scores, compared with altered copies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import kendalltau, laplace, norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import FixedThresholdClassifier, KFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVR

from tamis._seeds import stream
from tamis.criteria import DensitySensitivity, ScoreSensitivity, Zero
from tamis.exceptions import DegenerateData, IncompatibleCriterion, InvalidParameter
from tamis.recipes import recipe
from tamis.response.comparison import CopyComparison
from tamis.response.engines.base import GenericEngine

MODELS = [
    SVR(C=20, gamma=0.05),
    SVR(C=20, gamma=3.0),
    SVR(kernel="linear", C=2.0),
    SVR(kernel="poly", gamma=0.2, coef0=1.0),
    NuSVR(C=10),
    Ridge(),
    MLPRegressor(
        hidden_layer_sizes=(5,), activation="tanh", solver="lbfgs", alpha=1.0, random_state=0
    ),
    MLPRegressor("poisson", hidden_layer_sizes=(3,), solver="lbfgs", alpha=1.0, random_state=0),
    RandomForestRegressor(8, random_state=0),
    make_pipeline(StandardScaler(), SVR(C=10)),
]


def table(n_samples=50):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:n_samples, :5] * 21, y[:n_samples] / 50
    return np.ascontiguousarray(X), y


def kl(noise, y, f, altered, symmetric=False):
    """Return divergences by their formulas.

    ``altered`` has one row for each version of the table.
    """
    d = np.abs(altered - f)
    if noise == "laplace":
        s, s_j = np.abs(y - f).mean(), np.abs(y - altered).mean()
        forth = np.log(s_j / s) - 1 + s / s_j * np.exp(-d / s) + d / s_j
        back = np.log(s / s_j) - 1 + s_j / s * np.exp(-d / s_j) + d / s
    else:
        s, s_j = np.sqrt(((y - f) ** 2).mean()), np.sqrt(((y - altered) ** 2).mean())
        forth = np.log(s_j / s) + (d**2 + s**2) / (2 * s_j**2) - 0.5
        back = np.log(s / s_j) + (d**2 + s_j**2) / (2 * s**2) - 0.5
    return ((forth + back) / 2 if symmetric else forth).mean()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_reference_formulas_agree_with_integrals(noise):
    """The formulas above agree with integrals of p log(p / q)."""
    kind = {"laplace": laplace, "gaussian": norm}[noise]
    y, f, altered = np.array([1.0, -1.0]), np.array([0.4, -0.3]), np.array([[1.9, 0.2]])
    power = 1 if noise == "laplace" else 2
    s = (np.abs(y - f) ** power).mean() ** (1 / power)
    s_j = (np.abs(y - altered) ** power).mean() ** (1 / power)

    def integral(a, b):
        def integrand(t):
            return kind.pdf(t, a, s) * (kind.logpdf(t, a, s) - kind.logpdf(t, b, s_j))

        return quad(integrand, -20, 20, points=[a, b], limit=200)[0]

    expected = np.mean([integral(a, b) for a, b in zip(f, altered[0], strict=True)])
    assert_allclose(kl(noise, y, f, altered), expected, rtol=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_marginal_agrees_with_brute_force(model, noise, symmetric):
    X, y = table()
    predict = clone(model).fit(X, y).predict
    expected = []
    for j in range(5):
        versions = [predict(np.insert(np.delete(X, j, 1), j, v, 1)) for v in X[:, j]]
        expected.append(kl(noise, y, predict(X), np.array(versions), symmetric))
    criterion = DensitySensitivity(model, noise=noise, symmetric=symmetric).fit(X, y)
    assert_allclose(criterion.loss(np.arange(5)), expected, rtol=1e-9, atol=1e-9)


def test_each_shuffle_has_its_own_scale():
    X, y = table()
    predict = SVR(C=20).fit(X, y).predict
    singles = []
    for repeat in range(3):
        order = stream(1, "shuffle", 5, repeat).permutation(len(X))
        versions = [np.insert(np.delete(X, j, 1), j, X[order, j], 1) for j in range(5)]
        singles.append([kl("laplace", y, predict(X), predict(v)[None]) for v in versions])
    criterion = DensitySensitivity(SVR(C=20), by="permutation", n_repeats=3, random_state=1).fit(
        X, y
    )
    assert_allclose(criterion.loss(np.arange(5)), np.mean(singles, axis=0), atol=1e-9)
    errors = np.std(singles, axis=0, ddof=1) / np.sqrt(3)
    assert_allclose(criterion.errors(np.arange(5)), errors, atol=1e-9)


def test_zero_and_removal_agree_with_brute_force():
    X, y = table()
    predict = SVR(C=20).fit(X, y).predict
    zeroed = [np.insert(np.delete(X, j, 1), j, 0.0, 1) for j in range(5)]
    expected = [kl("laplace", y, predict(X), predict(z)[None]) for z in zeroed]
    criterion = DensitySensitivity(SVR(C=20), by="zero").fit(X, y)
    assert_allclose(criterion.loss(np.arange(5)), expected, atol=1e-9)
    rest = [SVR(C=20).fit(np.delete(X, j, 1), y).predict(np.delete(X, j, 1)) for j in range(5)]
    expected = [kl("laplace", y, predict(X), r[None]) for r in rest]
    criterion = DensitySensitivity(SVR(C=20), by="removal").fit(X, y)
    assert_allclose(criterion.loss(np.arange(5)), expected, atol=1e-9)
    alone = SVR(C=20).fit(X[:, [2]], y).predict(X[:, [2]])
    nothing = np.full((1, len(y)), np.median(y))
    assert_allclose(criterion.loss(np.array([2])), [kl("laplace", y, alone, nothing)], atol=1e-9)


def test_held_out_losses_agree_with_brute_force():
    X, y = table()
    f, versions = np.empty(50), np.empty((5, 50, 50))
    for train, test in KFold(5).split(X):
        fit = SVR(C=20).fit(X[train], y[train])
        f[test] = fit.predict(X[test])
        for j in range(5):
            for k, value in enumerate(X[:, j]):
                versions[j, k, test] = fit.predict(np.insert(np.delete(X[test], j, 1), j, value, 1))
    criterion = DensitySensitivity(SVR(C=20), on="held-out").fit(X, y)
    expected = [kl("laplace", y, f, versions[j]) for j in range(5)]
    assert_allclose(criterion.loss(np.arange(5)), expected, atol=1e-9)


def test_a_perfect_fit_still_has_finite_scores():
    X, _ = table()
    y = X[:, 0] + X[:, 1]
    scores = DensitySensitivity(Ridge(alpha=1e-12)).fit(X, y).loss(np.arange(5))
    assert np.isfinite(scores).all()
    assert scores[:2].min() > 10 * scores[2:].max()


@pytest.mark.parametrize("by", ["marginal", "permutation", "zero", "removal"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_an_svm_without_support_vectors_scores_every_column_0(kernel, by):
    X, y = table()
    machine = SVR(kernel=kernel, epsilon=2 * np.ptp(y))
    assert len(machine.fit(X, y).support_) == 0
    for kind in (DensitySensitivity, ScoreSensitivity):
        losses = kind(machine, by=by, random_state=0).fit(X, y).loss(np.arange(5))
        assert_allclose(losses, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["sd-l-rfe", "sd-g-rfe"])
def test_a_constant_target_is_reported_and_the_first_column_is_selected(name):
    X, _ = table()
    with pytest.warns(DegenerateData, match=r"every row has the same target 3\.0"):
        search = recipe(name).fit(X, np.full(50, 3.0))
    assert_array_equal(search.order_, np.arange(5))


def test_gaussian_scores_have_the_order_of_the_increase_in_error():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:200] * 21, y[:200] / 50
    model = SVR(C=5, gamma=0.1)
    density = DensitySensitivity(model, noise="gaussian").fit(X, y).loss(np.arange(10))
    fall = ScoreSensitivity(model, scoring="neg_mean_squared_error", n_values=40).fit(X, y)
    assert kendalltau(density, fall.loss(np.arange(10))).statistic > 0.9


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc"])
def test_score_decreases_agree_with_permutation_importance(scoring):
    X, y = make_classification(80, 5, random_state=0)
    model = LogisticRegression().fit(X, y)
    criterion = ScoreSensitivity(
        LogisticRegression(), scoring=scoring, by="permutation", n_repeats=20, random_state=0
    ).fit(X, y)
    found = criterion.loss(np.arange(5))
    theirs = permutation_importance(model, X, y, scoring=scoring, n_repeats=20, random_state=0)
    gap = np.hypot(criterion.errors(np.arange(5)), theirs.importances_std / np.sqrt(20))
    assert (np.abs(found - theirs.importances_mean) <= 4 * gap + 1e-12).all()
    # and exactly with our own shuffles
    score = (lambda m, Z, t: m.score(Z, t)) if scoring is None else get_scorer(scoring)
    falls = []
    for repeat in range(20):
        order = stream(0, "shuffle", 5, repeat).permutation(80)
        altered = [np.insert(np.delete(X, j, 1), j, X[order, j], 1) for j in range(5)]
        falls.append([score(model, X, y) - score(model, a, y) for a in altered])
    assert_allclose(found, np.mean(falls, axis=0), atol=1e-12)


def test_the_marginal_decrease_is_the_mean_over_all_values():
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=0)
    model = SVC(gamma=0.3).fit(X, y)
    expected = [
        model.score(X, y)
        - np.mean([model.score(np.insert(np.delete(X, j, 1), j, v, 1), y) for v in X[:, j]])
        for j in range(4)
    ]
    criterion = ScoreSensitivity(SVC(gamma=0.3)).fit(X, y)
    assert_allclose(criterion.loss(np.arange(4)), expected, atol=1e-12)


CLASSIFIERS = [
    SVC(gamma=0.3),
    SVC(gamma=0.3, break_ties=True),
    LinearSVC(),
    LogisticRegression(),
    MLPClassifier((4,), solver="lbfgs", alpha=1.0, max_iter=1000, random_state=0),
    make_pipeline(StandardScaler(), SVC(gamma=0.3)),
    RandomForestClassifier(8, random_state=0),
    FixedThresholdClassifier(SVC(gamma=0.3), threshold=0.4, response_method="decision_function"),
]


@pytest.mark.parametrize("on", ["training", "held-out"])
@pytest.mark.parametrize("by", ["marginal", "permutation", "zero"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_accuracies_of_engines_agree_with_altered_copies(model, by, on):
    """A scoring function of (estimator, X, y) is evaluated on altered copies of the rows."""
    for n_classes in (2, 3):
        if n_classes == 3 and isinstance(model, FixedThresholdClassifier):
            continue
        X, y = make_classification(
            60, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
            random_state=0,
        )  # fmt: skip
        y = np.array(["a", "b", "c"])[y]
        options = {"by": by, "on": on, "n_repeats": 2, "n_values": 9, "random_state": 0}
        scores = [
            ScoreSensitivity(model, scoring=scoring, **options).fit(X, y).loss(np.arange(4))
            for scoring in (None, "accuracy", lambda fitted, X, y: fitted.score(X, y))
        ]
        assert_allclose(scores[0], scores[2], atol=1e-12)
        assert_allclose(scores[1], scores[2], atol=1e-12)


@pytest.mark.parametrize("on", ["training", "held-out"])
@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_squared_error"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_errors_of_engines_agree_with_altered_copies(model, scoring, on):
    X, y = table()
    scorer = get_scorer("r2" if scoring is None else scoring)
    fast, slow = (
        ScoreSensitivity(model, scoring=s, on=on, n_values=9).fit(X, y).loss(np.arange(5))
        for s in (scoring, lambda fitted, X, y: scorer(fitted, X, y))
    )
    assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


def test_engines_need_no_copies_for_standard_scores(monkeypatch):
    X, y = make_classification(60, 4, random_state=0)

    def refuse(*_):
        raise AssertionError("altered copies are made")

    monkeypatch.setattr(GenericEngine, "batches", refuse)
    monkeypatch.setattr(CopyComparison, "_alter", refuse)
    assert ScoreSensitivity(SVC()).fit(X, y).loss(np.arange(4)).shape == (4,)
    assert ScoreSensitivity(SVR()).fit(X, X[:, 0]).loss(np.arange(4)).shape == (4,)
    assert ScoreSensitivity(SVC(), scoring="roc_auc").fit(X, y).loss(np.arange(4)).shape == (4,)

    def own_auc(model, X, y):
        return roc_auc_score(y, model.decision_function(X))

    with pytest.raises(AssertionError, match="copies"):
        ScoreSensitivity(SVC(), scoring=own_auc).fit(X, y).loss(np.arange(4))


def test_r2_of_a_constant_target_is_left_to_the_scorer():
    X, _ = table()
    y = np.full(50, 3.0)
    scores = ScoreSensitivity(Ridge(), n_values=3).fit(X, y).loss(np.arange(5))
    assert_allclose(scores, 0.0, atol=1e-12)


def test_the_decrease_by_removal_agrees_with_retraining():
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, random_state=0)
    full = SVC().fit(X, y).score(X, y)
    rest = [np.delete(X, j, 1) for j in range(4)]
    expected = [full - SVC().fit(r, y).score(r, y) for r in rest]
    criterion = ScoreSensitivity(SVC(), by="removal").fit(X, y)
    assert_allclose(criterion.loss(np.arange(4)), expected, atol=1e-12)
    alone = SVC().fit(X[:, [1]], y).score(X[:, [1]], y) - np.bincount(y).max() / len(y)
    assert_allclose(criterion.loss(np.array([1])), [alone], atol=1e-12)


@pytest.mark.parametrize(
    ("criterion", "error", "sentence"),
    [
        (DensitySensitivity(SVR(), noise="cauchy"), InvalidParameter, "noise to be 'laplace'"),
        (DensitySensitivity(SVR(), by="derivative"), IncompatibleCriterion, "has no derivative"),
        (DensitySensitivity(SVC()), IncompatibleCriterion, "Use PosteriorSensitivity"),
        (DensitySensitivity(SVR(kernel="precomputed")), IncompatibleCriterion, "precomputed"),
        (
            DensitySensitivity(Ridge(), by=Zero(centres=True)),
            IncompatibleCriterion,
            r"needs an SVM \(SVC, SVR\)",
        ),
        (ScoreSensitivity(Ridge(), scoring=["r2"]), InvalidParameter, "needs one score"),
        (ScoreSensitivity(Ridge(), by="derivative"), IncompatibleCriterion, "has no derivative"),
        (
            ScoreSensitivity(Ridge(), by=Zero(centres=True)),
            IncompatibleCriterion,
            "values in rows",
        ),
    ],
)
def test_invalid_input_is_refused(criterion, error, sentence):
    X, y = table()
    with pytest.raises(error, match=sentence):
        criterion.fit(X, y).loss(np.arange(5))

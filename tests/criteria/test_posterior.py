"""Sensitivity of posteriors, compared with explicitly altered copies of the table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

from tamis._seeds import stream
from tamis.criteria import Derivative, Marginal, Permutation, PosteriorSensitivity, Zero
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidTarget
from tamis.recipes import recipe
from tamis.response.calibration import calibrating_parts
from tamis.search import RecursiveElimination


def table(n_classes=2, n_samples=60, n_features=5, seed=0):
    X, y = make_classification(
        n_samples, n_features, n_informative=3, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, class_sep=0.8, random_state=seed,
    )  # fmt: skip
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, 2] = np.rint(2 * X[:, 2])  # few values
    X[0, 4] = 9.0  # one far away
    return X, y


def moved(p, q):
    return np.abs(p - q).sum(axis=1).mean() / 2


def brute_marginal(outputs, X, j):
    """Return the mean change when all rows take the value of each row in turn."""
    base, total = outputs(X), 0.0
    for value in X[:, j]:
        altered = X.copy()
        altered[:, j] = value
        total += moved(base, outputs(altered))
    return total / len(X)


def brute(outputs, X, altered_column):
    found = []
    for j in range(X.shape[1]):
        altered = X.copy()
        altered[:, j] = altered_column(X[:, j])
        found.append(moved(outputs(X), outputs(altered)))
    return found


def all_of(X):
    return np.arange(X.shape[1])


def network(**options):
    return MLPClassifier(
        (6,), activation="tanh", solver="lbfgs", alpha=0.1, max_iter=300, random_state=0, **options
    )


WITH_PROBABILITIES = [
    LogisticRegression(),
    RandomForestClassifier(10, random_state=0),
    GaussianNB(),
    network(),
    make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    CalibratedClassifierCV(SVC(), ensemble=False, cv=3),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", WITH_PROBABILITIES, ids=lambda m: type(m).__name__)
def test_probabilities_are_used_directly(model, n_classes):
    X, y = table(n_classes)
    outputs = model.fit(X, y).predict_proba
    expected = [brute_marginal(outputs, X, j) for j in range(5)]
    assert_allclose(PosteriorSensitivity(model).fit(X, y).loss(all_of(X)), expected, atol=1e-10)
    order = stream(3, "shuffle", 5, 0).permutation(len(X))
    shuffled = PosteriorSensitivity(model, by="permutation", random_state=3).fit(X, y)
    assert_allclose(shuffled.loss(all_of(X)), brute(outputs, X, lambda x: x[order]), atol=1e-10)
    zeroed = PosteriorSensitivity(model, by="zero").fit(X, y)
    assert_allclose(zeroed.loss(all_of(X)), brute(outputs, X, lambda x: 0.0), atol=1e-10)


def machines():
    for kernel in ("rbf", "poly", "linear"):
        for gamma in (0.02, 0.5):
            if kernel == "rbf" or gamma == 0.5:
                yield SVC(kernel=kernel, C=3.0, gamma=gamma, coef0=0.5)
    yield SVC()
    yield NuSVC(nu=0.3, gamma="auto")
    yield SVC(kernel="sigmoid", gamma=0.1)
    yield make_pipeline(StandardScaler(), SVC(gamma=0.3))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", list(machines()), ids=str)
def test_svms_are_calibrated_as_in_scikit_learn(machine, n_classes):
    """The reference is scikit-learn's calibration of the same SVM."""
    X, y = table(n_classes)
    base = machine if n_classes == 2 else OneVsRestClassifier(machine)
    cv = list(StratifiedKFold(5).split(X, y))
    outputs = CalibratedClassifierCV(base, ensemble=False, cv=cv).fit(X, y).predict_proba
    expected = [brute_marginal(outputs, X, j) for j in range(5)]
    criterion = PosteriorSensitivity(machine).fit(X, y)
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-9)
    order = stream(3, "shuffle", 5, 0).permutation(len(X))
    shuffled = PosteriorSensitivity(machine, by="permutation", random_state=3).fit(X, y)
    assert_allclose(shuffled.loss(all_of(X)), brute(outputs, X, lambda x: x[order]), atol=1e-9)
    zeroed = PosteriorSensitivity(machine, by="zero").fit(X, y)
    assert_allclose(zeroed.loss(all_of(X)), brute(outputs, X, lambda x: 0.0), atol=1e-9)


@pytest.mark.parametrize("gamma", [0.02, 0.5])
def test_a_column_may_be_constant_among_the_centres(gamma):
    """Rows and new values of the column may differ from the value of the centres."""
    X, y = table()
    machine = SVC(gamma=gamma)
    X[:, 3] = 2.0
    cv = list(StratifiedKFold(5).split(X, y))
    outputs = CalibratedClassifierCV(machine, ensemble=False, cv=cv).fit(X, y).predict_proba
    zeroed = PosteriorSensitivity(machine, by="zero").fit(X, y)
    assert_allclose(zeroed.loss(all_of(X)), brute(outputs, X, lambda x: 0.0), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_nearly_diagonal_kernel_is_calibrated_on_its_own_rows(n_classes):
    """Decisions on held-out rows are tiny, so their sigmoid would be a step function."""
    X, y = table(n_classes)
    machine = SVC(C=3.0, gamma=20.0)
    base = (machine if n_classes == 2 else OneVsRestClassifier(machine)).fit(X, y)
    own = [(np.arange(len(X)), np.arange(len(X)))]
    fallen = CalibratedClassifierCV(FrozenEstimator(base), ensemble=False, cv=own).fit(X, y)
    expected = [brute_marginal(fallen.predict_proba, X, j) for j in range(5)]
    criterion = PosteriorSensitivity(machine).fit(X, y)
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-9)
    zeroed = PosteriorSensitivity(machine, by="zero").fit(X, y)
    expected = brute(fallen.predict_proba, X, lambda x: 0.0)
    assert_allclose(zeroed.loss(all_of(X)), expected, atol=1e-9)


def test_a_saturated_sigmoid_does_not_hide_changes():
    """With 40 columns and a narrow kernel, the out-of-fold sigmoid is nearly a step function."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 40))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    machine = SVC(C=2.0, gamma=5 / 40)
    cv = list(StratifiedKFold(5).split(X, y))
    steep = CalibratedClassifierCV(machine, ensemble=False, cv=cv).fit(X, y)
    (sigmoid,) = steep.calibrated_classifiers_[0].calibrators
    assert sigmoid.a_ < -20
    assert brute(steep.predict_proba, X, lambda x: 0.0)[0] < 1e-3
    scores = PosteriorSensitivity(machine, by="zero").fit(X, y).loss(np.arange(40))
    assert scores[:2].min() > 1e-3


def test_a_sigmoid_never_decreases():
    """Out-of-fold decisions on noise that point the wrong way are ignored."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), np.tile([0, 1], 30)
    cv = list(StratifiedKFold(5).split(X, y))
    wrong = CalibratedClassifierCV(SVC(gamma=0.25), ensemble=False, cv=cv).fit(X, y)
    assert wrong.calibrated_classifiers_[0].calibrators[0].a_ > 0
    criterion = PosteriorSensitivity(SVC(gamma=0.25)).fit(X, y)
    assert criterion._compared.machines(X).sigmoids.slopes < 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [SVC(gamma=0.4), SVC(kernel="poly", gamma=0.5, coef0=1), LinearSVC(), RidgeClassifier(),
     LogisticRegression(), KNeighborsClassifier(3), network()],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_decision_output_is_the_share_of_changed_classes(model, n_classes):
    """FSPP1 is the share of rows whose class changes."""
    X, y = table(n_classes)
    predict = model.fit(X, y).predict
    expected = [
        np.mean([predict(np.insert(np.delete(X, j, 1), j, v, 1)) != predict(X) for v in X[:, j]])
        for j in range(5)
    ]
    criterion = PosteriorSensitivity(model, output="decision").fit(X, y)
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-12)


def test_quantiles_represent_a_column():
    X, y = table(n_samples=64)
    outputs = LogisticRegression().fit(X, y).predict_proba
    criterion = PosteriorSensitivity(LogisticRegression(), n_values=8).fit(X, y)
    expected = []
    for j in range(5):
        values = np.sort(X[:, j])[4::8] if len(set(X[:, j])) > 8 else X[:, j]
        altered = [np.insert(np.delete(X, j, 1), j, v, 1) for v in values]
        expected.append(np.mean([moved(outputs(X), outputs(a)) for a in altered]))
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-10)
    by_object = PosteriorSensitivity(LogisticRegression(), by=Marginal(8)).fit(X, y)
    assert_array_equal(by_object.loss(all_of(X)), criterion.loss(all_of(X)))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_zero_may_apply_to_the_centres_too(kernel):
    X, y = table()
    machine = SVC(kernel=kernel, gamma=0.4, coef0=1.0, C=2.0)
    cv = list(StratifiedKFold(5).split(X, y))
    sigmoid = CalibratedClassifierCV(machine, ensemble=False, cv=cv).fit(X, y)
    (calibrator,) = sigmoid.calibrated_classifiers_[0].calibrators
    fitted = machine.fit(X, y)
    base = sigmoid.predict_proba(X)[:, 1]
    expected = []
    for j in range(5):
        A, S = X.copy(), fitted.support_vectors_.copy()
        A[:, j] = S[:, j] = 0
        G = A @ S.T
        K = {"linear": G, "poly": (0.4 * G + 1) ** 3}.get(
            kernel, np.exp(-0.4 * ((A[:, None] - S) ** 2).sum(axis=2))
        )
        f = K @ fitted.dual_coef_[0] + fitted.intercept_
        expected.append(np.abs(calibrator.predict(f) - base).mean())
    criterion = PosteriorSensitivity(machine, by=Zero(centres=True)).fit(X, y)
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-9)


def test_held_out_rows_are_predicted_by_models_trained_without_them():
    X, y = table(n_samples=80)
    machine, folds = SVC(gamma=0.3), list(StratifiedKFold(5).split(X, y))
    fits = [SVC(gamma=0.3).fit(X[train], y[train]) for train, _ in folds]
    f = np.empty(len(X))
    for fit, (_, test) in zip(fits, folds, strict=True):
        f[test] = fit.decision_function(X[test])
    a, b = _platt(f, y)
    expected = np.zeros(5)
    for j in range(5):
        for fit, (_, test) in zip(fits, folds, strict=True):
            base = 1 / (1 + np.exp(a * f[test] + b))
            for value in X[:, j]:
                altered = X[test].copy()
                altered[:, j] = value
                p = 1 / (1 + np.exp(a * fit.decision_function(altered) + b))
                expected[j] += np.abs(p - base).sum() / len(X) ** 2
    criterion = PosteriorSensitivity(machine, on="held-out").fit(X, y)
    assert_allclose(criterion.loss(all_of(X)), expected, atol=1e-6)


def _platt(f, y):
    """Minimise Platt's objective by Newton's method."""
    n = y.sum()
    t = np.where(y == 1, (n + 1) / (n + 2), 1 / (len(y) - n + 2))
    F, w = np.stack([f, np.ones_like(f)], axis=1), np.zeros(2)
    for _ in range(100):
        p = 1 / (1 + np.exp(F @ w))
        w = w - np.linalg.solve((F * (p * (1 - p))[:, None]).T @ F, F.T @ (t - p))
    return w


def test_the_sigmoid_can_be_fitted_to_a_held_out_fraction():
    X, y = table(n_samples=90)
    criterion = PosteriorSensitivity(SVC(gamma=0.3), calibration=0.3, random_state=1).fit(X, y)
    train, [(same, rest)] = calibrating_parts(criterion._training, criterion.calibration)
    assert_array_equal(train, same)
    assert len(rest) == 27
    assert_array_equal(np.sort(np.r_[train, rest]), np.arange(90))
    fit = SVC(gamma=0.3).fit(X[train], y[train])
    a, b = _platt(fit.decision_function(X[rest]), y[rest])

    def outputs(Z):
        p = 1 / (1 + np.exp(a * fit.decision_function(Z) + b))
        return np.stack([1 - p, p], axis=1)

    assert_allclose(
        criterion.loss(all_of(X)), [brute_marginal(outputs, X, j) for j in range(5)], atol=1e-6
    )


@pytest.mark.parametrize("model", [LogisticRegression(), SVC(gamma=0.3)], ids=str)
def test_removal_trains_a_model_without_the_column(model):
    X, y = table()
    cv = list(StratifiedKFold(5).split(X, y))

    def p(columns):
        known = hasattr(model, "predict_proba")
        whole = model if known else CalibratedClassifierCV(model, ensemble=False, cv=cv)
        return whole.fit(X[:, columns], y).predict_proba(X[:, columns])

    subset = np.array([0, 1, 3])
    expected = [moved(p(subset), p(subset[subset != j])) for j in subset]
    criterion = PosteriorSensitivity(model, by="removal").fit(X, y)
    assert_allclose(criterion.loss(subset), expected, atol=1e-9)
    alone = moved(p([3]), np.tile(np.bincount(y) / len(y), (len(y), 1)))
    assert_allclose(criterion.loss(np.array([3])), [alone], atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_derivative_agrees_with_retrained_svms(kernel):
    """FSPP4 agrees with central differences of retrained SVMs with a fixed sigmoid."""
    X, y = table(n_samples=70, seed=2)
    X[0, 4] = 0.0
    make = dict(kernel=kernel, C=1.0, gamma=0.3, coef0=1.0, degree=2, tol=1e-10)
    criterion = PosteriorSensitivity(SVC(**make), by="derivative").fit(X, y)
    sigmoids = criterion._compared.models(X)[0].model.link
    expected = []
    for j in range(5):
        sides = []
        for v in (1 - 2e-3, 1 + 2e-3):
            scaled = X.copy()
            scaled[:, j] *= v
            f = SVC(**make).fit(scaled, y).decision_function(scaled)
            sides.append(sigmoids(f[:, None])[:, 0])
        expected.append(np.abs((sides[1] - sides[0]) / 4e-3).mean())
    assert_allclose(criterion.loss(all_of(X)), expected, rtol=0.02, atol=2e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_derivative_agrees_with_a_fixed_svm(n_classes, kernel):
    """The expected values are central differences of the outputs when a column is scaled."""
    X, y = table(n_classes)
    machine = SVC(kernel=kernel, C=3.0, gamma=0.3, coef0=1.0)
    criterion = PosteriorSensitivity(machine, by=Derivative(follow=False)).fit(X, y)
    outputs = criterion._compared.models(X)[0].model.outputs
    expected = []
    for j in range(5):
        up, down = X.copy(), X.copy()
        up[:, j] *= 1 + 1e-5
        down[:, j] *= 1 - 1e-5
        slopes = np.abs(outputs(up) - outputs(down)) / 2e-5
        expected.append(slopes.sum(axis=1).mean() / (1 if n_classes == 2 else 2))
    assert_allclose(criterion.loss(all_of(X)), expected, rtol=1e-6, atol=1e-9)


def test_a_fixed_svm_finds_the_columns_of_an_easy_problem():
    """An adapted SVM compensates the scale by its multipliers, and finds few relevant columns."""
    found = {"fspp4-rfe": 0, "fspp4-rfe-printed": 0}
    for seed in range(3):
        draw = np.random.default_rng(seed)
        X = draw.normal(size=(200, 20))
        relevant = draw.choice(20, 3, replace=False)
        y = X[:, relevant].sum(axis=1) > 0
        for name in found:
            search = recipe(name, n_features_to_select=3).fit(X, y)
            found[name] += len({*search.order_[:3]} & {*relevant})
    assert found["fspp4-rfe"] == 9
    assert found["fspp4-rfe-printed"] <= 3


def test_the_sigmoid_may_be_differentiated_too():
    X, y = table(n_samples=70, seed=2)
    X[0, 4] = 0.0
    machine = SVC(C=1.0, gamma=0.3, tol=1e-10)
    criterion = PosteriorSensitivity(machine, by=Derivative(calibration=True)).fit(X, y)
    expected = []
    for j in range(5):
        sides = []
        for v in (1 - 2e-3, 1 + 2e-3):
            scaled = X.copy()
            scaled[:, j] *= v
            folds = list(StratifiedKFold(5).split(X, y))
            unseen = np.concatenate(
                [SVC(**machine.get_params()).fit(scaled[a], y[a]).decision_function(scaled[b])
                 for a, b in folds]
            )  # fmt: skip
            a, b = _platt(unseen, y[np.concatenate([t for _, t in folds])])
            f = SVC(**machine.get_params()).fit(scaled, y).decision_function(scaled)
            sides.append(1 / (1 + np.exp(a * f + b)))
        expected.append(np.abs((sides[1] - sides[0]) / 4e-3).mean())
    found = criterion.loss(all_of(X))
    assert_allclose(found, expected, rtol=0.03, atol=5e-4)
    still = PosteriorSensitivity(machine, by="derivative").fit(X, y).loss(all_of(X))
    assert np.abs(found - still).max() > 1e-3


def test_the_derivative_of_several_classes_agrees_with_differences():
    X, y = table(3, n_samples=80)
    X[0, 4] = 0.0
    machine = SVC(C=1.0, gamma=0.2, tol=1e-10)
    criterion = PosteriorSensitivity(machine, by="derivative").fit(X, y)
    sigmoids = criterion._compared.models(X)[0].model.link
    for j in (0, 3):
        sides = []
        for v in (1 - 2e-3, 1 + 2e-3):
            scaled = X.copy()
            scaled[:, j] *= v
            sides.append(
                sigmoids(OneVsRestClassifier(machine).fit(scaled, y).decision_function(scaled))
            )
        expected = np.abs((sides[1] - sides[0]) / 4e-3).sum(axis=1).mean() / 2
        assert_allclose(criterion.loss(all_of(X))[j], expected, rtol=0.03, atol=3e-4)


def test_duplicate_rows_do_not_break_the_derivative():
    X, y = table(n_samples=40)
    X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    criterion = PosteriorSensitivity(SVC(gamma=0.3), by="derivative").fit(X, y)
    assert np.isfinite(criterion.loss(all_of(X))).all()


def test_a_column_that_the_model_ignores_scores_0():
    X, y = table()
    X = np.column_stack([X, np.full(len(X), 2.0)])
    criterion = PosteriorSensitivity(SVC(gamma=0.3)).fit(X, y)
    assert criterion.loss(np.arange(6))[5] < 1e-12
    fixed = LogisticRegression(l1_ratio=1.0, C=0.05, solver="liblinear")
    ignored = np.flatnonzero(fixed.fit(X, y).coef_[0] == 0)
    assert len(ignored)
    assert_array_equal(PosteriorSensitivity(fixed).fit(X, y).loss(np.arange(6))[ignored], 0.0)


def test_the_marginal_does_not_depend_on_the_seed():
    X, y = table()
    scores = [
        PosteriorSensitivity(SVC(gamma=0.3), random_state=s).fit(X, y).loss(all_of(X))
        for s in (0, 1, None)
    ]
    assert_array_equal(scores[0], scores[1])
    assert_array_equal(scores[0], scores[2])


def test_the_number_of_jobs_changes_nothing():
    X, y = table()
    scores = [
        PosteriorSensitivity(RandomForestClassifier(6, random_state=0, n_jobs=n), n_values=4)
        .fit(X, y)
        .loss(all_of(X))
        for n in (1, 2)
    ]
    assert_array_equal(scores[0], scores[1])


def test_groups_stay_together_in_the_folds():
    X, y = table()
    groups = np.repeat(np.arange(12), 5)
    criterion = PosteriorSensitivity(SVC(gamma=0.3), on="held-out").fit(X, y, groups=groups)
    for train, test in criterion._training.parts:
        assert not set(groups[train]) & set(groups[test])
    assert np.isfinite(criterion.loss(all_of(X))).all()
    with pytest.raises(InvalidParameter, match="makes no folds"):
        PosteriorSensitivity(LogisticRegression()).fit(X, y, groups=groups)


def test_the_marginal_is_close_to_the_mean_of_many_shuffles():
    X, y = table()
    exact = PosteriorSensitivity(SVC(gamma=0.3)).fit(X, y).loss(all_of(X))
    many = PosteriorSensitivity(SVC(gamma=0.3), by="permutation", n_repeats=200, random_state=0)
    many.fit(X, y)
    found = many.loss(all_of(X))
    assert (np.abs(found - exact) < 4 * many.errors(all_of(X))).all()
    assert not np.allclose(found, exact, atol=1e-6)


def test_standard_errors_are_computed_over_shuffles():
    X, y = table()
    criterion = PosteriorSensitivity(LogisticRegression(), by=Permutation(6), random_state=0).fit(
        X, y
    )
    subset = np.array([0, 3])
    criterion.loss(subset)
    singles = []
    p = LogisticRegression().fit(X[:, subset], y).predict_proba
    for repeat in range(6):
        order = stream(0, "shuffle", 2, repeat).permutation(len(X))
        singles.append(brute(p, X[:, subset], lambda x, order=order: x[order]))
    assert_allclose(
        criterion.errors(subset), np.std(singles, axis=0, ddof=1) / np.sqrt(6), atol=1e-10
    )
    assert criterion.errors(np.array([0, 1])) is None


def test_repeats_stop_when_the_order_is_clear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + 0.02 * rng.normal(size=200) > 0).astype(int)
    X[:, 2] = X[:, 1] + 1e-3 * rng.normal(size=200)
    spare = Permutation(30, stop_when_sure=True)
    criterion = PosteriorSensitivity(LogisticRegression(), by=spare, random_state=0).fit(X, y)
    full = PosteriorSensitivity(LogisticRegression(), by=Permutation(3), random_state=0).fit(X, y)
    scores, three = criterion.loss(all_of(X)), full.loss(all_of(X))
    assert_allclose(scores[0], three[0], atol=1e-12)  # clear after three
    assert (np.abs(scores[1:] - three[1:]) > 0).all()
    assert np.isfinite(criterion.errors(all_of(X))).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("output", ["probability", "decision"])
def test_a_search_over_hyper_parameters_is_used_and_retuned(n_classes, output):
    X, y = table(n_classes)
    tuned = GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=3)
    criterion = PosteriorSensitivity(tuned, output=output)
    search = RecursiveElimination(criterion, n_features_to_select=2, retune=1).fit(X, y)
    steps = list(search.trace_)[1:]
    assert all(set(step.params) == {"C"} for step in steps)
    again = clone(criterion).fit(X, y)
    again.use({"C": 0.1})
    fixed = PosteriorSensitivity(SVC(C=0.1), output=output).fit(X, y)
    assert_allclose(again.loss(all_of(X)), fixed.loss(all_of(X)))


def test_labels_of_any_kind():
    X, y = table()
    named = np.array(["no", "yes"])[y]
    for model in (SVC(gamma=0.3), LogisticRegression()):
        assert_allclose(
            PosteriorSensitivity(model).fit(X, named).loss(all_of(X)),
            PosteriorSensitivity(model).fit(X, y).loss(all_of(X)),
        )


def test_sample_weights_are_passed_to_the_model():
    X, y = table()
    weight = np.where(np.arange(60) < 30, 3.0, 0.5)
    outputs = LogisticRegression().fit(X, y, sample_weight=weight).predict_proba
    criterion = PosteriorSensitivity(LogisticRegression()).fit(X, y, sample_weight=weight)
    assert_allclose(criterion.loss(all_of(X))[1], brute_marginal(outputs, X, 1), atol=1e-10)
    X3, y3 = table(3)
    with pytest.raises(InvalidParameter, match="more than two classes"):
        PosteriorSensitivity(SVC()).fit(X3, y3, sample_weight=weight)


def test_splitting_rows_into_blocks_changes_nothing(monkeypatch):
    import tamis.response.comparison as comparison
    from tamis.response.engines import base, kernel

    X, y = table()
    expected = PosteriorSensitivity(SVC(gamma=0.3)).fit(X, y).loss(all_of(X))
    monkeypatch.setattr(kernel, "MOST_VALUES", 500)
    monkeypatch.setattr(base, "BLOCK", 100)
    monkeypatch.setattr(comparison, "KEPT", 0)
    found = PosteriorSensitivity(SVC(gamma=0.3)).fit(X, y).loss(all_of(X))
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"by": "magic"}, InvalidParameter, "'marginal', 'permutation'"),
        ({"by": 3}, InvalidParameter, "got 3"),
        ({"output": "class"}, InvalidParameter, "output to be 'probability' or 'decision'"),
        ({"on": "test"}, InvalidParameter, "on to be 'training', 'held-out', 'left-out' or 'auto'"),
        ({"n_repeats": 0}, InvalidParameter, "n_repeats to be an int of at least 1"),
        ({"n_values": 2.5}, InvalidParameter, "n_values to be an int of at least 1 or None"),
        ({"by": Permutation(0)}, InvalidParameter, "Permutation needs n_repeats"),
        ({"calibration": 1}, InvalidParameter, "an int of at least 2"),
        ({"calibration": 1.5}, InvalidParameter, r"a number in \(0, 1\)"),
        ({"calibration": None}, InvalidParameter, "has no predict_proba"),
        ({"by": "derivative", "output": "decision"}, InvalidParameter, "no derivative"),
    ],
)
def test_invalid_parameters_are_reported_by_name(options, error, sentence):
    with pytest.raises(error, match=sentence):
        PosteriorSensitivity(SVC(), **options).fit(*table())


@pytest.mark.parametrize(
    ("criterion", "sentence"),
    [
        (PosteriorSensitivity(SVC(kernel="precomputed")), "has a precomputed kernel"),
        (PosteriorSensitivity(LogisticRegression(), by="derivative"), "needs an SVC"),
        (PosteriorSensitivity(LinearSVC(), by="derivative"), "needs an SVC"),
        (PosteriorSensitivity(SVC(kernel="sigmoid"), by="derivative"), "RBF, polynomial or linear"),
        (
            PosteriorSensitivity(LogisticRegression(), by=Zero(centres=True)),
            "needs an SVM",
        ),
        (PosteriorSensitivity(network(), by=Zero(centres=True)), "needs an SVM"),
        (PosteriorSensitivity(GaussianNB(), by=Zero(centres=True)), "needs an SVM"),
    ],
)
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
def test_unsupported_estimators_are_refused(criterion, sentence):
    X, y = table()
    with pytest.raises(IncompatibleCriterion, match=sentence):
        criterion.fit(X, y).loss(all_of(X))


def test_a_regressor_is_refused():
    from sklearn.svm import SVR

    with pytest.raises(IncompatibleCriterion, match="Use DensitySensitivity"):
        PosteriorSensitivity(SVR()).fit(*table())


def test_a_class_with_one_row_cannot_be_calibrated():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidTarget, match="two rows of each class"):
        PosteriorSensitivity(SVC()).fit(X[:101], y[:101]).loss(all_of(X))

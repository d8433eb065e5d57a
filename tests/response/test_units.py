"""Units of several columns change together: every engine against explicitly altered copies.

How the losses of such units are compared with chance is tested in ``criteria/test_chance.py``.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis._seeds import stream
from tamis.criteria import (
    DensitySensitivity,
    Importances,
    OutputInformation,
    PosteriorSensitivity,
    ScoreSensitivity,
    Zero,
)

#: Columns of the units; those of one unit need not be neighbours.
GROUPS = [[1, 4], [0], [2, 3, 5], [6]]
ALL = np.arange(len(GROUPS))


def grouped(kind, **always):
    """Makes a criterion whose units are the groups above."""
    return lambda *args, **options: kind(*args, **always, **options).grouped(GROUPS)


GroupedPosterior = grouped(PosteriorSensitivity, adjusted=False)
GroupedDensity = grouped(DensitySensitivity, adjusted=False)
GroupedScore = grouped(ScoreSensitivity, adjusted=False)
GroupedInformation = grouped(OutputInformation)
GroupedImportances = grouped(Importances, adjusted=False)


def table(n_classes=2, n_samples=50):
    X, y = make_classification(
        n_samples, 7, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        class_sep=0.7, random_state=0,
    )  # fmt: skip
    X[:, 3] = np.rint(X[:, 3])
    X[:, 6] = 2.0
    return X, y


def network():
    return MLPClassifier(
        (4,), activation="tanh", solver="lbfgs", alpha=0.5, max_iter=500, random_state=0
    )


MODELS = [
    SVC(gamma=0.05),
    SVC(gamma=2.0),
    SVC(kernel="linear"),
    SVC(kernel="poly", gamma=0.2, coef0=1.0),
    make_pipeline(StandardScaler(), SVC(gamma=0.2)),
    network(),
    LogisticRegression(),
    RandomForestClassifier(6, random_state=0),
]


def moved(p, q):
    return np.abs(p - q).sum(axis=1).mean() / (1 if p.shape[1] == 1 else 2)


def replaced(X, columns, values):
    altered = X.copy()
    altered[:, columns] = values
    return altered


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_every_engine_follows_a_group(model, n_classes):
    X, y = table(n_classes)
    criterion = GroupedPosterior(model).fit(X, y)
    outputs = criterion._compared.models(X)[0].model.outputs
    base = outputs(X)
    expected = [
        np.mean([moved(base, outputs(replaced(X, columns, row[columns]))) for row in X])
        for columns in GROUPS
    ]
    assert_allclose(criterion.loss(ALL), expected, atol=1e-9)
    order = stream(3, "shuffle", 7, 0).permutation(len(X))
    shuffled = GroupedPosterior(model, by="permutation", random_state=3).fit(X, y)
    expected = [moved(base, outputs(replaced(X, c, X[order][:, c]))) for c in GROUPS]
    assert_allclose(shuffled.loss(ALL), expected, atol=1e-9)
    zeroed = GroupedPosterior(model, by="zero").fit(X, y)
    expected = [moved(base, outputs(replaced(X, c, 0.0))) for c in GROUPS]
    assert_allclose(zeroed.loss(ALL), expected, atol=1e-9)


def test_n_values_rows_represent_a_group():
    X, y = table()
    criterion = GroupedPosterior(LogisticRegression(), n_values=8, random_state=1).fit(X, y)
    p = LogisticRegression().fit(X, y).predict_proba
    drawn = stream(1, "values", 7).permutation(len(X))[:8]
    expected = np.mean([moved(p(X), p(replaced(X, [1, 4], row[[1, 4]]))) for row in X[drawn]])
    assert_allclose(criterion.loss(ALL)[0], expected, atol=1e-12)
    single = PosteriorSensitivity(LogisticRegression(), n_values=8).fit(X, y).loss(np.arange(7))
    assert_allclose(criterion.loss(ALL)[[1, 3]], single[[0, 6]], atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_centres_lose_a_group(kernel):
    X, y = table()
    machine = SVC(kernel=kernel, gamma=0.2, coef0=1.0)
    criterion = GroupedPosterior(machine, by=Zero(centres=True)).fit(X, y)
    model = criterion._compared.models(X)[0].model
    fitted, found = model.fitted, []
    for columns in GROUPS:
        Z = replaced(X, columns, 0.0)
        kernels = {
            "rbf": lambda A, B: np.exp(-0.2 * ((A[:, None] - B) ** 2).sum(axis=2)),
            "linear": lambda A, B: A @ B.T,
            "poly": lambda A, B: (0.2 * A @ B.T + 1) ** 3,
        }
        K = kernels[kernel](Z, Z[fitted.support_])
        f = K @ fitted.dual_coef_.T + fitted.intercept_
        found.append(moved(model.outputs(X), model.link(f)))
    assert_allclose(criterion.loss(ALL), found, atol=1e-9)


def test_a_group_is_left_out_as_a_whole():
    X, y = table(3)
    lda = LinearDiscriminantAnalysis()
    p = lda.fit(X[:, :6], y).predict_proba(X[:, :6])
    rest = [np.delete(X[:, :6], columns, axis=1) for columns in GROUPS[:3]]
    expected = [moved(p, lda.fit(Z, y).predict_proba(Z)) for Z in rest]
    criterion = GroupedPosterior(lda, by="removal").fit(X, y)
    assert_allclose(criterion.loss(np.arange(3)), expected, atol=1e-9)


def test_the_scale_of_a_group():
    """FSPP4 against central differences of refitted SVMs, with a fixed sigmoid."""
    X, y = table(n_samples=70)
    machine = SVC(gamma=0.2, tol=1e-10)
    criterion = GroupedPosterior(machine, by="derivative").fit(X, y)
    sigmoids = criterion._compared.models(X)[0].model.link
    expected = []
    for columns in GROUPS:
        sides = []
        for v in (1 - 2e-3, 1 + 2e-3):
            scaled = replaced(X, columns, v * X[:, columns])
            f = machine.fit(scaled, y).decision_function(scaled)
            sides.append(sigmoids(f[:, None])[:, 0])
        expected.append(np.abs((sides[1] - sides[0]) / 4e-3).mean())
    assert_allclose(criterion.loss(ALL), expected, rtol=0.02, atol=2e-4)


def test_densities_and_scores_of_groups():
    X, y = table()
    target = X[:, 1] + X[:, 4] + 0.1 * y
    fitted = Ridge().fit(X, target)
    falls = [np.mean([fitted.score(replaced(X, c, row[c]), target) for row in X]) for c in GROUPS]
    score = GroupedScore(Ridge()).fit(X, target)
    assert_allclose(score.loss(ALL), fitted.score(X, target) - np.array(falls), atol=1e-9)
    density = GroupedDensity(Ridge()).fit(X, target).loss(ALL)
    assert density.argmax() == 0
    model = LogisticRegression().fit(X, y)
    order = stream(0, "shuffle", 7, 0).permutation(len(X))
    expected = [
        log_loss(y, model.predict_proba(replaced(X, c, X[order][:, c])))
        - log_loss(y, model.predict_proba(X))
        for c in GROUPS
    ]
    copies = GroupedScore(
        LogisticRegression(), scoring="neg_log_loss", by="permutation", random_state=0
    )
    assert_allclose(copies.fit(X, y).loss(ALL), expected, atol=1e-9)


def test_credit_and_importances_of_a_group_are_added():
    X, y = table(n_samples=80)
    shares = OutputInformation(network(), random_state=0).fit(X, y).loss(np.arange(7))
    grouped = GroupedInformation(network(), random_state=0).fit(X, y).loss(ALL)
    assert_allclose(grouped, [shares[columns].sum() for columns in GROUPS], atol=1e-12)
    weights = Importances(LogisticRegression()).fit(X, y).loss(np.arange(7))
    found = GroupedImportances(LogisticRegression()).fit(X, y).loss(ALL)
    assert_allclose(found, [weights[columns].sum() for columns in GROUPS], atol=1e-12)


def test_a_group_is_knocked_out_together():
    X, y = table(n_samples=80)
    options = {"credit": "knockout", "random_state": 0}
    criterion = GroupedInformation(LogisticRegression(), **options).fit(X, y)
    rows, rest = criterion.train_rows_, criterion.validation_rows_
    fitted, means = LogisticRegression().fit(X[rows], y[rows]), X.mean(axis=0)

    def bits(Z):
        table = np.zeros((2, 2))
        np.add.at(table, (y[rest], fitted.predict(Z)), 1 / len(rest))
        outer = np.outer(table.sum(axis=1), table.sum(axis=0))
        return (table[table > 0] * np.log2(table[table > 0] / outer[table > 0])).sum()

    expected = [bits(X[rest]) - bits(replaced(X[rest], c, means[c])) for c in GROUPS]
    assert_allclose(criterion.loss(ALL), expected, atol=1e-9)

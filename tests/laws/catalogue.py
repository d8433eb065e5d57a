"""Every public criterion and search, found by discovery, with a way to build it for the laws."""

import inspect

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import tamis.criteria
import tamis.search
from tamis._expression import write
from tamis.contract import Search
from tamis.contract.criterion import Criterion
from tamis.criteria import (
    HSIC,
    MIFS,
    Correlation,
    CoxScore,
    CrossValidated,
    DensitySensitivity,
    Divergence,
    FisherScore,
    Importances,
    KwakInformation,
    OutputInformation,
    ParzenInformation,
    Penalised,
    PosteriorSensitivity,
    RadiusMargin,
    ReducedParzenInformation,
    Relief,
    Remembered,
    Scatter,
    Scored,
    ScoreSensitivity,
    Span,
    WeightNorm,
)


def between_rows(X, y):
    """Return a score for ``Scored`` that depends on rows, columns and target."""
    return float(np.abs(X.T @ (y == y.max())).sum())


class ClassesAsTimes(CoxScore):
    """Treat classes as times, because the laws use classes.

    Rows of the second class are censored.
    """

    def fit(self, X, y=None, **params):
        return super().fit(X, np.column_stack([1.0 + y, y != 1]), **params)


#: LIBSVM stops at a tolerance, and its solution then depends on the order of the rows.
MACHINE = SVC(gamma=0.1, tol=1e-11)

#: Parameters for classes that need them, or that have several variants.
EXAMPLES = {
    "HSIC": [HSIC(), HSIC(gamma="median", unbiased=False), HSIC(gamma=0.2)],
    "MIFS": [MIFS(), MIFS(n_bins=4, binning="width")],
    "ParzenInformation": [ParzenInformation(), ParzenInformation(sigma=0.5, leave_one_out=True)],
    "KwakInformation": [KwakInformation(), KwakInformation(leave_one_out=True)],
    "ReducedParzenInformation": [
        ReducedParzenInformation(),
        ReducedParzenInformation(by="removal", sigma=1.0),
        ReducedParzenInformation(by="permutation", n_repeats=2),
    ],
    "Relief": [Relief(), Relief("surf"), Relief("relieff", n_neighbors=5)],
    "Scatter": [Scatter("J1"), Scatter("J2"), Scatter("J3"), Scatter("J3", ridge=1e-3)],
    "Divergence": [Divergence(), Divergence(ridge=1e-3), Divergence("parzen", sigma=0.7)],
    "Remembered": [Remembered(Scatter("J2"))],
    "Penalised": [Penalised(Scatter("J3"), per_feature=0.5), Penalised(FisherScore())],
    "CrossValidated": [
        CrossValidated(LinearDiscriminantAnalysis()),
        CrossValidated(KNeighborsClassifier(3), cv=2),
        # fast probabilities for dense and sparse tables, because laws train a thousand times
        CrossValidated(BernoulliNB(), cv=2, scoring="neg_log_loss"),
    ],
    "Importances": [Importances(RidgeClassifier()), Importances(LinearDiscriminantAnalysis())],
    # initial weights of a network belong to positions, so shares depend on the order
    "OutputInformation": [
        OutputInformation(LogisticRegression(), credit="knockout", random_state=0)
    ],
    "Scored": [Scored(between_rows)],
    "WeightNorm": [WeightNorm(MACHINE), WeightNorm(MACHINE, order=1, retrain=True)],
    "RadiusMargin": [
        *(RadiusMargin(MACHINE), RadiusMargin(MACHINE, order=1)),
        RadiusMargin(MACHINE, soft_margin=True),
    ],
    "Span": [
        *(Span(MACHINE), Span(MACHINE, retrain=True), Span(MACHINE, order=1)),
        Span(MACHINE, soft_margin=True),
    ],
    "PosteriorSensitivity": [
        PosteriorSensitivity(LogisticRegression()),
        PosteriorSensitivity(SVC(), output="decision", n_values=8),
        PosteriorSensitivity(SVC(gamma=0.2)),
        PosteriorSensitivity(SVC(), by="derivative"),
        PosteriorSensitivity(LinearDiscriminantAnalysis(), by="removal"),
        PosteriorSensitivity(SVC(), by="permutation", on="held-out", random_state=0),
    ],
    "DensitySensitivity": [
        DensitySensitivity(Ridge(), n_values=8),
        DensitySensitivity(Ridge(), noise="gaussian", symmetric=True, by="zero"),
    ],
    "ScoreSensitivity": [ScoreSensitivity(LogisticRegression(), n_values=4)],
    "CoxScore": [ClassesAsTimes()],
    "Correlation": [Correlation(), Correlation(task="regression")],
}


def public(module, base):
    """Return the concrete public subclasses of ``base`` in a module."""
    classes = [getattr(module, name) for name in module.__all__]
    found = [c for c in classes if inspect.isclass(c) and issubclass(c, base)]
    return [c for c in found if not inspect.isabstract(c)]


def every(capability):
    """Return instances of every public criterion with the capability."""
    instances = []
    for cls in public(tamis.criteria, Criterion):
        instances += EXAMPLES.get(cls.__name__) or [cls()]
    return [criterion for criterion in instances if isinstance(criterion, capability)]


def searches():
    """Return every public search class."""
    return public(tamis.search, Search)


def name(thing):
    """Return the name of a law or an object, for the report of a test run."""
    return getattr(thing, "__name__", None) or write(thing, strict=False)

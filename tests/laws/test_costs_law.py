"""Every criterion and embedded selection of tamis estimates its memory."""

import inspect

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import tamis.choice
import tamis.neural  # noqa: F401 (its classes are found below)
from tamis.contract import Embedded, ForwardCriterion
from tamis.contract.criterion import Criterion
from tamis.criteria import FisherScore, Importances, Scatter, Scored
from tamis.meta import HonestSize, Probes
from tamis.search import Forward, Ranking, RecursiveElimination, Then
from tests.laws.catalogue import between_rows, every, name

#: Criteria with an estimator or a function of unknown memory.
FOREIGN = {
    "CrossValidated(BernoulliNB(), cv=2, scoring='neg_log_loss')",
    "Importances(LinearDiscriminantAnalysis())",
    "OutputInformation(estimator=LogisticRegression(), credit='knockout', random_state=0)",
    "PosteriorSensitivity(LogisticRegression())",
    "PosteriorSensitivity(LinearDiscriminantAnalysis(), by='removal')",
    "ScoreSensitivity(LogisticRegression(), n_values=4)",
    "Scored(<between_rows>)",
}
SEARCHES = [
    *(Ranking(FisherScore()), Forward(Scatter("J3"))),
    RecursiveElimination(Importances(RidgeClassifier())),
    Then(Ranking(FisherScore(), n_features_to_select=0.5), Forward(Scatter("J3"))),
]


def concrete(kind):
    """Return the concrete subclasses of a class in the package."""
    below = [found for sub in kind.__subclasses__() for found in (sub, *concrete(sub))]
    return [c for c in below if c.__module__.startswith("tamis.") and not inspect.isabstract(c)]


def embedded():
    """Return every embedded selection, and every meta-selector with one search."""
    for kind in sorted(set(concrete(Embedded)), key=lambda kind: kind.__name__):
        asked = inspect.signature(kind).parameters
        if "searches" in asked:
            yield kind(SEARCHES)
        elif "search" in asked:
            yield from (kind(search) for search in SEARCHES)
        else:
            yield kind()


def knows_its_cost(member):
    """Check that the estimate is positive and does not fall as the table grows."""
    sizes = [(50, 10), (50, 40), (200, 40), (5000, 40), (5000, 3000)]
    found = [member.cost(*size) for size in sizes]
    assert None not in found, f"{name(member)} knows no cost"
    assert np.isfinite(found).all()
    assert min(found) > 0
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize(
    "criterion", [c for c in every(Criterion) if name(c) not in FOREIGN], ids=name
)
def test_criteria_estimate_their_memory(criterion):
    knows_its_cost(criterion)


def test_only_the_listed_criteria_have_no_memory_estimate():
    assert {name(c) for c in every(Criterion) if c.cost(100, 10) is None} == FOREIGN


@pytest.mark.parametrize("selection", list(embedded()), ids=name)
def test_embedded_selections_estimate_their_memory(selection):
    knows_its_cost(selection)


def test_the_law_rejects_a_criterion_without_an_estimate():
    class Silent(ForwardCriterion):
        def _learn(self, X, y):
            pass

        def gain(self, subset, candidates):
            return np.zeros(len(candidates))

    class Shrinking(Silent):
        def cost(self, n_samples, n_features):
            return 1e6 / n_samples

    for member in (Silent(), Shrinking()):
        with pytest.raises(AssertionError):
            knows_its_cost(member)


def test_meta_selectors_have_no_estimate_if_their_search_has_none():
    for kind in (Probes, HonestSize):
        assert kind(Forward(Scored(between_rows))).cost(100, 10) is None
    assert (
        HonestSize(Then(Ranking(FisherScore()), Forward(Scored(between_rows)))).cost(9, 9) is None
    )

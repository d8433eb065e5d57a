"""The checks for other packages accept parts of tamis and reject wrong ones."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import tamis.choice
from tamis.choice import (
    BestPrefix,
    CostLimit,
    FalseDiscovery,
    Fraction,
    OneStandardError,
    Size,
    Threshold,
)
from tamis.contract import Choice, Chosen, SubsetCriterion
from tamis.criteria import Scatter
from tamis.search import Forward
from tamis.testing import LawBroken, check_choice, check_criterion, check_search
from tests.laws.catalogue import name, public


class Explained(SubsetCriterion):
    """Criterion: the share of a numeric target that a linear fit on the subset explains."""

    targets = frozenset({"regression"})

    def _learn(self, X, y, **params):
        self._X, self._y = X - X.mean(axis=0), y - y.mean()

    def value(self, subset):
        if not len(subset):
            return 0.0
        X = self._X[:, self.columns(subset)]
        fitted = X @ np.linalg.lstsq(X, self._y, rcond=None)[0]
        return float(fitted @ self._y / (self._y @ self._y))


class DriftingScore(Scatter):
    """Criterion whose value depends on how often it was computed."""

    def value(self, subset):
        self.asked_ = getattr(self, "asked_", 0) + 1
        return super().value(subset) + self.asked_


def test_a_criterion_for_numeric_targets_passes():
    check_criterion(Explained())


def test_a_wrong_criterion_is_reported_with_its_law():
    with pytest.raises(LawBroken, match="DriftingScore breaks the law 'a score depends on"):
        check_criterion(DriftingScore())


class Backwards(Forward):
    def fit(self, X, y=None, **params):
        super().fit(X, y, **params)
        self.support_ = self.support_[::-1]
        return self


def test_a_wrong_search_is_reported_with_its_law():
    with pytest.raises(LawBroken, match="Backwards breaks the law '"):
        check_search(Backwards)


#: Choices that cannot be used with a forward search with Scatter, and why.
NOT_FOR_SCATTER = {
    OneStandardError: "needs standard errors",
    FalseDiscovery: "needs p-values",
}
ARGUMENTS = {
    BestPrefix: (LinearDiscriminantAnalysis(),),
    CostLimit: (3,),
    Fraction: (0.5,),
    Size: (3,),
    Threshold: (0.1,),
}
CHOICES = [c for c in public(tamis.choice, Choice) if c not in NOT_FOR_SCATTER]


@pytest.mark.parametrize("choice", CHOICES, ids=name)
def test_every_choice_passes(choice):
    check_choice(choice(*ARGUMENTS.get(choice, ())))


class OutOfReach(Choice):
    def pick(self, trace, context=None):
        return Chosen(0, "no sentence")


class CountsCalls(Choice):
    calls = 0

    def pick(self, trace, context=None):
        CountsCalls.calls += 1
        return Chosen(CountsCalls.calls % 2, "Whatever comes next.")


class WritesIntoItself(Choice):
    def __init__(self, step=0):
        self.step = step

    def pick(self, trace, context=None):
        self.step = 1
        return Chosen(1, "The second step.")


@pytest.mark.parametrize(
    ("choice", "law"),
    [
        (OutOfReach(), "the reason is a sentence"),
        (CountsCalls(), "picking twice gives the same"),
        (WritesIntoItself(), "the choice stays as it is"),
    ],
    ids=name,
)
def test_a_wrong_choice_is_reported_with_its_law(choice, law):
    with pytest.raises(LawBroken, match=law):
        check_choice(choice)


def test_the_checks_need_no_pytest():
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "from tamis.choice import Knee\n"
        "from tamis.testing import check_choice\n"
        "check_choice(Knee())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

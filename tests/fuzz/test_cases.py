"""A short run of the fuzz tests, and a proof that they detect errors."""

import warnings

import numpy as np
import pytest

from fuzz.tables import table
from fuzz.verdict import Case
from tamis.criteria import FisherScore
from tamis.exceptions import InvalidParameter
from tamis.search import Forward

SEED, COUNT = 20, 60


@pytest.mark.parametrize("first", range(0, COUNT, 20))
def test_every_case_ends_with_a_result_or_a_clear_error(first):
    cases = [Case(SEED, number) for number in range(first, first + 20)]
    failures = [f"{case} -> {wrong}" for case in cases if (wrong := case.run()[1])]
    assert failures == []


def test_a_case_can_be_repeated():
    one, other = Case(3, 14), Case(3, 14)
    assert str(one) == str(other)
    assert str(one).startswith("--seed 3 --only 14: ")
    assert str(one) != str(Case(3, 15))


class Spoilt(FisherScore):
    """Criterion that each subclass breaks in one way."""


class Divides(Spoilt):
    def _scores(self, X, y):
        return 1 // 0


class Mumbles(Spoilt):
    def _scores(self, X, y):
        raise InvalidParameter("bad")


class Warns(Spoilt):
    def _scores(self, X, y):
        warnings.warn("overflow", RuntimeWarning, stacklevel=2)
        return super()._scores(X, y)


class BlamesInfinity(Spoilt):
    def _scores(self, X, y):
        from sklearn.utils import check_array

        check_array(X * np.inf)


class LosesScores(Forward):
    def _steps(self, criterion, n_units, size, done):
        for step in super()._steps(criterion, n_units, size, done):
            yield step._replace(scores=step.scores._replace(values=step.scores.values * np.nan))


class ForgetsOrder(Forward):
    def _settle(self, record, X, y):
        super()._settle(record, X, y)
        self.order_ = self.order_[:-1]


def plain():
    """Return a case with an ordinary table."""
    case = Case(SEED, 0)
    draw = np.random.default_rng(0)
    X = draw.normal(size=(20, 4))
    case.table = case.table._replace(
        X=X, y=(X[:, 0] > 0).astype(int), sample_weight=None, finite=True, words=("plain",)
    )
    return case


@pytest.mark.parametrize(
    ("method", "seen"),
    [
        (Forward(Divides()), "ZeroDivisionError"),
        (Forward(Mumbles()), "unclear message"),
        (Forward(Warns()), "warning RuntimeWarning: overflow"),
        (Forward(BlamesInfinity()), "false: ValueError"),
        (LosesScores(FisherScore(), n_features_to_select=3), "scores of moves"),
        (ForgetsOrder(FisherScore()), "order_ is"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_wrong_methods_are_detected(method, seen):
    case = plain()
    case.method = method
    assert (case.run()[1] or "nothing").startswith(seen)


def test_correct_code_passes():
    case = plain()
    case.method = Forward(FisherScore())
    assert case.run() == ("answer", None)


def test_tables_have_the_properties_that_they_list():
    kinds = frozenset({"classification"})
    tables = [table(np.random.default_rng([1, k]), kinds) for k in range(300)]
    words = {word for one in tables for word in one.words}
    assert {"constant", "copy", "huge", "nan", "sparse", "frame", "class of one row"} <= words
    assert {"no rows", "objects", "weights", "two classes", "read-only"} <= words
    for one in tables:
        harmed = {"nan", "inf"} & set(one.words)
        assert one.finite or harmed or "sum of others" in one.words or "largest" in one.words

"""Laws that every search obeys.

Each law takes a class or function that builds the search from a criterion and a number of features,
and raises AssertionError if it is broken.
"""

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from tamis.choice import CostLimit
from tamis.contract import Record, SubsetCriterion
from tamis.contract.costs import FeatureCosts
from tamis.criteria import FisherScore, Remembered, Scatter, Scored
from tamis.exceptions import NothingGained, RecordMismatch
from tamis.testing.problem import make_table

SIZE = 3

Maker = Callable[..., Any]


class Stop:
    """Callback that stops a search after a number of steps."""

    def __init__(self, after: float):
        self.after, self.seen = after, 0

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.seen += context.task_name == "step"
        return self.seen >= self.after


def outcome(search: Any) -> dict[str, Any]:
    """Return the results of a fitted search without durations, to compare two fits."""
    return {
        "support": search.support_.tolist(),
        "order": search.order_.tolist(),
        "ranking": search.ranking_.tolist(),
        "n_evaluations": search.n_evaluations_,
        "subsets": [step.subset.tolist() for step in search.trace_],
    }


def the_trace_matches_the_criterion(make: Maker) -> None:
    """The moves match the subsets, and the values and scores match the criterion."""
    X, y = make_table()
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    criterion = Scatter("J3").fit(X, y)
    before = np.flatnonzero(search.trace_.start)
    scores: dict[int, float] = {}
    for step, size in zip(search.trace_, search.trace_.sizes, strict=True):
        assert_array_equal(step.subset, np.unique(step.subset))
        assert len(step.subset) == size
        assert_array_equal(np.sort(step.moved), np.setxor1d(before, step.subset))
        if not np.isnan(step.value):
            assert_allclose(step.value, criterion.value(step.subset), rtol=1e-9)
            if len(step.moved) == 1 and not np.isnan(step.score).any():
                change = criterion.value(step.subset) - criterion.value(before)
                assert_allclose(step.score[0], abs(change), rtol=1e-8)
        known = ~np.isnan(step.score)
        scores |= dict(zip(step.moved[known].tolist(), step.score[known].tolist(), strict=True))
        before = step.subset
    assert_array_equal(search.scores_[list(scores)], list(scores.values()))


def the_size_is_what_was_asked(make: Maker) -> None:
    X, y = make_table()
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    assert search.support_.sum() == search.n_features_ == SIZE
    assert any(np.array_equal(s.subset, np.flatnonzero(search.support_)) for s in search.trace_)
    chosen = search.trace_[search.record_.chosen]
    of_that_size = [s.value for s in search.trace_ if len(s.subset) == SIZE]
    if not np.isnan(of_that_size).all():
        assert chosen.value == max(of_that_size)
    assert_array_equal(search.transform(X), X[:, search.support_])


def order_and_ranking_agree_with_the_support(make: Maker) -> None:
    X, y = make_table()
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    assert_array_equal(np.sort(search.order_), np.arange(7))
    assert_array_equal(np.sort(search.order_[:SIZE]), np.flatnonzero(search.support_))
    assert_array_equal(search.ranking_ == 1, search.support_)
    assert (np.diff(search.ranking_[search.order_]) >= 0).all()
    assert_array_equal(np.unique(search.ranking_), np.arange(1, search.ranking_.max() + 1))


class Counting(SubsetCriterion):
    """A criterion (J3 of scatter matrices) that counts the scores it computes."""

    monotone = True
    asked = 0

    def _learn(self, X: Any, y: Any, **params: Any) -> None:
        self._inner = Scatter("J3").fit(X, y)

    def value(self, subset: Any) -> float:
        return self._inner.value(subset)

    def gain(self, subset: Any, candidates: Any) -> Any:
        Counting.asked += len(candidates)
        return self._inner.gain(subset, candidates)

    def loss(self, subset: Any) -> Any:
        Counting.asked += len(subset)
        return self._inner.loss(subset)

    def values(self, subsets: Any) -> Any:
        Counting.asked += sum(bool(len(subset)) for subset in subsets)
        return self._inner.values(subsets)

    def bounds(self, subsets: Any, size: Any) -> Any:
        Counting.asked += len(subsets)
        return self._inner.bounds(subsets, size)


def every_score_is_counted(make: Maker) -> None:
    """``n_evaluations_`` counts the computed scores, but not the value of the start subset."""
    X, y = make_table()
    Counting.asked = 0
    search = make(Counting(), n_features_to_select=SIZE).fit(X, y)
    assert search.n_evaluations_ == Counting.asked


def stopped_anywhere_and_resumed_it_ends_the_same(make: Maker, sizes: Any = (1, 3, 4, 7)) -> None:
    for size in sizes:
        _check_resumed(partial(make, Scatter("J3"), n_features_to_select=size))


def _check_resumed(build: Callable[[], Any]) -> None:
    """Stop a search after each of its steps, and resume it from the stored record."""
    X, y = make_table()
    whole = build().fit(X, y)
    watched = build().set_callbacks(seen := Stop(np.inf))
    assert outcome(watched.fit(X, y)) == outcome(whole)
    records = [whole.record_]
    for after in range(1, seen.seen + 1):
        records.append(build().set_callbacks(Stop(after)).fit(X, y).record_)
        assert not records[-1].finished
    for record in records:
        stored = Record.from_dict(json.loads(json.dumps(record.to_dict())))
        resumed = build().resume(X, y, record=stored)
        assert outcome(resumed) == outcome(whole)
        assert_allclose(resumed.trace_.values, whole.trace_.values, rtol=1e-10)
        assert_allclose(resumed.scores_, whole.scores_, rtol=1e-8)


#: Prices of the seven columns of the table. Two pairs of columns share a fee.
PRICES = FeatureCosts(
    {0: 4.0, 1: 3.0, 2: 1.0, 3: 2.5, 4: 6.0, 5: 5.5, 6: 0.0},
    shared={"visit": (2.0, [0, 1]), "blood": (5.0, [4, 5])},
)


def unit_prices_change_nothing(make: Maker) -> None:
    """Without a price limit, prices do not affect any step."""
    X, y = make_table()
    plain, priced = (make(Scatter("J3"), n_features_to_select=SIZE) for _ in range(2))
    if "feature_costs" not in priced.get_params(deep=False):
        return
    priced.set_params(feature_costs=FeatureCosts({}, default=1.0))
    assert outcome(priced.fit(X, y)) == outcome(plain.fit(X, y))
    assert_array_equal(priced.trace_.values, plain.trace_.values)
    assert_array_equal(priced.scores_, plain.scores_)
    assert priced.cost_ == priced.n_features_


def a_price_limit_is_kept(make: Maker, limits: Any = (0.0, 5.5, "60%", 100)) -> None:
    """The selection is within the limit and contains all free columns, and it can be resumed."""
    X, y = make_table()

    def build(limit: Any) -> Any:
        search = make(Scatter("J3"), n_features_to_select=CostLimit(limit))
        return search.set_params(feature_costs=PRICES)

    usual = make(Scatter("J3"), n_features_to_select=SIZE)
    if not usual.takes_limit or "feature_costs" not in usual.get_params(deep=False):
        return
    for limit in limits:
        search = build(limit).fit(X, y)
        kept = search.get_support(indices=True)
        amount = 17.0 * 0.6 if limit == "60%" else limit
        assert search.cost_ == PRICES.of(kept) <= amount
        assert 6 in kept, "the column without a price is left out"
        _check_resumed(partial(build, limit))


def a_record_is_extended_to_another_size(
    make: Maker, sizes: Any = ((3, 5), (2, 3), (3, 4), (5, 3), (6, 1))
) -> None:
    """Extending a record gives the same result as a new fit with the new size.

    A search whose steps depend on the size raises RecordMismatch instead.
    """
    X, y = make_table()
    for before, after in sizes:
        whole = make(Scatter("J3"), n_features_to_select=after).fit(X, y)
        record = make(Scatter("J3"), n_features_to_select=before).fit(X, y).record_
        stored = Record.from_dict(json.loads(json.dumps(record.to_dict())))
        search = make(Scatter("J3"), n_features_to_select=after)
        if not search.extends:
            try:
                search.resume(X, y, record=stored)
            except RecordMismatch as error:
                assert "depend on the number of features asked for" in str(error)
                continue
            raise AssertionError("a record of another size is resumed although extends is False")
        search.resume(X, y, record=stored)
        assert search.n_features_ == after
        if len(search.trace_) == len(whole.trace_):
            assert outcome(search) == outcome(whole)
            assert_allclose(search.trace_.values, whole.trace_.values, rtol=1e-10)
            assert_allclose(search.scores_, whole.scores_, rtol=1e-8)
        else:  # the record already goes beyond the new size
            assert (before > after) == (not search.trace_.start.any())
            if search.nested:
                assert_array_equal(search.support_, whole.support_)


def columns_may_come_in_any_order(make: Maker) -> None:
    X, y = make_table()
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    moved = make(Scatter("J3"), n_features_to_select=SIZE).fit(X[:, order], y)
    assert_array_equal(moved.support_, search.support_[order])


def rows_may_come_in_any_order(make: Maker) -> None:
    X, y = make_table()
    order = np.random.default_rng(1).permutation(len(y))
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    moved = make(Scatter("J3"), n_features_to_select=SIZE).fit(X[order], y[order])
    assert outcome(moved) == outcome(search)


def ties_go_to_the_lowest_index(make: Maker) -> None:
    """With two copies of each of three columns, the first of each pair is selected."""
    X, y = make_table(n_features=3 + 2)
    X = X[:, [0, 1, 2]]
    search = make(Scatter("J3", ridge=1e-3), n_features_to_select=SIZE)
    search.fit(np.column_stack([X, X]), y)
    assert_array_equal(search.support_, [True] * 3 + [False] * 3)


class ScaledScore(SubsetCriterion):
    """A criterion whose scores depend on the scale of a column."""

    additive = monotone = True

    def _learn(self, X: Any, y: Any, **params: Any) -> None:
        self._scores = FisherScore().fit(X, y).scores_ * X.var(axis=0)

    def value(self, subset: Any) -> float:
        return float(self._scores[subset].sum())


def scaling_columns_changes_nothing(make: Maker) -> None:
    """With ``standardize=True`` the result does not depend on the scale of the columns."""
    X, y = make_table()
    scale = np.array([1, 10, 1e3, 1e-3, 3, 7, 0.5])
    search = make(ScaledScore(), n_features_to_select=SIZE).fit(X, y)
    assert outcome(make(ScaledScore(), n_features_to_select=SIZE).fit(X * scale, y)) == outcome(
        search
    )


def one_huge_score_hides_no_other(make: Maker) -> None:
    """A column that almost equals the target does not change the order of the other columns."""
    X, y = make_table()
    X = np.column_stack([X, y + 1e-8 * np.random.default_rng(0).normal(size=len(y))])
    scores = FisherScore().fit(X, y).scores_
    search = make(FisherScore(), n_features_to_select=SIZE).fit(X, y)
    assert_array_equal(np.flatnonzero(search.support_), np.sort(np.argsort(-scores)[:SIZE]))


def an_infinite_score_is_the_best(make: Maker) -> None:
    """A column that separates the classes exactly has an infinite score, and causes no NaN."""
    X, y = make_table()
    X = np.column_stack([X, y])
    for criterion in (FisherScore(), Remembered(FisherScore())):
        search = make(criterion, n_features_to_select=SIZE).fit(X, y)
        assert search.support_[-1]
        assert not np.isnan(search.trace_.values).any() or search.trace_.values[-1] > 0


def _capped(X: Any, y: Any) -> float:
    """Return a value that only the first two columns can increase."""
    return float(min(X.shape[1], 2))


def a_size_without_gain_is_reported(make: Maker) -> None:
    """If a smaller subset on the path has the same value, a single warning names its size."""
    X, y = make_table()
    for size in (1, 2, 4):
        search = make(Scored(_capped), n_features_to_select=size)
        with warnings.catch_warnings(record=True, action="always") as caught:
            search.fit(X, y)
        sizes, values = search.trace_.sizes, search.trace_.values
        passed = [i for i in range(search.choice_.step + 1) if sizes[i]]
        top = np.max(values[passed])
        expected = None
        if not np.isnan(top):
            least = int(min(sizes[i] for i in passed if values[i] == top))
            expected = least if least < sizes[search.choice_.step] else None
        assert search.gains_until_ == expected
        sentences = [str(w.message) for w in caught if issubclass(w.category, NothingGained)]
        assert len(sentences) == (expected is not None)
        assert all(f"more than {expected} column" in sentence for sentence in sentences)


def a_failed_fit_leaves_nothing_behind(make: Maker) -> None:
    """After a failed fit there are no results, neither from an earlier fit nor partial ones."""
    X, y = make_table()
    search = make(Scatter("J3"), n_features_to_select=SIZE).fit(X, y)
    try:
        search.fit(X[:, :2], y)
    except ValueError as error:
        assert "n_features_to_select between 1 and 2" in str(error)
    assert not hasattr(search, "support_")
    assert search.fit(X[:, :5], y).support_.shape == (5,)


def fit_leaves_parameters_and_data_alone(make: Maker) -> None:
    X, y = make_table()
    kept = X.copy()
    X.flags.writeable = False
    search = make(Scatter("J3"), n_features_to_select=SIZE)
    before = repr(search)
    search.fit(X, y)
    assert repr(search) == before
    assert not hasattr(search.criterion, "n_features_in_")
    assert_array_equal(X, kept)


def fitting_twice_gives_the_same(make: Maker) -> None:
    X, y = make_table()
    search = make(Scatter("J3"), n_features_to_select=SIZE)
    assert outcome(search.fit(X, y)) == outcome(search.fit(X, y))


LAWS = (
    the_trace_matches_the_criterion,
    the_size_is_what_was_asked,
    order_and_ranking_agree_with_the_support,
    every_score_is_counted,
    stopped_anywhere_and_resumed_it_ends_the_same,
    a_record_is_extended_to_another_size,
    columns_may_come_in_any_order,
    rows_may_come_in_any_order,
    scaling_columns_changes_nothing,
    an_infinite_score_is_the_best,
    a_failed_fit_leaves_nothing_behind,
    fit_leaves_parameters_and_data_alone,
    fitting_twice_gives_the_same,
    unit_prices_change_nothing,
    a_price_limit_is_kept,
)

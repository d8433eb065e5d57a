"""Greedy searches, which add or remove one feature at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, improves, is_int, snapped, tied
from tamis.contract import (
    BackwardCriterion,
    ForwardCriterion,
    Record,
    Scores,
    Search,
    Step,
    SubsetCriterion,
    Trace,
)
from tamis.contract.costs import Limit
from tamis.contract.criterion import with_unit
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter, NothingToAdd


def grown(
    criterion: Counted, subset: Subset, value: float, candidates: Subset, *, alone: bool = False
) -> Step:
    """Return the step that adds the best candidate.

    Ties go to the best tie-breaking score, then to the lowest index. If gains are divided by
    prices, the step may add several candidates that share a fee. With ``alone``, it adds only one.
    """
    limit = criterion.limit
    if limit is not None and not alone:
        candidates = criterion.affordable(subset, candidates)
    gains = criterion.gain(subset, candidates)
    order, noise = _merits(criterion, gains, value, subset, candidates)
    equal = tied(order, int(order.argmax()), noise)
    chosen = criterion.winner(subset, candidates, equal)
    if order is not gains:
        equal = tied(gains, chosen, criterion.noise(value))
    larger = with_unit(subset, candidates[chosen])
    step = Step(
        larger,
        _updated_value(criterion, value, gains[chosen], larger),
        Scores(candidates, gains, criterion.errors(subset), len(equal)),
    )
    if limit is None or alone or not limit.per_price:
        return step
    return _with_group(criterion, limit, subset, value, candidates, step)


def _with_group(
    criterion: Counted,
    limit: Limit,
    subset: Subset,
    value: float,
    candidates: Subset,
    step: Step,
) -> Step:
    """Return the step, or a step that adds the best first units of a group with a shared fee.

    A group is better if its gain per price is greater. A fee is often worth its price only if
    several units share it.
    """
    assert step.scores is not None
    best, most = step, limit.rate(_added(step)[1], subset, step.subset)
    for free in limit.groups(candidates, step.scores.values, unpaid=subset):
        larger, total, last = Step(subset, value), 0.0, -np.inf
        while len(free):
            try:
                free = limit.affordable(larger.subset, free)
            except NothingToAdd:
                break
            larger = grown(criterion, larger.subset, larger.value, free, alone=True)
            added, gain = _added(larger)
            total += gain
            rate = limit.rate(total, subset, larger.subset)
            if rate > most * (1 + 1e-9):
                best, most = larger._replace(scores=step.scores), rate
            if rate < last:
                break
            free, last = free[free != added], rate
    return best


def _added(step: Step) -> tuple[int, float]:
    """Return the candidate that a step adds, and its gain."""
    assert step.scores is not None
    units, held = step.scores.units, step.subset
    is_held = np.zeros(1 + max(units.max(), held.max()), dtype=bool)  # faster than np.isin
    is_held[held] = True
    chosen = int(is_held[units].argmax())
    return int(units[chosen]), float(step.scores.values[chosen])


def filled_up(
    criterion: Counted, limit: Limit, start: Step, n_units: int, out: Subset = EMPTY
) -> Step:
    """Add units to a subset until none fits under a limit. Units in ``out`` are not added.

    Units are added once by gain and once by gain per price, and the better result is returned.
    """
    found = []
    for per_price in (False, True):
        criterion.limit, step = replace(limit, per_price=per_price), start
        try:
            while True:
                left = others(np.concatenate([step.subset, out]), n_units)
                step = grown(criterion, step.subset, step.value, left)
        except NothingToAdd:
            found.append(step)
    criterion.limit = limit
    first, second = found
    return second if improves(second.value, first.value) else first


def shrunk(criterion: Counted, subset: Subset, value: float, fixed: Subset = EMPTY) -> Step:
    """Return the step that removes the member with the smallest loss. Fixed members stay.

    Among tied members, the one whose removal has the best tie-breaking score is removed. If these
    are tied too, the one with the highest index is removed.
    """
    if len(criterion.fixed):
        fixed = np.union1d(fixed, criterion.fixed)
    losses = free = criterion.loss(subset)
    order, noise = _merits(criterion, losses, value, subset)
    if len(fixed):
        held = np.isin(subset, fixed)
        order, free = np.where(held, np.inf, order), np.where(held, np.nan, losses)
    equal = tied(order, int(order.argmin()), noise)
    chosen = criterion.winner(subset, subset, equal[::-1])
    if order is not free:
        equal = tied(free, chosen, criterion.noise(value))
    smaller = np.concatenate([subset[:chosen], subset[chosen + 1 :]])
    return Step(
        smaller,
        _updated_value(criterion, value, -losses[chosen], smaller),
        Scores(subset, losses, criterion.errors(subset), len(equal)),
    )


def _merits(
    criterion: Counted,
    scores: Array,
    value: float,
    subset: Subset,
    candidates: Subset | None = None,
) -> tuple[Array, float]:
    """Return the numbers by which units are compared, and their rounding error.

    Scores are rounded before they are divided by prices, which differ from unit to unit.
    """
    noise = criterion.noise(value)
    if criterion.limit is not None:
        scores, noise = snapped(scores, noise), 0.0
    return criterion.merits(scores, subset, candidates), noise


def _updated_value(criterion: Counted, value: float, change: float, subset: Subset) -> float:
    """Return the value after a move, which is ``value`` plus ``change``.

    If this sum is undefined because both are infinite, the value is computed from scratch.
    """
    after = float(value) + float(change)  # Python floats do not warn about infinities
    return criterion.start(subset) if np.isnan(after) else after


def others(subset: Subset, n_units: int) -> Subset:
    """Return the units that are not in the subset."""
    out = np.ones(n_units, dtype=bool)
    out[subset] = False
    return out.nonzero()[0]


def from_fixed(criterion: Counted) -> Step:
    """Return the first step of a forward search: the fixed units, or the empty subset."""
    if len(criterion.fixed):
        return Step(criterion.fixed, criterion.value(criterion.fixed))
    return Step(EMPTY, criterion.start(EMPTY))


def least(criterion: Counted, size: int | None) -> int:
    """Return the smallest size that a backward search reaches."""
    return size or max(1, len(criterion.fixed))


def from_full(criterion: Counted, n_units: int) -> Step:
    """Return the first step of a backward search: all units."""
    full = np.arange(n_units)
    return Step(full, criterion.value(full))


class Forward(Search):
    """Sequential forward selection (SFS): each step adds the feature with the greatest gain.

    Selecting l of m features needs l m - l(l-1)/2 scores. Added features are never removed.

    Parameters
    ----------
    criterion : ForwardCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups : mapping, sequence or None, default=None
        Columns that are selected together, as one unit: ``{"name": ["a", "b"]}`` with columns by
        name or index, or one label per column. A column in no group, or with the label None, is a
        unit of its own. The number of features to select counts units.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that are always selected. They are included in the number of
        units to select.
    feature_costs : FeatureCosts or None, default=None
        Prices of the columns. ``cost_`` is the price of the selection. Prices change the selection
        only if ``n_features_to_select`` is :class:`tamis.choice.CostLimit`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> Forward(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    needs = (ForwardCriterion,)
    nested = True

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        step: Standing = done[-1] if len(done) else from_fixed(criterion)
        if isinstance(step, Step) and len(step.subset):
            yield step
        while len(step.subset) < (size or n_units):
            step = grown(criterion, step.subset, step.value, others(step.subset, n_units))
            yield step


class Backward(Search):
    """Sequential backward selection (SBS): each step removes the feature with the smallest loss.

    Selecting l of m features needs 1 + ((m+1) m - l(l+1))/2 scores, including the value of the full
    set. Removed features are never added back.

    Parameters
    ----------
    criterion : BackwardCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> Backward(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 2])
    """

    needs = (BackwardCriterion,)
    nested = True
    grows = False

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        step: Standing = done[-1] if len(done) else from_full(criterion, n_units)
        if isinstance(step, Step):
            yield step
        while len(step.subset) > least(criterion, size):
            step = shrunk(criterion, step.subset, step.value)
            yield step


class Bidirectional(Search):
    """Bidirectional selection: a forward and a backward search that run towards each other.

    In each step, the forward search adds a feature that the backward search has not removed. The
    backward search then removes a feature that the forward search has not added. The selection ends
    when one of the two reaches the requested size, and the trace contains the steps of that search.
    If no size is requested, the trace follows the forward search to half of the features.

    Parameters
    ----------
    criterion : SubsetCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> Bidirectional(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 2])
    """

    needs = (SubsetCriterion,)
    nested = True
    takes_limit = False

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        n_fixed = len(criterion.fixed)
        size, forward = self._plan(size, n_units, n_fixed)
        small: Standing
        large: Standing
        if len(done):
            small, large = self._resume(done, forward, n_units, criterion.fixed)
        else:
            small, large = from_fixed(criterion), from_full(criterion, n_units)
            if not forward:
                yield large._replace(state={"other": [], "value": small.value})
            elif n_fixed:
                yield small._replace(state={"other": [], "value": large.value})
        crossed = list(done.state.get("other", []))
        while len(small.subset) < size < len(large.subset):
            candidates = np.setdiff1d(large.subset, small.subset, assume_unique=True)
            grew = grown(criterion, small.subset, small.value, candidates)
            fell = shrunk(criterion, large.subset, large.value, fixed=grew.subset)
            traced, other = (grew, fell) if forward else (fell, grew)
            left_behind = large.subset if forward else small.subset
            crossed += np.setxor1d(left_behind, other.subset, assume_unique=True).tolist()
            small, large = grew, fell
            yield traced._replace(state={"other": list(crossed), "value": float(other.value)})

    @staticmethod
    def _plan(size: int | None, n_units: int, n_fixed: int) -> tuple[int, bool]:
        """Return the size to reach, and whether the forward search reaches it first."""
        size = max(size or n_units // 2, 1, n_fixed)
        return size, 2 * size <= n_units + n_fixed

    @staticmethod
    def _resume(
        done: Trace, forward: bool, n_units: int, fixed: Subset
    ) -> tuple[Standing, Standing]:
        """Return the last step of each search: one from the trace, one from the trace's state."""
        moved, value = np.array(done.state["other"], dtype=np.intp), done.state["value"]
        if forward:
            return done[-1], Step(others(moved, n_units), value)
        return Step(np.union1d(moved, fixed).astype(np.intp), value), done[-1]

    def _n_common(self, done: Record, size: int | None) -> int:
        """Return the number of recorded steps that a search for the new size would repeat.

        It is 0 if the trace follows a different one of the two searches for the new size.
        """
        trace = done.trace
        _, forward = self._plan(size, trace.n_units, len(done.grouping.fixed))
        return len(trace) if trace.growing is forward else 0


@dataclass(eq=False, repr=False, kw_only=True)
class PlusLMinusR(Search):
    """Plus-l minus-r search: add ``l`` features, remove ``r`` features, and repeat.

    With l > r the search starts without features and grows. With l < r it starts with all features
    and shrinks. The search ends with the round that reaches or passes the requested size. It
    selects the best subset of that size on the search path.

    Parameters
    ----------
    criterion : SubsetCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    l, r : int, default=2 and 1
        Number of features added and removed in each round. The two must differ.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> PlusLMinusR(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    needs = (SubsetCriterion,)

    l: int = 2  # noqa: E741 (the name of the method)
    r: int = 1

    def _check(self) -> None:
        integers = is_int(self.l) and is_int(self.r)
        if not integers or min(self.l, self.r) < 0 or self.l == self.r:
            raise InvalidParameter(
                f"PlusLMinusR needs different ints l and r >= 0, not l={self.l!r}, r={self.r!r}. "
                "Write l=2, r=1 for a forward search, l=1, r=2 for a backward search."
            )
        super()._check()

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        growing = self.l > self.r
        size = size or (n_units if growing else least(criterion, None))
        plan = [+1] * self.l + [-1] * self.r if growing else [-1] * self.r + [+1] * self.l
        step: Standing
        if len(done):
            step, position = done[-1], done.state["position"]
            size_before = done.state["size_before"]
        else:
            step = from_fixed(criterion) if growing else from_full(criterion, n_units)
            position, size_before = 0, len(step.subset)
            if size_before:
                yield step._replace(state={"position": 0, "size_before": size_before})
        while True:
            for move in plan[position:]:
                position += 1
                if moved := self._moved(criterion, step, move, n_units):
                    yield moved._replace(state={"position": position, "size_before": size_before})
                    step = moved
            held, position = len(step.subset), 0
            passed = held >= size if growing else held <= size
            if passed or held == size_before:  # size reached, or no unit can be added or removed
                return
            size_before = held

    @staticmethod
    def _moved(criterion: Counted, step: Standing, move: int, n_units: int) -> Step | None:
        """Add a feature if ``move`` is positive, else remove one. None if that is not possible."""
        if move > 0 and len(step.subset) < n_units:
            return grown(criterion, step.subset, step.value, others(step.subset, n_units))
        if move < 0 and len(step.subset) > max(1, len(criterion.fixed)):
            return shrunk(criterion, step.subset, step.value)
        return None

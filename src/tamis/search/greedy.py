"""Greedy walks: one feature in or out at a time."""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, best, is_int, worst
from tamis.contract import (
    BackwardCriterion,
    ForwardCriterion,
    SubsetCriterion,
    with_unit,
)
from tamis.exceptions import InvalidParameter
from tamis.search.base import Judge, Search, Size
from tamis.trace import Step, Trace


def grown(criterion: Judge, subset: Subset, value: float, candidates: Subset) -> Step:
    """The step that adds the best candidate; of equals the lowest index."""
    gains = criterion.gain(subset, candidates)
    chosen = best(criterion.shunning(gains, candidates), criterion.noise(value))
    unit, errors = candidates[chosen], criterion.errors(subset)
    larger = with_unit(subset, unit)
    return Step(
        larger,
        _moved_value(criterion, value, gains[chosen], larger),
        moved=np.array([unit]),
        prices=gains[[chosen]],
        errors=errors[[chosen]] if len(errors) else errors,
    )


def shrunk(criterion: Judge, subset: Subset, value: float, fixed: Subset = EMPTY) -> Step:
    """The step that removes the least costly member not fixed; of equals the highest index."""
    losses = criterion.loss(subset)
    errors = criterion.errors(subset)
    shunned = criterion.shunning(losses, subset)
    if len(fixed):
        free = np.flatnonzero(~np.isin(subset, fixed))
        chosen = int(free[worst(shunned[free], criterion.noise(value))])
    else:
        chosen = worst(shunned, criterion.noise(value))
    smaller = np.concatenate([subset[:chosen], subset[chosen + 1 :]])
    return Step(
        smaller,
        _moved_value(criterion, value, -losses[chosen], smaller),
        moved=subset[[chosen]],
        prices=_brought_forward(losses, chosen),
        errors=_brought_forward(errors, chosen) if len(errors) else errors,
    )


def _moved_value(criterion: Judge, value: float, change: float, subset: Subset) -> float:
    """The value after a move; infinity less infinity is looked up."""
    moved = float(value) + float(change)  # of Python, which makes no fuss about infinity
    return criterion.start(subset) if np.isnan(moved) else moved


def _brought_forward(prices: Array, place: int) -> Array:
    """The price of what moved, then those of what stayed."""
    return np.concatenate([prices[place : place + 1], prices[:place], prices[place + 1 :]])


def others(subset: Subset, n_units: int) -> Subset:
    """The units that are not in the subset."""
    out = np.ones(n_units, dtype=bool)
    out[subset] = False
    return np.flatnonzero(out)


def from_empty(criterion: Judge, done: Trace) -> Step:
    """Where a walk that starts with nothing stands."""
    return done[-1] if len(done) else Step(EMPTY, criterion.start(EMPTY))


def from_full(criterion: Judge, n_units: int) -> Step:
    """The first step of a walk that starts with everything: one price, the full set's."""
    full = np.arange(n_units)
    return Step(full, criterion.value(full))


class Forward(Search):
    """Add the feature of greatest gain until there are enough (sequential forward selection, SFS).

    Choosing l of m features asks for l m - l(l-1)/2 prices. What was added is never taken back.

    Parameters
    ----------
    criterion : ForwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True

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

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        step = from_empty(criterion, done)
        while len(step.subset) < (target or n_units):
            step = grown(criterion, step.subset, step.value, others(step.subset, n_units))
            yield step


class Backward(Search):
    """Remove the feature of least loss until few enough are left (backward selection, SBS).

    Keeping l of m features asks for 1 + ((m+1) m - l(l+1))/2 prices, the full set's included where
    the criterion values subsets. What was removed never comes back.

    Parameters
    ----------
    criterion : BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True

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

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        if len(done):
            step = done[-1]
        else:
            yield (step := from_full(criterion, n_units))
        while len(step.subset) > (target or 1):
            step = shrunk(criterion, step.subset, step.value)
            yield step


class Bidirectional(Search):
    """Forward from nothing and backward from everything, towards each other.

    In each round the forward side adds a feature that the backward side has not removed, and the
    backward side removes one that the forward side does not hold, so that neither undoes the
    other. It ends when the forward side holds, or the backward side has left, as many as asked;
    the trace follows that side. Asked for no size, it follows the forward side to the middle.

    Parameters
    ----------
    criterion : SubsetCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True

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

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        target = target or max(1, n_units // 2)
        forward = 2 * target <= n_units  # the side that reaches the target first
        if len(done):
            small, large = self._continued(done, forward, n_units)
        else:
            small, large = Step(EMPTY, criterion.start(EMPTY)), from_full(criterion, n_units)
            if not forward:
                yield large._replace(state={"other": [], "value": small.value})
        while len(small.subset) < target < len(large.subset):
            candidates = np.setdiff1d(large.subset, small.subset, assume_unique=True)
            small = grown(criterion, small.subset, small.value, candidates)
            large = shrunk(criterion, large.subset, large.value, fixed=small.subset)
            answer, other = (small, large) if forward else (large, small)
            state = {"other": other.moved.tolist(), "value": float(other.value)}
            yield answer._replace(state=state)

    @staticmethod
    def _continued(done: Trace, forward: bool, n_units: int) -> tuple[Step, Step]:
        """Both sides where they stood: the trace has one, the states what moved on the other."""
        last = done[-1]
        moved = np.array([unit for step in done for unit in step.state["other"]], dtype=int)
        if forward:
            return last, Step(others(moved, n_units), last.state["value"])
        return Step(np.sort(moved), last.state["value"]), last


class PlusLMinusR(Search):
    """Add ``l`` features, remove ``r``, and again (plus l - take away r).

    With l > r it starts with nothing and grows, with l < r it starts with everything and shrinks.
    It ends with the round that reaches or passes the asked size; of the subsets of that size on
    the way the best is kept.

    Parameters
    ----------
    criterion : SubsetCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    l, r : int, default=2 and 1
        Features added and removed in each round; they must differ.
    standardize : bool, default=True

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> PlusLMinusR(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    needs = (SubsetCriterion,)

    def __init__(
        self,
        criterion: SubsetCriterion,
        *,
        n_features_to_select: Size = 0.5,
        l: int = 2,  # noqa: E741 (the name of the method)
        r: int = 1,
        standardize: bool = True,
    ):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
        self.l = l
        self.r = r

    def _check(self) -> None:
        whole = is_int(self.l) and is_int(self.r)
        if not whole or min(self.l, self.r) < 0 or self.l == self.r:
            raise InvalidParameter(
                f"PlusLMinusR needs different ints l and r >= 0, not l={self.l!r}, r={self.r!r}. "
                "Write l=2, r=1 to grow from nothing, l=1, r=2 to shrink from everything."
            )
        super()._check()

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        growing = self.l > self.r
        target = target or (n_units if growing else 1)
        plan = [+1] * self.l + [-1] * self.r if growing else [-1] * self.r + [+1] * self.l
        if len(done):
            step, place = done[-1], done[-1].state["place"]
            size_before = done[-1].state["size_before"]
        else:
            step, place = Step(EMPTY, criterion.start(EMPTY)), 0
            if not growing:
                step = from_full(criterion, n_units)
                yield step._replace(state={"place": 0, "size_before": n_units})
            size_before = len(step.subset)
        while True:
            for move in plan[place:]:
                place += 1
                if moved := self._moved(criterion, step, move, n_units):
                    step = moved._replace(state={"place": place, "size_before": size_before})
                    yield step
            size, place = len(step.subset), 0
            passed = size >= target if growing else size <= target
            if passed or size == size_before:  # a round cut short by the borders makes no headway
                return
            size_before = size

    @staticmethod
    def _moved(criterion: Judge, step: Step, move: int, n_units: int) -> Step | None:
        """One feature in or out, or None where nothing is left to add or one must stay."""
        if move > 0 and len(step.subset) < n_units:
            return grown(criterion, step.subset, step.value, others(step.subset, n_units))
        if move < 0 and len(step.subset) > 1:
            return shrunk(criterion, step.subset, step.value)
        return None

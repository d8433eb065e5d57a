"""Greedy walks: one feature in or out at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis._arrays import EMPTY, Subset, is_int, snapped
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
from tamis.contract.choice import SizeLike
from tamis.contract.criterion import with_unit
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter


def grown(criterion: Counted, subset: Subset, value: float, candidates: Subset) -> Step:
    """The step that adds the best candidate; of equals the best by opinion, or lowest index."""
    gains = criterion.gain(subset, candidates)
    cut = snapped(gains, criterion.noise(value))
    chosen = criterion.winner(subset, candidates, criterion.shunning(cut, candidates))
    larger, n_equal = with_unit(subset, candidates[chosen]), np.count_nonzero(cut == cut[chosen])
    return Step(
        larger,
        moved_value(criterion, value, gains[chosen], larger),
        Scores(candidates, gains, criterion.errors(subset), int(n_equal)),
    )


def shrunk(criterion: Counted, subset: Subset, value: float, fixed: Subset = EMPTY) -> Step:
    """The step that removes the least costly member not fixed.

    Of equals the one without which the opinion is best, or the highest index.
    """
    if len(criterion.fixed):
        fixed = np.union1d(fixed, criterion.fixed)
    losses = criterion.loss(subset)
    cut = snapped(losses, criterion.noise(value))
    order = criterion.shunning(cut, subset)
    if len(fixed):
        free = ~np.isin(subset, fixed)
        order, cut = np.where(free, order, np.inf), np.where(free, cut, np.nan)
    chosen = len(order) - 1 - criterion.winner(subset, subset[::-1], -order[::-1])
    smaller = np.concatenate([subset[:chosen], subset[chosen + 1 :]])
    n_equal = np.count_nonzero(cut == cut[chosen])
    return Step(
        smaller,
        moved_value(criterion, value, -losses[chosen], smaller),
        Scores(subset, losses, criterion.errors(subset), int(n_equal)),
    )


def moved_value(criterion: Counted, value: float, change: float, subset: Subset) -> float:
    """The value after a move; infinity less infinity is looked up."""
    after = float(value) + float(change)  # of Python, which does not warn
    return criterion.start(subset) if np.isnan(after) else after


def others(subset: Subset, n_units: int) -> Subset:
    """The units that are not in the subset."""
    out = np.ones(n_units, dtype=bool)
    out[subset] = False
    return np.flatnonzero(out)


def from_fixed(criterion: Counted) -> Step:
    """What a walk that starts with as little as it may holds; a step to yield if it is anything."""
    if len(criterion.fixed):
        return Step(criterion.fixed, criterion.value(criterion.fixed))
    return Step(EMPTY, criterion.start(EMPTY))


def least(criterion: Counted, size: int | None) -> int:
    """The size to which a walk that removes can go."""
    return size or max(1, len(criterion.fixed))


def from_full(criterion: Counted, n_units: int) -> Step:
    """The first step of a walk that starts with everything: one score, the full set's."""
    full = np.arange(n_units)
    return Step(full, criterion.value(full))


class Forward(Search):
    """Add the feature of greatest gain until there are enough (sequential forward selection, SFS).

    Choosing l of m features asks for l m - l(l-1)/2 scores. What was added is never taken back.

    Parameters
    ----------
    criterion : ForwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True
    feature_groups : mapping, sequence or None, default=None
        Columns that are taken or left as one unit: ``{"name": ["a", "b"]}`` with columns by name
        or index, or one label per column. A column in no group, or with the label None, is a unit
        of its own. Sizes count units.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that every subset holds; they count among those kept.

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
        step = done[-1] if len(done) else from_fixed(criterion)
        if isinstance(step, Step) and len(step.subset):
            yield step
        while len(step.subset) < (size or n_units):
            yield (ahead := grown(criterion, step.subset, step.value, others(step.subset, n_units)))
            step = ahead


class Backward(Search):
    """Remove the feature of least loss until few enough are left (backward selection, SBS).

    Keeping l of m features asks for 1 + ((m+1) m - l(l+1))/2 scores, the full set's included where
    the criterion values subsets. What was removed never comes back.

    Parameters
    ----------
    criterion : BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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
        step: Standing
        if len(done):
            step = done[-1]
        else:
            yield (first := from_full(criterion, n_units))
            step = first
        while len(step.subset) > least(criterion, size):
            yield (next_one := shrunk(criterion, step.subset, step.value))
            step = next_one


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
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        n_fixed = len(criterion.fixed)
        size = max(self._asked(size, n_units), n_fixed)
        forward = self._grows(size, n_units + n_fixed)
        small: Standing
        large: Standing
        if len(done):
            small, large = self._continued(done, forward, n_units, criterion.fixed)
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
            answer, other = (grew, fell) if forward else (fell, grew)
            left_behind = large.subset if forward else small.subset
            crossed += np.setxor1d(left_behind, other.subset, assume_unique=True).tolist()
            small, large = grew, fell
            yield answer._replace(state={"other": list(crossed), "value": float(other.value)})

    @staticmethod
    def _asked(size: int | None, n_units: int) -> int:
        return size or max(1, n_units // 2)

    @staticmethod
    def _grows(size: int, n_units: int) -> bool:
        """Whether the forward side is the one that reaches the size first."""
        return 2 * size <= n_units

    @staticmethod
    def _continued(
        done: Trace, forward: bool, n_units: int, fixed: Subset
    ) -> tuple[Standing, Standing]:
        """Both sides where they stood: the trace has one, the state what moved on the other."""
        moved, value = np.array(done.state["other"], dtype=np.intp), done.state["value"]
        if forward:
            return done[-1], Step(others(moved, n_units), value)
        return Step(np.union1d(moved, fixed).astype(np.intp), value), done[-1]

    def _common(self, done: Record, size: int | None) -> int:
        """The side that is followed depends on the size."""
        trace, n_fixed = done.trace, len(done.grouping.fixed)
        asked = max(self._asked(size, trace.n_units), n_fixed)
        forward = self._grows(asked, trace.n_units + n_fixed)
        return len(trace) if trace.growing is forward else 0


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
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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
        n_features_to_select: SizeLike = 0.5,
        l: int = 2,  # noqa: E741 (the name of the method)
        r: int = 1,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
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
            if passed or held == size_before:  # a round cut short by the borders makes no headway
                return
            size_before = held

    @staticmethod
    def _moved(criterion: Counted, step: Standing, move: int, n_units: int) -> Step | None:
        """One feature in or out, or None where nothing is left to add or one must stay."""
        if move > 0 and len(step.subset) < n_units:
            return grown(criterion, step.subset, step.value, others(step.subset, n_units))
        if move < 0 and len(step.subset) > max(1, len(criterion.fixed)):
            return shrunk(criterion, step.subset, step.value)
        return None

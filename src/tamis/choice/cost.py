"""Choice of the best subset within a price limit."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, improves, is_real
from tamis._checks import Constraint, Constraints, number
from tamis.choice.prefix import ridge_judge
from tamis.contract import Entries, ForwardCriterion, Progress, Scores, Step, SubsetCriterion, Trace
from tamis.contract.choice import Choice, Chosen, Context, Walker
from tamis.contract.costs import TINY, Limit, Prices, format_price
from tamis.contract.criterion import with_unit
from tamis.contract.ranks import order_of, scores_of
from tamis.contract.search import Counted
from tamis.contract.steps import Event
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NothingToAdd
from tamis.search.greedy import Forward, filled_up, grown, others

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion

#: If no swap of one unit for another improves the subset, one member is replaced by several units.
#: This is the number of members that are tried.
MOST_TRIED = 10
#: Pairs of members are also replaced by several units. The pairs are formed from this number of
#: members, those with the smallest losses.
MOST_PAIRED = 6
SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def _is_share(value: Any) -> bool:
    found = SHARE.fullmatch(value) if isinstance(value, str) else None
    return found is not None and float(found[1]) <= 100


@dataclass(eq=False, repr=False)
class CostLimit(Choice):
    """The best subset within a price limit.

    The search needs ``feature_costs``. It runs twice. A unit is a column, or a group of columns
    that is selected as one. Each step of the first run adds the unit with the greatest gain that
    still fits, or removes the unit with the smallest loss. The second run compares gains and losses
    divided by prices. It can add several units with a shared fee at once. If the criterion can
    score whole subsets, the better subset is then improved by swaps. Otherwise the subset with the
    better cross-validated score of ridge regression is selected.

    :class:`tamis.search.Exhaustive` and :class:`tamis.search.BranchAndBound` find the best subset.
    A search that orders all columns at once, such as ``Ranking``, selects columns in this order and
    skips those that do not fit.

    Parameters
    ----------
    limit : float or str
        Largest price of the selection: a number, or a share of the price of all columns such as
        ``"10%"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis import FeatureCosts
    >>> from tamis.criteria import Scatter
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = FeatureCosts({0: 1, 1: 1, 2: 5, 3: 3})
    >>> search = Forward(Scatter("J3"), feature_costs=costs, n_features_to_select=CostLimit(5))
    >>> search.fit(X, y).get_support(indices=True), search.cost_
    (array([0, 1, 3]), 5.0)
    """

    guides = True

    _constraints: ClassVar[Constraints] = {
        "limit": number(least=0) | Constraint(("a share such as '10%'",), _is_share)
    }

    limit: float | str

    def check(self, search: Walker, criterion: "Criterion") -> None:
        super().check(search, criterion)
        if not search.takes_limit:
            name = type(search).__name__
            raise IncompatibleCriterion(
                f"CostLimit needs a search that adds or removes one column at a time, and {name} "
                f"does not. Use Forward, FloatingForward or Backward, or ask {name} for a number "
                "of features."
            )

    def check_units(self, grouping: Grouping) -> None:
        if grouping.prices is None:
            raise InvalidParameter(
                "CostLimit needs the prices of the columns. Write "
                "feature_costs=FeatureCosts({'age': 1, 'chol': 7.27}), or --costs costs.csv."
            )
        limit = self.of(grouping.prices)
        if not limit.affords(grouping.fixed):
            price = format_price(grouping.prices.of(grouping.fixed))
            raise InvalidParameter(
                f"CostLimit needs a limit of at least {price}, the price of the fixed_features, "
                f"got {self.limit!r}. Raise the limit, or fix fewer columns."
            )

    def of(self, prices: Prices) -> Limit:
        """Return the limit for a table with these prices."""
        if is_real(self.limit):
            return Limit(prices, float(self.limit))
        share = SHARE.fullmatch(str(self.limit))
        assert share is not None
        return Limit(prices, float(share[1]) / 100 * prices.full)

    def describe(self, prices: Prices) -> str:
        """Return the limit for a table with these prices as text."""
        share = f" ({self.limit.strip()} of the full price)" if isinstance(self.limit, str) else ""
        return f"the limit of {format_price(self.of(prices).amount)}{share}"

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        assert context.grouping is not None
        assert context.grouping.prices is not None
        limit, within = self.of(prices := context.grouping.prices), self.describe(prices)
        step = len(trace) - 1
        if not limit.affords(np.flatnonzero(trace.mask(step))):  # a ranking also adds the others
            step = bisect_right(range(len(trace)), 0, key=lambda i: self._excess(limit, trace, i))
            step -= 1
        units = np.flatnonzero(trace.mask(step))
        if not len(units):
            least = format_price(min(prices.of([unit]) for unit in range(trace.n_units)))
            return Chosen(step, f"No column fits within {within}; the cheapest costs {least}.")
        price = format_price(prices.of(units))
        reason = f"{context.counted(len(units))} for {price}, within {within}."
        gap = trace.state.get("gap")  # only set by searches that bound the optimum
        if gap == 0:
            reason += " No list within the limit has a greater value (proven)."
        elif gap is not None:
            reason += f" The greatest value within the limit is at most {gap:.4g} higher."
        return Chosen(step, reason)

    @staticmethod
    def _excess(limit: Limit, trace: Trace, step: int) -> int:
        return 0 if limit.affords(np.flatnonzero(trace.mask(step))) else 1

    # -- the steps of a search under the limit ----------------------------------------------------

    def guided_steps(
        self, search: Any, source: Any, size: int | None, done: Trace, context: Context
    ) -> Iterator[Event]:
        assert context.grouping is not None
        assert context.grouping.prices is not None
        limit, fixed = self.of(context.grouping.prices), context.grouping.fixed_units
        if source.criterion is None or search.scores_alone:
            yield from _ordered_steps(search, source, limit, done, fixed)
            return
        source.limit = limit
        if not search.holds_best:
            yield from _Guide(search, source, limit, done, context).steps()
            return
        found = len(done)
        for event in search._steps(source, done.n_units, None, done):
            yield event
            found += 1
        if not found:
            yield Step(EMPTY, source.start(EMPTY))


def _ordered_steps(
    search: Any, source: Any, limit: Limit, done: Trace, fixed: Subset
) -> Iterator[Event]:
    """Yield the units of an order that fit under a limit, followed by all others."""
    if len(done) > min(len(fixed), 1):
        return
    trace, state = Trace(done.n_units), dict(done.state)
    trace.start[fixed] = True
    for event in search._steps(source, done.n_units, None, done):
        if isinstance(event, Progress) or _holds(event, fixed):
            yield event
        elif isinstance(event, Entries):
            trace.extend(event)
        else:
            trace.append(event)
        state = event.state
    if not len(trace):
        return
    order, scores = order_of(trace, len(trace) - 1)[0], scores_of(trace)
    order = order[~np.isin(order, fixed)]
    idle = source.idle if source.criterion is not None else EMPTY
    useful = order[~np.isin(order, idle)]
    fits = limit.fitting(useful, fixed)
    if search.scores_alone and np.isfinite(scores[useful]).all():
        rates = replace(limit, per_price=True).rates(scores[useful], fixed, useful)
        by_price = limit.fitting(useful[np.argsort(-rates, kind="stable")], fixed)
        if improves(scores[by_price].sum(), scores[fits].sum()):
            fits = by_price
    units = np.concatenate([fits, order[~np.isin(order, fits)]])
    yield Entries(units, Scores(order, scores[order]), state={**state, "phase": 0})


def _holds(event: Event, fixed: Subset) -> bool:
    """Whether an event is the step that adds the fixed units."""
    return isinstance(event, Step) and np.array_equal(event.subset, fixed)


class _Guide:
    """The steps of a search under a price limit.

    The search runs twice: by score, then by score per price. A third phase starts from the better
    subset and improves it by swaps. ``path`` contains the steps so far, and ``begun`` the position
    at which each phase began. The search can therefore be resumed in any phase.
    """

    def __init__(self, search: Any, source: Counted, limit: Limit, done: Trace, context: Context):
        self.search, self.source, self.limit, self.context = search, source, limit, context
        self.n_units, self.fixed = done.n_units, source.fixed
        self.path = [Step(s.subset, s.value, s.scores, s.params) for s in done]
        self.state = dict(done.state) if len(done) else {}
        self.begun: list[int] = list(self.state.get("begun", []))

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all phases."""
        phase = self.state.get("phase", 0)
        for run in (0, 1):
            if phase <= run:
                self.source.limit = replace(self.limit, per_price=run == 1)
                yield from self._run(run)
        self.source.limit = self.limit
        if phase < 2:
            best = self._best()
            if not self.path or not np.array_equal(best.subset, self.path[-1].subset):
                yield self._made(best, 2)
        if self.source.has_value:
            yield from self._swaps()

    def _made(self, step: Step, phase: int, **state: Any) -> Step:
        """Store a step, and return it with the state that is needed to resume the search."""
        step = step._replace(state={"phase": phase, "begun": list(self.begun), **state})
        self.path.append(step)
        return step

    def _run(self, run: int) -> Iterator[Step]:
        """Yield the steps of the search until no unit can be added, or until the subset fits."""
        if len(self.begun) <= run:
            self.begun.append(len(self.path))
        held = self.path[self.begun[run] :]
        if not self.state.get("filling") or self.state["phase"] != run:
            part = Trace(self.n_units)
            part.start[self.fixed] = True
            for step in held:
                part.append(step)
            if held:
                part.state = self.state.get("search", {})
            steps = self.search._steps(self.source, self.n_units, None, part)
            while not self._reached(self.begun[run]):
                try:
                    event = next(steps)
                except (NothingToAdd, StopIteration):
                    break
                yield self._made(event, run, search=event.state)
        yield from self._fill(run)

    def _reached(self, begun: int) -> bool:
        """Whether a search that removes units has reached the limit."""
        if self.search.grows or len(self.path) == begun:
            return False
        return self.limit.affords(self.path[-1].subset)

    def _fill(self, run: int) -> Iterator[Step]:
        """Yield steps that add units which still fit, such as cheap ones that were removed."""
        if len(self.path) == self.begun[run]:
            return
        # even the smallest subset is too expensive
        if not self.limit.affords(self.path[-1].subset):
            nothing = Step(self.fixed, self.source.start(self.fixed))
            yield self._made(nothing, run, filling=True)
        last = self.path[-1]
        if isinstance(self.source.criterion, ForwardCriterion):
            while True:
                left = others(last.subset, self.n_units)
                try:
                    last = grown(self.source, last.subset, last.value, left)
                except NothingToAdd:
                    return
                yield (last := self._made(last, run, filling=True))
        for unit in self.limit.fitting(self._removed(run, last.subset), last.subset):
            last = self._made(Step(with_unit(last.subset, int(unit))), run, filling=True)
            yield last

    def _removed(self, run: int, subset: Subset) -> Subset:
        """Return the units that are not in the subset, the last removed first."""
        steps = self.path[self.begun[run] :]
        left = [np.setdiff1d(one.subset, other.subset) for one, other in pairwise(steps)]
        units = np.concatenate([EMPTY, *reversed(left)])
        units = units[np.sort(np.unique(units, return_index=True)[1])]
        return units[~np.isin(units, subset)]

    def _best(self) -> Step:
        """Return a step to the best affordable subset so far."""
        fits = [step for step in self.path if self.limit.affords(step.subset)]
        if not fits:
            return Step(self.fixed, self.source.start(self.fixed))
        if not self.source.has_value:
            return Step(self._judged())
        best = fits[0]
        for step in fits[1:]:
            cheaper = self.limit.prices.of(step.subset) < self.limit.prices.of(best.subset)
            if improves(step.value, best.value) or (
                cheaper and not improves(best.value, step.value)
            ):
                best = step
        return Step(best.subset, best.value)

    def _judged(self) -> Subset:
        """Return the last subset of the run that predicts better. The first run wins ties."""
        ends = [self.path[end - 1].subset for end in (self.begun[1], len(self.path)) if end]
        ends = [subset for subset in ends if len(subset) and self.limit.affords(subset)]
        if not ends:
            return self.fixed
        if len(ends) == 1 or np.array_equal(ends[0], ends[1]):
            return ends[0]
        judge = ridge_judge(self.context)
        if judge is None:
            return ends[0]
        first, second = judge.values([self.context.columns(subset) for subset in ends])
        return ends[1] if improves(float(second), float(first)) else ends[0]

    def _swaps(self) -> Iterator[Step]:
        """Yield steps that add or replace units, as long as the value increases."""
        step = self.path[-1]
        while (better := self._better(step.subset, step.value)) is not None:
            yield (step := self._made(better, 2))

    def _better(self, subset: Subset, value: float) -> Step | None:
        """Return a step to a better subset that differs in a few units, or None."""
        source, free = self.source, np.setdiff1d(subset, self.fixed)
        found = self._with_best(subset, value, others(subset, self.n_units))
        if found is not None and improves(found.value, value):
            return found
        if not len(free):
            return None
        losses: Array = source.loss(subset)
        held = np.isin(subset, free)
        for unit in free[np.argsort(losses[held], kind="stable")]:
            rest = subset[subset != unit]
            worth = value - float(losses[subset == unit][0])
            found = self._with_best(rest, worth, others(subset, self.n_units))
            if found is not None and improves(found.value, value):
                return found
        free = free[np.argsort(losses[held], kind="stable")]
        trials = [self._replaced, self._admitted]
        return next(filter(None, (trial(subset, value, free) for trial in trials)), None)

    def _replaced(self, subset: Subset, value: float, free: Subset) -> Step | None:
        """Return a step that replaces a unit, a group or a pair by several others, or None."""
        groups = self.limit.groups(free, np.zeros(len(free)))
        pairs = [np.array(pair) for pair in combinations(free[:MOST_PAIRED].tolist(), 2)]
        for out in [*groups, *free[:MOST_TRIED, None], *pairs]:
            found = self._refilled(np.setdiff1d(subset, out), out)
            if improves(found.value, value):
                return found
        return None

    def _admitted(self, subset: Subset, value: float, free: Subset) -> Step | None:
        """Return a step that adds a unit or a group in place of several members, or None."""
        left = others(subset, self.n_units)
        if not len(left):
            return None
        gains = self.source.gain(subset, left)
        groups, best = self.limit.groups(left, gains), left[np.argsort(-gains, kind="stable")]
        for new in [*groups, *best[:MOST_TRIED, None]]:
            if not self.limit.affords(np.union1d(self.fixed, new)):
                continue
            larger, stays = np.union1d(subset, new), np.union1d(self.fixed, new)
            while not self.limit.affords(larger):
                rates = self.source.loss(larger) / np.maximum(
                    self.limit.prices.shares(larger), TINY
                )
                rates[np.isin(larger, stays)] = np.inf
                larger = np.delete(larger, np.argmin(rates))
            found = self._refilled(larger, np.setdiff1d(subset, larger))
            if improves(found.value, value):
                return found
        return None

    def _with_best(self, subset: Subset, value: float, candidates: Subset) -> Step | None:
        """Return the step that adds the best candidate that fits, or None if none fits."""
        try:
            candidates = self.limit.affordable(subset, candidates)
        except NothingToAdd:
            return None
        gains = self.source.gain(subset, candidates)
        best = int(np.argmax(gains))
        return Step(with_unit(subset, candidates[best]), value + float(gains[best]))

    def _refilled(self, subset: Subset, out: Subset) -> Step:
        """Return the step after adding units that fit, by gain or by gain per price.

        The units in ``out`` are not added.
        """
        value = self.source.value(subset) if len(subset) else self.source.start(subset)
        found = filled_up(self.source, self.limit, Step(subset, value), self.n_units, out)
        return Step(found.subset, found.value)


class _TotalWorth(SubsetCriterion):
    """Criterion that adds up given values, one for each unit."""

    additive = True

    def __init__(self, worth: Array):
        self.worth = worth

    def _learn(self, X: Any, y: Any, **params: Any) -> None:
        """Do nothing."""

    def value(self, subset: Subset) -> float:
        return float(self.worth[subset].sum())

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        found: Array = self.worth[candidates]
        return found

    def loss(self, subset: Subset) -> Array:
        found: Array = self.worth[subset]
        return found


def best_within(limit: Limit, worth: Array, fixed: Subset = EMPTY) -> Subset:
    """Return units within a limit whose total worth is large, found as by :class:`CostLimit`.

    Examples
    --------
    >>> prices = Prices((8.0, 0.5, 0.5, 0.5, 0.4), ((5.0, (1, 2, 3)),))
    >>> best_within(Limit(prices, 8.4), np.array([1.0, 0.5, 0.3, 0.25, 0.2]))
    array([1, 2, 3, 4])
    """
    source = Counted(_TotalWorth(worth), fixed=fixed)
    search = Forward(source.criterion)
    guide = _Guide(search, source, limit, Trace(len(worth)), Context())
    for _ in guide.steps():
        pass
    return guide.path[-1].subset if guide.path else fixed

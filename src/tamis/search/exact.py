"""Exact searches, which find the best subset or bound how much better it could be."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from time import perf_counter
from typing import ClassVar
from warnings import warn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import EMPTY, Array, Subset, best_first, improves
from tamis._checks import NONE, Constraints, number
from tamis._linalg import BATCH
from tamis.contract import Record, Search, Step, SubsetCriterion, Trace
from tamis.contract.choice import Fraction, Size, resolve_choice
from tamis.contract.fit_warnings import caller_level
from tamis.contract.search import Counted
from tamis.exceptions import IncompatibleCriterion, NotProvenOptimal

#: Number of subsets that the exhaustive search evaluates per step.
BLOCK = 4096


class Exhaustive(Search):
    """Exhaustive search over all subsets of a given size, or of every size with ``"best"``.

    Each step evaluates a block of subsets and holds the best subset so far.

    Parameters
    ----------
    criterion : SubsetCriterion
        Scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units to select: a count, a fraction, ``"best"``, or a rule.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features
        Columns that are selected together, and columns that are always selected, see
        :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> search = Exhaustive(Scatter("J3"), n_features_to_select=2).fit(X, y)
    >>> search.get_support(indices=True), search.n_evaluations_
    (array([0, 2]), 6)
    """

    needs = (SubsetCriterion,)
    extends = False
    holds_best = True

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
        n_fixed, n_valued = len(record.grouping.fixed), record.trace.state.get("valued", 0)
        target, free = self._choice().size(n := record.trace.n_units, ""), n - n_fixed
        n_subsets = 2**free if target is None else comb(free, target - n_fixed)
        return n_valued, n_subsets, f"{n_valued} subsets"

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        fixed = tuple(criterion.fixed.tolist())
        free = sorted(set(range(n_units)) - set(fixed))
        sizes = range(max(1, len(fixed)), n_units + 1) if size is None else (size,)
        subsets = (
            tuple(sorted(fixed + some)) if fixed else some
            for k in sizes
            for some in combinations(free, k - len(fixed))
        )
        found, value = (done[-1].subset, done[-1].value) if len(done) else (EMPTY, -np.inf)
        valued = done.state.get("valued", 0)
        ahead = islice(subsets, valued, None)
        while block := [np.array(subset, dtype=np.intp) for subset in islice(ahead, BLOCK)]:
            values = criterion.values(block)
            valued += len(block)
            for index in _contenders(criterion, values, value):
                # subsets come in lexicographic order, smaller ones first
                same_size = len(block[index]) == len(found)
                if improves(values[index], value) or (
                    same_size and criterion.beats(block[index], values[index], found, value)
                ):
                    found, value = block[index], float(values[index])
            yield Step(found, value, state={"valued": valued})


def _contenders(criterion: Counted, values: Array, value: float) -> Subset:
    """Return the positions of values that are better than ``value``.

    If the criterion has a tie-breaking score, tied values are included.
    """
    if not criterion.has_opinion or not np.isfinite(value):
        return np.flatnonzero(values > value)
    return np.flatnonzero(values >= value - 1e-11 * abs(value))


@dataclass(eq=False, repr=False, kw_only=True)
class BranchAndBound(Search):
    """Branch and bound: an exact search for monotone criteria, faster than :class:`Exhaustive`.

    Features are removed from the full set along a tree. A branch is pruned as soon as its upper
    bound falls below the value of the best subset known (Narendra and Fukunaga 1977). The branches
    of a node are ordered to prune as much as possible: the branch that removes the most important
    feature is pruned soonest, so it gets the largest subtree. Each step holds a better subset than
    the previous step.

    If the budget runs out, the best subset found so far is selected. ``gap_`` is then an upper
    bound for how much better the optimum can be, and a warning reports it. If no subset of the
    requested size was found, half of the features, those with the smallest loss, are dropped
    repeatedly until the size is reached.

    Parameters
    ----------
    criterion : SubsetCriterion
        Scores the features. Its attribute ``monotone`` must be true.
    n_features_to_select : int or float, default=0.5
        Number of units to select: a count or a fraction.
    max_evaluations : int or None, default=None
        Maximum number of scores to compute. None means no limit.
    max_seconds : float or None, default=None
        Maximum duration in seconds. None means no limit. With a limit the result depends on the
        speed of the computer.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features
        Columns that are selected together, and columns that are always selected, see
        :class:`Forward`.

    Attributes
    ----------
    gap_ : float
        Upper bound for how much better than the selected subset the optimum can be. 0 if the subset
        is proven to be optimal.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from tamis.criteria import Scatter
    >>> X, y = load_wine(return_X_y=True)
    >>> search = BranchAndBound(Scatter("J3"), n_features_to_select=6).fit(X, y)
    >>> search.get_support(indices=True), search.gap_
    (array([ 0,  3,  6,  9, 11, 12]), 0.0)
    """

    needs = (SubsetCriterion,)
    extends = False
    holds_best = True

    _constraints: ClassVar[Constraints] = {
        "max_evaluations": number(above=0) | NONE,
        "max_seconds": number(above=0) | NONE,
    }

    max_evaluations: int | None = None
    max_seconds: float | None = None

    def _check(self) -> None:
        super()._check()
        scored_by = type(self.criterion).__name__
        choice = resolve_choice(self.n_features_to_select, "BranchAndBound")
        if not self.criterion.monotone:
            raise IncompatibleCriterion(
                f"BranchAndBound needs a monotone criterion; {scored_by} may have a greater value "
                f"with fewer features. Use Exhaustive({scored_by}(...)) or "
                f"FloatingForward({scored_by}(...))."
            )
        if not isinstance(choice, Size | Fraction):
            raise IncompatibleCriterion(
                "BranchAndBound needs a number of features, because a monotone criterion selects "
                "all of them otherwise. Write n_features_to_select=5, not "
                f"{self.n_features_to_select!r}."
            )

    @property
    def gap_(self) -> float:
        """Upper bound for how much better the optimum can be. 0 if optimality is proven."""
        check_is_fitted(self)
        return float(self.trace_.state["gap"])

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
        if not len(record.trace):
            return super()._progress(record)
        return 0, None, f"within {record.trace.state['gap']:.3g} of the optimum"

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        budget = _Budget(criterion, self.max_evaluations, self.max_seconds)
        tree = _Tree(criterion, n_units, size or n_units, done, budget)
        gap = done.state.get("gap")
        try:
            while tree.open:
                if tree.expand():
                    gap = tree.gap()
                    yield tree.step()
        except _BudgetSpent:
            tree.settle()
            if tree.gap() > 0:
                warn(
                    f"BranchAndBound stopped after {criterion.n_evaluations} evaluations; the "
                    f"optimum may be better by up to {tree.gap():.4g}. Raise max_evaluations or "
                    "max_seconds for a proof.",
                    NotProvenOptimal,
                    stacklevel=caller_level(),
                )
        if gap != tree.gap():
            yield tree.step()


class _BudgetSpent(Exception):
    """Raised when the budget is spent."""


class _Budget:
    """Keeps track of the number of scores and the time that are left."""

    def __init__(self, criterion: Counted, max_evaluations: int | None, max_seconds: float | None):
        self.criterion = criterion
        self.most: float = max_evaluations or np.inf
        self.looked = perf_counter()
        self.until = self.looked + (max_seconds or np.inf)

    def left(self) -> float:
        """Return the number of scores that are left. Raise _BudgetSpent if none are left.

        _BudgetSpent is also raised if the next block of scores would exceed the time limit. That
        block is expected to take as long as the last one.
        """
        now = perf_counter()
        expected, self.looked = now + (now - self.looked), now
        left = self.most - self.criterion.n_evaluations
        if left <= 0 or expected >= self.until:
            raise _BudgetSpent
        return left


class _Tree:
    """The open nodes of a branch-and-bound tree, and the best leaf so far.

    A node consists of a subset, the members that its descendants may remove, and an upper bound.
    Child i of a node lacks the i-th of these members, and its descendants may remove only later
    ones, so every subset occurs once.
    """

    def __init__(self, criterion: Counted, n_units: int, size: int, done: Trace, budget: _Budget):
        self.criterion, self.size, self.budget = criterion, size, budget
        everything = np.arange(n_units)
        self.subset, self.value = EMPTY, -np.inf
        if len(done):
            self.subset, self.value = done[-1].subset, done[-1].value
            self.open = [
                (np.array(s, dtype=np.intp), np.array(a, dtype=np.intp), bound)
                for s, a, bound in done.state["open"]
            ]
        elif size == n_units:
            self.open = []
            self._offer(everything, criterion.value(everything))
        else:
            free = np.setdiff1d(everything, criterion.fixed)
            self.open = [(everything, free, np.inf)]

    def settle(self) -> None:
        """Make sure that a leaf and a finite bound exist when the budget is spent."""
        subset, free, bound = self.open[-1]
        if bound == np.inf:  # the root was not expanded; its value bounds all subsets
            value = self.criterion.value(subset)
            self.open[-1] = (subset, free, value if np.isfinite(value) else np.inf)
        if not len(self.subset):
            leaf = self._halve(subset, free)
            self._offer(leaf, self.criterion.value(leaf))

    def _halve(self, subset: Subset, free: Subset) -> Subset:
        """Drop the removable members with the smallest loss, half of them at a time."""
        while surplus := len(subset) - self.size:
            losses = self.criterion.loss(subset)[np.isin(subset, free)]
            n_leaving = min(surplus, (len(free) + 1) // 2)
            leaving = free[best_first(losses)][-n_leaving:]
            subset, free = np.setdiff1d(subset, leaving), np.setdiff1d(free, leaving)
        return subset

    def gap(self) -> float:
        """Return an upper bound for how much better a leaf that was not visited can be."""
        return max(0.0, max((bound for *_, bound in self.open), default=-np.inf) - self.value)

    def step(self) -> Step:
        """Return the best leaf as a step from which the search can continue."""
        nodes = [[s.tolist(), a.tolist(), float(bound)] for s, a, bound in self.open]
        return Step(self.subset, self.value, state={"open": nodes, "gap": self.gap()})

    def expand(self) -> bool:
        """Replace the newest open node with its children. Return whether a better leaf was found.

        If the budget runs out during this, the node stays open.
        """
        subset, free, bound = self.open[-1]
        if improves(self.value, bound):
            self.open.pop()
            return False
        self.budget.left()  # checked even if only a leaf is evaluated
        surplus = len(subset) - self.size
        n_inner = len(free) - surplus  # number of children with subtrees; the next child is a leaf
        whole = len(free) + len(self.criterion.fixed) == len(subset)
        if surplus == 1 or 2 * n_inner >= len(free) - 2 or whole:
            # the most important member comes first: the subtree without this member is the largest,
            # and it is pruned soonest
            bounds = self._bounds(subset, free)
            order = best_first(-bounds)
            free, bounds = free[order], bounds[order]
        else:  # with few children, the order of the parent is good enough
            bounds = self._bounds(subset, free[:n_inner])
        self.open.pop()
        if surplus == 1:
            leaves = [subset[subset != unit] for unit in free]
            return any([self._offer(leaf, b) for leaf, b in zip(leaves, bounds, strict=True)])
        for i in range(n_inner):
            if not improves(self.value, bounds[i]):
                self.open.append((subset[subset != free[i]], free[i + 1 :], float(bounds[i])))
        leaf = np.setdiff1d(subset, free[n_inner:], assume_unique=True)
        return self._offer(leaf, self.criterion.value(leaf))

    def _bounds(self, subset: Subset, free: Subset) -> Array:
        """Return, for each removable member, the upper bound of the subset without this member.

        The budget is checked between batches.
        """
        found = np.empty(len(free))
        at = 0
        while at < len(free):
            # one batch of matrices at a time, because a batch takes long with hundreds of columns
            end = int(
                min(len(free), at + max(1, BATCH // len(subset) ** 2), at + self.budget.left())
            )
            smaller = [subset[subset != unit] for unit in free[at:end]]
            found[at:end] = self.criterion.bounds(smaller, self.size)
            at = end
        return found

    def _offer(self, leaf: Subset, value: float) -> bool:
        """Store a leaf if it is better than the best one so far. Return whether it is."""
        if not self.criterion.beats(leaf, value, self.subset, self.value):
            return False
        self.subset, self.value = leaf, float(value)
        return True

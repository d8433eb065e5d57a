"""Open nodes of a branch-and-bound search, and the budget of evaluations and time."""

from abc import ABC, abstractmethod
from time import perf_counter

import numpy as np

from tamis._arrays import EMPTY, Array, Subset, best_first, improves
from tamis._linalg import BATCH
from tamis.contract import Step, Trace
from tamis.contract.costs import Limit
from tamis.contract.search import Counted
from tamis.search.greedy import filled_up, from_fixed


class BudgetSpent(Exception):
    """Raised when the budget is spent."""


class Budget:
    """Number of scores and time that a search may still use."""

    def __init__(self, criterion: Counted, max_evaluations: int | None, max_seconds: float | None):
        self.criterion = criterion
        self.most: float = max_evaluations or np.inf
        self.looked = perf_counter()
        self.until = self.looked + (max_seconds or np.inf)

    def left(self) -> float:
        """Return the number of scores that are left. Raise BudgetSpent if none are left.

        BudgetSpent is also raised if the next block of scores would exceed the time limit. That
        block is expected to take as long as the last one.
        """
        now = perf_counter()
        expected, self.looked = now + (now - self.looked), now
        left = self.most - self.criterion.n_evaluations
        if left <= 0 or expected >= self.until:
            raise BudgetSpent
        return left


class Tree(ABC):
    """The open nodes of a branch-and-bound tree, and the best leaf so far.

    A node consists of a subset, the members that descendants may remove, and an upper bound on the
    value of all descendants. Child i of a node lacks the i-th removable member. The descendants of
    child i may remove only later members, so every subset occurs once.
    """

    def __init__(self, criterion: Counted, everything: Subset, done: Trace, budget: Budget):
        self.criterion, self.budget = criterion, budget
        self.subset, self.value = EMPTY, -np.inf
        free = np.setdiff1d(everything, criterion.fixed)
        self.open: list[tuple[Subset, Subset, float]] = [(everything, free, np.inf)]
        if len(done):
            self.subset, self.value = done[-1].subset, done[-1].value
            self.open = [
                (np.array(s, dtype=np.intp), np.array(a, dtype=np.intp), bound)
                for s, a, bound in done.state["open"]
            ]

    @abstractmethod
    def expand(self) -> bool:
        """Replace the newest open node with its children. Return whether a better leaf was found.

        If the budget runs out during this, the node stays open.
        """

    @abstractmethod
    def _largest_leaf(self, subset: Subset, free: Subset) -> Subset:
        """Return a leaf below a node, found with few scores."""

    def settle(self) -> None:
        """Make sure that a leaf and a finite bound exist when the budget is spent."""
        subset, free, bound = self.open[-1]
        if bound == np.inf:  # the root was not expanded; its value bounds all subsets
            value = self.criterion.value(subset)
            self.open[-1] = (subset, free, value if np.isfinite(value) else np.inf)
        if not len(self.subset):
            leaf = self._largest_leaf(subset, free)
            self._offer(leaf, self.criterion.value(leaf))

    def gap(self) -> float:
        """Return an upper bound on how much better than the best leaf an unvisited leaf can be."""
        return max(0.0, max((bound for *_, bound in self.open), default=-np.inf) - self.value)

    def step(self) -> Step:
        """Return the best leaf as a step from which the search can continue."""
        nodes = [[s.tolist(), a.tolist(), float(bound)] for s, a, bound in self.open]
        return Step(self.subset, self.value, state={"open": nodes, "gap": self.gap()})

    def _bounds(self, subset: Subset, free: Subset, size: int) -> Array:
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
            found[at:end] = self.criterion.bounds(smaller, size)
            at = end
        return found

    def _offer(self, leaf: Subset, value: float) -> bool:
        """Store a leaf if it is better than the best one so far. Return whether it is."""
        if not self.criterion.beats(leaf, value, self.subset, self.value):
            return False
        self.subset, self.value = leaf, float(value)
        return True


class SizeTree(Tree):
    """A tree whose leaves are the subsets of a given size."""

    def __init__(
        self, criterion: Counted, everything: Subset, done: Trace, budget: Budget, size: int
    ):
        super().__init__(criterion, everything, done, budget)
        self.size = size
        if not len(done) and size == len(everything):
            self.open = []
            self._offer(everything, criterion.value(everything))

    def _largest_leaf(self, subset: Subset, free: Subset) -> Subset:
        """Drop the removable members with the smallest loss, half of them at a time."""
        while surplus := len(subset) - self.size:
            losses = self.criterion.loss(subset)[np.isin(subset, free)]
            n_leaving = min(surplus, (len(free) + 1) // 2)
            leaving = free[best_first(losses)][-n_leaving:]
            subset, free = np.setdiff1d(subset, leaving), np.setdiff1d(free, leaving)
        return subset

    def expand(self) -> bool:
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
            bounds = self._bounds(subset, free, self.size)
            order = best_first(-bounds)
            free, bounds = free[order], bounds[order]
        else:  # with few children, the order of the parent is good enough
            bounds = self._bounds(subset, free[:n_inner], self.size)
        self.open.pop()
        if surplus == 1:
            leaves = [subset[subset != unit] for unit in free]
            return any([self._offer(leaf, b) for leaf, b in zip(leaves, bounds, strict=True)])
        for i in range(n_inner):
            if not improves(self.value, bounds[i]):
                self.open.append((subset[subset != free[i]], free[i + 1 :], float(bounds[i])))
        leaf = np.setdiff1d(subset, free[n_inner:], assume_unique=True)
        return self._offer(leaf, self.criterion.value(leaf))


class CostTree(Tree):
    """A tree whose leaves are subsets within a price limit to which no unit can be added."""

    def __init__(
        self, criterion: Counted, everything: Subset, done: Trace, budget: Budget, limit: Limit
    ):
        super().__init__(criterion, everything, done, budget)
        self.limit = limit

    def expand(self) -> bool:
        subset, free, bound = self.open[-1]
        if self.value > -np.inf and not improves(bound, self.value):
            self.open.pop()
            return False
        self.budget.left()
        if self.limit.affords(subset):  # the criterion is monotone, so smaller sets are not better
            self.open.pop()
            return self._offer(subset, self.criterion.value(subset))
        if self.value == -np.inf:  # a good first leaf prunes most branches
            return self._offer(leaf := self._largest_leaf(subset, free), self._value(leaf))
        most = min(self._most(subset, free), len(subset) - 1)
        bounds = self._bounds(subset, free, most)
        free, bounds = free[order := best_first(-bounds)], bounds[order]
        kept = np.setdiff1d(subset, free)
        children = []
        for i, unit in enumerate(free):
            # the descendants of child i contain all members before the i-th
            if not self.limit.affords(np.append(kept, free[:i])):
                break
            children.append((subset[subset != unit], free[i + 1 :]))
        for i, child in enumerate(children):  # fewer units fit after members are kept
            if (fewer := self._most(*child)) < most:
                bounds[i] = min(bounds[i], self._bound(child[0], fewer))
        self.open.pop()
        for child, worth in zip(children, bounds, strict=False):
            if improves(float(worth), self.value):
                self.open.append((*child, float(worth)))
        return False

    def _value(self, subset: Subset) -> float:
        """Return the value of a subset. The empty subset is not counted as an evaluation."""
        return self.criterion.value(subset) if len(subset) else self.criterion.start(subset)

    def _bound(self, subset: Subset, size: int) -> float:
        if not size:
            return self._value(EMPTY)
        return float(self.criterion.bounds([subset], size)[0])

    def _most(self, subset: Subset, free: Subset) -> int:
        """Return an upper bound for the number of units of a subset that fit under the limit."""
        kept = np.setdiff1d(subset, free)
        added = np.sort(np.array(self.limit.prices.own)[free])
        fits = self.limit.allows(self.limit.prices.of(kept) + np.cumsum(added))
        return len(kept) + int(np.count_nonzero(fits))

    def _largest_leaf(self, subset: Subset, free: Subset) -> Subset:
        """Add units by gain, and by gain per price, until none fits. Return the better subset."""
        return filled_up(self.criterion, self.limit, from_fixed(self.criterion), len(subset)).subset

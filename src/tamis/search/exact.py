"""Searches that find the optimum, or say how far they may be from it."""

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb
from time import perf_counter
from typing import Any, ClassVar
from warnings import warn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import EMPTY, Array, Subset, best_first, improves
from tamis._checks import NONE, Constraints, number
from tamis._linalg import BATCH
from tamis.contract import Record, Search, Step, SubsetCriterion, Trace
from tamis.contract.choice import Fraction, Size, SizeLike, resolve_choice
from tamis.contract.search import Counted
from tamis.exceptions import IncompatibleCriterion, NotProvenOptimal

#: Subsets valued at a time by the exhaustive search; also how often it can be stopped.
BLOCK = 4096


class Exhaustive(Search):
    """Value every subset of the asked size; of every size where none is asked.

    Each step is a block of subsets and holds the best so far.

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
    >>> search = Exhaustive(Scatter("J3"), n_features_to_select=2).fit(X, y)
    >>> search.get_support(indices=True), search.n_evaluations_
    (array([0, 2]), 6)
    """

    needs = (SubsetCriterion,)
    extends = False
    holds_best = True

    def _way(self, record: Record) -> tuple[float, float | None, str]:
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
                # subsets of a size come in lexicographic order, and smaller ones first
                same_size = len(block[index]) == len(found)
                if improves(values[index], value) or (
                    same_size and criterion.beats(block[index], values[index], found, value)
                ):
                    found, value = block[index], float(values[index])
            yield Step(found, value, state={"valued": valued})


def _contenders(criterion: Counted, values: Array, value: float) -> Subset:
    """Positions of values that may be kept: those above the best, or as good if that may count."""
    if not criterion.has_opinion or not np.isfinite(value):
        return np.flatnonzero(values > value)
    return np.flatnonzero(values >= value - 1e-11 * abs(value))


class BranchAndBound(Search):
    """The optimum of :class:`Exhaustive` for a monotone criterion, at a fraction of its cost.

    Features are removed from the full set along a tree; a branch is left as soon as its bound says
    that nothing in it can beat the best subset known (Narendra and Fukunaga 1977). At each node
    the features that matter least get the largest subtrees. Each step is a better subset found.

    With a budget the search is anytime: when it runs out, the best subset so far is kept,
    ``gap_`` says how much better the optimum can be at most, and a warning says so. Where no
    subset of the size was reached by then, one is made by dropping the half of the features that
    would be missed least, again and again.

    Parameters
    ----------
    criterion : SubsetCriterion
        Its ``monotone`` must be true.
    n_features_to_select : int or float, default=0.5
    max_evaluations : int or None, default=None
    max_seconds : float or None, default=None
        The budget. A budget in seconds makes the result depend on the machine.
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

    Attributes
    ----------
    gap_ : float
        The most by which the optimum can exceed the value found; 0 when it is proven.

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

    def __init__(
        self,
        criterion: SubsetCriterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
        self.max_evaluations = max_evaluations
        self.max_seconds = max_seconds

    def _check(self) -> None:
        super()._check()
        scored_by = type(self.criterion).__name__
        choice = resolve_choice(self.n_features_to_select, "BranchAndBound")
        if not self.criterion.monotone:
            raise IncompatibleCriterion(
                f"BranchAndBound needs a monotone criterion; {scored_by} may be worth more with "
                f"fewer features. Use Exhaustive({scored_by}(...)) or "
                f"FloatingForward({scored_by}(...))."
            )
        if not isinstance(choice, Size | Fraction):
            raise IncompatibleCriterion(
                "BranchAndBound needs a number of features: a monotone criterion is greatest with "
                f"all of them. Write n_features_to_select=5, not {self.n_features_to_select!r}."
            )

    @property
    def gap_(self) -> float:
        """The most by which the optimum can exceed the value found."""
        check_is_fitted(self)
        return float(self.trace_.state["gap"])

    def _way(self, record: Record) -> tuple[float, float | None, str]:
        if not len(record.trace):
            return super()._way(record)
        return 0, None, f"gap {record.trace.state['gap']:.3g}"

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
            _warn_of(tree.gap(), criterion.n_evaluations)
        if gap != tree.gap():
            yield tree.step()


class _BudgetSpent(Exception):
    """No more may be spent on bounds."""


class _Budget:
    """How many scores may still be asked for, and until when."""

    def __init__(self, criterion: Counted, max_evaluations: int | None, max_seconds: float | None):
        self.criterion = criterion
        self.most: float = max_evaluations or np.inf
        self.looked = perf_counter()
        self.until = self.looked + (max_seconds or np.inf)

    def left(self) -> float:
        """Scores that may be asked for now, at least one.

        The next look is taken to be as far off as the last one: scores of thousands of columns
        take seconds each.
        """
        now = perf_counter()
        expected, self.looked = now + (now - self.looked), now
        left = self.most - self.criterion.n_evaluations
        if left <= 0 or expected >= self.until:
            raise _BudgetSpent
        return left


def _warn_of(gap: float, n_evaluations: int) -> None:
    """Say that the budget ran out, unless what is left open could not be better anyway."""
    if gap > 0:
        warn(
            f"BranchAndBound stopped after {n_evaluations} evaluations; the optimum may be better "
            f"by up to {gap:.4g}. Raise max_evaluations or max_seconds for a proof.",
            NotProvenOptimal,
            stacklevel=2,
        )


class _Tree:
    """The open nodes of a branch and bound, and the best leaf so far.

    A node is a subset, the members that may leave below it, and the bound of what it holds. Child
    i of a node loses the i-th of those members and may lose the later ones, so that every subset
    has one place in the tree.
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
        """The best that can be said at once: some leaf, and some bound of what is open."""
        subset, free, bound = self.open[-1]
        if bound == np.inf:  # not even the root was expanded; a monotone value bounds all below
            value = self.criterion.value(subset)
            self.open[-1] = (subset, free, value if np.isfinite(value) else np.inf)
        if not len(self.subset):
            leaf = self._halved(subset, free)
            self._offer(leaf, self.criterion.value(leaf))

    def _halved(self, subset: Subset, free: Subset) -> Subset:
        """What is left of a subset when half of those that may leave do, again and again."""
        while surplus := len(subset) - self.size:
            missed = self.criterion.loss(subset)[np.isin(subset, free)]
            n_leaving = min(surplus, (len(free) + 1) // 2)
            leaving = free[best_first(missed)][-n_leaving:]
            subset, free = np.setdiff1d(subset, leaving), np.setdiff1d(free, leaving)
        return subset

    def gap(self) -> float:
        """How much better than the best leaf an open node can be."""
        return max(0.0, max((bound for *_, bound in self.open), default=-np.inf) - self.value)

    def step(self) -> Step:
        """The best leaf as a step, from which the search can continue."""
        nodes = [[s.tolist(), a.tolist(), float(bound)] for s, a, bound in self.open]
        return Step(self.subset, self.value, state={"open": nodes, "gap": self.gap()})

    def expand(self) -> bool:
        """Replace the newest open node by its children; whether a better leaf was found.

        When the budget runs out on the way, the node stays open as it was.
        """
        subset, free, bound = self.open[-1]
        if improves(self.value, bound):
            self.open.pop()
            return False
        self.budget.left()  # a leaf is valued even where no bound is asked for
        surplus = len(subset) - self.size
        n_inner = len(free) - surplus  # children that branch; one more must lose all the rest
        whole = len(free) + len(self.criterion.fixed) == len(subset)
        if surplus == 1 or 2 * n_inner >= len(free) - 2 or whole:
            free, bounds = self._sorted(subset, free)
        else:  # most members head no child: the order their parent found is good enough
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

    def _sorted(self, subset: Subset, free: Subset) -> tuple[Subset, Array]:
        """Members and bounds without each, the one that matters most first: its subtree is largest.

        That subtree is also the first to be cut off.
        """
        bounds = self._bounds(subset, free)
        order = best_first(-bounds)
        return free[order], bounds[order]

    def _bounds(self, subset: Subset, free: Subset) -> Array:
        """Bounds without each member, in parts after each of which the budget is looked at."""
        found = np.empty(len(free))
        at = 0
        while at < len(free):
            # as many as are solved together; with hundreds of columns each takes a while
            end = int(
                min(len(free), at + max(1, BATCH // len(subset) ** 2), at + self.budget.left())
            )
            smaller = [subset[subset != unit] for unit in free[at:end]]
            found[at:end] = self.criterion.bounds(smaller, self.size)
            at = end
        return found

    def _offer(self, leaf: Subset, value: float) -> bool:
        """Keep a leaf that beats the best; of equals the best by opinion, or the first."""
        if not self.criterion.beats(leaf, value, self.subset, self.value):
            return False
        self.subset, self.value = leaf, float(value)
        return True

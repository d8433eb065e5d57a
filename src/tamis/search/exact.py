"""Searches that find the optimum, or say how far they may be from it."""

from collections.abc import Iterator
from itertools import combinations, islice
from time import perf_counter
from warnings import warn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import EMPTY, Array, Subset, best_first, improves, is_real
from tamis.contract import (
    Counted,
    Fraction,
    Search,
    Size,
    SizeLike,
    Step,
    SubsetCriterion,
    Trace,
    resolve_choice,
)
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, NotProvenOptimal

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

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        sizes = range(1, n_units + 1) if size is None else (size,)
        subsets = (subset for k in sizes for subset in combinations(range(n_units), k))
        found, value = (done[-1].subset, done[-1].value) if len(done) else (EMPTY, -np.inf)
        valued = done.state.get("valued", 0)
        ahead = islice(subsets, valued, None)
        while block := [np.array(subset, dtype=np.intp) for subset in islice(ahead, BLOCK)]:
            values = criterion.values(block)
            valued += len(block)
            for index in np.flatnonzero(values > value):
                if improves(values[index], value):  # in lexicographic order: first of equals
                    found, value = block[index], float(values[index])
            yield Step(found, value, state={"valued": valued})


class BranchAndBound(Search):
    """The optimum of :class:`Exhaustive` for a monotone criterion, at a fraction of its cost.

    Features are removed from the full set along a tree; a branch is left as soon as its bound says
    that nothing in it can beat the best subset known (Narendra and Fukunaga 1977). At each node
    the features that matter least get the largest subtrees. Each step is a better subset found.

    With a budget the search is anytime: when it runs out, the best subset so far is kept,
    ``gap_`` says how much better the optimum can be at most, and a warning says so.

    Parameters
    ----------
    criterion : SubsetCriterion
        Its ``monotone`` must be true.
    n_features_to_select : int or float, default=0.5
    max_evaluations : int or None, default=None
    max_seconds : float or None, default=None
        The budget. A budget in seconds makes the result depend on the machine.
    standardize : bool, default=True

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

    def __init__(
        self,
        criterion: SubsetCriterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        standardize: bool = True,
    ):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
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
        for name in ("max_evaluations", "max_seconds"):
            limit = getattr(self, name)
            if limit is not None and not (is_real(limit) and limit > 0):
                raise InvalidParameter(f"BranchAndBound needs {name} > 0 or None, not {limit!r}.")

    @property
    def gap_(self) -> float:
        """The most by which the optimum can exceed the value found."""
        check_is_fitted(self)
        return float(self.trace_.state["gap"])

    def _complete(self, trace: Trace) -> bool:
        """Not while a budget left a gap: more of it may close it."""
        return bool(trace.state["gap"] == 0)

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        tree = _Tree(criterion, n_units, size or n_units, done)
        started, gap = perf_counter(), done.state.get("gap")
        while tree.open:
            if self._spent(criterion, started):
                tree.settle_for_a_leaf()
                _warn_of(tree.gap(), criterion.n_evaluations)
                break
            if tree.expand():
                gap = tree.gap()
                yield tree.step()
        if gap != tree.gap():
            yield tree.step()

    def _spent(self, criterion: Counted, started: float) -> bool:
        out_of_calls = criterion.n_evaluations >= (self.max_evaluations or np.inf)
        return out_of_calls or perf_counter() - started >= (self.max_seconds or np.inf)


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

    def __init__(self, criterion: Counted, n_units: int, size: int, done: Trace):
        self.criterion, self.size = criterion, size
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
            self.open = [(everything, everything, np.inf)]

    def settle_for_a_leaf(self) -> None:
        """If none was found yet: what the newest node holds, less what it would miss least."""
        if not len(self.subset):
            subset, free, _ = self.open[-1]
            least = free[len(free) - (len(subset) - self.size) :]
            leaf = np.setdiff1d(subset, least, assume_unique=True)
            self._offer(leaf, self.criterion.value(leaf))

    def gap(self) -> float:
        """How much better than the best leaf an open node can be."""
        return max(0.0, max((bound for *_, bound in self.open), default=-np.inf) - self.value)

    def step(self) -> Step:
        """The best leaf as a step, from which the search can continue."""
        nodes = [[s.tolist(), a.tolist(), float(bound)] for s, a, bound in self.open]
        return Step(self.subset, self.value, state={"open": nodes, "gap": self.gap()})

    def expand(self) -> bool:
        """Replace the newest open node by its children; whether a better leaf was found."""
        subset, free, bound = self.open.pop()
        if improves(self.value, bound):
            return False
        surplus = len(subset) - self.size
        n_inner = len(free) - surplus  # children that branch; one more must lose all the rest
        if surplus == 1 or 2 * n_inner >= len(free) - 2 or len(free) == len(subset):
            free, bounds = self._sorted(subset, free)
        else:  # most members head no child: the order their parent found is good enough
            bounds = self._bounds(subset, free[:n_inner])
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
        if not len(free):
            return np.empty(0)
        return self.criterion.bounds([subset[subset != unit] for unit in free], self.size)

    def _offer(self, leaf: Subset, value: float) -> bool:
        """Keep a leaf that beats the best; of equals the lexicographically first."""
        better = improves(value, self.value)
        equal = not better and not improves(self.value, value)
        if not (better or (equal and tuple(leaf) < tuple(self.subset))):
            return False
        self.subset, self.value = leaf, float(value)
        return True

"""Exact searches, which find the best subset or bound how much better the optimum can be."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import ClassVar
from warnings import warn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import EMPTY, Array, Subset, improves
from tamis._checks import NONE, Constraints, number
from tamis.contract import Record, Search, Step, SubsetCriterion, Trace
from tamis.contract.choice import Fraction, Size, resolve_choice
from tamis.contract.fit_warnings import caller_level
from tamis.contract.search import Counted
from tamis.exceptions import IncompatibleCriterion, NotProvenOptimal
from tamis.search.branches import Budget, BudgetSpent, CostTree, SizeTree, Tree

#: Number of subsets that the exhaustive search evaluates per step.
BLOCK = 4096


class Exhaustive(Search):
    """Exhaustive search over all subsets of a given size, or of every size with ``"best"``.

    Each step evaluates a block of subsets and records the best subset so far.

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
        subsets: Iterator[tuple[int, ...]] = (
            tuple(sorted(fixed + some)) if fixed else some
            for k in sizes
            for some in combinations(free, k - len(fixed))
        )
        if criterion.limit is not None:
            subsets = filter(criterion.limit.affords, subsets)
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
    of a node are ordered to prune as much as possible. The branch that removes the most important
    feature is pruned soonest, so it gets the largest subtree. Each step records a better subset
    than the previous step.

    If the budget runs out, the best subset found so far is selected. ``gap_`` is then an upper
    bound for how much better the optimum can be, and a warning reports it. If no subset of the
    requested size was found, the half of the features with the smallest losses is dropped
    repeatedly until the size is reached.

    Parameters
    ----------
    criterion : SubsetCriterion
        Scores the features. Its attribute ``monotone`` must be true.
    n_features_to_select : int, float or CostLimit, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, or a price
        limit.
    max_evaluations : int or None, default=None
        Maximum number of scores to compute. None means no limit.
    max_seconds : float or None, default=None
        Maximum duration in seconds. None means no limit. With a limit the result depends on the
        speed of the computer.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

    Attributes
    ----------
    gap_ : float
        Upper bound on the difference between the optimal value and the value of the selected
        subset. It is 0 if the subset is proven to be optimal.

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
        if not (isinstance(choice, Size | Fraction) or choice.guides):
            raise IncompatibleCriterion(
                "BranchAndBound needs a number of features or a price limit, because a monotone "
                "criterion selects all of them otherwise. Write n_features_to_select=5, not "
                f"{self.n_features_to_select!r}."
            )

    @property
    def gap_(self) -> float:
        """Upper bound on how much better the optimum can be. It is 0 if optimality is proven."""
        check_is_fitted(self)
        return float(self.trace_.state["gap"])

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
        if not len(record.trace):
            return super()._progress(record)
        return 0, None, f"within {record.trace.state['gap']:.3g} of the optimum"

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        budget = Budget(criterion, self.max_evaluations, self.max_seconds)
        everything = np.arange(n_units)
        tree: Tree
        if criterion.limit is not None:
            tree = CostTree(criterion, everything, done, budget, criterion.limit)
        else:
            tree = SizeTree(criterion, everything, done, budget, size or n_units)
        gap = done.state.get("gap")
        try:
            while tree.open:
                if tree.expand():
                    gap = tree.gap()
                    yield tree.step()
        except BudgetSpent:
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

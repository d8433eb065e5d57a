"""Floating searches (Pudil, Novovicova and Kittler 1994).

After each addition, the search removes units as long as each removal gives a better subset than the
best known one of the same size. There are finitely many subsets, so the search ends. If an addition
gives a worse subset than the best known one of the same size, the search continues from the best
known one (Somol et al. 1999).
"""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import Subset, improves
from tamis.contract import Search, Step, SubsetCriterion, Trace
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.search.greedy import from_fixed, from_full, grown, least, others, shrunk


class BestBySize(dict[int, tuple[float, Subset]]):
    """The value and members of the best known subset of each size.

    A subset that was visited before is never treated as better. Otherwise the search could run in
    a cycle forever, because values are accumulated over steps and rounding may increase them.
    """

    def __init__(self, done: Trace):
        super().__init__()
        self.seen: set[bytes] = set()
        for step in done:
            self.note(step)

    def note(self, step: Standing) -> bool:
        """Store the subset of a step if it is the best of its size. Return whether it is."""
        size, label = len(step.subset), step.subset.tobytes()
        again = label in self.seen
        self.seen.add(label)
        if again or (size in self and not improves(step.value, self[size][0])):
            return False
        self[size] = (step.value, step.subset)
        return True

    def at_least(self, step: Step) -> Step:
        """Return the given step, or a step to the best known subset of the same size if better."""
        if self.note(step):
            return step
        value, subset = self[len(step.subset)]
        if np.array_equal(subset, step.subset):
            return step
        return Step(subset, value)


class FloatingForward(Search):
    """Sequential floating forward selection (SFFS): forward selection with removals.

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

    References
    ----------
    Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection.
    Somol et al. (1999), Adaptive floating search methods in feature selection.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> FloatingForward(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    needs = (SubsetCriterion,)

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        known = BestBySize(done)
        step = done[-1] if len(done) else from_fixed(criterion)
        n_fixed = len(criterion.fixed)
        if isinstance(step, Step) and n_fixed:
            yield step
            known.note(step)
        while True:
            # with two features, a removal would only undo the last addition, so removals start at
            # three
            if len(step.subset) - n_fixed > 2:
                back = shrunk(criterion, step.subset, step.value)
                if known.note(back):
                    yield back
                    step = back
                    continue
            if len(step.subset) >= (size or n_units):
                return
            ahead = grown(criterion, step.subset, step.value, others(step.subset, n_units))
            yield (ahead := known.at_least(ahead))
            step = ahead


class FloatingBackward(Search):
    """Sequential floating backward selection (SFBS): backward selection with additions.

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

    References
    ----------
    Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> X, y = load_iris(return_X_y=True)
    >>> FloatingBackward(Scatter("J3"), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 2])
    """

    grows = False
    needs = (SubsetCriterion,)

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        known = BestBySize(done)
        step: Standing = done[-1] if len(done) else from_full(criterion, n_units)
        if isinstance(step, Step):
            yield step
            known.note(step)
        while True:
            # after a single removal, the only possible addition would undo it
            if len(step.subset) < n_units - 1:
                back = grown(criterion, step.subset, step.value, others(step.subset, n_units))
                if known.note(back):
                    yield back
                    step = back
                    continue
            if len(step.subset) <= least(criterion, size):
                return
            ahead = shrunk(criterion, step.subset, step.value)
            yield (ahead := known.at_least(ahead))
            step = ahead

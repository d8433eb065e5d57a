"""Floating searches: steps back while they pay (Pudil, Novovicova and Kittler 1994).

After each step forward the search steps back, but only while that strictly beats the best subset
known of that size. Each step back thus improves one of finitely many records, so the search ends.
A step forward that falls short of the best known subset of its size continues from the latter
(Somol et al. 1999), so that the current subset is always the best known of its size.
"""

from collections.abc import Iterator

import numpy as np

from tamis._arrays import Subset, improves
from tamis.contract import Search, Step, SubsetCriterion, Trace
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.search.greedy import from_fixed, from_full, grown, least, others, shrunk


class BestBySize(dict[int, tuple[float, Subset]]):
    """The best subset known of each size.

    A subset that was looked at before is no better the second time, whatever rounding says: values
    are sums of steps, and a walk that goes around would raise them for ever.
    """

    def __init__(self, done: Trace):
        super().__init__()
        self.seen: set[bytes] = set()
        for step in done:
            self.note(step)

    def note(self, step: Standing) -> bool:
        """Whether the step's subset is the best of its size so far; remember it if so."""
        size, label = len(step.subset), step.subset.tobytes()
        again = label in self.seen
        self.seen.add(label)
        if again or (size in self and not improves(step.value, self[size][0])):
            return False
        self[size] = (step.value, step.subset)
        return True

    def at_least(self, step: Step) -> Step:
        """The step, or the jump to a better subset of its size."""
        if self.note(step):
            return step
        value, subset = self[len(step.subset)]
        if np.array_equal(subset, step.subset):
            return step
        return Step(subset, value)


class FloatingForward(Search):
    """Forward selection that takes features back while that pays (SFFS).

    Parameters
    ----------
    criterion : SubsetCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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
            # of two features the worse is the one added last, so going back starts at three
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
    """Backward selection that brings features back while that pays (SFBS).

    Parameters
    ----------
    criterion : SubsetCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

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
        step: Standing
        if len(done):
            step = done[-1]
        else:
            yield (first := from_full(criterion, n_units))
            known.note(first)
            step = first
        while True:
            # one feature out of all but one is the one removed last
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

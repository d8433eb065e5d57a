"""The steps of a selection.

A search says which subset it holds after each step, what that is worth and what it scored; what
moved is derived by the :class:`~tamis.contract.trace.Trace`, from two subsets, so that no step can
contradict another.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import EMPTY, Array, Mask, Subset

#: Candidates of a step whose scores are kept, the best first: enough to see who came close, and a
#: search of 5 000 steps stays below ten megabytes.
BEST = 100

NOTHING: Array = np.empty(0)
NOTHING.flags.writeable = False


class Scores(NamedTuple):
    """What a step scored: units, and for each the gain of adding or the loss of removing it.

    Attributes
    ----------
    units : array of int
    values : array of float
    errors : array of float
        Standard errors of ``values``, empty where they are not known.
    n_equal : int
        How many units would have moved with as much right as the last one that did; 0 leaves it to
        the trace to count those whose scores agree in ten digits.
    """

    units: Subset
    values: Array
    errors: Array = NOTHING
    n_equal: int = 0

    def on(self, columns: Subset) -> "Scores":
        """The same scores of a table of which only ``columns`` were seen."""
        return self._replace(units=columns[self.units])


NO_SCORES = Scores(EMPTY, NOTHING)


class Step(NamedTuple):
    """One step, as a search yields it.

    Attributes
    ----------
    subset : array of int
        The units held after the step, in any order.
    value : float
        The criterion's value of the subset, nan where it only ranks.
    scores : Scores or None
        The units that were scored to make the step, those that moved among them.
    params : dict
        Hyper-parameters chosen at this step.
    state : dict
        What the search needs beyond the trace to go on from here; only the newest is kept.
    """

    subset: Subset
    value: float = float("nan")
    scores: Scores | None = None
    params: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Step":
        """The same step on a table of which only ``columns`` were seen."""
        scores = None if self.scores is None else self.scores.on(columns)
        return self._replace(subset=columns[self.subset], scores=scores)


class Entries(NamedTuple):
    """Many steps at once, each of which adds one more unit.

    Attributes
    ----------
    units : array of int
        In the order of entry.
    scores : Scores
        What every unit scored, once for all steps.
    values : array of float
        Value after each step, empty where there is none.
    state : dict
        What is needed to go on, as plain values.
    """

    units: Subset
    scores: Scores
    values: Array = NOTHING
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Entries":
        """The same steps on a table of which only ``columns`` were seen."""
        return self._replace(units=columns[self.units], scores=self.scores.on(columns))


class Progress(NamedTuple):
    """No step yet, but a place to stop and to go on from: a network trained, a filter half done.

    Parameters
    ----------
    state : dict
        What is needed to go on, as plain values.
    """

    state: dict[str, Any]

    def on(self, columns: Subset) -> "Progress":
        """The same progress, which names no units."""
        return self


Event: TypeAlias = Step | Entries | Progress


class TracedStep(NamedTuple):
    """One step, as a trace knows it.

    Attributes
    ----------
    subset : array of int
        The units held after the step, sorted.
    value : float
    moved : array of int
        The units that entered, the best first, or left, the worst first.
    entered : array of bool
        For each of them whether it entered.
    score : array of float
        For each of them what it scored, nan where nobody said.
    error : array of float
        Standard errors of these scores, nan where they are not known.
    scores : Scores
        The best candidates of the step, at most :data:`BEST`, those that moved among them.
    n_evaluations : int
        Scores asked of the criterion up to here.
    params : dict
    seconds : float
    """

    subset: Subset
    value: float
    moved: Subset
    entered: Mask
    score: Array
    error: Array
    scores: Scores
    n_evaluations: int
    params: dict[str, Any]
    seconds: float


#: Where a search stands: a step it just made, or the last one of a trace it goes on from.
Standing: TypeAlias = Step | TracedStep

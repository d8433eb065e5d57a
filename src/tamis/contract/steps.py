"""Steps of a search.

A search yields the subset after each step, its value and the scores. The
:class:`~tamis.contract.trace.Trace` compares successive subsets to find the units that moved, so
steps cannot contradict each other. A unit is a column, or a group of columns that is selected as
one.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import EMPTY, Array, Mask, Subset

#: Number of candidates per step whose scores are stored, starting with the best. This shows close
#: competitors, and keeps a search of 5000 steps below ten megabytes.
BEST = 100

NOTHING: Array = np.empty(0)
NOTHING.flags.writeable = False


class Scores(NamedTuple):
    """Scores of a step: for each unit, the gain of adding it or the loss of removing it.

    Attributes
    ----------
    units : array of int
        The units that were scored.
    values : array of float
        The score of each unit.
    errors : array of float
        Standard errors of ``values``. Empty if they are unknown.
    n_equal : int
        Number of units tied with the last unit that moved, including that unit. If it is 0, the
        trace determines the number, by counting units whose scores agree to ten digits.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.contract import Scores
    >>> Scores(np.array([0, 1]), np.array([0.3, 0.8])).on(np.array([4, 7])).units
    array([4, 7])
    """

    units: Subset
    values: Array
    errors: Array = NOTHING
    n_equal: int = 0

    def on(self, columns: Subset) -> "Scores":
        """Return the scores with unit indices of a wider table. Unit i becomes ``columns[i]``."""
        return self._replace(units=columns[self.units])


NO_SCORES = Scores(EMPTY, NOTHING)


class Step(NamedTuple):
    """One step, as a search yields it.

    Attributes
    ----------
    subset : array of int
        The units after the step, in any order.
    value : float
        The value of the subset, or NaN if the criterion only ranks.
    scores : Scores or None
        The scores of all units that were scored at the step, including those that moved.
    params : dict
        Hyper-parameters chosen at this step.
    state : dict
        Data that the search needs to continue, in addition to the trace. Only the newest state is
        stored.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.contract import Step, Trace
    >>> trace = Trace.of(3, [Step(np.array([1]), 0.7), Step(np.array([1, 2]), 0.9)])
    >>> trace[1].moved, trace[1].value
    (array([2]), 0.9)
    """

    subset: Subset
    value: float = float("nan")
    scores: Scores | None = None
    params: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Step":
        """Return the step with unit indices of a wider table. Unit i becomes ``columns[i]``."""
        scores = None if self.scores is None else self.scores.on(columns)
        return self._replace(subset=columns[self.subset], scores=scores)


class Entries(NamedTuple):
    """Several steps at once, each of which adds a single unit.

    Attributes
    ----------
    units : array of int
        The units in the order in which they are added.
    scores : Scores
        The scores of the units. They are the same for all steps.
    values : array of float
        Value of the subset after each step. Empty if unknown.
    state : dict
        Data that the search needs to continue, as plain values.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.contract import Entries, Scores, Trace
    >>> scores = Scores(np.arange(3), np.array([0.2, 0.9, 0.5]))
    >>> [step.subset.tolist() for step in Trace.of(3, [Entries(np.array([1, 2, 0]), scores)])]
    [[1], [1, 2], [0, 1, 2]]
    """

    units: Subset
    scores: Scores
    values: Array = NOTHING
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Entries":
        """Return the steps with unit indices of a wider table. Unit i becomes ``columns[i]``."""
        return self._replace(units=columns[self.units], scores=self.scores.on(columns))


class Progress(NamedTuple):
    """A state between steps from which a search can continue, such as a trained network.

    Attributes
    ----------
    state : dict
        Data that the search needs to continue, as plain values.

    Examples
    --------
    >>> from tamis.contract import Progress
    >>> Progress({"epoch": 5, "weights": [0.1, 0.7]}).state["epoch"]
    5
    """

    state: dict[str, Any]

    def on(self, columns: Subset) -> "Progress":
        """Return this object unchanged, because it contains no unit indices."""
        return self


Event: TypeAlias = Step | Entries | Progress


class TracedStep(NamedTuple):
    """A step of a trace.

    Attributes
    ----------
    subset : array of int
        The units after the step, sorted.
    value : float
        The value of the subset, or NaN if unknown.
    moved : array of int
        The units that were added (best first) or removed (worst first).
    entered : array of bool
        For each unit in ``moved``, whether it was added.
    score : array of float
        The score of each unit in ``moved``, or NaN if unknown.
    error : array of float
        The standard error of each value in ``score``, or NaN if unknown.
    scores : Scores
        The scores of at most :data:`BEST` candidates of the step, the best ones, and of the units
        that moved.
    n_evaluations : int
        Number of scores that the criterion computed up to this step.
    params : dict
        Hyper-parameters chosen at this step.
    seconds : float
        Duration of the step in seconds.
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


#: The step that a search continues from: a step it just made, or the last step of a trace.
Standing: TypeAlias = Step | TracedStep

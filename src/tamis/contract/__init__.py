"""What criteria, searches and choices promise each other: all that a new part needs.

* A **criterion** subclasses :class:`ForwardCriterion`, :class:`BackwardCriterion` or
  :class:`SubsetCriterion`.
* A **search** subclasses :class:`Search` and yields :class:`Step`; a model that ranks the columns
  itself subclasses :class:`Embedded`.
* A **choice** subclasses :class:`Choice` and picks a step of a :class:`Trace`.
"""

from tamis._arrays import EMPTY, Array, Mask, Subset
from tamis.contract.choice import (
    Best,
    Choice,
    Chosen,
    Context,
    Fraction,
    Size,
    SizeLike,
    resolve_choice,
)
from tamis.contract.cost import Cost
from tamis.contract.criterion import (
    TASKS,
    BackwardCriterion,
    Criterion,
    ForwardCriterion,
    SubsetCriterion,
    check_data,
    check_target,
    difference,
    with_unit,
)
from tamis.contract.embedded import Embedded, Given
from tamis.contract.record import Record, RecordComparison
from tamis.contract.run import Run, StepSource
from tamis.contract.search import FITTING, Counted, Search
from tamis.contract.selector import Selection
from tamis.contract.steps import Entries, Event, Progress, Scores, Step, TracedStep
from tamis.contract.trace import Moves, Trace

__all__ = [
    "EMPTY",
    "FITTING",
    "TASKS",
    "Array",
    "BackwardCriterion",
    "Best",
    "Choice",
    "Chosen",
    "Context",
    "Cost",
    "Counted",
    "Criterion",
    "Embedded",
    "Entries",
    "Event",
    "ForwardCriterion",
    "Fraction",
    "Given",
    "Mask",
    "Moves",
    "Progress",
    "Record",
    "RecordComparison",
    "Run",
    "Scores",
    "Search",
    "Selection",
    "Size",
    "SizeLike",
    "Step",
    "StepSource",
    "Subset",
    "SubsetCriterion",
    "Trace",
    "TracedStep",
    "check_data",
    "check_target",
    "difference",
    "resolve_choice",
    "with_unit",
]

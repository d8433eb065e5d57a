"""What criteria, searches and choices promise each other: all that a new part needs.

* A **criterion** subclasses :class:`ForwardCriterion`, :class:`BackwardCriterion` or
  :class:`SubsetCriterion`.
* A **search** subclasses :class:`Search` and yields :class:`Step`; a model that ranks the columns
  itself subclasses :class:`Embedded`.
* A **choice** subclasses :class:`Choice` and picks a step of a :class:`Trace`.
"""

from tamis._arrays import EMPTY, Array, Mask, Subset
from tamis.contract.censored import SURVIVAL, censored_columns
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
    check_target,
    difference,
    with_unit,
)
from tamis.contract.embedded import Embedded, Given
from tamis.contract.inputs import SparseColumns, check_data
from tamis.contract.parted import TableInParts
from tamis.contract.parts import Parts, Reducible, RowBlock, RowStatistic, Together
from tamis.contract.record import Interaction, Record, RecordComparison
from tamis.contract.run import Run, StepSource
from tamis.contract.search import FITTING, Counted, Search
from tamis.contract.selector import Selection
from tamis.contract.steps import Entries, Event, Progress, Scores, Step, TracedStep
from tamis.contract.trace import Moves, Trace
from tamis.contract.units import Grouping, resolve_units

__all__ = [
    "EMPTY",
    "FITTING",
    "SURVIVAL",
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
    "Grouping",
    "Interaction",
    "Mask",
    "Moves",
    "Parts",
    "Progress",
    "Record",
    "RecordComparison",
    "Reducible",
    "RowBlock",
    "RowStatistic",
    "Run",
    "Scores",
    "Search",
    "Selection",
    "Size",
    "SizeLike",
    "SparseColumns",
    "Step",
    "StepSource",
    "Subset",
    "SubsetCriterion",
    "TableInParts",
    "Together",
    "Trace",
    "TracedStep",
    "censored_columns",
    "check_data",
    "check_target",
    "difference",
    "resolve_choice",
    "resolve_units",
    "with_unit",
]

"""Base classes for new criteria, searches and choices.

* A **criterion** subclasses :class:`ForwardCriterion`, :class:`BackwardCriterion` or
  :class:`SubsetCriterion`.
* A **search** subclasses :class:`Search` and yields :class:`Step`. A model that ranks the columns
  itself subclasses :class:`Embedded`.
* A **choice** subclasses :class:`Choice` and picks a step of a :class:`Trace`.
"""

from tamis._arrays import EMPTY
from tamis.contract.choice import Choice, Chosen, Context
from tamis.contract.criterion import BackwardCriterion, ForwardCriterion, SubsetCriterion
from tamis.contract.embedded import Embedded
from tamis.contract.record import Record
from tamis.contract.search import Search
from tamis.contract.selector import Selection
from tamis.contract.steps import Entries, Progress, Scores, Step
from tamis.contract.trace import Trace

__all__ = [
    "EMPTY",
    "BackwardCriterion",
    "Choice",
    "Chosen",
    "Context",
    "Embedded",
    "Entries",
    "ForwardCriterion",
    "Progress",
    "Record",
    "Scores",
    "Search",
    "Selection",
    "Step",
    "SubsetCriterion",
    "Trace",
]

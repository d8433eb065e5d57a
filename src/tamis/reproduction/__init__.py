"""Published tables, computed again: experiment files, and how they are run.

tamis reproduce --list
tamis reproduce thesis-3.1 --realizations 10
"""

from tamis.reproduction.cells import Cell, Reproduction
from tamis.reproduction.experiment import Experiment, Part
from tamis.reproduction.files import experiments, names, read, titles
from tamis.reproduction.running import reproduce

__all__ = [
    "Cell",
    "Experiment",
    "Part",
    "Reproduction",
    "experiments",
    "names",
    "read",
    "reproduce",
    "titles",
]

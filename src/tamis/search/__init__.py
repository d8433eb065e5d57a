"""Searches: scikit-learn selectors that explore subsets and score them with a criterion."""

from importlib import import_module
from typing import Any

from tamis.search.elimination import RecursiveElimination
from tamis.search.exact import BranchAndBound, Exhaustive
from tamis.search.floating import FloatingBackward, FloatingForward
from tamis.search.genetic import Genetic
from tamis.search.greedy import Backward, Bidirectional, Forward, PlusLMinusR
from tamis.search.ranking import Ranking
from tamis.search.then import Then

__all__ = [
    "Backward",
    "Bidirectional",
    "BranchAndBound",
    "Exhaustive",
    "FloatingBackward",
    "FloatingForward",
    "Forward",
    "Genetic",
    "PlusLMinusR",
    "Ranking",
    "RecursiveElimination",
    "Then",
]

#: Names of :mod:`tamis.choice` that can also be imported from here.
_CHOICES = frozenset({"Best", "Choice", "FalseDiscovery", "Fraction", "Size", "Threshold"})


def __getattr__(name: str) -> Any:
    if name in _CHOICES:
        return getattr(import_module("tamis.choice"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

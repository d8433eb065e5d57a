"""How to explore: searches, each a scikit-learn selector that takes a criterion."""

from tamis.choice import Best, Choice, FalseDiscovery, Fraction, Size, Threshold
from tamis.search.elimination import RecursiveElimination
from tamis.search.exact import BranchAndBound, Exhaustive
from tamis.search.floating import FloatingBackward, FloatingForward
from tamis.search.genetic import Genetic
from tamis.search.greedy import Backward, Bidirectional, Forward, PlusLMinusR
from tamis.search.ranking import Ranking
from tamis.search.then import Then

__all__ = [
    "Backward",
    "Best",
    "Bidirectional",
    "BranchAndBound",
    "Choice",
    "Exhaustive",
    "FalseDiscovery",
    "FloatingBackward",
    "FloatingForward",
    "Forward",
    "Fraction",
    "Genetic",
    "PlusLMinusR",
    "Ranking",
    "RecursiveElimination",
    "Size",
    "Then",
    "Threshold",
]

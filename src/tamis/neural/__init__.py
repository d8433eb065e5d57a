"""Networks that select: gates on their inputs, and what the gates cost.

Everything is closed-form gradients in numpy; folds, restarts and grids are one computation.
"""

from tamis.neural.network import NetworkClassifier
from tamis.neural.path import GatePath, gate_path
from tamis.neural.selector import ClassFeature, GateSelector, PerClass

__all__ = [
    "ClassFeature",
    "GatePath",
    "GateSelector",
    "NetworkClassifier",
    "PerClass",
    "gate_path",
]

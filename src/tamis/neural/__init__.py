"""Gates on columns, learned by gradients: on the inputs of networks, and without a target.

Everything is closed-form gradients in numpy; folds, restarts and grids are one computation.
"""

from tamis.neural._ranking import PerClass
from tamis.neural.network import NetworkClassifier
from tamis.neural.path import GatePath, gate_path
from tamis.neural.profile import ClassFeature
from tamis.neural.sammon import UFeSCoR
from tamis.neural.selector import GateSelector

__all__ = [
    "ClassFeature",
    "GatePath",
    "GateSelector",
    "NetworkClassifier",
    "PerClass",
    "UFeSCoR",
    "gate_path",
]

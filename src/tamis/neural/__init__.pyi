from tamis.neural.gate_runs import GatePath
from tamis.neural.gates import Sparsity
from tamis.neural.network import NetworkClassifier
from tamis.neural.path import gate_path
from tamis.neural.per_class import ClassFeature, PerClass
from tamis.neural.redundancy import Redundancy
from tamis.neural.sammon import UFeSCoR
from tamis.neural.selector import GateSelector
from tamis.neural.solver import GateSolver

__all__ = [
    "ClassFeature",
    "GatePath",
    "GateSelector",
    "GateSolver",
    "NetworkClassifier",
    "PerClass",
    "Redundancy",
    "Sparsity",
    "UFeSCoR",
    "gate_path",
]

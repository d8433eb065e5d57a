from tamis.meta.conditional_test import ConditionalTest
from tamis.meta.contest import Contest
from tamis.meta.fusion import Fusion
from tamis.meta.honest_size import HonestSize
from tamis.meta.invariant_selection import InvariantSelection
from tamis.meta.knockoffs import Knockoffs
from tamis.meta.probes import Probes
from tamis.meta.stability_selection import StabilitySelection

__all__ = [
    "ConditionalTest",
    "Contest",
    "Fusion",
    "HonestSize",
    "InvariantSelection",
    "Knockoffs",
    "Probes",
    "StabilitySelection",
]

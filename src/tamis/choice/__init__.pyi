from tamis.choice.cost import CostLimit
from tamis.choice.curve import Knee, OneStandardError, Patience
from tamis.choice.information import Information
from tamis.choice.prefix import BestPrefix
from tamis.choice.threshold import FalseDiscovery, Threshold
from tamis.contract.choice import Best, Choice, Fraction, Size
from tamis.meta import Contest, Fusion, HonestSize, Knockoffs, Probes, StabilitySelection

__all__ = [
    "Best",
    "BestPrefix",
    "Choice",
    "Contest",
    "CostLimit",
    "FalseDiscovery",
    "Fraction",
    "Fusion",
    "HonestSize",
    "Information",
    "Knee",
    "Knockoffs",
    "OneStandardError",
    "Patience",
    "Probes",
    "Size",
    "StabilitySelection",
    "Threshold",
]

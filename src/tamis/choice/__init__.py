"""Which subset of a trace is kept.

``n_features_to_select`` of a selection takes an int, a fraction, ``"best"`` or one of these; what
theory has to say is in :mod:`tamis.choice.theory`.
"""

from tamis.choice.curve import Knee, Patience
from tamis.choice.error import OneStandardError
from tamis.choice.information import Information
from tamis.choice.threshold import FalseDiscovery, Threshold
from tamis.contract.choice import Best, Choice, Fraction, Size

__all__ = [
    "Best",
    "Choice",
    "FalseDiscovery",
    "Fraction",
    "Information",
    "Knee",
    "OneStandardError",
    "Patience",
    "Size",
    "Threshold",
]

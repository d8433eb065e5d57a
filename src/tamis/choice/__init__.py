"""Which subset of a trace is kept.

``n_features_to_select`` of a selection takes an int, a fraction, ``"best"`` or one of these; what
theory has to say is in :mod:`tamis.choice.theory`. Around a search stand ``HonestSize``,
``Probes``, ``Contest``, ``StabilitySelection`` and ``Knockoffs``: they run it again on other rows
or a wider table, and may keep nothing. ``Fusion`` makes one order of several.
"""

from tamis.choice.contest import Contest
from tamis.choice.curve import Knee, Patience
from tamis.choice.error import OneStandardError
from tamis.choice.fusion import Fusion
from tamis.choice.halves import StabilitySelection
from tamis.choice.honest import HonestSize
from tamis.choice.information import Information
from tamis.choice.knockoffs import Knockoffs
from tamis.choice.prefix import BestPrefix
from tamis.choice.probes import Probes
from tamis.choice.threshold import FalseDiscovery, Threshold
from tamis.contract.choice import Best, Choice, Fraction, Size

__all__ = [
    "Best",
    "BestPrefix",
    "Choice",
    "Contest",
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

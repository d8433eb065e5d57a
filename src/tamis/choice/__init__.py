"""Which subset of a trace is kept.

``n_features_to_select`` of a selection takes an int, a fraction, ``"best"`` or one of these; what
theory has to say is in :mod:`tamis.choice.theory`. Selectors that run a search many times are in
:mod:`tamis.meta`; their names are also available here.
"""

from importlib import import_module
from typing import Any

from tamis.choice.curve import Knee, Patience
from tamis.choice.error import OneStandardError
from tamis.choice.information import Information
from tamis.choice.prefix import BestPrefix
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

#: Meta-selectors, which live one layer above this package.
_META = frozenset({"Contest", "Fusion", "HonestSize", "Knockoffs", "Probes", "StabilitySelection"})


def __getattr__(name: str) -> Any:
    if name in _META:
        return getattr(import_module("tamis.meta"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

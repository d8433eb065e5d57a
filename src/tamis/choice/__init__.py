"""Which subset of a trace is kept.

``n_features_to_select`` of a selection takes an int, a fraction, ``"best"`` or one of these.
"""

from tamis.choice.threshold import FalseDiscovery, Threshold
from tamis.contract.choice import Best, Choice, Fraction, Size

__all__ = ["Best", "Choice", "FalseDiscovery", "Fraction", "Size", "Threshold"]

"""AUTO: a short list of columns without naming a method, and an honest error of it.

``Auto`` is what ``tamis.select(X, y)`` and ``tamis select`` run where no method is named.
"""

from tamis.auto.held_out import CurvePoint, HeldOut, LostError
from tamis.auto.plan import Planned
from tamis.auto.selection import Auto

__all__ = ["Auto", "CurvePoint", "HeldOut", "LostError", "Planned"]

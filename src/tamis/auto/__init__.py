"""Auto: selects columns without a named method, and estimates the error without bias.

``tamis.select(X, y)`` and ``tamis select`` run ``Auto`` if no method is named.
"""

from tamis.auto.held_out import CurvePoint, HeldOut, LostError
from tamis.auto.lists import ColumnList
from tamis.auto.plan import Planned
from tamis.auto.selection import Auto

__all__ = ["Auto", "ColumnList", "CurvePoint", "HeldOut", "LostError", "Planned"]

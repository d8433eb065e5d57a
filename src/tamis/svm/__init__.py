"""Support vector machines for every C at once, and the C that is provably best."""

from tamis.svm.curve import ValidationCurve
from tamis.svm.path import SVCPath

__all__ = ["SVCPath", "ValidationCurve"]

"""Support vector machines for every C at once, and the C that is provably best."""

from tamis.svm.certificate import Certificate
from tamis.svm.curve import ValidationCurve
from tamis.svm.path import SVCPath
from tamis.svm.tuning import SVCPathCV

__all__ = ["Certificate", "SVCPath", "SVCPathCV", "ValidationCurve"]

"""Support vector machines for every C at once, and the C that is provably best."""

from tamis.svm.certificate import Certificate
from tamis.svm.comparison import GradientC, GridC
from tamis.svm.curve import ValidationCurve
from tamis.svm.path import SVCPath
from tamis.svm.regression import SVRPath, SVRPathCV
from tamis.svm.tuning import SVCPathCV

__all__ = [
    "Certificate",
    "GradientC",
    "GridC",
    "SVCPath",
    "SVCPathCV",
    "SVRPath",
    "SVRPathCV",
    "ValidationCurve",
]

from tamis.svm.curves.certificate import Certificate
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.newton import NewtonSVC, NewtonSVR
from tamis.svm.paths import SVCPath, SVRPath
from tamis.svm.search.classification import SVCPathCV
from tamis.svm.search.least_squares import LSSVCPathCV
from tamis.svm.search.regression import SVRPathCV

__all__ = [
    "Certificate",
    "LSSVCPathCV",
    "NewtonSVC",
    "NewtonSVR",
    "SVCPath",
    "SVCPathCV",
    "SVRPath",
    "SVRPathCV",
    "ValidationCurve",
]

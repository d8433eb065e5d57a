"""Support vector machines for every C at once, and the C that is provably best."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis._book import load_from_book

if TYPE_CHECKING:
    from tamis.svm.curves.certificate import Certificate
    from tamis.svm.curves.curve import ValidationCurve
    from tamis.svm.newton import NewtonSVC, NewtonSVR
    from tamis.svm.svc import SVCPath
    from tamis.svm.svr import SVRPath
    from tamis.svm.tuning_ls import LSSVCPathCV
    from tamis.svm.tuning_svc import SVCPathCV
    from tamis.svm.tuning_svr import SVRPathCV

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

_HOMES = {
    "Certificate": "curves.certificate",
    "LSSVCPathCV": "tuning_ls",
    "NewtonSVC": "newton",
    "NewtonSVR": "newton",
    "SVCPath": "svc",
    "SVCPathCV": "tuning_svc",
    "SVRPath": "svr",
    "SVRPathCV": "tuning_svr",
    "ValidationCurve": "curves.curve",
}


def __getattr__(name: str) -> Any:
    # the path is compiled code: criteria that only read fitted machines must not import numba
    if name in _HOMES:
        return getattr(import_module(f"tamis.svm.{_HOMES[name]}"), name)
    if name in ("GradientC", "GridC"):
        return load_from_book(name)
    raise AttributeError(f"module 'tamis.svm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *globals()]

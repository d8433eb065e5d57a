"""Support vector machines for every C at once, and the C that is provably best."""

from importlib import import_module
from typing import Any

from tamis._book import load_from_book

_HOMES = {
    "Certificate": "curves.certificate",
    "LSSVCPathCV": "search.least_squares",
    "NewtonSVC": "newton",
    "NewtonSVR": "newton",
    "SVCPath": "paths",
    "SVCPathCV": "search.classification",
    "SVRPath": "paths",
    "SVRPathCV": "search.regression",
    "ValidationCurve": "curves.curve",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # the path is compiled code: criteria that only read fitted machines must not import numba
    if name in _HOMES:
        return getattr(import_module(f"tamis.svm.{_HOMES[name]}"), name)
    if name in ("GradientC", "GridC"):
        return load_from_book(name)
    raise AttributeError(f"module 'tamis.svm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *globals()]

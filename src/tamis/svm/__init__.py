"""Support vector machines (SVMs): exact solvers, paths over every C, and the provably best C.

Names are imported when they are first used. So criteria for fitted SVMs do not load numba, which
only the paths need.
"""

from typing import Any

from tamis._book import load_from_book
from tamis._lazy import lazy_names

_load, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    return load_from_book(name) if name in ("GradientC", "GridC") else _load(name)

"""Reproduction of published tables: experiment files, and functions that run them.

tamis reproduce --list
tamis reproduce thesis-3.1 --realizations 10

The package also has the comparators ``GridC`` and ``GradientC``, which choose C by a grid and by
gradient descent.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Cell": "cells",
    "Experiment": "experiment",
    "GradientC": "comparators",
    "GridC": "comparators",
    "Part": "experiment",
    "Reproduction": "reproduction",
    "ReproductionReport": "report",
    "experiments": "files",
    "names": "files",
    "published": "chart",
    "read": "files",
    "reproduce": "runner",
    "reproduced": "report",
    "titles": "files",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that listing names does not load a solver."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis_book' has no attribute {name!r}")
    return getattr(import_module(f"tamis_book.{_HOMES[name]}"), name)

"""Published tables, computed again: experiment files, and how they are run.

tamis reproduce --list
tamis reproduce thesis-3.1 --realizations 10

Next to them are comparators of the tables: searches for C by a grid and by descent.
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
    """Load a public name when it is first used: a list of names needs no solver."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis_book' has no attribute {name!r}")
    return getattr(import_module(f"tamis_book.{_HOMES[name]}"), name)

"""Functions that upper layers add to fitted selectors: ``report`` and ``substitutes``.

The ``__init__`` of tamis registers how each is loaded, so that no lower layer imports an upper one.
"""

from collections.abc import Callable
from typing import Any

_LOADERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(name: str, load: Callable[[], Callable[..., Any]]) -> None:
    """Register how to load a function that selectors offer as a method."""
    _LOADERS[name] = load


def extension(name: str) -> Callable[..., Any]:
    """Load a registered function."""
    return _LOADERS[name]()

"""Reproduction of published tables: public names of :mod:`tamis_book`."""

from typing import Any

from tamis._book import load_from_book

_TYPES = ("Cell", "Experiment", "Part", "Reproduction")
_FUNCTIONS = ("experiments", "names", "read", "reproduce", "titles")
__all__ = [*_TYPES, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return load_from_book(name)
    raise AttributeError(f"module 'tamis.reproduction' has no attribute {name!r}")

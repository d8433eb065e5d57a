"""Criteria that a search can use to score columns and subsets of columns."""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

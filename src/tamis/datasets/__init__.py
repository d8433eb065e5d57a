"""Synthetic problems with known relevant columns, and tables to load.

A problem (:func:`make_weston`, ...) is generated at random, with known relevant columns. A table
(:func:`load`) contains real data.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

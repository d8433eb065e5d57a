"""Reproduction of published tables: experiment files, and functions that run them.

tamis reproduce --list
tamis reproduce thesis-3.1 --realizations 10

The package also has the comparators ``GridC`` and ``GradientC``, which choose C by a grid and by
gradient descent.
"""

from tamis._lazy import lazy_names

# names are imported lazily, so that listing experiments does not load a solver
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

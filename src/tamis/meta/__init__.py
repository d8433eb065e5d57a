"""Meta-selectors: selectors that run a search many times.

``HonestSize``, ``ConditionalTest``, ``Probes``, ``Contest``, ``StabilitySelection`` and
``Knockoffs`` run one search on resampled rows or on a wider table, and may select no column.
``InvariantSelection`` compares the columns of a search between environments. ``Fusion`` combines
the orders of several searches.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

"""Gates on columns, learned by gradients: on the inputs of networks, and without a target.

Everything is closed-form gradients in numpy; folds, restarts and grids are one computation.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

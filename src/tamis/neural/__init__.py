"""Feature selection by gates, which are learned factors on the columns.

Gates are learned on the inputs of a neural network. Without a target, they are learned so that the
distances between rows are preserved.

Gradients are closed-form numpy code. All folds, restarts and grid points are trained in one batch.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

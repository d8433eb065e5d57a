"""Outputs of a trained model as a column, or a group of columns, changes.

A :class:`Model` is a fitted estimator seen as a function; a *perturbation* (:class:`Marginal`,
:class:`Permutation`, :class:`Zero`) replaces values; an :class:`Engine` follows it for all columns
together, :func:`open_engine` finds the one that belongs to a model. :func:`importance` and
:func:`effects` work with any fitted model.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

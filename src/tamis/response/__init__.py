"""Outputs of a trained model as a column, or a group of columns, changes.

A :class:`Model` is a fitted estimator seen as a function; a *perturbation* (:class:`Marginal`,
:class:`Permutation`, :class:`Zero`) replaces values; an :class:`Engine` follows it for all columns
together, :func:`open_engine` finds the one that belongs to a model. :func:`importance` and
:func:`effects` work with any fitted model.
"""

from tamis.response.engines.base import Batch, Engine, GenericEngine, Model
from tamis.response.engines.registry import open_engine
from tamis.response.fitted_models import Effect, effects, importance
from tamis.response.perturbations import Derivative, Marginal, Permutation, Removal, Zero

__all__ = [
    "Batch",
    "Derivative",
    "Effect",
    "Engine",
    "GenericEngine",
    "Marginal",
    "Model",
    "Permutation",
    "Removal",
    "Zero",
    "effects",
    "importance",
    "open_engine",
]

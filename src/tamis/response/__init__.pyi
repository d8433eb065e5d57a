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

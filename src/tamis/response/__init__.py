"""Sensitivity of a trained model to its columns.

:func:`importance` and :func:`effects` work with any fitted model. Internally, a :class:`Model`
wraps a fitted estimator as a function from rows to outputs. A *perturbation* (:class:`Marginal`,
:class:`Permutation`, :class:`Zero`) replaces the values of a column. An :class:`Engine` computes
the outputs for all perturbed columns together, and :func:`open_engine` returns the fastest engine
for a model.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

"""Comparison of methods on many resamples, with a store of finished tasks and significance tests.

:func:`evaluate` measures scikit-learn estimators on the held-out rows of many resamples, called
realizations, in one process or on a cluster. :func:`compare` tests which differences are
significant.
"""

from tamis._lazy import lazy_names
from tamis.evaluation.standings import standings  # noqa: F401 (hides the module of this name)

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

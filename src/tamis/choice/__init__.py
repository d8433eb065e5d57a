"""Which subset of a trace is kept.

``n_features_to_select`` of a selection takes an int, a fraction, ``"best"`` or one of these; what
theory has to say is in :mod:`tamis.choice.theory`. Selectors that run a search many times are in
:mod:`tamis.meta`; their names are also available here.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

"""Choices: rules that decide which subset of a search path is selected.

The parameter ``n_features_to_select`` of a selector is an int, a fraction, ``"best"``, or an
instance of one of these classes.
Bounds from learning theory are in :mod:`tamis.choice.theory`. Selectors that run a search many
times are in :mod:`tamis.meta`, but can be imported from here too.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

"""Problems with known answers, and tables to load.

A problem (:func:`make_weston`, ...) is drawn at random and says which columns matter; a table
(:func:`load`) is real and does not.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

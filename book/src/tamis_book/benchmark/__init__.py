"""A public benchmark of feature selection that others can repeat and extend.

A method is a function ``(X, y, k, rng)`` that returns ranked columns, or a scikit-learn selector.
:func:`run` measures methods on splits of public tables by :func:`tamis.evaluation.evaluate`, and
keeps the results in small files. :func:`rank_kind` ranks the methods. The command is ``python -m
tamis_book.benchmark``.
"""

from tamis._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)

"""Expressions: the language in which methods are written on the command line and in files.

An expression is Python code that builds an object, such as
``FloatingForward(Scatter("J3"), n_features_to_select=5)``. It may call the criteria, searches and
choices of tamis, the estimators of scikit-learn and ``tamis.svm``, splitters, and estimators of
other installed libraries. It is parsed, not evaluated: only calls of these names and literals are
allowed.

An expression may come from an untrusted source, so the objects it builds must not access files or
run code. A parameter may not name a file or a folder, name a callable by a dotted path, or use
joblib's memory, which unpickles the content of a folder. :mod:`tamis.spec.safety` checks every
argument, including those in dictionaries such as the grids of scikit-learn's searches.
"""

from tamis._expression import write
from tamis._format import did_you_mean
from tamis.spec.parser import parse
from tamis.spec.vocabulary import catalogue

__all__ = ["catalogue", "did_you_mean", "parse", "write"]

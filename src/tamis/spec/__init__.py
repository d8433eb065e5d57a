"""Expressions and objects: the one language of command line, experiment files and records.

An expression is the Python that makes the object, such as
``FloatingForward(Scatter("J3"), n_features_to_select=5)``, read against a vocabulary: the criteria,
searches and choices of tamis, the estimators of scikit-learn and of ``tamis.svm``, splitters, and
estimators of other libraries that are installed. Only calls of these names and literals are read;
nothing is ever evaluated.

An expression may come from anybody, so what it makes must not touch the machine either. **The
rule**: a text in an expression is a word, never a way to somewhere. No parameter may name a file or
a folder, name a callable by a dotted path, or reach joblib's memory, which unpickles, and so runs,
what lies in its folder. :mod:`tamis.spec.safety` holds every argument to it, also those that a
dictionary passes on by name, as the grids of scikit-learn's searches do.
"""

from tamis._expression import write
from tamis._format import did_you_mean
from tamis.spec.parser import parse
from tamis.spec.vocabulary import catalogue

__all__ = ["catalogue", "did_you_mean", "parse", "write"]

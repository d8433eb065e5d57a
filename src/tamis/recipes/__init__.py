"""Methods of the literature, available by name.

A recipe is a short function that returns a search with a criterion. Keyword options are passed to
the search. Most recipes select half of the columns by default::

    tamis.recipe("svm-rfe", C=10, n_features_to_select=5)
"""

from tamis.recipes import (  # noqa: F401 (they register recipes)
    literature,
    models,
    sensitivity,
)
from tamis.recipes.book import Recipe, find, names, recipe
from tamis.recipes.request import method, prepare, select

__all__ = ["Recipe", "find", "method", "names", "prepare", "recipe", "select"]

"""The methods of the literature, by their names.

A recipe is a short function that returns an expression of criterion and search. Options go to the
search by keyword, and every recipe keeps half of the columns unless told otherwise::

    tamis.recipe("svm-rfe", C=10, n_features_to_select=5)
"""

from tamis.recipes import (  # noqa: F401 (they write into the book)
    information,
    literature,
    models,
    sensitivity,
)
from tamis.recipes.book import Recipe, find, names, recipe
from tamis.recipes.request import method, prepare, select

__all__ = ["Recipe", "find", "method", "names", "prepare", "recipe", "select"]

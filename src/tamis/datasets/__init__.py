"""Problems with known answers, and tables to load.

A problem (:func:`make_weston`, ...) is drawn at random and says which columns matter; a table
(:func:`load`) is real and does not.
"""

from tamis.datasets.clusters import (
    make_class_redundancy,
    make_complementary,
    make_madelon,
    make_weston,
)
from tamis.datasets.functions import make_additive, make_exponential, make_interactive
from tamis.datasets.loading import Table, load, names
from tamis.datasets.logical import make_corral, make_monks, make_xor
from tamis.datasets.problem import Problem

__all__ = [
    "Problem",
    "Table",
    "load",
    "make_additive",
    "make_class_redundancy",
    "make_complementary",
    "make_corral",
    "make_exponential",
    "make_interactive",
    "make_madelon",
    "make_monks",
    "make_weston",
    "make_xor",
    "names",
]

"""Problems with known answers, and tables to load.

A problem (:func:`make_weston`, ...) is drawn at random and says which columns matter; a table
(:func:`load`) is real and does not.
"""

from tamis.datasets.loading import Table, load, names
from tamis.datasets.synthetic import (
    Problem,
    make_additive,
    make_class_redundancy,
    make_complementary,
    make_corral,
    make_exponential,
    make_interactive,
    make_madelon,
    make_monks,
    make_weston,
    make_xor,
)

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

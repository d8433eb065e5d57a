from tamis.datasets.clusters import (
    make_class_redundancy,
    make_complementary,
    make_madelon,
    make_weston,
)
from tamis.datasets.functions import (
    make_additive,
    make_decoys,
    make_exponential,
    make_interactive,
)
from tamis.datasets.interactions import make_corral, make_interactions, make_monks, make_xor
from tamis.datasets.loaders import Dataset, Table, load, names
from tamis.datasets.mixed_tables import MixedTable, make_genes, make_mixed
from tamis.datasets.problem import Problem

__all__ = [
    "Dataset",
    "MixedTable",
    "Problem",
    "Table",
    "load",
    "make_additive",
    "make_class_redundancy",
    "make_complementary",
    "make_corral",
    "make_decoys",
    "make_exponential",
    "make_genes",
    "make_interactions",
    "make_interactive",
    "make_madelon",
    "make_mixed",
    "make_monks",
    "make_weston",
    "make_xor",
    "names",
]

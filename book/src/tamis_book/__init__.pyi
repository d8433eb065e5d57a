from tamis_book.cells import Cell
from tamis_book.chart import published
from tamis_book.comparators import GradientC, GridC
from tamis_book.experiment import Experiment, Part
from tamis_book.files import experiments, names, read, titles
from tamis_book.report import ReproductionReport, reproduced
from tamis_book.reproduction import Reproduction
from tamis_book.runner import reproduce

__all__ = [
    "Cell",
    "Experiment",
    "GradientC",
    "GridC",
    "Part",
    "Reproduction",
    "ReproductionReport",
    "experiments",
    "names",
    "published",
    "read",
    "reproduce",
    "reproduced",
    "titles",
]

from tamis_book.benchmark.methods import METHODS, Method
from tamis_book.benchmark.pages import write_pages
from tamis_book.benchmark.ranking import KindRanking, RankedMethod, rank_kind
from tamis_book.benchmark.result_files import CellResult, TableResults, load_results, stored_results
from tamis_book.benchmark.runner import run
from tamis_book.benchmark.tables import BenchmarkTable, load_table, table_names

__all__ = [
    "METHODS",
    "BenchmarkTable",
    "CellResult",
    "KindRanking",
    "Method",
    "RankedMethod",
    "TableResults",
    "load_results",
    "load_table",
    "rank_kind",
    "run",
    "stored_results",
    "table_names",
    "write_pages",
]

"""One page that says which columns are kept, why, and how sure that is.

:func:`report` gathers the facts of a fitted selection; ``report(...).save("report.html")`` writes
one file that works without network, server or JavaScript. Needs the extra ``app``.
"""

from typing import Any

from tamis._book import load_from_book
from tamis.report.compared import ComparisonReport, MeasuredTable, compared
from tamis.report.facts import Report
from tamis.report.gathering import report
from tamis.report.measuring import resampled
from tamis.report.saving import write_report

__all__ = [
    "ComparisonReport",
    "MeasuredTable",
    "Report",
    "compared",
    "report",
    "resampled",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in ("ReproductionReport", "reproduced"):
        return load_from_book(name)
    raise AttributeError(f"module 'tamis.report' has no attribute {name!r}")

"""One page that says which columns are kept, why, and how sure that is.

:func:`report` gathers the facts of a fitted selection; ``report(...).save("report.html")`` writes
one file that works without network, server or JavaScript. Needs the extra ``app``.
"""

from tamis.report.compared import ComparisonReport, MeasuredTable, compared
from tamis.report.facts import Report
from tamis.report.gathering import report
from tamis.report.measuring import resampled
from tamis.report.reproduced import ReproductionReport, reproduced
from tamis.report.saving import write_report

__all__ = [
    "ComparisonReport",
    "MeasuredTable",
    "Report",
    "ReproductionReport",
    "compared",
    "report",
    "reproduced",
    "resampled",
    "write_report",
]

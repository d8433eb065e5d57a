from tamis.report.comparison import ComparisonReport, MeasuredTable, compared
from tamis.report.estimates import resampled
from tamis.report.page import write_report
from tamis.report.selection import Report, report

__all__ = [
    "ComparisonReport",
    "MeasuredTable",
    "Report",
    "compared",
    "report",
    "resampled",
    "write_report",
]

from tamis.report.comparison import ComparisonReport, MeasuredTable, compared
from tamis.report.estimates import resampled
from tamis.report.explorer import Candidate, Omission, fit_without
from tamis.report.page import write_report
from tamis.report.selection import Report, report

__all__ = [
    "Candidate",
    "ComparisonReport",
    "MeasuredTable",
    "Omission",
    "Report",
    "compared",
    "fit_without",
    "report",
    "resampled",
    "write_report",
]

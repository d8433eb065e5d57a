from tamis.report.charts.class_means import classes
from tamis.report.charts.columns import interactions, ranking, redundancy
from tamis.report.charts.curves import curve, tuning
from tamis.report.charts.front import front
from tamis.report.charts.methods import comparison, rank_agreement
from tamis.report.charts.search_path import path
from tamis.report.charts.stability import conditional_tests, environments, stability

__all__ = [
    "classes",
    "comparison",
    "conditional_tests",
    "curve",
    "environments",
    "front",
    "interactions",
    "path",
    "rank_agreement",
    "ranking",
    "redundancy",
    "stability",
    "tuning",
]

from tamis.evaluation.comparison import Comparison, Contrast, compare, rank
from tamis.evaluation.metrics import Metric, hit
from tamis.evaluation.outcome import Outcome, RowLosses, Score
from tamis.evaluation.protocol import Steps
from tamis.evaluation.realizations import CrossValidation, GivenSplits, Realizations, Split
from tamis.evaluation.results import Failure, Results
from tamis.evaluation.runner import evaluate
from tamis.evaluation.significance import (
    Interval,
    Ranks,
    Test,
    bootstrap_interval,
    corrected_t,
    critical_difference,
    friedman,
    hit_interval,
    holm,
    mark,
    paired_t,
    same_rate,
    wilcoxon,
)
from tamis.evaluation.sources import Drawn, Fresh
from tamis.evaluation.standings import Standing, Standings, standings
from tamis.evaluation.store import Store
from tamis.validation.stability import Stability, stability

__all__ = [
    "Comparison",
    "Contrast",
    "CrossValidation",
    "Drawn",
    "Failure",
    "Fresh",
    "GivenSplits",
    "Interval",
    "Metric",
    "Outcome",
    "Ranks",
    "Realizations",
    "Results",
    "RowLosses",
    "Score",
    "Split",
    "Stability",
    "Standing",
    "Standings",
    "Steps",
    "Store",
    "Test",
    "bootstrap_interval",
    "compare",
    "corrected_t",
    "critical_difference",
    "evaluate",
    "friedman",
    "hit",
    "hit_interval",
    "holm",
    "mark",
    "paired_t",
    "rank",
    "same_rate",
    "stability",
    "standings",
    "wilcoxon",
]

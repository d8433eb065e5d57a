"""Comparison of published numbers with ours."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from tamis.evaluation import hit_interval, same_rate
from tamis_book.experiment import UNSOUND, Experiment

#: Significance level of a difference between our number and the published number.
LEVEL = 0.05
#: Marks and their words, for a metric such as an error. The first three marks are for numbers that
#: are compared with ours.
MARKS = {"=": "agree", "+": "lower", "-": "higher", **{mark: k for k, mark in UNSOUND.items()}}
COMPARED = ("=", "+", "-")


class Cell(NamedTuple):
    """A number of a table: ours and the published one.

    Attributes
    ----------
    part, method : str
        Names of the part of the table and of the method.
    size : int or None
        Requested number of columns or step. None if each method chooses its own number.
    ours, deviation : float
        Mean and standard deviation over the realizations. For hits, their count.
    low, high : float
        Range over the realizations. For a stability, its confidence interval.
    n_realizations : int
        Number of realizations of our number.
    published : float or None
        The published number. None if there is none.
    mark : str
        "=" if the two numbers agree, "+" if ours is better (a lower error, or a higher accuracy or
        number of hits), "-" if ours is worse. "!" if the published number is impossible, "?" if the
        publication does not specify how it was computed, "~" if another number of the same
        publication contradicts it. Empty if one of the numbers is missing. Hit counts are compared
        by a mid-p test. Means agree if they differ by less than about two standard errors of the
        difference, with our standard deviation for both. An experiment may instead require that the
        published number lies between ``low`` and ``high``, or set a maximum difference.
    sign, published_sign : str or None
        Result of a paired t-test, in our results and as published: "+" if the reference of the
        table is better, "-" if it is worse, None if there was no test.
    n_features, published_n_features : float or None
        Mean number of columns in experiments with baselines, and the published mean number.
    beside : str or None
        For a baseline, the method whose numbers of columns the baseline uses.
    all_columns : bool
        Whether the number is for all columns of the table, without a selection.

    Examples
    --------
    >>> from tamis_book import Cell
    >>> Cell("100", "FisherS", None, 4, 0.5, 0, 1, 30, published=2, mark="=").mark
    '='
    """

    part: str
    method: str
    size: int | None
    ours: float
    deviation: float
    low: float
    high: float
    n_realizations: int
    published: float | None = None
    mark: str = ""
    sign: str | None = None
    published_sign: str | None = None
    n_features: float | None = None
    published_n_features: float | None = None
    beside: str | None = None
    all_columns: bool = False


def mark_words(experiment: Experiment) -> dict[str, str]:
    """Return a word for each mark, such as whether our number is lower or higher."""
    if not experiment.greater_is_better:
        return MARKS
    return {**MARKS, "+": MARKS["-"], "-": MARKS["+"]}


def win_of(cell: Cell) -> str | None:
    """Return whether our test confirms a published significant difference from the reference.

    The result is "kept" if our difference is significant too, "lost" if it is not, and "reversed"
    if it has the opposite sign. It is None if no significant difference is published.
    """
    if not cell.published_sign or cell.sign is None:
        return None
    if cell.sign == cell.published_sign:
        return "kept"
    return "reversed" if cell.sign else "lost"


def mark_cell(experiment: Experiment, cell: Cell, published: float) -> str:
    """Return the mark of a cell, by the experiment's rule.

    It is empty for a single realization, which has no standard deviation.
    """
    low, high = agreement_range(experiment, cell)
    if np.isnan(low) or (experiment.is_range and cell.n_realizations < 2):
        return ""
    # published numbers are rounded
    slack = 0.5 * 10.0**-experiment.decimals if experiment.is_range else 1e-9
    hit = experiment.metric == "hit"
    if low - slack <= published <= high + slack or (not hit and np.isclose(cell.ours, published)):
        return "="
    return "+" if (published < low) == experiment.greater_is_better else "-"


def agreement_range(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Return the smallest and the greatest number that agree with ours, or NaN if unknown.

    For hits, these are counts out of the published number of realizations.
    """
    n, n_published = cell.n_realizations, experiment.realizations
    if experiment.metric == "hit":
        return _same_hits(int(cell.ours), n, n_published)
    if experiment.is_range:
        return cell.low, cell.high
    reach = experiment.agreement
    if isinstance(reach, str):
        reach = _reach(cell, n_published)
    return cell.ours - reach, cell.ours + reach


@cache
def _same_hits(hits: int, n: int, n_published: int) -> tuple[float, float]:
    """Return the smallest and the greatest published count that does not differ from ours."""
    counts = range(n_published + 1)
    same = [k for k in counts if same_rate((hits, n), (k, n_published), mid_p=True) >= LEVEL]
    return float(same[0]), float(same[-1])


def interval(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Return the 95 % interval of our number: Wilson's for a count, Student's for a mean.

    In experiments that compare by range, it is the range of our numbers. For a stability, it is the
    confidence interval. It is NaN for a single realization.
    """
    n = cell.n_realizations
    if experiment.metric == "hit":
        share = hit_interval(int(cell.ours), n)
        return n * share.low, n * share.high
    if experiment.is_range:
        return cell.low, cell.high
    reach = _reach(cell, np.inf)
    return cell.ours - reach, cell.ours + reach


def _reach(cell: Cell, n_published: float) -> float:
    """Return the largest difference between two means that is not significant by a t-test."""
    n = cell.n_realizations
    if n < 2:
        return float("nan")
    return _quantile(n - 1) * cell.deviation * float(np.sqrt(1 / n + 1 / n_published))


@cache
def _quantile(degrees: int) -> float:
    return float(stats.t.ppf(1 - LEVEL / 2, degrees))

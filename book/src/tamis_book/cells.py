"""Comparison of published numbers with ours."""

from typing import NamedTuple

import numpy as np
from scipy import stats

from tamis.evaluation import hit_interval, same_rate
from tamis.evaluation.metrics import metric
from tamis_book.experiment import Experiment

#: Significance level of a difference between our number and the published number.
LEVEL = 0.05


class Cell(NamedTuple):
    """A number of a table: ours and the published one.

    Attributes
    ----------
    part, method : str
    size : int or None
        Requested number of columns or step. None if each method chooses its own number.
    ours, deviation : float
        Mean and standard deviation over the realizations. For hits, their count.
    low, high : float
        Range over the realizations. For a stability, its confidence interval.
    n_realizations : int
    published : float or None
    mark : str
        "=" if the two numbers agree, "+" if ours is better, "-" if it is worse, "?" if the
        published number is wrong, empty if one of them is missing. Hit counts are compared by
        Fisher's exact test, and means by about two standard errors of their difference, with our
        standard deviation for both. An experiment may instead require that the published number
        lies between ``low`` and ``high``, or set a greatest difference.
    sign, published_sign : str or None
        "+" if the reference of the table is better by a paired t-test, "-" if it is worse, None if
        there was no test. The second is the published sign.
    n_features, published_n_features : float or None
        Mean number of columns in experiments with baselines, and the published mean number.
    beside : str or None
        For a baseline, the method whose numbers of columns it copies.

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
    better = hit or metric(experiment.metric).greater_is_better
    return "+" if (published < low) == better else "-"


def agreement_range(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Return the smallest and the greatest number that agree with ours, or NaN if unknown.

    For hits, these are counts out of the published number of realizations.
    """
    n, n_published = cell.n_realizations, experiment.realizations
    if experiment.metric == "hit":
        ours = int(cell.ours), n
        counts = range(n_published + 1)
        same = [count for count in counts if same_rate(ours, (count, n_published)) >= LEVEL]
        return float(same[0]), float(same[-1])
    if experiment.is_range:
        return cell.low, cell.high
    reach = experiment.agreement
    if isinstance(reach, str):
        reach = _reach(cell, n_published)
    return cell.ours - reach, cell.ours + reach


def interval(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Return the 95 % interval of our number: Wilson's for a count, Student's for a mean.

    In experiments that compare by range, it is the range of our numbers, or the interval of a
    stability. It is NaN for a single realization.
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
    error = cell.deviation * np.sqrt(1 / n + 1 / n_published)
    return float(stats.t.ppf(1 - LEVEL / 2, n - 1) * error)

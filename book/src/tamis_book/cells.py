"""Numbers of a published table next to ours, and whether they agree."""

from typing import NamedTuple

import numpy as np
from scipy import stats

from tamis.evaluation import hit_interval, same_rate
from tamis.evaluation.metrics import metric
from tamis_book.experiment import Experiment

#: Significance level of a difference between ours and the published number.
LEVEL = 0.05


class Cell(NamedTuple):
    """One number of a table, ours and the published one.

    Attributes
    ----------
    part, method : str
    size : int or None
        Number of columns that was asked for, or the step; None for the method's own number.
    ours, deviation : float
        Mean over the realizations and its spread; for hits their count.
    low, high : float
        Range of ours; for a stability its interval.
    n_realizations : int
    published : float or None
    mark : str
        "=" if the two agree, "+" if ours is better, "-" if it is worse, "?" if the published number
        is not a target, empty if one of them is missing. Hit counts are compared by Fisher's exact
        test, means by about two standard errors of their difference, the published one having
        the spread of ours; or the experiment says that the published number must lie between
        ``low`` and ``high``, or how far apart the two may be.
    sign, published_sign : str or None
        "+" if the reference of the table wins by a paired t-test, "-" if it loses, None if there
        was no test; and the printed one.
    n_features, published_n_features : float or None
        Mean number of columns, in experiments that have baselines; and the printed one.
    beside : str or None
        For a baseline the method whose numbers of columns it has.
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
    """Compare ours with the published number, by the rule of the experiment.

    One realization has no spread, so that its mark is empty.
    """
    low, high = agreement_range(experiment, cell)
    if np.isnan(low) or (experiment.is_range and cell.n_realizations < 2):
        return ""
    # printed numbers are rounded
    slack = 0.5 * 10.0**-experiment.decimals if experiment.is_range else 1e-9
    hit = experiment.metric == "hit"
    if low - slack <= published <= high + slack or (not hit and np.isclose(cell.ours, published)):
        return "="
    better = hit or metric(experiment.metric).greater_is_better
    return "+" if (published < low) == better else "-"


def agreement_range(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Return the least and the greatest published number that agree with ours; NaN if unknown.

    For hits these are counts of the published number of realizations.
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
    """Return the 95 % interval of our number: a count by Wilson's rule, a mean by Student's.

    For an experiment that agrees by range it is the range of ours, for a stability its interval;
    NaN if there is one realization.
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
    """Return how far two means may be apart by chance.

    Few realizations estimate the spread poorly, which Student's quantile allows for.
    """
    n = cell.n_realizations
    if n < 2:
        return float("nan")
    error = cell.deviation * np.sqrt(1 / n + 1 / n_published)
    return float(stats.t.ppf(1 - LEVEL / 2, n - 1) * error)

"""The numbers of a published table, ours beside them, and how they compare."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from tamis._frame import frame_of
from tamis.evaluation import Results, same_rate
from tamis.evaluation.metrics import metric
from tamis.reproduction.experiment import Experiment

#: How sure we must be before ours and the published number are said to differ.
LEVEL = 0.05


class Cell(NamedTuple):
    """One number of a table, ours and the published one.

    ``mark`` is "=" where they agree within chance, "+" where ours is better, "-" where it is
    worse, "?" where the published row is no target, and empty where one of them is missing. Hit
    counts are compared by Fisher's exact test; means by about two standard errors of their
    difference, the published one having the spread of ours; or, where the experiment says so, "="
    where the published number is within the range of ours, ``low`` to ``high``, or differs by no
    more than a given number. Of a stability ``low`` and ``high`` are its interval, which decides.
    ``sign`` is "+" where the reference of the table wins by a paired t-test, "-" where it loses,
    None where there was no test.

    ``size`` is the number of columns that was asked for, or the step. ``n_features`` is the mean
    number of columns, in experiments that have baselines: the cells of these name the method
    ``beside`` which they stand, and have its number of columns in every realization.
    """

    part: str
    method: str
    size: int | None
    ours: float
    deviation: float
    low: float
    high: float
    n_realizations: int
    published: float | None
    mark: str
    sign: str | None
    published_sign: str | None
    n_features: float | None = None
    published_n_features: float | None = None
    beside: str | None = None


@dataclass(frozen=True, repr=False)
class Reproduction:
    """An experiment computed again.

    Attributes
    ----------
    experiment : Experiment
    cells : tuple of Cell
    missing : tuple of str
        A sentence for each method or table that is not at hand.
    settings : tuple of str
        Hyper-parameters that were chosen.
    results, baselines : dict of str to Results
        Every score behind the cells of a part, realization by realization; and those of the
        methods that stand beside them.
    remarks : tuple of str
        A sentence for each method that selected nothing in some realizations.
    """

    experiment: Experiment
    cells: tuple[Cell, ...]
    missing: tuple[str, ...]
    settings: tuple[str, ...] = ()
    results: Mapping[str, Results] = field(default_factory=dict, compare=False)
    remarks: tuple[str, ...] = ()
    baselines: Mapping[str, Results] = field(default_factory=dict, compare=False)

    def counts(self) -> dict[str, int]:
        """Number of cells with each mark."""
        marks = [cell.mark for cell in self.cells if cell.mark]
        return {mark: marks.count(mark) for mark in "=+-?" if mark in marks}

    def to_frame(self) -> Any:
        """One row per cell, as polars or pandas frame."""
        return frame_of(self.cells, Cell._fields)

    def __repr__(self) -> str:
        counted = ", ".join(f"{n} {mark}" for mark, n in self.counts().items()) or "nothing"
        return f"<Reproduction of {self.experiment.name}: {counted}>"


def mark_of(experiment: Experiment, cell: Cell, published: float) -> str:
    """How ours compares with what was published, by the rule of the experiment."""
    n, n_published = cell.n_realizations, experiment.realizations
    if experiment.metric == "hit":
        return _hits_mark(int(cell.ours), n, int(published), n_published)
    better = metric(experiment.metric).greater_is_better
    if experiment.agreement == "range" or experiment.metric == "stability":
        slack = 0.5 * 10.0**-experiment.decimals  # printed numbers are rounded
        return _range_mark(cell.low, cell.high, n, published, slack, better)
    if isinstance(experiment.agreement, float):
        return _near_mark(cell.ours, published, experiment.agreement, better)
    return _mean_mark(cell.ours, cell.deviation, n, published, n_published, better)


def agreeing(experiment: Experiment, cell: Cell) -> tuple[float, float]:
    """Between which published numbers :func:`mark_of` says that they agree; NaN where it cannot.

    Of hits these are counts of the published number of realizations.
    """
    n, n_published = cell.n_realizations, experiment.realizations
    if experiment.metric == "hit":
        same = [
            count
            for count in range(n_published + 1)
            if _hits_mark(int(cell.ours), n, count, n_published) == "="
        ]
        return float(same[0]), float(same[-1])
    if experiment.agreement == "range" or experiment.metric == "stability":
        return cell.low, cell.high
    reach = experiment.agreement
    if not isinstance(reach, float):
        reach = _reach(cell.deviation, n, n_published) if n > 1 else float("nan")
    return cell.ours - reach, cell.ours + reach


def _hits_mark(ours: int, n: int, published: int, n_published: int) -> str:
    if same_rate((ours, n), (published, n_published)) >= LEVEL:
        return "="
    return "+" if ours / n > published / n_published else "-"


def _mean_mark(
    ours: float, spread: float, n: int, published: float, n_published: int, greater: bool
) -> str:
    """About two standard errors of the difference; of one realization nothing can be said."""
    if not np.isfinite(spread):
        return ""
    if abs(ours - published) <= _reach(spread, n, n_published) or np.isclose(ours, published):
        return "="
    return "+" if (ours > published) == greater else "-"


def _reach(spread: float, n: int, n_published: int) -> float:
    """How far two means may be apart by chance.

    Few realizations give a poor idea of the spread, which Student's quantile allows for.
    """
    error = spread * np.sqrt(1 / n + 1 / n_published)
    return float(stats.t.ppf(1 - LEVEL / 2, n - 1) * error)


def _near_mark(ours: float, published: float, reach: float, greater: bool) -> str:
    """Whether two numbers are no further apart than this."""
    if abs(ours - published) <= reach + 1e-9:
        return "="
    return "+" if (ours > published) == greater else "-"


def _range_mark(
    low: float, high: float, n: int, published: float, slack: float, greater: bool
) -> str:
    """Whether the number of one realization is among ours; of one of ours nothing can be said."""
    if n < 2:
        return ""
    if low - slack <= published <= high + slack:
        return "="
    return "+" if (low > published) == greater else "-"

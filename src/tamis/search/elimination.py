"""Recursive elimination: drop the least important, train again, repeat."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import Array, Subset, lowest, snapped
from tamis._checks import NONE, Constraint, Constraints, integer, one_of, several
from tamis.contract import BackwardCriterion, Record, Scores, Search, Step, Trace
from tamis.contract.choice import SizeLike
from tamis.contract.criterion import Criterion
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter
from tamis.search.greedy import from_full, least

Tiers: TypeAlias = "Sequence[tuple[int, int]]"

COUNT_OR_SHARE = integer(1) | Constraint(
    ("a fraction in (0, 1)",), lambda value: isinstance(value, float) and 0 < value < 1
)
TIER = Constraint(
    ("a pair",),
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) == 2
        and integer(0).accepts(value[0])
        and integer(1).accepts(value[1])
    ),
)
TIERS = several(TIER, "tiers such as [(100, 100), (20, 20), (0, 1)]")


class RecursiveElimination(Search):
    """Drop the features whose removal costs least, score the rest anew, repeat (RFE).

    Parameters
    ----------
    criterion : BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    step : int, float or list of (above, drop), default=1
        How many features leave at a time: a number, a fraction of those left, or tiers:
        ``[(100, 100), (20, 20), (0, 1)]`` drops 100 while more than 100 are left, then 20 while
        more than 20 are left, then 1. A step never passes its tier's threshold nor the
        size asked for: 530, 430, 330, 230, 130, 100, 80, 60, 40, 20, 19, ...
    retune : int, float, "tier" or None, default=None
        When the criterion chooses its hyper-parameters anew: every so many rounds, whenever that
        fraction of the features has left since, or at the start of each tier.
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from tamis.criteria import Importances
    >>> X, y = load_iris(return_X_y=True)
    >>> search = RecursiveElimination(Importances(SVC(kernel="linear")), n_features_to_select=1)
    >>> search.fit(X, y).ranking_
    array([4, 3, 2, 1])
    """

    needs = (BackwardCriterion,)
    nested = True
    grows = False

    _constraints: ClassVar[Constraints] = {
        "step": COUNT_OR_SHARE | TIERS,
        "retune": COUNT_OR_SHARE | one_of("tier") | NONE,
    }

    def __init__(
        self,
        criterion: Criterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        step: "int | float | Tiers" = 1,
        retune: int | float | str | None = None,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
        self.step = step
        self.retune = retune

    def _check(self) -> None:
        super()._check()
        if self.retune == "tier" and not isinstance(self.step, list | tuple):
            raise InvalidParameter(
                "RecursiveElimination(retune='tier') chooses anew at the start of each tier, and "
                f"step={self.step!r} has none. Write step=[(100, 100), (20, 20), (0, 1)], or "
                "retune as a number of rounds."
            )

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        size = least(criterion, size)
        step: Standing
        if len(done):
            step = done[-1]
        else:
            yield (first := from_full(criterion, n_units))
            step = first
        tuning = self._replayed(done)
        while len(step.subset) > size:
            tuning, due = self._tuning(tuning, len(step.subset))
            params = dict(criterion.criterion.tune(step.subset)) if due else {}
            drop, _ = drop_count(self.step, len(step.subset), size)
            # a new tuning changes all values: the one before says nothing of the one after
            value = np.nan if params else step.value
            shorter = _without_worst(criterion, step.subset, value, drop)
            yield shorter._replace(params=params) if params else shorter
            step = shorter

    def _tuning(self, tuning: "Tuning", size: int) -> "tuple[Tuning, bool]":
        """Whether the criterion is to choose its parameters anew for this round, and since when."""
        if self.retune is None:
            return tuning, False
        _, tier = drop_count(self.step, size, 0)
        if self.retune == "tier":
            due = tier != tuning.tier
        elif isinstance(self.retune, float):
            due = tuning.size is None or size <= (1 - self.retune) * tuning.size
        else:
            due = tuning.rounds % int(self.retune) == 0
        last = (size, tier) if due else (tuning.size, tuning.tier)
        return Tuning(tuning.rounds + 1, *last), due

    def _replayed(self, done: Trace) -> "Tuning":
        """When the criterion last chose its parameters, from the sizes of the rounds so far."""
        tuning = Tuning()
        for size in done.sizes[:-1]:
            tuning, _ = self._tuning(tuning, int(size))
        return tuning

    def _common(self, done: Record, size: int | None) -> int:
        """A last step that was cut short by the size asked for is made anew."""
        sizes, last = done.trace.sizes, size or max(1, len(done.grouping.fixed))
        for k in range(1, len(sizes)):
            drop, _ = drop_count(self.step, int(sizes[k - 1]), last)
            if sizes[k - 1] - drop != sizes[k]:
                return k if sizes[k - 1] > last else len(sizes)
        return len(sizes)


class Tuning(NamedTuple):
    """Rounds so far, and size and tier at which the criterion last chose its parameters."""

    rounds: int = 0
    size: int | None = None
    tier: int | None = None


def _without_worst(criterion: Counted, subset: Subset, value: float, drop: int) -> Step:
    """The step that removes the ``drop`` members of least loss.

    Of equals those without which the opinion is best, or the highest index.
    """
    losses, noise = criterion.loss(subset), criterion.noise(value)
    by = criterion.shunning(losses, subset)
    if len(criterion.fixed):  # most searches fix none, and step thousands of times
        by = np.where(np.isin(subset, criterion.fixed), np.inf, by)
    leaving, n_equal = lowest(by, drop, noise)
    if by is not losses:
        cut = np.where(np.isin(subset, criterion.fixed), np.nan, snapped(losses, noise))
        n_equal = int(np.count_nonzero(cut == cut[leaving[-1]]))
    if criterion.has_opinion and n_equal > 1:
        leaving = _by_opinion(criterion, subset, snapped(by, noise), leaving)
    kept = _without(subset, leaving)
    # with one feature the new value follows from the score, otherwise it must be asked for
    value = float(value) - float(losses[leaving[0]]) if drop == 1 else np.nan
    return Step(
        kept,
        criterion.value(kept) if isnan(value) else value,
        Scores(subset, losses, criterion.errors(subset), n_equal),
    )


def _by_opinion(criterion: Counted, subset: Subset, cut: Array, leaving: Subset) -> Subset:
    """As many members as leave; of those at the edge the ones that the opinion can do without."""
    edge = np.flatnonzero(cut == cut[leaving[-1]])
    below = leaving[cut[leaving] < cut[leaving[-1]]]
    if len(edge) + len(below) == len(leaving):
        return leaving
    best = np.lexsort((-edge, -criterion.opinions(subset, subset[edge])))
    return np.append(below, edge[best[: len(leaving) - len(below)]])


def _without(subset: Subset, leaving: Subset) -> Subset:
    """The members that stay; ``np.delete`` takes three times as long to take out one."""
    if len(leaving) == 1:
        return np.concatenate((subset[: leaving[0]], subset[leaving[0] + 1 :]))
    return np.delete(subset, leaving)


def drop_count(step: Any, size: int, least: int) -> tuple[int, int]:
    """How many of ``size`` features leave next, and the threshold of the tier in force.

    >>> drop_count([(100, 100), (20, 20), (0, 1)], 130, 1)
    (30, 100)
    """
    threshold = 0
    if isinstance(step, (list, tuple)):  # faster than their union, in every step of a walk
        threshold, count = next((above, drop) for above, drop in _falling(step) if size > above)
    elif isinstance(step, float):
        count = int(step * size)
    else:
        count = step
    return min(max(1, count), size - max(least, threshold)), threshold


def _falling(tiers: Tiers) -> list[tuple[int, int]]:
    """Tiers from the highest threshold down, the last one reaching to the end."""
    ordered = sorted(tiers, reverse=True)
    return ordered if ordered[-1][0] == 0 else [*ordered, (0, 1)]

"""Recursive elimination: drop the least important, train again, repeat."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import Array, Subset, is_int, lowest, snapped
from tamis.contract import BackwardCriterion, Record, Scores, Search, Step, Trace
from tamis.contract.choice import SizeLike
from tamis.contract.criterion import Criterion
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter
from tamis.search.greedy import from_full, least

Tiers: TypeAlias = "Sequence[tuple[int, int]]"


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
        super().__init__(
            criterion,
            n_features_to_select=n_features_to_select,
            standardize=standardize,
            feature_groups=feature_groups,
            fixed_features=fixed_features,
        )
        self.step = step
        self.retune = retune

    def _check(self) -> None:
        super()._check()
        check_step(self.step)
        check_retune(self.retune, self.step)

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


def check_step(step: Any) -> None:
    """Refuse a step that is no number, fraction or list of tiers."""
    if isinstance(step, list | tuple):
        good = len(step) > 0 and all(
            isinstance(tier, list | tuple)
            and len(tier) == 2
            and all(map(is_int, tier))
            and tier[0] >= 0
            and tier[1] >= 1
            for tier in step
        )
    elif isinstance(step, float):
        good = 0 < step < 1
    else:
        good = is_int(step) and step >= 1
    if not good:
        raise InvalidParameter(
            "RecursiveElimination needs step as an int >= 1, a fraction in (0, 1) or tiers such "
            f"as [(100, 100), (20, 20), (0, 1)], not {step!r}."
        )


def check_retune(retune: Any, step: Any) -> None:
    """Refuse a retune that is no number of rounds, fraction or "tier"."""
    if retune == "tier" and isinstance(step, list | tuple):
        return
    if isinstance(retune, float):
        good = 0 < retune < 1
    else:
        good = retune is None or (is_int(retune) and retune >= 1)
    if not good:
        raise InvalidParameter(
            "RecursiveElimination needs retune as a number of rounds, a fraction in (0, 1), 'tier' "
            f"(with step given as tiers) or None, not {retune!r}."
        )

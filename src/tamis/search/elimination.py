"""Recursive feature elimination."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from tamis._arrays import Array, Subset, lowest, snapped
from tamis._checks import NONE, Constraint, Constraints, integer, one_of, several
from tamis.contract import BackwardCriterion, Record, Scores, Search, Step, Trace
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


@dataclass(eq=False, repr=False, kw_only=True)
class RecursiveElimination(Search):
    """Recursive feature elimination (RFE): each step drops the features with the smallest loss.

    The remaining features are scored again after each step.

    Parameters
    ----------
    criterion : BackwardCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    step : int, float or list of (above, drop), default=1
        Number of features to drop per step: a count, a fraction of the features left, or tiers.
        ``[(100, 100), (20, 20), (0, 1)]`` drops 100 per step while more than 100 are left, then 20
        while more than 20 are left, then 1. A step never goes below the threshold of its tier or
        the requested size. With 530 features, the sizes are 530, 430, 330, 230, 130, 100, 80, 60,
        40, 20, 19, ...
    retune : int, float, "tier" or None, default=None
        When the criterion tunes its hyper-parameters. An int n means every n steps. A float means
        whenever this fraction of the features has been dropped since the last tuning. ``"tier"``
        means at the start of each tier. None means never.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

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

    step: "int | float | Tiers" = 1
    retune: int | float | str | None = None

    def _check(self) -> None:
        super()._check()
        if self.retune == "tier" and not isinstance(self.step, list | tuple):
            raise InvalidParameter(
                "RecursiveElimination(retune='tier') needs tiers, but "
                f"step={self.step!r} has none. Write step=[(100, 100), (20, 20), (0, 1)], or "
                "retune as a number of steps."
            )

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        size = least(criterion, size)
        step: Standing = done[-1] if len(done) else from_full(criterion, n_units)
        if isinstance(step, Step):
            yield step
        tuning = self._replay(done)
        while len(step.subset) > size:
            tuning, due = self._tuning(tuning, len(step.subset))
            params = dict(criterion.criterion.tune(step.subset)) if due else {}
            drop, _ = drop_count(self.step, len(step.subset), size)
            # tuning changes all values, so the previous value cannot be updated
            value = np.nan if params else step.value
            step = _drop_worst(criterion, step.subset, value, drop)._replace(params=params)
            yield step

    def _tuning(self, tuning: "Tuning", size: int) -> "tuple[Tuning, bool]":
        """Return the updated tuning state, and whether the criterion is tuned in this step."""
        if self.retune is None:
            return tuning, False
        _, tier = drop_count(self.step, size, 0)
        if self.retune == "tier":
            due = tier != tuning.tier
        elif isinstance(self.retune, float):
            due = tuning.size is None or size <= (1 - self.retune) * tuning.size
        else:
            due = tuning.n_steps % int(self.retune) == 0
        last = (size, tier) if due else (tuning.size, tuning.tier)
        return Tuning(tuning.n_steps + 1, *last), due

    def _replay(self, done: Trace) -> "Tuning":
        """Return the tuning state after the steps of the trace ``done``."""
        tuning = Tuning()
        for size in done.sizes[:-1]:
            tuning, _ = self._tuning(tuning, int(size))
        return tuning

    def _n_common(self, done: Record, size: int | None) -> int:
        """Return the number of recorded steps that a search for the new size would repeat.

        The last step is not included if it dropped fewer features to stop at the old size.
        """
        sizes, last = done.trace.sizes, size or max(1, len(done.grouping.fixed))
        for k in range(1, len(sizes)):
            drop, _ = drop_count(self.step, int(sizes[k - 1]), last)
            if sizes[k - 1] - drop != sizes[k]:
                return k if sizes[k - 1] > last else len(sizes)
        return len(sizes)


class Tuning(NamedTuple):
    """Number of steps so far, and the size and tier at the last tuning (None before the first)."""

    n_steps: int = 0
    size: int | None = None
    tier: int | None = None


def _drop_worst(criterion: Counted, subset: Subset, value: float, drop: int) -> Step:
    """Return the step that removes the ``drop`` members with the smallest loss.

    Among tied members, those whose removal has the best tie-breaking score are removed. If these
    are tied too, those with the highest index are removed.
    """
    losses, noise = criterion.loss(subset), criterion.noise(value)
    by = criterion.merits(losses, subset)
    if len(criterion.fixed):  # skipped for speed if no unit is fixed
        by = np.where(np.isin(subset, criterion.fixed), np.inf, by)
    leaving, n_equal = lowest(by, drop, noise)
    if by is not losses:
        cut = np.where(np.isin(subset, criterion.fixed), np.nan, snapped(losses, noise))
        n_equal = int(np.count_nonzero(cut == cut[leaving[-1]]))
    if criterion.has_opinion and n_equal > 1:
        leaving = _by_opinion(criterion, subset, snapped(by, noise), leaving)
    rest = _without(subset, leaving)
    # a single loss determines the new value; after several removals it must be computed again
    value = float(value) - float(losses[leaving[0]]) if drop == 1 else np.nan
    return Step(
        rest,
        criterion.value(rest) if isnan(value) else value,
        Scores(subset, losses, criterion.errors(subset), n_equal),
    )


def _by_opinion(criterion: Counted, subset: Subset, cut: Array, leaving: Subset) -> Subset:
    """Return the members to remove. Ties with the last one are broken by the tie-breaking score."""
    edge = np.flatnonzero(cut == cut[leaving[-1]])
    below = leaving[cut[leaving] < cut[leaving[-1]]]
    if len(edge) + len(below) == len(leaving):
        return leaving
    best = np.lexsort((-edge, -criterion.opinions(subset, subset[edge])))
    return np.append(below, edge[best[: len(leaving) - len(below)]])


def _without(subset: Subset, leaving: Subset) -> Subset:
    """Return the members that stay. For a single leaving member, this is faster than np.delete."""
    if len(leaving) == 1:
        return np.concatenate((subset[: leaving[0]], subset[leaving[0] + 1 :]))
    return np.delete(subset, leaving)


def drop_count(step: Any, size: int, least: int) -> tuple[int, int]:
    """Return the number of features to drop from ``size``, and the threshold of the current tier.

    >>> drop_count([(100, 100), (20, 20), (0, 1)], 130, 1)
    (30, 100)
    """
    threshold = 0
    if isinstance(step, (list, tuple)):  # faster than isinstance with a union
        threshold, count = next((above, drop) for above, drop in _falling(step) if size > above)
    elif isinstance(step, float):
        count = int(step * size)
    else:
        count = step
    return min(max(1, count), size - max(least, threshold)), threshold


def _falling(tiers: Tiers) -> list[tuple[int, int]]:
    """Sort the tiers by descending threshold, and add a tier with the threshold 0 if needed."""
    ordered = sorted(tiers, reverse=True)
    return ordered if ordered[-1][0] == 0 else [*ordered, (0, 1)]

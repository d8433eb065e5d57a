"""Recursive elimination: drop the least important, train again, repeat."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from tamis._arrays import Subset, is_int, snapped
from tamis.contract import BackwardCriterion
from tamis.exceptions import InvalidParameter
from tamis.search.base import Judge, Search, Size
from tamis.search.greedy import from_full
from tamis.trace import Step, Trace

Tiers: TypeAlias = "Sequence[tuple[int, int]]"


class RecursiveElimination(Search):
    """Drop the features whose removal costs least, price the rest anew, repeat (RFE).

    Parameters
    ----------
    criterion : BackwardCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    step : int, float or list of (above, drop), default=1
        How many features leave at a time: a number, a fraction of those left, or tiers:
        ``[(100, 100), (20, 20), (0, 1)]`` drops 100 while more than 100 are left, then 20 while
        more than 20 are left, then 1. A step never passes its tier's threshold nor the target:
        530, 430, 330, 230, 130, 100, 80, 60, 40, 20, 19, ...
    retune : int, float, "tier" or None, default=None
        When the criterion chooses its hyper-parameters anew: every so many rounds, whenever that
        fraction of the features has left since, or at the start of each tier.
    standardize : bool, default=True

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

    def __init__(
        self,
        criterion: BackwardCriterion,
        *,
        n_features_to_select: Size = 0.5,
        step: "int | float | Tiers" = 1,
        retune: int | float | str | None = None,
        standardize: bool = True,
    ):
        super().__init__(
            criterion, n_features_to_select=n_features_to_select, standardize=standardize
        )
        self.step = step
        self.retune = retune

    def _check(self) -> None:
        super()._check()
        check_step(self.step)
        check_retune(self.retune, self.step)

    def _walk(
        self, criterion: Judge, n_units: int, target: int | None, done: Trace
    ) -> Iterator[Step]:
        target = target or 1
        if len(done):
            step = done[-1]
        else:
            yield (step := from_full(criterion, n_units))
        clock = dict(step.state) or {"rounds": 0, "tuned_at": None, "tier": None}
        while len(step.subset) > target:
            params = self._tuned(criterion, step.subset, clock)
            drop, _ = drop_count(self.step, len(step.subset), target)
            # a new tuning changes all values: the one before says nothing of the one after
            step = _without_worst(criterion, step._replace(value=np.nan) if params else step, drop)
            clock["rounds"] += 1
            yield (step := step._replace(params=params, state=dict(clock)))

    def _tuned(self, criterion: Judge, subset: Subset, clock: dict[str, Any]) -> dict[str, Any]:
        """Parameters chosen for this round, empty where it is not yet time."""
        size = len(subset)
        _, tier = drop_count(self.step, size, 0)
        if self.retune is None:
            due = False
        elif self.retune == "tier":
            due = tier != clock["tier"]
        elif isinstance(self.retune, float):
            due = clock["tuned_at"] is None or size <= (1 - self.retune) * clock["tuned_at"]
        else:
            due = clock["rounds"] % self.retune == 0
        if not due:
            return {}
        clock.update(tuned_at=size, tier=tier)
        return dict(criterion.criterion.tune(subset))


def _without_worst(criterion: Judge, step: Step, drop: int) -> Step:
    """The step that removes the ``drop`` members of least loss; of equals the highest index."""
    losses, errors = criterion.loss(step.subset), criterion.errors(step.subset)
    positions = np.arange(len(losses))
    shunned = criterion.shunning(losses, step.subset)
    rising = np.lexsort((-positions, snapped(shunned, criterion.noise(step.value))))
    leaving, staying = rising[:drop], np.sort(rising[drop:])
    kept = step.subset[staying]
    # with one feature the new value follows from the price, otherwise it must be asked for
    value = float(step.value) - float(losses[leaving[0]]) if drop == 1 else np.nan
    value = criterion.value(kept) if np.isnan(value) else value
    weighed = np.r_[leaving, staying]
    return Step(
        kept,
        value,
        moved=step.subset[leaving],
        prices=losses[weighed],
        errors=errors[weighed] if len(errors) else errors,
    )


def drop_count(step: Any, size: int, target: int) -> tuple[int, int]:
    """How many of ``size`` features leave next, and the threshold of the tier in force.

    >>> drop_count([(100, 100), (20, 20), (0, 1)], 130, 1)
    (30, 100)
    """
    threshold = 0
    if isinstance(step, list | tuple):
        threshold, count = next((above, drop) for above, drop in _falling(step) if size > above)
    elif isinstance(step, float):
        count = int(step * size)
    else:
        count = step
    return min(max(1, count), size - max(target, threshold)), threshold


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

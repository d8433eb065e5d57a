"""From the scores of a step to the best candidates, what moved in order, and who was equal."""

import numpy as np

from tamis._arrays import Array, Mask, Subset, snapped
from tamis.contract.steps import BEST, Scores

_UNKNOWN: Array = np.array([np.nan])


def best_first_moved(moved: Subset, scores: Scores, adding: bool) -> Subset:
    """Units that moved in the order of their scores: of equals the lowest index enters first."""
    found = snapped(looked_up(moved, scores.units, scores.values))
    return moved[np.lexsort((moved, -found) if adding else (-moved, found))]


class Candidates:
    """The best candidates of one step after the other.

    From one step to the next scores change little: what is no worse than the 200th of an earlier
    step holds the best 100 of this one, mostly, and these are found among few. Which they are does
    not depend on that: those of best score, of equals the first.
    """

    def __init__(self) -> None:
        #: How far to look where units are added, and where they are taken away.
        self._reach = {True: -np.inf, False: -np.inf}

    def best(self, scores: Scores, moved: Subset, score: Array, *, adding: bool) -> Scores:
        """The best :data:`BEST` of a step and those that moved, in the order of the step."""
        if len(scores.units) <= BEST:
            return scores
        rank = -scores.values if adding else scores.values
        wanted, edge = self._first(rank, adding)
        if not _all_below(-score if adding else score, edge):
            inside = _among(scores.units, moved)
            inside[wanted] = True
            wanted = inside.nonzero()[0]
        return Scores(scores.units[wanted], scores.values[wanted])

    def _first(self, rank: Array, adding: bool) -> tuple[Subset, float]:
        """Positions of the :data:`BEST` lowest, and the last of them."""
        near: Subset = (rank <= self._reach[adding]).nonzero()[0]
        if not BEST <= len(near) <= 4 * BEST:
            near, far = np.arange(len(rank)), min(2 * BEST, len(rank)) - 1
            self._reach[adding] = np.partition(rank, far)[far]
        among = rank[near]
        edge = np.partition(among, BEST - 1)[BEST - 1]
        kept = near[among <= edge]
        if len(kept) != BEST:  # equals at the edge, or nan, which comes last
            kept = near[among.argsort(kind="stable")[:BEST]]
        return kept, edge


def in_order(scores: Scores, *, adding: bool) -> Scores:
    """Scores, the best first; of equals the first."""
    order = (-scores.values if adding else scores.values).argsort(kind="stable")
    return scores._replace(units=scores.units[order], values=scores.values[order])


def count_equal(scores: Scores, moved: Subset, *, adding: bool) -> int:
    """How many units scored as the last one that moved did."""
    if scores.n_equal or not len(moved) or not len(scores.units):
        return scores.n_equal
    cut = snapped(-scores.values if adding else scores.values)
    last = cut[_among(scores.units, moved)]
    return int((cut == last.max()).sum()) if len(last) else 0


def _all_below(score: Array, edge: float) -> bool:
    """Whether all scores are lower; mostly it is one."""
    return bool(score[0] < edge if len(score) == 1 else (score < edge).all())


def _among(units: Subset, moved: Subset) -> Mask:
    """Which units moved; mostly one did, which is found faster."""
    found: Mask = units == moved[0] if len(moved) == 1 else np.isin(units, moved)
    return found


def equal_from_here_on(score: Array) -> Subset:
    """For each of falling scores how many equal it, itself and what comes behind it counted."""
    cut = snapped(score)
    fresh = np.append(np.flatnonzero(cut[1:] != cut[:-1]) + 1, len(cut))
    ends: Subset = fresh[np.searchsorted(fresh, np.arange(len(cut)), side="right")]
    return ends - np.arange(len(cut))


def looked_up(wanted: Subset, units: Subset, values: Array) -> Array:
    """For each wanted unit its value, nan where it has none."""
    if not len(values) or not len(wanted):
        return _UNKNOWN.repeat(len(wanted))
    if np.array_equal(units, np.arange(len(units))):  # every unit was scored
        found: Array = values[wanted]
        return found
    order = np.argsort(units, kind="stable")
    index = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    nearest = order[index]
    return np.where(units[nearest] == wanted, values[nearest], np.nan)

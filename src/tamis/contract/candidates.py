"""Sorting of candidates: the best ones of a step, the order of the units that moved, and ties."""

import numpy as np

from tamis._arrays import Array, Mask, Subset, snapped
from tamis.contract.steps import BEST, Scores

_UNKNOWN: Array = np.array([np.nan])


def best_first_moved(moved: Subset, scores: Scores, adding: bool) -> Subset:
    """Sort the units that moved at a step by their scores. Tied units are sorted by index."""
    found = snapped(look_up(moved, scores.units, scores.values))
    return moved[np.lexsort((moved, -found) if adding else (-moved, found))]


class Candidates:
    """Finds the best candidates of each step of a search.

    Sorting all units in every step would be slow. Scores change little from step to step, so the
    score of the 200th-best unit of an earlier step is used as a limit: only units that reach it are
    sorted. If fewer than 100 or more than 400 units reach the limit, all units are compared and a
    new limit is set. So the limit never changes the result.
    """

    def __init__(self) -> None:
        #: Score of the 200th-best unit in an earlier step, with the sign changed for additions so
        #: that lower is better. The key is True for additions and False for removals.
        self._reach = {True: -np.inf, False: -np.inf}

    def best(self, scores: Scores, moved: Subset, score: Array, *, adding: bool) -> Scores:
        """Return the scores of the best :data:`BEST` units of a step and of the units that moved.

        The units keep the order that they have in ``scores``. ``score`` holds the scores of the
        moved units.
        """
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
        """Return the positions of the :data:`BEST` lowest values, and the largest of them."""
        near: Subset = (rank <= self._reach[adding]).nonzero()[0]
        if not BEST <= len(near) <= 4 * BEST:
            near, far = np.arange(len(rank)), min(2 * BEST, len(rank)) - 1
            self._reach[adding] = np.partition(rank, far)[far]
        among = rank[near]
        edge = np.partition(among, BEST - 1)[BEST - 1]
        best = near[among <= edge]
        if len(best) != BEST:  # there are ties at the edge, or NaN values, which are sorted last
            best = near[among.argsort(kind="stable")[:BEST]]
        return best, edge


def in_order(scores: Scores, *, adding: bool) -> Scores:
    """Return the scores sorted from best to worst. Tied units keep their order."""
    order = (-scores.values if adding else scores.values).argsort(kind="stable")
    return scores._replace(units=scores.units[order], values=scores.values[order])


def count_equal(scores: Scores, moved: Subset, *, adding: bool) -> int:
    """Count the units that are tied with the last unit that moved, including that unit."""
    if scores.n_equal or not len(moved) or not len(scores.units):
        return scores.n_equal
    cut = snapped(-scores.values if adding else scores.values)
    last = cut[_among(scores.units, moved)]
    return int((cut == last.max()).sum()) if len(last) else 0


def _all_below(score: Array, edge: float) -> bool:
    """Whether all scores are below ``edge``. A single score is checked without array operations."""
    return bool(score[0] < edge if len(score) == 1 else (score < edge).all())


def _among(units: Subset, moved: Subset) -> Mask:
    """Return a mask of the units that moved. A single moved unit takes a faster path."""
    found: Mask = units == moved[0] if len(moved) == 1 else np.isin(units, moved)
    return found


def count_following_ties(score: Array) -> Subset:
    """Count, for each score in a descending list, itself and the equal scores that follow it."""
    cut = snapped(score)
    fresh = np.append(np.flatnonzero(cut[1:] != cut[:-1]) + 1, len(cut))
    ends: Subset = fresh[np.searchsorted(fresh, np.arange(len(cut)), side="right")]
    return ends - np.arange(len(cut))


def look_up(wanted: Subset, units: Subset, values: Array) -> Array:
    """Return the value of each wanted unit, or NaN for a unit that is not in ``units``."""
    if not len(values) or not len(wanted):
        return _UNKNOWN.repeat(len(wanted))
    if np.array_equal(units, np.arange(len(units))):  # every unit was scored
        found: Array = values[wanted]
        return found
    order = np.argsort(units, kind="stable")
    index = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    nearest = order[index]
    return np.where(units[nearest] == wanted, values[nearest], np.nan)

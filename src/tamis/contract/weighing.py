"""From the scores of a step to the best candidates, what moved in order, and who was equal."""

import numpy as np

from tamis._arrays import Array, Mask, Subset, snapped
from tamis.contract.steps import BEST, Scores
from tamis.exceptions import InvalidStep


def checked(scores: Scores) -> Scores:
    """Scores, one for each unit."""
    if len(scores.units) != len(scores.values):
        raise InvalidStep(
            f"has {len(scores.values)} scores for {len(scores.units)} units that it scored"
        )
    return scores


def best_first_moved(moved: Subset, scores: Scores, adding: bool) -> Subset:
    """Units that moved in the order of their scores: of equals the lowest index enters first."""
    if len(moved) < 2:
        return moved
    found = snapped(looked_up(moved, scores.units, scores.values))
    return moved[np.lexsort((moved, -found) if adding else (-moved, found))]


def weighed(scores: Scores, moved: Subset, *, adding: bool) -> tuple[Scores, int]:
    """The best candidates of a step, the best first, and how many equal the last that moved."""
    if not len(scores.units):
        return scores, scores.n_equal
    worth = scores.values if adding else -scores.values
    n_kept = min(BEST, len(worth))
    if len(worth) > BEST:
        wanted = _among(scores.units, moved)
        wanted[np.argpartition(-worth, BEST - 1)[:BEST]] = True
        head = np.flatnonzero(wanted)
    else:
        head = np.arange(n_kept)
    head = head[np.argsort(-worth[head], kind="stable")]
    best = Scores(scores.units[head], scores.values[head])
    if scores.n_equal or not len(moved):
        return best, scores.n_equal
    cut = snapped(worth)
    last = cut[_among(scores.units, moved)]
    return best, int((cut == last.min()).sum()) if len(last) else 0


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
        return np.full(len(wanted), np.nan)
    if np.array_equal(units, np.arange(len(units))):  # every unit was scored
        found: Array = values[wanted]
        return found
    order = np.argsort(units, kind="stable")
    index = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    nearest = order[index]
    return np.where(units[nearest] == wanted, values[nearest], np.nan)

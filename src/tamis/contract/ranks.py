"""Scores, order and ranks of all units, computed from the moves of a trace."""

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.contract.trace import Moves, Trace

NEVER = np.inf


def scores_of(trace: Trace) -> Array:
    """Return the score of each unit at its last move.

    A unit that never moved has the last score that was computed for it.
    """
    moved = _last_moves(trace)
    return np.where(np.isnan(moved), trace.given, moved)


def order_of(trace: Trace, chosen: int) -> tuple[Subset, Subset]:
    """Return all units, best first, and their ranks.

    Selected units come first:

    * If the search only adds units, they are in order of entry, so the first k units are the subset
      of size k.
    * Otherwise units that were never removed come before units that were removed after the chosen
      step. The last removed unit is the first of the removed units.

    The units that are not selected follow in three groups: units added after the chosen step, in
    order of entry; removed units, the last removed first; and units that never moved.
    """
    kept, moves = trace.mask(chosen), trace.moves()
    left_before, left_after, entered_after = _times(trace, moves, chosen)
    stayed = -left_after
    if moves.entered.all():
        stayed = np.where(trace.start, -1.0, NEVER)
        stayed[moves.unit] = moves.step
    group = np.select([kept, entered_after < NEVER, left_before > -NEVER], [0, 1, 2], default=3)
    time = np.select(
        [group == 0, group == 1, group == 2], [stayed, entered_after, -left_before], default=0
    )
    score = _standing(trace)
    falling = np.where(np.isnan(score), NEVER, -score)
    order = np.lexsort((np.arange(trace.n_units), falling, time, group))
    # dense ranks of the pairs (group, time); all selected units share rank 1
    rank_time = np.where(group == 0, 0, time)
    rising = np.lexsort((rank_time, group))
    fresh = (np.diff(group[rising]) != 0) | (np.diff(rank_time[rising]) != 0)
    ranks = np.empty(trace.n_units, dtype=np.intp)
    ranks[rising] = np.append(1, 1 + np.cumsum(fresh))
    return order, ranks


def _last_moves(trace: Trace) -> Array:
    """Return the score of each unit at its last scored move, or NaN if there is none."""
    moves, found = trace.moves(), np.full(trace.n_units, np.nan)
    scored = ~np.isnan(moves.score)
    # the last move of a unit overwrites earlier ones
    found[moves.unit[scored]] = moves.score[scored]
    return found


def _standing(trace: Trace) -> Array:
    """Return the score of each unit at its last move.

    The last step may have scored units of the last subset that did not move. They get the score of
    that step instead.
    """
    found, last = _last_moves(trace), len(trace) - 1
    standing = (trace.given_at == last) & trace.mask(last)
    standing[trace[last].moved] = False
    found[standing] = trace.given[standing]
    return found


def _times(trace: Trace, moves: Moves, chosen: int) -> tuple[Array, Array, Array]:
    """Return three arrays with a step for each unit, relative to the chosen step.

    They are the unit's last removal up to the chosen step, its last removal after that step, and
    its first addition after that step. A value of plus or minus infinity means that there is no
    such step.
    """
    left_before = np.full(trace.n_units, -NEVER)
    left_after = np.full(trace.n_units, NEVER)
    entered_after = np.full(trace.n_units, NEVER)
    early, entered = moves.step <= chosen, moves.entered
    for times, which in (
        (left_before, early & ~entered),
        (left_after, ~early & ~entered),
    ):
        times[moves.unit[which]] = moves.step[which]
    # reversed, so that the first addition overwrites later ones
    later = np.flatnonzero(~early & entered)[::-1]
    entered_after[moves.unit[later]] = moves.step[later]
    # a unit that was added back is not treated as removed
    final: Mask = trace.mask(len(trace) - 1)
    left_after[final] = NEVER
    return left_before, left_after, entered_after

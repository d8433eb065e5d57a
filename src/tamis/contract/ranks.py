"""From moves to the standing of every unit: scores, order, ranks."""

import numpy as np

from tamis._arrays import Array, Mask, Subset
from tamis.contract.trace import Moves, Trace

NEVER = np.inf


def scores_of(trace: Trace) -> Array:
    """For each unit the score of its last move; of one that never moved, the last it was given."""
    moved = _last_moves(trace)
    return np.where(np.isnan(moved), trace.given, moved)


def order_of(trace: Trace, chosen: int) -> tuple[Subset, Subset]:
    """All units best first, and their ranks.

    In a walk that only adds, kept units stand in the order of entry, so that the first k are the
    subset of size k. In others, those that left later in the walk stand in the reverse order of
    leaving behind those that never did. Of the rest, those that entered after the chosen step come
    first, in that order.
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
    # dense ranks of (group, time), all kept sharing rank 1
    rank_time = np.where(group == 0, 0, time)
    rising = np.lexsort((rank_time, group))
    fresh = (np.diff(group[rising]) != 0) | (np.diff(rank_time[rising]) != 0)
    ranks = np.empty(trace.n_units, dtype=np.intp)
    ranks[rising] = np.append(1, 1 + np.cumsum(fresh))
    return order, ranks


def _last_moves(trace: Trace) -> Array:
    """For each unit the score of its last move, nan where it has none."""
    moves, found = trace.moves(), np.full(trace.n_units, np.nan)
    scored = ~np.isnan(moves.score)
    found[moves.unit[scored]] = moves.score[scored]  # of several the last
    return found


def _standing(trace: Trace) -> Array:
    """The score of its last move, or what the last step found of a unit that it left in place."""
    found, last = _last_moves(trace), len(trace) - 1
    standing = (trace.given_at == last) & trace.mask(last)
    standing[trace[last].moved] = False
    found[standing] = trace.given[standing]
    return found


def _times(trace: Trace, moves: Moves, chosen: int) -> tuple[Array, Array, Array]:
    """Step at which each unit last left up to, last left after, and first entered after, chosen."""
    left_before = np.full(trace.n_units, -NEVER)
    left_after = np.full(trace.n_units, NEVER)
    entered_after = np.full(trace.n_units, NEVER)
    early, entered = moves.step <= chosen, moves.entered
    for times, which in (
        (left_before, early & ~entered),
        (left_after, ~early & ~entered),
    ):
        times[moves.unit[which]] = moves.step[which]
    later = np.flatnonzero(~early & entered)[::-1]  # of several the first
    entered_after[moves.unit[later]] = moves.step[later]
    # a unit that came back after leaving has not left in the end
    final: Mask = trace.mask(len(trace) - 1)
    left_after[final] = NEVER
    return left_before, left_after, entered_after

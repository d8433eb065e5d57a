"""The vote of one machine for each pair of classes along paths: which points are right when."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.steps import Crossings, Lines, StepCounts, class_weights, crossings
from tamis.svm.votes import vote_counts


class Ballot(NamedTuple):
    """Values of the machine between two classes; ``second`` wins where they are not negative."""

    first: int
    second: int
    lines: Lines
    bounds: Sequence[Array] | None = None  # how far the values may be wrong


def vote_steps(
    votes: Sequence[Ballot],
    target: NDArray[np.int64],
    n_classes: int,
    way: int = 0,
    weight: Array | None = None,
) -> StepCounts:
    """Correct predictions of the one-vs-one vote (ties to the lowest class).

    With ``way`` = 1 (-1) a point is counted right (wrong) wherever the votes on it that are not
    certain can make it so.
    """
    found = [crossings(v.lines) for v in votes]
    tally = _Tally(votes, found, target, n_classes)
    doubts = _doubts(votes) if way else []
    events = [(f, p, False) for p, f in enumerate(found)] + doubts
    lam = np.concatenate([f.lam for f, _, _ in events])
    source = np.repeat(np.arange(len(events)), [len(f.lam) for f, _, _ in events])
    within = np.concatenate([np.arange(len(f.lam)) for f, _, _ in events])
    for f, pair, _ in doubts:
        for i in np.flatnonzero(f.first):
            tally.doubt[i].add(pair)
    now = np.array([tally.judge(i, way) for i in range(len(target))])
    weight, total = class_weights(weight, target, n_classes)
    first = np.bincount(target, now * weight, n_classes).astype(np.float64)
    order = np.argsort(-lam, kind="stable")
    change, change_at = np.zeros((len(lam), n_classes)), np.zeros((len(lam), n_classes))
    for e, k in enumerate(order):
        f, pair, is_doubt = events[source[k]]
        i, plus = f.point[within[k]], f.plus[within[k]]
        if is_doubt:
            (tally.doubt[i].add if plus else tally.doubt[i].discard)(pair)
        else:
            tally.flip(pair, i, plus)
        new = tally.judge(i, way)
        change[e, target[i]] = (float(new) - float(now[i])) * weight[i]
        change_at[e] = change[e] * plus
        now[i] = new
    ends = float(votes[0].lines[0][0][0]), max(float(v.lines[-1][0][-1]) for v in votes)
    return StepCounts(first, lam[order], change, change_at, total, *ends)


class _Tally:
    """Which class won which vote, and which votes are in doubt."""

    def __init__(
        self,
        votes: Sequence[Ballot],
        found: Sequence[Crossings],
        target: NDArray[np.int64],
        n_classes: int,
    ) -> None:
        self.target, self.votes = target, votes
        self.plus = np.array([c.first for c in found])
        self.count = vote_counts(self.plus.T, n_classes)
        self.doubt: list[set[int]] = [set() for _ in target]

    def flip(self, pair: int, i: int, plus: bool) -> None:
        self.plus[pair, i] = plus
        step = 1 if plus else -1
        self.count[i, self.votes[pair].second] += step
        self.count[i, self.votes[pair].first] -= step

    def judge(self, i: int, way: int) -> bool:
        """Whether point ``i`` is right; with doubts whether it can (1) or must (-1) be right."""
        right = bool(self.count[i].argmax() == self.target[i])
        if not way or not self.doubt[i] or right == (way > 0):
            return right
        if len(self.doubt[i]) > 6:
            return way > 0
        outcomes = [right]
        for chosen in range(1, 2 ** len(self.doubt[i])):
            count = self.count[i].copy()
            for bit, pair in enumerate(sorted(self.doubt[i])):
                if chosen >> bit & 1:
                    step = -1 if self.plus[pair, i] else 1
                    count[self.votes[pair].second] += step
                    count[self.votes[pair].first] -= step
            outcomes.append(bool(count.argmax() == self.target[i]))
        return any(outcomes) if way > 0 else all(outcomes)


def _doubts(votes: Sequence[Ballot]) -> list[tuple[Crossings, int, bool]]:
    """For each pair where its vote becomes uncertain (plus) and certain again (minus)."""
    found = []
    for pair, vote in enumerate(votes):
        assert vote.bounds is not None
        margin = [
            (lam, bound - np.abs(value))
            for (lam, value), bound in zip(vote.lines, vote.bounds, strict=True)
        ]
        # |value| has a kink at its zero: a row there keeps every segment affine
        found.append((crossings(_with_zeros(vote, margin)), pair, True))
    return found


def _with_zeros(vote: Ballot, margin: list[tuple[Array, Array]]) -> Lines:
    """Insert the zeros of values as rows, where the margin of certainty is the bound itself."""
    out = []
    for (lam, value), (_, m), bound in zip(vote.lines, margin, vote.bounds or [], strict=True):
        row, point = np.nonzero((value[1:] >= 0) != (value[:-1] >= 0))
        if not len(row):
            out.append((lam, m))
            continue
        top, bottom = value[row, point], value[row + 1, point]
        t = top / (top - bottom)
        where = lam[row] + (lam[row + 1] - lam[row]) * t
        rows = (1 - t)[:, None] * value[row] + t[:, None] * value[row + 1]
        limit = np.maximum(bound[row], bound[row + 1])
        order = np.argsort(-np.concatenate([lam, where]), kind="stable")
        everything = np.concatenate([m, limit - np.abs(rows)])
        out.append((np.concatenate([lam, where])[order], everything[order]))
    return out

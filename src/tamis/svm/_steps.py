"""From outputs along paths to step functions: crossings, votes, order swaps, sums over folds."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tamis.svm.curve import ValidationCurve

Array = NDArray[np.float64]
Blocks = Sequence[tuple[Array, Array]]

MERGE = 1e-12  # crossings closer than this, relative to lambda, are one


class Steps(NamedTuple):
    """Numbers of correct predictions, one per class, as step functions of falling lambda."""

    first: Array  # (n_classes,) at the largest lambda
    lam: Array  # (n_events,) falling
    change: Array  # (n_events, n_classes) below the event
    change_at: Array  # (n_events, n_classes) on it
    total: Array  # (n_classes,)
    largest: float
    smallest: float


class Crossings(NamedTuple):
    """Where the label of each point changes: ``plus[0]`` at first, then the events."""

    first: NDArray[np.bool_]
    lam: Array
    point: NDArray[np.int64]
    plus: NDArray[np.bool_]


def crossings(blocks: Blocks, band: float) -> Crossings:
    """Changes of ``h >= -band`` along a path, in falling lambda.

    A label is + on the crossing itself, whichever way it goes (sign(0) = +1).
    """
    lams, points, news = [], [], []
    before = None
    for lam, h in blocks:
        plus = h >= -band
        if before is not None and (jump := np.flatnonzero(plus[0] != before)).size:
            lams.append(np.full(len(jump), lam[0]))
            points.append(jump)
            news.append(plus[0, jump])
        row, point = np.nonzero(plus[1:] != plus[:-1])
        if len(row):
            top, bottom = h[row, point] + band, h[row + 1, point] + band
            lams.append(lam[row] + (lam[row + 1] - lam[row]) * (top / (top - bottom)))
            points.append(point)
            news.append(plus[row + 1, point])
        before = plus[-1]
    first = blocks[0][1][0] >= -band
    if not lams:
        return Crossings(first, np.empty(0), np.empty(0, np.int64), np.empty(0, bool))
    lam, point, new = np.concatenate(lams), np.concatenate(points), np.concatenate(news)
    order = np.argsort(-lam, kind="stable")
    return Crossings(first, lam[order], point[order], new[order])


def label_steps(blocks: Blocks, target: NDArray[np.int64], band: float) -> Steps:
    """Correct predictions of two classes, ``target`` 0 or 1, from one path."""
    found = crossings(blocks, band)
    mine = target[found.point]
    gain = np.where(found.plus == (mine == 1), 1.0, -1.0)
    change = np.zeros((len(mine), 2))
    change[np.arange(len(mine)), mine] = gain
    right = found.first == (target == 1)
    return Steps(
        first=np.bincount(target, right, 2).astype(float),
        lam=found.lam,
        change=change,
        change_at=change * found.plus[:, None],
        total=np.bincount(target, minlength=2).astype(float),
        largest=float(blocks[0][0][0]),
        smallest=float(blocks[-1][0][-1]),
    )


class Vote(NamedTuple):
    """Outputs of the machine between two classes; ``second`` wins where h >= -band."""

    first: int
    second: int
    blocks: Blocks
    band: float
    bounds: Sequence[Array] | None = None  # how far h may be wrong


def vote_steps(
    votes: Sequence[Vote], target: NDArray[np.int64], n_classes: int, way: int = 0
) -> Steps:
    """Correct predictions of the one-vs-one vote (ties to the lowest class).

    With ``way`` = 1 (-1) a point is counted right (wrong) wherever the votes on it that are not
    certain can make it so.
    """
    found = [crossings(v.blocks, v.band) for v in votes]
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
    first = np.bincount(target, now, n_classes).astype(float)
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
        change[e, target[i]] = float(new) - float(now[i])
        change_at[e] = change[e] * plus
        now[i] = new
    total = np.bincount(target, minlength=n_classes).astype(float)
    blocks = votes[0].blocks
    ends = float(blocks[0][0][0]), max(float(v.blocks[-1][0][-1]) for v in votes)
    return Steps(first, lam[order], change, change_at, total, *ends)


class _Tally:
    """Who won which vote, and which votes are in doubt."""

    def __init__(
        self,
        votes: Sequence[Vote],
        found: Sequence[Crossings],
        target: NDArray[np.int64],
        n_classes: int,
    ) -> None:
        self.target, self.votes = target, votes
        self.plus = np.array([c.first for c in found])
        self.count = np.zeros((len(target), n_classes), np.int64)
        for vote, crossing in zip(votes, found, strict=True):
            winner = np.where(crossing.first, vote.second, vote.first)
            self.count[np.arange(len(target)), winner] += 1
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


def _doubts(votes: Sequence[Vote]) -> list[tuple[Crossings, int, bool]]:
    """For each pair where its vote becomes uncertain (plus) and certain again (minus)."""
    found = []
    for pair, vote in enumerate(votes):
        assert vote.bounds is not None
        margin = [
            (lam, bound - np.abs(h + vote.band))
            for (lam, h), bound in zip(vote.blocks, vote.bounds, strict=True)
        ]
        # |h| has a kink at its zero: a row there keeps every stretch affine
        found.append((crossings(_with_zeros(vote, margin), 0.0), pair, True))
    return found


def _with_zeros(vote: Vote, margin: list[tuple[Array, Array]]) -> Blocks:
    """Insert the zeros of h as rows, where the margin of certainty is the bound itself."""
    out = []
    for (lam, h), (_, m), bound in zip(vote.blocks, margin, vote.bounds or [], strict=True):
        shifted = h + vote.band
        row, point = np.nonzero((shifted[1:] >= 0) != (shifted[:-1] >= 0))
        if not len(row):
            out.append((lam, m))
            continue
        top, bottom = shifted[row, point], shifted[row + 1, point]
        t = top / (top - bottom)
        where = lam[row] + (lam[row + 1] - lam[row]) * t
        rows = (1 - t)[:, None] * shifted[row] + t[:, None] * shifted[row + 1]
        limit = np.maximum(bound[row], bound[row + 1])
        order = np.argsort(-np.concatenate([lam, where]), kind="stable")
        everything = np.concatenate([m, limit - np.abs(rows)])
        out.append((np.concatenate([lam, where])[order], everything[order]))
    return out


@njit(cache=True)
def _swaps(  # type: ignore[no-untyped-def]
    lam, h, positive, negative, band, state, out_lam, out_change
):
    """Order changes of all pairs of opposite classes over one block; state is 0, 1/2 or 1."""
    count = 0
    for row in range(h.shape[0]):
        for a in range(positive.shape[0]):
            top = h[row, positive[a]]
            for b in range(negative.shape[0]):
                d = top - h[row, negative[b]]
                new = 1.0 if d > band else (0.0 if d < -band else 0.5)
                old = state[a, b]
                if new == old:
                    continue
                state[a, b] = new
                if count < out_lam.shape[0]:
                    where = lam[row]
                    if row > 0 and new != 0.5 and old != 0.5:
                        before = h[row - 1, positive[a]] - h[row - 1, negative[b]]
                        where = lam[row - 1] + (lam[row] - lam[row - 1]) * before / (before - d)
                    out_lam[count] = where
                    out_change[count] = new - old
                count += 1
    return count


def order_steps(blocks: Blocks, target: NDArray[np.int64], band: float) -> Steps:
    """Pairs in the right order (ties count one half): the area under the ROC curve times pairs."""
    positive, negative = np.flatnonzero(target == 1), np.flatnonzero(target == 0)
    h0 = blocks[0][1][0]
    d = h0[positive][:, None] - h0[negative]
    state = np.where(d > band, 1.0, np.where(d < -band, 0.0, 0.5))
    first = state.sum()
    lams, changes = [], []
    for lam, h in blocks:
        size = 4096
        while True:
            trial = state.copy()
            out_lam, out_change = np.empty(size), np.empty(size)
            count = _swaps(lam, h, positive, negative, band, trial, out_lam, out_change)
            if count <= size:
                break
            size = count
        state = trial
        lams.append(out_lam[:count])
        changes.append(out_change[:count])
    lam, change = np.concatenate(lams), np.concatenate(changes)
    order = np.argsort(-lam, kind="stable")
    change = change[order, None]
    total = np.array([float(len(positive) * len(negative))])
    ends = float(blocks[0][0][0]), float(blocks[-1][0][-1])
    return Steps(np.array([first]), lam[order], change, change / 2, total, *ends)


def curve_of(
    folds: Sequence[Steps],
    score: Callable[[Array, Array], Array],
    greater_is_better: bool,
    pool: str,
) -> tuple[ValidationCurve, Array]:
    """The curve of the mean over folds (or of all samples pooled), and the folds' values."""
    largest = min(f.largest for f in folds)
    smallest = max(f.smallest for f in folds)
    cuts = _distinct(np.concatenate([f.lam for f in folds]), largest, smallest)
    inside, on = [], []
    for fold in folds:
        piece = np.searchsorted(-cuts, -fold.lam * (1 + 2 * MERGE))
        k, n = len(fold.first), len(cuts)
        change, change_at = np.zeros((n, k)), np.zeros((n, k))
        keep = piece < n
        np.add.at(change, piece[keep], fold.change[keep])
        np.add.at(change_at, piece[keep], fold.change_at[keep])
        below = fold.first + np.cumsum(change, axis=0)  # just below each cut
        inside.append(below.T)
        on.append((below - change + change_at).T)
    totals = [f.total[:, None] for f in folds]
    if pool == "samples":
        inside, on, totals = ([np.sum(a, axis=0)] for a in (inside, on, totals))
    piece_values = np.array([score(r[:, :-1], t) for r, t in zip(inside, totals, strict=True)])
    cut_values = np.array([score(r, t) for r, t in zip(on, totals, strict=True)])
    curve = ValidationCurve.steps(
        1.0 / cuts,
        piece_values.mean(axis=0),
        cut_values.mean(axis=0),
        greater_is_better,
    )
    return curve, piece_values


def _distinct(lam: Array, largest: float, smallest: float) -> Array:
    """Falling lambdas of all events, merged where they are closer than rounding, with the ends."""
    lam = np.sort(lam[(lam < largest * (1 - MERGE)) & (lam > smallest * (1 + MERGE))])[::-1]
    if len(lam):
        lam = lam[np.concatenate([[True], lam[1:] < lam[:-1] * (1 - MERGE)])]
    return np.concatenate([[largest], lam, [smallest]])

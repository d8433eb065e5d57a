"""Step functions of lambda: total weights of correct labels, correct votes and ordered pairs.

They are computed from the outputs of new points along the paths, and combined over the folds.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.compiled.events import swaps
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.machine import class_pairs, vote_counts

#: Decreasing lambdas, and values of shape (lambdas, points) that are affine between the lambdas.
Lines = tuple[Array, Array]

MERGE = 1e-12  # distance, relative to lambda, below which two crossings are merged
PAIRS = 50_000_000  # number of pairs compared by one compiled call, in about 0.1 seconds


class StepCounts(NamedTuple):
    """Total weight of the correct predictions in each class, as a step function of lambda.

    The steps are in order of decreasing lambda. An event is a value of lambda at which a
    prediction changes.
    """

    first: Array  # (n_classes,): weight of the correct predictions at the largest lambda
    lam: Array  # (n_events,): lambda of each event, decreasing
    change: Array  # (n_events, n_classes): weight just below the event minus weight just above it
    change_at: Array  # (n_events, n_classes): weight at the event minus weight just above it
    total: Array  # (n_classes,): weight of all samples
    largest: float  # largest lambda
    smallest: float  # smallest lambda


class Crossings(NamedTuple):
    """The label of each point at the largest lambda, and the events at which labels change."""

    first: Mask  # whether each point is positive at the largest lambda
    lam: Array  # lambda of each event, decreasing
    point: NDArray[np.int64]  # the point whose label changes
    plus: Mask  # whether the label becomes positive


def crossings(lam: Array, value: Array) -> Crossings:
    """Return the sign changes of values that are affine between rows of decreasing lambda.

    At a crossing itself, the value is 0 and its sign is treated as positive.
    """
    plus = value >= 0
    row, point = np.nonzero(plus[1:] != plus[:-1])
    top, bottom = value[row, point], value[row + 1, point]
    where = lam[row] + (lam[row + 1] - lam[row]) * (top / (top - bottom))
    order = np.argsort(-where, kind="stable")
    return Crossings(plus[0], where[order], point[order], plus[row + 1, point][order])


def exact_weights(weight: Array) -> Array:
    """Round weights to multiples of a small power of two, so that sums of them are exact.

    Weights are added up along the path. With rounding, the sum would depend on the order, and equal
    scores could differ.

    >>> w = exact_weights(np.array([0.1, 0.2, 0.3]))
    >>> (w[0] + w[1]) + w[2] == w[0] + (w[1] + w[2])
    np.True_
    """
    exponent = int(np.frexp(weight.sum())[1]) - 50
    return np.asarray(np.ldexp(np.round(np.ldexp(weight, -exponent)), exponent))


def class_weights(
    weight: Array | None, target: NDArray[np.int64], n_classes: int
) -> tuple[Array, Array]:
    """Return sample weights, rounded so that sums within a class are exact, and the class sums."""
    if weight is None:
        weight = np.ones(len(target))
    exact = np.empty(len(target))
    for c in range(n_classes):
        exact[target == c] = exact_weights(weight[target == c])
    return exact, np.bincount(target, exact, n_classes).astype(np.float64)


def label_steps(
    lam: Array, value: Array, target: NDArray[np.int64], weight: Array | None = None
) -> StepCounts:
    """Return the weight of correct predictions of two classes along a single path.

    The classes in ``target`` are 0 and 1. Class 1 is predicted if ``value`` is not negative.
    """
    found = crossings(lam, value)
    mine = target[found.point]
    weight, total = class_weights(weight, target, 2)
    gain = np.where(found.plus == (mine == 1), 1.0, -1.0) * weight[found.point]
    change = np.zeros((len(mine), 2))
    change[np.arange(len(mine)), mine] = gain
    right = found.first == (target == 1)
    return StepCounts(
        first=np.bincount(target, right * weight, 2).astype(np.float64),
        lam=found.lam,
        change=change,
        change_at=change * found.plus[:, None],
        total=total,
        largest=float(lam[0]),
        smallest=float(lam[-1]),
    )


def vote_steps(
    machines: Sequence[Lines],
    target: NDArray[np.int64],
    n_classes: int,
    weight: Array | None = None,
    way: int = 0,
    errors: Sequence[Array] = (),
) -> StepCounts:
    """Return the weight of correct predictions by one-vs-one vote. Ties go to the lowest class.

    Each pair of classes has an SVM, which votes for the second class if its value is not negative.
    A vote is uncertain if the absolute value is at most its error bound in ``errors``. With
    ``way=1``, a point is treated as correct if at least one outcome of its uncertain votes makes
    the prediction correct. With ``way=-1``, it is treated as correct only if every outcome of its
    uncertain votes makes the prediction correct.
    """
    found = [crossings(*lines) for lines in machines]
    found += [_uncertain(*lines, e) for lines, e in zip(machines, errors, strict=False)]
    lam, point, plus = (
        np.concatenate([getattr(e, name) for e in found]) for name in ("lam", "point", "plus")
    )
    order = np.argsort(-lam, kind="stable")
    source = np.repeat(np.arange(len(found)), [len(e.lam) for e in found])[order]
    lam, point, plus = lam[order], point[order], plus[order]
    weight, total = class_weights(weight, target, n_classes)
    first, change = np.zeros(n_classes), np.zeros((len(lam), n_classes))
    by_point = np.argsort(point, kind="stable")
    events = np.split(by_point, np.searchsorted(point[by_point], np.arange(1, len(target))))
    for i, (label, own) in enumerate(zip(target, events, strict=True)):
        states = np.tile([e.first[i] for e in found], (len(own) + 1, 1))
        for k, event in enumerate(own):
            states[k + 1 :, source[event]] = plus[event]
        right = _judge(states, label, n_classes, way) * weight[i]
        first[label] += right[0]
        change[own, label] = np.diff(right)
    ends = float(machines[0][0][0]), max(float(lam[-1]) for lam, _ in machines)
    return StepCounts(first, lam, change, change * plus[:, None], total, *ends)


def _judge(states: Mask, label: int, n_classes: int, way: int) -> Array:
    """Return 1 for each row of votes that predicts ``label``, and 0 for the others.

    The first half of the columns of ``states`` are the votes of the pairs of classes. The second
    half states whether each vote is uncertain. With ``way=1``, a row is treated as correct if at
    least one outcome of its uncertain votes is correct. With ``way=-1``, every outcome must be
    correct.
    """
    n_pairs = len(class_pairs(n_classes))
    votes, doubts = states[:, :n_pairs], states[:, n_pairs:]
    right = vote_counts(votes, n_classes).argmax(axis=1) == label
    for k in np.flatnonzero(doubts.any(axis=1) & (right != (way > 0))):
        doubt = np.flatnonzero(doubts[k])
        outcomes = np.array([way > 0])  # with more than 6 uncertain votes, assume any class may win
        if len(doubt) <= 6:
            second = np.tile(votes[k], (2 ** len(doubt), 1))
            second[:, doubt] = list(product([False, True], repeat=len(doubt)))
            outcomes = vote_counts(second, n_classes).argmax(axis=1) == label
        right[k] = outcomes.any() if way > 0 else outcomes.all()
    return right.astype(np.float64)


def _uncertain(lam: Array, value: Array, error: Array) -> Crossings:
    """Return the events at which a vote becomes uncertain (``plus``) or certain again.

    The absolute value has a kink at each zero of the value. A row is added at each zero, so that
    the absolute value is affine between all rows.
    """
    row, point = np.nonzero((value[1:] >= 0) != (value[:-1] >= 0))
    top, bottom = value[row, point], value[row + 1, point]
    t = top / (top - bottom)
    zeros = (1 - t)[:, None] * value[row] + t[:, None] * value[row + 1]
    where = np.concatenate([lam, lam[row] + (lam[row + 1] - lam[row]) * t])
    limit = np.concatenate([error, np.maximum(error[row], error[row + 1])])
    order = np.argsort(-where, kind="stable")
    margin = limit - np.abs(np.concatenate([value, zeros]))
    return crossings(where[order], margin[order])


class OrderPairs(NamedTuple):
    """Pairs of a positive and a negative point, with the product of their weights."""

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    weight: Array  # (n_positive, n_negative), with 0 for pairs of equal points
    tied: float  # total weight of the pairs of equal points, which are always tied

    @classmethod
    def of(cls, X: Array, target: NDArray[np.int64], weight: Array | None) -> "OrderPairs":
        """Return all pairs of a positive and a negative row of ``X``."""
        positive, negative = np.flatnonzero(target == 1), np.flatnonzero(target == 0)
        pairs = np.ones((len(positive), len(negative)))
        if weight is not None:
            pairs = exact_weights(np.multiply.outer(weight[positive], weight[negative]))
        number = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
        equal = number[positive][:, None] == number[negative]
        tied = float(pairs[equal].sum())
        pairs[equal] = 0.0
        return cls(positive, negative, pairs, tied)


def order_steps(lam: Array, h: Array, tie: Array, pairs: OrderPairs) -> StepCounts:
    """Return the weight of the correctly ordered pairs along a path.

    Tied pairs count with half their weight. Divided by the weight of all pairs, the result is the
    area under the ROC curve. Two points are tied if the difference between their outputs ``h`` is
    at most the sum of their tolerances ``tie``.
    """
    state = np.full(pairs.weight.shape, -1.0)
    swaps(lam[:1], h[:1], tie[:1], *pairs[:3], state, np.empty(0), np.empty(0))
    first = float((pairs.weight * state).sum()) + pairs.tied / 2
    where, change = _find_swaps(lam, h, tie, pairs, state)
    order = np.argsort(-where, kind="stable")
    change = change[order, None]
    total = np.array([float(pairs.weight.sum()) + pairs.tied])
    ends = float(lam[0]), float(lam[-1])
    return StepCounts(np.array([first]), where[order], change, change / 2, total, *ends)


def _find_swaps(
    lam: Array, h: Array, tie: Array, pairs: OrderPairs, state: Array
) -> tuple[Array, Array]:
    """Return each lambda at which the order of a pair changes, and the change of the weight there.

    The weight is the total weight of the correctly ordered pairs, as in :func:`order_steps`. The
    compiled loop processes a block of rows per call, so that it can be interrupted. Each block
    starts with the last row of the previous block.
    """
    height = max(1, PAIRS // max(1, state.size))
    lams, changes = [], []
    for begin in range(0, len(lam), height):
        part = slice(max(begin - 1, 0), begin + height)
        size = 4096
        while True:
            trial = state.copy()
            out_lam, out_change = np.empty(size), np.empty(size)
            count = swaps(lam[part], h[part], tie[part], *pairs[:3], trial, out_lam, out_change)
            if count <= size:
                break
            size = count
        state[:] = trial
        lams.append(out_lam[:count])
        changes.append(out_change[:count])
    return np.concatenate(lams), np.concatenate(changes)


def curve_of(
    folds: Sequence[StepCounts],
    score: Callable[[Array, Array], Array],
    greater_is_better: bool,
    pool: str,
) -> tuple[ValidationCurve, Array]:
    """Return the validation curve of several folds, and the value of each fold on each piece.

    With ``pool="samples"``, the score is computed from all samples together. Otherwise it is the
    mean of the folds' scores.
    """
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
        below = fold.first + np.cumsum(change, axis=0)  # weights just below each cut
        inside.append(below.T)
        on.append((below - change + change_at).T)
    totals = [f.total[:, None] for f in folds]
    if pool == "samples":
        inside, on, totals = ([np.sum(a, axis=0)] for a in (inside, on, totals))
    piece_values = np.array([score(r[:, :-1], t) for r, t in zip(inside, totals, strict=True)])
    cut_values = np.array([score(r, t) for r, t in zip(on, totals, strict=True)])
    curve = ValidationCurve.steps(
        1.0 / cuts, piece_values.mean(axis=0), cut_values.mean(axis=0), greater_is_better
    )
    return curve, piece_values


def _distinct(lam: Array, largest: float, smallest: float) -> Array:
    """Return the lambdas of all events and both ends, in decreasing order.

    Lambdas that are equal up to rounding are merged.
    """
    lam = np.sort(lam[(lam < largest * (1 - MERGE)) & (lam > smallest * (1 + MERGE))])[::-1]
    if len(lam):
        lam = lam[np.concatenate([[True], lam[1:] < lam[:-1] * (1 - MERGE)])]
    return np.concatenate([[largest], lam, [smallest]])

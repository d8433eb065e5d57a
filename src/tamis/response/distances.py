"""Distances between original and changed outputs, as statistics that add up over rows.

A statistic turns changes of outputs into sums over rows, and these sums into scores. The outputs of
all rows at all new values are therefore never stored together. The sums are over changes of
outputs, not over changed outputs. This avoids cancellation for columns with little effect. The code
works with arrays of any library.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tamis._arrays import Array
from tamis._namespace import move, namespace


class Statistic(ABC):
    """Distance between changed and original outputs."""

    #: Number of sums from which a score is computed.
    n_sums: int = 1
    #: Original outputs, of shape (rows, outputs).
    before: Array

    @abstractmethod
    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        """Return the terms of each sum, in an array shaped like ``change`` without its last axis.

        The last axis of ``change`` is for the outputs. A change of 0 must give terms of 0. ``rows``
        and ``units`` are indices whose shapes broadcast with a term.
        """

    @abstractmethod
    def scores(self, sums: Array) -> Array:
        """Return the score of each unit from its sums, of shape (n_sums, units)."""

    def next_pass(self, sums: Array) -> "Statistic | None":
        """Return the statistic of a second pass that uses these sums, or None if not needed."""
        return None

    def sums(self, rows: Any, change: Any, weights: Any, units: Any) -> Any:
        """Sum the terms of ``change`` (units, rows, points, outputs) over rows and points."""
        xp = namespace(change)
        terms = self.terms(rows[:, None], change, units[:, None, None])
        return xp.stack([xp.sum(xp.sum(term, axis=1) * weights, axis=1) for term in terms])

    def score(self, outputs: Array) -> float:
        """Return the score of changed outputs, given for all rows."""
        rows, change = np.arange(len(outputs)), (outputs - self.before)[None, :, None, :]
        sums = self.sums(rows, change, np.ones((1, 1)), np.zeros(1, dtype=np.intp))
        second = self.next_pass(sums)
        return float(self.scores(sums)[0]) if second is None else second.score(outputs)


@dataclass(eq=False, repr=False)
class AbsoluteChange(Statistic):
    """Sum of the absolute changes, divided by a constant."""

    before: Array
    divisor: float

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        xp = namespace(change)
        if change.shape[-1] == 1:
            return [xp.abs(change[..., 0])]
        return [xp.sum(xp.abs(change), axis=-1)]

    def scores(self, sums: Array) -> Array:
        return sums[0] / self.divisor


def total_variation(before: Array) -> AbsoluteChange:
    """Return a statistic: the mean total variation distance between class probabilities.

    A single output is the probability of the second of two classes.
    """
    return AbsoluteChange(before, len(before) * min(before.shape[1], 2))


def mean_change(before: Array) -> AbsoluteChange:
    """Return a statistic: the mean absolute change over rows and outputs."""
    return AbsoluteChange(before, before.size)


@dataclass(eq=False, repr=False)
class WeightedLoss(Statistic):
    """Increase of the weighted mean loss: sum_i w_i (loss_i after - loss_i before) over the rows i.

    ``loss`` is the "squared" or "absolute" error of the first output, or "linear". A linear loss is
    a weighted sum of the outputs of a row, and ``truth`` contains the weights.
    """

    before: Array
    truth: Array
    weights: Array
    loss: str

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        xp, truth = namespace(change), self.truth[rows]
        if self.loss == "linear":
            rise = xp.sum(change * move(truth, change), axis=-1)
        else:
            error, first = move((self.before[rows] - truth)[..., 0], change), change[..., 0]
            if self.loss == "squared":  # (e + c)² - e² = c (c + 2 e)
                rise = first * (first + 2 * error)
            else:
                rise = xp.abs(error + first) - xp.abs(error)
        return [rise * move(self.weights[rows], change)]

    def scores(self, sums: Array) -> Array:
        return sums[0]


class NoiseDivergence(Statistic):
    """Mean divergence between noise densities around the original and the changed outputs.

    The scale s of the noise is (mean |y - f|^power)^(1/power), where f are the original outputs.
    The scale s_j is computed in the same way from the outputs with unit j changed. Both scales are
    at least a millionth of the standard deviation of the target. The divergence is then finite even
    if the model interpolates the data.
    """

    power: ClassVar[int]

    def __init__(self, before: Array, y: Array, symmetric: bool):
        self.before, self.residuals, self.symmetric = before, y - before[:, 0], symmetric
        self.mean = float(np.mean(np.abs(self.residuals) ** self.power))
        self.least = max(1e-6 * float(np.std(y)), 1e-12) ** self.power
        self.scale = max(self.mean, self.least) ** (1 / self.power)

    def growth(self, rise: Array) -> Array:
        """Return D = (s_j / s)^power - 1 from the rise of the mean of |y - f|^power."""
        before, after = max(self.mean, self.least), np.maximum(self.mean + rise, self.least)
        # if neither scale is at its lower bound, use the rise itself to avoid cancellation
        free = (self.mean >= self.least) & (self.mean + rise >= self.least)
        return np.where(free, rise, after - before) / before


class LaplaceDivergence(NoiseDivergence):
    """Mean divergence between Laplace densities.

    With the change df of an output, the divergence of a row is
    ln(s_j / s) - 1 + (s / s_j) exp(-|df| / s) + |df| / s_j. With
    g(u) = expm1(-u) + u and D as in :meth:`growth`, the mean is
    log1p(D) - D / (1 + D) + mean(g(|df| / s)) / (1 + D). The divergence in the other direction is
    D - log1p(D) + (1 + D) mean(g(|df| / s_j)). It needs s_j, and thus a second pass.
    """

    power, n_sums = 1, 2
    #: Scale s_j of each unit, set in the second pass.
    scales: Array | None = None

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        xp, moved = namespace(change), change[..., 0]
        error, size = move(self.residuals[rows], change), xp.abs(moved)
        each = [self.scale]
        if self.scales is not None:
            each.append(move(self.scales[units], change))
        bends = [xp.expm1(-size / scale) + size / scale for scale in each]
        return [xp.abs(error - moved) - xp.abs(error), *bends]

    def scores(self, sums: Array) -> Array:
        rise, *bent = sums / len(self.residuals)
        D = self.growth(rise)
        forth = np.log1p(D) - D / (1 + D) + bent[0] / (1 + D)
        if not self.symmetric:
            return forth
        return (forth + D - np.log1p(D) + (1 + D) * bent[1]) / 2

    def next_pass(self, sums: Array) -> "LaplaceDivergence | None":
        if not self.symmetric or self.scales is not None:
            return None
        found = copy(self)
        found.n_sums, found.scales = 3, self.scale * (1 + self.growth(sums[0] / len(self.before)))
        return found


class GaussDivergence(NoiseDivergence):
    """Mean divergence between Gaussian densities.

    With the change df of an output, the divergence of a row is
    ln(s_j / s) + (df² + s²) / (2 s_j²) - 1/2. With m = mean(df²) / s² and D as in :meth:`growth`,
    the mean is log1p(D) / 2 + (m - D) / (2 + 2D). The divergence in the other direction is
    (m + D - log1p(D)) / 2.
    """

    power, n_sums = 2, 2

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        moved, error = change[..., 0], move(self.residuals[rows], change)
        return [moved * (moved - 2 * error), moved * moved]

    def scores(self, sums: Array) -> Array:
        rise, squares = sums / len(self.residuals)
        D, m = self.growth(rise), squares / self.scale**2
        forth = np.log1p(D) / 2 + (m - D) / (2 + 2 * D)
        return (forth + (m + D - np.log1p(D)) / 2) / 2 if self.symmetric else forth

"""How far outputs move: statistics that add up over rows and points.

A statistic turns changes of outputs into sums, and the sums over all rows into scores, so that no
table of all rows by all values is held. Sums are of changes, and not of altered outputs, so that a
column that hardly matters keeps its digits. They run on arrays of any library.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar

import numpy as np

from tamis._arrays import Array
from tamis._namespace import move, namespace


class Statistic(ABC):
    """Distance of altered outputs from the outputs as they are."""

    #: Number of sums.
    n_sums: int = 1
    #: Outputs as they are, of shape (rows, outputs).
    before: Array

    @abstractmethod
    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        """Terms of the sums, each of the shape of the change without its last axis, the outputs.

        Without a change every term is 0. ``rows`` and ``units`` are indices of shapes that
        broadcast with it.
        """

    @abstractmethod
    def scores(self, sums: Array) -> Array:
        """Scores of the units from sums (n_sums, units)."""

    def next_pass(self, sums: Array) -> "Statistic | None":
        """Return the statistic of a second pass, which knows these sums; None if they suffice."""
        return None

    def sums(self, rows: Any, change: Any, weights: Any, units: Any) -> Any:
        """Sums over rows and weighted points of changes (units, rows, points, outputs)."""
        xp = namespace(change)
        terms = self.terms(rows[:, None], change, units[:, None, None])
        return xp.stack([xp.sum(xp.sum(term, axis=1) * weights, axis=1) for term in terms])

    def score(self, outputs: Array) -> float:
        """Score of other outputs of all rows."""
        rows, change = np.arange(len(outputs)), (outputs - self.before)[None, :, None, :]
        sums = self.sums(rows, change, np.ones((1, 1)), np.zeros(1, dtype=np.intp))
        second = self.next_pass(sums)
        return float(self.scores(sums)[0]) if second is None else second.score(outputs)


class AbsoluteChange(Statistic):
    """Sum of the absolute changes over a divisor."""

    def __init__(self, before: Array, divisor: float):
        self.before, self.divisor = before, divisor

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        xp = namespace(change)
        if change.shape[-1] == 1:
            return [xp.abs(change[..., 0])]
        return [xp.sum(xp.abs(change), axis=-1)]

    def scores(self, sums: Array) -> Array:
        return sums[0] / self.divisor


def total_variation(before: Array) -> AbsoluteChange:
    """Make half the sum over classes of the mean absolute change of their probabilities.

    One output is the probability of the second of two classes.
    """
    return AbsoluteChange(before, len(before) * min(before.shape[1], 2))


def mean_change(before: Array) -> AbsoluteChange:
    """Make the mean absolute change of predictions, over rows and outputs."""
    return AbsoluteChange(before, before.size)


class WeightedLoss(Statistic):
    """Rise of a weighted mean of the losses of rows: sum_i w_i (loss_i altered - loss_i).

    The loss is the squared error of a regression, or 1 for a wrong class.
    """

    def __init__(self, before: Array, truth: Array, weights: Array, squared: bool):
        self.before, self.truth, self.weights, self.squared = before, truth, weights, squared

    def terms(self, rows: Any, change: Any, units: Any) -> list[Any]:
        xp, truth = namespace(change), self.truth[rows]
        if self.squared:  # (e + c)² - e² = c (c + 2 e)
            twice = move(2 * (self.before[rows] - truth)[..., 0], change)
            rise = change[..., 0] * (change[..., 0] + twice)
        else:  # classes are coded by 0 and 1
            rise = xp.sum(change * move(1 - 2 * truth, change), axis=-1) / min(change.shape[-1], 2)
        return [rise * move(self.weights[rows], change)]

    def scores(self, sums: Array) -> Array:
        return sums[0]


class NoiseDivergence(Statistic):
    """Mean divergence of densities around the outputs, whose scale is that of the residuals.

    The scale s is (mean |y - f|^power)^(1/power); s_j is the same of the altered outputs. It is
    kept above a millionth of the target's spread: a model that interpolates would otherwise find
    every change infinitely surprising.
    """

    power: ClassVar[int]

    def __init__(self, before: Array, y: Array, symmetric: bool):
        self.before, self.residuals, self.symmetric = before, y - before[:, 0], symmetric
        self.mean = float(np.mean(np.abs(self.residuals) ** self.power))
        self.least = max(1e-6 * float(np.std(y)), 1e-12) ** self.power
        self.scale = max(self.mean, self.least) ** (1 / self.power)

    def growth(self, rise: Array) -> Array:
        """D = (s_j / s)^power - 1 from the rise of the mean."""
        before, after = max(self.mean, self.least), np.maximum(self.mean + rise, self.least)
        # the rise alone where no floor comes in, so that its digits are kept
        free = (self.mean >= self.least) & (self.mean + rise >= self.least)
        return np.where(free, rise, after - before) / before


class LaplaceDivergence(NoiseDivergence):
    """Mean divergence of Laplace densities.

    ln(s_j / s) - 1 + (s / s_j) exp(-|df| / s) + |df| / s_j, which with g(u) = expm1(-u) + u is
    log1p(D) - D / (1 + D) + mean(g(|df| / s)) / (1 + D). The other direction is
    D - log1p(D) + (1 + D) mean(g(|df| / s_j)); it needs s_j before its sums.
    """

    power, n_sums = 1, 2
    #: s_j of the units, known in the second pass.
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
    """Mean divergence of Gaussian densities.

    ln(s_j / s) + (df² + s²) / (2 s_j²) - 1/2, which with m = mean(df²) / s² is
    log1p(D) / 2 + (m - D) / (2 + 2D). The other direction is (m + D - log1p(D)) / 2.
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

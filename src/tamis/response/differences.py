"""How far outputs move, from what they change by: on any array library, to the change's digits.

The statistics of :mod:`tamis.response.distances` take altered outputs; these take the changes
themselves, so that a column that hardly matters is known as well as one that does. With df the
change of an output f,

* p(f + df) - p(f) = -p q t / (p + q (1 + t)), t = expm1(A df), of p = 1 / (1 + exp(A f + B)) and
  q = 1 - p;
* Laplace: log1p(D) - D / (1 + D) + mean(g(|df| / s)) / (1 + D), g(u) = expm1(-u) + u, where
  1 + D = s_j / s; the other direction is D - log1p(D) + (1 + D) mean(g(|df| / s_j));
* Gauss: log1p(D) / 2 + (m - D) / (2 + 2D) with 1 + D = (s_j / s)² and m = mean(df²) / s²; the
  other direction is (m + D - log1p(D)) / 2.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from tamis._arrays import Array
from tamis._namespace import move, namespace
from tamis.folds.rows import Rows
from tamis.response.answers import as_it_is, signs
from tamis.response.calibration import Sigmoids
from tamis.response.distances import (
    GaussDivergence,
    LaplaceDivergence,
    MeanChange,
    Statistic,
    TotalVariation,
    WeightedLoss,
    floored,
)

#: Largest exponent of a sigmoid's factor: more would overflow, and a probability is 0 long before.
LARGEST_EXPONENT = 700.0
#: Below it expm1(-u) + u is found by its series, of so many terms: 0.05^9 is less than rounding.
SMALL, TERMS = 0.05, 9


def knows_link(link: Any) -> bool:
    """Whether changes of raw outputs can be told as changes of what is compared."""
    return link in (as_it_is, signs) or isinstance(getattr(link, "__self__", None), Sigmoids)


def linked(link: Any, f: Any, change: Any) -> Any:
    """Changes of what is compared, (outputs, rows, columns, points), from those of raw outputs.

    ``f`` are the raw outputs before, of shape (rows, outputs).
    """
    xp = namespace(f)
    if link is as_it_is:
        return change
    f = xp.permute_dims(f, (1, 0))[:, :, None, None]
    if link is signs:
        return xp.astype(f + change > 0, f.dtype) - xp.astype(f > 0, f.dtype)
    slopes, offsets = (move(part, f)[:, None, None, None] for part in link.__self__)
    grown = f * slopes + offsets
    if f.shape[0] > 1:
        return _shares(grown + change * slopes) - _shares(grown)
    # p and 1 - p apart: near 1 the one would lose the digits of the other
    p, rest = _sigmoid(grown), _sigmoid(-grown)
    most = xp.full_like(change[:1, :1, :1, :1], LARGEST_EXPONENT)
    t = xp.expm1(xp.minimum(change * slopes, most))
    return -p * rest * t / (p + rest * (t + 1))


def _sigmoid(z: Any) -> Any:
    """1 / (1 + exp(z)) without overflow."""
    xp = namespace(z)
    small = xp.exp(-xp.abs(z))
    return xp.where(z > 0, small, xp.ones_like(z)) / (1 + small)


def _shares(z: Any) -> Any:
    """Probabilities of several sigmoids, which sum to 1; equal where all vanish."""
    xp = namespace(z)
    p = _sigmoid(z)
    total = xp.sum(p, axis=0, keepdims=True)
    none = total == 0
    return xp.where(none, 1 / z.shape[0], p / xp.where(none, xp.ones_like(total), total))


def summed(x: Any, weights: Any) -> Any:
    """Sums over rows and weighted points of (rows, columns, points), for each column."""
    xp = namespace(x)
    return xp.sum(xp.sum(x, axis=0) * weights, axis=1)


class Difference(ABC):
    """A statistic as sums over changes, and scores from the sums."""

    n_passes: int = 1

    def __init__(self, statistic: Any):
        self.statistic = statistic

    @abstractmethod
    def sums(self, rows: Rows, f: Any, change: Any, weights: Any, scales: Array | None) -> Any:
        """Sums of shape (n_sums, columns) over some rows, from changes of what is compared."""

    @abstractmethod
    def scores(self, sums: Array, scales: Array | None) -> Array:
        """Scores of the columns, or before the last pass their scales."""


class MovedAnswers(Difference):
    """Total variation of probabilities, or the mean change of what a regression answers."""

    def sums(self, rows: Rows, f: Any, change: Any, weights: Any, scales: Array | None) -> Any:
        xp = namespace(change)
        found = summed(xp.sum(xp.abs(change), axis=0), weights)
        both = isinstance(self.statistic, TotalVariation) and change.shape[0] > 1
        return (found / 2 if both else found)[None, :]

    def scores(self, sums: Array, scales: Array | None) -> Array:
        before, rows = self.statistic.before, isinstance(self.statistic, TotalVariation)
        return sums[0] / (len(before) if rows else before.size)


class MovedLoss(Difference):
    """How far a weighted mean of the losses of rows rises."""

    def sums(self, rows: Rows, f: Any, change: Any, weights: Any, scales: Array | None) -> Any:
        truth, own = (
            move(part[rows], f)[:, None, None]
            for part in (self.statistic.truth[:, 0], self.statistic.weights)
        )
        moved = change[0, ...]
        if self.statistic.squared:
            rise = moved * (moved + 2 * (f[:, 0][:, None, None] - truth))
        else:
            rise = moved * (1 - 2 * truth)
        return summed(rise * own, weights)[None, :]

    def scores(self, sums: Array, scales: Array | None) -> Array:
        return sums[0]


class MovedDensity(Difference):
    """What both densities share: residuals before, and how their scale moves."""

    _power: ClassVar[int]

    def _errors(self, rows: Rows, f: Any) -> Any:
        return move(self.statistic.y[rows], f)[:, None, None] - f[:, 0][:, None, None]

    def _moved(self, rise: Array) -> Array:
        """D: the share by which the scale, to the power of the density, grows; above its floor."""
        s, y, power = self.statistic.scale, self.statistic.y, self._power
        mean = np.mean(np.abs(y - self.statistic.before) ** power)
        least = floored(0.0, y) ** power
        # the rise alone where no floor comes in, so that its digits are kept
        free = (mean >= least) & (mean + rise >= least)
        return np.where(free, rise, np.maximum(mean + rise, least) - s**power) / s**power


class MovedLaplace(MovedDensity):
    """Mean divergence of Laplace densities."""

    _power = 1

    def __init__(self, statistic: LaplaceDivergence):
        super().__init__(statistic)
        self.n_passes = statistic.n_passes

    def sums(self, rows: Rows, f: Any, change: Any, weights: Any, scales: Array | None) -> Any:
        xp, moved, error = namespace(f), change[0, ...], self._errors(rows, f)
        size = xp.abs(moved)
        parts = [summed(xp.abs(error - moved) - xp.abs(error), weights)]
        parts.append(summed(_bend(size / float(self.statistic.scale)), weights))
        if scales is not None:
            parts.append(summed(_bend(size / move(scales, f)[None, :, None]), weights))
        return xp.stack(parts)

    def scores(self, sums: Array, scales: Array | None) -> Array:
        means = sums / len(self.statistic.y)
        D = self._moved(means[0])
        if self.statistic.symmetric and scales is None:
            return self.statistic.scale * (1 + D)
        forth = np.log1p(D) - D / (1 + D) + means[1] / (1 + D)
        if not self.statistic.symmetric:
            return forth
        return (forth + D - np.log1p(D) + (1 + D) * means[2]) / 2


class MovedGauss(MovedDensity):
    """Mean divergence of Gaussian densities."""

    _power = 2

    def sums(self, rows: Rows, f: Any, change: Any, weights: Any, scales: Array | None) -> Any:
        moved, error = change[0, ...], self._errors(rows, f)
        parts = [summed(moved * (moved - 2 * error), weights), summed(moved * moved, weights)]
        return namespace(f).stack(parts)

    def scores(self, sums: Array, scales: Array | None) -> Array:
        means = sums / len(self.statistic.y)
        D, m = self._moved(means[0]), means[1] / self.statistic.scale**2
        forth = np.log1p(D) / 2 + (m - D) / (2 + 2 * D)
        return (forth + (m + D - np.log1p(D)) / 2) / 2 if self.statistic.symmetric else forth


def _bend(u: Any) -> Any:
    """expm1(-u) + u of what is not negative, to its own digits."""
    xp = namespace(u)
    series = xp.ones_like(u)
    for k in range(TERMS, 2, -1):
        series = 1 - u / k * series
    return xp.where(u < SMALL, u * u / 2 * series, xp.expm1(-u) + u)


_KINDS: dict[type, type[Difference]] = {
    TotalVariation: MovedAnswers,
    MeanChange: MovedAnswers,
    WeightedLoss: MovedLoss,
    LaplaceDivergence: MovedLaplace,
    GaussDivergence: MovedGauss,
}


def in_differences(statistic: Statistic, n_outputs: int) -> Difference | None:
    """The statistic as one of changes; None where altered outputs must be seen."""
    kind = _KINDS.get(type(statistic))
    if kind is None or (kind is not MovedAnswers and n_outputs > 1):
        return None
    return kind(statistic)

"""How far outputs move: statistics that add up over blocks of rows and points.

A statistic turns a block of altered outputs into sums, and the sums of all blocks into scores, so
that no table of all rows by all values is ever held.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from tamis._arrays import Array


class DistanceBlock(NamedTuple):
    """Altered outputs of some rows."""

    rows: Any  # indices among all rows
    outputs: Array  # (units, rows, points, outputs)
    weights: Array  # (units, points)


class Statistic(Protocol):
    """Distance of altered outputs from the outputs as they are."""

    #: How often the blocks must be seen: a second pass knows the scores' scales.
    n_passes: int
    n_sums: int

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        """Sums over rows and points, of shape (units, n_sums)."""

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        """What rows with one output each add to the sums, of shape (rows, n_sums)."""

    def start(self) -> Array:
        """Sums of the terms of all rows as they are, of shape (n_sums,)."""

    def scores(self, sums: Array, scales: Array | None) -> Array:
        """Scores of the units (or, before the last pass, their scales)."""


class TotalVariation:
    """Half the sum over classes of the mean absolute change of their probabilities.

    One output is the probability of the second of two classes.
    """

    n_passes = n_sums = 1

    def __init__(self, before: Array):
        self.before = before

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        change = block.outputs - self.before[block.rows][None, :, None, :]
        np.abs(change, out=change)
        moved = change[..., 0] if change.shape[-1] == 1 else change.sum(axis=-1) / 2
        return np.einsum("jrq,jq->j", moved, block.weights)[:, None]

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        change = np.abs(outputs - self.before[rows])
        return change if change.shape[1] == 1 else change.sum(axis=1, keepdims=True) / 2

    def start(self) -> Array:
        return np.zeros(1)

    def scores(self, sums: Array, scales: Array | None) -> Array:
        return sums[..., 0] / len(self.before)


class MeanChange:
    """Mean absolute change of what a regression answers, over rows and outputs."""

    n_passes = n_sums = 1

    def __init__(self, before: Array):
        self.before = before

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        change = block.outputs - self.before[block.rows][None, :, None, :]
        return np.einsum("jrqk,jq->j", np.abs(change, out=change), block.weights)[:, None]

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        return np.asarray(np.abs(outputs - self.before[rows]).sum(axis=1, keepdims=True))

    def start(self) -> Array:
        return np.zeros(1)

    def scores(self, sums: Array, scales: Array | None) -> Array:
        return sums[..., 0] / self.before.size


class WeightedLoss:
    """How far a weighted mean of the losses of rows rises: sum_i w_i (loss_i altered - loss_i).

    The loss is the squared error of a regression, or 1 for a wrong class.
    """

    n_passes = n_sums = 1

    def __init__(self, before: Array, truth: Array, weights: Array, squared: bool):
        self.truth, self.weights, self.squared = truth, weights, squared
        self.base = float(weights @ self._losses(before, truth))

    def _losses(self, outputs: Array, truth: Array) -> Array:
        error = outputs - truth
        if self.squared:
            return np.asarray(error[..., 0] ** 2)
        np.abs(error, out=error)
        return error[..., 0] if error.shape[-1] == 1 else error.sum(axis=-1) / 2

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        losses = self._losses(block.outputs, self.truth[block.rows][:, None, :])
        weights = self.weights[block.rows]
        return np.einsum("jrq,jq,r->j", losses, block.weights, weights)[:, None]

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        return (self._losses(outputs, self.truth[rows]) * self.weights[rows])[:, None]

    def start(self) -> Array:
        return np.array([self.base])

    def scores(self, sums: Array, scales: Array | None) -> Array:
        return np.asarray(sums[..., 0] - self.base)


class LaplaceDivergence:
    """Mean divergence of Laplace densities around f(x) and f(x_(j)), with constants.

    ln(s_j / s) - 1 + (s / s_j) exp(-|df| / s) + |df| / s_j,  s = mean |y - f|, s_j the same of
    the altered outputs. The other direction exchanges s and s_j; it needs s_j before its sums.
    """

    def __init__(self, before: Array, y: Array, symmetric: bool):
        self.before, self.y, self.symmetric = before[:, 0], y, symmetric
        self.scale = floored(np.abs(y - self.before).mean(), y)
        self.n_passes, self.n_sums = (2, 4) if symmetric else (1, 3)

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        outputs = block.outputs[..., 0]
        change = np.abs(outputs - self.before[block.rows][:, None])
        error = np.abs(outputs - self.y[block.rows][:, None])
        parts = [error, change, np.exp(-change / self.scale)]
        if self.symmetric:
            own = np.inf if scales is None else scales[:, None, None]
            parts.append(np.exp(-change / own))
        return np.stack([np.einsum("jrq,jq->j", p, block.weights) for p in parts], axis=1)

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        change = np.abs(outputs[:, 0] - self.before[rows])
        parts = [np.abs(outputs[:, 0] - self.y[rows]), change, np.exp(-change / self.scale)]
        if self.symmetric:
            parts.append(np.exp(-change / (np.inf if scales is None else scales)))
        return np.stack(parts, axis=1)

    def start(self) -> Array:
        return np.asarray(self.terms(slice(None), self.before[:, None], None).sum(axis=0))

    def scores(self, sums: Array, scales: Array | None) -> Array:
        means = np.moveaxis(sums / len(self.y), -1, 0)
        s, s_j = self.scale, floored(means[0], self.y)
        if self.symmetric and scales is None:
            return s_j
        forth = np.log(s_j / s) - 1 + s / s_j * means[2] + means[1] / s_j
        if not self.symmetric:
            return forth
        back = np.log(s / s_j) - 1 + s_j / s * means[3] + means[1] / s
        return (forth + back) / 2


class GaussDivergence:
    """Mean divergence of Gaussian densities, ln(s_j / s) + (df^2 + s^2) / (2 s_j^2) - 1/2."""

    n_passes, n_sums = 1, 2

    def __init__(self, before: Array, y: Array, symmetric: bool):
        self.before, self.y, self.symmetric = before[:, 0], y, symmetric
        self.scale = floored(np.sqrt(np.mean((y - self.before) ** 2)), y)

    def sums(self, block: DistanceBlock, scales: Array | None) -> Array:
        outputs = block.outputs[..., 0]
        change = (outputs - self.before[block.rows][:, None]) ** 2
        error = (outputs - self.y[block.rows][:, None]) ** 2
        return np.stack(
            [np.einsum("jrq,jq->j", part, block.weights) for part in (error, change)], axis=1
        )

    def terms(self, rows: Any, outputs: Array, scales: Array | None) -> Array:
        change = (outputs[:, 0] - self.before[rows]) ** 2
        return np.stack([(outputs[:, 0] - self.y[rows]) ** 2, change], axis=1)

    def start(self) -> Array:
        return np.asarray(self.terms(slice(None), self.before[:, None], None).sum(axis=0))

    def scores(self, sums: Array, scales: Array | None) -> Array:
        means = np.moveaxis(sums / len(self.y), -1, 0)
        s, s_j = self.scale, floored(np.sqrt(means[0]), self.y)
        forth = np.log(s_j / s) + (means[1] + s**2) / (2 * s_j**2) - 0.5
        if not self.symmetric:
            return forth
        back = np.log(s / s_j) + (means[1] + s_j**2) / (2 * s**2) - 0.5
        return (forth + back) / 2


def floored(scale: Array | float, y: Array) -> Array:
    """Residual scales kept above a millionth of the target's spread.

    A model that interpolates would otherwise find every change infinitely surprising.
    """
    return np.maximum(scale, max(1e-6 * float(np.std(y)), 1e-12))

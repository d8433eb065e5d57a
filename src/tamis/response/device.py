"""Sensitivities of SVMs with a Gaussian kernel on a GPU or another array device.

A series expansion (:func:`output_changes`) computes all columns together. Other models are computed
on the CPU, and a warning is issued once.
"""

from functools import partial
from typing import Any

import numpy as np

from tamis._arrays import Array, Subset
from tamis._namespace import (
    host,
    is_elsewhere,
    move,
    namespace,
    note,
    rows_taken,
    say_processor,
)
from tamis.density.series.outputs import output_changes
from tamis.density.series.table import in_memory, strips
from tamis.response.calibration import Sigmoids
from tamis.response.distances import Statistic
from tamis.response.engines.base import FoldModel, scaling_of
from tamis.response.perturbations import Draw, Shuffle
from tamis.response.predictions import as_it_is, signs
from tamis.svm.machine import KernelMachine, is_newton, kernel_machine
from tamis.svm.newton.spaces import kernel_matrix

#: Advice in the warning about a fallback to the CPU.
INSTEAD = (
    "The device supports SVMs with kernel='rbf', single columns, by='marginal', 'permutation' and "
    "'zero', with on='training' and 'held-out'."
)


def report_processor(what: str) -> None:
    """Warn once, and record, that the CPU is used although a device was requested."""
    say_processor(what, INSTEAD)
    note("scores")


#: Largest exponent in a sigmoid. Larger exponents could overflow, and the probability is 0 anyway.
LARGEST_EXPONENT = 700.0


class DeviceEngine:
    """Engine of an SVM with a Gaussian kernel, on a GPU or other device.

    The outputs are Σ_q β_q exp(-γ |x - s_q|²) + b, with centres s_q and weights β_q.

    Parameters
    ----------
    part : FoldModel
        Model and the rows that it predicts.
    X : array of shape (n_samples, n_features)
        All rows of the table, on the device.
    svm : KernelMachine
        Centres and weights of the model. Its arrays may be on the device already.
    precision : {"double", "single"}
        Precision of kernels and their products. Statistics always use double precision.
    """

    n_bytes = 0

    def __init__(self, part: FoldModel, X: Any, svm: KernelMachine, precision: str):
        gamma, centres, weights = svm.kernel.gamma, svm.centres, svm.weights
        if not centres.shape[0]:  # a constant model: use one centre of weight 0
            centres, weights = np.zeros((1, X.shape[1])), np.zeros((1, len(svm.offsets)))
        self.link, self.gamma, self.is_single = part.model.link, gamma, precision == "single"
        self.centres, self.weights = (
            x if is_elsewhere(x) else move(x, X) for x in (centres, weights)
        )
        self.scalings = scaling_of(part.model.fitted)[0]
        self.X = self._scale(X)
        self.own = rows_taken(self.X, part.rows)
        blocks = [
            kernel_matrix(svm.kernel, self.own[rows, :], self.centres) @ self.weights
            for rows in strips(self.own)
        ]
        self.f = namespace(X).concat(blocks, axis=0) + move(svm.offsets, X)[None, :]

    @classmethod
    def of(cls, part: FoldModel, X: Any, precision: str) -> "DeviceEngine | None":
        """Return the engine of a model, or None if the device does not support the model."""
        model, last = part.model, scaling_of(part.model.fitted)[1]
        known = model.link in (as_it_is, signs) or isinstance(
            getattr(model.link, "__self__", None), Sigmoids
        )
        if not known or model.method not in ("decision_function", "predict"):
            return None
        machine = None if is_newton(last) else kernel_machine(last)
        if is_newton(last) and last.kernel == "rbf":  # its arrays may be on the device already
            parts = last.support_vectors_, last.dual_coef_.T, last.intercept_
            machine = KernelMachine(last._kernel, *parts)
        if machine is None or machine.kernel.name != "rbf":
            return None
        return cls(part, X, machine, precision)

    def _scale(self, values: Any) -> Any:
        """Apply the scalers of the pipeline to values of shape (..., columns)."""
        for scaling in self.scalings:
            shift, factor, offset = (move(numbers, values)[None, :] for numbers in scaling)
            values = (values - shift) * factor + offset
        return values

    def outputs(self) -> Array:
        """Return the raw outputs of the unchanged rows."""
        return host(self.f)

    def sums(self, units: Subset, draw: Draw, part: FoldModel, statistic: Statistic) -> Array:
        """Return the sums of a statistic over rows and points, of shape (n_sums, units)."""
        found = in_memory(partial(self._sums, units[:, 0], draw, part, statistic))
        note("scores", self.X)
        return found

    def _sums(self, columns: Subset, draw: Any, part: FoldModel, statistic: Statistic) -> Array:
        unit = np.full(self.X.shape[1], -1)
        unit[columns] = np.arange(len(columns))
        paired, xp = isinstance(draw, Shuffle), namespace(self.f)
        if paired:
            points, shares = rows_taken(self.X, draw.donors[part.rows]), np.ones((len(unit), 1))
        else:
            values = np.zeros((draw.values.shape[1], len(unit)))
            values[:, columns] = draw.values[..., 0].T
            points, shares = self._scale(move(values, self.X)), draw.weights[unit]
        given = self.own, self.centres, self.weights, points
        if self.is_single:
            given = tuple(xp.astype(x, xp.float32) for x in given)
        total = np.zeros((statistic.n_sums, len(columns)))
        for rows, altered, some, change in output_changes(*given, gamma=self.gamma, paired=paired):
            f, weights = self.f[rows, :], move(shares[altered, some], self.f)
            change = xp.permute_dims(xp.astype(change, f.dtype, copy=False), (2, 1, 3, 0))
            mine, asked = unit[altered], unit[altered] >= 0
            moved = linked_change(self.link, f, change)
            sums = host(statistic.sums(part.rows[rows], moved, weights, mine))
            total[:, mine[asked]] += sums[:, asked]
        return total


def linked_change(link: Any, f: Any, change: Any) -> Any:
    """Return the changes of linked outputs that correspond to changes of raw outputs.

    ``change`` has the shape (columns, rows, points, outputs), and the original raw outputs ``f``
    have (rows, outputs). For a single sigmoid, cancellation is avoided by the formula
    p(f + df) - p(f) = -p q t / (p + q (1 + t)) with t = expm1(A df) and q = 1 - p.
    """
    if link is as_it_is:
        return change
    xp, f = namespace(f), f[:, None, :]
    if link is signs or f.shape[-1] > 1:
        return link(f + change) - link(f)
    slopes, offsets = (move(part, f) for part in link.__self__)
    p, q = (_sigmoid(sign * (f * slopes + offsets)) for sign in (1, -1))
    most = xp.full_like(change[:1, :1, :1, :1], LARGEST_EXPONENT)
    t = xp.expm1(xp.minimum(change * slopes, most))
    return -p * q * t / (p + q * (t + 1))


def _sigmoid(z: Any) -> Any:
    """Return 1 / (1 + exp(z)) without overflow."""
    xp = namespace(z)
    small = xp.exp(-xp.abs(z))
    return xp.where(z > 0, small, xp.ones_like(z)) / (1 + small)

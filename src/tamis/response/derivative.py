"""Derivative of an SVM by the scale of its columns (FSPP4).

With column j of the rows multiplied by v, and the machine kept, df/dv = sum_q beta_q x dK/dx at
v = 1. With the machine following, f(x) = sum_q beta_q K(v x, v s_q) + b and

    df/dv = sum_q beta_q dK/dv + sum_q K dbeta_q/dv + db/dv,

where bound support vectors keep their beta, and the free ones F keep y f = 1:

    [ K_FF  1 ] [ dbeta_F ]     [ (dK/dv beta)_F ]
    [ 1'    0 ] [ db      ] = - [ 0              ]        (Shen et al., eq. 28 and 31)

solved for all columns at once by least squares, which duplicate rows do not break.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from tamis._arrays import Array
from tamis.exceptions import IncompatibleCriterion
from tamis.response.calibration import Sigmoids
from tamis.response.perturbations import Units
from tamis.svm.machine import KernelMachine, kernel_machine


class ScaleSlopes(NamedTuple):
    """Outputs (rows, outputs) and their derivatives (units, rows, outputs)."""

    outputs: Array
    slopes: Array

    @classmethod
    def joined(cls, parts: "list[ScaleSlopes]") -> "ScaleSlopes":
        outputs = np.concatenate([part.outputs for part in parts])
        return cls(outputs, np.concatenate([part.slopes for part in parts], axis=1))

    def sigmoids(self, sigmoids: Sigmoids, codes: NDArray[np.intp]) -> "ScaleSlopes":
        """Derivatives of A and B of each output, of shapes (outputs, 2) and (units, ...).

        At the optimum sum (t - p) f = 0 and sum (t - p) = 0, with Platt's targets t (eq. 32-35,
        signs corrected).
        """
        values = np.stack([sigmoids.slopes, sigmoids.offsets], axis=1)
        found = np.zeros((len(self.slopes), *values.shape))
        for k, (a, b) in enumerate(values):
            f, df = self.outputs[:, k], self.slopes[..., k]
            positive = codes == (1 if len(values) == 1 else k)
            n = positive.sum()
            t = np.where(positive, (n + 1) / (n + 2), 1 / (len(codes) - n + 2))
            p = 1 / (1 + np.exp(a * f + b))
            w = p * (1 - p)
            system = np.array([[w @ f**2, w @ f], [w @ f, w.sum()]])
            right = np.stack([df @ (w * a * f + t - p), df @ (w * a)])
            found[:, k] = lstsq(system, -right)[0].T
        return ScaleSlopes(values, found)


def slopes_of(fitted: Any, X: Array, units: Units, follow: bool) -> ScaleSlopes:
    """Decisions of an SVC (or of several, one against the rest) on rows, and their slopes.

    The columns of a unit are scaled together, so that their slopes add up. ``follow`` says whether
    the machine does.
    """
    machines = fitted.estimators_ if isinstance(fitted, OneVsRestClassifier) else [fitted]
    parts = [_one_machine(one, X, follow) for one in machines]
    slopes = units.summed(np.stack([df for _, df in parts], axis=2))
    return ScaleSlopes(np.stack([f for f, _ in parts], axis=1), slopes)


def _one_machine(fitted: Any, X: Array, follow: bool) -> tuple[Array, Array]:
    machine = kernel_machine(fitted)
    if machine is None or not isinstance(fitted, SVC):
        raise IncompatibleCriterion(
            "by='derivative' needs an SVC with an RBF, polynomial or linear kernel, not "
            f"{type(fitted).__name__}. Use by='marginal'."
        )
    beta, grams = machine.weights[:, 0], machine.grams(X)
    K = machine.values(grams.copy())
    f = K @ beta + machine.offsets[0]
    if not follow:
        return f, row_slopes(machine, X, grams, beta).T
    free, solution = _follow_scale(fitted, machine)
    df = scaled_slopes(machine, X, grams, beta) + K[:, free] @ solution[:-1] + solution[-1]
    return f, df.T


def _follow_scale(fitted: Any, machine: KernelMachine) -> tuple[NDArray[np.intp], Array]:
    """Free support vectors, and the slopes (free and offset, columns) of their variables."""
    free, beta = free_vectors(fitted), machine.weights[:, 0]
    n_columns = machine.centres.shape[1]
    if not len(free):  # nothing says where the machine would go
        return free, np.zeros((1, n_columns))
    centre_grams = machine.grams(machine.centres[free])
    push = scaled_slopes(machine, machine.centres[free], centre_grams, beta)  # (F, d)
    K_free = machine.values(centre_grams.copy())[:, free]
    system = np.zeros((len(free) + 1, len(free) + 1))
    system[:-1, :-1] = K_free
    system[:-1, -1] = system[-1, :-1] = 1.0
    right = np.zeros((len(free) + 1, n_columns))
    right[:-1] = -push
    return free, lstsq(system, right)[0]


def free_vectors(fitted: Any) -> NDArray[np.intp]:
    """Support vectors whose dual variable is below its bound."""
    alpha = np.abs(np.asarray(fitted.dual_coef_)[0])
    bounds = fitted.C * np.asarray(fitted.class_weight_)
    signs = (np.asarray(fitted.dual_coef_)[0] > 0).astype(int)
    return np.flatnonzero(alpha < bounds[signs] * (1 - 1e-8))


def scaled_slopes(machine: KernelMachine, X: Array, grams: Array, beta: Array) -> Array:
    """sum_q beta_q dK(v x, v s_q)/dv at v = 1 for each row and column, by matrix products."""
    S, g = machine.centres, machine.gamma
    if machine.kernel == "rbf":  # dK/dv = -2 g (x - s)^2 K
        W = machine.values(grams.copy()) * beta
        return -2 * g * (X**2 * W.sum(axis=1)[:, None] - 2 * X * (W @ S) + W @ S**2)
    if machine.kernel == "linear":  # 2 x s
        return 2 * X * (beta @ S)
    W = machine.degree * grams ** (machine.degree - 1) * g * beta
    return 2 * X * (W @ S)


def row_slopes(machine: KernelMachine, X: Array, grams: Array, beta: Array) -> Array:
    """sum_q beta_q dK(v x, s_q)/dv at v = 1 for each row and column: the rows alone are scaled."""
    S, g = machine.centres, machine.gamma
    if machine.kernel == "rbf":  # dK/dv = -2 g x (x - s) K
        W = machine.values(grams.copy()) * beta
        return -2 * g * X * (X * W.sum(axis=1)[:, None] - W @ S)
    return scaled_slopes(machine, X, grams, beta) / 2  # rows and centres have equal parts in those


def probability_slopes(part: ScaleSlopes, sigmoids: Sigmoids, follow: ScaleSlopes | None) -> Array:
    """Sum over rows of half the absolute derivatives of the probabilities of all classes."""
    f, df = part
    a, b = sigmoids.slopes, sigmoids.offsets
    dz = df * a
    if follow is not None:
        dz = dz + follow.slopes[:, None, :, 0] * f + follow.slopes[:, None, :, 1]
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(a * f + b))
    dp = -p * (1 - p) * dz
    if len(a) == 1:
        return np.asarray(np.abs(dp[..., 0]).sum(axis=1))
    total = p.sum(axis=1, keepdims=True)
    shares = np.divide(p, total, out=np.full_like(p, 1 / len(a)), where=total > 0)
    safe = np.where(total > 0, total, 1.0)
    moved = (dp - shares * dp.sum(axis=2, keepdims=True)) / safe
    return np.asarray(np.abs(moved).sum(axis=(1, 2)) / 2)

"""Derivatives of an SVM's outputs with respect to the scale of its columns (FSPP4).

Let f be the output, v a factor on column j, and s_q the support vectors with weights beta_q. If the
SVM is fixed and only the rows are scaled, df/dv = sum_q beta_q x dK/dx at v = 1. If the SVM is
retrained, f(x) = sum_q beta_q K(v x, v s_q) + b and

    df/dv = sum_q beta_q dK/dv + sum_q K dbeta_q/dv + db/dv,

where bound support vectors keep their beta, and the free support vectors F keep y f = 1:

    [ K_FF  1 ] [ dbeta_F ]     [ (dK/dv beta)_F ]
    [ 1'    0 ] [ db      ] = - [ 0              ]        (Shen et al., eq. 28 and 31)

This system is solved for all columns at once by least squares, which also works with duplicate
rows.
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
    """Outputs of shape (rows, outputs), and derivatives of shape (units, rows, outputs)."""

    outputs: Array
    slopes: Array

    @classmethod
    def joined(cls, parts: "list[ScaleSlopes]") -> "ScaleSlopes":
        outputs = np.concatenate([part.outputs for part in parts])
        return cls(outputs, np.concatenate([part.slopes for part in parts], axis=1))

    def sigmoids(self, sigmoids: Sigmoids, codes: NDArray[np.intp]) -> "ScaleSlopes":
        """Return the sigmoid parameters A and B of each output, and their derivatives.

        Their shapes are (outputs, 2) and (units, outputs, 2). The derivatives follow from the
        optimality conditions sum (t - p) f = 0 and sum (t - p) = 0, where t are Platt's targets
        (eq. 32-35, signs corrected).
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
    """Return the decisions of an SVC or of one-vs-rest SVCs, and their derivatives.

    The columns of a unit are scaled together, so their derivatives add up. With ``follow`` the
    derivatives include the effect of retraining the SVM.
    """
    models = fitted.estimators_ if isinstance(fitted, OneVsRestClassifier) else [fitted]
    parts = [_one_machine(one, X, follow) for one in models]
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
    """Return the free support vectors F, and the derivatives of their beta and of b.

    The derivatives have the shape (F + 1, columns), with b in the last row.
    """
    alpha = np.abs(np.asarray(fitted.dual_coef_)[0])
    bounds = fitted.C * np.asarray(fitted.class_weight_)
    signs = (np.asarray(fitted.dual_coef_)[0] > 0).astype(int)
    free = np.flatnonzero(alpha < bounds[signs] * (1 - 1e-8))
    beta, n_columns = machine.weights[:, 0], machine.centres.shape[1]
    if not len(free):  # without free support vectors, b is not determined
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


def scaled_slopes(machine: KernelMachine, X: Array, grams: Array, beta: Array) -> Array:
    """Return sum_q beta_q dK(v x, v s_q)/dv at v = 1 for each row and column."""
    S, g, degree = machine.centres, machine.kernel.gamma, machine.kernel.degree
    if machine.kernel.name == "rbf":  # dK/dv = -2 g (x - s)^2 K
        W = machine.values(grams.copy()) * beta
        return -2 * g * (X**2 * W.sum(axis=1)[:, None] - 2 * X * (W @ S) + W @ S**2)
    W = degree * grams ** (degree - 1) * g * beta
    return 2 * X * (W @ S)


def row_slopes(machine: KernelMachine, X: Array, grams: Array, beta: Array) -> Array:
    """Return sum_q beta_q dK(v x, s_q)/dv at v = 1 for each row and column."""
    S, g = machine.centres, machine.kernel.gamma
    if machine.kernel.name == "rbf":  # dK/dv = -2 g x (x - s) K
        W = machine.values(grams.copy()) * beta
        return -2 * g * X * (X * W.sum(axis=1)[:, None] - W @ S)
    return scaled_slopes(machine, X, grams, beta) / 2  # symmetric in rows and centres


def probability_slopes(part: ScaleSlopes, sigmoids: Sigmoids, follow: ScaleSlopes | None) -> Array:
    """Return half the sum of absolute derivatives over all rows and classes, for each unit."""
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

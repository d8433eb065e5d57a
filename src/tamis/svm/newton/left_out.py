"""Leave-one-out least-squares SVMs, computed from the SVM that is trained on all samples."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import cholesky_solve, diagonal, host, namespace, rows_taken, with_diagonal
from tamis.svm.machine import KernelMachine, function_of
from tamis.svm.newton.machine import NewtonMachine, PosedMachine
from tamis.svm.newton.spaces import (
    KernelSpace,
    MachinePoint,
    SquaredLoss,
    SquaredProblem,
    kernel_matrix,
)


class LeftOut(NamedTuple):
    """Multipliers and intercepts of all leave-one-out SVMs for a single output."""

    beta: Any  # multipliers of the SVM trained on all samples
    offset: Any  # intercept of the SVM trained on all samples
    weights: Any  # (held-out sample, sample): multipliers of the SVM without the held-out sample
    offsets: Any  # (held-out sample,): intercept of the SVM without the held-out sample


def left_out(K: Any, ridge: Any, y: Any, *, intercept: bool = True) -> LeftOut:
    """Compute all leave-one-out least-squares SVMs from a single inverse matrix.

    Take the inverse of [[K + ridge, 1], [1', 0]]. Let η be its last column, and P the inverse
    without its last row and its last column. Without sample i, the multipliers are
    β - P_i βᵢ / P_ii, and the intercept is b - ηᵢ βᵢ / P_ii.
    """
    xp, n = namespace(K), K.shape[0]
    matrix = with_diagonal(xp.asarray(K, copy=True), ridge)
    unit = xp.eye(n, dtype=K.dtype, device=K.device)
    P = cholesky_solve(matrix, unit)
    eta, b = xp.zeros_like(y), 0.0
    if intercept:
        sums = xp.sum(P, axis=1)
        total = xp.sum(sums)
        eta = sums / total
        P = P - sums[:, None] * eta[None, :]
    beta = P @ y
    b = float(xp.sum(eta * y))
    step = beta / diagonal(P)
    weights = beta[None, :] - P * step[:, None]
    return LeftOut(beta, b, weights, b - eta * step)


class LeftOutMachines(NamedTuple):
    """The SVM that was trained without each row of a table, as numpy arrays.

    For a row that is not a training row, this is the SVM trained on all training rows.
    """

    machine: KernelMachine  # the SVM trained on all training rows, which are its centres
    weights: Array  # (outputs, rows, centres)
    offsets: Array  # (rows, outputs)


def is_least_squares(machine: Any) -> bool:
    """Return whether an estimator is a least-squares SVM without landmarks."""
    if not isinstance(machine, NewtonMachine) or machine.n_landmarks is not None:
        return False
    own = getattr(machine, "loss", None)
    return bool(own == "squared_error" or (own is None and machine.epsilon == 0))


def left_out_machines(
    machine: Any, X: Any, y: NDArray[Any], rows: NDArray[np.intp], sample_weight: Any = None
) -> LeftOutMachines:
    """Return the leave-one-out SVMs of a table whose training rows have the numbers ``rows``.

    A gamma of "scale" is computed once, from all training rows.
    """
    weight = None if sample_weight is None else np.asarray(sample_weight)[rows]
    posed = machine._posed(rows_taken(X, rows), y[rows], weight)
    kept, origin = posed.kept, machine._middle(posed.kept, None)
    near = kept if origin is None else kept - origin
    K = kernel_matrix(machine._kernel, near, near)
    found = [_of_loss(machine, K, posed, loss) for loss in posed.losses]
    shift = np.zeros(len(posed.rows)) if origin is None else host(near @ origin)
    trained = rows[posed.rows]
    weights = np.stack([_of_all(one.beta, one.weights, trained, X.shape[0]) for one in found])
    offsets = [_of_all(one.offset, one.offsets, trained, X.shape[0]) for one in found]
    betas = np.stack([host(one.beta) for one in found], axis=1)
    view = KernelMachine(
        function_of(machine),
        host(near).astype(np.float64, copy=False),
        betas,
        np.array([one.offset for one in found]) - shift @ betas,
    )
    return LeftOutMachines(view, weights, np.stack(offsets, axis=1) - (weights @ shift).T)


def _of_loss(machine: Any, K: Any, posed: PosedMachine, loss: SquaredLoss) -> LeftOut:
    """Return the leave-one-out SVMs of one output, with the same errors and warnings as ``fit``."""
    problem = SquaredProblem(posed.ridge, loss, machine.fit_intercept)
    ones = namespace(K).ones_like(problem.ridge)
    try:
        found = left_out(K, problem.ridge, loss.targets(ones), intercept=problem.intercept)
    except np.linalg.LinAlgError:
        raise machine._indefinite() from None
    whole = MachinePoint(found.beta, found.offset, K @ found.beta + found.offset)
    machine._warn_of_error(KernelSpace(K).error(problem, ones, whole))
    scaled = LeftOut(*(posed.units.size * part for part in found))
    middle = posed.units.middle
    return scaled._replace(offset=scaled.offset + middle, offsets=scaled.offsets + middle)


def _of_all(whole: Any, left: Any, trained: NDArray[np.intp], n_rows: int) -> Array:
    """Return an array with the values of the SVM of each row of a table.

    ``left`` are the values of the SVMs without each training row. All other rows have the value
    ``whole`` of the SVM trained on all training rows.
    """
    whole = host(whole)
    found = np.empty((n_rows, *whole.shape))
    found[:] = whole
    found[trained] = host(left)
    return found

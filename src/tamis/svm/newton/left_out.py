"""Machines of least squares without one sample each, told from the one with all."""

from typing import Any, NamedTuple

from tamis._namespace import cholesky_solve, diagonal, namespace, with_diagonal


class LeftOut(NamedTuple):
    """Machines of least squares trained without one sample each, told from the one with all."""

    outputs: Any  # of each sample by the machine without it
    weights: Any  # (sample left out, sample): the multipliers of that machine
    offsets: Any


def left_out(K: Any, ridge: Any, y: Any, *, intercept: bool = True) -> LeftOut:
    """Every leave-one-out machine of least squares, for the price of one inverse.

    With P the inverse of [[K + ridge, 1], [1', 0]] without its border η, sample i has the
    multipliers β - P_i βᵢ / P_ii, the offset b - ηᵢ βᵢ / P_ii and the output yᵢ - βᵢ / P_ii.
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
    return LeftOut(y - step, beta[None, :] - P * step[:, None], b - eta * step)

"""Squared and absolute errors along a path: piecewise polynomials in C, and their means over folds.

Between two events, the scaled output is h = a + c lambda, so the output f = h / lambda = c + a C is
affine in C. So the squared error is a parabola in C, and the absolute error is a line between two
zeros of the residual. Pieces are stored as Bernstein coefficients, which avoid cancellation.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.bounds import Bracketed
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.inputs import FARTHEST_OUTPUT, FARTHEST_SQUARED, within

SQUARED, ABSOLUTE = "mse", "mae"
FARTHEST = {SQUARED: FARTHEST_SQUARED, ABSOLUTE: FARTHEST_OUTPUT}


class ErrorPieces(NamedTuple):
    """Mean squared or absolute error of a fold: a piecewise polynomial in C, with error bounds."""

    C: Array  # edges of the pieces, increasing
    coefficients: Array  # Bernstein coefficients, (pieces, degree + 1)
    slack: Array  # bound on the error of the values, for each piece


def error_pieces(
    outputs: Bracketed, y: Array, scoring: str, weight: Array | None = None
) -> ErrorPieces:
    """Return the mean squared or absolute error over the points, along a path.

    It is computed from the outputs of the points and the bounds on their errors. ``weight`` is the
    weight of each point in the mean.
    """
    mean = partial(np.average, axis=1, weights=weight)
    C = 1.0 / outputs.lam
    e, doubt = _residuals(outputs, y, C, FARTHEST[scoring])
    long = C[1:] > C[:-1] * (1 + 1e-13)
    wrong = np.maximum(doubt[1:], doubt[:-1])[long]
    low, high = C[:-1][long], C[1:][long]
    before, after = e[:-1][long], e[1:][long]
    if scoring == SQUARED:
        size = np.maximum(np.abs(before), np.abs(after))
        part = np.stack([mean(a) for a in (before**2, before * after, after**2)], axis=-1)
        slack = mean(2 * size * wrong + wrong**2)
        return ErrorPieces(np.append(low, high[-1]), part, slack)
    edges, part, piece = _absolute(low, high, before, after, mean)
    return ErrorPieces(edges, part, mean(wrong)[piece])


def _residuals(outputs: Bracketed, y: Array, C: Array, limit: float) -> tuple[Array, Array]:
    """Return the residuals and bounds on their errors, both clipped to ``limit``.

    If a residual exceeds the limit, its error bound is set to ``limit``, which means that nothing
    is known about the residual.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        e = y - outputs.h * C[:, None]
        doubt = outputs.error * C[:, None]
    return within(e, limit), within(np.where(np.abs(e) < limit, doubt, limit), limit)


def _absolute(
    low: Array, high: Array, before: Array, after: Array, mean: Callable[[Array], Array]
) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the mean of the absolute residuals, with pieces cut where a residual is zero.

    The returned arrays are the edges of the new pieces, their values at both ends, and the index of
    the original piece that contains each new piece.
    """
    row, point = np.nonzero((before > 0) != (after > 0))
    t = before[row, point] / (before[row, point] - after[row, point])
    cuts = low[row] + t * (high[row] - low[row])
    values = mean(np.abs((1 - t)[:, None] * before[row] + t[:, None] * after[row]))
    piece = np.concatenate([np.arange(len(low)), row])
    starts = np.concatenate([low, cuts])
    order = np.lexsort((starts, piece))
    begin = np.concatenate([mean(np.abs(before)), values])[order]
    piece, starts = piece[order], starts[order]
    ends = mean(np.abs(after))[piece]
    inner = piece[1:] == piece[:-1]
    ends[:-1][inner] = begin[1:][inner]
    return np.append(starts, high[-1]), np.column_stack([begin, ends]), piece


def mean_curve(folds: Sequence[ErrorPieces], weights: Array) -> tuple[ValidationCurve, Array]:
    """Return the weighted mean error of the folds as a curve, and an error bound for each piece."""
    low, high = max(f.C[0] for f in folds), min(f.C[-1] for f in folds)
    edges = np.unique(np.concatenate([f.C for f in folds]))
    edges = np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    coefficients = np.zeros((len(edges) - 1, folds[0].coefficients.shape[1]))
    slack = np.zeros(len(edges) - 1)
    for fold, weight in zip(folds, weights / weights.sum(), strict=True):
        part, piece = restrict(fold, edges)
        coefficients += weight * part
        slack += weight * fold.slack[piece]
    at = np.append(coefficients[:, 0], coefficients[-1, -1])
    return ValidationCurve(edges, coefficients, at), slack


def restrict(fold: ErrorPieces, edges: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the Bernstein coefficients of a fold over finer intervals.

    The second array has, for each interval, the index of the piece of the fold that contains it.
    The coefficients are values of the polar form (blossom) of this piece.
    """
    middle = (edges[1:] + edges[:-1]) / 2
    piece = np.clip(np.searchsorted(fold.C, middle) - 1, 0, len(fold.coefficients) - 1)
    low, width = fold.C[piece], np.diff(fold.C)[piece]
    width = np.where(width > 0, width, 1.0)
    s = np.clip((edges[:-1] - low) / width, 0.0, 1.0)
    t = np.clip((edges[1:] - low) / width, 0.0, 1.0)
    c = fold.coefficients[piece].T
    if len(c) == 2:
        return np.column_stack([(1 - s) * c[0] + s * c[1], (1 - t) * c[0] + t * c[1]]), piece

    def blossom(u: Array, v: Array) -> Array:
        return (1 - u) * (1 - v) * c[0] + (u * (1 - v) + v * (1 - u)) * c[1] + u * v * c[2]

    return np.column_stack([blossom(s, s), blossom(s, t), blossom(t, t)]), piece

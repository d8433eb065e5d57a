"""Outputs of a Gaussian kernel machine as one column of its rows takes other values.

With s the column of the centres, z = x - x' what the value x of a row differs from the new one,
and f the output without its offset, all in the units of the kernel,

    df = E f + (1 + E) Σ_k (-z)^k / k! G_k,   E = expm1(z (x + x') / 2),  G_k = Σ_q β_q K_q s_q^k,

k = 1, 2, ...: only the moments G_k cost a product with the kernel, and none depends on x'.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Subset
from tamis._namespace import host, namespace, taken
from tamis.density.series.table import (
    LEFT_OUT,
    ColumnBatch,
    Exponents,
    KernelStrip,
    ScaledColumns,
    in_batches,
    ranks,
    stack_size,
    strip_size,
    strips,
)

#: Largest rate of a column for the series: it has one product for all new values, so that more
#: terms pay than where each column is altered once.
STEEPEST = 6.0


class OutputChange(NamedTuple):
    """Changes of outputs: of some rows, for some columns, at some of their points."""

    rows: slice
    columns: Subset
    points: slice
    change: Any  # (outputs, rows, columns, points)


def output_changes(
    X: Any, centres: Any, weights: Any, points: Any, *, gamma: float, paired: bool = False
) -> Iterator[OutputChange]:
    """What outputs Σ_q β_q exp(-γ |x - s_q|²) change by as a column of x becomes a point.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    centres : array of shape (n_centres, n_columns)
    weights : array of shape (n_centres, n_outputs)
    points : array of shape (n_points, n_columns)
        New values of each column, or of each row one.
    gamma : float
    paired : bool
        Whether every row has a point of its own, as in a shuffled column.
    """
    work = _OutputWork(X, centres, weights, points, gamma, paired)
    for rows in strips(X):
        yield from work.strip(rows)


class _OutputWork:
    def __init__(self, X: Any, centres: Any, weights: Any, points: Any, gamma: float, paired: bool):
        self.table = ScaledColumns(centres, gamma)
        self.Z, self.points = self.table.scaled(X), self.table.scaled(points)
        self.weights, self.everything, self.paired = weights, np.arange(X.shape[1]), paired
        xp, half = namespace(self.Z), np.sqrt(self.table.reach)
        sizes = xp.stack([xp.max(xp.abs(z), axis=0) for z in (self.Z, self.points)])
        rows, new = np.maximum(host(sizes).astype(float), half)
        self.exponents = Exponents(self.table, self.everything, self.Z, rows**2)
        #: 2 |s| max(|s|, |x|, |x'|) of each column: the largest |z s| of its series.
        self.rates = 2 * half * np.maximum(rows, new)
        #: Points at a time: all of a few, of every value of a long column some.
        self.n_points = 1 if paired else self.points.shape[0]
        self.at_once = min(self.n_points, max(1, stack_size(self.Z) // strip_size(self.Z)))
        self.batches = self._batches()

    def _batches(self) -> list[ColumnBatch]:
        """Columns of equal need; as many as a stack of their moments or of their points holds."""
        need = ranks(self.rates, LEFT_OUT[self.table.digits])
        size, centres = stack_size(self.Z), self.table.Z.shape[0]
        altered = strip_size(self.Z) * self.at_once
        together = np.flatnonzero(self.rates <= STEEPEST)
        return in_batches(need, together, lambda rank: size // max(centres * rank, altered))

    def strip(self, rows: slice) -> Iterator[OutputChange]:
        """Changes of some rows, a batch of columns at a time, then steep columns one by one."""
        xp = namespace(self.Z)
        strip = self.exponents.strip(rows, slice(0, self.table.Z.shape[0]))
        K = xp.exp(strip.exponents())
        outputs = K @ self.weights
        each = range(self.weights.shape[1])
        for batch in self.batches:
            powers = _powers(taken(self.table.Z, batch.columns), batch.rank)
            moments = [(K * self.weights[:, k][None, :]) @ powers for k in each]
            for points in self._point_blocks():
                parts = [self._series(moments[k], outputs[:, k], rows, points, batch) for k in each]
                yield OutputChange(rows, batch.columns, points, xp.stack(parts))
        for j in np.flatnonzero(self.rates > STEEPEST):
            kernel = self._without(strip, int(j))
            for points in self._point_blocks():
                new = self._steep(kernel, rows, points, int(j))
                change = new - xp.permute_dims(outputs, (1, 0))[:, :, None]
                yield OutputChange(rows, np.array([j]), points, change[:, :, None, :])

    def _point_blocks(self) -> Iterator[slice]:
        for start in range(0, self.n_points, self.at_once):
            yield slice(start, min(start + self.at_once, self.n_points))

    def _series(self, moments: Any, f: Any, rows: slice, points: slice, batch: ColumnBatch) -> Any:
        """Changes of one output, of shape (rows, columns, points)."""
        xp, count = namespace(moments), len(batch.columns)
        x = taken(self.Z[rows, :], batch.columns)[:, :, None]
        if self.paired:
            new = taken(self.points[rows, :], batch.columns)[:, :, None]
        else:
            new = xp.permute_dims(taken(self.points[points, :], batch.columns), (1, 0))[None, :, :]
        apart = x - new
        grown = xp.expm1(apart * (x + new) / 2)
        total = xp.zeros_like(apart)
        for k in range(batch.rank - 1, 0, -1):  # Horner's rule, factorials along the way
            own = moments[:, (k - 1) * count : k * count][:, :, None]
            total = (total + own) * apart / -k
        return grown * f[:, None, None] + (grown + 1) * total

    def _without(self, strip: KernelStrip, column: int) -> Any:
        """The kernel of some rows with all centres, without one column."""
        xp = namespace(self.Z)
        apart = self.exponents.apart(column, strip.rows, strip.columns)
        far = self.exponents.is_far[column]
        rest = strip.without(apart) if far else strip.exponents() + apart
        return xp.exp(xp.minimum(rest, xp.zeros_like(rest)))

    def _steep(self, kernel: Any, rows: slice, points: slice, column: int) -> Any:
        """Altered outputs for one column from the kernel without it, (outputs, rows, points)."""
        xp, own = namespace(self.Z), self.table.Z[:, column]
        if self.paired:
            gaps = self.points[rows, column][:, None] - own[None, :]
            found = (kernel * xp.exp(-gaps * gaps / 2)) @ self.weights
            return xp.permute_dims(found, (1, 0))[:, :, None]
        gaps = own[:, None] - self.points[points, column][None, :]
        bells, each = xp.exp(-gaps * gaps / 2), range(self.weights.shape[1])
        return xp.stack([kernel @ (self.weights[:, k][:, None] * bells) for k in each])


def _powers(z: Any, rank: int) -> Any:
    """z, z², ..., z^(rank - 1) side by side; of rank 1 one term, which nothing is asked of."""
    parts, power = [z], z
    for _ in range(rank - 2):
        power = power * z
        parts.append(power)
    return namespace(z).concat(parts, axis=1)

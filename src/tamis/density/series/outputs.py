"""Changes of the outputs of a Gaussian-kernel SVM when one column of its rows is replaced.

Let s be the column of the centres, x the value of a row, x' the new value and z = x - x', all in
the units of the kernel. The output f, without its offset, changes by

    df = E f + (1 + E) Σ_k (-z)^k / k! G_k,   E = expm1(z (x + x') / 2),  G_k = Σ_q β_q K_q s_q^k,

with k = 1, 2, ..., the weights β_q and the kernel values K_q of the centres q. Only the moments G_k
need a product with the kernel matrix, and they do not depend on x'.
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

#: Largest |z s| of a column for which the series is used. A single product serves all new values,
#: so that more terms are worthwhile than for a column that is only removed.
STEEPEST = 6.0


class OutputChange(NamedTuple):
    """Changes of the outputs for a strip of rows, a batch of columns and a block of points."""

    rows: slice
    columns: Subset
    points: slice
    change: Any  # (outputs, rows, columns, points)


def output_changes(
    X: Any, centres: Any, weights: Any, points: Any, *, gamma: float, paired: bool = False
) -> Iterator[OutputChange]:
    """Iterate over changes of Σ_q β_q exp(-γ |x - s_q|²) when a column of x gets a new value.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        The rows x.
    centres : array of shape (n_centres, n_columns)
        The centres s.
    weights : array of shape (n_centres, n_outputs)
        The weights β.
    points : array of shape (n_points, n_columns)
        New values (points) of each column. If ``paired``, they are the new values of each row.
    gamma : float
        The kernel's γ.
    paired : bool
        Whether every row has its own new value, as in a shuffled column.
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
        #: Number of points, and number of points that are computed at a time.
        self.n_points = 1 if paired else self.points.shape[0]
        self.at_once = min(self.n_points, max(1, stack_size(self.Z) // strip_size(self.Z)))
        self.batches = self._batches()

    def _batches(self) -> list[ColumnBatch]:
        """Return batches of columns, whose moments and altered outputs fit into memory."""
        need = ranks(self.rates, LEFT_OUT[self.table.digits])
        size, centres = stack_size(self.Z), self.table.Z.shape[0]
        altered = strip_size(self.Z) * self.at_once
        together = np.flatnonzero(self.rates <= STEEPEST)
        return in_batches(need, together, lambda rank: size // max(centres * rank, altered))

    def strip(self, rows: slice) -> Iterator[OutputChange]:
        """Iterate over the changes of the outputs for a strip of rows.

        Batches of columns come first, followed by steep columns, one at a time.
        """
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
        """Return the changes of a single output, of shape (rows, columns, points)."""
        xp, count = namespace(moments), len(batch.columns)
        x = taken(self.Z[rows, :], batch.columns)[:, :, None]
        if self.paired:
            new = taken(self.points[rows, :], batch.columns)[:, :, None]
        else:
            new = xp.permute_dims(taken(self.points[points, :], batch.columns), (1, 0))[None, :, :]
        apart = x - new
        grown = xp.expm1(apart * (x + new) / 2)
        total = xp.zeros_like(apart)
        for k in range(batch.rank - 1, 0, -1):  # Horner's rule, which also builds the factorials
            own = moments[:, (k - 1) * count : k * count][:, :, None]
            total = (total + own) * apart / -k
        return grown * f[:, None, None] + (grown + 1) * total

    def _without(self, strip: KernelStrip, column: int) -> Any:
        """Return the kernel between a strip of rows and all centres, computed without a column."""
        xp = namespace(self.Z)
        apart = self.exponents.apart(column, strip.rows, strip.columns)
        far = self.exponents.is_far[column]
        rest = strip.without(apart) if far else strip.exponents() + apart
        return xp.exp(xp.minimum(rest, xp.zeros_like(rest)))

    def _steep(self, kernel: Any, rows: slice, points: slice, column: int) -> Any:
        """Return the altered outputs for a steep column, of shape (outputs, rows, points).

        ``kernel`` is the kernel matrix computed without the column.
        """
        xp, own = namespace(self.Z), self.table.Z[:, column]
        if self.paired:
            apart = self.points[rows, column][:, None] - own[None, :]
            found = (kernel * xp.exp(-apart * apart / 2)) @ self.weights
            return xp.permute_dims(found, (1, 0))[:, :, None]
        apart = own[:, None] - self.points[points, column][None, :]
        bells, each = xp.exp(-apart * apart / 2), range(self.weights.shape[1])
        return xp.stack([kernel @ (self.weights[:, k][:, None] * bells) for k in each])


def _powers(z: Any, rank: int) -> Any:
    """Return the powers z, z², ..., z^(rank - 1), side by side in a single matrix.

    For rank 1 the result is z, which is not used.
    """
    parts, power = [z], z
    for _ in range(rank - 2):
        power = power * z
        parts.append(power)
    return namespace(z).concat(parts, axis=1)

"""Weighted sums of a kernel over pairs of rows, as columns leave or enter."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Subset
from tamis._namespace import host, move, namespace, note
from tamis.density.series.table import (
    ColumnBatch,
    Exponents,
    KernelStrip,
    ScaledColumns,
    Stacks,
    added_up,
    coefficients,
    in_memory,
)

#: New arrays of the weights of pairs of rows, of shape (rows, columns); symmetric.
Weights = Callable[[slice, slice], Any]


class PairChanges(NamedTuple):
    """Sums over ordered pairs of different rows of weight times kernel.

    Attributes
    ----------
    other : float
        Of the kernel of another width.
    base : float
        Of the kernel of the members.
    changes : array
        What each altered column adds to the base as it leaves or enters.
    """

    other: float
    base: float
    changes: Array


def pair_changes(
    table: ScaledColumns,
    members: Subset,
    altered: Subset,
    way: int,
    weights: Weights,
    *,
    widening: float = 1.0,
) -> PairChanges:
    """Sums over pairs, and their changes as each altered column leaves (1) or enters (-1).

    The other width is that of a kernel whose exponents are multiplied by ``widening``.
    """
    note("scores", table.Z)

    def found() -> PairChanges:
        work = _PairWork(table, members, altered, way, weights, widening)
        sums = host(added_up(work.strip, table.Z))
        changes = np.zeros(len(altered))
        changes[work.order] = sums[2:]
        return PairChanges(float(sums[0]), float(sums[1]), changes)

    return in_memory(found)


class _PairWork:
    """One pass over the strips: each against the rows from its first on, what is right doubled."""

    def __init__(
        self,
        table: ScaledColumns,
        members: Subset,
        altered: Subset,
        way: int,
        weights: Weights,
        widening: float,
    ):
        self.table, self.way, self.weights, self.widening = table, way, weights, widening
        self.altered, self.exponents = altered, Exponents(table, members)
        self.batches, self.steep = table.plan(altered)
        #: The altered columns in the order in which a strip finds them.
        self.order = np.concatenate([*(b.columns for b in self.batches), self.steep])
        self.stacks = Stacks(table, altered, self.batches, way, split=True)

    def strip(self, rows: slice) -> Any:
        """The sum for the other width, the base, and what each altered column adds, one array."""
        xp, Z = namespace(self.table.Z), self.table.Z
        strip = self.exponents.strip(rows, slice(rows.start, Z.shape[0]))
        weights, exponents = self._weights(strip), strip.exponents()
        M = xp.exp(exponents)
        M *= weights
        base = xp.sum(M)
        parts = [xp.stack([self._other(exponents, weights, base), base])]
        along, across, single = xp.sum(M, axis=1), xp.sum(M, axis=0), None
        for index, batch in enumerate(self.batches):
            leading, late = self.stacks.both(index, rows.start)
            forms = [_forms(M, leading, len(batch.columns))]
            if late is not None:
                single = M.astype(np.float32) if single is None else single
                forms.append(_forms(single, late, len(batch.columns)))
            found = self._series(xp.concat(forms), leading, batch, along, across)
            parts.append(found)
        parts += [
            xp.reshape(self._steep(strip, weights, M, int(self.altered[j])), (1,))
            for j in self.steep
        ]
        return xp.concat(parts)

    def _weights(self, strip: KernelStrip) -> Any:
        """Doubled right of the rows themselves, none where a row meets itself."""
        xp = namespace(strip.near)
        weights = self.weights(strip.rows, strip.columns)
        n_rows = strip.near.shape[0]
        own = weights[:, :n_rows]
        weights[:, :n_rows] = xp.where(strip.same(), xp.zeros_like(own), own)
        weights[:, n_rows:] *= 2
        return weights

    def _other(self, exponents: Any, weights: Any, base: Any) -> Any:
        """The sum for the other width."""
        if self.widening == 1.0:
            return base
        xp = namespace(exponents)
        kernel = xp.exp(exponents * self.widening)
        kernel *= weights
        return xp.sum(kernel)

    def _series(self, forms: Any, T: Any, batch: ColumnBatch, along: Any, across: Any) -> Any:
        """rows(M) v + columns(M) v + Σ_k c_k t_k' M t_k for the columns of a batch."""
        v = T[:, : len(batch.columns)]
        factors = move(coefficients(batch.rank, self.way), v)
        return along @ v[: along.shape[0], :] + across @ v + factors @ forms

    def _steep(self, strip: KernelStrip, weights: Any, M: Any, column: int) -> Any:
        """One column by itself; exponents are subtracted first where the kernel may vanish."""
        xp = namespace(M)
        apart = self.exponents.apart(column, strip.rows, strip.columns)
        if self.way > 0 and self.exponents.is_far[column]:
            return xp.sum(weights * xp.exp(strip.without(apart)) - M)
        return xp.sum(M * xp.expm1(apart * self.way))


def _forms(M: Any, T: Any, count: int) -> Any:
    """t_k' M t_k of each term and column; what is single precision is added up in double."""
    xp, product = namespace(M), M @ T
    product *= T[: M.shape[0], :]
    if isinstance(product, np.ndarray):
        sums = product.sum(axis=0, dtype=np.promote_types(product.dtype, np.float64))
    else:
        sums = xp.sum(product, axis=0)
    return xp.reshape(sums, (-1, count))

"""Weighted sums of a kernel over pairs of rows, and their changes when columns are altered."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis._namespace import move, namespace
from tamis.density.series.table import (
    Alteration,
    ColumnBatch,
    KernelStrip,
    ScaledColumns,
    StripPass,
    coefficients,
    in_memory,
)

#: Function of two slices of rows that returns a new array with the weights of their pairs. The
#: weights are symmetric.
Weights = Callable[[slice, slice], Any]


class PairChanges(NamedTuple):
    """Sums of weight times kernel over ordered pairs of different rows.

    Attributes
    ----------
    other : float
        Sum for a kernel of the members with a different width.
    base : float
        Sum for the kernel of the members.
    changes : array
        Change of ``base`` by each altered column.
    """

    other: float
    base: float
    changes: Array


def pair_changes(
    table: ScaledColumns, change: Alteration, weights: Weights, *, widening: float = 1.0
) -> PairChanges:
    """Return sums of the kernel over pairs of rows, and their changes by each altered column.

    The kernel of the other width has its exponents multiplied by ``widening``.
    """
    (other, base), changes = in_memory(lambda: _PairPass(table, change, weights, widening).run())
    return PairChanges(float(other), float(base), changes)


class _PairPass(StripPass):
    """Single pass over strips of rows. A strip is compared with its own rows and all later rows.

    Pairs with later rows have double weight, because the opposite pairs are left out.
    """

    def __init__(self, table: ScaledColumns, change: Alteration, weights: Weights, widening: float):
        super().__init__(table, change, split=True)
        self.weights, self.widening = weights, widening

    def strip(self, rows: slice) -> Any:
        """Return the sums over the pairs of a strip: ``other``, ``base`` and ``changes``."""
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
        """Return the weights of pairs: 0 for a row with itself, doubled for later rows."""
        xp = namespace(strip.near)
        weights = self.weights(strip.rows, strip.columns)
        n_rows = strip.near.shape[0]
        own = weights[:, :n_rows]
        weights[:, :n_rows] = xp.where(strip.same(), xp.zeros_like(own), own)
        weights[:, n_rows:] *= 2
        return weights

    def _other(self, exponents: Any, weights: Any, base: Any) -> Any:
        """Return the sum over pairs for the kernel with exponents multiplied by ``widening``."""
        if self.widening == 1.0:
            return base
        xp = namespace(exponents)
        kernel = xp.exp(exponents * self.widening)
        kernel *= weights
        return xp.sum(kernel)

    def _series(self, forms: Any, T: Any, batch: ColumnBatch, along: Any, across: Any) -> Any:
        """Return the changes of the sum by the columns of a batch.

        They are the row sums and the column sums of M times v, plus Σ_k c_k t_k' M t_k.
        """
        v = T[:, : len(batch.columns)]
        factors = move(coefficients(batch.rank, self.way), v)
        return along @ v[: along.shape[0], :] + across @ v + factors @ forms

    def _steep(self, strip: KernelStrip, weights: Any, M: Any, column: int) -> Any:
        """Return the change of the sum by a single steep column.

        If the kernel may have underflowed, it is computed again from exponents without the column.
        """
        xp = namespace(M)
        apart = self.exponents.apart(column, strip.rows, strip.columns)
        if self.way > 0 and self.exponents.is_far[column]:
            return xp.sum(weights * xp.exp(strip.without(apart)) - M)
        return xp.sum(M * xp.expm1(apart * self.way))


def _forms(M: Any, T: Any, count: int) -> Any:
    """Return the quadratic form t_k' M t_k for each term k and column, of shape (terms, columns).

    Products in single precision are summed in double precision.
    """
    xp, product = namespace(M), M @ T
    product *= T[: M.shape[0], :]
    if isinstance(product, np.ndarray):
        sums = product.sum(axis=0, dtype=np.promote_types(product.dtype, np.float64))
    else:
        sums = xp.sum(product, axis=0)
    return xp.reshape(sums, (-1, count))

"""RBF machines: all columns by matrix products.

Replacing x_r^j by x' changes the kernel by a factor of the column alone,

    K(x_(j), s) = K(x, s) exp(g [(x_r - s)^2 - (x' - s)^2])        (one column j, hence no index)

and interpolating the factor in s at p nodes t_1, ..., t_p turns the sum over the centres into

    f_(j)(r; x') = sum_k A_k[r] exp(-g (x' - t_k)^2) + b,
    A_k[r] = exp(g (x_r - t_k)^2) sum_q beta_q K[r, q] L_k(s_q),

where only A costs O(rows x centres), as a matrix product, and does not depend on x': a second
shuffle, sixteen quantiles or the whole marginal cost p terms each. L_k are the Lagrange polynomials
of Chebyshev nodes; p is chosen so that the error stays below 1e-11 of sum |beta| K. Where the
column is too wide for that (g times its squared range above about 10), the kernel without the
column is made for it, and its one-column kernel interpolated, which is always well-conditioned.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tamis._arrays import Array, Subset
from tamis.response.engines.base import Batch
from tamis.svm.machine import KernelMachine

if TYPE_CHECKING:
    from tamis.response.engines.kernel import KernelEngine

#: Error of the interpolation, relative to the sum of |beta| K: a tenth of the 1e-10 to which scores
#: are promised.
TOLERANCE = 1e-11
#: The most that a shared expansion may magnify rounding, as an exponent: 1e-16 times e^10 is still
#: below the tolerance.
STEEPEST = 10.0
#: More nodes than this are not worth it: the centres themselves are the nodes then.
MOST_NODES = 96


class Nodes(NamedTuple):
    """Where the nodes of each column lie, and how many it needs.

    A negative count means that the column's own kernel is interpolated; ``-MOST_NODES - 1`` that
    the centres themselves are the nodes.
    """

    middle: Array
    half: Array
    counts: Any

    @classmethod
    def of(cls, machine: KernelMachine, columns: Subset, lowest: Array, highest: Array) -> "Nodes":
        """Nodes of some columns, whose values lie between two bounds."""
        gamma, centres = machine.gamma, machine.centres
        low, high = centres.min(axis=0)[columns], centres.max(axis=0)[columns]
        middle, half = (low + high) / 2, (high - low) / 2
        # rows and new values may lie beyond the centres
        reach = np.maximum(np.maximum(highest - middle, middle - lowest), half)
        rate, gain = 4 * gamma * reach * half, gamma * reach**2
        counts = np.empty(len(low), dtype=int)
        shared = rate + gain <= STEEPEST
        counts[shared] = shared_nodes(rate[shared], gain[shared])
        counts[~shared] = [-own_nodes(_up(gamma * h * h)) for h in half[~shared]]
        return cls(middle, half, counts)


def shared_nodes(rate: Array, gain: Array) -> Any:
    """Least p for which exp(rate t) on [-1, 1] is interpolated to the tolerance over exp(gain).

    The Chebyshev coefficients of exp(r t) are 2 I_k(r) <= 2 (r/2)^k / k! exp(r^2 / (4 (k + 1))).
    """
    orders = np.arange(1, 64)
    r = np.maximum(rate, 1e-300)[:, None]
    log_terms = orders * np.log(r / 2) - gammaln(orders + 1) + r**2 / (4 * (orders + 1))
    log_terms += (np.log(8) + gain)[:, None]
    need = orders[(log_terms > np.log(TOLERANCE)).sum(axis=1).clip(max=len(orders) - 1)]
    return need + need % 2  # few different counts, so that batches are large


def _up(value: float) -> float:
    """The next number on a coarse logarithmic scale."""
    return float(1.25 ** np.ceil(np.log(max(value, 1e-3)) / np.log(1.25)))


@lru_cache(maxsize=256)
def own_nodes(steepness: float) -> int:
    """Least p that interpolates exp(-steepness (x - t)^2) over t in [-1, 1], for any x."""
    degree = 512
    t = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
    bells = np.exp(-steepness * (np.linspace(0, 3, 25)[:, None] - t) ** 2)
    series = np.abs(bells @ np.cos(np.outer(np.arccos(t), np.arange(degree)))) * 2 / degree
    tail = np.cumsum(series[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    need = int((tail > TOLERANCE).sum()) + 1
    return need if need <= MOST_NODES else MOST_NODES + 1


class RadialBatch(Batch):
    """Columns of an RBF machine, expanded at p nodes each."""

    def __init__(self, engine: "KernelEngine", units: Subset, columns: Subset, nodes: Nodes):
        self.engine, self.units, self.gamma = engine, units, engine.machine.gamma
        self.middle, half = nodes.middle[units], nodes.half[units]
        self.x = engine.X[:, columns] - self.middle
        self.centres = engine.machine.centres[:, columns] - self.middle
        count = int(nodes.counts[units[0]])  # the same for all of them
        self.half = np.where(half > 0, half, 1.0)
        self.shared = count > 0
        self.exact = count < -MOST_NODES
        p = abs(count)
        angles = np.pi * (np.arange(p) + 0.5) / p
        # nodes (p, columns), and terms (outputs, rows, p, columns); where all centres have one
        # value, it is the only node
        self.nodes = self.centres if self.exact else np.cos(angles)[:, None] * half
        self.terms = self._shared_terms(angles) if self.shared else None

    def _shared_terms(self, angles: Array) -> Array:
        """A_k without its factor exp(g (x_r - t_k)^2), by one product with the common kernel."""
        p, (m, n_columns) = len(angles), self.centres.shape
        series = _chebyshev(self.centres / self.half, p).reshape(p, -1)
        lagrange = (_from_series(angles) @ series).reshape(p, m, n_columns).transpose(1, 0, 2)
        found = self.engine.product(self.engine.K, lagrange.reshape(m, -1))
        return found.reshape(-1, len(self.x), p, n_columns)

    def _own_terms(self, index: int) -> Array:
        """A_k of one column from the kernel without it, of shape (outputs, rows, p)."""
        rest = self._rest(index)
        if self.exact:
            return self.engine.weigh(rest)
        p = len(self.nodes)
        T = _chebyshev(self.centres[:, index] / self.half[index], p)
        lagrange = _from_series(np.pi * (np.arange(p) + 0.5) / p) @ T  # (p, m)
        return self.engine.product(rest, lagrange.T)

    def _rest(self, index: int) -> Array:
        """Kernel without one column; a difference of exponents, never a quotient of kernels."""
        own = (self.x[:, index, None] - self.centres[:, index]) ** 2
        np.subtract(self.engine.grams, own, out=own)
        np.maximum(own, 0, out=own)
        own *= -self.gamma
        return np.exp(own, out=own)

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        points = points[..., 0] - self.middle[some, None]
        if self.terms is None:
            return self._own_at(some, rows, points)
        nodes = self.nodes[:, some]
        factors = np.exp(self.gamma * (self.x[rows, None, some] - nodes) ** 2)
        bells = np.exp(-self.gamma * (points - nodes[:, :, None]) ** 2)
        offsets = self.engine.offsets[rows]
        found = np.empty((len(points), len(factors), points.shape[1], self.engine.n_outputs))
        for output, terms in enumerate(self.terms):
            left = np.ascontiguousarray((terms[rows, :, some] * factors).transpose(2, 0, 1))
            right = np.ascontiguousarray(bells.transpose(1, 0, 2))
            np.add(left @ right, offsets[:, output, None], out=found[..., output])
        return found

    def _own_at(self, some: slice, rows: slice, points: Array) -> Array:
        found = []
        for index, line in zip(range(len(self.units))[some], points, strict=True):
            bells = np.exp(-self.gamma * (line - self.nodes[:, index, None]) ** 2)
            found.append(np.moveaxis(self._cached(index)[:, rows] @ bells, 0, -1))
        return np.stack(found) + self.engine.offsets[rows, None, :]

    def _cached(self, index: int) -> Array:
        """Terms of one column, kept from one block of rows to the next."""
        if getattr(self, "_at_hand", (None, None))[0] != index:
            self._at_hand = (index, self._own_terms(index))
        kept: Array = self._at_hand[1]
        return kept

    def paired(self, values: Array) -> Array:
        values = values[..., 0] - self.middle
        if self.terms is None:
            return self._own_paired(values)
        found = np.zeros((self.engine.n_outputs, *values.shape))
        change, total = self.gamma * (self.x - values), self.x + values
        for index, nodes in enumerate(self.nodes):
            # exp(g [(x - t)^2 - (x' - t)^2]) with one exponential
            factor = np.exp(change * (total - 2 * nodes))
            for output, terms in enumerate(self.terms):
                found[output] += terms[:, index] * factor
        return (np.moveaxis(found, (0, 2), (-1, 0)) + self.engine.offsets)[:, :, None, :]

    def _own_paired(self, values: Array) -> Array:
        found = []
        for index, line in enumerate(values.T):
            bells = np.exp(-self.gamma * (line[:, None] - self.nodes[:, index]) ** 2)
            found.append((self._cached(index) * bells).sum(axis=-1).T)
        return (np.stack(found) + self.engine.offsets)[:, :, None, :]

    def without(self) -> Array:
        found = [self.engine.combine(self._rest(index)) for index in range(len(self.units))]
        return np.stack(found)[:, :, None, :]


def _chebyshev(t: Array, count: int) -> Array:
    """T_0(t), ..., T_{count-1}(t) along a new first axis."""
    found = np.empty((count, *t.shape))
    found[0] = 1.0
    if count > 1:
        found[1] = t
    for k in range(2, count):
        np.multiply(found[k - 1], 2 * t, out=found[k])
        found[k] -= found[k - 2]
    return found


def _from_series(angles: Array) -> Array:
    """Matrix from T_i(t) to the Lagrange polynomials, L_k = (2/p) sum' T_i(t_k) T_i."""
    p = len(angles)
    matrix = np.cos(np.outer(angles, np.arange(p))) * (2 / p)
    matrix[:, 0] /= 2
    return matrix

"""Kernel machines: all columns by matrix products.

Replacing x_r^j by x' changes the kernel by a factor of the column alone. For the RBF kernel

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

from collections.abc import Iterator
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tamis._arrays import Array, Subset
from tamis.svm.machine import KernelMachine

#: Error of the interpolation, relative to the sum of |beta| K.
TOLERANCE = 1e-11
#: The most that a shared expansion may magnify rounding, as an exponent.
STEEPEST = 10.0
#: More nodes than this are not worth it: the centres themselves are the nodes then.
MOST_NODES = 96
#: Numbers of a batch that are held at a time.
BATCH_SIZE = 4_000_000


class KernelEngine:
    """A kernel machine on some rows; new values lie between ``low`` and ``high``."""

    def __init__(self, machine: KernelMachine, X: Array, low: Array, high: Array):
        self.machine, self.X = machine, X
        self.low, self.high = low, high
        self.n_bytes = 2 * 8 * len(X) * len(machine.centres)

    @cached_property
    def K(self) -> Array:
        """Kernel between the rows and the centres."""
        return self.machine.values(self.machine.grams(self.X))

    @cached_property
    def grams(self) -> Array:
        """What the kernel is a function of; made for those batches alone that need it."""
        return self.machine.grams(self.X)

    def outputs(self) -> Array:
        return self.K @ self.machine.weights + self.machine.offsets

    def batches(self) -> "Iterator[PolynomialBatch | RadialBatch]":
        if self.machine.kernel != "rbf":
            terms = 1 + (1 if self.machine.kernel == "linear" else self.machine.degree)
            for columns in self._split(np.arange(self.X.shape[1]), terms):
                yield PolynomialBatch(self, columns)
            return
        spans = Spans.of(self)
        # columns of like need together, so that one wide column costs no other
        order = np.argsort(spans.n_nodes, kind="stable")
        for count in np.unique(spans.n_nodes):
            alike = order[spans.n_nodes[order] == count]
            for columns in self._split(alike, max(1, abs(int(count)))):
                yield RadialBatch(self, columns, spans, int(count))

    def _split(self, columns: Subset, terms: int) -> Iterator[Subset]:
        each = (len(self.X) + len(self.machine.centres)) * terms * self.machine.weights.shape[1]
        at_once = int(np.clip(BATCH_SIZE // max(1, each), 1, 4096))
        for start in range(0, len(columns), at_once):
            yield columns[start : start + at_once]


class PolynomialBatch:
    """Columns of a linear or polynomial machine: outputs are polynomials of the new value.

    (G + g s (x' - x))^D = sum_i C(D, i) G^(D-i) (g s)^i (x' - x)^i
    """

    def __init__(self, engine: KernelEngine, columns: Subset):
        machine = engine.machine
        self.columns, self.offsets = columns, machine.offsets
        self.degree = 1 if machine.kernel == "linear" else machine.degree
        gamma = 1.0 if machine.kernel == "linear" else machine.gamma
        self.slopes = gamma * machine.centres[:, columns]  # g s
        self.engine, self.x = engine, engine.X[:, columns]
        self.terms = np.stack([self._term(power) for power in range(self.degree + 1)])

    def _term(self, power: int) -> Array:
        """Coefficient of (x' - x)^power, of shape (columns, rows, outputs)."""
        G, weights = self.engine.grams, self.engine.machine.weights
        left = comb(self.degree, power) * G ** (self.degree - power)
        raised = self.slopes.T[:, :, None] ** power * weights
        return np.stack([left @ right for right in raised])

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        change = points[:, None, :] - self.x[rows, some].T[:, :, None]
        return self._horner(some, rows, change)

    def paired(self, values: Array) -> Array:
        return self._horner(slice(None), slice(None), (values - self.x).T[:, :, None])

    def _horner(self, some: slice, rows: slice, change: Array) -> Array:
        found = np.zeros((*change.shape, len(self.offsets)))
        for term in self.terms[::-1]:
            found *= change[..., None]
            found += term[some, rows, None, :]
        return found + self.offsets

    def without(self) -> Array:
        """Both the row and the centres at 0: (G - g x s)^D."""
        weights, found = self.engine.machine.weights, []
        for slopes, x in zip(self.slopes.T, self.x.T, strict=True):
            found.append((self.engine.grams - x[:, None] * slopes) ** self.degree @ weights)
        return np.stack(found)[:, :, None, :] + self.offsets


class Spans(NamedTuple):
    """Where the nodes of each column lie, and how many it needs.

    A negative count means that the column's own kernel is interpolated; ``-MOST_NODES - 1`` that
    the centres themselves are the nodes.
    """

    middle: Array
    half: Array
    n_nodes: Any

    @classmethod
    def of(cls, engine: KernelEngine) -> "Spans":
        gamma, centres = engine.machine.gamma, engine.machine.centres
        low, high = centres.min(axis=0), centres.max(axis=0)
        middle, half = (low + high) / 2, (high - low) / 2
        # rows and new values may lie beyond the centres
        reach = np.maximum(np.maximum(engine.high - middle, middle - engine.low), half)
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


class RadialBatch:
    """Columns of an RBF machine, expanded at p nodes each."""

    def __init__(self, engine: KernelEngine, columns: Subset, spans: Spans, count: int):
        self.engine, self.columns, self.gamma = engine, columns, engine.machine.gamma
        self.offsets = engine.machine.offsets
        self.x = engine.X[:, columns] - spans.middle[columns]
        self.middle = spans.middle[columns]
        self.centres = engine.machine.centres[:, columns] - self.middle
        half = spans.half[columns]
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
        p, weights = len(angles), self.engine.machine.weights
        m, n_columns = self.centres.shape
        series = _chebyshev(self.centres / self.half, p).reshape(p, -1)
        lagrange = (_from_series(angles) @ series).reshape(p, m, n_columns).transpose(1, 0, 2)
        found = np.empty((weights.shape[1], len(self.x), p, n_columns))
        for output, beta in enumerate(weights.T):
            right = (lagrange * beta[:, None, None]).reshape(m, -1)
            np.matmul(self.engine.K, right, out=found[output].reshape(len(self.x), -1))
        return found

    def _own_terms(self, place: int) -> Array:
        """A_k of one column from the kernel without it, of shape (outputs, rows, p)."""
        weights = self.engine.machine.weights
        rest = self._rest(place)
        if self.exact:
            return np.stack([rest * beta for beta in weights.T])
        p = len(self.nodes)
        T = _chebyshev(self.centres[:, place] / self.half[place], p)
        lagrange = _from_series(np.pi * (np.arange(p) + 0.5) / p) @ T  # (p, m)
        return np.stack([rest @ (lagrange * beta).T for beta in weights.T])

    def _rest(self, place: int) -> Array:
        """Kernel without one column; a difference of exponents, never a quotient of kernels."""
        own = (self.x[:, place, None] - self.centres[:, place]) ** 2
        np.subtract(self.engine.grams, own, out=own)
        np.maximum(own, 0, out=own)
        own *= -self.gamma
        return np.exp(own, out=own)

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        points = points - self.middle[some, None]
        if self.terms is None:
            return self._own_at(some, rows, points)
        nodes = self.nodes[:, some]
        factors = np.exp(self.gamma * (self.x[rows, None, some] - nodes) ** 2)
        bells = np.exp(-self.gamma * (points - nodes[:, :, None]) ** 2)
        found = np.empty((len(points), len(factors), points.shape[1], len(self.offsets)))
        for output, terms in enumerate(self.terms):
            left = np.ascontiguousarray((terms[rows, :, some] * factors).transpose(2, 0, 1))
            right = np.ascontiguousarray(bells.transpose(1, 0, 2))
            np.add(left @ right, self.offsets[output], out=found[..., output])
        return found

    def _own_at(self, some: slice, rows: slice, points: Array) -> Array:
        found = []
        for place, line in zip(range(len(self.columns))[some], points, strict=True):
            bells = np.exp(-self.gamma * (line - self.nodes[:, place, None]) ** 2)
            found.append(np.moveaxis(self._cached(place)[:, rows] @ bells, 0, -1))
        return np.stack(found) + self.offsets

    def _cached(self, place: int) -> Array:
        """Terms of one column, kept from one block of rows to the next."""
        if getattr(self, "_at_hand", (None, None))[0] != place:
            self._at_hand = (place, self._own_terms(place))
        kept: Array = self._at_hand[1]
        return kept

    def paired(self, values: Array) -> Array:
        values = values - self.middle
        if self.terms is None:
            return self._own_paired(values)
        found = np.zeros((len(self.offsets), *values.shape))
        change, total = self.gamma * (self.x - values), self.x + values
        for place, nodes in enumerate(self.nodes):
            # exp(g [(x - t)^2 - (x' - t)^2]) with one exponential
            factor = np.exp(change * (total - 2 * nodes))
            for output, terms in enumerate(self.terms):
                found[output] += terms[:, place] * factor
        return np.moveaxis(found, (0, 2), (-1, 0))[:, :, None, :] + self.offsets

    def _own_paired(self, values: Array) -> Array:
        found = []
        for place, line in enumerate(values.T):
            bells = np.exp(-self.gamma * (line[:, None] - self.nodes[:, place]) ** 2)
            found.append((self._cached(place) * bells).sum(axis=-1).T)
        return np.stack(found)[:, :, None, :] + self.offsets

    def without(self) -> Array:
        weights = self.engine.machine.weights
        found = np.stack([self._rest(place) @ weights for place in range(len(self.columns))])
        return found[:, :, None, :] + self.offsets


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

"""Kernel machines: all columns by matrix products.

Linear and polynomial machines are followed by powers of the new value, several columns at once by
the kernel without them. Single columns of RBF machines are interpolated:

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

from collections.abc import Iterator
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tamis._arrays import Array, Subset
from tamis.response.engines.base import Batch, Engine, Model
from tamis.svm.machine import KernelMachine, kernel_machine
from tamis.svm.newton.left_out import LeftOutMachines

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


#: Numbers of a batch that are held at a time (32 MB): large matrix products, little memory.
BATCH_SIZE = 4_000_000
#: Kernel values that an engine may hold (256 MB); rows are taken in blocks beyond it.
MOST_VALUES = 32_000_000


class KernelEngine(Engine):
    """A kernel machine on some rows; new values lie between ``low`` and ``high``.

    Machines without one row each have weights and offsets of their own for each row.
    """

    has_centres = True

    def __init__(self, machine: KernelMachine | LeftOutMachines, X: Array, low: Array, high: Array):
        self.row_weights: Array | None = None
        offsets = machine.offsets
        if isinstance(machine, LeftOutMachines):
            machine, self.row_weights = machine.machine, machine.weights
        elif not len(machine.centres):  # a constant: one centre that weighs nothing
            centres, weights = np.zeros((1, X.shape[1])), np.zeros((1, len(offsets)))
            machine = machine._replace(centres=centres, weights=weights)
        self.machine, self.X, self.low, self.high = machine, X, low, high
        self.n_outputs = offsets.shape[-1]
        self.offsets = np.broadcast_to(offsets, (len(X), self.n_outputs))
        n_tables = 2 if self.row_weights is None else 2 + self.n_outputs
        self.n_bytes = n_tables * 8 * len(X) * len(machine.centres)

    @classmethod
    def knows(cls, model: Model) -> bool:
        plain = model.method in ("decision_function", "predict")
        left_out = isinstance(model.fitted, LeftOutMachines)
        return left_out or (plain and kernel_machine(model.fitted) is not None)

    @classmethod
    def opened(cls, model: Model, X: Array, low: Array, high: Array) -> "KernelEngine | None":
        left_out = isinstance(model.fitted, LeftOutMachines)
        machine = model.fitted if left_out else kernel_machine(model.fitted)
        return cls(machine, X, low, high) if machine else None

    @classmethod
    def rows_at_once(cls, model: Model, n_rows: int) -> int:
        machine = kernel_machine(model.fitted)
        n_centres = len(machine.centres) if machine else 0
        return min(n_rows, max(1, MOST_VALUES // max(1, n_centres)))

    @cached_property
    def K(self) -> Array:
        """Kernel between the rows and the centres."""
        return self.machine.values(self.machine.grams(self.X))

    @cached_property
    def grams(self) -> Array:
        """What the kernel is a function of; made only for batches that need it."""
        return self.machine.grams(self.X)

    def combine(self, kernel: Array) -> Array:
        """Outputs (rows, outputs) of a kernel (rows, centres)."""
        if self.row_weights is None:
            return kernel @ self.machine.weights + self.offsets
        return self.weigh(kernel).sum(axis=-1).T + self.offsets

    def weigh(self, kernel: Array, rows: slice = slice(None)) -> Array:
        """Kernel of some rows times the weights, of shape (outputs, rows, centres)."""
        if self.row_weights is None:
            return kernel * self.machine.weights.T[:, None]
        return kernel * self.row_weights[:, rows]

    def product(self, kernel: Array, right: Array, rows: slice = slice(None)) -> Array:
        """Kernel of some rows, weighted, times (centres, terms): (outputs, rows, terms)."""
        if self.row_weights is not None:
            return self.weigh(kernel, rows) @ right
        return np.stack([kernel @ (right * beta[:, None]) for beta in self.machine.weights.T])

    def outputs(self) -> Array:
        return self.combine(self.K)

    def batches(self, units: Subset) -> Iterator[Batch]:
        machine = self.machine
        if units.shape[1] > 1:
            for index, columns in enumerate(units):
                yield JointBatch(self, index, columns)
            return
        columns, each = units[:, 0], np.arange(len(units))
        if machine.kernel != "rbf":
            for some in self._split(each, 1 + _power(machine)[0]):
                yield PolynomialBatch(self, some, columns[some])
            return
        nodes = Nodes.of(machine, columns, self.low[columns], self.high[columns])
        # columns of like need together, so that one wide column costs no other
        for count in np.unique(nodes.counts):
            for some in self._split(each[nodes.counts == count], max(1, abs(int(count)))):
                yield RadialBatch(self, some, columns[some], nodes)

    def _split(self, units: Subset, n_terms: int) -> Iterator[Subset]:
        each = (len(self.X) + len(self.machine.centres)) * n_terms * self.n_outputs
        n_at_once = int(np.clip(BATCH_SIZE // max(1, each), 1, 4096))
        for start in range(0, len(units), n_at_once):
            yield units[start : start + n_at_once]


class PolynomialBatch(Batch):
    """Columns of a linear or polynomial machine: outputs are polynomials of the new value.

    (G + g s (x' - x))^D = sum_i C(D, i) G^(D-i) (g s)^i (x' - x)^i
    """

    def __init__(self, engine: KernelEngine, units: Subset, columns: Subset):
        machine = engine.machine
        self.units = units
        self.degree, gamma = _power(machine)
        self.slopes = gamma * machine.centres[:, columns]  # g s
        self.engine, self.x = engine, engine.X[:, columns]
        self.terms = np.stack([self._term(power) for power in range(self.degree + 1)])

    def _term(self, power: int) -> Array:
        """Coefficient of (x' - x)^power, of shape (units, rows, outputs)."""
        left = comb(self.degree, power) * self.engine.grams ** (self.degree - power)
        return self.engine.product(left, self.slopes**power).transpose(2, 1, 0)

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        change = points[:, None, :, 0] - self.x[rows, some].T[:, :, None]
        return self._horner(some, rows, change)

    def paired(self, values: Array) -> Array:
        return self._horner(slice(None), slice(None), (values[..., 0] - self.x).T[:, :, None])

    def _horner(self, some: slice, rows: slice, change: Array) -> Array:
        found = np.zeros((*change.shape, self.engine.n_outputs))
        for term in self.terms[::-1]:
            found *= change[..., None]
            found += term[some, rows, None, :]
        return found + self.engine.offsets[rows, None, :]

    def without(self) -> Array:
        """Both the row and the centres at 0: (G - g x s)^D."""
        found = [
            self.engine.combine((self.engine.grams - x[:, None] * slopes) ** self.degree)
            for slopes, x in zip(self.slopes.T, self.x.T, strict=True)
        ]
        return np.stack(found)[:, :, None, :]


class JointBatch(Batch):
    """Columns of a machine that change together: the kernel without them, and their own.

    exp(-g d²) is the product of both, and (g <x, s> + c)^D a power of their sum.
    """

    def __init__(self, engine: KernelEngine, index: int, columns: Subset):
        self.engine, self.units = engine, np.array([index])
        self.centres = engine.machine.centres[:, columns]
        self.radial = engine.machine.kernel == "rbf"
        self.degree, self.gamma = _power(engine.machine)
        rest = engine.grams - self._own(engine.X[:, columns])
        self.rest = np.exp(-self.gamma * np.maximum(rest, 0)) if self.radial else rest

    def _own(self, values: Array) -> Array:
        """Squared distances to the centres, or products with them, of these columns alone."""
        if not self.radial:
            return self.gamma * values @ self.centres.T
        found = np.zeros((len(values), len(self.centres)))
        for value, centre in zip(values.T, self.centres.T, strict=True):
            found += (value[:, None] - centre) ** 2
        return found

    def at(self, some: slice, rows: slice, points: Array) -> Array:
        own, rest, product = self._own(points[0]).T, self.rest[rows], self.engine.product
        if self.radial:
            found = product(rest, np.exp(-self.gamma * own), rows)
        else:  # sum_q beta_q (rest_rq + own_qp)^D by the binomial theorem
            terms = [
                product(comb(self.degree, k) * rest ** (self.degree - k), own**k, rows)
                for k in range(self.degree + 1)
            ]
            found = np.sum(terms, axis=0)
        return np.moveaxis(found, 0, -1)[None] + self.engine.offsets[rows, None, :]

    def paired(self, values: Array) -> Array:
        own = self._own(values[:, 0])
        if self.radial:
            return self._combined(self.rest * np.exp(-self.gamma * own))
        return self._combined((self.rest + own) ** self.degree)

    def without(self) -> Array:
        return self._combined(self.rest if self.radial else self.rest**self.degree)

    def _combined(self, kernel: Array) -> Array:
        return self.engine.combine(kernel)[None, :, None, :]


def _power(machine: KernelMachine) -> tuple[int, float]:
    """Degree and factor of a kernel; a linear one is a power of 1."""
    return (1, 1.0) if machine.kernel == "linear" else (machine.degree, machine.gamma)

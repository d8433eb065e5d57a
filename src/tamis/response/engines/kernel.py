"""Engine of kernel models (SVMs), which computes all columns with matrix products.

With a linear or polynomial kernel, the outputs are polynomials of the new value. For a group of
columns, the kernel is split into a kernel of the group and a kernel of the other columns. Single
columns of an RBF kernel are interpolated, as follows.

Replacing x_r^j by x' multiplies the kernel by a factor that depends only on column j,

    K(x_(j), s) = K(x, s) exp(g [(x_r - s)^2 - (x' - s)^2])        (one column j, hence no index)

and interpolating the factor in s at p nodes t_1, ..., t_p turns the sum over the centres into

    f_(j)(r; x') = sum_k A_k[r] exp(-g (x' - t_k)^2) + b,
    A_k[r] = exp(g (x_r - t_k)^2) sum_q beta_q K[r, q] L_k(s_q),

where L_k are the Lagrange polynomials of Chebyshev nodes. A is a matrix product that costs O(rows x
centres). It does not depend on x', so each new value costs only p terms. p is chosen so that the
error stays below 1e-11 times sum |beta| K. This fails if the range of the column is too wide (g
times the squared range is above about 10). In this case, the kernel without the column is computed,
and the kernel of the column alone is interpolated. This is always well-conditioned.
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

#: Largest interpolation error, relative to the sum of |beta| K. It is a tenth of 1e-10, the
#: guaranteed accuracy of scores.
TOLERANCE = 1e-11
#: Largest exponent by which a shared expansion may amplify rounding errors: 1e-16 times e^10 is
#: below the tolerance.
STEEPEST = 10.0
#: Maximum number of nodes. If more are needed, the centres themselves are used as nodes.
MOST_NODES = 96


class Nodes(NamedTuple):
    """Interpolation interval of each column (its middle and half its width) and number of nodes.

    A negative count means that the kernel of the column alone is interpolated. A count of
    ``-MOST_NODES - 1`` means that the centres themselves are the nodes.
    """

    middle: Array
    half: Array
    counts: Any

    @classmethod
    def of(cls, machine: KernelMachine, columns: Subset, lowest: Array, highest: Array) -> "Nodes":
        """Return the nodes of the given columns.

        The values of a column lie between its entries in ``lowest`` and ``highest``.
        """
        gamma, centres = machine.kernel.gamma, machine.centres
        low, high = centres.min(axis=0)[columns], centres.max(axis=0)[columns]
        middle, half = (low + high) / 2, (high - low) / 2
        # values in the rows, and new values, may lie outside the range of the centres
        reach = np.maximum(np.maximum(highest - middle, middle - lowest), half)
        rate, gain = 4 * gamma * reach * half, gamma * reach**2
        counts = np.empty(len(low), dtype=int)
        shared = rate + gain <= STEEPEST
        counts[shared] = shared_nodes(rate[shared], gain[shared])
        counts[~shared] = [-own_nodes(_up(gamma * h * h)) for h in half[~shared]]
        return cls(middle, half, counts)


def shared_nodes(rate: Array, gain: Array) -> Any:
    """Return the number of nodes that interpolate exp(rate t) on [-1, 1] to TOLERANCE / exp(gain).

    The Chebyshev coefficients of exp(r t) are 2 I_k(r) <= 2 (r/2)^k / k! exp(r^2 / (4 (k + 1))).
    """
    orders = np.arange(1, 64)
    r = np.maximum(rate, 1e-300)[:, None]
    log_terms = orders * np.log(r / 2) - gammaln(orders + 1) + r**2 / (4 * (orders + 1))
    log_terms += (np.log(8) + gain)[:, None]
    need = orders[(log_terms > np.log(TOLERANCE)).sum(axis=1).clip(max=len(orders) - 1)]
    return need + need % 2  # even numbers only, for fewer and larger batches


def _up(value: float) -> float:
    """Round a value up to a power of 1.25, so that cached results can be reused."""
    return float(1.25 ** np.ceil(np.log(max(value, 1e-3)) / np.log(1.25)))


@lru_cache(maxsize=256)
def own_nodes(steepness: float) -> int:
    """Return the number of nodes that interpolate exp(-steepness (x - t)^2) in t on [-1, 1].

    The error is at most TOLERANCE for any x.
    """
    degree = 512
    t = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
    bells = np.exp(-steepness * (np.linspace(0, 3, 25)[:, None] - t) ** 2)
    series = np.abs(bells @ np.cos(np.outer(np.arccos(t), np.arange(degree)))) * 2 / degree
    tail = np.cumsum(series[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    need = int((tail > TOLERANCE).sum()) + 1
    return need if need <= MOST_NODES else MOST_NODES + 1


class RadialBatch(Batch):
    """Batch of single columns of an RBF kernel, each interpolated at p nodes."""

    def __init__(self, engine: "KernelEngine", units: Subset, columns: Subset, nodes: Nodes):
        self.engine, self.units, self.gamma = engine, units, engine.machine.kernel.gamma
        self.middle, half = nodes.middle[units], nodes.half[units]
        self.x = engine.X[:, columns] - self.middle
        self.centres = engine.machine.centres[:, columns] - self.middle
        count = int(nodes.counts[units[0]])  # the same for all units of the batch
        self.half = np.where(half > 0, half, 1.0)
        self.exact = count < -MOST_NODES
        p = abs(count)
        angles = np.pi * (np.arange(p) + 0.5) / p
        # nodes have the shape (p, columns), and terms (outputs, rows, p, columns)
        self.nodes = self.centres if self.exact else np.cos(angles)[:, None] * half
        self.terms = self._shared_terms(angles) if count > 0 else None
        self._cache: tuple[int, Any] = -1, None

    def _shared_terms(self, angles: Array) -> Array:
        """Return A_k without its factor exp(g (x_r - t_k)^2), computed as a matrix product."""
        p, (m, n_columns) = len(angles), self.centres.shape
        series = _chebyshev(self.centres / self.half, p).reshape(p, -1)
        lagrange = (_from_series(angles) @ series).reshape(p, m, n_columns).transpose(1, 0, 2)
        found = self.engine.product(self.engine.K, lagrange.reshape(m, -1))
        return found.reshape(-1, len(self.x), p, n_columns)

    def _own_terms(self, index: int) -> Array:
        """Return A_k of a single column, computed from the kernel without the column.

        The result has the shape (outputs, rows, p).
        """
        rest = self._rest(index)
        if self.exact:
            return self.engine.weigh(rest)
        p = len(self.nodes)
        T = _chebyshev(self.centres[:, index] / self.half[index], p)
        lagrange = _from_series(np.pi * (np.arange(p) + 0.5) / p) @ T  # (p, m)
        return self.engine.product(rest, lagrange.T)

    def _rest(self, index: int) -> Array:
        """Return the kernel without one column.

        The column's part is subtracted from the exponents, because dividing kernel values would be
        inaccurate.
        """
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
        """Return the terms of a single column. They are cached from one row block to the next."""
        if self._cache[0] != index:
            self._cache = index, self._own_terms(index)
        return self._cache[1]

    def paired(self, values: Array) -> Array:
        values = values[..., 0] - self.middle
        if self.terms is None:
            return self._own_paired(values)
        found = np.zeros((self.engine.n_outputs, *values.shape))
        change, total = self.gamma * (self.x - values), self.x + values
        for index, nodes in enumerate(self.nodes):
            # exp(g [(x - t)^2 - (x' - t)^2]), computed with a single exponential
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
    """Return the Chebyshev polynomials T_0(t), ..., T_{count-1}(t) along a new first axis."""
    found = np.empty((count, *t.shape))
    found[0] = 1.0
    if count > 1:
        found[1] = t
    for k in range(2, count):
        np.multiply(found[k - 1], 2 * t, out=found[k])
        found[k] -= found[k - 2]
    return found


def _from_series(angles: Array) -> Array:
    """Return the matrix that turns Chebyshev polynomials T_i into Lagrange polynomials L_k.

    L_k = (2/p) sum' T_i(t_k) T_i, where the prime halves the term of i = 0.
    """
    p = len(angles)
    matrix = np.cos(np.outer(angles, np.arange(p))) * (2 / p)
    matrix[:, 0] /= 2
    return matrix


#: Number of values in a batch (32 MB). Larger batches need more memory, and smaller ones have less
#: efficient matrix products.
BATCH_SIZE = 4_000_000
#: Maximum number of kernel values of an engine (256 MB); larger tables are split into row blocks.
MOST_VALUES = 32_000_000
#: Trying all values of a column is faster than a few predictions of the model if the column has at
#: most QUICK values, or at most QUICK_SHARE values per centre.
QUICK, QUICK_SHARE = 300, 4


class KernelEngine(Engine):
    """Engine of a kernel model. New values of a column lie between ``low`` and ``high``.

    The weights and offsets of leave-one-out models differ from row to row.
    """

    has_centres = True

    def __init__(self, machine: KernelMachine | LeftOutMachines, X: Array, low: Array, high: Array):
        self.row_weights: Array | None = None
        offsets = machine.offsets
        if isinstance(machine, LeftOutMachines):
            machine, self.row_weights = machine.machine, machine.weights
        elif not len(machine.centres):  # a constant model: use one centre of weight 0
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

    def replaces_quickly(self, n_values: int) -> bool:
        return n_values <= max(QUICK, QUICK_SHARE * len(self.machine.centres))

    @cached_property
    def K(self) -> Array:
        """Kernel matrix of shape (rows, centres)."""
        return self.machine.values(self.machine.grams(self.X))

    @cached_property
    def grams(self) -> Array:
        """Squared distances (RBF kernel) or inner products from which the kernel is computed."""
        return self.machine.grams(self.X)

    def combine(self, kernel: Array) -> Array:
        """Return the outputs, of shape (rows, outputs), for a kernel of shape (rows, centres)."""
        if self.row_weights is None:
            return kernel @ self.machine.weights + self.offsets
        return self.weigh(kernel).sum(axis=-1).T + self.offsets

    def weigh(self, kernel: Array, rows: slice = slice(None)) -> Array:
        """Return the kernel of a row slice times the weights, of shape (outputs, rows, centres)."""
        if self.row_weights is None:
            return kernel * self.machine.weights.T[:, None]
        return kernel * self.row_weights[:, rows]

    def product(self, kernel: Array, right: Array, rows: slice = slice(None)) -> Array:
        """Return the product of the weighted kernel and a matrix of shape (centres, terms).

        The result has the shape (outputs, rows, terms).
        """
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
        if machine.kernel.name != "rbf":
            for some in self._split(each, 1 + machine.kernel.degree):
                yield PolynomialBatch(self, some, columns[some])
            return
        nodes = Nodes.of(machine, columns, self.low[columns], self.high[columns])
        # columns with the same number of nodes form a batch
        for count in np.unique(nodes.counts):
            for some in self._split(each[nodes.counts == count], max(1, abs(int(count)))):
                yield RadialBatch(self, some, columns[some], nodes)

    def _split(self, units: Subset, n_terms: int) -> Iterator[Subset]:
        each = (len(self.X) + len(self.machine.centres)) * n_terms * self.n_outputs
        n_at_once = int(np.clip(BATCH_SIZE // max(1, each), 1, 4096))
        for start in range(0, len(units), n_at_once):
            yield units[start : start + n_at_once]


class PolynomialBatch(Batch):
    """Batch of single columns of a linear or polynomial kernel.

    The outputs are polynomials of the new value x'. For each centre s, the binomial theorem gives
    (G + g s (x' - x))^D = sum_i C(D, i) G^(D-i) (g s)^i (x' - x)^i,
    where G^D is the kernel before the change.
    """

    def __init__(self, engine: KernelEngine, units: Subset, columns: Subset):
        machine = engine.machine
        self.units = units
        self.degree = machine.kernel.degree
        self.slopes = machine.kernel.gamma * machine.centres[:, columns]  # g s
        self.engine, self.x = engine, engine.X[:, columns]
        self.terms = np.stack([self._term(power) for power in range(self.degree + 1)])

    def _term(self, power: int) -> Array:
        """Return the coefficient of (x' - x)^power, of shape (units, rows, outputs)."""
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
        """Return the outputs with the column set to 0 in rows and centres: (G - g x s)^D."""
        found = [
            self.engine.combine((self.engine.grams - x[:, None] * slopes) ** self.degree)
            for slopes, x in zip(self.slopes.T, self.x.T, strict=True)
        ]
        return np.stack(found)[:, :, None, :]


class JointBatch(Batch):
    """Batch of one group of columns.

    The distances or inner products are split into a part of the group and a part of the other
    columns. An RBF kernel is a product of both parts; a polynomial kernel is a power of their sum.
    """

    def __init__(self, engine: KernelEngine, index: int, columns: Subset):
        self.engine, self.units = engine, np.array([index])
        self.centres = engine.machine.centres[:, columns]
        kernel = engine.machine.kernel
        self.radial, self.degree, self.gamma = kernel.name == "rbf", kernel.degree, kernel.gamma
        rest = engine.grams - self._own(engine.X[:, columns])
        self.rest = np.exp(-self.gamma * np.maximum(rest, 0)) if self.radial else rest

    def _own(self, values: Array) -> Array:
        """Return the squared distances to the centres, or inner products, in the group alone."""
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

"""UFeSCoR: unsupervised selection by gates that preserve the distances between rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tamis._arrays import Array, Subset, best_first, standardised
from tamis._checks import Constraints, integer, number, one_of
from tamis._seeds import Seed, stream
from tamis.contract import Embedded, Entries, Scores
from tamis.contract.choice import SizeLike
from tamis.contract.criterion import TASKS
from tamis.contract.units import Fixed, Grouping, Groups
from tamis.exceptions import DegenerateData, InvalidParameter
from tamis.neural._memory import distance_bytes
from tamis.neural._state import State, packed, packed_all, unpacked, unpacked_all
from tamis.neural.redundancy import (
    KINDS,
    Dependence,
    GateUnits,
    check_columns,
    dependences,
    group_dependences,
)

#: Factors by which ``beta`` is multiplied in successive descents.
STAGES = (0.0, 1.0)
#: Largest value of ``alpha`` that is tried. With this value, the term for the number of columns
#: outweighs all other terms.
HEAVIEST = 1e7
#: Relative spread of the starting points. It is large enough to reach different local minima, and
#: small enough that the sum of the gates is about right.
JITTER = 0.1
#: The gradient is divided by distances. This is the lower bound of a divisor, relative to the
#: original distance. With this bound, the gradient is still large enough to open any gate, but its
#: square does not overflow.
LEAST = 1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class UFeSCoR(Embedded):
    r"""Unsupervised selection by gates that preserve distances, with controlled redundancy.

    To select r of p columns, the method minimises over the gates :math:`g_k = e^{-b_k^2}`

    .. math:: SE + \frac{\alpha}{(p-r)^2}\Big(\sum_k g_k - r\Big)^2
        + \frac{4\beta}{p} \sum_k g_k (1 - g_k)
        + \frac{\gamma}{p(p-1)} \sum_{i \ne j} g_i g_j \rho_{ij}^2

    Sammon's error :math:`SE = \frac{1}{\sum d^*_{ij}} \sum_{i<j} (d^*_{ij} - d_{ij})^2 / d^*_{ij}`
    compares the gated distances :math:`d_{ij}^2 = \sum_k g_k^2 (x_{ik} - x_{jk})^2` with the
    distances :math:`d^*_{ij}` over all columns. Pairs of equal rows are left out. Columns are
    standardised first, and ``y`` is ignored. Gates of constant columns are closed.

    Parameters
    ----------
    n_features_to_select : int, float or Choice, default=0.5
        Number r of columns to select, or their share. The columns with the largest gates are
        selected. ``Threshold(0.5)`` selects the columns whose gates are at least 0.5. The objective
        then has no term with r.
    alpha : float, default=3.0
        Weight of the term that controls the number of open gates. It is multiplied by 10 until r
        gates are open.
    beta : float, default=0.1
        Weight of the term that drives gates to 0 or 1. It is added after a first descent.
    gamma : float, default=1.0
        Weight of the redundancy term. With 0, redundancy is ignored.
    redundancy : {"pearson", "squared", "information"}, default="squared"
        Dependence of two columns: the absolute correlation, the squared correlation, or the
        normalised mutual information. Constant columns have dependence 0.
    restarts : int, default=10
        Number of starting points. Each run is scored by the objective with its r widest gates open
        and all others closed. The run with the lowest objective is used.
    max_rows : int, default=200
        Maximum number of rows between which distances are computed. Larger tables are sampled. A
        step takes O(rows^2 p) operations.
    random_state : int, Generator or None, default=None
        Seed of the sample and the starting points. Starting points depend on the order of the
        columns, so reordered columns may lead to a different local minimum.
    feature_groups : mapping, sequence or None, default=None
        Columns that share a gate and are selected as one unit: ``{"name": ["a", "b"]}`` or one
        label per column, as in :class:`tamis.search.Forward`. p and r then count units, and the
        redundancy of two units is the mean over the pairs of their columns.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that are always selected.

    Attributes
    ----------
    gates_ : array of shape (n_features,)
        Gate of each column, between 0 and 1.
    alpha_ : float
        Final value of ``alpha``.
    history_ : dict of str to array
        Terms of the objective at each iteration, without their weights: ``sammon``, ``size``,
        ``binary`` and ``redundancy``.
    rows_ : array of int
        Numbers of the rows between which distances were computed.

    See :class:`tamis.contract.Selection` for other attributes. In ``trace_``, the value of a step
    is minus Sammon's error of the columns selected up to this step.

    References
    ----------
    M. Banerjee, N. R. Pal, "Unsupervised feature selection with controlled redundancy (UFeSCoR)",
    IEEE Trans. Knowledge and Data Engineering 27, 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> UFeSCoR(n_features_to_select=2, random_state=0).fit(X).get_support(indices=True)
    array([0, 1])
    """

    needs_target: ClassVar[bool] = False
    targets: ClassVar[frozenset[str]] = TASKS
    fewer = "Then(Forward(ColumnSubset(), n_features_to_select={}), UFeSCoR(...))"
    quick = "column-subset"

    _constraints: ClassVar[Constraints] = {
        "alpha": number(least=0),
        "beta": number(least=0),
        "gamma": number(least=0),
        "redundancy": one_of(*KINDS),
        "restarts": integer(1),
        "max_rows": integer(2),
    }

    n_features_to_select: SizeLike = 0.5
    alpha: float = 3.0
    beta: float = 0.1
    gamma: float = 1.0
    redundancy: str = "squared"
    restarts: int = 10
    max_rows: int = 200
    random_state: Seed = None
    feature_groups: Groups = None
    fixed_features: Fixed = None

    def cost(self, n_samples: int, n_features: int) -> float:
        """Estimate the memory in bytes that a fit to a table of this size needs."""
        rows = min(n_samples, self.max_rows)
        return distance_bytes(self.redundancy, rows, n_samples, n_features)

    def _size(self, n_units: int) -> int | None:
        check_columns(self.redundancy, n_units, self.fewer)
        return super()._size(n_units)

    def _stages(self, X: Array, y: NDArray[Any] | None, seed: int, state: State) -> Iterator[State]:
        if "values" in state:
            return
        Z, rows = standardised(X), self._rows(len(X), seed)
        units = Grouping(Z.shape[1]) if self._units is None else self._units
        varies = Z.any(axis=0)
        varying, unit_of = np.unique(units.unit_of[varies], return_inverse=True)
        if len(varying):
            asked = self._choice().size(units.n_units, "UFeSCoR")
            size = None if asked is None else min(asked, len(varying))
            for found in self._descents(Z[:, varies], rows, GateUnits(unit_of), size, seed, state):
                state = found
                yield state
        else:
            warn("UFeSCoR: all columns are constant, so no gate opens.", DegenerateData, 2)
            nothing = np.empty((0, len(SammonObjective.TERMS)))
            state = _state(float(self.alpha), 0, _Descent(np.array(0.0), nothing[:, 0], nothing))
        best, gates = _best(state), np.zeros(units.n_units)
        gates[varying] = best.gates
        yield {
            "alpha": state["alpha"],
            "rows": packed(rows),
            "gates": packed(gates),
            "history": packed(best.history),
            "values": packed(_values(gates, Z[rows], units)),
        }

    def _rows(self, n_rows: int, seed: int) -> Subset:
        """Return the numbers of the rows between which distances are computed."""
        if n_rows <= self.max_rows:
            return np.arange(n_rows)
        return np.sort(stream(seed, "rows").choice(n_rows, self.max_rows, replace=False))

    def _descents(
        self, Z: Array, rows: Subset, units: GateUnits, size: int | None, seed: int, state: State
    ) -> Iterator[State]:
        """Minimise from several starting points. Yield the state with the best result so far.

        ``Z`` has no constant columns. The first descent is repeated until the required number of
        gates is open, each time with ten times the previous ``alpha``. Later descents use the final
        ``alpha``.
        """
        (phi,) = group_dependences(dependences(self.redundancy, Z), units)
        objective = SammonObjective(Z[rows], size, (0.0, 0.0, 0.0), phi, units)

        def descend(alpha: float, start: int) -> _Descent:
            weights = (alpha, self.beta, self.gamma)
            return _descend(objective, weights, stream(seed, "start", start))

        if not state:
            state = _state(float(self.alpha), 1, descend(float(self.alpha), 0))
            yield state
        while (
            size is not None
            and state["descents"] == 1
            and 0 < state["alpha"] < HEAVIEST
            and abs(_best(state).gates.sum() - size) > 0.5
        ):
            state = _state(10 * state["alpha"], 1, descend(10 * state["alpha"], 0))
            yield state
        for start in range(state["descents"], self.restarts):
            found = [_best(state), descend(state["alpha"], start)]
            best = min(found, key=lambda descent: float(descent.value))
            state = _state(state["alpha"], start + 1, best)
            yield state

    def _restore(self, X: Array, y: NDArray[Any] | None, state: State) -> None:
        self.alpha_ = float(state["alpha"])
        self.rows_ = unpacked(state["rows"])
        self._unit_gates = unpacked(state["gates"])
        units = self._units
        self.gates_ = self._unit_gates if units is None else units.spread(self._unit_gates)
        terms = unpacked(state["history"]).T
        self.history_ = dict(zip(SammonObjective.TERMS, terms, strict=True))
        self._values = unpacked(state["values"])

    def _ranked(self) -> Iterator[Entries]:
        gates = self._unit_gates
        scores = Scores(np.arange(len(gates)), gates)
        yield Entries(_order(gates, self._units), scores, self._values)


class _Descent(NamedTuple):
    """Result of a descent.

    ``value`` is the objective with only the widest gates open. ``gates`` contains the final gates,
    and ``history`` contains the terms of the objective at each iteration.
    """

    value: Array
    gates: Array
    history: Array


def _state(alpha: float, n_descents: int, best: _Descent) -> State:
    """Return the state after ``n_descents`` descents, as JSON types."""
    return {"alpha": alpha, "descents": n_descents, "best": packed_all(best._asdict())}


def _best(state: State) -> _Descent:
    return _Descent(**unpacked_all(state["best"], _Descent._fields))


def _descend(
    objective: "SammonObjective", weights: tuple[float, float, float], draw: np.random.Generator
) -> _Descent:
    """Minimise the objective from a random starting point, first without the term with beta."""
    n_gates, (alpha, beta, gamma) = len(objective.units.sizes), weights
    share = 0.5 if objective.size is None else objective.size / n_gates
    # start near equal gates with the required sum, but not at b = 0, where the gradient is 0
    jitter = draw.uniform(1 - JITTER, 1 + JITTER, n_gates)
    point = np.sqrt(-np.log(np.clip(share, 0.001, 0.95))) * jitter
    history: list[tuple[float, ...]] = []

    def note_terms(b: Array) -> None:
        history.append(objective.terms)

    with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are handled below
        for stage in STAGES:
            objective.weights = alpha, stage * beta, gamma
            found = minimize(objective, point, jac=True, method="L-BFGS-B", callback=note_terms)
            point = found.x
    if not (np.isfinite(found.fun) and np.isfinite(point).all()):
        raise InvalidParameter(
            f"UFeSCoR needs a finite objective. Lower alpha ({alpha:.3g}), beta ({beta:.3g}) or "
            f"gamma ({gamma:.3g})."
        )
    value = found.fun if objective.size is None else objective.of_the_widest(point)
    terms = np.reshape(history, (-1, len(SammonObjective.TERMS)))
    return _Descent(np.array(float(value)), np.exp(-(point**2)), terms)


def _order(gates: Array, units: Grouping | None) -> Subset:
    """Return the indices of all units: fixed units first, the others by decreasing gates."""
    scores = gates.copy()
    if units is not None:
        scores[units.fixed_units] = np.inf
    return best_first(scores)


def _values(gates: Array, rows: Array, units: Grouping) -> Array:
    """Return minus Sammon's error after each unit is added, in the order of the gates."""
    before = distances(rows)
    squares, values = np.zeros_like(before), np.empty(len(gates))
    for k, unit in enumerate(_order(gates, units)):
        for j in units.columns(np.array([unit])):
            squares += (rows[:, j, None] - rows[:, j]) ** 2
        values[k] = -error_of(before, np.sqrt(squares))
    return values


class SammonObjective:
    """Objective of :class:`UFeSCoR`, and its gradient.

    Both are functions of the parameters b of the gates exp(-b^2).
    """

    TERMS = ("sammon", "size", "binary", "redundancy")

    def __init__(
        self,
        X: Array,
        size: int | None,
        weights: tuple[float, float, float],
        phi: Dependence,
        units: GateUnits,
    ):
        self.X, self.squares, self.phi = X, X**2, phi
        self.size, self.weights, self.units = size, weights, units
        self.before = distances(X)
        self.known = self.before > 0
        self.scale = self.before.sum() / 2 or 1.0  # pairs are counted twice; all rows may be equal
        self.terms: tuple[float, ...] = ()

    def of_the_widest(self, b: Array) -> float:
        """Return the objective with the widest gates open and all others closed."""
        gates = np.zeros(len(b))
        gates[best_first(np.exp(-(b**2)))[: self.size]] = 1
        return self._at(gates)[0]

    def __call__(self, b: Array) -> tuple[float, Array]:
        gates = np.exp(-(b**2))
        value, slope = self._at(gates)
        return value, slope * (-2 * b * gates)

    def _at(self, g: Array) -> tuple[float, Array]:
        """Return the objective and its derivative with respect to each gate."""
        p = len(g)
        error, slope = self._sammon(g)
        alpha, beta, gamma = self.weights
        excess = 0.0 if self.size is None else (g.sum() - self.size) / max(p - self.size, 1)
        binary = 4 / p * float((g * (1 - g)).sum())
        shared = self.phi.times(g[None])[0] / max(p * (p - 1), 1)
        self.terms = (error, excess**2, binary, float(g @ shared))
        value = error + alpha * excess**2 + beta * binary + gamma * self.terms[3]
        slope = slope + beta * 4 / p * (1 - 2 * g) + 2 * gamma * shared
        if self.size is not None:
            slope = slope + 2 * alpha * excess / max(p - self.size, 1)
        return value, slope

    def _sammon(self, g: Array) -> tuple[float, Array]:
        """Return Sammon's error and its derivative with respect to each gate.

        If c_ij is the derivative with respect to d_ij^2, the derivative with respect to g_k^2 is
        the sum over pairs of c_ij (x_ik - x_jk)^2. Two matrix products with c compute it for all k.
        """
        opened = self.units.spread(g)
        after = distances(self.X * opened)
        before = np.where(self.known, self.before, 1.0)
        lost = np.where(self.known, self.before - after, 0.0)
        error = float((lost**2 / before).sum()) / 2 / self.scale
        c = -lost / (before * np.maximum(after, LEAST * before)) / self.scale
        by_square = c.sum(axis=1) @ self.squares - np.einsum("ij,ij->j", self.X, c @ self.X)
        return error, self.units.sum(by_square * 2 * opened)


def distances(X: Array) -> Array:
    """Return the Euclidean distances between rows. Distances due to rounding are set to 0."""
    squares = np.einsum("ij,ij->i", X, X)
    apart = squares[:, None] + squares - 2 * (X @ X.T)
    apart[apart <= 1e-13 * (squares[:, None] + squares)] = 0
    np.fill_diagonal(apart, 0)
    return np.sqrt(apart)


def error_of(before: Array, after: Array) -> float:
    """Return Sammon's error of changed distances. Pairs with original distance 0 are left out."""
    known = before > 0
    if not known.any():
        return 0.0
    return float(((before - after)[known] ** 2 / before[known]).sum() / before.sum())

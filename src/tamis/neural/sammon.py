"""Gates that keep the distances between rows, without a target."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tamis._arrays import Array, Mask, best_first, is_int, is_real, standardised
from tamis._random import stream
from tamis.contract import TASKS, Step
from tamis.exceptions import DegenerateData, InvalidParameter
from tamis.neural.embedded import Embedded
from tamis.neural.redundancy import KINDS as KINDS_OF_REDUNDANCY
from tamis.neural.redundancy import Redundancy
from tamis.neural.redundancy import redundancy as dependences

#: Distances shrink to this share at least where a gradient divides by them.
LEAST = 1e-6
#: Shares of ``beta`` by which gates are driven to 0 or 1, one after the other.
STAGES = (0.0, 1.0)
#: Weights of the number of columns are tried up to this one.
HEAVIEST = 1e7
#: How far starting points are from each other.
JITTER = 0.1


class UFeSCoR(Embedded):
    r"""Gates on the columns that keep the distances between rows, with controlled redundancy.

    Minimises over :math:`g_k = e^{-b_k^2}`, for a wanted number r of p columns,

    .. math:: SE + \frac{\alpha}{(p-r)^2}\Big(\sum_k g_k - r\Big)^2
        + \frac{4\beta}{p} \sum_k g_k (1 - g_k)
        + \frac{\gamma}{p(p-1)} \sum_{i \ne j} g_i g_j \rho_{ij}^2

    with Sammon's error of the distances :math:`d_{ij}^2 = \sum_k g_k^2 (x_{ik} - x_{jk})^2` against
    those of all columns, :math:`SE = \frac{1}{\sum d^*_{ij}} \sum_{i<j} (d^*_{ij} - d_{ij})^2 /
    d^*_{ij}`; equal rows have no part in it. Columns are standardised, and ``y`` is ignored. A
    column without variance has a closed gate.

    Parameters
    ----------
    n_features_to_select : int, float or Choice, default=0.5
        The number r, or share, of columns whose gates are widest; ``Threshold(0.5)`` keeps those
        that are as wide, however many, and leaves the term of r out.
    alpha : float, default=3.0
        Weight of the number of columns; raised tenfold until as many gates as wanted are open.
    beta : float, default=0.1
        Weight that drives gates to 0 or 1, after a descent without it.
    gamma : float, default=1.0
        Weight of redundancy; with 0 distances alone decide.
    redundancy : {"pearson", "squared", "information"}, default="squared"
        Dependence of two columns: the absolute correlation, its square, or their normalised mutual
        information; 0 where a column does not vary.
    restarts : int, default=10
        Starting points; kept are the gates whose widest r have the least objective alone.
    max_rows : int, default=200
        Rows whose distances are kept; of more a sample is drawn. A step costs O(rows^2 p).
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    gates_ : array of shape (n_features,)
    alpha_ : float
        The weight that held the number.
    history_ : dict of str to array
        The terms without their weights at each iteration: sammon, size, binary, redundancy.
    rows_ : array of int
        The rows whose distances were looked at.

    See :class:`tamis.selection.Selection` for what else it knows. The value of a step of ``trace_``
    is Sammon's error, with a minus, of the columns that it holds.

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

    def __init__(
        self,
        *,
        n_features_to_select: Any = 0.5,
        alpha: float = 3.0,
        beta: float = 0.1,
        gamma: float = 1.0,
        redundancy: str = "squared",
        restarts: int = 10,
        max_rows: int = 200,
        random_state: Any = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.redundancy = redundancy
        self.restarts = restarts
        self.max_rows = max_rows
        self.random_state = random_state

    def _check(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            weight = getattr(self, name)
            if not (is_real(weight) and weight >= 0):
                raise InvalidParameter(f"UFeSCoR needs {name} as a number >= 0, not {weight!r}.")
        if self.redundancy not in KINDS_OF_REDUNDANCY:
            raise InvalidParameter(
                f"UFeSCoR needs redundancy out of {', '.join(KINDS_OF_REDUNDANCY)}, not "
                f"{self.redundancy!r}."
            )
        for name, least in (("restarts", 1), ("max_rows", 2)):
            number = getattr(self, name)
            if not (is_int(number) and number >= least):
                raise InvalidParameter(
                    f"UFeSCoR needs {name} as an int >= {least}, not {number!r}."
                )
        super()._check()

    def _learn(self, X: Array, y: NDArray[Any] | None, seed: int) -> Iterator[Step]:
        Z = standardised(X)
        self.rows_ = np.arange(len(Z))
        if len(Z) > self.max_rows:
            drawn = stream(seed, "rows").choice(len(Z), self.max_rows, replace=False)
            self.rows_ = np.sort(drawn)
        varying = Z.any(axis=0)
        self.gates_ = np.zeros(Z.shape[1])
        if varying.any():
            self.gates_[varying] = self._gates(Z[:, varying], Z.shape[1], seed)
        else:
            self.alpha_ = float(self.alpha)
            self.history_ = {name: np.empty(0) for name in Objective.TERMS}
            warn("UFeSCoR: no column varies, so all gates stay closed.", DegenerateData, 2)
        return _steps(self.gates_, Z[self.rows_])

    def _gates(self, Z: Array, n_columns: int, seed: int) -> Array:
        """Gates of the columns that vary, from the best of several starting points."""
        asked = self._choice().size(n_columns, "UFeSCoR")
        size = None if asked is None else min(asked, Z.shape[1])
        (phi,) = dependences(self.redundancy, Z)
        descend = partial(self._descended, Z[self.rows_], size, phi)
        best = descend(self.alpha, stream(seed, "start", 0))
        self.alpha_ = float(self.alpha)
        while size is not None and 0 < self.alpha_ < HEAVIEST and not best.holds(size):
            self.alpha_ *= 10
            best = descend(self.alpha_, stream(seed, "start", 0))
        for restart in range(1, self.restarts):
            best = min(best, descend(self.alpha_, stream(seed, "start", restart)))
        self.history_ = dict(zip(Objective.TERMS, best.history.T, strict=True))
        return best.gates

    def _descended(
        self, rows: Array, size: int | None, phi: Redundancy, alpha: float, draw: Any
    ) -> "_Descent":
        """One descent from a starting point of its own."""
        n_columns = rows.shape[1]
        share = 0.5 if size is None else size / n_columns
        # around the gates whose sum is right; at b = 0 the gradient would be 0
        jitter = draw.uniform(1 - JITTER, 1 + JITTER, n_columns)
        point = np.sqrt(-np.log(np.clip(share, 0.001, 0.95))) * jitter
        history: list[tuple[float, ...]] = []
        for stage in STAGES:
            weights = (alpha, stage * self.beta, self.gamma)
            objective = Objective(rows, size, weights, phi, history)
            found = minimize(objective, point, jac=True, method="L-BFGS-B", callback=objective.note)
            point = found.x
        value = float(found.fun) if size is None else objective.of_the_widest(point)
        terms = np.reshape(history, (-1, len(Objective.TERMS)))
        return _Descent(value, np.exp(-(point**2)), terms)


@dataclass(frozen=True)
class _Descent:
    """Where a descent ended: what its widest gates are worth, the gates, the terms on the way."""

    value: float
    gates: Array
    history: Array

    def holds(self, size: int) -> bool:
        """Whether as many gates are open as were asked for."""
        return abs(float(self.gates.sum()) - size) <= 0.5

    def __lt__(self, other: "_Descent") -> bool:
        return self.value < other.value


def _steps(gates: Array, rows: Array) -> Iterator[Step]:
    """Columns added one by one, the widest gate first, with Sammon's error on the way."""
    order, before = best_first(gates), distances(rows)
    squares = np.zeros_like(before)
    for k, j in enumerate(order):
        squares += (rows[:, j, None] - rows[:, j]) ** 2
        value = -_lost(before, np.sqrt(squares))
        yield Step(order[: k + 1], value, moved=order[[k]], prices=gates[[j]])


class Objective:
    """What is minimised, and its gradient, at parameters b of the gates exp(-b^2)."""

    TERMS = ("sammon", "size", "binary", "redundancy")

    def __init__(
        self,
        X: Array,
        size: int | None,
        weights: tuple[float, float, float],
        phi: Redundancy,
        history: list[tuple[float, ...]],
    ):
        self.history = history
        self.X, self.squares, self.phi = X, X**2, phi
        self.size, self.weights = size, weights
        self.before = distances(X)
        self.known = self.before > 0
        self.scale = self.before.sum() / 2 or 1.0  # each pair is there twice; all rows may be equal
        self.terms: tuple[float, ...] = ()

    def note(self, b: Array) -> None:
        """Keep the terms of the point that was looked at last, where an iteration ends."""
        self.history.append(self.terms)

    def of_the_widest(self, b: Array) -> float:
        """The objective with the widest gates open and all others closed."""
        gates = np.zeros(len(b))
        gates[best_first(np.exp(-(b**2)))[: self.size]] = 1
        return self._at(gates)[0]

    def __call__(self, b: Array) -> tuple[float, Array]:
        gates = np.exp(-(b**2))
        value, slope = self._at(gates)
        return value, slope * (-2 * b * gates)

    def _at(self, g: Array) -> tuple[float, Array]:
        """Value and derivative by the gates."""
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
        """Sammon's error and its derivative by each gate.

        With c_ij the derivative by d_ij^2, that by g_k^2 is the sum over pairs of
        c_ij (x_ik - x_jk)^2, which two products with the matrix of c give for all k.
        """
        after = distances(self.X * g)
        before = np.where(self.known, self.before, 1.0)
        lost = np.where(self.known, self.before - after, 0.0)
        error = float((lost**2 / before).sum()) / 2 / self.scale
        c = -lost / (before * np.maximum(after, LEAST * before)) / self.scale
        by_square = c.sum(axis=1) @ self.squares - np.einsum("ij,ij->j", self.X, c @ self.X)
        return error, by_square * 2 * g


def distances(X: Array) -> Array:
    """Euclidean distances between rows; what is only rounding is 0."""
    squares = np.einsum("ij,ij->i", X, X)
    apart = squares[:, None] + squares - 2 * (X @ X.T)
    apart[apart <= 1e-13 * (squares[:, None] + squares)] = 0
    np.fill_diagonal(apart, 0)
    return np.sqrt(apart)


def sammon_error(X: Array, kept: Mask) -> float:
    """Sammon's error of the distances in some columns against those in all.

    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> round(sammon_error(X, np.array([True, False])), 6)
    0.16
    """
    return _lost(distances(X), distances(X[:, kept]))


def _lost(before: Array, after: Array) -> float:
    """Sammon's error of distances; rows that are equal before have no part in it."""
    known = before > 0
    if not known.any():
        return 0.0
    return float(((before - after)[known] ** 2 / before[known]).sum() / before.sum())

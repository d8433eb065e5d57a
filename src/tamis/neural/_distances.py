"""Distances between rows, and what gates on the columns lose of them."""

import numpy as np

from tamis._arrays import Array, Mask, best_first
from tamis.neural.redundancy import Dependence

#: Distances shrink to this share at least where a gradient divides by them: a slope that large
#: opens any gate, and its square is still far from overflow.
LEAST = 1e-6


class SammonObjective:
    """What :class:`UFeSCoR` minimises, and its gradient, at parameters b of the gates exp(-b^2)."""

    TERMS = ("sammon", "size", "binary", "redundancy")

    def __init__(
        self,
        X: Array,
        size: int | None,
        weights: tuple[float, float, float],
        phi: Dependence,
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
    return lost(distances(X), distances(X[:, kept]))


def lost(before: Array, after: Array) -> float:
    """Sammon's error of distances; rows that are equal before have no part in it."""
    known = before > 0
    if not known.any():
        return 0.0
    return float(((before - after)[known] ** 2 / before[known]).sum() / before.sum())

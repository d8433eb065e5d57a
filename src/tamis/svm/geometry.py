"""The span of support vectors, and the smallest sphere around points, in the space of a kernel."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.density.simplex import smallest_sphere

# Condition above which the system counts as singular, and its eigenvalues are looked at.
_SINGULAR = 1e10
# Eigenvalues below this share of the largest count as 0, and are raised to the other.
_ZERO, _RAISED = 1e-12, 1e-18
#: Points that enter the working set at a time, at least.
ENTERING = 50
#: Entering points times points in the set above which the program is solved from scratch.
WORTH_A_START = 20_000
# How far outside a point may lie, as a share of the squared radius and of the largest entry.
_OF_RADIUS, _OF_ENTRIES = 1e-10, 1e-14


class MarginSystem(NamedTuple):
    """Inverse of M = [[K_FF, 1], [1', 0]], F the free vectors.

    Attributes
    ----------
    free : array of int
        F.
    inverse : array
        Pseudo-inverse of M: it answers right where copies leave the answer open.
    stiff : array
        Inverse of M with its zero eigenvalues raised to a tiny number: a vector that depends on
        others has a huge entry on the diagonal, and so a span of 0.
    """

    free: np.ndarray
    inverse: Array
    stiff: Array

    @property
    def alone(self) -> bool:
        """Whether a free vector has no other to be near to."""
        return len(self.free) < 2


def margin_system(K: Array, free: Mask) -> MarginSystem:
    """The system of a machine with these free vectors; K is the kernel matrix of its rows."""
    members = np.flatnonzero(free)
    m = len(members)
    if m == 0:
        return MarginSystem(members, np.zeros((1, 1)), np.zeros((1, 1)))
    M = np.ones((m + 1, m + 1))
    M[:m, :m] = K[np.ix_(members, members)]
    M[m, m] = 0
    return MarginSystem(members, *_inverses(M))


def _inverses(M: Array) -> tuple[Any, Any]:
    """Pseudo-inverse of M, and inverse with the zero eigenvalues raised."""
    try:
        inverse = np.linalg.inv(M)
        if np.linalg.norm(M, 1) * np.linalg.norm(inverse, 1) < _SINGULAR:
            return inverse, inverse
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(M)
    largest = np.abs(values).max()
    kept = np.abs(values) > _ZERO * largest
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    null = vectors[:, ~kept]
    return inverse, inverse + null @ null.T / (_RAISED * largest)


def squared_spans(K: Array, system: MarginSystem) -> Array:
    r"""Squared distance of every row to what the other free support vectors span.

    .. math:: S_p^2 = \frac{1}{(M^{-1})_{pp}} \text{ for } p \in F, \qquad
        S_p^2 = K_{pp} - v'M^{-1}v,\ v = (K_{Fp}, 1) \text{ otherwise}

    Where there is no other free vector, the distance is that to the origin: :math:`K_{pp}`.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> K = points @ points.T
    >>> squared_spans(K, margin_system(K, np.array([False, False, True])))  # distances to the third
    array([9., 4., 9.])
    """
    m, found = len(system.free), K.diagonal().copy()
    if m:
        v = np.vstack([K[system.free], np.ones(len(K))])
        found -= np.einsum("ij,ij->j", v, system.inverse @ v)
        found[system.free] = K.diagonal()[system.free]
    if not system.alone:
        found[system.free] = 1 / system.stiff.diagonal()[:m]
    return np.maximum(found, 0)


def feet(K: Array, system: MarginSystem) -> Array:
    """Vectors e_p with S_p² = e_p'Ke_p: 1 at p, minus the weights of the nearest point elsewhere.

    They are optimal, so the derivative of S_p² is e_p'K'e_p (Danskin). Columns of the answer.
    """
    m, n = len(system.free), len(K)
    found = np.eye(n)
    if m:
        v = np.vstack([K[system.free], np.ones(n)])
        found[system.free] -= (system.inverse @ v)[:m]
        found[:, system.free] = np.eye(n)[:, system.free]
    if not system.alone:
        own = system.stiff[:m, :m]
        found[np.ix_(system.free, system.free)] = own / own.diagonal()
    return found


def followed(system: MarginSystem, moved: Array, n_rows: int) -> Array:
    """How multipliers follow when the kernel changes: dβ for each column of K'β.

    Of free vectors K_F β + b stays what it is and Σβ = 0, so M (dβ_F, db) = -(K'β)_F, 0; the others
    stay on their bounds (the conditions of optimality, differentiated).
    """
    m, found = len(system.free), np.zeros((n_rows, moved.shape[1]))
    if m:
        right = np.vstack([-moved[system.free], np.zeros(moved.shape[1])])
        found[system.free] = (system.inverse @ right)[:m]
    return found


class Sphere(NamedTuple):
    """A sphere in the space of a kernel: its squared radius, and its centre Σ gᵢ φ(xᵢ)."""

    radius2: float
    weights: Array


def sphere_around(K: Array, start: Array | None = None) -> Sphere:
    r"""Smallest sphere that holds all points, given by their kernel matrix.

    .. math:: R^2 = \max_g \sum_i g_i K_{ii} - g'Kg \quad \text{with } g \ge 0,\ \sum_i g_i = 1

    Few points lie on the sphere. The program is solved for a working set, the points that lie
    outside the sphere found enter it, those inside leave, until none is outside: R² of the working
    set is a lower bound, the largest squared distance from its centre an upper one.

    Parameters
    ----------
    K : array of shape (n_points, n_points)
        Kernel matrix; its diagonal may be anything.
    start : array of shape (n_points,), optional
        Weights of a similar sphere.

    Examples
    --------
    >>> points = np.array([[-1.0], [0.5], [3.0]])
    >>> sphere_around(points @ points.T)
    Sphere(radius2=4.0, weights=array([0.5, 0. , 0.5]))
    """
    diagonal = K.diagonal()
    rounding = _OF_ENTRIES * np.abs(diagonal).max()
    work = _farthest(K) if start is None else np.flatnonzero(start)
    weights = None if start is None else start[work]
    largest = -np.inf
    while True:
        radius2, weights = smallest_sphere(K[np.ix_(work, work)], weights)
        towards = K[:, work] @ weights
        outside = diagonal - 2 * towards + weights @ towards[work] - radius2
        outside[work] = -np.inf  # what is left of theirs is rounding
        far = np.flatnonzero(outside > _OF_RADIUS * radius2 + rounding)
        g = np.zeros(len(K))
        g[work] = weights
        if not len(far):
            return Sphere(radius2, g)
        entering = far[np.argsort(-outside[far], kind="stable")][: max(ENTERING, len(work))]
        # none may leave where the radius did not grow, or rounding could make them come and go
        grew = radius2 > largest * (1 + 1e-12)
        largest = max(largest, radius2)
        work = np.union1d(work[weights > 0] if grew else work, entering)
        # from a start points enter one at a time, each by solving a system: not where many must
        weights = g[work] if len(entering) * len(work) <= WORTH_A_START else None


def _farthest(K: Array) -> NDArray[np.intp]:
    """The points farthest from the mean of all."""
    distances = K.diagonal() - 2 * K.mean(axis=1)
    return np.sort(np.argsort(-distances, kind="stable")[:ENTERING])

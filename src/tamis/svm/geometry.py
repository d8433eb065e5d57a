"""Span of the support vectors and smallest enclosing sphere in the feature space of a kernel."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Mask
from tamis.density.simplex import smallest_sphere

# If the condition number of a matrix exceeds this, it is treated as singular, and its inverse is
# computed from its eigenvalues.
_SINGULAR = 1e10
# Eigenvalues smaller than _ZERO times the largest are treated as 0. If the matrix must be
# nonsingular, they are replaced by _RAISED times the largest eigenvalue.
_ZERO, _RAISED = 1e-12, 1e-18
#: Largest number of points that enter the working set at a time. A working set with more points
#: may at most double.
ENTERING = 50
#: If the number of entering points times the size of the working set exceeds this, the next
#: programme is solved from scratch instead of from the current weights.
WORTH_A_START = 20_000
# A point is outside the sphere if its squared distance from the centre exceeds the squared radius
# by more than _OF_RADIUS times the squared radius plus _OF_ENTRIES times the largest kernel value.
_OF_RADIUS, _OF_ENTRIES = 1e-10, 1e-14


class MarginSystem(NamedTuple):
    """Inverses of the matrix M = [[K_FF, 1], [1', 0]], where F are the free support vectors.

    A support vector is free if its multiplier is strictly between 0 and its upper bound.

    Attributes
    ----------
    free : array of int
        Row numbers of the free support vectors F.
    inverse : array
        Pseudo-inverse of M, which exists even if F contains duplicates.
    stiff : array
        Inverse of M after its zero eigenvalues are replaced by a tiny number. If a free vector
        depends linearly on the others, its diagonal entry is huge, so its squared span is about 0.
    """

    free: np.ndarray
    inverse: Array
    stiff: Array

    @property
    def alone(self) -> bool:
        """Whether there are fewer than two free vectors."""
        return len(self.free) < 2


def margin_system(K: Array, free: Mask) -> MarginSystem:
    """Return the margin system of an SVM.

    K is the kernel matrix of the training rows, and ``free`` is the mask of the free vectors.
    """
    members = np.flatnonzero(free)
    m = len(members)
    if m == 0:
        return MarginSystem(members, np.zeros((1, 1)), np.zeros((1, 1)))
    M = np.ones((m + 1, m + 1))
    M[:m, :m] = K[np.ix_(members, members)]
    M[m, m] = 0
    return MarginSystem(members, *_inverses(M))


def _inverses(M: Array) -> tuple[Any, Any]:
    """Return the pseudo-inverse of M, and its inverse after zero eigenvalues become positive."""
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
    r"""Return the squared distance of every row to the span of the other free support vectors.

    .. math:: S_p^2 = \frac{1}{(M^{-1})_{pp}} \text{ for } p \in F, \qquad
        S_p^2 = K_{pp} - v'M^{-1}v,\ v = (K_{Fp}, 1) \text{ otherwise}

    If there is no other free vector, the squared distance to the origin, :math:`K_{pp}`, is used.

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
    """Return a matrix whose column e_p gives the squared span of row p as S_p² = e_p'Ke_p.

    The point of the span nearest to row p is a weighted sum of free vectors. The column e_p has 1
    at row p and minus these weights at the rows of the free vectors. Because the weights minimise
    the distance, the derivative of S_p² is e_p'K'e_p (Danskin's theorem).
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
    """Return the derivatives dβ of the multipliers, one column for each column K'β of ``moved``.

    K' is a derivative of the kernel matrix. dβ follows from the optimality conditions: at the free
    vectors F, K_F β + b is constant, and Σβ = 0. So M (dβ_F, db) = (-(K'β)_F, 0). All other
    multipliers stay on their bounds.
    """
    m, found = len(system.free), np.zeros((n_rows, moved.shape[1]))
    if m:
        right = np.vstack([-moved[system.free], np.zeros(moved.shape[1])])
        found[system.free] = (system.inverse @ right)[:m]
    return found


class Sphere(NamedTuple):
    """A sphere in feature space. Its centre is the sum Σ gᵢ φ(xᵢ) with the weights g."""

    radius2: float
    weights: Array


def sphere_around(K: Array, start: Array | None = None) -> Sphere:
    r"""Compute the smallest enclosing sphere of points, given by their kernel matrix.

    .. math:: R^2 = \max_g \sum_i g_i K_{ii} - g'Kg \quad \text{with } g \ge 0,\ \sum_i g_i = 1

    Few points lie on the sphere, so the programme is solved for a working set of points. Points
    outside the sphere enter the set and points inside leave it, until no point is outside.

    Parameters
    ----------
    K : array of shape (n_points, n_points)
        Kernel matrix, with any diagonal.
    start : array of shape (n_points,), optional
        Weights of a similar sphere, from which the search starts.

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
        outside[work] = -np.inf  # points of the working set can be outside only by rounding
        far = np.flatnonzero(outside > _OF_RADIUS * radius2 + rounding)
        g = np.zeros(len(K))
        g[work] = weights
        if not len(far):
            return Sphere(radius2, g)
        entering = far[np.argsort(-outside[far], kind="stable")][: max(ENTERING, len(work))]
        # points leave only if the radius grew; otherwise, rounding could cause a cycle
        grew = radius2 > largest * (1 + 1e-12)
        largest = max(largest, radius2)
        work = np.union1d(work[weights > 0] if grew else work, entering)
        # a start from the current weights adds one point at a time, which is slow for many points
        weights = g[work] if len(entering) * len(work) <= WORTH_A_START else None


def _farthest(K: Array) -> NDArray[np.intp]:
    """Return the numbers of the :data:`ENTERING` points farthest from the mean of all points."""
    distances = K.diagonal() - 2 * K.mean(axis=1)
    return np.sort(np.argsort(-distances, kind="stable")[:ENTERING])

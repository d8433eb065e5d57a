"""The span of support vectors, from the linear system of those that are free (the elbow)."""

from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Mask

# Condition above which the system counts as singular, and its eigenvalues are looked at.
_SINGULAR = 1e10
# Eigenvalues below this share of the largest count as 0, and are raised to the other.
_ZERO, _RAISED = 1e-12, 1e-18


class Elbow(NamedTuple):
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


def elbow(K: Array, free: Mask) -> Elbow:
    """The elbow of a machine with these free vectors; K is the kernel matrix of its rows."""
    places = np.flatnonzero(free)
    m = len(places)
    if m == 0:
        return Elbow(places, np.zeros((1, 1)), np.zeros((1, 1)))
    M = np.ones((m + 1, m + 1))
    M[:m, :m] = K[np.ix_(places, places)]
    M[m, m] = 0
    return Elbow(places, *_inverses(M))


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


def squared_spans(K: Array, bent: Elbow) -> Array:
    r"""Squared distance of every row to what the other free support vectors span.

    .. math:: S_p^2 = \frac{1}{(M^{-1})_{pp}} \text{ for } p \in F, \qquad
        S_p^2 = K_{pp} - v'M^{-1}v,\ v = (K_{Fp}, 1) \text{ otherwise}

    Where there is no other free vector, the distance is that to the origin: :math:`K_{pp}`.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> K = points @ points.T
    >>> squared_spans(K, elbow(K, np.array([False, False, True])))  # distances to the third
    array([9., 4., 9.])
    """
    m, found = len(bent.free), K.diagonal().copy()
    if m:
        v = np.vstack([K[bent.free], np.ones(len(K))])
        found -= np.einsum("ij,ij->j", v, bent.inverse @ v)
        found[bent.free] = K.diagonal()[bent.free]
    if not bent.alone:
        found[bent.free] = 1 / bent.stiff.diagonal()[:m]
    return np.maximum(found, 0)


def feet(K: Array, bent: Elbow) -> Array:
    """Vectors e_p with S_p² = e_p'Ke_p: 1 at p, minus the weights of the nearest point elsewhere.

    They are optimal, so the derivative of S_p² is e_p'K'e_p (Danskin). Columns of the answer.
    """
    m, n = len(bent.free), len(K)
    found = np.eye(n)
    if m:
        v = np.vstack([K[bent.free], np.ones(n)])
        found[bent.free] -= (bent.inverse @ v)[:m]
        found[:, bent.free] = np.eye(n)[:, bent.free]
    if not bent.alone:
        own = bent.stiff[:m, :m]
        found[np.ix_(bent.free, bent.free)] = own / own.diagonal()
    return found


def followed(bent: Elbow, moved: Array, n_rows: int) -> Array:
    """How multipliers follow when the kernel changes: dβ for each column of K'β.

    On the elbow K_F β + b stays what it is and Σβ = 0, so M (dβ_F, db) = -(K'β)_F, 0; the others
    stay on their bounds (the conditions of optimality, differentiated).
    """
    m, found = len(bent.free), np.zeros((n_rows, moved.shape[1]))
    if m:
        right = np.vstack([-moved[bent.free], np.zeros(moved.shape[1])])
        found[bent.free] = (bent.inverse @ right)[:m]
    return found

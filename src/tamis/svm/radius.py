"""The smallest sphere around many points: the program over the simplex on a working set."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.density.simplex import smallest_sphere

#: Points that enter the working set at a time, at least.
ENTERING = 50
#: Entering points times points in the set above which the program is solved from scratch.
WORTH_A_START = 20_000
# How far outside a point may lie, as a share of the squared radius and of the largest entry.
_OF_RADIUS, _OF_ENTRIES = 1e-10, 1e-14


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

"""Reduced-set densities: Parzen windows on few samples, weighted to lose least."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Subset
from tamis.density.simplex import minimise_on_simplex


def reduced_set(X: Array, sigma: float) -> tuple[Subset, Array]:
    r"""Few of the samples, and weights with which their windows give the density of all.

    The weights minimise the integrated squared error to the true density, up to a constant,

    .. math:: \min_a \tfrac12 a'Qa - a'p, \quad Q_{ij} = N(x_i; x_j, 2\sigma^2),\quad
              p_i = \frac1N \sum_j N(x_i; x_j, \sigma^2)

    over the simplex. Where windows overlap most of the weights are 0.

    References
    ----------
    Girolami and He (2003), Probability density estimation from optimally condensed data samples,
    IEEE Trans. PAMI 25.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> indices, weights = reduced_set(X, 0.5)
    >>> len(indices), round(float(weights.sum()), 6)
    (8, 1.0)
    """
    halves = squareform(np.exp(pdist(X, "sqeuclidean") / (-4 * sigma**2)))
    # Both sides in units of the constant of p, (2 pi sigma^2)^(-d/2); that of Q is 2^(-d/2) times
    # it. What a sample adds to its own p is the same for all, and would drown the rest in many
    # dimensions: it is left out, as the diagonal of ``halves`` is still 0.
    p = (halves**2).mean(axis=1)
    np.fill_diagonal(halves, 1.0)
    weights = minimise_on_simplex(halves * 2.0 ** (-X.shape[1] / 2), p)
    indices = np.flatnonzero(weights)
    return indices, weights[indices]

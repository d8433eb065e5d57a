"""Quadratic programs over the simplex, for reduced-set densities and smallest spheres."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Mask, Subset
from tamis.exceptions import InvalidParameter

# Both constants are relative to the largest coefficient. The gradient, a sum of a few thousand
# terms, has rounding errors of about 1e-13. The tolerance is a hundred times as large. The ridge is
# smaller than the rounding errors and only makes the weights of duplicate points unique.
_TOLERANCE = 1e-11
_RIDGE = 1e-14


def minimise_on_simplex(Q: Array, p: Array, start: Array | None = None) -> Array:
    r"""Return the weights that minimise a quadratic function over the simplex.

    .. math:: \min_a \tfrac12 a'Qa - a'p \quad \text{with } a \ge 0,\ \sum_i a_i = 1

    Accelerated projected gradient steps find approximately which weights are positive. An
    active-set method then solves the problem up to rounding: the gradient is the same for all
    positive weights and not smaller for the others. ``Q`` must be symmetric and positive
    semi-definite. With weights of a similar problem as ``start``, the gradient steps are skipped.

    Examples
    --------
    >>> minimise_on_simplex(np.eye(3), np.array([0.0, 1.0, 1.0])).round(6) + 0
    array([0. , 0.5, 0.5])
    """
    Q, p = np.asarray(Q, dtype=float), np.asarray(p, dtype=float)
    if Q.shape != (len(p), len(p)) or not len(p):
        raise InvalidParameter(
            "minimise_on_simplex needs a square Q and a p of the same length, got shapes "
            f"{Q.shape} and {p.shape}."
        )
    p = p - p.max()  # the weights sum to 1, so a constant changes nothing
    scale = max(np.abs(Q).max(), -p.min())
    if scale == 0 or len(p) == 1:
        return np.full(len(p), 1 / len(p))
    Q, p = Q / scale, p / scale
    if start is not None:
        weights = _refine(Q, p, start)
        gradient = Q @ weights - p
        # a start on duplicate or dependent points may fail
        if gradient.min() >= weights @ gradient - 100 * _TOLERANCE:
            return weights
    return _refine(Q, p, _approximate(Q, p))


def smallest_sphere(K: Array, start: Array | None = None) -> tuple[float, Array]:
    r"""Return the squared radius of the smallest sphere around points, and weights of its centre.

    .. math:: R^2 = \max_g \sum_i g_i K_{ii} - g'Kg

    over the simplex, where K are the inner products of the points. The centre is the mean of the
    points with the weights g. Weights of similar points may be passed as ``start``.

    Examples
    --------
    >>> points = np.array([[-1.0], [0.5], [3.0]])
    >>> smallest_sphere(points @ points.T)[0]
    4.0
    """
    K = np.asarray(K, dtype=float)
    K = K - K[:1] - K[:, :1] + K[0, 0]  # origin at the first point: a distant origin loses digits
    diagonal = K.diagonal()
    weights = minimise_on_simplex(2 * K, diagonal, start)
    return max(float(weights @ diagonal - weights @ K @ weights), 0.0), weights


def project(point: Array) -> Array:
    """Return the nearest point of the simplex (Held, Wolfe and Crowder 1974).

    >>> project(np.array([2.0, 1.5, -1.0]))
    array([0.75, 0.25, 0.  ])
    """
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(point) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(point - excess[last], 0.0)


def _approximate(Q: Array, p: Array) -> Array:
    """Return weights after accelerated projected gradient steps (Beck and Teboulle 2009)."""
    step = 1 / _largest_eigenvalue(Q)
    weights = ahead = np.full(len(p), 1 / len(p))
    momentum = 1.0
    for _ in range(500):
        new = project(ahead - step * (Q @ ahead - p))
        change = new - weights
        if np.abs(change).max() < 1e-9:
            return new
        if (ahead - new) @ change > 0:  # the function increases: restart the momentum
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * change
        weights, momentum = new, faster
    return weights


def _largest_eigenvalue(Q: Array) -> float:
    """Return an estimate of the largest eigenvalue by power iteration, 10 % above its result."""
    vector = np.ones(len(Q)) / np.sqrt(len(Q))
    size = 0.0
    for _ in range(30):
        product = Q @ vector
        size = float(np.linalg.norm(product))
        if size == 0:
            return 1.0
        vector = product / size
    return 1.1 * size


def _refine(Q: Array, p: Array, weights: Array) -> Array:
    """Return the optimum, given nearly optimal weights."""
    weights = _on_support(Q, p, weights > 1e-7 * weights.max())
    for _ in range(10 * len(p)):
        gradient = Q @ weights - p
        least = int(np.argmin(gradient))
        if gradient[least] >= weights @ gradient - _TOLERANCE or weights[least] > 0:
            return weights
        weights = _add_index(Q, p, weights, least)
    return weights


def _on_support(Q: Array, p: Array, support: Mask) -> Array:
    """Return the best weights on a support.

    Indices whose weight is not positive are removed from the support until there are none.
    """
    support = support.copy()
    while True:
        found = _equal_gradient(Q, p, support)
        if (found[support] > 0).all():
            return found
        support &= found > 0


def _add_index(Q: Array, p: Array, weights: Array, entering: int) -> Array:
    """Add an index to the support and improve the weights.

    Indices whose weight falls to 0 are removed from the support.
    """
    support = weights > 0
    support[entering] = True
    while True:
        goal = _equal_gradient(Q, p, support)
        falling = support & (goal <= 0)
        if not falling.any():
            return goal
        share = weights[falling] / np.maximum(weights[falling] - goal[falling], 1e-300)
        weights = weights + share.min() * (goal - weights)
        removed = falling & (weights <= 1e-15)
        removed[np.flatnonzero(falling)[share.argmin()]] = True
        weights[removed] = 0
        support &= ~removed
        weights /= weights.sum()


def _equal_gradient(Q: Array, p: Array, support: Mask) -> Array:
    """Return weights on the support for which the gradient is the same at all its indices.

    The weights sum to 1 and may have any sign. The ridge makes the weights of duplicate points
    unique.
    """
    indices = np.flatnonzero(support)
    m = len(indices)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = Q[np.ix_(indices, indices)] + _RIDGE * np.eye(m)
    system[m, m] = 0
    right = np.append(p[indices], 1.0)
    try:
        solution = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    weights = np.zeros(len(p))
    weights[indices] = solution[:m]
    return weights


def reduced_set(X: Array, sigma: float) -> tuple[Subset, Array]:
    r"""Return indices of a few samples, whose weighted windows approximate the Parzen density.

    The second result is the array of weights, which sum to 1. They minimise an estimate of the
    integrated squared error to the true density, up to a constant,

    .. math:: \min_a \tfrac12 a'Qa - a'p, \quad Q_{ij} = N(x_i; x_j, 2\sigma^2),\quad
              p_i = \frac1N \sum_j N(x_i; x_j, \sigma^2)

    over the simplex. If the windows overlap, most weights are 0.

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
    # Q and p are divided by the constant factor of p, (2 pi sigma^2)^(-d/2). The factor of Q is
    # 2^(-d/2) times as large. The contribution of a sample to its own p is the same for all samples
    # and would dominate in many dimensions. It is left out: the diagonal of ``halves`` is still 0.
    p = (halves**2).mean(axis=1)
    np.fill_diagonal(halves, 1.0)
    weights = minimise_on_simplex(halves * 2.0 ** (-X.shape[1] / 2), p)
    indices = np.flatnonzero(weights)
    return indices, weights[indices]

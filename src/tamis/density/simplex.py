"""Convex quadratic programs over the simplex: reduced-set densities, smallest spheres."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from tamis._arrays import Array, Mask, Subset
from tamis.exceptions import InvalidParameter

# In units of the largest coefficient of the program: the gradient of sums of a few thousand terms
# is rounded to about 1e-13, so what differs by less than this hundredfold is equal; a ridge below
# that rounding decides between copies and changes nothing else.
_TOLERANCE = 1e-11
_RIDGE = 1e-14


def minimise_on_simplex(Q: Array, p: Array, start: Array | None = None) -> Array:
    r"""Weights that minimise a quadratic function over the simplex.

    .. math:: \min_a \tfrac12 a'Qa - a'p \quad \text{with } a \ge 0,\ \sum_i a_i = 1

    Accelerated projected gradients find nearly which weights are positive; an active-set method
    finishes, so that the conditions of optimality hold to rounding: the gradient is equal where
    weights are positive and nowhere less. ``Q`` must be symmetric and positive semi-definite.
    Weights of a similar program, given as ``start``, save the gradient steps.

    Examples
    --------
    >>> minimise_on_simplex(np.eye(3), np.array([0.0, 1.0, 1.0])).round(6) + 0
    array([0. , 0.5, 0.5])
    """
    Q, p = np.asarray(Q, dtype=float), np.asarray(p, dtype=float)
    if Q.shape != (len(p), len(p)) or not len(p):
        raise InvalidParameter(
            f"minimise_on_simplex needs a square Q and a p as long, not {Q.shape} and {p.shape}."
        )
    p = p - p.max()  # the weights sum to 1, so a constant changes nothing
    scale = max(np.abs(Q).max(), -p.min())
    if scale == 0 or len(p) == 1:
        return np.full(len(p), 1 / len(p))
    Q, p = Q / scale, p / scale
    if start is not None:
        found = _finished(Q, p, start)
        gradient = Q @ found - p
        # a start on copies or dependent points may lead astray
        if gradient.min() >= found @ gradient - 100 * _TOLERANCE:
            return found
    return _finished(Q, p, _approached(Q, p))


def smallest_sphere(K: Array, start: Array | None = None) -> tuple[float, Array]:
    r"""Squared radius of the smallest sphere around points given by their inner products.

    .. math:: R^2 = \max_g \sum_i g_i K_{ii} - g'Kg

    over the simplex; the centre is the mean of the points with the weights g, which are returned.
    Those of similar points may be given as ``start``.

    Examples
    --------
    >>> points = np.array([[-1.0], [0.5], [3.0]])
    >>> smallest_sphere(points @ points.T)[0]
    4.0
    """
    K = np.asarray(K, dtype=float)
    K = K - K[:1] - K[:, :1] + K[0, 0]  # the first point as origin: a far one would cost digits
    diagonal = K.diagonal()
    weights = minimise_on_simplex(2 * K, diagonal, start)
    return max(float(weights @ diagonal - weights @ K @ weights), 0.0), weights


def projected(point: Array) -> Array:
    """Nearest point of the simplex (Held, Wolfe and Crowder 1974).

    >>> projected(np.array([2.0, 1.5, -1.0]))
    array([0.75, 0.25, 0.  ])
    """
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(point) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(point - excess[last], 0.0)


def _approached(Q: Array, p: Array, n_steps: int = 500) -> Array:
    """Weights after accelerated projected gradient steps (Beck and Teboulle 2009)."""
    step = 1 / _largest_eigenvalue(Q)
    weights = ahead = np.full(len(p), 1 / len(p))
    momentum = 1.0
    for _ in range(n_steps):
        new = projected(ahead - step * (Q @ ahead - p))
        moved = new - weights
        if np.abs(moved).max() < 1e-9:
            return new
        if (ahead - new) @ moved > 0:  # it runs uphill: start again from here
            momentum = 1.0
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / faster * moved
        weights, momentum = new, faster
    return weights


def _largest_eigenvalue(Q: Array) -> float:
    """An upper estimate by power iteration."""
    vector = np.ones(len(Q)) / np.sqrt(len(Q))
    size = 0.0
    for _ in range(30):
        product = Q @ vector
        size = float(np.linalg.norm(product))
        if size == 0:
            return 1.0
        vector = product / size
    return 1.1 * size


def _finished(Q: Array, p: Array, weights: Array) -> Array:
    """The optimum, from weights that are nearly so."""
    weights = _on_support(Q, p, weights > 1e-7 * weights.max())
    for _ in range(10 * len(p)):
        gradient = Q @ weights - p
        least = int(np.argmin(gradient))
        if gradient[least] >= weights @ gradient - _TOLERANCE or weights[least] > 0:
            return weights
        weights = _descended(Q, p, weights, least)
    return weights


def _on_support(Q: Array, p: Array, support: Mask) -> Array:
    """Best weights on a support, shrunk until all of them are positive."""
    support = support.copy()
    while True:
        found = _equal_gradient(Q, p, support)
        if (found[support] > 0).all():
            return found
        support &= found > 0


def _descended(Q: Array, p: Array, weights: Array, entering: int) -> Array:
    """Better weights on the support and one more index; those that reach 0 on the way leave."""
    support = weights > 0
    support[entering] = True
    while True:
        goal = _equal_gradient(Q, p, support)
        falling = support & (goal <= 0)
        if not falling.any():
            return goal
        share = weights[falling] / np.maximum(weights[falling] - goal[falling], 1e-300)
        weights = weights + share.min() * (goal - weights)
        gone = falling & (weights <= 1e-15)
        gone[np.flatnonzero(falling)[share.argmin()]] = True
        weights[gone] = 0
        support &= ~gone
        weights /= weights.sum()


def _equal_gradient(Q: Array, p: Array, support: Mask) -> Array:
    """Weights summing to 1 on the support, of any sign, where the gradient is equal.

    The ridge decides between copies, whose share of a weight is otherwise free.
    """
    indices = np.flatnonzero(support)
    m = len(indices)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = Q[np.ix_(indices, indices)] + _RIDGE * np.eye(m)
    system[m, m] = 0
    wanted = np.append(p[indices], 1.0)
    try:
        solution = np.linalg.solve(system, wanted)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, wanted, rcond=None)[0]
    found = np.zeros(len(p))
    found[indices] = solution[:m]
    return found


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

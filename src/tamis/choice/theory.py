r"""Bounds from learning theory on the number of columns that a table supports.

The bounds depend on the number of rows N, the VC dimension V of a class of classifiers, and a
probability:

* :func:`shatter_coefficient`, :func:`shatter_bound`: the number of labellings of N points;
* :func:`vc_of_perceptron`, :func:`vc_of_mlp`, :func:`vc_of_margin`: the VC dimension;
* :func:`deviation_bound`, :func:`vc_confidence`: the difference between training and true error;
* :func:`sample_complexity`: a number of rows that suffices for a given accuracy;
* :func:`structural_risk`: the training error plus the VC confidence, for nested classes.

They hold for every distribution of the data, so they are wide. They can rank models, but they do
not estimate an error. The functions :func:`aic`, :func:`bic` and :func:`ebic` are not bounds, but
penalised likelihoods.
"""

from math import comb, e, exp, floor, log, log2, sqrt
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from tamis._arrays import Array, is_int
from tamis._checks import check_values, integer, number, one_of
from tamis.exceptions import InvalidParameter

#: Divisor of N eps^2 in the exponent of each bound of :func:`deviation_bound`.
DEVIATIONS = {"uniform": 32, "excess": 128}
#: Smallest epsilon of :func:`sample_complexity`. Below it, the number of rows would overflow.
CLOSEST = 1e-140
PROBABILITY = number(above=0, below=1)


class Range(NamedTuple):
    """Lower and upper bound on a number."""

    lower: int
    upper: int


def shatter_coefficient(n_samples: int, n_features: int) -> int:
    """Return the number of labellings of N points that a hyperplane can make (Cover 1965).

    For points in general position and l columns, it is 2 sum_{i=0}^{l} C(N - 1, i). If N <= l + 1,
    this is 2^N, the number of all labellings.

    >>> shatter_coefficient(3, 2), shatter_coefficient(4, 2)
    (8, 14)
    """
    _check_counts("shatter_coefficient", n_samples=n_samples, n_features=n_features)
    return 2 * sum(comb(n_samples - 1, i) for i in range(n_features + 1))


def shatter_bound(n_samples: int, vc_dimension: int, *, tight: bool = False) -> int:
    """Return a bound on the number of labellings of N points by a class of VC dimension V.

    It is 2^N if N <= V, and N^V + 1 otherwise. With ``tight``, it is the smaller bound
    sum_{i=0}^{V} C(N, i) (Sauer 1972).

    >>> shatter_bound(10, 3), shatter_bound(10, 3, tight=True), shatter_bound(3, 3)
    (1001, 176, 8)
    """
    _check_counts("shatter_bound", n_samples=n_samples, vc_dimension=vc_dimension)
    n, dimension = int(n_samples), int(vc_dimension)  # numpy integers would overflow
    if n <= dimension:
        return int(2**n)
    if tight:
        return sum(comb(n, i) for i in range(dimension + 1))
    return int(n**dimension + 1)


def vc_of_perceptron(n_features: int) -> int:
    """Return the VC dimension l + 1 of hyperplanes with an intercept in l columns.

    >>> vc_of_perceptron(2)
    3
    """
    _check_counts("vc_of_perceptron", n_features=n_features)
    return n_features + 1


def vc_of_mlp(n_features: int, n_hidden: int, *, n_nodes: int, n_weights: int) -> Range:
    """Return bounds on the VC dimension V of a network of threshold units.

    For l columns, k_h hidden nodes, k_n nodes and k_w weights, they are
    2 floor(k_h / 2) l <= V <= 2 k_w log2(e k_n) (Baum and Haussler 1989). The upper bound is
    rounded down, because V is an integer. Some lecture notes have the ceiling of k_h / 2 in the
    lower bound, but it is proved for the floor.

    >>> vc_of_mlp(10, 5, n_nodes=6, n_weights=61)
    Range(lower=40, upper=491)
    """
    _check_counts("vc_of_mlp", n_features=n_features, n_hidden=n_hidden)
    _check_counts("vc_of_mlp", n_nodes=n_nodes, n_weights=n_weights)
    upper = floor(2 * n_weights * log2(e * n_nodes))
    return Range(2 * (n_hidden // 2) * n_features, upper)


def vc_of_margin(radius: float, squared_norm: float, n_features: int) -> int:
    """Return a bound on the VC dimension of hyperplanes with a margin, min(r^2 c, l) + 1.

    All points lie in a ball of radius r, and their outputs are at least 1 in absolute value. The
    weights w satisfy ``|w|^2 <= c``, and l is the number of columns. If the margin is wide, the
    bound does not grow with l. Some lecture notes omit the + 1, which is due to the intercept
    (Vapnik 1998).

    >>> vc_of_margin(2.0, 1.5, 1000)
    7
    """
    _check_counts("vc_of_margin", n_features=n_features)
    positive = dict.fromkeys(("radius", "squared_norm"), number(above=0))
    check_values("vc_of_margin", positive, radius=radius, squared_norm=squared_norm)
    return int(min(float(radius) * float(radius) * squared_norm, n_features)) + 1


def deviation_bound(
    n_samples: int, vc_dimension: int, epsilon: float, *, of: str = "uniform"
) -> float:
    """Return a bound on the probability that an error deviates by more than epsilon.

    The bound is at most 1. Below, S is the value of :func:`shatter_bound`.

    Parameters
    ----------
    n_samples, vc_dimension : int
        Number of rows N and VC dimension V.
    epsilon : float
        The deviation.
    of : {"uniform", "excess"}, default="uniform"
        Kind of deviation. "uniform" is the largest difference between training error and true error
        over the class. Its bound is 8 S exp(-N eps^2 / 32). "excess" is the difference between the
        true errors of two classifiers of the class: the one with the smallest training error, and
        the one with the smallest true error. Its bound is 8 S exp(-N eps^2 / 128).

    Examples
    --------
    >>> round(deviation_bound(100_000, 3, 0.15, of="uniform"), 15)
    2e-15
    >>> deviation_bound(100, 3, 0.1)
    1.0
    """
    _check_counts("deviation_bound", n_samples=n_samples, vc_dimension=vc_dimension)
    limits = {"epsilon": number(above=0), "of": one_of(*DEVIATIONS)}
    check_values("deviation_bound", limits, epsilon=epsilon, of=of)
    log_bound = log(8 * shatter_bound(n_samples, vc_dimension))
    log_bound -= n_samples * epsilon**2 / DEVIATIONS[of]
    return exp(min(log_bound, 0.0))


def sample_complexity(vc_dimension: int, epsilon: float, rho: float) -> int:
    """Return a number of rows that suffices for a true error within epsilon of the best one.

    With this number of rows, the error is that close with probability 1 - rho. The number is
    max(512 V / eps^2 ln(256 V / eps^2), 256 / eps^2 ln(8 / rho)), rounded up.

    >>> sample_complexity(3, 0.1, 0.05)
    1727841
    """
    _check_counts("sample_complexity", vc_dimension=vc_dimension)
    limits = {"epsilon": number(least=CLOSEST), "rho": PROBABILITY}
    check_values("sample_complexity", limits, epsilon=epsilon, rho=rho)
    grown = 512 * vc_dimension / epsilon**2 * log(256 * vc_dimension / epsilon**2)
    return int(np.ceil(max(grown, 256 / epsilon**2 * log(8 / rho))))


def vc_confidence(n_samples: int, vc_dimension: int, rho: float = 0.05) -> float:
    """Return the VC confidence, the amount by which the true error may exceed the training error.

    With probability 1 - rho the true error is at most the training error plus
    Phi = sqrt((V (ln(2 N / V) + 1) - ln(rho / 4)) / N). Phi is infinite if V >= 2 N. This is the
    form of Vapnik (1998). Some lecture notes have the + 1 inside the logarithm and multiply
    ln(rho / 4) by V.

    >>> round(vc_confidence(1000, 10), 4)
    0.2595
    """
    _check_counts("vc_confidence", n_samples=n_samples, vc_dimension=vc_dimension)
    check_values("vc_confidence", {"rho": PROBABILITY}, rho=rho)
    if vc_dimension >= 2 * n_samples:
        return float("inf")
    wide = vc_dimension * (log(2 * n_samples / vc_dimension) + 1) - log(rho / 4)
    return sqrt(wide / n_samples)


def structural_risk(
    errors: ArrayLike, vc_dimensions: ArrayLike, n_samples: int, rho: float = 0.05
) -> Array:
    """Return the sum of training error and :func:`vc_confidence` for each of several classes.

    The classes are nested. Structural risk minimisation selects the class with the smallest sum.

    >>> structural_risk([0.30, 0.11, 0.10], [2, 3, 40], 5000).round(2)
    array([0.37, 0.19, 0.33])
    """
    own, dimensions = np.asarray(errors, dtype=float), np.asarray(vc_dimensions)
    if own.ndim != 1 or own.shape != dimensions.shape:
        raise InvalidParameter(
            "structural_risk needs an error and a VC dimension of each class, two lists of the "
            f"same length, not of shapes {own.shape} and {dimensions.shape}."
        )
    return own + [vc_confidence(n_samples, v, rho) for v in dimensions]


def aic(log_likelihood: float, n_parameters: int) -> float:
    """Return Akaike's information criterion, -2 L + 2 K. Smaller is better.

    L is the log-likelihood, and K is the number of parameters.

    >>> aic(-10.0, 3)
    26.0
    """
    _check_likelihood("aic", log_likelihood, n_parameters)
    return -2 * log_likelihood + 2 * n_parameters


def bic(log_likelihood: float, n_parameters: int, n_samples: int) -> float:
    """Return the Bayesian information criterion, -2 L + K ln N. Smaller is better.

    L is the log-likelihood, K is the number of parameters, and N is the number of samples.

    >>> round(bic(-10.0, 3, 100), 3)
    33.816
    """
    _check_likelihood("bic", log_likelihood, n_parameters)
    _check_counts("bic", n_samples=n_samples)
    return -2 * log_likelihood + n_parameters * log(n_samples)


def ebic(
    log_likelihood: float, n_parameters: int, n_samples: int, n_kept: int, n_features: int
) -> float:
    """Return the extended Bayesian criterion, :func:`bic` + 2 ln C(d, k) (Chen and Chen 2008).

    The second term is a penalty for selecting k of d columns.

    >>> round(ebic(-10.0, 3, 100, 2, 50), 3)
    48.037
    """
    if not (is_int(n_kept) and is_int(n_features) and 0 <= n_kept <= n_features):
        raise InvalidParameter(
            f"ebic needs n_kept as an int from 0 to n_features, not {n_kept!r} of {n_features!r}."
        )
    among = gammaln(n_features + 1) - gammaln(n_kept + 1) - gammaln(n_features - n_kept + 1)
    return bic(log_likelihood, n_parameters, n_samples) + 2 * float(among)


def most_columns(n_samples: int) -> int:
    """Return the largest number of columns by a rule of thumb: less than a third of the rows.

    >>> most_columns(100)
    33
    """
    _check_counts("most_columns", n_samples=n_samples)
    return max(1, (n_samples - 1) // 3)


def _check_counts(name: str, **numbers: int) -> None:
    check_values(name, dict.fromkeys(numbers, integer(1)), **numbers)


def _check_likelihood(name: str, log_likelihood: float, n_parameters: int) -> None:
    # the log-likelihood is infinite if a model fits perfectly, so infinity is allowed
    if isinstance(log_likelihood, bool) or not isinstance(log_likelihood, Real):
        raise InvalidParameter(f"{name} needs log_likelihood as a number, not {log_likelihood!r}.")
    check_values(name, {"n_parameters": integer(0)}, n_parameters=n_parameters)

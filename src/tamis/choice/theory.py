r"""What theory says of how many columns a table can bear.

Plain functions of the number of rows N, the VC dimension V of a class of classifiers and a
probability: how many labellings a class can make (:func:`shatter_coefficient`), how far an error
on the training rows may be from the truth (:func:`deviation_bound`, :func:`vc_confidence`), how
many rows suffice (:func:`sample_complexity`), and what follows for nested subsets of columns
(:func:`structural_risk`). :func:`aic`, :func:`bic` and :func:`ebic` penalise a likelihood.

All bounds but the last three hold for every distribution, which makes them wide: they order
models, and are no estimates of an error.
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

#: Exponents of the two bounds on deviations: N eps^2 over this.
DEVIATIONS = {"uniform": 32, "excess": 128}


#: Differences of errors below this ask for more rows than a number can hold.
CLOSEST = 1e-140
PROBABILITY = number(above=0, below=1)


class Range(NamedTuple):
    """What a number lies between."""

    lower: int
    upper: int


def shatter_coefficient(n_samples: int, n_features: int) -> int:
    """Labellings of N points in general position that a hyperplane can make (Cover 1965).

    2 sum_{i=0}^{l} C(N - 1, i) for l columns; all 2^N of them while N <= l + 1.

    >>> shatter_coefficient(3, 2), shatter_coefficient(4, 2)
    (8, 14)
    """
    _check_counts("shatter_coefficient", n_samples=n_samples, n_features=n_features)
    return 2 * sum(comb(n_samples - 1, i) for i in range(n_features + 1))


def shatter_bound(n_samples: int, vc_dimension: int, *, tight: bool = False) -> int:
    """The most labellings of N points that a class of VC dimension V can make.

    2^N up to V, and N^V + 1 beyond; with ``tight`` the smaller sum_{i=0}^{V} C(N, i) (Sauer 1972).

    >>> shatter_bound(10, 3), shatter_bound(10, 3, tight=True), shatter_bound(3, 3)
    (1001, 176, 8)
    """
    _check_counts("shatter_bound", n_samples=n_samples, vc_dimension=vc_dimension)
    n, dimension = int(n_samples), int(vc_dimension)  # numbers of numpy would come round again
    if n <= dimension:
        return int(2**n)
    if tight:
        return sum(comb(n, i) for i in range(dimension + 1))
    return int(n**dimension + 1)


def vc_of_perceptron(n_features: int) -> int:
    """VC dimension of a hyperplane with an intercept in l columns: l + 1.

    >>> vc_of_perceptron(2)
    3
    """
    _check_counts("vc_of_perceptron", n_features=n_features)
    return n_features + 1


def vc_of_mlp(n_features: int, n_hidden: int, *, n_nodes: int, n_weights: int) -> Range:
    """What the VC dimension of a network of threshold units lies between.

    2 floor(k_h / 2) l <= V <= 2 k_w log2(e k_n) for k_h hidden nodes, k_n nodes and k_w weights.
    The upper bound is rounded down, since V is a whole number. Lecture notes print the ceiling of
    k_h / 2 in the lower bound, which is proved for the floor (Baum and
    Haussler 1989).

    >>> vc_of_mlp(10, 5, n_nodes=6, n_weights=61)
    Range(lower=40, upper=491)
    """
    _check_counts("vc_of_mlp", n_features=n_features, n_hidden=n_hidden)
    _check_counts("vc_of_mlp", n_nodes=n_nodes, n_weights=n_weights)
    upper = floor(2 * n_weights * log2(e * n_nodes))
    return Range(2 * (n_hidden // 2) * n_features, upper)


def vc_of_margin(radius: float, squared_norm: float, n_features: int) -> int:
    """Bound on the VC dimension of hyperplanes with a margin: min(r^2 c, l) + 1.

    Points lie in a ball of radius r, and ``|w|^2 <= c`` where every row is at least 1 away; the
    bound does not grow with the number of columns once the margin is wide. Lecture notes print it
    without the + 1, which belongs to the intercept (Vapnik 1998).

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
    """Probability that an error is further off than epsilon, at most (1 where it says nothing).

    Parameters
    ----------
    n_samples, vc_dimension : int
    epsilon : float
    of : {"uniform", "excess"}, default="uniform"
        The largest difference of training and true error over the class,
        8 S exp(-N eps^2 / 32); or how much worse the classifier with the least training error is
        than the best of its class, 8 S exp(-N eps^2 / 128). S is :func:`shatter_bound`.

    Examples
    --------
    >>> round(deviation_bound(100_000, 3, 0.15, of="uniform"), 15)
    2e-15
    >>> deviation_bound(100, 3, 0.1)
    1.0
    """
    _check_counts("deviation_bound", n_samples=n_samples, vc_dimension=vc_dimension)
    asked = {"epsilon": number(above=0), "of": one_of(*DEVIATIONS)}
    check_values("deviation_bound", asked, epsilon=epsilon, of=of)
    log_bound = log(8 * shatter_bound(n_samples, vc_dimension))
    log_bound -= n_samples * epsilon**2 / DEVIATIONS[of]
    return exp(min(log_bound, 0.0))


def sample_complexity(vc_dimension: int, epsilon: float, rho: float) -> int:
    """Rows that bring a trained classifier within epsilon of the best, with probability 1 - rho.

    max(512 V / eps^2 ln(256 V / eps^2), 256 / eps^2 ln(8 / rho)), rounded up.

    >>> sample_complexity(3, 0.1, 0.05)
    1727841
    """
    _check_counts("sample_complexity", vc_dimension=vc_dimension)
    asked = {"epsilon": number(least=CLOSEST), "rho": PROBABILITY}
    check_values("sample_complexity", asked, epsilon=epsilon, rho=rho)
    grown = 512 * vc_dimension / epsilon**2 * log(256 * vc_dimension / epsilon**2)
    return int(np.ceil(max(grown, 256 / epsilon**2 * log(8 / rho))))


def vc_confidence(n_samples: int, vc_dimension: int, rho: float = 0.05) -> float:
    """What to add to a training error so that, with probability 1 - rho, the truth is below.

    Phi = sqrt((V (ln(2 N / V) + 1) - ln(rho / 4)) / N); infinite where V >= 2 N, of which the
    bound says nothing. Lecture notes print the + 1 inside the logarithm and ln(rho / 4) multiplied
    by V; this is the form of Vapnik (1998).

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
    """Training error and :func:`vc_confidence` of each of some nested classes.

    Structural risk minimisation takes the class of the least.

    >>> structural_risk([0.30, 0.11, 0.10], [2, 3, 40], 5000).round(2)
    array([0.37, 0.19, 0.33])
    """
    own, dimensions = np.asarray(errors, dtype=float), np.asarray(vc_dimensions)
    if own.ndim != 1 or own.shape != dimensions.shape:
        raise InvalidParameter(
            "structural_risk needs an error and a VC dimension of each class, two lists of one "
            f"length, not of shapes {own.shape} and {dimensions.shape}."
        )
    return own + [vc_confidence(n_samples, v, rho) for v in dimensions]


def aic(log_likelihood: float, n_parameters: int) -> float:
    """Akaike's criterion, -2 L + 2 K; the model of the least is taken.

    >>> aic(-10.0, 3)
    26.0
    """
    _check_likelihood("aic", log_likelihood, n_parameters)
    return -2 * log_likelihood + 2 * n_parameters


def bic(log_likelihood: float, n_parameters: int, n_samples: int) -> float:
    """The Bayesian criterion, -2 L + K ln N.

    >>> round(bic(-10.0, 3, 100), 3)
    33.816
    """
    _check_likelihood("bic", log_likelihood, n_parameters)
    _check_counts("bic", n_samples=n_samples)
    return -2 * log_likelihood + n_parameters * log(n_samples)


def ebic(
    log_likelihood: float, n_parameters: int, n_samples: int, n_kept: int, n_features: int
) -> float:
    """The extended Bayesian criterion: :func:`bic` + 2 ln C(d, k) (Chen and Chen 2008).

    It pays for having looked among all subsets of k of d columns.

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
    """A hint of practice, no rule: fewer columns than a third of the rows.

    >>> most_columns(100)
    33
    """
    _check_counts("most_columns", n_samples=n_samples)
    return max(1, (n_samples - 1) // 3)


def _check_counts(name: str, **numbers: int) -> None:
    check_values(name, dict.fromkeys(numbers, integer(1)), **numbers)


def _check_likelihood(name: str, log_likelihood: float, n_parameters: int) -> None:
    # infinite where a model fits wholly
    if isinstance(log_likelihood, bool) or not isinstance(log_likelihood, Real):
        raise InvalidParameter(f"{name} needs log_likelihood as a number, not {log_likelihood!r}.")
    check_values(name, {"n_parameters": integer(0)}, n_parameters=n_parameters)

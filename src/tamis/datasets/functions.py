"""Synthetic problems whose target is a function of a few columns."""

from typing import Any

import numpy as np
from scipy.special import ndtr

from tamis._checks import BOOLEAN, integer, one_of
from tamis._seeds import Seed
from tamis.datasets.problem import LEVEL, SHARE, Floats, Problem, begin, make_problem

#: Number of relevant columns of :func:`make_decoys`, and number of decoys of each relevant column.
N_RELEVANT, DECOYS_OF_EACH = 5, 2


def make_additive(
    n_samples: int = 200, *, random_state: Seed = None, n_features: int = 10, noise: float = 0.1
) -> Problem:
    """Make a regression target that is a sum of functions of five single columns.

    All columns are uniform on [0, 1], and the target is

    ``y = 0.1 exp(4 x1) + 4 / (1 + exp(-20 (x2 - 1/2))) + 3 x3 + 2 x4 + x5 + noise``

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=10
        Number of columns, at least 5.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part
        of y.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 to 4.

    References
    ----------
    Friedman (1991), Multivariate adaptive regression splines.
    Yang (2011), Feature selection and model selection for supervised learning algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_additive
    >>> make_additive(100, random_state=0).relevant
    array([0, 1, 2, 3, 4])
    """
    rng = begin("make_additive", locals(), n_features=integer(5), noise=LEVEL)
    X = rng.uniform(size=(n_samples, n_features))
    step = 4 / (1 + np.exp(-20 * (X[:, 1] - 0.5)))
    y = 0.1 * np.exp(4 * X[:, 0]) + step + 3 * X[:, 2] + 2 * X[:, 3] + X[:, 4]
    return _regression(X, y, noise, rng, 5)


def make_interactive(
    n_samples: int = 200,
    *,
    random_state: Seed = None,
    n_features: int = 10,
    noise: float = 0.1,
    square: bool = True,
) -> Problem:
    """Make a regression target with an interaction of two columns.

    All columns are uniform on [0, 1], and the target is

    ``y = 10 sin(π x1 x2) + 20 (x3 - 1/2)² + 10 x4 + 5 x5 + noise``

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=10
        Number of columns, at least 5.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part
        of y.
    square : bool, default=True
        Whether to use Friedman's function. False uses ``20 (x3 - 1/2)`` without the square, as in
        Yang (2011). This makes the problem much easier.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 to 4.

    References
    ----------
    Friedman (1991), Multivariate adaptive regression splines.
    Yang (2011), Feature selection and model selection for supervised learning algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_interactive
    >>> X, y, *_ = make_interactive(100, random_state=0)
    >>> X.shape, y.shape
    ((100, 10), (100,))
    """
    rng = begin("make_interactive", locals(), n_features=integer(5), noise=LEVEL, square=BOOLEAN)
    X = rng.uniform(size=(n_samples, n_features))
    return _regression(X, _friedman(X.T, 2 if square else 1), noise, rng, 5)


def _friedman(x: Floats, power: int = 2) -> Floats:
    """Return Friedman's function of five columns on [0, 1], which are the first rows of ``x``."""
    return 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** power + 10 * x[3] + 5 * x[4]


def make_exponential(
    n_samples: int = 200, *, random_state: Seed = None, n_features: int = 10, noise: float = 0.2
) -> Problem:
    """Make a regression target that is a Gaussian bump over two columns.

    All columns are uniform on [-1, 1], and the target is

    ``y = 10 exp(-(x1² + x2²)) + noise``

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=10
        Number of columns, at least 2.
    noise : float, default=0.2
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part
        of y.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 and 1.

    References
    ----------
    Yang (2011), Feature selection and model selection for supervised learning algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_exponential
    >>> make_exponential(100, random_state=0).relevant
    array([0, 1])
    """
    rng = begin("make_exponential", locals(), n_features=integer(2), noise=LEVEL)
    X = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    return _regression(X, 10 * np.exp(-(X[:, 0] ** 2 + X[:, 1] ** 2)), noise, rng, 2)


def _regression(X: Floats, y: Floats, noise: float, rng: Any, n_relevant: int) -> Problem:
    return make_problem(X, y + noise * rng.standard_normal(len(X)), range(n_relevant))


def make_decoys(
    n_samples: int = 250,
    *,
    random_state: Seed = None,
    n_features: int = 50,
    task: str = "classification",
    correlation: float = 0.9,
    noise: float = 1.0,
) -> Problem:
    """Make five relevant columns, two correlated decoys of each, and irrelevant columns.

    Let u be the relevant columns after transformation to [0, 1]. Friedman's function f is
    ``10 sin(π u1 u2) + 20 (u3 - 1/2)² + 10 u4 + 5 u5``. For regression, the target is f + noise.
    For classification, class 1 contains the rows in which f + noise is above its median. The
    columns are in random order.

    Parameters
    ----------
    n_samples : int, default=250
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=50
        Number of columns, at least 15. All columns are standard Gaussian.
    task : {"classification", "regression"}, default="classification"
        Kind of the target.
    correlation : float, default=0.9
        Correlation of a decoy with its relevant column.
    noise : float, default=1.0
        Standard deviation of the Gaussian noise added to f.

    Returns
    -------
    Problem
        The problem. Decoys are treated as irrelevant.

    References
    ----------
    Friedman (1991), Multivariate adaptive regression splines.

    Examples
    --------
    >>> from tamis.datasets import make_decoys
    >>> problem = make_decoys(100, random_state=0)
    >>> problem.X.shape, problem.relevant
    ((100, 50), array([ 4, 26, 28, 30, 44]))
    """
    least = N_RELEVANT * (1 + DECOYS_OF_EACH)
    rng = begin(
        "make_decoys",
        locals(),
        n_samples=integer(2),
        n_features=integer(least),
        task=one_of("classification", "regression"),
        correlation=SHARE,
        noise=LEVEL,
    )
    X = rng.standard_normal((n_samples, n_features))
    relevant = X[:, :N_RELEVANT]
    decoys = X[:, N_RELEVANT:least]  # a view
    decoys *= np.sqrt(1 - correlation**2)
    decoys += correlation * np.tile(relevant, DECOYS_OF_EACH)
    y = _friedman(ndtr(relevant.T)) + noise * rng.standard_normal(n_samples)
    order = rng.permutation(n_features)
    where = np.sort(np.argsort(order)[:N_RELEVANT])
    target = y if task == "regression" else (y > np.median(y)).astype(np.int64)
    return make_problem(X[:, order], target, where.tolist())

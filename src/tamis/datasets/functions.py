"""Problems of regression: functions of a few columns."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.datasets.problem import (
    Floats,
    Problem,
    begin,
    check_choice,
    check_count,
    check_level,
    made_problem,
)


def make_additive(
    n_samples: int = 200, *, random_state: Any = None, n_features: int = 10, noise: float = 0.1
) -> Problem:
    """Regression on a sum of five one-column functions, columns uniform on [0, 1].

    ``y = 0.1 exp(4 x1) + 4 / (1 + exp(-20 (x2 - 1/2))) + 3 x3 + 2 x4 + x5 + noise``

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 5.
    noise : float
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part.

    Returns
    -------
    Problem
        With ``relevant`` 0 to 4.

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
    return _regression("make_additive", n_samples, random_state, n_features, noise, _additive, 5)


def _additive(x: Floats) -> Floats:
    step = 4 / (1 + np.exp(-20 * (x[1] - 0.5)))
    return 0.1 * np.exp(4 * x[0]) + step + 3 * x[2] + 2 * x[3] + x[4]


def make_interactive(
    n_samples: int = 200,
    *,
    random_state: Any = None,
    n_features: int = 10,
    noise: float = 0.1,
    square: bool = True,
) -> Problem:
    """Regression with a product of two columns, columns uniform on [0, 1].

    ``y = 10 sin(π x1 x2) + 20 (x3 - 1/2)² + 10 x4 + 5 x5 + noise``

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 5.
    noise : float
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part.
    square : bool
        Friedman's function; False for ``20 (x3 - 1/2)`` without the square, as printed by Yang,
        which is much the easier problem.

    Returns
    -------
    Problem
        With ``relevant`` 0 to 4.

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
    check_choice("make_interactive", "square", square, (True, False))
    function = _interactive if square else _interactive_linear
    return _regression("make_interactive", n_samples, random_state, n_features, noise, function, 5)


def _interactive(x: Floats) -> Floats:
    return 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]


def _interactive_linear(x: Floats) -> Floats:
    return 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) + 10 * x[3] + 5 * x[4]


def make_exponential(
    n_samples: int = 200, *, random_state: Any = None, n_features: int = 10, noise: float = 0.2
) -> Problem:
    """Regression on a bump over two columns, columns uniform on [-1, 1].

    ``y = 10 exp(-(x1² + x2²)) + noise``

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 2.
    noise : float
        Standard deviation of the Gaussian noise in y. It changes neither X nor the noise-free part.

    Returns
    -------
    Problem
        With ``relevant`` 0 and 1.

    References
    ----------
    Yang (2011), Feature selection and model selection for supervised learning algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_exponential
    >>> make_exponential(100, random_state=0).relevant
    array([0, 1])
    """
    return _regression(
        "make_exponential", n_samples, random_state, n_features, noise, _exponential, 2, low=-1.0
    )


def _exponential(x: Floats) -> Floats:
    return 10 * np.exp(-(x[0] ** 2 + x[1] ** 2))


def _regression(
    maker: str,
    n_samples: int,
    random_state: Any,
    n_features: int,
    noise: float,
    function: Callable[[Floats], Floats],
    n_relevant: int,
    low: float = 0.0,
) -> Problem:
    """``y = function(columns) + noise`` on columns uniform between ``low`` and 1."""
    n, rng = begin(maker, n_samples, random_state)
    check_count(maker, "n_features", n_features, least=n_relevant, example=10)
    check_level(maker, "noise", noise, example=0.1)
    X = rng.uniform(low, 1.0, (n, n_features))
    y = function(X.T) + noise * rng.standard_normal(n)
    return made_problem(X, y, range(n_relevant))

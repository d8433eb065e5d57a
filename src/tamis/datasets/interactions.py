"""Problems of columns that matter together: rings, exclusive ors and sums among uniform noise."""

from typing import Any

import numpy as np

from tamis.datasets.problem import Floats, Problem, begin, check_choice, check_count, made_problem

#: Columns that matter in each problem.
RELEVANT = {"ring": 2, "xor": 2, "ring+xor": 4, "ring+xor+sum": 6}


def make_interactions(
    n_samples: int = 1000,
    *,
    random_state: Any = None,
    n_features: int = 8,
    problem: str = "ring",
) -> Problem:
    """Classes by a ring, an exclusive or, a sum, or any of them, on uniform columns.

    All columns are uniform on [0, 1]; with x1 to x6 the first of them, class 1 is

    * ring: ``abs(hypot(x1 - 1/2, x2 - 1/2) - 0.35) <= 0.1151``;
    * xor: ``(x1 - 1/2) (1/2 - x2) >= 0``;
    * ring+xor: the ring with 0.0704, or ``(x3 - 1/2) (1/2 - x4) >= 0.0337``;
    * ring+xor+sum: the ring with 0.0479, the product above with 0.0598, or ``x5 + x6 + e >=
      1.4074`` with Gaussian e of deviation 0.2.

    Half of the rows are of each class, nearly. In a ring and an exclusive or no column tells of the
    class alone, or hardly.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns; those behind the relevant ones are noise.
    problem : {"ring", "xor", "ring+xor", "ring+xor+sum"}

    Returns
    -------
    Problem
        With ``relevant`` the first 2, 2, 4 or 6.

    References
    ----------
    Passemiers, Folco, Raimondi, Birolo, Moreau and Fariselli (2024), A quantitative benchmark of
    neural network feature selection methods for detecting nonlinear signals, Scientific Reports 14.

    Examples
    --------
    >>> from tamis.datasets import make_interactions
    >>> problem = make_interactions(random_state=0, n_features=16, problem="ring+xor")
    >>> problem.X.shape, problem.relevant
    ((1000, 16), array([0, 1, 2, 3]))
    """
    name = "make_interactions"
    n, rng = begin(name, n_samples, random_state)
    check_choice(name, "problem", problem, tuple(RELEVANT))
    n_relevant = RELEVANT[problem]
    check_count(name, "n_features", n_features, least=n_relevant, example=8)
    X = rng.random((n, n_features))
    x, noise = X.T, rng.normal(0, 0.2, n)
    if problem == "ring":
        y = _ring(x, 0.1151)
    elif problem == "xor":
        y = _product(x[0], x[1]) >= 0
    elif problem == "ring+xor":
        y = _ring(x, 0.0704) | (_product(x[2], x[3]) >= 0.0337)
    else:
        y = _ring(x, 0.0479) | (_product(x[2], x[3]) >= 0.0598)
        y |= x[4] + x[5] + noise >= 1.4074
    return made_problem(X, y.astype(np.int64), range(n_relevant))


def _ring(x: Floats, width: float) -> Any:
    return np.abs(np.hypot(x[0] - 0.5, x[1] - 0.5) - 0.35) <= width


def _product(first: Floats, second: Floats) -> Any:
    return (first - 0.5) * (0.5 - second)

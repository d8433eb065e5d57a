"""A problem with decoys: columns that resemble the relevant ones and add nothing to them."""

from typing import Any

import numpy as np
from scipy.special import ndtr

from tamis.datasets.functions import friedman
from tamis.datasets.problem import (
    Problem,
    begin,
    check_choice,
    check_count,
    check_level,
    made_problem,
)

N_RELEVANT, DECOYS_OF_EACH = 5, 2


def make_decoys(
    n_samples: int = 250,
    *,
    random_state: Any = None,
    n_features: int = 50,
    task: str = "classification",
    correlation: float = 0.9,
    noise: float = 1.0,
) -> Problem:
    """Five relevant columns, two decoys of each that are correlated with it, and irrelevant ones.

    With u the relevant columns brought to [0, 1], and f Friedman's function
    ``10 sin(π u1 u2) + 20 (u3 - 1/2)² + 10 u4 + 5 u5``, the target is f + noise, or whether that is
    above its median. The columns are in random order.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 15; all are standard Gaussian.
    task : {"classification", "regression"}
        What the target is.
    correlation : float
        Of a decoy with its relevant column.
    noise : float
        Standard deviation of the Gaussian noise in f.

    Returns
    -------
    Problem
        Whose decoys count as irrelevant.

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
    name = "make_decoys"
    n, rng = begin(name, n_samples, random_state, least=2)
    least = N_RELEVANT * (1 + DECOYS_OF_EACH)
    check_count(name, "n_features", n_features, least=least, example=50)
    check_choice(name, "task", task, ("classification", "regression"))
    check_level(name, "correlation", correlation, most=1, example=0.9)
    check_level(name, "noise", noise, example=1.0)
    X = rng.standard_normal((n, n_features))
    relevant = X[:, :N_RELEVANT]
    decoys = X[:, N_RELEVANT:least]  # a view
    decoys *= np.sqrt(1 - correlation**2)
    decoys += correlation * np.tile(relevant, DECOYS_OF_EACH)
    y = friedman(ndtr(relevant.T)) + noise * rng.standard_normal(n)
    order = rng.permutation(n_features)
    where = np.sort(np.argsort(order)[:N_RELEVANT])
    target = y if task == "regression" else (y > np.median(y)).astype(np.int64)
    return made_problem(X[:, order], target, where.tolist())

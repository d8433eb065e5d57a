"""Problems of Gaussian clusters: classes that several columns tell apart together."""

from typing import Any

import numpy as np

from tamis._checks import integer
from tamis.datasets.problem import (
    LEVEL,
    SHARE,
    Floats,
    Ints,
    Problem,
    balance,
    begin,
    flip,
    make_problem,
)


def make_weston(
    n_samples: int = 200, *, random_state: Any = None, n_features: int = 10, noise: float = 20.0
) -> Problem:
    """Two classes of two Gaussian clumps each in the first two columns; the rest is noise.

    Class 0 has its centres at ±(3/4, 3), class 1 at ±(3, -3), all with unit covariance. The second
    column alone says nothing, the first little; no line separates the classes. Their sizes differ
    by at most one row, as in the experiments of the literature.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 2.
    noise : float
        Standard deviation of the irrelevant columns. Whether the published N(0, 20) gives a
        deviation or a variance does not matter once columns are standardised.

    Returns
    -------
    Problem
        With ``relevant`` 0 and 1.

    References
    ----------
    Weston, Mukherjee, Chapelle, Pontil, Poggio and Vapnik (2000), Feature selection for SVMs.
    Shen, Ong, Li and Wilder-Smith (2008), Feature selection via sensitivity analysis of SVM
    probabilistic outputs.

    Examples
    --------
    >>> from tamis.datasets import make_weston
    >>> X, y, relevant, _ = make_weston(100, random_state=0)
    >>> X.shape, relevant
    ((100, 10), array([0, 1]))
    """
    rng = begin("make_weston", locals(), n_features=integer(2), noise=LEVEL)
    y = balance(rng, n_samples, 2)
    side = rng.choice([-1.0, 1.0], size=(n_samples, 1))
    X = rng.standard_normal((n_samples, n_features))
    X[:, 2:] *= noise
    X[:, :2] += side * np.array([[0.75, 3.0], [3.0, -3.0]])[y]
    return make_problem(X, y, range(2))


# Class means in units of the separation. Columns 2 and 3 split {1,2} 3 {4,5} and {1,3} 2 {4,5}:
# groups of the same sizes at the same distances, hence the same worth.
_STEPS = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [2, 1, 0, 0], [3, 2, 2, -0.5], [3, 2, 2, 0.5]])


def make_complementary(
    n_samples: int = 500, *, random_state: Any = None, separation: float = 6.0
) -> Problem:
    """Four columns and five classes, where the two best columns are not the best two.

    With classes numbered from 1: the first column separates 1, 2, 3 and {4, 5}; the second
    {1, 2}, 3, {4, 5} and the third {1, 3}, 2, {4, 5}; the fourth 4 from 5, the others lying over
    both. Alone ``J(x1) > J(x2) = J(x3) > J(x4)``, yet only ``{x1, x4}`` tells all five apart: the
    worst column holds the one thing that the best lacks.

    Parameters
    ----------
    n_samples : int
        Number of rows, shared out evenly among the classes.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    separation : float
        Distance of neighbouring groups in standard deviations.

    Returns
    -------
    Problem
        With ``relevant`` 0 and 3, and y from 0 to 4.

    References
    ----------
    Cover (1974), The best two independent measurements are not the two best.
    Kavousi, Feature selection (lectures, University of Tehran).

    Examples
    --------
    >>> from tamis.datasets import make_complementary
    >>> X, y, relevant, _ = make_complementary(random_state=0)
    >>> X.shape, relevant
    ((500, 4), array([0, 3]))
    """
    rng = begin("make_complementary", locals(), separation=LEVEL)
    y = balance(rng, n_samples, 5)
    X = rng.standard_normal((n_samples, 4))
    # wide enough to lie over classes 4 and 5 whatever their distance
    X[y < 3, 3] *= max(1.0, separation / 2)
    return make_problem(X + separation * _STEPS[y], y, (0, 3))


# Correlations (1,2), (1,3), (2,3) inside each class as published. The means are ours: they give
# the published correlations over all rows, and a second column that is useful but not needed.
_CLASS_CORRELATIONS = (
    (0.99083612, 0.96333222, 0.9515664),
    (0.98955383, 0.95429516, 0.9470847),
    (0.98866423, 0.96633191, 0.9584851),
)
_CLASS_MEANS = ((0.0, 0.0, 0.0), (2.48, 2.50, -7.86), (-6.73, 2.10, 1.85))


def make_class_redundancy(n_samples: int = 600, *, random_state: Any = None) -> Problem:
    """Three columns and classes, redundant inside every class and mostly not overall.

    Inside each class all columns are correlated at 0.95 to 0.99; over all rows the absolute
    correlations are 0.09 (1, 2), 0.19 (2, 3) and 0.72 (1, 3). Columns 1 and 3 separate the classes
    perfectly, so a penalty on the overall correlation takes the wrong pair and one on the
    correlation inside classes does not. The correlations inside classes hold exactly in the sample.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 12, shared out evenly among the classes.
    random_state : int, None, Generator or RandomState
        Source of the draws.

    Returns
    -------
    Problem
        With ``relevant`` 0 and 2.

    References
    ----------
    Varshney (2019), Feature selection with multi layer perceptron using approximate L0-norm and
    redundancy control.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.datasets import make_class_redundancy
    >>> X, y, *_ = make_class_redundancy(random_state=0)
    >>> [round(float(np.corrcoef(rows[:, :2].T)[0, 1]), 2) for rows in (X, X[y == 0])]
    [0.09, 0.99]
    """
    # four rows are the fewest whose three columns can be made uncorrelated
    rng = begin("make_class_redundancy", locals(), n_samples=integer(12))
    y = balance(rng, n_samples, 3)
    X = rng.standard_normal((n_samples, 3))
    for k in range(3):
        X[y == k] = _correlated(X[y == k], *_CLASS_CORRELATIONS[k]) + _CLASS_MEANS[k]
    return make_problem(X, y, (0, 2))


def _correlated(Z: Floats, r12: float, r13: float, r23: float) -> Floats:
    """``Z`` moved to mean 0, variance 1 and the given correlations, exactly, in this sample."""
    Z = Z - Z.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(Z.T @ Z / len(Z)), Z.T)
    target = np.array([[1.0, r12, r13], [r12, 1.0, r23], [r13, r23, 1.0]])
    return (np.linalg.cholesky(target) @ white).T


def make_madelon(
    n_samples: int = 2000,
    *,
    random_state: Any = None,
    n_informative: int = 5,
    n_redundant: int = 5,
    n_repeated: int = 10,
    n_probes: int = 480,
    separation: float = 2.0,
    noise: float = 0.01,
) -> Problem:
    """Two classes on the corners of a hypercube, hidden among many random probes.

    A Gaussian clump sits on each of the ``2 ** n_informative`` corners ``±separation``, squeezed by
    a random matrix; half the corners, at random, are class 1. Redundant columns are random
    combinations of the informative ones, repeated columns are copies of either, probes are N(0, 1).
    The columns are in random order.

    Parameters
    ----------
    n_samples : int
        Number of rows, shared out evenly among the corners.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_informative, n_redundant, n_repeated, n_probes : int
        Numbers of columns; 1 to 12 informative ones.
    separation : float
        Half the side of the hypercube.
    noise : float
        Share of the rows whose class is wrong.

    Returns
    -------
    Problem
        With ``relevant`` all columns but the probes, as is usual for these data, although as many
        independent ones as are informative hold everything; ``equivalent`` groups equal columns.

    References
    ----------
    Guyon, Gunn, Ben-Hur and Dror (2004), Result analysis of the NIPS 2003 feature selection
    challenge.

    Examples
    --------
    >>> from tamis.datasets import make_madelon
    >>> X, y, relevant, _ = make_madelon(600, random_state=0)
    >>> X.shape, len(relevant)
    ((600, 500), 20)
    """
    rng = begin(
        "make_madelon",
        locals(),
        n_informative=integer(1, 12),
        n_redundant=integer(0),
        n_repeated=integer(0),
        n_probes=integer(0),
        separation=LEVEL,
        noise=SHARE,
    )
    core, y = _hypercube(rng, n_samples, n_informative, separation)
    useful = np.hstack([core, core @ rng.uniform(-1, 1, (n_informative, n_redundant))])
    origin = np.arange(useful.shape[1])
    origin = np.append(origin, rng.choice(origin, n_repeated))
    ordered = np.hstack([useful[:, origin], rng.standard_normal((n_samples, n_probes))])
    index = rng.permutation(ordered.shape[1])
    relevant = sorted(index[: len(origin)])
    origin_at = dict(zip(index, origin, strict=False))
    equivalent = [[j for j in relevant if origin_at[j] == origin_at[i]] for i in relevant]
    return make_problem(ordered[:, np.argsort(index)], flip(rng, y, noise), relevant, equivalent)


def _hypercube(rng: np.random.Generator, n: int, k: int, separation: float) -> tuple[Floats, Ints]:
    """``n`` rows around the corners of a ``k``-dimensional cube, and the class of each corner."""
    corner = balance(rng, n, 2**k)
    label = balance(rng, 2**k, 2)
    sign = 2 * (corner[:, None] >> np.arange(k) & 1) - 1
    squeeze = rng.uniform(-1, 1, (2**k, k, k))
    normal = rng.standard_normal((n, k))
    return np.einsum("ni,nij->nj", normal, squeeze[corner]) + separation * sign, label[corner]

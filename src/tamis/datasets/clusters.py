"""Synthetic classification problems with Gaussian clusters."""

import numpy as np

from tamis._checks import integer
from tamis._seeds import Seed
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
    n_samples: int = 200, *, random_state: Seed = None, n_features: int = 10, noise: float = 20.0
) -> Problem:
    """Make two classes, each with two Gaussian clusters in the first two columns.

    The cluster centres of class 0 are ±(3/4, 3), and those of class 1 are ±(3, -3). All clusters
    have unit covariance. All other columns are noise. The second column alone is not informative,
    and the first column alone is hardly informative. No line separates the classes. The class sizes
    differ by at most one row, as in the published experiments.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=10
        Number of columns, at least 2.
    noise : float, default=20.0
        Standard deviation of the irrelevant columns, which were published as N(0, 20). It has no
        effect if the columns are standardised.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 and 1.

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


# Mean of each class (row) in each column, in units of the separation. Column 2 separates the groups
# {1,2}, 3, {4,5}, and column 3 separates {1,3}, 2, {4,5}. Both groupings have the same sizes and
# distances, so the two columns are equally good.
_STEPS = np.array([[0, 0, 0, 0], [1, 0, 1, 0], [2, 1, 0, 0], [3, 2, 2, -0.5], [3, 2, 2, 0.5]])


def make_complementary(
    n_samples: int = 500, *, random_state: Seed = None, separation: float = 6.0
) -> Problem:
    """Make five classes and four columns. The two best single columns are not the best pair.

    With classes numbered from 1, the columns separate the following groups:

    * x1: 1, 2, 3 and {4, 5};
    * x2: {1, 2}, 3 and {4, 5};
    * x3: {1, 3}, 2 and {4, 5};
    * x4: 4 and 5. The other classes overlap both of them.

    The separability J of single columns is ``J(x1) > J(x2) = J(x3) > J(x4)``, but only the pair
    ``{x1, x4}`` separates all five classes.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows, split evenly among the classes.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    separation : float, default=6.0
        Distance between neighbouring groups, in standard deviations.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 and 3, and y from 0 to 4.

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
    # classes 1 to 3 are wide enough to overlap classes 4 and 5 at any separation
    X[y < 3, 3] *= max(1.0, separation / 2)
    return make_problem(X + separation * _STEPS[y], y, (0, 3))


# Published correlations of the column pairs (1,2), (1,3), (2,3) within each class. The class means
# are not published. The means used here reproduce the published correlations over all rows. They
# make the second column informative but redundant.
_CLASS_CORRELATIONS = (
    (0.99083612, 0.96333222, 0.9515664),
    (0.98955383, 0.95429516, 0.9470847),
    (0.98866423, 0.96633191, 0.9584851),
)
_CLASS_MEANS = ((0.0, 0.0, 0.0), (2.48, 2.50, -7.86), (-6.73, 2.10, 1.85))


def make_class_redundancy(n_samples: int = 600, *, random_state: Seed = None) -> Problem:
    """Make three columns that are redundant within each of three classes, but mostly not overall.

    Within each class, all columns have correlations from 0.95 to 0.99. Over all rows, the absolute
    correlations are 0.09 (columns 1 and 2), 0.19 (2 and 3) and 0.72 (1 and 3). Columns 1 and 3
    together separate the classes perfectly. So a penalty on the overall correlation selects the
    wrong pair. A penalty on the correlation within classes selects the right pair. The within-class
    correlations are exact in the sample.

    Parameters
    ----------
    n_samples : int, default=600
        Number of rows, at least 12, split evenly among the classes.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 and 2.

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
    # making three columns uncorrelated needs at least four rows per class
    rng = begin("make_class_redundancy", locals(), n_samples=integer(12))
    y = balance(rng, n_samples, 3)
    X = rng.standard_normal((n_samples, 3))
    for k in range(3):
        X[y == k] = _correlated(X[y == k], *_CLASS_CORRELATIONS[k]) + _CLASS_MEANS[k]
    return make_problem(X, y, (0, 2))


def _correlated(Z: Floats, r12: float, r13: float, r23: float) -> Floats:
    """Transform ``Z`` to mean 0, variance 1 and exactly the given correlations in the sample."""
    Z = Z - Z.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(Z.T @ Z / len(Z)), Z.T)
    target = np.array([[1.0, r12, r13], [r12, 1.0, r23], [r13, r23, 1.0]])
    return (np.linalg.cholesky(target) @ white).T


def make_madelon(
    n_samples: int = 2000,
    *,
    random_state: Seed = None,
    n_informative: int = 5,
    n_redundant: int = 5,
    n_repeated: int = 10,
    n_probes: int = 480,
    separation: float = 2.0,
    noise: float = 0.01,
) -> Problem:
    """Make two classes on the corners of a hypercube, with many irrelevant columns (probes).

    Each of the ``2 ** n_informative`` corners ``±separation`` is the centre of a Gaussian cluster,
    which is transformed by a random matrix. A random half of the corners is class 1. Redundant
    columns are random linear combinations of the informative columns. Repeated columns are
    duplicates of informative or redundant columns. Probes are N(0, 1). The columns are in random
    order.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of rows, split evenly among the corners.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_informative, n_redundant, n_repeated, n_probes : int
        Number of columns of each kind: by default 5, 5, 10 and 480. ``n_informative`` must be from
        1 to 12.
    separation : float, default=2.0
        Half the side of the hypercube.
    noise : float, default=0.01
        Share of the rows whose class is flipped.

    Returns
    -------
    Problem
        The problem. As usual for these data, ``relevant`` contains all columns except the probes,
        although ``n_informative`` independent columns suffice. ``equivalent`` groups duplicate
        columns.

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
    """Draw ``n`` rows around the corners of a ``k``-dimensional cube, and their classes."""
    corner = balance(rng, n, 2**k)
    label = balance(rng, 2**k, 2)
    sign = 2 * (corner[:, None] >> np.arange(k) & 1) - 1
    squeeze = rng.uniform(-1, 1, (2**k, k, k))
    normal = rng.standard_normal((n, k))
    return np.einsum("ni,nij->nj", normal, squeeze[corner]) + separation * sign, label[corner]

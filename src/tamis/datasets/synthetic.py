"""Problems whose relevant columns are known, to measure whether a method finds them.

Every maker takes ``n_samples`` and ``random_state`` (an integer, None, a generator) and returns a
:class:`Problem`. The same integer gives the same problem. Classes are numbered from 0.
"""

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Problem(NamedTuple):
    """A problem with a known answer.

    A ranking answers it if its first ``len(relevant)`` columns hold one member of every group in
    ``equivalent``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The features, float64.
    y : ndarray of shape (n_samples,)
        Class numbers (int64), or a real target (float64).
    relevant : ndarray of int
        The columns that matter, ascending.
    equivalent : tuple of tuple of int
        Parallel to ``relevant``: the columns that may stand for ``relevant[i]`` without any loss,
        itself included, ascending. A column without a copy is alone in its group.

    Examples
    --------
    >>> from tamis.datasets import make_corral
    >>> problem = make_corral(variant=46, random_state=0)
    >>> problem.relevant
    array([0, 1, 2, 3])
    >>> problem.equivalent
    ((0, 4), (1, 11), (2, 18), (3, 25))
    """

    X: Floats
    y: NDArray[Any]
    relevant: NDArray[np.intp]
    equivalent: tuple[tuple[int, ...], ...]


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
    n, rng = _begin("make_weston", n_samples, random_state)
    _check_count("make_weston", "n_features", n_features, least=2, example=10)
    _check_level("make_weston", "noise", noise, example=20.0)
    y = _balanced(rng, n, 2)
    side = rng.choice([-1.0, 1.0], size=(n, 1))
    X = rng.standard_normal((n, n_features))
    X[:, 2:] *= noise
    X[:, :2] += side * np.array([[0.75, 3.0], [3.0, -3.0]])[y]
    return _problem(X, y, range(2))


def make_corral(n_samples: int = 128, *, random_state: Any = None, variant: int = 6) -> Problem:
    """Boolean concept ``(A0 and A1) or (B0 and B1)`` among redundant and irrelevant columns.

    Columns, all 0 or 1:

    * Corral-6: ``A0 A1 B0 B1``, an irrelevant one, and one that agrees with y on 3/4 of the rows;
    * Corral-46: ``A0 A1 B0 B1``; for each of them seven copies that agree with it on 16/16, 15/16,
      ..., 10/16 of the rows; fourteen irrelevant columns, which are copies of only two;
    * Corral-47: Corral-46 and the column that agrees with y on 3/4 of the rows.

    The share of disagreeing rows is exact up to rounding, their choice random. Of one seed,
    Corral-46 is the first 46 columns of Corral-47. The perfect copy of a relevant column is its
    equivalent, the imperfect ones are not.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    variant : {6, 46, 47}
        Number of columns.

    Returns
    -------
    Problem
        With ``relevant`` 0 to 3.

    References
    ----------
    John, Kohavi and Pfleger (1994), Irrelevant features and the subset selection problem.
    Yu and Liu (2004), Efficient feature selection via analysis of relevance and redundancy.

    Examples
    --------
    >>> from tamis.datasets import make_corral
    >>> X, y, *_ = make_corral(random_state=0, variant=47)
    >>> X.shape, bool(((X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0) == y).all())
    ((128, 47), True)
    """
    n, rng = _begin("make_corral", n_samples, random_state)
    _check_choice("make_corral", "variant", variant, (6, 46, 47))
    causes = rng.integers(2, size=(n, 4))
    y = causes[:, 0] & causes[:, 1] | causes[:, 2] & causes[:, 3]
    columns = [causes, rng.integers(2, size=(n, 1)) if variant == 6 else _corral_noise(rng, causes)]
    if variant != 46:
        columns.append(_flipped(rng, y, 1 / 4)[:, None])
    equivalent = None if variant == 6 else tuple((j, 4 + 7 * j) for j in range(4))
    return _problem(np.hstack(columns), y, range(4), equivalent)


def _corral_noise(rng: np.random.Generator, causes: Ints) -> Ints:
    """The 28 redundant and 14 irrelevant columns that Yu and Liu add."""
    copies = [_flipped(rng, cause, k / 16) for cause in causes.T for k in range(7)]
    irrelevant = rng.integers(2, size=(len(causes), 2))
    return np.hstack([np.column_stack(copies), irrelevant[:, np.arange(14) % 2]])


# The rules as published, on columns x1 to x6, and the columns (from 0) that each depends on.
_MONKS: dict[int, tuple[Callable[[Ints], NDArray[np.bool_]], tuple[int, ...]]] = {
    1: (lambda x: (x[0] == x[1]) | (x[4] == 1), (0, 1, 4)),
    2: (lambda x: (x == 1).sum(axis=0) == 2, (0, 1, 2, 3, 4, 5)),
    3: (lambda x: (x[4] == 3) & (x[3] == 1) | (x[4] != 4) & (x[1] != 3), (1, 3, 4)),
}


def make_monks(
    n_samples: int = 432, *, random_state: Any = None, problem: int = 1, noise: float = 0.0
) -> Problem:
    """Logical concepts on six nominal columns of 3, 3, 2, 3, 4 and 2 values, coded from 1.

    Class 1 is, with columns named x1 to x6,

    * MONK-1: ``x1 = x2`` or ``x5 = 1``;
    * MONK-2: exactly two of the six columns are 1;
    * MONK-3: (``x5 = 3`` and ``x4 = 1``) or (``x5 ≠ 4`` and ``x2 ≠ 3``).

    Rows are drawn without replacement: 432 of them are the whole domain once, in random order, and
    more begin it again.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    problem : {1, 2, 3}
        Which concept.
    noise : float
        Share of the rows whose class is wrong. The published training part of MONK-3 has 0.05.

    Returns
    -------
    Problem
        With ``relevant`` 0, 1, 4 or all six or 1, 3, 4.

    References
    ----------
    Thrun et al. (1991), The MONK's problems: a performance comparison of different learning
    algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_monks
    >>> X, y, relevant, _ = make_monks(problem=3, random_state=0)
    >>> len(X), int(y.sum()), relevant
    (432, 228, array([1, 3, 4]))
    """
    n, rng = _begin("make_monks", n_samples, random_state)
    _check_choice("make_monks", "problem", problem, tuple(_MONKS))
    _check_level("make_monks", "noise", noise, most=1.0, example=0.05)
    rule, relevant = _MONKS[problem]
    domain = 1 + np.indices((3, 3, 2, 3, 4, 2)).reshape(6, -1)
    rounds = [rng.permutation(432) for _ in range(-(-n // 432))]
    values = domain[:, np.concatenate(rounds)[:n]]
    return _problem(values.T, _flipped(rng, rule(values).astype(np.int64), noise), relevant)


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
    _check_choice("make_interactive", "square", square, (True, False))
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


def make_xor(
    n_samples: int = 200, *, random_state: Any = None, n_features: int = 10, spread: float = 0.3
) -> Problem:
    """Four Gaussian clumps in the corners of a square, opposite corners in the same class.

    Every column is ``±1 + spread · N(0, 1)``; class 0 has equal signs in the first two columns,
    class 1 opposite ones. The four corners differ by at most one row. As all columns have the same
    distribution, in either class, none says anything alone.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    random_state : int, None, Generator or RandomState
        Source of the draws.
    n_features : int
        Number of columns, at least 2 (the picture of the textbooks).
    spread : float
        Standard deviation of a clump.

    Returns
    -------
    Problem
        With ``relevant`` 0 and 1.

    References
    ----------
    Guyon and Elisseeff (2003), An introduction to variable and feature selection.
    Yang (2011), Feature selection and model selection for supervised learning algorithms.

    Examples
    --------
    >>> from tamis.datasets import make_xor
    >>> X, y, *_ = make_xor(random_state=0, spread=0.0)
    >>> bool(((X[:, 0] * X[:, 1] < 0) == y).all())
    True
    """
    n, rng = _begin("make_xor", n_samples, random_state)
    _check_count("make_xor", "n_features", n_features, least=2, example=10)
    _check_level("make_xor", "spread", spread, example=0.3)
    corner = _balanced(rng, n, 4)
    high = np.column_stack([corner & 1, corner >> 1, rng.integers(2, size=(n, n_features - 2))])
    X = 2 * high - 1 + spread * rng.standard_normal((n, n_features))
    return _problem(X, high[:, 0] ^ high[:, 1], range(2))


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
    n, rng = _begin("make_complementary", n_samples, random_state)
    _check_level("make_complementary", "separation", separation, example=6.0)
    y = _balanced(rng, n, 5)
    X = rng.standard_normal((n, 4))
    # wide enough to lie over classes 4 and 5 whatever their distance
    X[y < 3, 3] *= max(1.0, separation / 2)
    return _problem(X + separation * _STEPS[y], y, (0, 3))


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
    n, rng = _begin("make_class_redundancy", n_samples, random_state, least=12)
    y = _balanced(rng, n, 3)
    X = rng.standard_normal((n, 3))
    for k in range(3):
        X[y == k] = _correlated(X[y == k], *_CLASS_CORRELATIONS[k]) + _CLASS_MEANS[k]
    return _problem(X, y, (0, 2))


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
    n, rng = _begin("make_madelon", n_samples, random_state)
    _check_count("make_madelon", "n_informative", n_informative, most=12, example=5)
    _check_count("make_madelon", "n_redundant", n_redundant, least=0, example=5)
    _check_count("make_madelon", "n_repeated", n_repeated, least=0, example=10)
    _check_count("make_madelon", "n_probes", n_probes, least=0, example=480)
    _check_level("make_madelon", "separation", separation, example=2.0)
    _check_level("make_madelon", "noise", noise, most=1.0, example=0.01)
    core, y = _hypercube(rng, n, n_informative, separation)
    useful = np.hstack([core, core @ rng.uniform(-1, 1, (n_informative, n_redundant))])
    origin = np.arange(useful.shape[1])
    origin = np.append(origin, rng.choice(origin, n_repeated))
    ordered = np.hstack([useful[:, origin], rng.standard_normal((n, n_probes))])
    place = rng.permutation(ordered.shape[1])
    relevant = sorted(place[: len(origin)])
    origin_at = dict(zip(place, origin, strict=False))
    equivalent = [[j for j in relevant if origin_at[j] == origin_at[i]] for i in relevant]
    return _problem(ordered[:, np.argsort(place)], _flipped(rng, y, noise), relevant, equivalent)


def _hypercube(rng: np.random.Generator, n: int, k: int, separation: float) -> tuple[Floats, Ints]:
    """``n`` rows around the corners of a ``k``-dimensional cube, and the class of each corner."""
    corner = _balanced(rng, n, 2**k)
    label = _balanced(rng, 2**k, 2)
    sign = 2 * (corner[:, None] >> np.arange(k) & 1) - 1
    squeeze = rng.uniform(-1, 1, (2**k, k, k))
    normal = rng.standard_normal((n, k))
    return np.einsum("ni,nij->nj", normal, squeeze[corner]) + separation * sign, label[corner]


# What the makers share: draws, then checks.


def _regression(
    who: str,
    n_samples: int,
    random_state: Any,
    n_features: int,
    noise: float,
    function: Callable[[Floats], Floats],
    n_relevant: int,
    low: float = 0.0,
) -> Problem:
    """``y = function(columns) + noise`` on columns uniform between ``low`` and 1."""
    n, rng = _begin(who, n_samples, random_state)
    _check_count(who, "n_features", n_features, least=n_relevant, example=10)
    _check_level(who, "noise", noise, example=0.1)
    X = rng.uniform(low, 1.0, (n, n_features))
    y = function(X.T) + noise * rng.standard_normal(n)
    return _problem(X, y, range(n_relevant))


def _balanced(rng: np.random.Generator, n: int, k: int) -> Ints:
    """``n`` numbers below ``k`` in random order, each equally often up to one."""
    return rng.permutation(np.arange(n, dtype=np.int64) % k)


def _flipped(rng: np.random.Generator, bits: Ints, share: float) -> Ints:
    """``bits`` with exactly this share of them, up to rounding, turned around."""
    chosen = rng.permutation(len(bits)) < round(share * len(bits))
    return bits ^ chosen


def _problem(
    X: NDArray[Any],
    y: NDArray[Any],
    relevant: Sequence[int],
    equivalent: Collection[Collection[int]] | None = None,
) -> Problem:
    groups = [(j,) for j in relevant] if equivalent is None else equivalent
    return Problem(
        np.ascontiguousarray(X, dtype=np.float64),
        y,
        np.array(relevant, dtype=np.intp),
        tuple(tuple(int(j) for j in group) for group in groups),
    )


def _begin(
    who: str, n_samples: int, random_state: Any, least: int = 1
) -> tuple[int, np.random.Generator]:
    _check_count(who, "n_samples", n_samples, least=least, example=200)
    try:
        return int(n_samples), np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{who} needs random_state to be a non-negative integer, None, a Generator or a "
            f"RandomState; got {random_state!r}. Write {who}(random_state=0)."
        ) from error


def _check_count(
    who: str, name: str, value: Any, *, example: int, least: int = 1, most: float = inf
) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        bounds = f"at least {least}" + ("" if most == inf else f" and at most {most}")
        raise InvalidParameter(
            f"{who} needs {name} to be an integer of {bounds}; got {value!r}. "
            f"Write {who}({name}={example})."
        )


def _check_level(who: str, name: str, value: Any, *, example: float, most: float = inf) -> None:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not 0 <= value <= most or value == inf:
        bounds = "not below 0" if most == inf else f"between 0 and {most:g}"
        raise InvalidParameter(
            f"{who} needs {name} to be a finite number {bounds}; got {value!r}. "
            f"Write {who}({name}={example})."
        )


def _check_choice(who: str, name: str, value: Any, options: Sequence[Any]) -> None:
    plain = value.item() if isinstance(value, np.generic) else value
    # by type too: 1 == True and 6 == 6.0, but neither was meant
    if not any(type(plain) is type(option) and plain == option for option in options):
        raise InvalidParameter(
            f"{who} needs {name} to be one of {', '.join(map(repr, options))}; got {value!r}. "
            f"Write {who}({name}={options[0]!r})."
        )

"""Synthetic problems with interactions: logical rules, XOR, rings and sums.

Interacting columns are informative only in combination.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._checks import integer, one_of
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

#: Number of relevant columns in each problem of :func:`make_interactions`.
RELEVANT = {"ring": 2, "xor": 2, "ring+xor": 4, "ring+xor+sum": 6}


def make_corral(n_samples: int = 128, *, random_state: Seed = None, variant: int = 6) -> Problem:
    """Make the classes ``(A0 and A1) or (B0 and B1)``, with redundant and irrelevant columns.

    All columns are 0 or 1:

    * Corral-6: ``A0 A1 B0 B1``, an irrelevant column, and a column that agrees with y on 3/4 of the
      rows;
    * Corral-46: ``A0 A1 B0 B1``; for each of these, seven columns that agree with it on 16/16,
      15/16, ..., 10/16 of the rows; and fourteen irrelevant columns, of which only two are
      distinct;
    * Corral-47: Corral-46 and a column that agrees with y on 3/4 of the rows.

    The share of disagreeing rows is exact up to rounding. The disagreeing rows are drawn at random.
    For the same seed, Corral-46 is the first 46 columns of Corral-47. ``equivalent`` contains the
    exact duplicate of each relevant column, but no column that agrees with it on fewer rows.

    Parameters
    ----------
    n_samples : int, default=128
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    variant : {6, 46, 47}, default=6
        Number of columns.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 to 3.

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
    rng = begin("make_corral", locals(), variant=one_of(6, 46, 47))
    causes = rng.integers(2, size=(n_samples, 4))
    y = causes[:, 0] & causes[:, 1] | causes[:, 2] & causes[:, 3]
    noise = rng.integers(2, size=(n_samples, 1)) if variant == 6 else _corral_noise(rng, causes)
    columns = [causes, noise]
    if variant != 46:
        columns.append(flip(rng, y, 1 / 4)[:, None])
    equivalent = None if variant == 6 else tuple((j, 4 + 7 * j) for j in range(4))
    return make_problem(np.hstack(columns), y, range(4), equivalent)


def _corral_noise(rng: np.random.Generator, causes: Ints) -> Ints:
    """Return the 28 redundant and 14 irrelevant columns of Yu and Liu."""
    copies = [flip(rng, cause, k / 16) for cause in causes.T for k in range(7)]
    irrelevant = rng.integers(2, size=(len(causes), 2))
    return np.hstack([np.column_stack(copies), irrelevant[:, np.arange(14) % 2]])


# The published rules on columns x1 to x6. Each rule is followed by the numbers (from 0) of the
# columns that it uses.
_MONKS: dict[int, tuple[Callable[[Ints], NDArray[np.bool_]], tuple[int, ...]]] = {
    1: (lambda x: (x[0] == x[1]) | (x[4] == 1), (0, 1, 4)),
    2: (lambda x: (x == 1).sum(axis=0) == 2, (0, 1, 2, 3, 4, 5)),
    3: (lambda x: (x[4] == 3) & (x[3] == 1) | (x[4] != 4) & (x[1] != 3), (1, 3, 4)),
}


def make_monks(
    n_samples: int = 432, *, random_state: Seed = None, problem: int = 1, noise: float = 0.0
) -> Problem:
    """Make classes by a logical rule on six nominal columns with 3, 3, 2, 3, 4 and 2 values.

    Values are coded from 1. With columns named x1 to x6, class 1 is

    * MONK-1: ``x1 = x2`` or ``x5 = 1``;
    * MONK-2: exactly two of the six columns are 1;
    * MONK-3: (``x5 = 3`` and ``x4 = 1``) or (``x5 ≠ 4`` and ``x2 ≠ 3``).

    Rows are drawn without replacement from the 432 possible rows. After all 432 rows are drawn,
    drawing starts again.

    Parameters
    ----------
    n_samples : int, default=432
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    problem : {1, 2, 3}, default=1
        Number of the rule.
    noise : float, default=0.0
        Share of the rows whose class is flipped. In the published training set of MONK-3, it is
        0.05.

    Returns
    -------
    Problem
        The problem. The relevant columns are (0, 1, 4) for rule 1, all six for rule 2, and (1, 3,
        4) for rule 3.

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
    rng = begin("make_monks", locals(), problem=one_of(*_MONKS), noise=SHARE)
    rule, relevant = _MONKS[problem]
    domain = 1 + np.indices((3, 3, 2, 3, 4, 2)).reshape(6, -1)
    drawn = [rng.permutation(432) for _ in range(-(-n_samples // 432))]
    values = domain[:, np.concatenate(drawn)[:n_samples]]
    return make_problem(values.T, flip(rng, rule(values).astype(np.int64), noise), relevant)


def make_xor(
    n_samples: int = 200, *, random_state: Seed = None, n_features: int = 10, spread: float = 0.3
) -> Problem:
    """Make an XOR problem: four Gaussian clusters, with opposite corners in the same class.

    Every column is ``±1 + spread · N(0, 1)``. The signs of the first two columns are equal in class
    0 and opposite in class 1. The sizes of the four corners differ by at most one row. All columns
    have the same distribution in both classes, so no single column is informative.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=10
        Number of columns, at least 2.
    spread : float, default=0.3
        Standard deviation of a cluster.

    Returns
    -------
    Problem
        The problem, with relevant columns 0 and 1.

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
    rng = begin("make_xor", locals(), n_features=integer(2), spread=LEVEL)
    corner = balance(rng, n_samples, 4)
    others = rng.integers(2, size=(n_samples, n_features - 2))
    high = np.column_stack([corner & 1, corner >> 1, others])
    X = 2 * high - 1 + spread * rng.standard_normal((n_samples, n_features))
    return make_problem(X, high[:, 0] ^ high[:, 1], range(2))


def make_interactions(
    n_samples: int = 1000,
    *,
    random_state: Seed = None,
    n_features: int = 8,
    problem: str = "ring",
) -> Problem:
    """Make classes by a ring, an XOR, or a combination of a ring, an XOR and a sum.

    All columns are uniform on [0, 1]. With x1 to x6 the first columns, class 1 is

    * ring: ``abs(hypot(x1 - 1/2, x2 - 1/2) - 0.35) <= 0.1151``;
    * xor: ``(x1 - 1/2) (1/2 - x2) >= 0``;
    * ring+xor: the ring with threshold 0.0704, or ``(x3 - 1/2) (1/2 - x4) >= 0.0337``;
    * ring+xor+sum: the ring with threshold 0.0479, or ``(x3 - 1/2) (1/2 - x4) >= 0.0598``, or
      ``x5 + x6 + e >= 1.4074``. Here, e is Gaussian noise with standard deviation 0.2.

    The classes are nearly balanced. In the ring and the XOR, single columns are hardly
    informative.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_features : int, default=8
        Number of columns. Columns after the relevant ones are noise.
    problem : {"ring", "xor", "ring+xor", "ring+xor+sum"}, default="ring"
        Rule that defines the classes.

    Returns
    -------
    Problem
        The problem. The relevant columns are the first 2 for "ring" and "xor", the first 4 for
        "ring+xor", and the first 6 for "ring+xor+sum".

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
    least = integer(RELEVANT.get(problem, 1))
    rng = begin("make_interactions", locals(), problem=one_of(*RELEVANT), n_features=least)
    X = rng.random((n_samples, n_features))
    x, noise = X.T, rng.normal(0, 0.2, n_samples)
    if problem == "ring":
        y = _ring(x, 0.1151)
    elif problem == "xor":
        y = _product(x[0], x[1]) >= 0
    elif problem == "ring+xor":
        y = _ring(x, 0.0704) | (_product(x[2], x[3]) >= 0.0337)
    else:
        y = _ring(x, 0.0479) | (_product(x[2], x[3]) >= 0.0598)
        y |= x[4] + x[5] + noise >= 1.4074
    return make_problem(X, y.astype(np.int64), range(RELEVANT[problem]))


def _ring(x: Floats, width: float) -> Any:
    return np.abs(np.hypot(x[0] - 0.5, x[1] - 0.5) - 0.35) <= width


def _product(first: Floats, second: Floats) -> Any:
    return (first - 0.5) * (0.5 - second)

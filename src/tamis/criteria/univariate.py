"""Filters: one score a column, additive over a subset, so that every search can use them."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tamis._arrays import Array, Mask, Subset, class_codes, column_blocks, in_range
from tamis.contract import Cost, SubsetCriterion
from tamis.density.discrete import coded_columns, coded_target, coding_cost
from tamis.exceptions import InvalidParameter


class Univariate(SubsetCriterion):
    """Score of each column alone; the value of a subset is the sum of its scores, never negative.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
    """

    additive: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:
        """Scores are never negative."""
        return True

    @abstractmethod
    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        """Score of each column."""

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        blocks = [self._scores(X[:, block], y) for block in column_blocks(*X.shape)]
        self.scores_ = np.concatenate(blocks)

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        # some passes over the table, and copies of it by class or centred; a round reads scores
        size = n_samples * n_features
        return Cost(10 * size + 10.0 * n_rounds * n_features + 2e5, 14.0 * size)

    def value(self, subset: Subset) -> float:
        return float(self.scores_[self.columns(subset)].sum())

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        return self.scores_[self.columns(candidates)]

    def loss(self, subset: Subset) -> Array:
        return self.scores_[self.columns(subset)]

    def bound(self, subset: Subset, size: int) -> float:
        """The sum of the ``size`` greatest scores, which is attained."""
        return float(np.sort(self.scores_[self.columns(subset)])[-size:].sum())


class ClassScore(Univariate):
    """Score that needs classes."""

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    def __init__(self, *, task: str = "auto"):
        self.task = task


class FisherScore(ClassScore):
    r"""Scatter between the classes over scatter within: ANOVA's F times (c - 1)/(N - c).

    .. math:: \sum_k N_k (\mu_k - \mu)^2 \Big/ \sum_k \sum_{i \in k} (x_i - \mu_k)^2

    A constant column scores 0, one that is constant in every class but not overall infinity.

    Parameters
    ----------
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers of more than 20 distinct values, which a regression target has;
        "classification" takes each as a class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> FisherScore().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([ 1.62,  0.67, 16.06, 13.06])
    """

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        between, within = scatters(X, class_codes(y)[1])
        return ratio(between, within)


class DiscriminantRatio(ClassScore):
    r"""Fisher's discriminant ratio, summed over the pairs of classes.

    .. math:: \sum_{k<l} (\mu_k - \mu_l)^2 / (\sigma_k^2 + \sigma_l^2)

    with the variances of the samples at hand (divided by N_k). A column that does not vary scores
    0; one that separates two classes without varying inside them scores infinity.

    Parameters
    ----------
    task
        As in :class:`FisherScore`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> DiscriminantRatio().fit(*load_iris(return_X_y=True)).scores_.round(1)
    array([ 7.7,  2.9, 86.1, 65.4])
    """

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        codes = class_codes(y)[1]
        mean, variance = class_moments(in_range(X), codes)
        scores = np.zeros(X.shape[1])
        for k in range(len(mean)):
            for other in range(k):
                distance = (mean[k] - mean[other]) ** 2
                scores += ratio(distance, variance[k] + variance[other])
        return scores


class Correlation(Univariate):
    r"""Absolute correlation with the target; for classes the correlation ratio.

    For a real target \|Pearson's r\|. For classes the square root of the share of a column's
    variance that lies between the classes, which for two classes is again \|r\|. A constant column
    scores 0.

    Parameters
    ----------
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> Correlation().fit(*load_diabetes(return_X_y=True)).scores_.round(2)
    array([0.19, 0.04, 0.59, 0.44, 0.21, 0.17, 0.39, 0.43, 0.57, 0.38])
    """

    def __init__(self, *, task: str = "auto"):
        self.task = task

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        return np.sqrt(explained(X, y, self.task_))


class KolmogorovSmirnov(ClassScore):
    """Largest distance between the distribution functions of a class and of the rest.

    For two classes the two-sample Kolmogorov-Smirnov statistic; for more the largest over the
    classes, each against all others.

    Parameters
    ----------
    task
        As in :class:`FisherScore`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> KolmogorovSmirnov().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([0.83, 0.59, 1.  , 1.  ])
    """

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        classes, codes = class_codes(y)
        member = codes[:, None] == np.arange(len(classes))
        return np.array([_largest_distance(column, member) for column in X.T])

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        # a column at a time is sorted, which takes numpy some twenty calls
        return Cost(n_features * (2e4 + 120.0 * n_samples), 100.0 * n_samples + 80.0 * n_features)


def _largest_distance(column: Array, member: Mask) -> float:
    """Greatest distance of the distribution functions of a class and the rest, over classes."""
    order = np.argsort(column, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(column[order])), len(column) - 1)
    inside = np.cumsum(member[order], axis=0)[ends]
    outside = ends[:, None] + 1 - inside
    return float(np.abs(inside / inside[-1] - outside / outside[-1]).max())


class PValue(Univariate):
    """-log p of the F-test: of equal class means, or of a linear relation to a real target.

    For two classes this is Student's t-test. Additive over a subset (Fisher's method of combining
    tests). With ``FalseDiscovery`` it keeps what passes a false discovery rate:

    >>> from sklearn.datasets import load_diabetes
    >>> from tamis.search import FalseDiscovery, Ranking
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ranking(PValue(), n_features_to_select=FalseDiscovery(0.01)).fit(X, y).n_features_
    9

    Parameters
    ----------
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.
    """

    scores_are_log_p: ClassVar[bool] = True

    def __init__(self, *, task: str = "auto"):
        self.task = task

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        n_groups = 2 if self.task_ == "regression" else len(class_codes(y)[0])
        freedom = len(X) - n_groups
        if freedom < 1:
            raise InvalidParameter(
                f"PValue needs more samples than {n_groups} groups, not {len(X)}: no test has any "
                "degree of freedom left."
            )
        share = explained(X, y, self.task_)
        return _minus_log_p(share, n_groups - 1, freedom)


def _minus_log_p(share: Array, between: int, within: int) -> Array:
    """-log P(F > f), from the share of variance explained, also where p underflows.

    P(F > f) is the incomplete beta function I_x(a, b) at x = 1 - share, in its hypergeometric form
    where it underflows.
    """
    a, b, x = within / 2, between / 2, 1 - share
    p = special.betainc(a, b, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.log(p)
        tiny = p <= 1e-290
        x = x[tiny]
        front = a * np.log(x) + b * np.log1p(-x) - np.log(a) - special.betaln(a, b)
        log_p[tiny] = front + np.log(special.hyp2f1(a + b, 1, a + 1, x))
    return -log_p + 0.0  # no -0.0


class MutualInformation(Univariate):
    """Mutual information with the target, in nats, of columns cut into bins.

    A column with at most ``n_bins`` distinct values is used as it is, and so are classes; a real
    target is cut like a column. The estimate is the plug-in one: deterministic, biased upwards by
    about (bins - 1)(classes - 1)/(2N).

    Parameters
    ----------
    n_bins : int or None, default=None
        None is the cube root of the number of samples, rounded up.
    binning : {"frequency", "width", "codes"}, default="frequency"
        Bins of equal frequency (equal values stay together), of equal width, or every distinct
        value as a level of its own.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> MutualInformation().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([0.48, 0.28, 0.96, 0.95])
    """

    def __init__(
        self, *, n_bins: int | None = None, binning: str = "frequency", task: str = "auto"
    ):
        self.n_bins = n_bins
        self.binning = binning
        self.task = task

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        return coding_cost(n_samples, n_features)

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        coded = coded_columns("MutualInformation", X, self.n_bins, self.binning)
        codes = coded_target("MutualInformation", y, self.task_, self.n_bins, self.binning)
        return coded.information(codes)


def class_moments(X: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Mean and variance of each column in each class, of columns in range."""
    groups = [X[codes == k] for k in range(codes.max() + 1)]
    return np.array([g.mean(axis=0) for g in groups]), np.array([g.var(axis=0) for g in groups])


def scatters(X: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Sum of squares of each column (in range) between and within the classes."""
    X = in_range(X)
    mean, variance = class_moments(X, codes)
    count = np.bincount(codes)[:, None]
    between = (count * (mean - X.mean(axis=0)) ** 2).sum(axis=0)
    within = (count * variance).sum(axis=0)
    # what is rounding of a large mean must not pass for variation
    noise = len(X) * (10 * np.finfo(float).eps * np.abs(X).max(axis=0)) ** 2
    return np.where(between <= noise, 0, between), np.where(within <= noise, 0, within)


def ratio(above: Array, below: Array) -> Array:
    """above / below, with 0/0 = 0 and x/0 = infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above == 0, 0.0, above / below)


def explained(X: Array, y: NDArray[Any], task: str) -> Array:
    """Share of each column's variance that the target explains, in [0, 1]."""
    if task == "classification":
        between, within = scatters(X, class_codes(y)[1])
        return ratio(between, between + within)
    X, y = in_range(X), in_range(y.astype(float)[:, None])[:, 0]
    centred, target = X - X.mean(axis=0), y - y.mean()
    product = target @ centred
    norms = (centred**2).sum(axis=0) * (target**2).sum()
    noise = (10 * np.finfo(float).eps * len(X) * np.abs(X).max(axis=0)) ** 2
    norms[(centred**2).sum(axis=0) <= noise] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.minimum(np.where(norms > 0, product**2 / norms, 0.0), 1.0)

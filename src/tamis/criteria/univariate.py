"""Filters: criteria with one score per column. The scores of a subset are added up."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tamis._arrays import Array, Mask, Subset, class_codes, column_blocks, in_range
from tamis._checks import Constraints
from tamis.blocks.moments import ClassMoments, TargetMoments, ratio
from tamis.blocks.table import BlockTable
from tamis.contract import SubsetCriterion
from tamis.density.bins import MISSING_CONSTRAINT, BinnedCriterion
from tamis.density.discrete import coded_columns
from tamis.density.distributions import largest_distances
from tamis.density.joint import available_relevance
from tamis.exceptions import InvalidParameter


class Univariate(SubsetCriterion):
    """Criterion with one score per unit. The value of a subset is the sum of its scores.

    A unit is a column, or a group of columns that is selected as one. A group gets the best score
    of its columns, unless a subclass overrides that. A subclass implements :meth:`_scores` or
    :meth:`_learn`.

    Attributes
    ----------
    scores_ : array of shape (n_units,)
        Score of each unit. Scores are not negative if :attr:`monotone` is True.
    """

    additive: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:
        """True, because scores are never negative, so adding a column never lowers the value."""
        return True

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        blocks = list(column_blocks(*X.shape))
        scores = [np.concatenate([self._scores(X[:, b], t) for b in blocks]) for t in targets_of(y)]
        self.scores_ = self._unit_scores(mean_of(scores))

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        """Return the score of each column of a block, for a single target."""
        raise NotImplementedError

    def _unit_scores(self, scores: Array) -> Array:
        """Return the scores of the units, given the scores of the columns."""
        return self.over_units(scores, np.max)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # copies of a block of columns, and statistics of rows and columns
        return min(14.0 * n_samples * n_features, 1.5e6) + 35 * n_samples + 60 * n_features

    def value(self, subset: Subset) -> float:
        return float(self.scores_[subset].sum())

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        return self.scores_[candidates]

    def loss(self, subset: Subset) -> Array:
        return self.scores_[subset]

    def bound(self, subset: Subset, size: int) -> float:
        """Return the sum of the ``size`` greatest scores."""
        return float(np.sort(self.scores_[subset])[-size:].sum())


def targets_of(y: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the targets as a list of one-dimensional arrays."""
    return [y] if y.ndim == 1 else list(y.T)


def mean_of(scores: list[Array]) -> Array:
    """Return the mean of the scores over several targets."""
    return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)


class MomentScore:
    """Mixin for filters computed from class means and variances, or from products with a target."""

    task_: str
    scores_: Array
    _unit_scores: Callable[[Array], Array]

    takes_sparse: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True

    def __init__(self, *, task: str = "auto"):
        self.task = task

    @abstractmethod
    def _from_moments(self, moments: Any) -> Array:
        """Return the score of each column, given the moments of the table."""

    @property
    def _kind(self) -> type[ClassMoments] | type[TargetMoments]:
        return TargetMoments if self.task_ == "regression" else ClassMoments

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        return self._from_moments(self._kind.of(in_range(X), y))

    def _learn_blocks(self, table: BlockTable) -> None:
        self.scores_ = self._unit_scores(self._from_moments(self._kind.of_blocks(table)))


class FisherScore(MomentScore, Univariate):
    r"""Scatter between classes divided by scatter within classes.

    .. math:: \sum_k N_k (\mu_k - \mu)^2 \Big/ \sum_k \sum_{i \in k} (x_i - \mu_k)^2

    With c classes and N samples, this is ANOVA's F times (c - 1)/(N - c). A constant column scores
    0. A column that varies between classes but not within them scores infinity.

    Parameters
    ----------
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers with more than 20 distinct values, because they look like a
        regression target. "classification" treats each distinct value as a class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> FisherScore().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([ 1.62,  0.67, 16.06, 13.06])
    """

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    def _from_moments(self, moments: ClassMoments) -> Array:
        between, within = moments.scatters()
        return ratio(between, within)


class DiscriminantRatio(MomentScore, Univariate):
    r"""Fisher's discriminant ratio, summed over the pairs of classes.

    .. math:: \sum_{k<l} (\mu_k - \mu_l)^2 / (\sigma_k^2 + \sigma_l^2)

    The variances are divided by N_k. A constant column scores 0. A column that differs between two
    classes but does not vary within them scores infinity.

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

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    def _from_moments(self, moments: ClassMoments) -> Array:
        mean, variance = moments.means, moments.variances()
        scores = np.zeros(mean.shape[1])
        for k in range(len(mean)):
            for other in range(k):
                distance = (mean[k] - mean[other]) ** 2
                scores += ratio(distance, variance[k] + variance[other])
        return scores


class Correlation(MomentScore, Univariate):
    r"""Absolute correlation with a numeric target, or correlation ratio with classes.

    For a numeric target the score is \|r\|, with Pearson's r. For classes it is the square root of
    the share of a column's variance that lies between the classes. For two classes this is again
    \|r\|. A constant column scores 0. For several targets the scores are averaged.

    Parameters
    ----------
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" treats numbers with more than 20 distinct values as
        numeric.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> Correlation().fit(*load_diabetes(return_X_y=True)).scores_.round(2)
    array([0.19, 0.04, 0.59, 0.44, 0.21, 0.17, 0.39, 0.43, 0.57, 0.38])
    """

    takes_several_targets: ClassVar[bool] = True

    def _from_moments(self, moments: ClassMoments | TargetMoments) -> Array:
        return np.sqrt(moments.explained())


@dataclass(eq=False, repr=False, kw_only=True)
class KolmogorovSmirnov(Univariate):
    """Largest distance between the distribution functions of a class and of the other rows.

    For two classes this is the two-sample Kolmogorov-Smirnov statistic. For more classes, each
    class is compared with all other rows, and the largest statistic is the score.

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

    task: str = "auto"

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    takes_blocks: ClassVar[bool] = True

    def _learn_blocks(self, table: BlockTable) -> None:
        self.scores_ = self._unit_scores(largest_distances(table))

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        classes, codes = class_codes(y)
        member = codes[:, None] == np.arange(len(classes))
        return np.array([_largest_distance(column, member) for column in X.T])

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return 100.0 * n_samples + 80.0 * n_features


def _largest_distance(column: Array, member: Mask) -> float:
    """Return the largest distance between the distribution functions of a class and all others.

    ``member`` has a column for each class, which is True in the rows of that class.
    """
    order = np.argsort(column, kind="stable")
    rising = column[order]
    ends = np.append(np.flatnonzero(rising[1:] != rising[:-1]), len(column) - 1)
    inside = np.cumsum(member[order], axis=0)[ends]
    outside = ends[:, None] + 1 - inside
    return float(np.abs(inside / inside[-1] - outside / outside[-1]).max())


class PValue(MomentScore, Univariate):
    """Negative log p-value of the F-test for class means, or for a linear relation to the target.

    For two classes this is Student's t-test. The value of a subset is the sum of the scores of its
    columns (Fisher's method of combining tests). The p-value of a group is the smallest p-value of
    its columns times their number (Bonferroni). With ``FalseDiscovery`` a search selects the
    columns that pass a false discovery rate:

    >>> from sklearn.datasets import load_diabetes
    >>> from tamis.search import FalseDiscovery, Ranking
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ranking(PValue(), n_features_to_select=FalseDiscovery(0.01)).fit(X, y).n_features_
    9

    Parameters
    ----------
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" treats numbers with more than 20 distinct values as
        numeric.
    """

    scores_are_log_p: ClassVar[bool] = True

    def _from_moments(self, moments: ClassMoments | TargetMoments) -> Array:
        if isinstance(moments, TargetMoments):
            n_rows, n_groups = moments.n_rows, 2
        else:
            n_rows, n_groups = int(moments.counts.sum()), len(moments.counts)
        freedom = n_rows - n_groups
        if freedom < 1:
            raise InvalidParameter(
                f"PValue needs more than {n_groups} samples, got {n_rows}, because the F-test "
                "otherwise has no degrees of freedom."
            )
        return _minus_log_p(moments.explained(), n_groups - 1, freedom)

    def _unit_scores(self, scores: Array) -> Array:
        """Correct the best score of a group by Bonferroni's rule."""
        return self.over_units(scores, lambda some: max(0.0, some.max() - np.log(len(some))))


def _minus_log_p(share: Array, between: int, within: int) -> Array:
    """Return -log P(F > f) from the share of explained variance, even if p underflows.

    P(F > f) is the incomplete beta function I_x(a, b) at x = 1 - share. Its hypergeometric form is
    used for values that underflow.
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


@dataclass(eq=False, repr=False, kw_only=True)
class MutualInformation(BinnedCriterion, Univariate):
    """Mutual information with the target, in nats, of columns cut into bins.

    A column with at most ``n_bins`` distinct values is not cut. A numeric target is cut like a
    column. The plug-in estimate is deterministic, and biased upwards by about (bins - 1)(classes -
    1)/(2N) unless it is corrected (``adjusted``). For several targets the scores are averaged. A
    group of columns is treated as a single variable, whose levels are the combinations of values
    that occur.

    Parameters
    ----------
    n_bins : int or None, default=None
        Number of bins. None means the cube root of the number of samples, rounded up.
    binning : {"frequency", "width", "codes"}, default="frequency"
        Bins of equal frequency (equal values share a bin), bins of equal width, or one level for
        each distinct value.
    categories : sequence of int or bool, or None, default=None
        Categorical columns, as indices or as one boolean per column. Each distinct value of such a
        column is a level, whatever ``n_bins`` is.
    missing : {"level", "pairs"}, default="level"
        "level" treats NaN as a level of its own. "pairs" scores a column on the rows in which the
        column is not missing.
    adjusted : {"auto", True, False}, default="auto"
        Whether the information expected by chance is subtracted, as in :class:`MIFS`. "auto" does
        so for all columns if there are categories or groups of several columns.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. "auto" treats numbers with more than 20 distinct values as
        numeric.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> MutualInformation().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([0.48, 0.28, 0.96, 0.95])
    """

    missing: str = "level"

    takes_sparse: ClassVar[bool] = True
    takes_several_targets: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {"missing": MISSING_CONSTRAINT}

    @property
    def monotone(self) -> bool:
        """Whether adding a column never lowers the value.

        This does not hold if scores are corrected for chance, because they may then be negative.
        """
        return not self._adjusts()

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # sorted copies of a block of columns
        return min(20.0 * n_samples * n_features, 3e6) + 35 * n_samples + 60 * n_features

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        targets = [self._cut_target(target) for target in targets_of(y)]
        if self._unit_columns is not None:
            coded = self._cut(X)
            self.scores_ = mean_of([self._information(coded, codes) for codes in targets])
            return
        self._adjusted, kinds = self._adjusts(X.shape[1]), self._category_mask(X.shape[1])
        scores = []
        for block in column_blocks(*X.shape):
            own = None if kinds is None else kinds[block]
            coded = coded_columns(X[:, block], self.n_bins, self.binning, own)
            scores.append(mean_of([self._information(coded, codes) for codes in targets]))
        self.scores_ = np.concatenate(scores)

    def _learn_blocks(self, table: BlockTable) -> None:
        coded = self._cut_blocks(table)
        self.scores_ = self._information(coded, coded.target)

    def _information(self, coded: Any, codes: Any) -> Array:
        if self._by_pairs and coded.has_missing.any():
            return available_relevance(coded, codes, adjusted=self._adjusted)[0]
        return np.asarray(coded.information(codes, adjusted=self._adjusted))

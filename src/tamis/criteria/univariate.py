"""Filters: one score a column, additive over a subset, so that every search can use them."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from tamis._arrays import Array, Mask, Subset, class_codes, column_blocks, in_range
from tamis._checks import Constraints
from tamis.blocks.moments import ClassMoments, TargetMoments, ratio
from tamis.blocks.table import BlockTable
from tamis.contract import SubsetCriterion
from tamis.density.discrete import (
    BINNING_CONSTRAINTS,
    MISSING_CONSTRAINT,
    category_mask,
    coded_columns,
    coded_target,
    coding_cost,
    is_adjusted,
    levels_of,
)
from tamis.density.distributions import largest_distances
from tamis.density.joint import available_relevance
from tamis.density.planes import levels_of_blocks
from tamis.exceptions import InvalidParameter


class Univariate(SubsetCriterion):
    """Score of each unit alone; the value of a subset is the sum of its scores, never negative.

    A group of columns scores as the best of them, unless the criterion knows better.

    Attributes
    ----------
    scores_ : array of shape (n_units,)
    """

    additive: ClassVar[bool] = True

    @property
    def monotone(self) -> bool:
        """Scores are never negative."""
        return True

    def _unit_scores(self, scores: Array) -> Array:
        """Scores of the units, from those of the columns: of a group the best."""
        return self.over_units(scores, np.max)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # copies of the table by class or centred
        return 14.0 * n_samples * n_features

    def value(self, subset: Subset) -> float:
        return float(self.scores_[subset].sum())

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        return self.scores_[candidates]

    def loss(self, subset: Subset) -> Array:
        return self.scores_[subset]

    def bound(self, subset: Subset, size: int) -> float:
        """The sum of the ``size`` greatest scores, which is attained."""
        return float(np.sort(self.scores_[subset])[-size:].sum())


def targets_of(y: NDArray[Any]) -> list[NDArray[Any]]:
    """The targets one by one."""
    return [y] if y.ndim == 1 else list(y.T)


def mean_of(scores: list[Array]) -> Array:
    """The mean of the scores with several targets."""
    return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)


def scores_with(X: Array, y: NDArray[Any], score: Callable[[Array, NDArray[Any]], Array]) -> Array:
    """Score of each column with each target, some columns at a time; of several the mean."""
    blocks = list(column_blocks(*X.shape))
    return mean_of([np.concatenate([score(X[:, b], t) for b in blocks]) for t in targets_of(y)])


class MomentScore:
    """Scores from the mean and variance of a column in classes, or its products with a target.

    A univariate criterion that inherits from it says how.
    """

    task_: str
    scores_: Array
    _unit_scores: Callable[[Array], Array]

    takes_sparse: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True

    def __init__(self, *, task: str = "auto"):
        self.task = task

    @abstractmethod
    def _from_moments(self, moments: Any) -> Array:
        """Score of each column."""

    @property
    def _kind(self) -> type[ClassMoments] | type[TargetMoments]:
        return TargetMoments if self.task_ == "regression" else ClassMoments

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self.scores_ = self._unit_scores(scores_with(X, y, self._scores))

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        return self._from_moments(self._kind.of(in_range(X), y))

    def _learn_blocks(self, table: BlockTable) -> None:
        self.scores_ = self._unit_scores(self._from_moments(self._kind.of_blocks(table)))


class FisherScore(MomentScore, Univariate):
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

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})

    def _from_moments(self, moments: ClassMoments) -> Array:
        between, within = moments.scatters()
        return ratio(between, within)


class DiscriminantRatio(MomentScore, Univariate):
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
    r"""Absolute correlation with the target; for classes the correlation ratio.

    For a real target \|Pearson's r\|. For classes the square root of the share of a column's
    variance that lies between the classes, which for two classes is again \|r\|. A constant column
    scores 0. With several targets it is the mean of the scores with each.

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

    takes_several_targets: ClassVar[bool] = True

    def _from_moments(self, moments: ClassMoments | TargetMoments) -> Array:
        return np.sqrt(moments.explained())


class KolmogorovSmirnov(Univariate):
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

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    takes_blocks: ClassVar[bool] = True

    def __init__(self, *, task: str = "auto"):
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self.scores_ = self._unit_scores(scores_with(X, y, self._scores))

    def _learn_blocks(self, table: BlockTable) -> None:
        self.scores_ = self._unit_scores(largest_distances(table))

    def _scores(self, X: Array, y: NDArray[Any]) -> Array:
        classes, codes = class_codes(y)
        member = codes[:, None] == np.arange(len(classes))
        return np.array([_largest_distance(column, member) for column in X.T])

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return 100.0 * n_samples + 80.0 * n_features


def _largest_distance(column: Array, member: Mask) -> float:
    """Greatest distance of the distribution functions of a class and the rest, over classes."""
    order = np.argsort(column, kind="stable")
    rising = column[order]
    ends = np.append(np.flatnonzero(rising[1:] != rising[:-1]), len(column) - 1)
    inside = np.cumsum(member[order], axis=0)[ends]
    outside = ends[:, None] + 1 - inside
    return float(np.abs(inside / inside[-1] - outside / outside[-1]).max())


class PValue(MomentScore, Univariate):
    """-log p of the F-test: of equal class means, or of a linear relation to a real target.

    For two classes this is Student's t-test. Additive over a subset (Fisher's method of combining
    tests); a group of columns has the least p of its columns times their number (Bonferroni).
    With ``FalseDiscovery`` it keeps what passes a false discovery rate:

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

    def _from_moments(self, moments: ClassMoments | TargetMoments) -> Array:
        if isinstance(moments, TargetMoments):
            n_rows, n_groups = moments.n_rows, 2
        else:
            n_rows, n_groups = int(moments.counts.sum()), len(moments.counts)
        freedom = n_rows - n_groups
        if freedom < 1:
            raise InvalidParameter(
                f"PValue needs more samples than {n_groups} groups, not {n_rows}: no test has any "
                "degree of freedom left."
            )
        return _minus_log_p(moments.explained(), n_groups - 1, freedom)

    def _unit_scores(self, scores: Array) -> Array:
        """Of a group Bonferroni's p: the least of its columns times their number."""
        return self.over_units(scores, lambda some: max(0.0, some.max() - np.log(len(some))))


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
    about (bins - 1)(classes - 1)/(2N) unless it is corrected (``adjusted``). With several targets
    it is the mean of the informations with each. A group of columns is one variable, whose levels
    are the combinations of theirs.

    Parameters
    ----------
    n_bins : int or None, default=None
        None is the cube root of the number of samples, rounded up.
    binning : {"frequency", "width", "codes"}, default="frequency"
        Bins of equal frequency (equal values stay together), of equal width, or every distinct
        value as a level of its own.
    categories : sequence of int or bool, or None, default=None
        Indices of the columns of codes, or one boolean a column: every distinct value of these is a
        level, whatever ``n_bins``.
    missing : {"level", "pairs"}, default="level"
        NaN is a level of its own; or a column is judged by the rows in which it is there.
    adjusted : {"auto", True, False}, default="auto"
        Whether the information is corrected for chance, as in :class:`MIFS`: less its expectation
        if column and target were independent. "auto" corrects all columns if there are categories
        or groups of several columns.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> MutualInformation().fit(*load_iris(return_X_y=True)).scores_.round(2)
    array([0.48, 0.28, 0.96, 0.95])
    """

    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    runs_on_device: ClassVar[bool] = True
    takes_several_targets: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {**BINNING_CONSTRAINTS, "missing": MISSING_CONSTRAINT}

    def __init__(
        self,
        *,
        n_bins: int | None = None,
        binning: str = "frequency",
        categories: ArrayLike | None = None,
        missing: str = "level",
        adjusted: bool | str = "auto",
        task: str = "auto",
    ):
        self.n_bins = n_bins
        self.binning = binning
        self.categories = categories
        self.missing = missing
        self.adjusted = adjusted
        self.task = task

    @property
    def monotone(self) -> bool:
        """Scores are never negative, unless they are corrected for chance."""
        return not is_adjusted(self)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return coding_cost(n_samples, n_features)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        name = type(self).__name__
        kinds = category_mask(name, self.categories, X.shape[1])
        self._adjusted = is_adjusted(self, X.shape[1])
        rule = (self.n_bins, self.binning)
        targets = [coded_target(target, self.task_, *rule) for target in targets_of(y)]
        if self._unit_columns is not None:
            coded = levels_of(self, X)
            self.scores_ = mean_of([self._information(coded, codes) for codes in targets])
            return
        found = []
        for block in column_blocks(*X.shape):
            part = None if kinds is None else kinds[block]
            coded = coded_columns(X[:, block], *rule, part)
            found.append(mean_of([self._information(coded, codes) for codes in targets]))
        self.scores_ = np.concatenate(found)

    def _learn_blocks(self, table: BlockTable) -> None:
        self._adjusted = is_adjusted(self, table.shape[1])
        coded = levels_of_blocks(self, table)
        self.scores_ = self._information(coded, coded.target)

    def _information(self, coded: Any, codes: Any) -> Array:
        if self.missing == "pairs" and coded.gaps.any():
            return available_relevance(coded, codes, adjusted=self._adjusted)[0]
        return np.asarray(coded.information(codes, adjusted=self._adjusted))

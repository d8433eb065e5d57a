r"""Forward criteria from information about pairs of columns.

All of them weigh the information that a candidate shares with the target against what it shares
with each column already chosen. In every step only the terms with the newest pick are computed,
for all candidates at once; they are sums of n log n over integer counts.

The estimates are plug-in ones of columns cut into bins, in nats. Every criterion gives
:math:`I(x_j; y)` while nothing is chosen. Columns may be categories, and NaN may stand in them. A
group of columns is one variable, whose levels are the combinations of theirs that occur. Groups and
categories have so many levels that plug-in estimates of noise are high; ``adjusted`` subtracts what
is expected by chance.

References
----------
Brown, Pocock, Zhao and Luján (2012), Conditional likelihood maximisation: a unifying framework for
information theoretic feature selection, JMLR 13.
"""

from abc import abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import EMPTY, Array, Mask, Subset
from tamis._checks import Constraints, number
from tamis.blocks.table import BlockTable
from tamis.contract import ForwardCriterion
from tamis.density.discrete import (
    BINNING_CONSTRAINTS,
    MISSING_CONSTRAINT,
    QUANTUM,
    Coded,
    coded_target,
    coding_cost,
    is_adjusted,
    levels_of,
)
from tamis.density.joint import AdjustedPair, AvailablePair, Pair, available_relevance
from tamis.density.planes import BlockLevels, levels_of_blocks

AnyPair: TypeAlias = Pair | AvailablePair


class PairwiseInformation(ForwardCriterion):
    """Relevance of a candidate corrected by a sum over the chosen columns.

    A subclass says what the term of a pair is and how the score follows from the sum of the terms.

    Attributes
    ----------
    relevance_ : array of shape (n_features,)
        Information of each column with the target.
    """

    #: The sum starts from nothing, a minimum from everything.
    _start: ClassVar[int] = 0
    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_sparse: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    runs_on_device: ClassVar[bool] = True
    _coded: Coded | BlockLevels
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

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self._adjusted = is_adjusted(self, X.shape[1])
        self._coded = levels_of(self, X)
        self._target: Any = coded_target(y, self.task_, self.n_bins, self.binning)
        self.idle_ = self.idle_ | self._weighed()

    def _learn_blocks(self, table: BlockTable) -> None:
        self._adjusted = is_adjusted(self, table.shape[1])
        self._coded = coded = levels_of_blocks(self, table)
        self._target = coded.target
        self._single = self._weighed()

    def _idle_units(self, table: BlockTable) -> Mask:
        return super()._idle_units(table) | self._single

    def _weighed(self) -> Mask:
        """Learn what each unit tells; which of them, cut into bins, do not vary."""
        coded: Any = self._coded
        self._by_pairs = self.missing == "pairs" and bool(coded.gaps.any())
        adjusted = self._adjusted
        if self._by_pairs:
            told, entropy = available_relevance(coded, self._target, adjusted=adjusted)
        else:
            told, entropy = coded.information(self._target, adjusted=adjusted), coded.entropy
        self.relevance_ = self._told = told
        self._forget()
        return np.asarray(entropy == 0)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return coding_cost(n_samples, n_features)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset):
            return self.relevance_[candidates]
        sums = QUANTUM * self._sums(subset)[candidates].astype(float)
        return self._score(self.relevance_[candidates], sums, len(subset))

    @abstractmethod
    def _term(self, pair: AnyPair) -> Array:
        """What the chosen column of the pair contributes, for every column."""

    @abstractmethod
    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        """What a candidate brings, from its relevance and the sum of its terms."""

    def _forget(self) -> None:
        self._chosen: Subset = EMPTY
        self._total = np.full(len(self.relevance_), self._start, dtype=np.int64)

    def _sums(self, chosen: Subset) -> NDArray[np.int64]:
        """Terms summed over the chosen columns; only those new since the last call are computed.

        They are added as integers, so the order of the picks does not change a score.
        """
        if len(np.setdiff1d(self._chosen, chosen, assume_unique=True)):
            self._forget()
        for i in np.setdiff1d(chosen, self._chosen, assume_unique=True):
            term = self._term(self._pair(int(i)))
            self._total = self._fold(self._total, np.rint(term / QUANTUM).astype(np.int64))
        self._chosen = chosen.copy()
        return self._total

    def _pair(self, i: int) -> AnyPair:
        coded, target = self._coded, self._target
        if self._by_pairs:
            return AvailablePair(coded, target, i, adjusted=self._adjusted)
        if self._adjusted:
            return AdjustedPair(coded, target, i, self._told)
        return Pair(coded, target, i)

    @staticmethod
    def _fold(total: NDArray[np.int64], term: NDArray[np.int64]) -> NDArray[np.int64]:
        return total + term


class MIFS(PairwiseInformation):
    r"""Mutual information feature selection.

    .. math:: I(x_j; y) - \beta \sum_{i \in S} I(x_j; x_i)

    Parameters
    ----------
    beta : float, default=0.5
        Weight of the redundancy; the author recommends 0.5 to 1.
    n_bins : int or None, default=None
        A column of at most so many distinct values is used as it is. None is the cube root of the
        number of samples, rounded up.
    binning : {"frequency", "width", "codes"}, default="frequency"
        Bins of equal frequency, of equal width, or every distinct value as a level of its own.
    categories : sequence of int or bool, or None, default=None
        Indices of the columns of codes, or one boolean a column: each is one discrete variable, of
        which every distinct value is a level, whatever ``n_bins``.
    missing : {"level", "pairs"}, default="level"
        NaN is a level of its own; or a term is computed from the rows in which the columns that it
        is about are there, all its entropies included. Bins are cut from what is there.
    adjusted : {"auto", True, False}, default="auto"
        Whether information is corrected for chance: every term less its expectation if the columns
        were independent and the counts of their levels given,

        .. math:: I(x; y) - \frac1N \Big( \sum_{a, b} E[h_{ab} \log h_{ab}]
            - \sum_a n_a \log n_a - \sum_b n_b \log n_b \Big) - \log N, \quad
            h_{ab} \sim \mathrm{Hypergeometric}(N, n_a, n_b)

        and conditional terms within each level of the chosen column. A column that tells nothing
        then scores about 0, and may score a little less, however many levels it has. "auto"
        corrects all terms of all columns if there are categories or groups of several columns;
        without these the criterion is the published one.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; a real target is cut like a column.

    References
    ----------
    Battiti (1994), Using mutual information for selecting features in supervised neural net
    learning, IEEE Trans. Neural Networks 5.
    Vinh, Epps and Bailey (2010), Information theoretic measures for clusterings comparison:
    variants, properties, normalization and correction for chance, JMLR 11.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = MIFS(beta=1).fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([-0.12, -0.15, -0.03])
    """

    _constraints: ClassVar[Constraints] = {"beta": number(least=0)}

    def __init__(
        self,
        *,
        beta: float = 0.5,
        n_bins: int | None = None,
        binning: str = "frequency",
        categories: ArrayLike | None = None,
        missing: str = "level",
        adjusted: bool | str = "auto",
        task: str = "auto",
    ):
        super().__init__(
            n_bins=n_bins,
            binning=binning,
            categories=categories,
            missing=missing,
            adjusted=adjusted,
            task=task,
        )
        self.beta = beta

    def _term(self, pair: AnyPair) -> Array:
        return pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - self.beta * sums


class MIFSU(PairwiseInformation):
    r"""MIFS for uniformly distributed information.

    .. math:: I(x_j; y) - \beta \sum_{i \in S} \frac{I(y; x_i)}{H(x_i)} I(x_j; x_i)

    A chosen column that does not vary contributes 0.

    Parameters
    ----------
    beta : float, default=1
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Kwak and Choi (2002), Input feature selection for classification problems, IEEE Trans. Neural
    Networks 13.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = MIFSU().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.13, 0.03, 0.39])
    """

    _constraints: ClassVar[Constraints] = {"beta": number(least=0)}

    def __init__(
        self,
        *,
        beta: float = 1.0,
        n_bins: int | None = None,
        binning: str = "frequency",
        categories: ArrayLike | None = None,
        missing: str = "level",
        adjusted: bool | str = "auto",
        task: str = "auto",
    ):
        super().__init__(
            n_bins=n_bins,
            binning=binning,
            categories=categories,
            missing=missing,
            adjusted=adjusted,
            task=task,
        )
        self.beta = beta

    def _term(self, pair: AnyPair) -> Array:
        told = np.asarray(pair.relevance)
        share = np.divide(told, pair.pick_entropy, out=np.zeros_like(told), where=told > 0)
        return share * pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - self.beta * sums


class MRMR(PairwiseInformation):
    r"""Maximum relevance, minimum redundancy (the difference form).

    .. math:: I(x_j; y) - \frac{1}{|S|} \sum_{i \in S} I(x_j; x_i)

    It cannot see columns that matter only together.

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Peng, Long and Ding (2005), Feature selection based on mutual information: criteria of
    max-dependency, max-relevance and min-redundancy, IEEE Trans. PAMI 27.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> Forward(MRMR(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    def _term(self, pair: AnyPair) -> Array:
        return pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - sums / n_chosen


class NMIFS(PairwiseInformation):
    r"""Normalised mutual information feature selection.

    .. math:: I(x_j; y) - \frac{1}{|S|} \sum_{i \in S} \frac{I(x_j; x_i)}{\min\{H(x_j), H(x_i)\}}

    A column that does not vary shares nothing.

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Estévez, Tesmer, Perez and Zurada (2009), Normalized mutual information feature selection, IEEE
    Trans. Neural Networks 20.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = NMIFS().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.11, 0.02, 0.36])
    """

    def _term(self, pair: AnyPair) -> Array:
        least = np.minimum(pair.entropy, pair.pick_entropy)
        return np.divide(pair.shared, least, out=np.zeros_like(least), where=least > 0)

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - sums / n_chosen


class CMIM(PairwiseInformation):
    r"""Conditional mutual information maximisation.

    .. math:: \min_{i \in S} I(x_j; y \mid x_i)

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Fleuret (2004), Fast binary feature selection with conditional mutual information, JMLR 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = CMIM().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.02, 0.05, 0.07])
    """

    _start = np.iinfo(np.int64).max

    def _term(self, pair: AnyPair) -> Array:
        return pair.conditional

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums

    @staticmethod
    def _fold(total: NDArray[np.int64], term: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(total, term)


class CIFE(PairwiseInformation):
    r"""Conditional infomax feature extraction.

    .. math:: I(x_j; y) - \sum_{i \in S} \big[ I(x_j; x_i) - I(x_j; x_i \mid y) \big]

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Lin and Tang (2006), Conditional infomax learning: an integrated framework for feature
    extraction and fusion, ECCV.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = CIFE().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.02, 0.05, 0.07])
    """

    def _term(self, pair: AnyPair) -> Array:
        return pair.excess(self.relevance_)  # the I(x_j; y) of each pick is taken from the score

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance * (1 - n_chosen) - sums


class JMI(PairwiseInformation):
    r"""Joint mutual information.

    .. math:: \sum_{i \in S} I(x_j, x_i; y)

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Yang and Moody (1999), Data visualization and feature selection: new algorithms for nongaussian
    data, NIPS 12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = JMI().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.97, 1.  , 1.02])
    """

    def _term(self, pair: AnyPair) -> Array:
        return pair.together

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums


class DISR(PairwiseInformation):
    r"""Double input symmetrical relevance: JMI in units of the joint entropy.

    .. math:: \sum_{i \in S} \frac{I(x_j, x_i; y)}{H(x_j, x_i, y)}

    Parameters
    ----------
    n_bins, binning, categories, missing, adjusted, task
        As in :class:`MIFS`.

    References
    ----------
    Meyer, Schretter and Bontempi (2008), Information-theoretic feature selection in microarray data
    using variable complementarity, IEEE J. Selected Topics in Signal Processing 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> criterion = DISR().fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([3]), np.array([0, 1, 2])).round(2)
    array([0.33, 0.33, 0.4 ])
    """

    def _term(self, pair: AnyPair) -> Array:
        triple = pair.triple
        return np.divide(pair.together, triple, out=np.zeros_like(triple), where=triple > 0)

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums

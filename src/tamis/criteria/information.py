r"""Forward criteria from the mutual information of pairs of columns.

Each criterion weighs the information between a candidate and the target against the information
between the candidate and each selected column. A step of a search computes only the terms of the
newest selected column, for all candidates at once. The terms are sums of n log n over integer
counts n.

All values are plug-in estimates in nats, from columns cut into bins. Before any column is selected,
every criterion returns :math:`I(x_j; y)`. Columns may be categorical and may contain NaN. A group
of columns is treated as a single variable, whose levels are the combinations of values that occur.
Groups and categories have many levels, so their plug-in estimates are high even for noise;
``adjusted`` subtracts the value expected by chance.

References
----------
Brown, Pocock, Zhao and Luján (2012), Conditional likelihood maximisation: a unifying framework for
information theoretic feature selection, JMLR 13.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import EMPTY, Array, Mask, Subset
from tamis._checks import Constraints, number
from tamis.blocks.table import BlockTable
from tamis.contract import ForwardCriterion
from tamis.density.bins import MISSING_CONSTRAINT, BinnedCriterion
from tamis.density.discrete import QUANTUM, coding_cost
from tamis.density.joint import AvailablePair, CompletePair, Pair, available_relevance


@dataclass(eq=False, repr=False, kw_only=True)
class PairwiseInformation(BinnedCriterion, ForwardCriterion):
    """Base class of criteria that correct the relevance of a candidate for the selected columns.

    Each selected column contributes a term. A subclass defines the term of a candidate and a
    selected column (:meth:`_term`), and how the score follows from the relevance and the sum of the
    terms (:meth:`_score`).

    Attributes
    ----------
    relevance_ : array of shape (n_units,)
        Mutual information with the target of each unit (a column, or a group of columns that is
        selected as one).
    """

    missing: str = "level"

    #: Function that combines the terms of the selected columns, and its value before any term.
    _combine: ClassVar[np.ufunc] = np.add
    _start: ClassVar[int] = 0
    takes_sparse: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {"missing": MISSING_CONSTRAINT}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        self._coded: Any = self._cut(X)
        self._target: Any = self._cut_target(y)
        self._compute_relevance()
        self.idle_ = self.idle_ | self._constant

    def _learn_blocks(self, table: BlockTable) -> None:
        self._coded = self._cut_blocks(table)
        self._target = self._coded.target
        self._compute_relevance()

    def _idle_units(self, table: BlockTable) -> Mask:
        return super()._idle_units(table) | self._constant

    def _compute_relevance(self) -> None:
        """Compute the relevance of each unit, and find the units with a single level."""
        coded, target, adjusted = self._coded, self._target, self._adjusted
        self._has_pairs = self._by_pairs and bool(coded.has_missing.any())
        if self._has_pairs:
            relevance, entropy = available_relevance(coded, target, adjusted=adjusted)
        else:
            relevance, entropy = coded.information(target, adjusted=adjusted), coded.entropy
        self.relevance_ = self._own_relevance = relevance
        self._constant: Mask = np.asarray(entropy == 0)
        self._reset_sums()

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return coding_cost(n_samples, n_features)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset):
            return self.relevance_[candidates]
        sums = QUANTUM * self._sums(subset)[candidates].astype(float)
        return self._score(self.relevance_[candidates], sums, len(subset))

    @abstractmethod
    def _term(self, pair: Pair) -> Array:
        """Return the term that a selected column adds to the sum of every other column.

        ``pair`` has the information terms of the selected column with every column.
        """

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        """Return the score of each candidate from its relevance and the sum of its terms."""
        return relevance - sums / n_chosen

    def _reset_sums(self) -> None:
        self._chosen: Subset = EMPTY
        self._total = np.full(len(self.relevance_), self._start, dtype=np.int64)

    def _sums(self, chosen: Subset) -> NDArray[np.int64]:
        """Return the sum of the terms over the selected columns, as multiples of ``QUANTUM``.

        ``CMIM`` takes the minimum of the terms instead of the sum.

        Only the terms of columns selected since the last call are computed. The terms are added as
        integers, so the order of selection does not change a score.
        """
        before, after = set(self._chosen.tolist()), set(chosen.tolist())
        if not before <= after:
            self._reset_sums()
            before = set()
        for i in sorted(after - before):
            term = self._term(self._pair(i))
            self._total = self._combine(self._total, np.rint(term / QUANTUM).astype(np.int64))
        self._chosen = chosen.copy()
        return self._total

    def _pair(self, i: int) -> Pair:
        coded, target = self._coded, self._target
        if self._has_pairs:
            return AvailablePair(coded, target, i, adjusted=self._adjusted)
        return CompletePair(coded, target, i, self._own_relevance, adjusted=self._adjusted)


@dataclass(eq=False, repr=False, kw_only=True)
class MIFS(PairwiseInformation):
    r"""Mutual information feature selection.

    .. math:: I(x_j; y) - \beta \sum_{i \in S} I(x_j; x_i)

    Parameters
    ----------
    beta : float, default=0.5
        Weight of the redundancy; the author recommends 0.5 to 1.
    n_bins : int or None, default=None
        Number of bins. A column with at most this number of distinct values is not cut. None means
        the cube root of the number of samples, rounded up.
    binning : {"frequency", "width", "codes"}, default="frequency"
        Bins of equal frequency, bins of equal width, or one level for each distinct value.
    categories : sequence of int or bool, or None, default=None
        Categorical columns, as indices or as one boolean per column. Each distinct value of such a
        column is a level, whatever ``n_bins`` is.
    missing : {"level", "pairs"}, default="level"
        "level" treats NaN as a level of its own. "pairs" computes each term, and all entropies in
        it, from the rows in which no column of the term is missing. Bin edges are computed from the
        values that are not missing.
    adjusted : {"auto", True, False}, default="auto"
        Whether information is corrected for chance. Each term is reduced by its expectation for
        independent variables with the same level counts n_a and n_b,

        .. math:: I(x; y) - \frac1N \Big( \sum_{a, b} E[h_{ab} \log h_{ab}]
            - \sum_a n_a \log n_a - \sum_b n_b \log n_b \Big) - \log N, \quad
            h_{ab} \sim \mathrm{Hypergeometric}(N, n_a, n_b)

        and conditional terms are corrected within each level of the selected column. A column
        without information then scores about 0 (possibly slightly below), for any number of levels.
        "auto" corrects all terms of all columns if there are categories or groups of several
        columns. Otherwise it corrects none, as in the published criterion.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. A numeric target is cut into bins like a column.

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

    beta: float = 0.5

    _constraints: ClassVar[Constraints] = {"beta": number(least=0)}

    def _term(self, pair: Pair) -> Array:
        return pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - self.beta * sums


@dataclass(eq=False, repr=False, kw_only=True)
class MIFSU(PairwiseInformation):
    r"""MIFS for uniformly distributed information.

    .. math:: I(x_j; y) - \beta \sum_{i \in S} \frac{I(y; x_i)}{H(x_i)} I(x_j; x_i)

    A constant selected column contributes 0.

    Parameters
    ----------
    beta : float, default=1
        Weight of the redundancy.
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

    beta: float = 1.0

    _constraints: ClassVar[Constraints] = {"beta": number(least=0)}

    def _term(self, pair: Pair) -> Array:
        relevance = np.asarray(pair.relevance)
        zeros = np.zeros_like(relevance)
        share = np.divide(relevance, pair.entropy("i"), out=zeros, where=relevance > 0)
        return share * pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - self.beta * sums


class MRMR(PairwiseInformation):
    r"""Maximum relevance, minimum redundancy (the difference form).

    .. math:: I(x_j; y) - \frac{1}{|S|} \sum_{i \in S} I(x_j; x_i)

    It cannot find interactions (columns that are informative only in combination).

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

    def _term(self, pair: Pair) -> Array:
        return pair.shared


class NMIFS(PairwiseInformation):
    r"""Normalised mutual information feature selection.

    .. math:: I(x_j; y) - \frac{1}{|S|} \sum_{i \in S} \frac{I(x_j; x_i)}{\min\{H(x_j), H(x_i)\}}

    A constant column has no redundancy.

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

    def _term(self, pair: Pair) -> Array:
        least = np.minimum(pair.entropy("j"), pair.entropy("i"))
        return np.divide(pair.shared, least, out=np.zeros_like(least), where=least > 0)


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

    _combine = np.minimum
    _start = np.iinfo(np.int64).max

    def _term(self, pair: Pair) -> Array:
        return pair.conditional

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums


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

    def _term(self, pair: Pair) -> Array:
        return pair.excess(self.relevance_)  # without I(x_j; y), which `_score` adds to each term

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

    def _term(self, pair: Pair) -> Array:
        return pair.together

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums


class DISR(PairwiseInformation):
    r"""Double input symmetrical relevance: JMI divided by the joint entropy.

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

    def _term(self, pair: Pair) -> Array:
        triple = pair.entropy("ijy")
        return np.divide(pair.together, triple, out=np.zeros_like(triple), where=triple > 0)

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return sums

"""Criteria that scan all pairs of columns for interactions.

An interaction is a pair of columns that is informative only in combination.
"""

from dataclasses import dataclass
from heapq import nlargest
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array
from tamis._checks import Constraints, integer
from tamis._seeds import Seed, draw_seed, stream
from tamis.blocks.inputs import check_data
from tamis.blocks.table import BlockTable
from tamis.contract.record import Interaction
from tamis.criteria.information import PairwiseInformation
from tamis.criteria.univariate import Univariate
from tamis.density.bins import BinnedCriterion
from tamis.density.discrete import Coded, coding_cost, rounded, settled
from tamis.density.joint import Pair
from tamis.density.planes import BlockLevels
from tamis.density.scan import PairBlock, pair_blocks, permuted_blocks
from tamis.exceptions import IncompatibleCriterion

#: Default number of bins. The contingency table of two columns and the target then has 16 cells per
#: class, which a hundred rows can fill. More bins detect finer dependence, but also more spurious
#: dependence.
N_BINS = 4


class Scan:
    """Scan over all pairs of coded columns that finds the largest I(x_i; y | x_j) for each i."""

    def __init__(self, coded: Any, target: Any, top: int, n_interactions: int, *, adjusted: bool):
        self._own = coded.information(target, adjusted=adjusted)
        if adjusted:  # the blocks already contain I(x_i; y | x_j)
            self._left = np.zeros(len(self._own))
        else:
            self._left = coded.entropy_of(target) - self._own  # H(x_j, y) - H(x_j)
        self._settled = rounded if adjusted else settled
        n, self._n_interactions = len(self._own), n_interactions
        self.best = np.full((n, min(top, max(1, n - 1))), -np.inf)
        if n == 1:  # a single column has no partner
            self.best[:, 0] = self._own
        self.partners = np.full(n, -1)
        self.interactions: list[Interaction] = []

    @property
    def scores(self) -> Array:
        """Score of each column i: the mean of I(x_i; y | x_j) over its best partners j."""
        return np.asarray(self._settled(self.best.mean(axis=1)))

    def take(self, block: PairBlock) -> None:
        """Update the scores, partners and interactions with the pairs of a block."""
        rows, columns, information, transposed = block
        if len(self.best) > 1:
            self._take(rows, columns, information)
        if rows != columns:
            self._take(columns, rows, (information if transposed is None else transposed).T)
        excess = information + self._left[columns] - self._own[rows, None]
        if transposed is not None:  # the two directions were corrected by different expectations
            excess = (excess + transposed - self._own[columns]) / 2
        found = self._strongest(rows, columns, excess)
        self.interactions = nlargest(self._n_interactions, self.interactions + found, key=_strength)

    def _take(self, columns: slice, others: slice, information: Array) -> None:
        """Update the largest I(x_i; y | x_j) of a slice of columns i with a slice of others j."""
        conditional = self._settled(information + self._left[others])
        if columns == others:
            np.fill_diagonal(conditional, -np.inf)
        partner, before = conditional.argmax(axis=1), self.best[columns].max(axis=1)
        # ties go to the lowest index
        better = conditional[np.arange(len(partner)), partner] > before
        self.partners[columns][better] = others.start + partner[better]
        values = np.concatenate([self.best[columns], conditional], axis=1)
        cut = values.shape[1] - self.best.shape[1]
        self.best[columns] = np.partition(values, cut, axis=1)[:, cut:]

    def _strongest(self, columns: slice, others: slice, excess: Array) -> list[Interaction]:
        """Return the pairs of a block with the most information beyond their single columns."""
        n, pairs = self._n_interactions, np.arange(excess.size).reshape(excess.shape)
        pairs = pairs[np.triu_indices(len(pairs), 1)] if columns == others else pairs.ravel()
        values = excess.ravel()[pairs]
        if n < len(pairs):
            best = np.argpartition(-values, n)[:n]
            pairs, values = pairs[best], values[best]
        i, j = np.divmod(pairs, excess.shape[1])
        return [
            Interaction(columns.start + int(a), others.start + int(b), float(value))
            for a, b, value in zip(i, j, values, strict=True)
        ]


def scan_pairs(coded: Any, target: Any, top: int, n_interactions: int, *, adjusted: bool) -> Scan:
    """Scan all pairs of columns."""
    scan = Scan(coded, target, top, n_interactions, adjusted=adjusted)
    if isinstance(coded, BlockLevels):
        blocks = coded.pair_blocks(adjusted=adjusted)
    else:
        blocks = pair_blocks(coded, target, adjusted=adjusted)
    for block in blocks:
        scan.take(block)
    return scan


def p_values_of(maxima: Array, values: Array) -> Array:
    """Return a p-value for each value: the share of permutations with a maximum at least as large.

    The observed target is included as one of the permutations.
    """
    # a tolerance for rounding errors, which depend on the order of summation
    above = len(maxima) - np.searchsorted(np.sort(maxima), values - 1e-12)
    return np.asarray((1 + above) / (1 + len(maxima)))


def _strength(pair: Interaction) -> tuple[float, int, int]:
    """Return a sort key that breaks ties by the lowest indices."""
    return pair.information, -pair.first, -pair.second


@dataclass(eq=False, repr=False, kw_only=True)
class PairInformation(BinnedCriterion, Univariate):
    r"""Largest information of a column about the target, given one other column.

    .. math:: \max_{j \ne i} I(x_i; y \mid x_j)

    All pairs of columns are scanned, so the criterion finds columns that are informative only in
    pairs, as in XOR. mRMR, JMI and CMIM score such columns 0 in the first step. The maximum over
    many pairs is high even by chance; use ``n_permutations`` to compute p-values. Duplicate columns
    have the same score.

    Parameters
    ----------
    top : int, default=1
        Number of best partners over which the score is averaged.
    n_bins : int or None, default=4
        Number of bins. A column with at most this number of distinct values is not cut. None means
        the cube root of the number of samples, rounded up. With 800 rows or more, 8 bins detect
        finer dependence, at four times the work.
    n_interactions : int, default=100
        Number of strongest pairs in ``interactions_``.
    n_permutations : int, default=0
        Number of times the target is permuted to compute p-values of columns and pairs. Each
        permutation takes about half the work of the scan.
    random_state : int, generator or None, default=0
        Seed of the permutations.
    binning, categories, adjusted, task
        As in :class:`MIFS`. NaN is treated as a level of its own.

    Attributes
    ----------
    scores_ : array of shape (n_units,)
        Score of each unit (a column, or a group of columns that is selected as one).
    partners_ : array of shape (n_units,)
        For each unit, the index of the unit with which it is most informative, or -1 if there is
        only one unit.
    interactions_ : list of Interaction
        The strongest pairs. ``first`` and ``second`` are columns. ``information`` is the
        information of the pair minus the sum of the information of the two columns, in nats.
        ``p_value`` is set if the target was permuted.
    null_maxima_ : array of shape (n_permutations,)
        Greatest score of each permuted target. Only set if there were permutations.
    p_values_ : array of shape (n_units,)
        p-value of each unit: the share of the permuted targets whose greatest score is at least as
        large. The observed target counts as one of them. The p-values of columns and of pairs are
        corrected for the number of columns. If no column is related to the target, the smallest
        p-value is at most p with probability p. Only set if there were permutations.

    References
    ----------
    Westfall and Young (1993), Resampling-based multiple testing.
    Passemiers, Folco, Raimondi, Birolo, Moreau and Fariselli (2024), A quantitative benchmark of
    neural network feature selection methods for detecting nonlinear signals, Scientific Reports 14.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 6))
    >>> y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    >>> criterion = PairInformation().fit(X, y)
    >>> criterion.scores_.round(2)
    array([0.02, 0.62, 0.01, 0.02, 0.62, 0.01])
    >>> criterion.interactions_[0][:2]
    (1, 4)
    """

    top: int = 1
    n_bins: int | None = N_BINS
    n_interactions: int = 100
    n_permutations: int = 0
    random_state: Seed = 0

    _constraints: ClassVar[Constraints] = {
        "top": integer(1),
        "n_interactions": integer(0),
        "n_permutations": integer(0),
    }

    @property
    def monotone(self) -> bool:
        """Whether adding a column never lowers the value.

        This does not hold if scores are corrected for chance, because they may then be negative.
        """
        return not self._adjusts()

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return scan_cost(n_samples, n_features)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        coded, target = self._cut(X), self._cut_target(y)
        self._scan(coded, target)
        if self.n_permutations:
            self._permute(coded, target)

    def _learn_blocks(self, table: BlockTable) -> None:
        if self.n_permutations:
            raise IncompatibleCriterion(
                "PairInformation with n_permutations needs the whole table in memory, got a source "
                "of row blocks. Leave n_permutations out, or draw rows with tamis.blocks.sample."
            )
        coded = self._cut_blocks(table)
        self._scan(coded, coded.target)

    def _scan(self, coded: Any, target: Any) -> None:
        scan = scan_pairs(coded, target, self.top, self.n_interactions, adjusted=self._adjusted)
        self.scores_ = scan.scores
        self.partners_, self.interactions_ = scan.partners, scan.interactions

    def _permute(self, coded: Coded, target: NDArray[np.intp]) -> None:
        """Compute p-values of the columns and pairs from permuted targets."""
        seed = draw_seed(self.random_state)
        self.null_maxima_, pairs = self._null(coded, target, self.n_permutations, seed)
        self.p_values_ = p_values_of(self.null_maxima_, self.scores_)
        information = np.array([pair.information for pair in self.interactions_])
        p_values = p_values_of(pairs, information)
        self.interactions_ = [
            pair._replace(p_value=float(p))
            for pair, p in zip(self.interactions_, p_values, strict=True)
        ]

    def _null(
        self, coded: Coded, target: NDArray[np.intp], n: int, seed: int
    ) -> tuple[Array, Array]:
        """Return the greatest score and the strongest pair for each of n permuted targets."""
        adjusted = self._adjusted
        permuted = [stream(seed, "null", draw).permutation(target) for draw in range(n)]
        scans = [Scan(coded, other, self.top, 1, adjusted=adjusted) for other in permuted]
        for index, block in permuted_blocks(coded, permuted, adjusted=adjusted):
            scans[index].take(block)
        pairs = [scan.interactions[0].information for scan in scans if scan.interactions]
        return np.array([scan.scores.max() for scan in scans]), np.array(pairs)

    def null_maxima(
        self, X: ArrayLike, y: ArrayLike, *, n_permutations: int = 20, random_state: int = 0
    ) -> Array:
        """Return the greatest score for each of several permutations of the target.

        If no column is related to the target, a score exceeds all of 19 such maxima with a
        probability of at most 1/20.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The table.
        y : array of shape (n_samples,)
            The target, which is permuted.
        n_permutations : int, default=20
            Number of permutations.
        random_state : int, default=0
            Seed of the permutations.

        Returns
        -------
        array of shape (n_permutations,)
        """
        table, values = check_data(self, X, y)
        assert values is not None
        coded, target = self._cut(table), self._cut_target(values)
        return self._null(coded, target, n_permutations, random_state)[0]


@dataclass(eq=False, repr=False, kw_only=True)
class PairMRMR(PairwiseInformation):
    r"""mRMR with the score of :class:`PairInformation` as relevance.

    .. math:: \max_{k \ne j} I(x_j; y \mid x_k) - \frac{1}{|S|} \sum_{i \in S} I(x_j; x_i)

    Unlike :class:`MRMR`, it adds columns that are informative only in pairs. Like :class:`MRMR`, it
    avoids duplicate columns.

    Parameters
    ----------
    n_bins : int or None, default=4
        Number of bins, as in :class:`PairInformation`.
    binning, categories, missing, adjusted, task
        As in :class:`MIFS`. ``missing`` applies to the redundancy; the scan over pairs always
        treats NaN as a level.

    Attributes
    ----------
    relevance_ : array of shape (n_units,)
        Relevance of each unit (a column, or a group of columns that is selected as one).
    interactions_ : list of Interaction
        The strongest pairs.

    Examples
    --------
    >>> from tamis.search import Forward
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 6))
    >>> y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    >>> Forward(PairMRMR(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 4])
    """

    n_bins: int | None = N_BINS

    takes_sparse: ClassVar[bool] = False

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return scan_cost(n_samples, n_features) + coding_cost(n_samples, n_features)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self._scan()

    def _learn_blocks(self, table: BlockTable) -> None:
        super()._learn_blocks(table)
        self._scan()

    def _term(self, pair: Pair) -> Array:
        return pair.shared

    def _scan(self) -> None:
        scan = scan_pairs(self._coded, self._target, 1, 100, adjusted=self._adjusted)
        self.relevance_, self.interactions_ = scan.best[:, 0], scan.interactions


def scan_cost(n_samples: int, n_features: int) -> float:
    """Estimate the memory in bytes that the coded columns and a block of pairs need."""
    return coding_cost(n_samples, n_features) + 2e8

"""Criteria that look at all pairs of columns, for those that matter only together."""

from heapq import nlargest
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array
from tamis._checks import Constraints, integer
from tamis._seeds import draw_seed, stream
from tamis.blocks.inputs import check_data
from tamis.blocks.table import BlockTable
from tamis.contract.record import Interaction
from tamis.criteria.information import AnyPair, PairwiseInformation
from tamis.criteria.univariate import Univariate
from tamis.density.discrete import (
    BINNING_CONSTRAINTS,
    Coded,
    coded_target,
    coding_cost,
    is_adjusted,
    levels_of,
    rounded,
    settled,
)
from tamis.density.planes import BlockLevels, levels_of_blocks
from tamis.density.scan import PairBlock, pair_blocks, permuted_blocks
from tamis.exceptions import IncompatibleCriterion

#: Levels of a column: tables of two columns and the target have 16 cells a class, which a hundred
#: rows fill; more bins see finer shapes and more of what is not there.
N_BINS = 4


class Scan:
    """All pairs of coded columns: for each column the most that it tells beside another."""

    def __init__(
        self, coded: Any, target: Any, top: int, n_interactions: int, *, adjusted: bool = False
    ):
        self._own = coded.information(target, adjusted=adjusted)
        self._left = coded.entropy_of(target) - self._own  # H(x_j, y) - H(x_j)
        if adjusted:  # blocks have it in them
            self._left = np.zeros(len(self._own))
        self._settled = rounded if adjusted else settled
        n, self._kept = len(self._own), n_interactions
        self.best = np.full((n, min(top, max(1, n - 1))), -np.inf)
        if n == 1:  # there is no other: what it tells alone
            self.best[:, 0] = self._own
        self.partners = np.full(n, -1)
        self.interactions: list[Interaction] = []

    @property
    def scores(self) -> Array:
        """The mean over the best partners."""
        return np.asarray(self._settled(self.best.mean(axis=1)))

    def take(self, block: PairBlock) -> None:
        """Look at the pairs of a block."""
        rows, columns, told, turned = block
        if len(self.best) > 1:
            self._take(rows, columns, told)
        if rows != columns:
            self._take(columns, rows, (told if turned is None else turned).T)
        beyond = told + self._left[columns] - self._own[rows, None]
        if turned is not None:  # the two ways differ by what is expected of them
            beyond = (beyond + turned - self._own[columns]) / 2
        found = self._strongest(rows, columns, beyond, self._kept)
        self.interactions = nlargest(self._kept, self.interactions + found, key=_strength)

    def _take(self, of: slice, beside: slice, told: Array) -> None:
        """Keep the most that columns tell beside others, I(x_i; y | x_j), and beside which."""
        conditional = self._settled(told + self._left[beside])
        if of == beside:
            np.fill_diagonal(conditional, -np.inf)
        partner, before = conditional.argmax(axis=1), self.best[of].max(axis=1)
        better = (
            conditional[np.arange(len(partner)), partner] > before
        )  # of equals the lowest index
        self.partners[of][better] = beside.start + partner[better]
        known = np.concatenate([self.best[of], conditional], axis=1)
        cut = known.shape[1] - self.best.shape[1]
        self.best[of] = np.partition(known, cut, axis=1)[:, cut:]

    def _strongest(self, of: slice, beside: slice, beyond: Array, n: int) -> list[Interaction]:
        """The pairs of a block that tell most beyond the two alone."""
        pairs = np.arange(beyond.size).reshape(beyond.shape)
        pairs = pairs[np.triu_indices(len(pairs), 1)] if of == beside else pairs.ravel()
        values = beyond.ravel()[pairs]
        if n < len(pairs):
            best = np.argpartition(-values, n)[:n]
            pairs, values = pairs[best], values[best]
        i, j = np.divmod(pairs, beyond.shape[1])
        return [
            Interaction(of.start + int(a), beside.start + int(b), float(value))
            for a, b, value in zip(i, j, values, strict=True)
        ]


def scanned(
    coded: Any, target: Any, top: int, n_interactions: int, *, adjusted: bool = False
) -> Scan:
    """All pairs, looked at."""
    scan = Scan(coded, target, top, n_interactions, adjusted=adjusted)
    if isinstance(coded, BlockLevels):
        blocks = coded.pair_blocks(adjusted=adjusted)
    else:
        blocks = pair_blocks(coded, target, adjusted=adjusted)
    for block in blocks:
        scan.take(block)
    return scan


class Null(NamedTuple):
    """The greatest score, and the strongest pair, of each of the permuted targets."""

    scores: Array
    pairs: Array


def null_of(
    coded: Coded, target: NDArray[np.intp], top: int, n: int, seed: int, *, adjusted: bool = False
) -> Null:
    """Maxima of a table whose target is permuted so many times."""
    permuted = [stream(seed, "null", draw).permutation(target) for draw in range(n)]
    scans = [Scan(coded, other, top, 1, adjusted=adjusted) for other in permuted]
    for index, block in permuted_blocks(coded, permuted, adjusted=adjusted):
        scans[index].take(block)
    pairs = [scan.interactions[0].information for scan in scans if scan.interactions]
    return Null(np.array([scan.scores.max() for scan in scans]), np.array(pairs))


def p_values_of(maxima: Array, values: Array) -> Array:
    """Share of tables without any relation in which the greatest is as large, this one counted."""
    # as large but for rounding, which differs with the order of the sums
    above = len(maxima) - np.searchsorted(np.sort(maxima), values - 1e-12)
    return np.asarray((1 + above) / (1 + len(maxima)))


def _strength(pair: Interaction) -> tuple[float, int, int]:
    """Of equal pairs the lowest indices come first."""
    return pair.information, -pair.first, -pair.second


class PairInformation(Univariate):
    r"""The most that a column tells of the target beside any one other column.

    .. math:: \max_{j \ne i} I(x_i; y \mid x_j)

    All pairs are looked at, so that columns which say nothing alone but matter in pairs (as in an
    exclusive or) are found, at which mRMR, JMI and CMIM begin with a score of 0. The best of many
    pairs is high by chance too: ``n_permutations`` says how high. Two copies of a column score
    alike.

    Parameters
    ----------
    top : int, default=1
        The score is the mean over so many best partners.
    n_bins : int or None, default=4
        A column of at most so many distinct values is used as it is. None is the cube root of the
        number of samples, rounded up. From some 800 rows on 8 bins see finer shapes, at four times
        the work: of a ring, an exclusive or and a sum in one target among 8 to 512 columns (one
        draw of each size, six folds) they found all columns where 4 found 89 %.
    n_interactions : int, default=100
        How many of the strongest pairs are kept.
    n_permutations : int, default=0
        So many times the target is permuted and all pairs are looked at again, each time at about
        half of the work. P-values are then there for columns and pairs.
    random_state : int, generator or None, default=0
        Seed of the permutations.
    binning, categories, adjusted, task
        As in :class:`MIFS`; NaN is a level of its own.

    Attributes
    ----------
    scores_ : array of shape (n_units,)
    partners_ : array of shape (n_units,)
        The other column beside which each tells most; -1 where there is none.
    interactions_ : list of Interaction
        The strongest pairs: ``first``, ``second`` and ``information``, what they tell together
        beyond the two alone, in nats; ``p_value`` where the target was permuted.
    null_maxima_ : array of shape (n_permutations,)
        The greatest score of each permuted target; only where there were permutations.
    p_values_ : array of shape (n_units,)
        Share of the permuted targets whose greatest score is as large, this table counted with
        them. In a table without any relation the least is at most p with probability p, however
        many columns there are; the same holds of the pairs. Only where there were permutations.

    References
    ----------
    Westfall and Young (1993), Resampling-based multiple testing (the maximum of permuted tables).
    Passemiers, Folco, Raimondi, Birolo, Moreau and Fariselli (2024), A quantitative benchmark of
    neural network feature selection methods for detecting nonlinear signals, Scientific Reports 14
    (problems on which pairs matter alone).

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

    takes_missing: ClassVar[bool] = True
    takes_categories: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    runs_on_device: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "top": integer(1),
        "n_interactions": integer(0),
        "n_permutations": integer(0),
        **BINNING_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        top: int = 1,
        n_bins: int | None = N_BINS,
        n_interactions: int = 100,
        n_permutations: int = 0,
        random_state: Any = 0,
        binning: str = "frequency",
        categories: ArrayLike | None = None,
        adjusted: bool | str = "auto",
        task: str = "auto",
    ):
        self.top = top
        self.n_bins = n_bins
        self.n_interactions = n_interactions
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.binning = binning
        self.categories = categories
        self.adjusted = adjusted
        self.task = task

    @property
    def monotone(self) -> bool:
        """Scores are never negative, unless they are corrected for chance."""
        return not is_adjusted(self)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return scan_cost(n_samples, n_features)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self._adjusted = is_adjusted(self, X.shape[1])
        coded = levels_of(self, X)
        target = coded_target(y, self.task_, self.n_bins, self.binning)
        self._scan(coded, target)
        if self.n_permutations:
            self._permute(coded, target)

    def _learn_blocks(self, table: BlockTable) -> None:
        if self.n_permutations:
            raise IncompatibleCriterion(
                "PairInformation with n_permutations needs the whole table in memory, and was "
                "given a source of row blocks. Leave n_permutations out, or take rows of it: "
                "tamis.blocks.sample."
            )
        self._adjusted = is_adjusted(self, table.shape[1])
        coded = levels_of_blocks(self, table)
        self._scan(coded, coded.target)

    def _scan(self, coded: Any, target: Any) -> None:
        scan = scanned(coded, target, self.top, self.n_interactions, adjusted=self._adjusted)
        self.scores_ = scan.scores
        self.partners_, self.interactions_ = scan.partners, scan.interactions

    def _permute(self, coded: Coded, target: NDArray[np.intp]) -> None:
        """Set beside scores and pairs what permuted targets have for greatest."""
        seed = draw_seed(self.random_state)
        null = self._null(coded, target, self.n_permutations, seed)
        self.null_maxima_ = null.scores
        self.p_values_ = p_values_of(null.scores, self.scores_)
        told = np.array([pair.information for pair in self.interactions_])
        found = zip(self.interactions_, p_values_of(null.pairs, told), strict=True)
        self.interactions_ = [pair._replace(p_value=float(p)) for pair, p in found]

    def _null(self, coded: Coded, target: NDArray[np.intp], n: int, seed: int) -> Null:
        return null_of(coded, target, self.top, n, seed, adjusted=self._adjusted)

    def null_maxima(
        self, X: ArrayLike, y: ArrayLike, *, n_permutations: int = 20, random_state: int = 0
    ) -> Array:
        """The greatest score of a table whose target is permuted, so many times.

        What a score exceeds by chance: those above all of 19 maxima are there in one of 20 tables
        without any relation at most.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        n_permutations : int, default=20
        random_state : int, default=0

        Returns
        -------
        array of shape (n_permutations,)
        """
        table, answers = check_data(self, X, y)
        assert answers is not None
        self._adjusted = is_adjusted(self, table.shape[1])
        coded = levels_of(self, table)
        target = coded_target(answers, self.task_, self.n_bins, self.binning)
        return self._null(coded, target, n_permutations, random_state).scores


class PairMRMR(PairwiseInformation):
    r"""The most that a column tells beside any other, less what it shares with those chosen.

    .. math:: \max_{k \ne j} I(x_j; y \mid x_k) - \frac{1}{|S|} \sum_{i \in S} I(x_j; x_i)

    As :class:`MRMR`, with the relevance that :class:`PairInformation` finds in place of that of a
    column alone: columns that matter in pairs are added, copies of what is there are not.

    Parameters
    ----------
    n_bins : int or None, default=4
    binning, categories, missing, adjusted, task
        As in :class:`MIFS`; ``missing`` is about what columns share, to the scan over pairs NaN is
        a level.

    Attributes
    ----------
    relevance_ : array of shape (n_units,)
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

    takes_sparse: ClassVar[bool] = False

    def __init__(
        self,
        *,
        n_bins: int | None = N_BINS,
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

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return scan_cost(n_samples, n_features) + coding_cost(n_samples, n_features)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self._scan()

    def _learn_blocks(self, table: BlockTable) -> None:
        super()._learn_blocks(table)
        self._scan()

    def _term(self, pair: AnyPair) -> Array:
        return pair.shared

    def _score(self, relevance: Array, sums: Array, n_chosen: int) -> Array:
        return relevance - sums / n_chosen

    def _scan(self) -> None:
        scan = scanned(self._coded, self._target, 1, 100, adjusted=self._adjusted)
        self.relevance_, self.interactions_ = scan.best[:, 0], scan.interactions


def scan_cost(n_samples: int, n_features: int) -> float:
    """Estimate the bytes held by the coded columns and by a block of pairs of them."""
    return coding_cost(n_samples, n_features) + 2e8

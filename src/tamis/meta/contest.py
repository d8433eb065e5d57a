"""Selection of columns that repeatedly beat the best permuted column (Boruta)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tamis._arrays import Array, Subset, best_first
from tamis._checks import BOOLEAN, Constraints, integer, number
from tamis.exceptions import InvalidParameter
from tamis.meta.repeats import InRounds, Verdict, readable_rounds
from tamis.meta.search_repeats import Rounds

#: Number of rounds between two decisions. These rounds run in parallel. Deciding after every round
#: would save at most four rounds.
BLOCK = 5
#: Minimum number of units that compete in a round, as in Boruta. Each unit adds a permuted copy,
#: called a probe. With fewer probes, the best probe would be too easy to beat.
FIELD = 5


class Stand(NamedTuple):
    """State of a contest after a number of rounds, as arrays with one entry per unit."""

    wins: Subset
    played: Subset
    #: Number of probes that scored better than the unit, summed over rounds and scaled to stay
    #: below 1. It breaks ties between units with the same number of wins.
    behind: Array
    kept: NDArray[np.bool_]
    rejected: NDArray[np.bool_]

    @property
    def open(self) -> bool:
        """Whether any unit is undecided."""
        return not (self.kept | self.rejected).all()

    @property
    def field(self) -> Subset:
        """Units of the next round: all that are not rejected.

        If these are too few, the best rejected units are added.
        """
        missing = FIELD - int((~self.rejected).sum())
        again = best_first(np.where(self.rejected, self.wins, -1))[: max(missing, 0)]
        return np.union1d(np.flatnonzero(~self.rejected), again)


@dataclass(eq=False, repr=False, kw_only=True)
class Contest(Rounds, InRounds):
    """Select the columns that beat the best of all permuted columns in most rounds (Boruta).

    As in :class:`Probes`, each of R rounds appends probes to the table: copies of all d columns
    with permuted rows. A column wins a round if it scores better than all probes. Columns whose
    number of wins has a binomial p-value of at most ``alpha / d`` are selected (Bonferroni
    correction).

    With ``early_rejection`` a two-sided test is also made between rounds. A column with enough wins
    is selected. A column with too few wins is dropped together with its probe, so the other columns
    compete with fewer probes. If the search ranks columns by the importances of a forest, this is
    Boruta: ``tamis.recipe("boruta")``. Early rejection is meant for models that cannot cope with
    thousands of columns. It favours the columns that remain: they are the best of many, but compete
    with few probes.

    ``alpha`` does not control the error rate. All rounds use the same rows, so a noise column that
    wins once wins often. In a table of pure noise, the probability that a column is selected is
    greater than ``alpha``. With early rejection, a column is selected in most of these tables. Use
    :class:`Probes` to control the error rate. A column that is redundant with a relevant column is
    selected as well.

    Parameters
    ----------
    search : Search or any other selection
        The search that scores or orders columns and probes. If it scores each column independently,
        these scores are compared. Otherwise positions in its column order are compared. A forward
        search stops at 40 columns.
    alpha : float, default=0.05
        Significance level of the binomial test, before the division by the number of columns.
    n_rounds : int, default=20
        Number of rounds. It must be at least log2(d / alpha), because with fewer rounds no column
        could be selected. With early rejection it is the maximum number of rounds, and columns that
        are undecided after it are not selected. A column that wins only after others were dropped
        needs many rounds. Boruta uses 100.
    early_rejection : bool, default=False
        Whether columns are tested after log2(d / alpha) rounds and again after every fifth round.
    random_state : int, generator or None, default=None
        Seed of the permutations, and of the search.
    n_jobs : int or None, default=None
        Number of rounds in parallel. The result does not depend on it. With early rejection, at
        most five rounds run in parallel after the first decision.

    Attributes
    ----------
    wins_ : array of int
        Number of rounds in which each unit scored better than all probes.
    n_rounds_ : array of int
        Number of rounds in which each unit competed.
    p_values_ : array of float
        Binomial p-value of the number of wins of each unit.
    rejected_ : array of bool
        Mask of the units that were dropped early.

    References
    ----------
    Kursa and Rudnicki (2010), Feature selection with the Boruta package.

    Examples
    --------
    >>> from tamis.choice import Contest
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=200)
    >>> Contest(Ranking(Correlation()), random_state=0).fit(X, y).get_support(indices=True)
    array([4, 9])
    """

    passes_nan = True
    passes_targets = True

    _constraints: ClassVar[Constraints] = {
        "alpha": number(above=0, below=1),
        "n_rounds": integer(1),
        "early_rejection": BOOLEAN,
    }

    alpha: float = 0.05
    n_rounds: int = 20
    early_rejection: bool = False

    def _fewest(self, d: int) -> int:
        """Return the smallest number of rounds after which a unit can be selected or rejected."""
        return int(np.ceil(np.log2(d / self.alpha)))

    def _blocks(self, d: int) -> Iterator[range]:
        """Yield the ranges of rounds between decisions."""
        stops = [self.n_rounds]
        if self.early_rejection:
            stops = [*range(self._fewest(d), self.n_rounds, BLOCK), self.n_rounds]
        begin = 0
        for stop in stops:
            yield range(begin, stop)
            begin = stop

    def _played(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: dict[str, list[Any]]
    ) -> Iterator[tuple[int, list[Any]]]:
        d = self._units.n_units
        if self._fewest(d) > self.n_rounds:
            raise InvalidParameter(
                f"Contest with alpha={self.alpha:g} needs n_rounds of at least "
                f"{self._fewest(d)} for {self._counted(d)}, not "
                f"{self.n_rounds}: with fewer, no column could be selected."
            )
        for block in self._blocks(d):
            with readable_rounds(self):
                stand = self._stand(d, [found[str(index)] for index in range(block.start)])
            if not stand.open:
                return
            self._field = stand.field
            yield from self._at_once(X, y, seed, found, block)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        return self._probes_ahead(X, y, seed, index, self._field)

    def _stand(self, d: int, found: list[list[Any]]) -> Stand:
        """Return the state after the rounds ``found``, with a decision after each block."""
        (wins, played), (kept, rejected) = np.zeros((2, d), dtype=int), np.zeros((2, d), dtype=bool)
        stand = Stand(wins, played, np.zeros(d), kept, rejected)
        for block in self._blocks(d):
            rounds = found[block.start : block.stop]
            if not rounds:
                break
            field = stand.field
            ahead = np.array(rounds, dtype=float).reshape(len(rounds), len(field))
            stand.wins[field] += (ahead == 0).sum(axis=0)
            stand.played[field] += len(rounds)
            stand.behind[field] += ahead.sum(axis=0) / (1 + self.n_rounds * len(field))
            stand = self._decide(stand)
        return stand

    def _decide(self, stand: Stand) -> Stand:
        wins, played, _, kept, rejected = stand
        level, free = self.alpha / len(wins), ~(kept | rejected)
        kept = kept | free & (binom.sf(wins - 1, played, 0.5) <= level)
        if self.early_rejection:
            rejected = rejected | free & (binom.cdf(wins, played, 0.5) <= level)
        return stand._replace(kept=kept, rejected=rejected)

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self._last = stand = self._stand(n_units, found)
        self.wins_, self.n_rounds_, self.rejected_ = stand.wins, stand.played, stand.rejected
        self.p_values_ = binom.sf(self.wins_ - 1, self.n_rounds_, 0.5)
        # units selected early come first, and rejected units last. Ties go to the unit that fewer
        # probes beat.
        decided = self.n_rounds * (stand.kept.astype(float) - stand.rejected)
        return np.asarray(self.wins_ - stand.behind + self.early_rejection * decided)

    def _verdict(self, scores: Array) -> Verdict:
        kept = self._last.kept
        n_kept, n_open = int(kept.sum()), int((~(kept | self.rejected_)).sum())
        n_rounds = int(self.n_rounds_.max())
        undecided = ""
        if self.early_rejection and n_open:
            undecided = f" Undecided and not selected: {self._counted(n_open)}."
        if not n_kept:
            return Verdict(
                0,
                f"no column beats the best permuted column in significantly more than half of "
                f"{n_rounds} rounds.{undecided}",
            )
        rate = "at alpha=0.05, columns are selected in 9 to 17 % of tables of pure noise"
        if self.early_rejection:
            rate = "with early rejection, columns are selected in most tables of pure noise"
        fewest = int(self.wins_[kept].min())
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)}: better than the best permuted column in {fewest} or more of "
            f"{n_rounds} rounds.{undecided} This does not control the error rate: {rate}.",
        )

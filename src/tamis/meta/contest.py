"""Keep what beats the best of columns that are known to say nothing, again and again."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tamis._arrays import Array, Subset, best_first
from tamis._checks import BOOLEAN, Constraints, integer, number
from tamis.contract import Selection
from tamis.exceptions import InvalidParameter
from tamis.meta.repeats import InRounds, Verdict, readable_rounds
from tamis.meta.search_repeats import Rounds

#: Rounds from one decision to the next: they can run at once, and a column that is out earlier
#: would spare at most four of them.
BLOCK = 5
#: Units that stay in the field: of fewer probes the best is too easily beaten (as in Boruta).
FIELD = 5


class Stand(NamedTuple):
    """How a contest stands after a number of rounds."""

    wins: Subset
    played: Subset
    #: Sum over rounds of the share of probes that stood ahead, below 1.
    behind: Array
    kept: NDArray[np.bool_]
    rejected: NDArray[np.bool_]

    @property
    def open(self) -> bool:
        """Whether there is a unit of which nothing is decided."""
        return not (self.kept | self.rejected).all()

    @property
    def field(self) -> Subset:
        """Units of the next round: who is not rejected, and the best of those to fill it up."""
        missing = FIELD - int((~self.rejected).sum())
        again = best_first(np.where(self.rejected, self.wins, -1))[: max(missing, 0)]
        return np.union1d(np.flatnonzero(~self.rejected), again)


class Contest(Rounds, InRounds):
    """Keep the columns that stand ahead of the best probe in more rounds than a coin would give.

    As in :class:`Probes` a copy of all d columns, its rows permuted together, stands beside the
    table in each of R rounds; a column wins the round if no probe at all is ahead of it. Kept are
    columns that win so many rounds that a coin wins as many with probability at most
    ``alpha / d`` (the binomial test of Boruta, with Bonferroni's correction).

    With ``early_rejection`` the test is made on the way, and to both sides: a column that wins so
    many of the rounds so far is kept, and one that wins so few leaves the contest and takes its
    probe with it, so that those that are left meet fewer. With a forest's importances this is
    Boruta: ``tamis.recipe("boruta")``. It is meant for models that thousands of columns drown,
    and for them alone: what is left after many columns went is the best by luck of many, and meets
    the probes of few.

    ``alpha`` is no level. The rounds share the rows, so that a column of noise that wins once wins
    often: with 20 rounds and ``alpha=0.05`` a column is kept in 9 to 17 of 100 tables of noise.
    With early rejection and 100 rounds correlations keep one in 87 of 100 such tables (60 draws),
    three in the mean, and forests keep some too. For a rate that holds use :class:`Probes`. A
    column that only repeats a relevant one is kept here too.

    Parameters
    ----------
    search : Search or any other selection
        Its scores count where it scores columns alone, else its order. A walk that adds columns
        goes to 40 of them.
    alpha : float, default=0.05
        Before it is divided by the number of columns.
    n_rounds : int, default=20
        At least log2(d / alpha): with fewer not even a column that wins all of them could be kept.
        With early rejection those at most; what is undecided then is not kept. A column that begins
        to win only after others left needs many: 100, as in Boruta.
    early_rejection : bool, default=False
        Whether columns are decided on after log2(d / alpha) rounds, and after each five more.
    random_state : int, generator or None, default=None
        Seed of the permutations, and of the search.
    n_jobs : int or None, default=None
        Rounds at the same time; the result does not depend on it. With early rejection five at
        most, after the first decision.

    Attributes
    ----------
    wins_ : array of int
        Rounds in which each unit stood ahead of all probes.
    n_rounds_ : array of int
        Rounds in which each unit took part.
    p_values_ : array of float
        Probability that a coin wins as many of these.
    rejected_ : array of bool
        Units that left the contest early.

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

    #: The units of the rounds that run now.
    _field: Subset

    def __init__(
        self,
        search: Selection,
        *,
        alpha: float = 0.05,
        n_rounds: int = 20,
        early_rejection: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.search = search
        self.alpha = alpha
        self.n_rounds = n_rounds
        self.early_rejection = early_rejection
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_rounds(self) -> int:
        return self.n_rounds

    def _fewest(self, d: int) -> int:
        """Rounds after which a unit can be decided on."""
        return int(np.ceil(np.log2(d / self.alpha)))

    def _blocks(self, d: int) -> Iterator[range]:
        """Rounds between which something is decided."""
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
                f"{self.n_rounds}: with fewer not even one that wins all rounds could be kept."
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
        """How the contest stands after these rounds, decided on after each block."""
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
            stand = self._decided(stand)
        return stand

    def _decided(self, stand: Stand) -> Stand:
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
        # those who are decided on early come before and after all others; the share of all probes
        # that stood ahead tells equals apart
        decided = self.n_rounds * (stand.kept.astype(float) - stand.rejected)
        return np.asarray(self.wins_ - stand.behind + self.early_rejection * decided)

    def _verdict(self, scores: Array) -> Verdict:
        kept = self._last.kept
        n_kept, n_open = int(kept.sum()), int((~(kept | self.rejected_)).sum())
        n_rounds = int(self.n_rounds_.max())
        left = ""
        if self.early_rejection and n_open:
            left = f" Undecided and not kept: {self._counted(n_open)}."
        if not n_kept:
            return Verdict(
                0,
                f"no column wins clearly more than half of {n_rounds} rounds against the best "
                f"of columns that say nothing.{left}",
            )
        stand = "stands" if n_kept == 1 else "stand"
        fewest = int(self.wins_[kept].min())
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)} {stand} ahead of the best probe in {fewest} or more of "
            f"{n_rounds} rounds.{left} That is no promised rate: {self._rate()}.",
        )

    def _rate(self) -> str:
        if self.early_rejection:
            return "with early rejection most tables of noise keep a column or more"
        return "at alpha=0.05 a column is kept in 9 to 17 of 100 tables of noise"

"""Keep what beats columns that are known to say nothing."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, integer, number
from tamis.contract import Selection
from tamis.exceptions import InvalidParameter
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, expected_unrelated


class Probes(Rounds, InRounds):
    """Keep the columns that stand ahead of probes: copies of the table with its rows permuted.

    In each of R rounds a copy of all d columns, its rows permuted together, is put beside the
    table, the 2 d columns are shuffled, and the search runs. With v_j the number of probes ahead
    of column j in all rounds, p_j = (1 + v_j) / (1 + R d); ties of a column and a probe are
    decided by lot. Kept are columns with p_j <= E / d, of which ``expected_false`` = E are expected
    to be unrelated to the target, or what Benjamini and Hochberg's rule keeps at ``fdr``.

    The promise speaks of columns that say nothing of the target, alone or together: a column that
    only repeats a relevant one beats every probe. E is an expectation: at E = 1 two of three tables
    of noise keep a column, and of a single column nothing is asked.

    Parameters
    ----------
    search : Search or any other selection
        Its scores count where it scores columns alone, else its order. A walk that adds columns
        goes to 40 of them.
    expected_false : float, default=1.0
        How many of the kept columns are expected to be unrelated to the target.
    fdr : float or None, default=None
        In its place, the expected share of such columns among those kept.
    n_rounds : int, default=20
        At least ``1 / expected_false`` (or ``1 / fdr``): with fewer no column could be kept.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None
        Rounds at the same time; the result does not depend on it.

    Attributes
    ----------
    p_values_ : array of float

    Examples
    --------
    >>> from tamis.choice import Probes
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=200)
    >>> Probes(Ranking(Correlation()), expected_false=0.1, random_state=0).fit(X, y).get_support(
    ...     indices=True)
    array([4, 9])
    """

    passes_nan = True
    passes_targets = True

    _constraints: ClassVar[Constraints] = {
        "expected_false": number(above=0),
        "fdr": number(above=0, below=1) | NONE,
        "n_rounds": integer(1),
    }

    def __init__(
        self,
        search: Selection,
        *,
        expected_false: float = 1.0,
        fdr: float | None = None,
        n_rounds: int = 20,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.search = search
        self.expected_false = expected_false
        self.fdr = fdr
        self.n_rounds = n_rounds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check(self) -> None:
        super()._check()
        name = "expected_false" if self.fdr is None else "fdr"
        rate = getattr(self, name)
        if self.n_rounds * rate < 1:
            raise InvalidParameter(
                f"Probes with {name}={rate} needs n_rounds of at least {int(np.ceil(1 / rate))}, "
                f"not {self.n_rounds}: with fewer no column could be kept."
            )

    def _n_rounds(self) -> int:
        return self.n_rounds

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        return self._probes_ahead(X, y, seed, index)

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        ahead = np.sum(np.array(found, dtype=float), axis=0)
        self.p_values_ = (1 + ahead) / (1 + self.n_rounds * n_units)
        return np.asarray(np.log(1 / self.p_values_))

    def _verdict(self, scores: Array) -> Verdict:
        p, d = np.exp(-scores) * (1 - 1e-12), len(scores)
        if self.fdr is None and self.expected_false >= d:
            return Verdict(
                d,
                f"all of {self._counted(d)}: expected_false={self.expected_false:g} allows that "
                "many to be unrelated to the target, so nothing was asked of them. Write a smaller "
                "number to have them tested.",
            )
        if self.fdr is None:
            n_kept = int((p <= self.expected_false / d).sum())
            promised = expected_unrelated(self.expected_false)
        else:
            passing = np.flatnonzero(p <= self.fdr * np.arange(1, d + 1) / d)
            n_kept = int(passing[-1]) + 1 if len(passing) else 0
            promised = (
                f"a share of {self.fdr:g} of those kept is expected to be unrelated to the target."
            )
        stand = "stands" if n_kept == 1 else "stand"
        beat = f"{self._counted(n_kept)} {stand} ahead of the probes of {self.n_rounds} rounds; "
        if not n_kept:
            return Verdict(0, "no column stands ahead of columns that say nothing.")
        return Verdict(n_kept, beat + promised)

"""Selection of columns that beat permuted columns."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, integer, number
from tamis.exceptions import InvalidParameter
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, expected_unrelated


@dataclass(eq=False, repr=False, kw_only=True)
class Probes(Rounds, InRounds):
    """Select the columns that score better than probes, which are columns with permuted rows.

    Each of R rounds makes d probes: it copies the d columns and permutes the rows of the copy. Then
    it shuffles the 2 d columns and runs the search on them. The p-value of column j is
    p_j = (1 + v_j) / (1 + R d), where v_j is the number of probes that score better than column j,
    summed over all rounds. Ties are broken at random. Columns with p_j <= E / d are selected, where
    E is ``expected_false``. If ``fdr`` is given, the Benjamini-Hochberg procedure selects the
    columns instead.

    E is the expected number of selected columns that are unrelated to the target. A column that is
    redundant with a relevant one is related to the target, so it is not counted in E. With E = 1,
    two of three tables of pure noise have a selected column. If a table has a single column, that
    column is always selected.

    Parameters
    ----------
    search : Search or any other selection
        The search that scores or orders columns and probes. If it scores each column independently,
        these scores are compared. Otherwise positions in its column order are compared. A forward
        search stops at 40 columns.
    expected_false : float, default=1.0
        Expected number of selected columns that are unrelated to the target.
    fdr : float or None, default=None
        Expected share of unrelated columns among the selected columns. Replaces ``expected_false``.
    n_rounds : int, default=20
        Number of rounds, at least ``1 / expected_false`` (or ``1 / fdr``).
    random_state : int, generator or None, default=None
        Seed of the permutations, and of the search.
    n_jobs : int or None, default=None
        Number of rounds in parallel. The result does not depend on it.

    Attributes
    ----------
    p_values_ : array of float
        The p-value p_j of each unit.

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

    expected_false: float = 1.0
    fdr: float | None = None
    n_rounds: int = 20

    def _check(self) -> None:
        super()._check()
        name = "expected_false" if self.fdr is None else "fdr"
        rate = getattr(self, name)
        if self.n_rounds * rate < 1:
            raise InvalidParameter(
                f"Probes with {name}={rate} needs n_rounds of at least {int(np.ceil(1 / rate))}, "
                f"not {self.n_rounds}: with fewer, no column could be selected."
            )

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
                f"all of {self._counted(d)}: expected_false={self.expected_false:g} allows all of "
                "them to be unrelated to the target, so they were not tested. Write a smaller "
                "number to test them.",
            )
        if self.fdr is None:
            n_kept = int((p <= self.expected_false / d).sum())
            promised = expected_unrelated(self.expected_false)
        else:
            passing = np.flatnonzero(p <= self.fdr * np.arange(1, d + 1) / d)
            n_kept = int(passing[-1]) + 1 if len(passing) else 0
            promised = f"a share of {self.fdr:g} of them is expected to be unrelated to the target."
        if not n_kept:
            return Verdict(0, "no column scores better than permuted columns do.")
        reason = f"{self._counted(n_kept)}: better than the permuted columns of "
        return Verdict(n_kept, f"{reason}{self.n_rounds} rounds; {promised}")

"""Stability selection with complementary halves of the rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import Constraints, integer, number
from tamis._seeds import seed_of, stream
from tamis.exceptions import InvalidParameter
from tamis.meta.inner_search import in_order_of_columns, search_cost
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, check_part, expected_unrelated
from tamis.validation.resamples import parts_of, plain_groups_of
from tamis.validation.stability import stability


@dataclass(eq=False, repr=False, kw_only=True)
class StabilitySelection(Rounds, InRounds):
    """Select the columns that a search selects in most halves of the rows.

    The rows are repeatedly split into two stratified halves. The search selects the q best columns
    of each half. The final selection contains the columns that are selected in at least a share
    ``threshold`` of the halves. For a table with d columns, the expected number of unrelated
    columns among them is at most q^2 / ((2 threshold - 1) d). The number q is the largest for which
    this bound is at most ``expected_false``. The bound makes few assumptions, but the method has
    only about half the power of :class:`Probes`. Ties are broken at random in each half, so each of
    two duplicate columns is selected less often than a single one would be.

    Parameters
    ----------
    search : Search or any other selection
        The search to run in each half.
    expected_false : float, default=1.0
        Upper bound for the expected number of selected columns that are unrelated to the target.
    threshold : float, default=0.75
        Minimum share of the halves in which a column must be selected, above 0.5.
    n_pairs : int, default=25
        Number of splits into halves.
    random_state : int, generator or None, default=None
        Seed of the splits, and of the search.
    n_jobs : int or None, default=None
        Number of splits in parallel. The result does not depend on it.

    Attributes
    ----------
    frequency_ : array of float
        Share of the halves in which each unit was selected.
    n_best_ : int
        q, the number of columns selected in each half.
    stability_ : tamis.evaluation.Stability
        Nogueira's stability of the selections across halves, with its confidence interval.

    References
    ----------
    Meinshausen and Buehlmann (2010), Stability selection.
    Shah and Samworth (2013), Variable selection with error control: another look at stability
    selection.

    Examples
    --------
    >>> from tamis.choice import StabilitySelection
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=200)
    >>> StabilitySelection(Ranking(Correlation()), random_state=0).fit(X, y).get_support(
    ...     indices=True)
    array([4, 9])
    """

    reads_order = False
    passes_nan = True
    passes_targets = True

    _constraints: ClassVar[Constraints] = {
        "expected_false": number(above=0),
        "threshold": number(above=0.5, most=1),
        "n_pairs": integer(1),
    }

    expected_false: float = 1.0
    threshold: float = 0.75
    n_pairs: int = 25

    def _n_rounds(self) -> int:
        return self.n_pairs

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that a search on half of the rows needs. None if unknown."""
        n = n_samples // 2
        held = search_cost(self.search, n, n_features)
        return held and held + 16.0 * n * n_features

    def _n_best(self, n_features: int) -> int:
        """Return q, the largest number of columns per half that the bound allows."""
        most = float(np.sqrt(self.expected_false * (2 * self.threshold - 1) * n_features))
        if most < 1:
            raise InvalidParameter(
                f"StabilitySelection with expected_false={self.expected_false} could select none "
                f"of {n_features} columns. Write expected_false="
                f"{np.ceil(100 / ((2 * self.threshold - 1) * n_features)) / 100:g} or more."
            )
        return int(min(most + 1e-9, n_features))

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return the units that the search selects in each half of a split."""
        groups = plain_groups_of(y, len(X))
        half = len(X) // 2
        halves = parts_of(groups, (half, half), stream(seed, "halves", index))
        found = []
        for side, rows in enumerate(halves):
            check_part("StabilitySelection", y, rows)
            target = None if y is None else y[rows]
            found.append(self._select_half(X[rows], target, seed, (index, side)))
        return found

    def _select_half(
        self, X: Array, y: NDArray[Any] | None, seed: int, half: tuple[int, int]
    ) -> list[int]:
        """Return the best units of a half. Columns are shuffled, so ties are broken at random."""
        order = stream(seed, "columns", *half).permutation(X.shape[1])
        labels, n_best = self._units.unit_of[order], self._n_best(self._units.n_units)
        own = seed_of(seed, "search", *half)
        fitted = self._fit_search(X[:, order], y, own, n_best, order, labels)
        return sorted(in_order_of_columns(labels)[fitted.unit_support_].tolist())

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self.n_best_ = self._n_best(n_units)
        halves = [np.array(kept, dtype=np.intp) for pair in found for kept in pair]
        self.frequency_ = np.bincount(np.concatenate(halves), minlength=n_units) / len(halves)
        everything = min(map(len, halves)) == n_units
        self.stability_ = None if everything else stability(halves, n_units)
        return self.frequency_.copy()

    def _verdict(self, scores: Array) -> Verdict:
        n_kept = int((scores >= self.threshold - 1e-12).sum())
        share = f"{self.threshold:g} of {2 * self.n_pairs} halves of the rows"
        if not n_kept:
            return Verdict(0, f"no column is among the best {self.n_best_} in at least {share}.")
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)}: selected in at least {share}; at most "
            f"{expected_unrelated(self.expected_false)}",
        )

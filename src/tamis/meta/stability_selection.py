"""Keep what is found again and again in halves of the rows."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import Constraints, integer, number
from tamis._seeds import seed_of, stream
from tamis.contract import Selection
from tamis.exceptions import InvalidParameter
from tamis.meta.inner_search import in_order_of_columns, walk_cost
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, check_part, expected_unrelated
from tamis.validation.resamples import parts_of, plain_groups_of
from tamis.validation.stability import Stability, stability


class StabilitySelection(Rounds, InRounds):
    """Keep the columns that a search finds in most halves of the rows.

    The rows are cut into two halves (classes in proportion) again and again; the search keeps the
    q best columns of each, and a column stays that is among them in a share of at least
    ``threshold``. The number of unrelated columns kept is at most q^2 / ((2 threshold - 1) d) in
    expectation, from which q follows. The bound holds widely, at about half the power of
    :class:`Probes`; it speaks of columns unrelated to the target, as that does. Columns of equal
    score are told apart by lot, anew in each half: copies of a column share what it is found.

    Parameters
    ----------
    search : Search or any other selection
    expected_false : float, default=1.0
        Bound on the expected number of kept columns that are unrelated to the target.
    threshold : float, default=0.75
        Share of the halves, above 0.5.
    n_pairs : int, default=25
        How often the rows are halved.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None

    Attributes
    ----------
    frequency_ : array of float
        Share of the halves in which each column was found.
    n_best_ : int
        q, the number of columns kept in each half.
    stability_ : tamis.evaluation.Stability
        Nogueira's index of the halves, with its interval.

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

    def __init__(
        self,
        search: Selection,
        *,
        expected_false: float = 1.0,
        threshold: float = 0.75,
        n_pairs: int = 25,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.search = search
        self.expected_false = expected_false
        self.threshold = threshold
        self.n_pairs = n_pairs
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_rounds(self) -> int:
        return self.n_pairs

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Both halves, one after the other."""
        n = n_samples // 2
        held = walk_cost(self.search, n, n_features)
        return held and held + 16.0 * n * n_features

    def _most(self, n_features: int) -> float:
        """The most columns that the bound allows, any number."""
        return float(np.sqrt(self.expected_false * (2 * self.threshold - 1) * n_features))

    def _n_best(self, n_features: int) -> int:
        """q, the most that the bound allows."""
        most = self._most(n_features)
        if most < 1:
            raise InvalidParameter(
                f"StabilitySelection with expected_false={self.expected_false} could look at no "
                f"column of {n_features}. Write expected_false="
                f"{np.ceil(100 / ((2 * self.threshold - 1) * n_features)) / 100:g} or more."
            )
        return int(min(most + 1e-9, n_features))

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """The columns kept in either half."""
        groups = plain_groups_of(y, len(X))
        half = len(X) // 2
        halves = parts_of(groups, (half, half), stream(seed, "halves", index))
        found = []
        for side, rows in enumerate(halves):
            check_part("StabilitySelection", y, rows)
            target = None if y is None else y[rows]
            found.append(self._best_of(X[rows], target, seed, (index, side)))
        return found

    def _best_of(
        self, X: Array, y: NDArray[Any] | None, seed: int, half: tuple[int, int]
    ) -> list[int]:
        """The best units of one half; its columns are shuffled, so that no index is preferred."""
        place = stream(seed, "columns", *half).permutation(X.shape[1])
        labels, n_best = self._units.unit_of[place], self._n_best(self._units.n_units)
        own = seed_of(seed, "search", *half)
        fitted = self._fitted(X[:, place], y, own, n_best, place, labels)
        return sorted(in_order_of_columns(labels)[fitted.unit_support_].tolist())

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self.n_best_ = self._n_best(n_units)
        halves = [np.array(kept, dtype=np.intp) for pair in found for kept in pair]
        self.frequency_ = np.bincount(np.concatenate(halves), minlength=n_units) / len(halves)
        self.stability_ = _agreement(halves, n_units)
        return self.frequency_.copy()

    def _verdict(self, scores: Array) -> Verdict:
        n_kept = int((scores >= self.threshold - 1e-12).sum())
        share = f"{self.threshold:g} of {2 * self.n_pairs} halves of the rows"
        if not n_kept:
            return Verdict(0, f"no column is among the best {self.n_best_} in {share}.")
        found = "is found" if n_kept == 1 else "are found"
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)} {found} in at least {share}; at most "
            f"{expected_unrelated(self.expected_false)}",
        )


def _agreement(halves: list[NDArray[np.intp]], n_features: int) -> Stability | None:
    """How far the halves agree, None where all columns are kept in all of them."""
    if min(len(kept) for kept in halves) == n_features:
        return None
    return stability(halves, n_features)

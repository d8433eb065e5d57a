"""Selections around a search: run again on other rows, or on a wider table, and counted."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from tamis._arrays import Array, best_first
from tamis._parallel import parallel_stream
from tamis._random import fix_seeds, stream
from tamis.contract import (
    Chosen,
    Cost,
    Embedded,
    Entries,
    Event,
    Run,
    Scores,
    Selection,
    SizeLike,
)
from tamis.exceptions import IncompatibleCriterion, NothingFound, TamisWarning

#: Columns that a walk which only adds enters in a round: those beyond hardly ever decide, and a
#: walk through a wide table takes as long as all else together.
STEPS = 40


class Verdict(NamedTuple):
    """How many of the columns, best first, are kept, and why."""

    n_kept: int
    reason: str


class Rounds(MetaEstimatorMixin, Embedded):
    """Selection that runs a search many times and keeps what the rounds agree on.

    A subclass says what one round finds (:meth:`_round`), what the rounds say of each column
    (:meth:`_standing`) and where to cut (:meth:`_verdict`). Rounds are drawn by number, run on
    ``n_jobs`` processes or the active joblib backend, and kept in the record one by one.
    """

    #: How many columns are kept is what the rounds decide.
    n_features_to_select: SizeLike = "best"
    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), ...)"
    quick: ClassVar[str] = "correlation"

    search: Selection
    n_jobs: int | None

    # -- what a subclass says ---------------------------------------------------------------------

    @abstractmethod
    def _n_rounds(self) -> int:
        """How many rounds there are."""

    @abstractmethod
    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """What one round finds, as plain numbers."""

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """What is left to do after the rounds, as plain numbers."""
        return []

    @abstractmethod
    def _standing(self, X: Array, found: list[list[Any]], rest: list[Any]) -> Array:
        """Score of each column by all rounds, greater is better."""

    @abstractmethod
    def _verdict(self, scores: Array) -> Verdict:
        """Where the columns, sorted by score, are cut; the scores fall."""

    # -- what they share --------------------------------------------------------------------------

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        found = dict(state.get("rounds", {}))
        waiting = [index for index in range(self._n_rounds()) if str(index) not in found]
        items = ((self, X, y, seed, index) for index in waiting)
        for index, numbers in parallel_stream(
            _one_round, items, n_jobs=self.n_jobs, shared=[self, X, y]
        ):
            found[str(index)] = numbers
            yield {"rounds": dict(found)}
        if "rest" not in state:
            yield {"rounds": found, "rest": self._rest(X, y, seed, _in_order(found))}

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        self._scores = self._standing(X, _in_order(state["rounds"]), state["rest"])

    def _ranked(self) -> Iterator[Event]:
        order = best_first(self._scores)
        everything = np.arange(len(order))
        nothing = np.full(len(order), np.nan)
        yield Entries(order, Scores(everything, self._scores), nothing)

    def _picked(self, run: Run) -> Chosen:
        self._restore(run.X, run.y, run.trace.state)
        falling = run.trace.moves().score
        n_kept, reason = self._verdict(falling)
        return Chosen(n_kept - 1, reason)

    def _say_doubts(self, run: Run) -> None:
        if not self.n_features_:
            warnings.warn(
                f"{type(self).__name__} keeps no column: {self.choice_.reason}",
                NothingFound,
                stacklevel=6,
            )

    def _check(self) -> None:
        if not isinstance(self.search, Selection):
            name = type(self).__name__
            raise IncompatibleCriterion(
                f"{name} needs a search, not {self.search!r}. Write {name}(Ranking(Correlation()))."
            )
        self.search._check()

    def _check_target(self, y: NDArray[Any] | None) -> None:
        self.search._check_target(y)

    def _size(self, n_units: int) -> int | None:
        return None

    def _enough(self, run: Run) -> bool:
        return False

    def _unsized(self, bare: Any) -> Any:
        return bare

    def cost(self, n_samples: int, n_features: int) -> Cost:
        """Of one round after the other, where the search knows its own."""
        one = getattr(getattr(self.search, "criterion", None), "cost", lambda *_: None)
        found = one(n_samples, n_features) or Cost(0.0, 0.0)
        return Cost(self._n_rounds() * found.operations, found.bytes)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.search.__sklearn_tags__().target_tags.required
        return tags

    # -- for rounds -------------------------------------------------------------------------------

    def _fitted(self, X: Array, y: NDArray[Any] | None, seed: int, size: int | None) -> Selection:
        """A clone of the search that walked to a size (of its own if None), with seeds."""
        search: Selection = clone(self.search)
        if size is not None:
            sized(search, size)
        fix_seeds(search, root=seed)
        with warnings.catch_warnings():  # said once, by the search itself, not by every round
            warnings.simplefilter("ignore", TamisWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            return search.fit(X, y)


def _in_order(rounds: dict[str, list[Any]]) -> list[list[Any]]:
    return [rounds[str(index)] for index in range(len(rounds))]


def _one_round(
    selection: Rounds, X: Array, y: NDArray[Any] | None, seed: int, index: int
) -> tuple[int, list[Any]]:
    return index, selection._round(X, y, seed, index)


def sized(search: Any, size: int) -> None:
    """Ask a search, or the last part of a composed one, for a number of columns."""
    while hasattr(search, "second"):
        search = search.second
    search.set_params(n_features_to_select=size)


def standing_of(search: Selection) -> Array:
    """What a fitted search thinks of each column: greater is better, equal where it cannot say.

    The score where columns are scored alone; elsewhere less the place in the order, and minus
    infinity where a walk never came to a column.
    """
    if search.scores_alone:
        return np.asarray(search.scores_, dtype=float)
    n = len(search.order_)
    places = np.empty(n)
    places[search.order_] = -np.arange(n, dtype=float)
    moves = search.trace_.moves()
    if len(moves.unit) and moves.entered.all() and not hasattr(search, "second_"):
        came = np.zeros(n, dtype=bool)
        came[moves.unit] = True
        places[~came] = -np.inf
    return places


def whole_walk(search: Any, n_units: int) -> int:
    """The size to which a search must walk so that every column that matters has a place."""
    while hasattr(search, "second"):
        n_units = search.first._size(n_units) or n_units
        search = search.second
    return min(STEPS, n_units) if search.grows else 1


def seed_of(seed: int, *labels: object) -> int:
    """A seed for the search of a round."""
    return int(stream(seed, *labels).integers(2**31))

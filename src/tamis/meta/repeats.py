"""Selections that come to their answer in rounds, each of which stands for itself."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from tamis._arrays import Array, best_first
from tamis._parallel import parallel_stream
from tamis.contract import Choice, Chosen, Context, Embedded, Entries, Record, Scores, Trace
from tamis.contract.choice import counted
from tamis.contract.selector import Doubt
from tamis.contract.steps import Event
from tamis.exceptions import InvalidTable, TamisError


class Verdict(NamedTuple):
    """How many of the columns, best first, are kept, and why."""

    n_kept: int
    reason: str


class InRounds(Embedded):
    """Selection that comes to its answer in rounds, each of which stands for itself.

    A subclass says what one round finds (:meth:`_round`), what the rounds say of each column
    (:meth:`_standing`) and where to cut (:meth:`_verdict`). Rounds are drawn by number, run on
    ``n_jobs`` processes or the active joblib backend, and kept in the record one by one.
    """

    n_jobs: int | None

    # -- what a subclass says ---------------------------------------------------------------------

    @abstractmethod
    def _n_rounds(self) -> int:
        """How many rounds there are."""

    @abstractmethod
    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """What one round finds, as plain numbers."""

    def _usable(self, found: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
        """The first of the rounds where those suffice, None where all that are left are needed."""
        return None

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """What is left to do after the rounds, as plain numbers."""
        return []

    @abstractmethod
    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        """Score of each unit by all rounds, greater is better."""

    @abstractmethod
    def _verdict(self, scores: Array) -> Verdict:
        """Where the columns, sorted by score, are cut; the scores fall."""

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the bytes that one round holds, None if they are not known."""
        return None

    # -- what they share --------------------------------------------------------------------------

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the bytes of all rounds that are held at once; None if they are not known."""
        one = self._cost_of_round(n_samples, n_features)
        if one is None:
            return None
        n_jobs = 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        return min(n_jobs, self._n_rounds()) * one

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        with readable_rounds(self):
            found = dict(state.get("rounds", {}))
        n_rounds = self._n_rounds()
        for index, numbers in self._played(X, y, seed, found):
            found[str(index)] = numbers
            yield {"rounds": dict(found), "n_rounds": n_rounds}
            if (usable := self._usable(found)) is not None:
                found = usable
                break
        if "rest" not in state:
            with readable_rounds(self):
                in_order = _in_order(found)
            rest = self._rest(X, y, seed, in_order)
            yield {"rounds": found, "n_rounds": n_rounds, "rest": rest}

    def _played(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: dict[str, list[Any]]
    ) -> Iterator[tuple[int, list[Any]]]:
        """The rounds that are not found yet, as they end; ``found`` grows by them meanwhile."""
        return self._at_once(X, y, seed, found, range(self._n_rounds()))

    def _at_once(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        found: dict[str, list[Any]],
        block: range,
    ) -> Iterator[tuple[int, list[Any]]]:
        """Those of a block that are not found yet: none of them waits for another."""
        bare = copy(self).set_callbacks()  # which hold what no process can be sent: a terminal
        items = ((bare, X, y, seed, index) for index in block if str(index) not in found)
        return parallel_stream(_one_round, items, n_jobs=self.n_jobs, shared=[bare, X, y])

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        with readable_rounds(self):
            found = _in_order(state["rounds"])
            self._scores = self._standing(self._units.n_units, found, state["rest"])

    def _ranked(self) -> Iterator[Event]:
        order = best_first(self._scores)
        everything = np.arange(len(order))
        nothing = np.full(len(order), np.nan)
        yield Entries(order, Scores(everything, self._scores), nothing)

    def _choice(self) -> Choice:
        return RoundsChoice(self)

    def _doubts(self, criterion: Any) -> Iterator[Doubt]:
        if not self.n_features_:  # ties are told apart by lot
            yield from super()._doubts(criterion)

    def _way(self, record: Record) -> tuple[float, float | None, str]:
        state = next(iter(record.parts), record).trace.state  # of this, or of the one inside it
        n_done, n_rounds = len(state.get("rounds", ())), state.get("n_rounds")
        if not n_rounds:
            return 0, None, "training"
        return n_done, n_rounds, f"round {n_done} of {n_rounds}"

    def _counted(self, n: Any) -> str:
        """A number of units, in words."""
        return counted(n, self._units.word)


class RoundsChoice(Choice):
    """The columns that a selection in rounds keeps, by its verdict.

    Parameters
    ----------
    selection : InRounds
    """

    def __init__(self, selection: InRounds):
        self.selection = selection

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        selection, units = self.selection, context.grouping
        assert context.X is not None
        assert units is not None
        selection._units = units
        selection._restore(context.X, context.y, trace.state)
        order = best_first(selection._scores)
        n_kept, reason = selection._verdict(selection._scores[order])
        if not units.fixed:
            return Chosen(n_kept - 1, reason)
        # a composition may fix units: they are the first step, whatever the rounds say of them
        found = np.setdiff1d(order[:n_kept], units.fixed_units)
        return Chosen(len(found), reason + context.beside_fixed)


@contextmanager
def readable_rounds(selection: Embedded) -> Iterator[None]:
    """Refuse rounds of a record that are not what rounds find.

    It stands around reading alone: an error of a search that goes on is not one of the record.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, TamisError):
            raise
        raise InvalidTable(
            f"This is a damaged record: {type(selection).__name__} cannot read its rounds "
            f"({type(error).__name__}: {error}). Start the search anew."
        ) from error


def _in_order(rounds: dict[str, list[Any]]) -> list[list[Any]]:
    found = [rounds[str(index)] for index in range(len(rounds))]
    if not all(isinstance(one, list) for one in found):
        raise TypeError("a round that is no list")
    return found


def _one_round(
    selection: InRounds, X: Array, y: NDArray[Any] | None, seed: int, index: int
) -> tuple[int, list[Any]]:
    return index, selection._round(X, y, seed, index)

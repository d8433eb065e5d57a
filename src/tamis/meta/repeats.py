"""Base class of selections that repeat their work in rounds, such as resamples."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, best_first
from tamis._format import format_count
from tamis._parallel import parallel_stream
from tamis.contract import Choice, Chosen, Context, Embedded, Entries, Record, Scores, Trace
from tamis.contract.embedded import Given
from tamis.contract.fit_warnings import FitWarning
from tamis.contract.steps import Event
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidTable, TamisError
from tamis.validation.splits import read_labels


class Verdict(NamedTuple):
    """The number of columns to select (those with the best scores), and the reason for it."""

    n_kept: int
    reason: str


class InRounds(Embedded):
    """Selection that repeats its work in rounds and combines their results.

    A subclass implements a single round (:meth:`_round`), the score of each unit over all rounds
    (:meth:`_standing`) and the number of units to select (:meth:`_verdict`). The seed of a round is
    derived from its number. Rounds run on ``n_jobs`` processes or the active joblib backend, and
    each is recorded when it ends.
    """

    #: Labels of the rows that ``fit`` accepts: "groups", "environments".
    row_labels: ClassVar[tuple[str, ...]] = ()
    #: For each kind of label, the distinct labels and the code of each row, or None if no labels
    #: were given. Set by ``fit``.
    _labels: Mapping[str, tuple[NDArray[Any], Subset] | None] = {}

    n_rounds: int
    n_jobs: int | None

    # -- what a subclass implements ---------------------------------------------------------------

    def _n_rounds(self) -> int:
        """Return the maximum number of rounds."""
        return self.n_rounds

    @abstractmethod
    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return the result of a single round, as a list of plain numbers."""

    def _usable(self, found: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
        """Return the finished rounds to use, or None if more rounds are needed."""
        return None

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """Do the work that follows the last round, and return its result as plain numbers."""
        return []

    @abstractmethod
    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        """Return the score of each unit over all rounds. Greater is better."""

    @abstractmethod
    def _verdict(self, scores: Array) -> Verdict:
        """Return the number of columns to select, and the reason.

        ``scores`` holds the scores of the columns in descending order.
        """

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that a single round needs. None if unknown."""
        return None

    def _check_units(self, grouping: Grouping) -> None:
        """Refuse a table whose units do not suit the parameters."""

    # -- what subclasses share --------------------------------------------------------------------

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the parallel rounds need together. None if unknown."""
        one = self._cost_of_round(n_samples, n_features)
        if one is None:
            return None
        n_jobs = 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        return min(n_jobs, self._n_rounds()) * one

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Given:
        name, given = type(self).__name__, {key: params.get(key) for key in self.row_labels}
        self._labels = {key: read_labels(name, key, given[key], len(X)) for key in given}
        others = {key: value for key, value in params.items() if key not in given}
        return super()._open(X, y, others, done)

    def _row_codes(self, name: str) -> Subset | None:
        """Return the group or environment of each row as an integer, or None if not given."""
        found = self._labels.get(name)
        return None if found is None else found[1]

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
        """Yield the number and result of each missing round. The caller adds them to ``found``."""
        return self._at_once(X, y, seed, found, range(self._n_rounds()))

    def _at_once(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        found: dict[str, list[Any]],
        block: range,
    ) -> Iterator[tuple[int, list[Any]]]:
        """Run the missing rounds of a block in parallel. Yield the number and result of each."""
        bare = copy(self).set_callbacks()  # callbacks may hold a terminal, which cannot be pickled
        missing = (index for index in block if str(index) not in found)
        items = ((index, (bare, X, y, seed, index)) for index in missing)
        return parallel_stream(type(self)._round, items, n_jobs=self.n_jobs, shared=[bare, X, y])

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

    def _warnings(self, criterion: Any) -> Iterator[FitWarning]:
        if not self.n_features_:  # no warning about ties, which are broken at random
            yield from super()._warnings(criterion)

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
        # if a selector only prepares the table, the rounds are in the record of its part
        state = next(iter(record.parts), record).trace.state
        n_done, n_rounds = len(state.get("rounds", ())), state.get("n_rounds")
        if not n_rounds:
            return 0, None, "training"
        return n_done, n_rounds, f"round {n_done} of {n_rounds}"

    def _counted(self, n: Any) -> str:
        """Return a number of units as text, such as "3 columns"."""
        return format_count(n, self._units.word)


@dataclass(eq=False, repr=False)
class RoundsChoice(Choice):
    """Choice that selects the number of columns that the rounds of a selection determined.

    Parameters
    ----------
    selection : InRounds
        The selection whose verdict is used.
    """

    selection: InRounds

    def check_units(self, grouping: Grouping) -> None:
        self.selection._check_units(grouping)

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
        # fixed units of a composition are added in the first step
        found = np.setdiff1d(order[:n_kept], units.fixed_units)
        return Chosen(len(found), reason + context.beside_fixed)


@contextmanager
def readable_rounds(selection: Embedded) -> Iterator[None]:
    """Raise InvalidTable if the recorded rounds cannot be read.

    Put only the code that reads them inside the context, so that errors of the search are not
    blamed on the record.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, TamisError):
            raise
        raise InvalidTable(
            f"This is a damaged record: {type(selection).__name__} cannot read its rounds "
            f"({type(error).__name__}: {error}). Start the search again."
        ) from error


def _in_order(rounds: dict[str, list[Any]]) -> list[list[Any]]:
    found = [rounds[str(index)] for index in range(len(rounds))]
    if not all(isinstance(one, list) for one in found):
        raise TypeError("a round that is not a list")
    return found

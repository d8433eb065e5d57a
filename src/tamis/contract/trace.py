"""The search path of a selection, stored as a set of arrays.

Storing every subset would take memory that grows with the square of the number of units, and one
object per step would slow down a ranking of 10^5 columns. A :class:`Trace` stores moves and scores
in arrays and rebuilds subsets on demand.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import Array, Mask, Subset
from tamis._frame import frame
from tamis.contract.candidates import (
    Candidates,
    best_first_moved,
    count_equal,
    count_following_ties,
    in_order,
    look_up,
)
from tamis.contract.columns import (
    COLUMNS,
    COUNTED_BY,
    numbers_of,
    occurrences,
    plain_numbers,
)
from tamis.contract.steps import NO_SCORES, Entries, Event, Scores, Step, TracedStep
from tamis.exceptions import InvalidStep


class Trace(Sequence[TracedStep]):
    """The search path of a selection: a sequence of :class:`TracedStep`.

    Parameters
    ----------
    n_units : int
        Number of units (columns, or groups of columns that are selected as one).

    Attributes
    ----------
    start : array of bool
        The units before the first step.
    given : array of float
        The last score of each unit, or NaN if it has none.
    given_at : array of int
        The step of that score, or -1 if there is none.
    state : dict
        Data that the search needs to continue from the last step.

    Examples
    --------
    >>> trace = Trace(3)
    >>> trace.append(Step(np.array([2]), 0.7, Scores(np.arange(3), np.array([0.1, 0.3, 0.7]))))
    >>> trace.append(Step(np.array([2, 0]), 0.8, Scores(np.arange(2), np.array([0.1, 0.1]))))
    >>> trace[-1].subset, trace[-1].moved, trace.sizes, trace.n_equal
    (array([0, 2]), array([0]), array([1, 2]), array([1, 2]))
    """

    def __init__(self, n_units: int):
        self.n_units = n_units
        self.start: Mask = np.zeros(n_units, dtype=bool)
        self.given: Array = np.full(n_units, np.nan)
        self.given_at: Subset = np.full(n_units, -1, dtype=np.intp)
        self.state: dict[str, Any] = {}
        self.params: dict[int, dict[str, Any]] = {}
        self._columns = {name: np.empty(0, dtype) for name, dtype in COLUMNS.items()}
        self._counts = (0, 0, 0)  # numbers of steps, moves and candidates
        self._candidates = Candidates()
        # whether the first move was an addition, once a unit has moved
        self._growing: bool | None = None
        self._held: Mask | None = None  # mask of the last subset, once computed
        # caches of the results of moves() and sizes
        self._moves: Moves | None = None
        self._sizes: Subset | None = None

    @classmethod
    def of(cls, n_units: int, events: "Iterable[Event]") -> Self:
        """Build a trace from events."""
        trace = cls(n_units)
        for event in events:
            if isinstance(event, Entries):
                trace.extend(event)
            elif isinstance(event, Step):
                trace.append(event)
        return trace

    # -- growing --------------------------------------------------------------------------------

    def change(self, step: Step) -> "Change":
        """Return the subsets before and after a step, and the units that it moves."""
        before = self.mask(self._counts[0] - 1) if self._held is None else self._held
        after = self._mask_of(step.subset)
        if step.scores is None and not self._counts[0] and after.all():
            before = after  # a backward search starts with all units
        return Change(before, after, (before ^ after).nonzero()[0])

    @property
    def growing(self) -> bool | None:
        """Whether the first move was an addition. None if no unit has moved."""
        if self._growing is None and self._counts[1]:
            self._growing = not self.start[self._array("moved")[0]]
        return self._growing

    def append(
        self,
        step: Step,
        *,
        n_evaluations: int = 0,
        seconds: float = 0.0,
        change: "Change | None" = None,
    ) -> None:
        """Append a step. The units that moved are found by comparison with the previous subset."""
        before, after, moved = self.change(step) if change is None else change
        scores = NO_SCORES if step.scores is None else step.scores
        adding, index = bool(np.count_nonzero(after[moved])), self._counts[0]
        given, given_at = self._given(scores, index)
        if len(moved) > 1:
            moved = best_first_moved(moved, scores, adding)
        score = given[moved]
        score[given_at[moved] != index] = np.nan
        best = self._candidates.best(scores, moved, score, adding=adding)
        self._add(
            (1, len(moved), len(best.units)),
            {
                "moved": moved,
                "score": score,
                "error": look_up(moved, scores.units, scores.errors),
                "candidate": best.units,
                "candidate_score": best.values,
                "n_moved": len(moved),
                "n_scored": len(best.units),
                "n_equal": count_equal(scores, moved, adding=adding),
                "n_evaluations": n_evaluations,
                "seconds": seconds,
                "value": float(step.value),
            },
            start=self.start if index else before.copy(),
            state=step.state,
            params={**self.params, index: step.params} if step.params else self.params,
            given=given,
            given_at=given_at,
            _held=after,
        )

    def extend(self, entries: Entries, *, n_evaluations: int = 0, seconds: float = 0.0) -> None:
        """Append a step for each unit that is added."""
        units, scores = np.asarray(entries.units), entries.scores
        given, given_at = self._given(scores, len(self))
        fresh, before = self._mask_of(units), self.mask(len(self) - 1)
        if (fresh & before).any():
            raise InvalidStep("adds a unit that is already in the subset")
        n = len(units)
        values = entries.values if len(entries.values) else np.full(n, np.nan)
        score = look_up(units, scores.units, scores.values)
        best = self._candidates.best(scores, units[:1], score[:1], adding=True)
        self._add(
            (n, n, len(best.units)),
            {
                "value": values,
                "n_moved": 1,
                "n_scored": np.r_[len(best.units), np.zeros(n - 1, dtype=np.intp)],
                "n_equal": count_following_ties(score),
                "n_evaluations": n_evaluations,
                "seconds": np.r_[seconds, np.zeros(n - 1)],
                "moved": units,
                "score": score,
                "error": look_up(units, scores.units, scores.errors),
                "candidate": best.units,
                "candidate_score": best.values,
            },
            state=entries.state,
            given=given,
            given_at=given_at,
            _held=before | fresh,
        )

    def _mask_of(self, subset: ArrayLike) -> Mask:
        """Return a mask of the units in a subset. Refuse invalid indices."""
        units = np.asarray(subset)
        if units.ndim != 1 or (len(units) and units.dtype.kind not in "iu"):
            raise InvalidStep(f"yields {subset!r}, but a subset needs an array of indices")
        mask = np.zeros(self.n_units, dtype=bool)
        try:
            mask[units] = True
            inside = not len(units) or units[units.argmin()] >= 0  # faster than min
        except IndexError:
            inside = False
        if not inside:
            outside = units[(units < 0) | (units >= self.n_units)][0]
            raise InvalidStep(f"contains unit {outside}, but units go from 0 to {self.n_units - 1}")
        if np.count_nonzero(mask) != len(units):
            twice = np.flatnonzero(np.bincount(units) > 1)[0]
            raise InvalidStep(f"contains unit {twice} twice")
        return mask

    def _given(self, scores: Scores, index: int) -> tuple[Array, Subset]:
        """Return the last score of each unit and the step of that score, after step ``index``."""
        if len(scores.units) != len(scores.values):
            raise InvalidStep(f"has {len(scores.values)} scores for {len(scores.units)} units")
        given, given_at = self.given.copy(), self.given_at.copy()
        given[scores.units] = scores.values
        given_at[scores.units] = index
        return given, given_at

    def _add(self, added: tuple[int, int, int], columns: dict[str, Any], **changed: Any) -> None:
        """Append new entries to the columns, and set the attributes ``changed``.

        ``added`` holds the numbers of new steps, moves and candidates. The trace must stay valid if
        an interrupt comes between any two lines. So the new entries are first written after the
        last valid ones, where they are ignored. Then a single call updates the counts and all other
        attributes.
        """
        counts = self._counts
        ends = (counts[0] + added[0], counts[1] + added[1], counts[2] + added[2])
        for name, values in columns.items():
            held, by = self._columns[name], COUNTED_BY[name]
            start, end = counts[by], ends[by]
            if end > len(held):  # double it, so that appending takes constant time on average
                larger = np.empty(max(end, 2 * start, 32), dtype=held.dtype)
                larger[:start] = held[:start]
                self._columns[name] = held = larger
            held[start:end] = values
        vars(self).update(changed, _counts=ends, _moves=None, _sizes=None)

    def become(self, other: "Trace") -> None:
        """Replace the contents with those of another trace, in a single call."""
        vars(self).update(vars(other))

    def on(self, units: Subset, n_units: int, n_evaluations: int = 0) -> "Trace":
        """Return the trace with unit indices of a wider table. Unit i becomes ``units[i]``."""
        trace = Trace(n_units)
        for name in ("start", "given", "given_at"):
            getattr(trace, name)[units] = getattr(self, name)
        trace.state, trace.params, trace._counts = self.state, self.params, self._counts
        for name in COLUMNS:
            held = self._array(name)
            trace._columns[name] = units[held] if name in ("moved", "candidate") else held.copy()
        trace._columns["n_evaluations"] += n_evaluations
        return trace

    # -- reading --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._counts[0]

    def _array(self, name: str) -> NDArray[Any]:
        """Return the valid entries of a column, without spare capacity."""
        return self._columns[name][: self._counts[COUNTED_BY[name]]]

    def mask(self, index: int) -> Mask:
        """Return a mask of the units after a step. Index -1 means before the first step."""
        n_moves = int(self._columns["n_moved"][: index + 1].sum())
        crossed = np.bincount(self._columns["moved"][:n_moves], minlength=self.n_units)
        held: Mask = self.start ^ (crossed % 2 == 1)
        return held

    @overload
    def __getitem__(self, index: int) -> TracedStep: ...
    @overload
    def __getitem__(self, index: slice) -> "list[TracedStep]": ...
    def __getitem__(self, index: int | slice) -> "TracedStep | list[TracedStep]":
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        moves, scored = self._slice("n_moved", index), self._slice("n_scored", index)
        return self._step(index, self.mask(index), moves, scored)

    def __iter__(self) -> Iterator[TracedStep]:
        mask = self.start.copy()
        slices = zip(self._slices("n_moved"), self._slices("n_scored"), strict=True)
        for index, (moves, scored) in enumerate(slices):
            mask[self._columns["moved"][moves]] ^= True
            yield self._step(index, mask, moves, scored)

    def _step(self, index: int, mask: Mask, moves: slice, scored: slice) -> TracedStep:
        moved = self._columns["moved"][moves].copy()
        entered = mask[moved]
        scores = Scores(
            self._columns["candidate"][scored],
            self._columns["candidate_score"][scored],
            n_equal=int(self._columns["n_equal"][index]),
        )
        return TracedStep(
            subset=mask.nonzero()[0],
            value=float(self._columns["value"][index]),
            moved=moved,
            entered=entered,
            score=self._columns["score"][moves].copy(),
            error=self._columns["error"][moves].copy(),
            scores=in_order(scores, adding=bool(entered.any())),
            n_evaluations=int(self._columns["n_evaluations"][index]),
            params=self.params.get(index, {}),
            seconds=float(self._columns["seconds"][index]),
        )

    def _slice(self, counts: str, index: int) -> slice:
        n = self._array(counts)
        start = int(n[:index].sum())
        return slice(start, start + int(n[index]))

    def _slices(self, counts: str) -> Iterator[slice]:
        ends: list[int] = np.cumsum(self._array(counts)).tolist()
        return map(slice, [0, *ends[:-1]], ends)

    def moves(self) -> "Moves":
        """Return the moves of all steps, as arrays."""
        if self._moves is None:
            counts, moved = self._array("n_moved"), self._array("moved")
            self._moves = Moves(
                step=np.repeat(np.arange(len(counts)), counts),
                unit=moved.copy(),
                # the first, third, ... move of a unit adds it, unless it was in the start set
                entered=self.start[moved] ^ (occurrences(moved) % 2 == 0),
                score=self._array("score").copy(),
            )
        return self._moves

    @property
    def sizes(self) -> Subset:
        """Number of units after each step."""
        if self._sizes is None:
            moves = self.moves()
            change = np.bincount(moves.step, np.where(moves.entered, 1, -1), len(self))
            self._sizes = int(self.start.sum()) + np.cumsum(change).astype(np.intp)
        return self._sizes.copy()

    @property
    def values(self) -> Array:
        """Value of the subset after each step."""
        return self._array("value").copy()

    @property
    def n_equal(self) -> Subset:
        """For each step, the number of units tied with the last moved unit.

        The last moved unit itself is counted. The number is 0 if unknown.
        """
        return self._array("n_equal").copy()

    @property
    def n_moved(self) -> Subset:
        """Number of units that moved at each step."""
        return self._array("n_moved").copy()

    @property
    def n_candidates(self) -> Subset:
        """For each step, the number of candidates whose scores are stored."""
        return self._array("n_scored").copy()

    @property
    def n_evaluations(self) -> int:
        """Number of scores that the criterion computed up to the last step."""
        counts = self._array("n_evaluations")
        return int(counts[-1]) if len(counts) else 0

    @property
    def seconds(self) -> float:
        """Total duration of all steps in seconds."""
        return float(self._array("seconds").sum())

    def head(self, n_steps: int) -> "Trace":
        """Return a trace of the first steps.

        ``given`` and ``given_at`` are restored only for units whose scores are stored in these
        steps.
        """
        kept = Trace(self.n_units)
        if n_steps:
            kept.start = self.start.copy()
        kept.params = {step: params for step, params in self.params.items() if step < n_steps}
        n_moves, n_scored = (
            int(self._array(name)[:n_steps].sum()) for name in ("n_moved", "n_scored")
        )
        kept._counts = (n_steps, n_moves, n_scored)
        for name in COLUMNS:
            kept._columns[name] = self._array(name)[: kept._counts[COUNTED_BY[name]]].copy()
        for index in range(n_steps):
            scored = kept._slice("n_scored", index)
            units = kept._array("candidate")[scored]
            kept.given[units] = kept._array("candidate_score")[scored]
            kept.given_at[units] = index
        return kept

    def copy(self) -> "Trace":
        """Return an independent copy."""
        return type(self).from_dict(self.to_dict())

    def to_frame(self) -> Any:
        """Return a data frame with one row per step: size, value, moves, scores."""
        moves, ends = self.moves(), np.cumsum(self._array("n_moved"))[:-1]
        units, entered = np.split(moves.unit, ends), np.split(moves.entered, ends)
        pairs = list(zip(units, entered, strict=True))
        return frame(
            {
                "step": list(range(1, len(self) + 1)),
                "size": self.sizes.tolist(),
                "value": self.values.tolist(),
                "entered": [unit[enters].tolist() for unit, enters in pairs],
                "left": [unit[~enters].tolist() for unit, enters in pairs],
                "score": [scores.tolist() for scores in np.split(moves.score, ends)],
                "n_equal": self.n_equal.tolist(),
                "n_evaluations": self._array("n_evaluations").tolist(),
                "seconds": self._array("seconds").tolist(),
            }
        )

    # -- as plain numbers -----------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as a dictionary for JSON, with None for NaN and text for infinities."""
        return {
            "n_units": self.n_units,
            "start": np.flatnonzero(self.start).tolist(),
            "given": plain_numbers(self.given),
            "given_at": self.given_at.tolist(),
            "state": self.state,
            "params": {str(step): params for step, params in self.params.items()},
            **{name: plain_numbers(self._array(name)) for name in self._columns},
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Return the trace from the output of :meth:`to_dict`."""
        trace = cls(plain["n_units"])
        trace.start[np.array(plain["start"], dtype=np.intp)] = True
        trace.given = numbers_of(plain["given"])
        trace.given_at = np.array(plain["given_at"], dtype=np.intp)
        trace.state = plain["state"]
        trace.params = {int(step): params for step, params in plain["params"].items()}
        for name, dtype in COLUMNS.items():
            held = numbers_of(plain[name]) if dtype is float else plain[name]
            trace._columns[name] = np.array(held, dtype=dtype)
        trace._counts = (len(plain["value"]), len(plain["moved"]), len(plain["candidate"]))
        return trace

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} steps over {self.n_units} units>"


class Change(NamedTuple):
    """The subsets before and after a step, and the units that moved."""

    before: Mask
    after: Mask
    moved: Subset


class Moves(NamedTuple):
    """All moves of a trace, as arrays with one entry per move.

    Attributes
    ----------
    step : array of int
        The step of each move.
    unit : array of int
        The unit that moved.
    entered : array of bool
        Whether the unit was added.
    score : array of float
        The score of the unit, or NaN if unknown.
    """

    step: Subset
    unit: Subset
    entered: Mask
    score: Array

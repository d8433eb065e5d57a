"""The steps of a selection, kept in columns.

A search says which subset it holds after each step, what that is worth and what it scored. What
moved is derived here, from two subsets, so that no step can contradict another. A
:class:`Trace` keeps moves and scores in arrays and rebuilds subsets on demand: keeping every subset
would cost memory of the order of the square of the number of units, and one object per step the
time of a ranking of 10^5 columns.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tamis._arrays import EMPTY, Array, Mask, Subset, snapped
from tamis._frame import frame
from tamis.exceptions import InvalidStep

#: Candidates of a step whose scores are kept, the best first: enough to see who came close, and a
#: search of 5 000 steps stays below ten megabytes.
BEST = 100

NOTHING: Array = np.empty(0)
NOTHING.flags.writeable = False


class Scores(NamedTuple):
    """What a step scored: units, and for each the gain of adding or the loss of removing it.

    Attributes
    ----------
    units : array of int
    values : array of float
    errors : array of float
        Standard errors of ``values``, empty where they are not known.
    n_equal : int
        How many units would have moved with as much right as the last one that did; 0 leaves it to
        the trace to count those whose scores agree in ten digits.
    """

    units: Subset
    values: Array
    errors: Array = NOTHING
    n_equal: int = 0

    def on(self, columns: Subset) -> "Scores":
        """The same scores of a table of which only ``columns`` were seen."""
        return self._replace(units=columns[self.units])


class Step(NamedTuple):
    """One step, as a search yields it.

    Attributes
    ----------
    subset : array of int
        The units held after the step, in any order.
    value : float
        The criterion's value of the subset, nan where it only ranks.
    scores : Scores or None
        The units that were scored to make the step, those that moved among them.
    params : dict
        Hyper-parameters chosen at this step.
    state : dict
        What the search needs beyond the trace to go on from here; only the newest is kept.
    """

    subset: Subset
    value: float = float("nan")
    scores: Scores | None = None
    params: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Step":
        """The same step on a table of which only ``columns`` were seen."""
        scores = None if self.scores is None else self.scores.on(columns)
        return self._replace(subset=columns[self.subset], scores=scores)


class Entries(NamedTuple):
    """Many steps at once, each of which adds one more unit.

    Attributes
    ----------
    units : array of int
        In the order of entry.
    scores : Scores
        What every unit scored, once for all steps.
    values : array of float
        Value after each step, empty where there is none.
    """

    units: Subset
    scores: Scores
    values: Array = NOTHING
    state: dict[str, Any] = {}  # noqa: RUF012

    def on(self, columns: Subset) -> "Entries":
        """The same steps on a table of which only ``columns`` were seen."""
        return self._replace(units=columns[self.units], scores=self.scores.on(columns))


class Progress(NamedTuple):
    """No step yet, but a place to stop and to go on from: a network trained, a filter half done."""

    state: dict[str, Any]

    def on(self, columns: Subset) -> "Progress":
        """The same progress, which names no units."""
        return self


Event: TypeAlias = Step | Entries | Progress


class TracedStep(NamedTuple):
    """One step, as a trace knows it.

    Attributes
    ----------
    subset : array of int
        The units held after the step, sorted.
    value : float
    moved : array of int
        The units that entered, the best first, or left, the worst first.
    entered : array of bool
        For each of them whether it entered.
    score : array of float
        For each of them what it scored, nan where nobody said.
    error : array of float
        Standard errors of these scores, nan where they are not known.
    scores : Scores
        The best candidates of the step, at most :data:`BEST`, those that moved among them.
    n_evaluations : int
        Scores asked of the criterion up to here.
    params : dict
    seconds : float
    """

    subset: Subset
    value: float
    moved: Subset
    entered: Mask
    score: Array
    error: Array
    scores: Scores
    n_evaluations: int
    params: dict[str, Any]
    seconds: float


#: Where a search stands: a step it just made, or the last one of a trace it goes on from.
Standing: TypeAlias = Step | TracedStep


class Growing:
    """An array that grows at its end in constant time."""

    def __init__(self, dtype: Any, values: ArrayLike = ()):
        self._held: NDArray[Any] = np.array(values, dtype=dtype)
        self._n = len(self._held)

    def extend(self, values: ArrayLike) -> None:
        """Add values behind the last."""
        values = np.atleast_1d(values)
        end = self._n + len(values)
        if end > len(self._held):
            larger = np.empty(max(end, 2 * self._n), dtype=self._held.dtype)
            larger[: self._n] = self.array
            self._held = larger
        self._held[self._n : end] = values
        self._n = end

    @property
    def array(self) -> NDArray[Any]:
        """What has been added so far."""
        return self._held[: self._n]


#: Columns of a trace: one entry a step, a moved unit, a scored candidate.
PER_STEP = {
    "value": float,
    "n_moved": np.intp,
    "n_scored": np.intp,
    "n_equal": np.intp,
    "n_evaluations": np.int64,
    "seconds": float,
}
PER_MOVE = {"moved": np.intp, "score": float, "error": float}
PER_CANDIDATE = {"candidate": np.intp, "candidate_score": float}


class Trace(Sequence[TracedStep]):
    """The steps of a selection.

    Attributes
    ----------
    n_units : int
    start : array of bool
        The units held before the first step.
    given : array of float
        The score that each unit was last given, nan where it never was.
    given_at : array of int
        The step at which that was, -1 where it never was.
    state : dict
        What the search needs to go on from the last step.

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
        self._columns = {
            name: Growing(dtype) for name, dtype in (PER_STEP | PER_MOVE | PER_CANDIDATE).items()
        }
        self._held: Mask | None = None  # the newest subset, once it has been asked for
        self._moves: Moves | None = None  # all moves so far, once they have been asked for

    @classmethod
    def of(cls, n_units: int, events: "Iterable[Event]") -> Self:
        """The trace of some steps."""
        trace = cls(n_units)
        for event in events:
            if isinstance(event, Entries):
                trace.extend(event)
            elif isinstance(event, Step):
                trace.append(event)
        return trace

    # -- growing --------------------------------------------------------------------------------

    def change(self, step: Step) -> tuple[Subset, Mask, int]:
        """What a step would move, whether each enters, and the size before."""
        before, after = self._newest(), self._mask_of(step.subset)
        if not len(self) and step.scores is None and after.all():
            before = after  # where a walk from everything stands before its first move
        moved = np.flatnonzero(before ^ after)
        return moved, after[moved], int(before.sum())

    @property
    def growing(self) -> bool | None:
        """Whether the first unit that moved entered; None where none has moved."""
        moved = self._columns["moved"].array
        return bool(not self.start[moved[0]]) if len(moved) else None

    def append(self, step: Step, *, n_evaluations: int = 0, seconds: float = 0.0) -> None:
        """Add a step; what moved is what differs from the subset before."""
        moved, entered, before = self.change(step)
        scores = _checked(Scores(EMPTY, NOTHING) if step.scores is None else step.scores)
        adding = bool(entered.any())
        moved = _best_first(moved, scores, adding)
        best, n_equal = _weighed(scores, moved, adding=adding)
        if not len(self):
            self.start[:] = before > 0
        self.state = step.state
        if step.params:
            self.params[len(self)] = step.params
        self._give(scores)
        self._write(
            value=step.value,
            n_moved=len(moved),
            n_scored=len(best.units),
            n_equal=n_equal,
            n_evaluations=n_evaluations,
            seconds=seconds,
            moved=moved,
            score=_looked_up(moved, scores.units, scores.values),
            error=_looked_up(moved, scores.units, scores.errors),
            candidate=best.units,
            candidate_score=best.values,
        )
        self._held = self._mask_of(step.subset)

    def extend(self, entries: Entries, *, n_evaluations: int = 0, seconds: float = 0.0) -> None:
        """Add one step for each unit that enters, in one go."""
        units, scores = np.asarray(entries.units), _checked(entries.scores)
        fresh = self._mask_of(units)
        if (fresh & self._newest()).any():
            raise InvalidStep("adds a unit that it already holds")
        n = len(units)
        values = entries.values if len(entries.values) else np.full(n, np.nan)
        score = _looked_up(units, scores.units, scores.values)
        best, _ = _weighed(scores, units[:1], adding=True)
        self.state = entries.state
        self._give(scores)
        self._write(
            value=values,
            n_moved=np.ones(n, dtype=np.intp),
            n_scored=np.r_[len(best.units), np.zeros(n - 1, dtype=np.intp)],
            n_equal=_equal_from_here_on(score),
            n_evaluations=np.full(n, n_evaluations),
            seconds=np.r_[seconds, np.zeros(n - 1)],
            moved=units,
            score=score,
            error=_looked_up(units, scores.units, scores.errors),
            candidate=best.units,
            candidate_score=best.values,
        )
        self._held = self._newest() | fresh

    def _mask_of(self, subset: ArrayLike) -> Mask:
        """A subset as a mask; refused where it is none."""
        units = np.asarray(subset)
        if units.ndim != 1 or (len(units) and not np.issubdtype(units.dtype, np.integer)):
            raise InvalidStep(f"gives {subset!r} for a subset, which needs an array of indices")
        if len(units) and not (units.min() >= 0 and units.max() < self.n_units):
            outside = units[(units < 0) | (units >= self.n_units)][0]
            raise InvalidStep(f"names unit {outside}, where units go from 0 to {self.n_units - 1}")
        mask = np.zeros(self.n_units, dtype=bool)
        mask[units] = True
        if int(mask.sum()) != len(units):
            twice = np.flatnonzero(np.bincount(units) > 1)[0]
            raise InvalidStep(f"holds unit {twice} twice")
        return mask

    def _give(self, scores: Scores) -> None:
        self.given[scores.units] = scores.values
        self.given_at[scores.units] = len(self)

    def _write(self, **values: Any) -> None:
        self._moves = None
        for name, column in values.items():
            self._columns[name].extend(column)

    # -- reading --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._columns["value"].array)

    def _newest(self) -> Mask:
        return self.mask(len(self) - 1) if self._held is None else self._held

    def mask(self, index: int) -> Mask:
        """The units held after a step, or before the first one for index -1."""
        n_moves = int(self._columns["n_moved"].array[: index + 1].sum())
        crossed = np.bincount(self._columns["moved"].array[:n_moves], minlength=self.n_units)
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
        return self._step(index, self.mask(index))

    def __iter__(self) -> Iterator[TracedStep]:
        mask = self.start.copy()
        ends = np.cumsum(self._columns["n_moved"].array)
        for index, end in enumerate(ends):
            start = 0 if index == 0 else ends[index - 1]
            mask[self._columns["moved"].array[start:end]] ^= True
            yield self._step(index, mask)

    def _step(self, index: int, mask: Mask) -> TracedStep:
        of_step = {name: self._columns[name].array[index] for name in PER_STEP}
        moves, scored = (self._slice(name, index) for name in ("n_moved", "n_scored"))
        moved = self._columns["moved"].array[moves].copy()
        return TracedStep(
            subset=np.flatnonzero(mask),
            value=float(of_step["value"]),
            moved=moved,
            entered=mask[moved],
            score=self._columns["score"].array[moves].copy(),
            error=self._columns["error"].array[moves].copy(),
            scores=Scores(
                self._columns["candidate"].array[scored].copy(),
                self._columns["candidate_score"].array[scored].copy(),
                n_equal=int(of_step["n_equal"]),
            ),
            n_evaluations=int(of_step["n_evaluations"]),
            params=self.params.get(index, {}),
            seconds=float(of_step["seconds"]),
        )

    def _slice(self, counts: str, index: int) -> slice:
        n = self._columns[counts].array
        start = int(n[:index].sum())
        return slice(start, start + int(n[index]))

    def moves(self) -> "Moves":
        """All moves of all steps, one after the other."""
        if self._moves is None:
            self._moves = self._all_moves()
        return self._moves

    def _all_moves(self) -> "Moves":
        counts, moved = self._columns["n_moved"].array, self._columns["moved"].array
        # a unit enters with its first, third, ... move unless it was there from the start
        nth = _occurrences(moved)
        return Moves(
            step=np.repeat(np.arange(len(counts)), counts),
            unit=moved.copy(),
            entered=self.start[moved] ^ (nth % 2 == 0),
            score=self._columns["score"].array.copy(),
        )

    @property
    def sizes(self) -> Subset:
        """Number of units held after each step."""
        moves = self.moves()
        change = np.bincount(moves.step, np.where(moves.entered, 1, -1), len(self))
        sizes: Subset = int(self.start.sum()) + np.cumsum(change).astype(np.intp)
        return sizes

    @property
    def values(self) -> Array:
        """Value after each step."""
        return self._columns["value"].array.copy()

    @property
    def n_equal(self) -> Subset:
        """How many units scored as the last one that moved did, itself included; 0 is unknown."""
        return self._columns["n_equal"].array.copy()

    @property
    def n_moved(self) -> Subset:
        """How many units moved at each step."""
        return self._columns["n_moved"].array.copy()

    @property
    def n_candidates(self) -> Subset:
        """How many scores of each step are kept."""
        return self._columns["n_scored"].array.copy()

    @property
    def n_evaluations(self) -> int:
        """Scores asked of the criterion up to the last step."""
        asked = self._columns["n_evaluations"].array
        return int(asked[-1]) if len(asked) else 0

    @property
    def seconds(self) -> float:
        """Time of all steps together."""
        return float(self._columns["seconds"].array.sum())

    def head(self, n_steps: int) -> "Trace":
        """The first steps alone; scores given to units that they did not keep are not known."""
        kept = Trace(self.n_units)
        if n_steps:
            kept.start = self.start.copy()
        kept.params = {step: params for step, params in self.params.items() if step < n_steps}
        for names, count in (
            (PER_STEP, n_steps),
            (PER_MOVE, int(self._columns["n_moved"].array[:n_steps].sum())),
            (PER_CANDIDATE, int(self._columns["n_scored"].array[:n_steps].sum())),
        ):
            for name in names:
                kept._columns[name].extend(self._columns[name].array[:count])
        for index in range(n_steps):
            scored = kept._slice("n_scored", index)
            units = kept._columns["candidate"].array[scored]
            kept.given[units] = kept._columns["candidate_score"].array[scored]
            kept.given_at[units] = index
        return kept

    def copy(self) -> "Trace":
        """A trace that can grow without this one."""
        return type(self).from_dict(self.to_dict())

    def to_frame(self) -> Any:
        """One row for each step: size, value, what moved and what it scored."""
        moves = self.moves()
        ends = np.cumsum(self._columns["n_moved"].array)[:-1]
        split = {
            name: [part.tolist() for part in np.split(getattr(moves, name), ends)]
            for name in ("unit", "entered", "score")
        }
        return frame(
            {
                "step": list(range(1, len(self) + 1)),
                "size": self.sizes.tolist(),
                "value": self.values.tolist(),
                "entered": _chosen(split["unit"], split["entered"], True),
                "left": _chosen(split["unit"], split["entered"], False),
                "score": split["score"],
                "n_equal": self.n_equal.tolist(),
                "n_evaluations": self._columns["n_evaluations"].array.tolist(),
                "seconds": self._columns["seconds"].array.tolist(),
            }
        )

    # -- as plain numbers -----------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists; a number that JSON does not know is None or a word."""
        return {
            "n_units": self.n_units,
            "start": np.flatnonzero(self.start).tolist(),
            "given": plain_numbers(self.given),
            "given_at": self.given_at.tolist(),
            "state": self.state,
            "params": {str(step): params for step, params in self.params.items()},
            **{name: plain_numbers(held.array) for name, held in self._columns.items()},
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The trace that :meth:`to_dict` wrote."""
        trace = cls(plain["n_units"])
        trace.start[np.array(plain["start"], dtype=np.intp)] = True
        trace.given = numbers_of(plain["given"])
        trace.given_at = np.array(plain["given_at"], dtype=np.intp)
        trace.state = plain["state"]
        trace.params = {int(step): params for step, params in plain["params"].items()}
        for name, dtype in (PER_STEP | PER_MOVE | PER_CANDIDATE).items():
            held = numbers_of(plain[name]) if dtype is float else plain[name]
            trace._columns[name] = Growing(dtype, held)
        return trace

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} steps over {self.n_units} units>"


class Moves(NamedTuple):
    """All moves of a trace, in columns.

    Attributes
    ----------
    step : array of int
        The step of each move.
    unit : array of int
    entered : array of bool
    score : array of float
    """

    step: Subset
    unit: Subset
    entered: Mask
    score: Array


def _checked(scores: Scores) -> Scores:
    """Scores, one for each unit."""
    if len(scores.units) != len(scores.values):
        raise InvalidStep(
            f"has {len(scores.values)} scores for {len(scores.units)} units that it scored"
        )
    return scores


def _best_first(moved: Subset, scores: Scores, adding: bool) -> Subset:
    """Units that moved in the order of their scores: of equals the lowest index enters first."""
    if len(moved) < 2:
        return moved
    found = snapped(_looked_up(moved, scores.units, scores.values))
    return moved[np.lexsort((moved, -found) if adding else (-moved, found))]


def _weighed(scores: Scores, moved: Subset, *, adding: bool) -> tuple[Scores, int]:
    """The best candidates of a step, the best first, and how many equal the last that moved."""
    if not len(scores.units):
        return scores, scores.n_equal
    worth = scores.values if adding else -scores.values
    n_kept = min(BEST, len(worth))
    if len(worth) > BEST:
        head = np.argpartition(-worth, BEST - 1)[:BEST]
        head = np.union1d(head, np.flatnonzero(np.isin(scores.units, moved)))
    else:
        head = np.arange(n_kept)
    head = head[np.argsort(-worth[head], kind="stable")]
    best = Scores(scores.units[head], scores.values[head])
    if scores.n_equal or not len(moved):
        return best, scores.n_equal
    cut = snapped(worth)
    with np.errstate(invalid="ignore"):
        last = cut[np.isin(scores.units, moved)]
    return best, int((cut == last.min()).sum()) if len(last) else 0


def _equal_from_here_on(score: Array) -> Subset:
    """For each of falling scores how many equal it, itself and what comes behind it counted."""
    cut = snapped(score)
    fresh = np.append(np.flatnonzero(cut[1:] != cut[:-1]) + 1, len(cut))
    ends: Subset = fresh[np.searchsorted(fresh, np.arange(len(cut)), side="right")]
    return ends - np.arange(len(cut))


def _looked_up(wanted: Subset, units: Subset, values: Array) -> Array:
    """For each wanted unit its value, nan where it has none."""
    if not len(values) or not len(wanted):
        return np.full(len(wanted), np.nan)
    if np.array_equal(units, np.arange(len(units))):  # every unit was scored
        found: Array = values[wanted]
        return found
    order = np.argsort(units, kind="stable")
    index = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    nearest = order[index]
    return np.where(units[nearest] == wanted, values[nearest], np.nan)


def _occurrences(units: Subset) -> Subset:
    """For each entry how many equal ones stand before it."""
    if len(units) and np.bincount(units).max() == 1:
        return np.zeros(len(units), dtype=np.intp)
    order = np.argsort(units, kind="stable")
    rising = units[order]
    fresh = np.append(True, rising[1:] != rising[:-1]) if len(units) else np.empty(0, dtype=bool)
    first = np.flatnonzero(fresh)
    counts = np.arange(len(units)) - np.repeat(first, np.diff(np.append(first, len(units))))
    out = np.empty(len(units), dtype=np.intp)
    out[order] = counts
    return out


def _chosen(units: list[list[int]], flags: list[list[bool]], wanted: bool) -> list[list[int]]:
    return [
        [u for u, flag in zip(some, marks, strict=True) if flag is wanted]
        for some, marks in zip(units, flags, strict=True)
    ]


def plain_numbers(values: NDArray[Any]) -> list[Any]:
    """Numbers as JSON knows them: nan is None, infinities are words."""
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        words = {np.inf: "inf", -np.inf: "-inf"}
        return [None if v != v else words.get(v, v) for v in listed]
    return listed


def numbers_of(listed: list[Any]) -> Array:
    """The array that :func:`plain_numbers` wrote."""
    return np.array([np.nan if v is None else v for v in listed], dtype=float)

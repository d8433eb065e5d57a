"""The run loop: makes the steps of a selection, whatever they are made from, and chooses one."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, improves
from tamis._namespace import PROCESSOR, device_asked
from tamis.contract.choice import Chosen, Context
from tamis.contract.record import Interaction, Record
from tamis.contract.steps import Entries, Event, Progress
from tamis.contract.trace import Change, Trace
from tamis.contract.units import Grouping
from tamis.exceptions import (
    InvalidParameter,
    InvalidStep,
    InvalidTable,
    NothingSelected,
    NothingToAdd,
    RecordMismatch,
    TamisError,
)

if TYPE_CHECKING:
    from tamis.contract.selector import Selection

log = logging.getLogger("tamis")


class StepSource(Protocol):
    """What steps are made from: a fitted criterion, a table, the parts of a composition."""

    @property
    def n_evaluations(self) -> int:
        """Scores asked for so far."""

    @property
    def parts(self) -> tuple[Record, ...]:
        """Records of the selections inside, the last of which decides what is kept."""

    @property
    def criterion(self) -> Any:
        """The fitted criterion, None where there is none."""


class Run:
    """A selection on its way: iterating makes its steps, ``record`` is what could be saved now.

    Parameters
    ----------
    selection : Selection
    X, y : array
        Checked.
    params : dict
        Metadata of rows for ``fit``.
    done : Record or None, default=None
        To go on from.
    grouping : Grouping or None, default=None
        The units.
    """

    def __init__(
        self,
        selection: "Selection",
        X: Array,
        y: NDArray[Any] | None,
        params: dict[str, Any],
        done: Record | None = None,
        grouping: Grouping | None = None,
    ):
        self.selection, self.name = selection, type(selection).__name__
        self.place = device_asked()
        self.X, self.y = X, y
        self.params = {name: value for name, value in params.items() if value is not None}
        self.grouping = Grouping(X.shape[1]) if grouping is None else grouping
        self.fixed = self.grouping.fixed_units
        selection._check_target(y)
        self.size = self._sized()
        fresh = Record.begin(selection, X, y, self.params, self.grouping)
        self.start = fresh if done is None else self._continued(done, fresh)
        self.trace = self.start.trace
        self.n_known = len(self.trace)
        self.choice = selection._choice()
        self.source: StepSource | None = None
        self.ended, self.working = False, 0.0
        self._settled = self.start if self.start.finished else None

    def _sized(self) -> int | None:
        """Number of units to walk to; refused where it cannot be, or has no room for the fixed."""
        grouping = self.grouping
        try:
            size = self.selection._size(grouping.n_units)
        except InvalidParameter as error:
            if grouping.plain:
                raise
            raise InvalidParameter(
                f"{error} A group counts as one: feature_groups makes {grouping.n_units} units of "
                f"the {grouping.n_columns} columns."
            ) from None
        if size is not None and len(self.fixed) > size:
            raise InvalidParameter(
                f"{self.name} is to keep {size}, but fixed_features has {len(self.fixed)}, "
                "which count among them. Raise n_features_to_select, or fix fewer."
            )
        return size

    def _continued(self, done: Record, fresh: Record) -> Record:
        """The record to go on from: as it is, or with the steps that another size has in common."""
        done.check_continues(fresh, extends=self.selection.extends)
        trace = done.trace.copy()
        if done.identity == fresh.identity:
            return replace(done, trace=trace)
        if not self.selection.extends:
            raise RecordMismatch(
                f"The steps of {self.name} depend on the number of features asked for, so that the "
                f"record of {done.expression} says nothing of another one. Call fit to start anew."
            )
        n_common = self.selection._common(done, self.size)
        if n_common < len(trace):
            trace = trace.head(n_common) if n_common else fresh.trace
        return replace(fresh, trace=trace, seeds=done.seeds, parts=done.parts, ran_on=done.ran_on)

    # -- the steps --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Event]:
        if self.start.finished:
            self.ended = True
            return
        work, seeds = self.selection._seeded(dict(self.start.seeds) or None)
        self.start = replace(self.start, seeds=seeds)
        self.source = source = work._open(self.X, self.y, self.params, self.start)
        choice, context = self.choice, self.context
        if len(self.trace) and not source.parts and choice.enough(self.trace, context):
            self.ended = True
            return
        before, known = perf_counter(), bool(self.trace.state)
        steps = work._steps(source, self.trace.n_units, self.size, self.trace)
        while True:
            try:
                event = next(steps, None)
            except NothingToAdd:
                if self.size is not None:
                    raise
                break
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                if not known or isinstance(error, TamisError):
                    raise
                raise InvalidTable(
                    f"This is a damaged record: {self.name} cannot go on from its state "
                    f"({type(error).__name__}: {error}). Start the search anew."
                ) from error
            if event is None:
                break
            self._take(event, perf_counter() - before)
            known = False  # an error from now on is not one of the record
            yield event
            if not source.parts and choice.enough(self.trace, context):
                break
            before = perf_counter()
        self.ended = True

    def on(self, units: Subset, done: Trace, n_evaluations: int = 0) -> Iterator[Event]:
        """Make the steps, as steps of a wider table whose trace is ``done``, and choose one.

        ``done`` first takes over the steps that this run resumes from: an interrupt may have come
        after this run took a step and before the run on the wider table took it.
        """
        done.become(self.trace.on(units, done.n_units, n_evaluations))
        for event in self:
            if not len(done):  # a walk from everything starts from all that it is offered
                done.start[units] = self.trace.start
            yield event.on(units)
        self.settled()

    def _take(self, event: Event, seconds: float) -> None:
        """Add what happened to the trace, unless it breaks a promise."""
        assert self.source is not None
        if isinstance(event, Progress):
            self.trace.state = event.state
            self.working += seconds  # the time of the step that it leads to
            return
        seconds, self.working = seconds + self.working, 0.0
        n_evaluations = self.source.n_evaluations
        try:
            if isinstance(event, Entries):
                self.trace.extend(event, n_evaluations=n_evaluations, seconds=seconds)
            else:
                change = self.trace.change(event)
                self._check_change(change)
                self.trace.append(
                    event, n_evaluations=n_evaluations, seconds=seconds, change=change
                )
        except InvalidStep as error:
            raise InvalidStep(
                f"{self.name}, at step {len(self.trace) + 1}, {error}. Correct what "
                f"{self.name}._steps yields."
            ) from None
        log.debug("%s: step %d", self.name, len(self.trace))

    def _check_change(self, change: Change) -> None:
        """Refuse a step that leaves out what is fixed, or breaks the promise to be nested."""
        before, after, moved = change
        if len(self.fixed) and not after[self.fixed].all():
            raise InvalidStep("leaves out units that fixed_features keeps")
        if not self.selection.nested:
            return
        if not len(moved):
            if len(self.trace):
                raise InvalidStep("moves nothing, although it promises to grow or shrink")
            return
        entered, growing = after[moved], self.trace.growing
        mixed = len(moved) > 1 and entered.any() != entered.all()
        if mixed or growing not in (None, bool(entered[0])):
            raise InvalidStep(
                "both adds and takes away, although it promises that each step holds, or is held "
                "by, the step before"
            )
        first, last = np.count_nonzero(before), np.count_nonzero(after)
        if self.size is not None and min(first, last) < self.size < max(first, last):
            raise InvalidStep(
                f"goes from {first} to {last} units and passes over the {self.size} asked for"
            )

    # -- the record -------------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """What a choice may look at beside the trace."""
        criterion = None if self.source is None else self.source.criterion
        return Context(criterion, self.X, self.y, self.grouping)

    @property
    def record(self) -> Record:
        """What has been done so far; it is finished once a step has been chosen."""
        if self._settled is not None:
            return self._settled
        source = self.source
        return replace(
            self.start,
            trace=self.trace,
            chosen=max(0, len(self.trace) - 1),
            n_evaluations=self.start.n_evaluations if source is None else source.n_evaluations,
            parts=self.start.parts if source is None else source.parts,
            interactions=self._interactions(),
            ran_on=self._ran_on(),
        )

    def _ran_on(self) -> dict[str, list[str]]:
        """Where parts of the work were done, those of the record gone on from among them."""
        if self.place is None and not self.start.ran_on:
            return {}
        found = {part: list(held) for part, held in self.start.ran_on.items()}
        own = {} if self.place is None else self.place.parts
        # of a criterion that knows of no device, or on the processor after all
        if len(self.trace) > self.n_known and "scores" not in own:
            own = {**own, "scores": [PROCESSOR]}
        for part, held in own.items():
            known = found.setdefault(part, [])
            known += [name for name in held if name not in known]
        return found

    def _interactions(self) -> tuple[Interaction, ...]:
        """The strongest pairs that the criterion found, or those of the record gone on from."""
        if self.source is None or self.source.criterion is None:
            return self.start.interactions
        return tuple(getattr(self.source.criterion, "interactions_", ()))

    def settled(self) -> Record:
        """The record of a run that ended, with the step that was chosen."""
        if self._settled is None:
            step, reason = self._picked()
            # a search that is out of budget says by a gap that there is more to do
            finished = not self.trace.state.get("gap")
            self._settled = replace(
                self.record, chosen=int(step), reason=str(reason), finished=finished
            )
        return self._settled

    def _picked(self) -> Chosen:
        """The step to keep, and why: as the last of the parts says, or the choice."""
        sizes = self.trace.sizes
        if not sizes.any():
            raise NothingSelected(
                f"{self.name} found no subset that its criterion can value: each one holds columns "
                "that are constant or depend on each other. Drop those columns, or give the "
                "criterion a ridge where it has one."
            )
        if self.size is not None and self.size not in sizes:
            raise InvalidStep(
                f"{self.name} was asked for {self.size} unit(s), but its walk ended without a "
                f"subset of that size. Yield one from {self.name}._steps."
            )
        assert self.source is not None
        if self.source.parts:
            last = self.source.parts[-1]
            return Chosen(last.chosen, last.reason)
        picked = self.choice.pick(self.trace, self.context)
        if not (isinstance(picked, tuple) and len(picked) == 2):
            raise InvalidStep(
                f"{self.name} needs a choice that returns a step and a reason, not {picked!r}. "
                "Write return Chosen(step, 'why this one.') in its pick."
            )
        step = picked[0]
        if self.selection.holds_best:
            # of equal steps the last: it took the place of the others by opinion, or as the first
            value, values = self.trace.values[step], self.trace.values
            same = np.flatnonzero(sizes == sizes[step])
            step = int(max(index for index in same if not improves(value, values[index])))
        return Chosen(step, picked[1])

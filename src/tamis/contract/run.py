"""A selection on its way: the one loop that makes steps, whatever they are made from."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._namespace import PROCESSOR, device_asked
from tamis.contract.choice import Choice, Context
from tamis.contract.record import Interaction, Record
from tamis.contract.steps import Entries, Event, Progress, Step
from tamis.contract.trace import Trace
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
        """Records of the selections inside."""

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
        selection._check_target(y)
        grouping = Grouping(X.shape[1]) if grouping is None else grouping
        self.size = self._sized(grouping)
        self.fixed = grouping.fixed_units
        self._check_fixed()
        selection._afford(X, y)
        fresh = Record.begin(selection, X, y, self.params, grouping)
        self.start = fresh if done is None else self._continued(done, fresh)
        self.trace = self.start.trace
        self.n_known = len(self.trace)
        self.grouping = self.start.grouping
        self.source: StepSource | None = None
        self.ended, self.working = False, 0.0
        self._settled = self.start if self.start.finished else None

    def _sized(self, grouping: Grouping) -> int | None:
        """Number of units to walk to; where it cannot be, a word on what is counted."""
        try:
            return self.selection._size(grouping.n_units)
        except InvalidParameter as error:
            if grouping.plain:
                raise
            raise InvalidParameter(
                f"{error} A group counts as one: feature_groups makes {grouping.n_units} units of "
                f"the {grouping.n_columns} columns."
            ) from None

    def _check_fixed(self) -> None:
        """Refuse a size that has no room for what is fixed."""
        if self.size is not None and len(self.fixed) > self.size:
            raise InvalidParameter(
                f"{self.name} is to keep {self.size}, but fixed_features has {len(self.fixed)}, "
                "which count among them. Raise n_features_to_select, or fix fewer."
            )

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
        return replace(
            fresh,
            trace=_first(trace, n_common, fresh.trace),
            seeds=done.seeds,
            parts=done.parts,
            ran_on=done.ran_on,
        )

    @property
    def way(self) -> tuple[int, int]:
        """How many units the walk has come, and how many it has to go in all."""
        sizes, far = self.trace.sizes, self.size or self.trace.n_units
        if len(sizes) < 2:
            return 0, far
        first, last = int(sizes[0]), int(sizes[-1])
        if last < first:
            return first - last, max(first - (self.size or 1), 1)
        return last, far

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
        found = {part: list(held) for part, held in self.start.ran_on.items()}
        if self.place is None and not found:
            return {}
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
        criterion = getattr(self.source, "criterion", None)
        if criterion is None:
            return self.start.interactions
        return tuple(getattr(criterion, "interactions_", ()))

    def settled(self) -> Record:
        """The record of a run that ended, with the step that was chosen."""
        if self._settled is None:
            self._settled = self._with_choice()
        return self._settled

    def _with_choice(self) -> Record:
        """The record with the step that the selection picks."""
        record, sizes = self.record, self.trace.sizes
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
        picked = self.selection._picked(self)
        if not (isinstance(picked, tuple) and len(picked) == 2):
            raise InvalidStep(
                f"{self.name} needs a choice that returns a step and a reason, not {picked!r}. "
                "Write return Chosen(step, 'why this one.') in its pick."
            )
        return replace(
            record,
            chosen=int(picked[0]),
            reason=str(picked[1]),
            finished=self.selection._complete(self.trace),
        )

    @cached_property
    def choice(self) -> Choice:
        """The rule that picks the step to keep, asked after each of them."""
        return self.selection._choice()

    @property
    def context(self) -> Context:
        """What a choice may look at beside the trace."""
        criterion = None if self.source is None else self.source.criterion
        return Context(criterion, self.X, self.y, self.grouping)

    def __iter__(self) -> Iterator[Event]:
        if self.start.finished:
            self.ended = True
            return
        seeds = dict(self.start.seeds) or None
        work, seeds = self.selection._seeded(seeds)
        self.start = replace(self.start, seeds=seeds)
        self.source = source = work._open(self.X, self.y, self.params, self.start)
        if len(self.trace) and self.selection._enough(self):
            self.ended = True
            return
        before = perf_counter()
        steps = work._steps(source, self.trace.n_units, self.size, self.trace)
        try:
            for event in self._restarted(steps):
                self._take(event, perf_counter() - before)
                yield event
                if self.selection._enough(self):
                    break
                before = perf_counter()
        except NothingToAdd:
            if self.size is not None:
                raise
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

    def _restarted(self, steps: Iterator[Event]) -> Iterator[Event]:
        """The steps, where those of a record have a state that the search can read."""
        if self.trace.state:
            try:
                first = next(steps, None)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                if isinstance(error, TamisError):
                    raise
                raise InvalidTable(
                    f"This is a damaged record: {self.name} cannot go on from its state "
                    f"({type(error).__name__}: {error}). Start the search anew."
                ) from error
            if first is None:
                return
            yield first
        yield from steps

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
                if self.selection.nested:
                    self._check_nested(event)
                self._check_holds_fixed(event)
                self.trace.append(event, n_evaluations=n_evaluations, seconds=seconds)
        except InvalidStep as error:
            raise InvalidStep(
                f"{self.name}, at step {len(self.trace) + 1}, {error}. Correct what "
                f"{self.name}._steps yields."
            ) from None
        log.debug("%s: step %d", self.name, len(self.trace))

    def _check_holds_fixed(self, step: Step) -> None:
        """Refuse a step that leaves out what is fixed."""
        if len(self.fixed) and not np.isin(self.fixed, step.subset).all():
            raise InvalidStep("leaves out units that fixed_features keeps")

    def _check_nested(self, step: Step) -> None:
        """Refuse a step that is neither inside nor around the one before, or passes the size."""
        moved, entered, before = self.trace.change(step)
        if not len(moved):
            if len(self.trace):
                raise InvalidStep("moves nothing, although it promises to grow or shrink")
            return
        growing = self.trace.growing
        mixed = len(moved) > 1 and entered.any() != entered.all()
        if mixed or growing not in (None, bool(entered[0])):
            raise InvalidStep(
                "both adds and takes away, although it promises that each step holds, or is held "
                "by, the step before"
            )
        after = before + (len(moved) if entered[0] else -len(moved))
        if self.size is not None and min(before, after) < self.size < max(before, after):
            raise InvalidStep(
                f"goes from {before} to {after} units and passes over the {self.size} asked for"
            )


def _first(trace: Trace, n_steps: int, fresh: Trace) -> Trace:
    """The first steps of a trace; none are those of a fresh one."""
    if n_steps == len(trace):
        return trace
    return trace.head(n_steps) if n_steps else fresh

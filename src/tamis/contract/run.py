"""The loop that makes the steps of a selection, reports progress and chooses a step."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, improves
from tamis._namespace import PROCESSOR, device_asked
from tamis._parallel import progress_listener
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
    """Source of the steps of a run: a fitted criterion, a table, or the parts of a composition."""

    @property
    def n_evaluations(self) -> int:
        """Number of scores computed so far."""

    @property
    def parts(self) -> tuple[Record, ...]:
        """Records of the inner selections. The last one decides which units are selected."""

    @property
    def criterion(self) -> Any:
        """The fitted criterion, or None."""


class Run:
    """A selection in progress. Iterating makes its steps; ``record`` can be saved at any time.

    Parameters
    ----------
    selection : Selection
        The selection to run.
    X, y : array
        The validated data.
    params : dict
        Per-row metadata for ``fit``.
    done : Record or None, default=None
        A record to continue from.
    grouping : Grouping or None, default=None
        The units of the table. None if each column is a unit.
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
        self.size = self._find_size()
        self.choice = selection._choice()
        self.choice.check_units(self.grouping)
        fresh = Record.begin(selection, X, y, self.params, self.grouping)
        self.start = fresh if done is None else self._resume(done, fresh)
        self.trace = self.start.trace
        self.n_known = len(self.trace)
        self.source: StepSource | None = None
        self.ended, self.working = False, 0.0
        self._settled = self.start if self.start.finished else None

    def _find_size(self) -> int | None:
        """Return the number of units to select, or None. Refuse an impossible number."""
        grouping = self.grouping
        try:
            size = self.selection._size(grouping.n_units)
        except InvalidParameter as error:
            if grouping.plain:
                raise
            raise InvalidParameter(
                f"{error} Each group counts as one unit: feature_groups turns "
                f"{grouping.n_columns} columns into {grouping.n_units} units."
            ) from None
        if size is not None and len(self.fixed) > size:
            raise InvalidParameter(
                f"{self.name} needs n_features_to_select of at least {len(self.fixed)}, the "
                f"number of fixed_features, got {size}. Raise it, or fix fewer."
            )
        return size

    def _resume(self, done: Record, fresh: Record) -> Record:
        """Return the record to continue from.

        It contains only those recorded steps that a search for the new size would make as well.
        """
        done.check_continues(fresh, extends=self.selection.extends)
        trace = done.trace.copy()
        if done.identity == fresh.identity:
            self._check_chosen(done)
            return replace(done, trace=trace)
        guided = self.choice.guides or "phase" in done.trace.state
        if guided or not self.selection.extends:
            raise RecordMismatch(
                f"The steps of {self.name} depend on the number of features asked for, so the "
                f"record of {done.expression} cannot be extended. Call fit to start again."
            )
        n_common = self.selection._n_common(done, self.size)
        if n_common < len(trace):
            trace = trace.head(n_common) if n_common else fresh.trace
        return replace(fresh, trace=trace, seeds=done.seeds, parts=done.parts, ran_on=done.ran_on)

    def _check_chosen(self, done: Record) -> None:
        """Refuse a finished record whose chosen step differs from its last part or its size."""
        if not done.finished:
            return
        last = done.parts[-1].chosen if done.parts else done.chosen
        if done.chosen != last or self.size not in (None, len(done.kept_units)):
            raise InvalidTable(
                "This is a damaged record: its 'chosen' is not the step that this search selects. "
                "Start the search again."
            )

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
        steps = work._guided(source, self.size, self.trace, self.context)
        while True:
            try:
                event = next(steps, None)
            except NothingToAdd:
                if self.size is not None:
                    raise
                break
            except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
                if not known or isinstance(error, TamisError):
                    raise
                raise InvalidTable(
                    f"This is a damaged record: {self.name} cannot continue from its "
                    f"state ({type(error).__name__}: {error}). Start the search again."
                ) from error
            if event is None:
                break
            self._take(event, perf_counter() - before)
            known = False  # from here on an error does not come from the record
            yield event
            if not source.parts and choice.enough(self.trace, context):
                break
            before = perf_counter()
        self.ended = True

    def on(self, units: Subset, done: Trace, n_evaluations: int = 0) -> Iterator[Event]:
        """Make the steps, yield them with the unit indices of a wider table, and choose one.

        Unit i of this run is unit ``units[i]`` of the wider table. ``done`` is the trace on the
        wider table. First, its steps are replaced by the steps that this run resumes from. The two
        can differ if the fit was interrupted after a step was stored in this run, but before it was
        stored in ``done``.
        """
        done.become(self.trace.on(units, done.n_units, n_evaluations))
        for event in self:
            if not len(done):  # a backward search starts with all of its units
                done.start[units] = self.trace.start
            yield event.on(units)
        self.settled()

    def _take(self, event: Event, seconds: float) -> None:
        """Check an event and add it to the trace."""
        assert self.source is not None
        if isinstance(event, Progress):
            self.trace.state = event.state
            self.working += seconds  # added to the duration of the next step
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
        """Refuse a step that drops fixed units, or that breaks the declared nesting."""
        before, after, moved = change
        if len(self.fixed) and not after[self.fixed].all():
            raise InvalidStep("drops units of fixed_features")
        if not self.selection.nested or self.choice.guides:
            return
        if not len(moved):
            if len(self.trace):
                raise InvalidStep("moves no unit, although the search is declared nested")
            return
        entered, growing = after[moved], self.trace.growing
        mixed = len(moved) > 1 and entered.any() != entered.all()
        if mixed or growing not in (None, bool(entered[0])):
            raise InvalidStep("both adds and removes units, although the search is declared nested")
        first, last = np.count_nonzero(before), np.count_nonzero(after)
        if self.size is not None and min(first, last) < self.size < max(first, last):
            raise InvalidStep(
                f"goes from {first} to {last} units and skips the {self.size} asked for"
            )

    # -- the record -------------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """Information that a choice may use in addition to the trace."""
        criterion = None if self.source is None else self.source.criterion
        return Context(criterion, self.X, self.y, self.grouping)

    @property
    def record(self) -> Record:
        """The record of the work so far. It is marked as finished once a step is chosen."""
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
        """Return the devices that each part of the work used, including those before a resume."""
        if self.place is None and not self.start.ran_on:
            return {}
        found = {part: list(held) for part, held in self.start.ran_on.items()}
        own = {} if self.place is None else self.place.parts
        # if no device is listed, the criterion does not support devices or fell back to the CPU
        if len(self.trace) > self.n_known and "scores" not in own:
            own = {**own, "scores": [PROCESSOR]}
        for part, held in own.items():
            known = found.setdefault(part, [])
            known += [name for name in held if name not in known]
        return found

    def _interactions(self) -> tuple[Interaction, ...]:
        """Return the strongest pairs of units from the criterion, or else from the record."""
        if self.source is None or self.source.criterion is None:
            return self.start.interactions
        return tuple(getattr(self.source.criterion, "interactions_", ()))

    def settled(self) -> Record:
        """Choose a step, unless one has been chosen, and return the record with the choice."""
        if self._settled is None:
            step, reason = self._pick()
            # an exact search that ran out of budget is not finished
            finished = not self.trace.state.get("gap")
            self._settled = replace(
                self.record, chosen=int(step), reason=str(reason), finished=finished
            )
        return self._settled

    def _pick(self) -> Chosen:
        """Return the chosen step and the reason.

        A composition uses the step that its last part has chosen. Otherwise the choice is applied.
        """
        sizes = self.trace.sizes
        if not (sizes.any() or self.choice.guides):
            raise NothingSelected(
                f"{self.name} found no subset that its criterion can score: all of them contain "
                "columns that are constant or depend on each other. Drop those columns, or set a "
                "ridge if the criterion has one."
            )
        if self.size is not None and self.size not in sizes:
            raise InvalidStep(
                f"{self.name} was asked for {self.size} unit(s), but it ended without a "
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
            # select the last of the tied steps: it replaced the earlier ones, because it has a
            # better tie-breaking score or a lower index
            value, values = self.trace.values[step], self.trace.values
            same = np.flatnonzero(sizes == sizes[step])
            step = int(max(index for index in same if not improves(value, values[index])))
        return Chosen(step, picked[1])


@contextmanager
def watch_steps(selection: "Selection", run: Run) -> Iterator[Callable[[], bool]]:
    """Yield a function that must be called after each step.

    The function reports the step to scikit-learn's callbacks or to the listener of
    :func:`tamis._parallel.listening`, and returns whether a callback asks to stop the fit.
    """
    context = selection._init_callback_context(max_subtasks=None)
    has_callbacks = bool(getattr(selection, "_skl_callbacks", []))
    listener = progress_listener()

    def watch() -> bool:
        if has_callbacks:
            selection.trace_, selection.record_ = run.trace, run.record
            task = context.subcontext(task_name="step")
            task.call_on_fit_task_begin(estimator=selection)
            return bool(task.call_on_fit_task_end(estimator=selection))
        if listener is not None:
            done, total, _ = selection._inner_search()._progress(run.record)
            if total is not None:
                listener(int(done), int(total))
        return False

    context.call_on_fit_task_begin(estimator=selection)
    yield watch if has_callbacks or listener is not None else bool  # bool() is False
    context.call_on_fit_task_end(estimator=selection)


def count_progress(record: Record, size: int | None) -> tuple[float, float | None, str]:
    """Return the number of units moved, the number to move (None if unknown), and a status text.

    Parameters
    ----------
    record : Record
        The record of the work so far.
    size : int or None
        Number of units to select, or None if every size is visited.
    """
    trace = record.trace
    if not len(trace):  # the first part of a composition, or a model in training
        return 0, None, f"part {len(record.parts)}" if record.parts else "training"
    n_units, first, last = trace.n_units, int(trace.sizes[0]), int(trace.sizes[-1])
    state = f"{last} of {n_units} {record.grouping.word}s"
    if first > n_units / 2:  # the search started with all units
        return n_units - last, max(n_units - (size or 1), 1), state
    return last, size or n_units, state


def format_progress(search: Any, record: Record) -> tuple[str, float | None, str]:
    """Return the name of a search, the share of its work that is done, and a status text."""
    name, criterion = type(search).__name__, getattr(search, "criterion", None)
    name = name if criterion is None else f"{name}({type(criterion).__name__})"
    done, total, state = search._progress(record)
    return name, min(done / total, 1.0) if total else None, state

"""A bar on stderr that follows a search through scikit-learn's callbacks."""

import math
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tamis.choice.rounds import InRounds
from tamis.cli.counting import rate
from tamis.search import BranchAndBound, Exhaustive, Genetic, Ranking
from tamis.table import TableSelector

#: Seconds between two looks at the trace; a ranking of 10^5 columns makes as many steps.
PAUSE = 0.05
#: Seconds from which a step has a line of its own; quicker ones would only flicker.
LONG = 2.0
#: Widths of the bar and of the name before it, which leave room in 80 columns for what is counted.
BAR, NAME = 12, 28


class SearchBar:
    """Callback that shows how far a search is; without a terminal it shows nothing."""

    def __init__(self, console: Console, *, quiet: bool = False):
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=BAR),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.stop = False
        self.task: TaskID | None = None
        self.step: TaskID | None = None
        self.looked = self.begun = self.told = 0.0
        self.first = self.done = self.total = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """A bar for a search that begins."""
        self.progress.start()
        estimator = inside(estimator)
        name, criterion = type(estimator).__name__, getattr(estimator, "criterion", None)
        name = name if criterion is None else f"{name}({type(criterion).__name__})"
        name = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
        self.task = self.progress.add_task(name, total=None, state="")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing: a step is shown when it is made."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Move the bar to the newest step, and say whether the search is to stop."""
        self._end_step()
        now = monotonic()
        if self.task is not None and now - self.looked > PAUSE and context.parent is not None:
            self.looked = now
            share, state = progress_of(estimator)
            total = None if share is None else 1.0
            self.progress.update(self.task, total=total, completed=share or 0.0, state=state)
        return self.stop

    def tell(self, done: int, total: int) -> None:
        """Show how far a loop inside a step is, where it is long."""
        if self.stop:  # compiled code may have taken Ctrl-C for an error of its own
            raise KeyboardInterrupt
        now = monotonic()
        if done <= self.done or total != self.total:  # another loop
            self._end_step()
            self.begun, self.first = now, done
        self.done, self.total = done, total
        if self.task is None or now - self.begun < LONG or now - self.told < PAUSE:
            return
        self.told = now
        if self.step is None:
            self.step = self.progress.add_task("  this step", total=total, state="")
        state = f"{done} of {total}, {rate((done - self.first) / (now - self.begun))}"
        self.progress.update(self.step, completed=done, total=total, state=state)

    def _end_step(self) -> None:
        if self.step is not None:
            self.progress.remove_task(self.step)
            self.step = None

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take the bar away."""
        self.progress.stop()  # which erases as many lines as there are, while they are there
        self._end_step()
        if self.task is not None:
            self.progress.remove_task(self.task)


def inside(selector: Any) -> Any:
    """The search itself, where a selector only prepares the table for one."""
    return selector.search if isinstance(selector, TableSelector) else selector


def _rounds_done(search: Any) -> tuple[float | None, str]:
    """How many rounds are done, of the selection or of the one inside it."""
    record = next(iter(search.record_.parts), search.record_)
    done, n_rounds = (record.trace.state.get(name, ()) for name in ("rounds", "n_rounds"))
    if not n_rounds:
        return None, "training"
    return len(done) / n_rounds, f"round {len(done)} of {n_rounds}"


def progress_of(search: Any) -> tuple[float | None, str]:
    """The share of a search that is done, None where nobody knows, and where it stands."""
    trace, kind = search.trace_, inside(search)
    if isinstance(kind, InRounds):
        return _rounds_done(search)
    if not len(trace):  # the first part of a composition, or a model in training
        parts = search.record_.parts
        return None, f"part {len(parts)}" if parts else "training"
    n_units, sizes = trace.n_units, trace.sizes
    if isinstance(kind, Genetic):
        return len(trace) / (kind.n_generations + 1), f"generation {len(trace) - 1}"
    if isinstance(kind, BranchAndBound):
        return None, f"gap {trace.state['gap']:.3g}"
    target = search._choice().size(n_units, "")
    if isinstance(kind, Exhaustive):
        n_fixed = len(search.record_.grouping.fixed)
        free = n_units - n_fixed
        whole = 2**free if target is None else math.comb(free, target - n_fixed)
        n_valued = trace.state["valued"]
        return n_valued / whole, f"{n_valued} subsets"
    if isinstance(kind, Ranking):  # it ranks all, whatever is asked
        target = None
    first, last = int(sizes[0]), int(sizes[-1])
    if first > n_units / 2:  # it began with everything
        share = (n_units - last) / max(n_units - (target or 1), 1)
    else:
        share = last / (target or n_units)
    return min(share, 1.0), f"{last} of {n_units} {search.record_.grouping.word}s"

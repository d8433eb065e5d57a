"""A progress bar on stderr, and Ctrl-C."""

from signal import SIGINT, signal
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any, Self

from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tamis._format import mask_control
from tamis.cli.terminal import stderr

#: Seconds between two looks at a search; a ranking of 10^5 columns makes as many steps.
PAUSE = 0.05
#: Seconds from which a step has a line of its own; quicker ones would only flicker.
LONG = 2.0
#: Widths of the bar and of the name before it, which leave room in 80 columns for the state.
BAR, NAME = 12, 28


def format_rate(speed: float) -> str:
    """Write counts per second in a unit that people read.

    >>> format_rate(3.14159), format_rate(0.05), format_rate(250)
    ('3.1/s', '3/min', '250/s')
    """
    for per, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if speed * seconds >= 1:
            return f"{speed * seconds:.2g}/{per}" if speed < 100 else f"{speed:.0f}/{per}"
    return f"{speed * 86400:.2g}/day"


class ProgressLine:
    """One line of a bar: a loop that counts, or a search that reports its share."""

    def __init__(self, display: Progress, name: str, unit: str = ""):
        self.display, self.unit, self.task = display, unit, TaskID(-1)
        self.name, self.done, self.total, self.begun, self.first = name, 0, 0, monotonic(), 0

    def count(self, done: int, total: int, after: float = 0.0) -> None:
        """Show how far a loop is, if it lasts longer than some seconds."""
        now = monotonic()
        if not self.total:  # what an earlier run has done says nothing about the speed of this one
            self.begun, self.first = now, done
        self.done, self.total, elapsed = done, total, now - self.begun
        if elapsed >= after:
            state = f"{done} of {total} {self.unit}".rstrip()
            if done > self.first and elapsed > 0:
                state += f", {format_rate((done - self.first) / elapsed)}"
            self.show(done, total, state)

    def show(self, completed: float, total: float | None, state: str) -> None:
        """Show a share and a state."""
        if self.task < 0:
            self.task = self.display.add_task(self.name, total=total, state=state)
        self.display.update(self.task, completed=completed, total=total, state=state)

    def clear(self) -> None:
        """Take the line away."""
        if self.task >= 0:
            self.display.remove_task(self.task)
        self.task, self.total = TaskID(-1), 0


class ProgressBar:
    """A bar for work that counts, and callback of scikit-learn; ``with`` it, Ctrl-C sets ``stop``.

    Work that counts calls it with what is done and the total. A fit with a known number of tasks
    is counted too; any other reports its share by ``progress()``. Without a terminal nothing is
    shown.

    Parameters
    ----------
    name : str
        What is going on.
    unit : str
        What is counted, such as "fits".
    quiet : bool, default=False
        Whether nothing is shown on a terminal either.
    """

    def __init__(self, name: str = "", unit: str = "", *, quiet: bool = False):
        console = stderr()
        self.display = Progress(
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
        self.main = ProgressLine(self.display, mask_control(name), unit)
        self.step = ProgressLine(self.display, "  this step")
        self.stop, self.looked = False, 0.0
        self.before: Any = None

    def __enter__(self) -> Self:
        self.display.start()
        if current_thread() is main_thread():
            self.before = signal(SIGINT, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.stop = True
        raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        """End the work; what Ctrl-C raised, also as an error of compiled code, ends here."""
        self.display.stop()
        if self.before is not None:
            signal(SIGINT, self.before)
        self.stop = self.stop or kind is KeyboardInterrupt
        return self.stop

    def check_stop(self) -> None:
        """Stop the work: compiled code may have taken Ctrl-C for an error of its own."""
        if self.stop:
            raise KeyboardInterrupt

    def __call__(self, done: int, total: int) -> None:
        """Show how far counted work is."""
        self.main.count(done, total)
        self.check_stop()

    def count_step(self, done: int, total: int) -> None:
        """Show how far a loop inside a step of a search is, if it is long."""
        self.check_stop()
        if done <= self.step.done or total != self.step.total:  # another loop
            self.step.clear()
        self.step.count(done, total, after=LONG)

    # -- callback of scikit-learn -----------------------------------------------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Show a fit that begins."""
        if context.max_subtasks:
            self(0, context.max_subtasks)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: a task is shown when it is done."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Show the newest task, and return whether the fit is to stop."""
        self.step.clear()
        if context.parent is not None and context.parent.max_subtasks:
            self(self.main.done + 1, context.parent.max_subtasks)
        elif context.parent is not None and monotonic() - self.looked > PAUSE:
            self.looked = monotonic()
            name, share, state = estimator.progress()
            self.main.name = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
            self.main.show(share or 0.0, None if share is None else 1.0, state)
        return self.stop

    def teardown(self, estimator: Any, context: Any) -> None:
        """Take the lines away."""
        self.step.clear()

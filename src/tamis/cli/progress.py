"""A progress bar on stderr, and handling of Ctrl-C."""

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

#: Smallest number of seconds between two updates. A search may make 10^5 steps.
PAUSE = 0.05
#: Seconds after which a loop inside a step gets its own line. Quicker loops would only flicker.
LONG = 2.0
#: Widths of the bar and of the name before it. With the state, they fit into 80 columns.
BAR, NAME = 12, 28


def format_rate(speed: float) -> str:
    """Format a rate per second, minute, hour or day.

    >>> format_rate(3.14159), format_rate(0.05), format_rate(250)
    ('3.1/s', '3/min', '250/s')
    """
    for per, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if speed * seconds >= 1:
            return f"{speed * seconds:.2g}/{per}" if speed < 100 else f"{speed:.0f}/{per}"
    return f"{speed * 86400:.2g}/day"


class ProgressLine:
    """A line of a progress bar, for a counted loop or a search that reports its finished share."""

    def __init__(self, display: Progress, name: str, unit: str = ""):
        self.display, self.unit, self.task = display, unit, TaskID(-1)
        self.name, self.done, self.total, self.begun, self.first = name, 0, 0, monotonic(), 0

    def count(self, done: int, total: int, after: float = 0.0) -> None:
        """Show the progress of a loop if it has lasted at least ``after`` seconds."""
        now = monotonic()
        if not self.total:  # tasks finished by an earlier run do not affect the speed
            self.begun, self.first = now, done
        self.done, self.total, elapsed = done, total, now - self.begun
        if elapsed >= after:
            state = f"{done} of {total} {self.unit}".rstrip()
            if done > self.first and elapsed > 0:
                state += f", {format_rate((done - self.first) / elapsed)}"
            self.show(done, total, state)

    def show(self, completed: float, total: float | None, state: str) -> None:
        """Show the completed share and a text about the state."""
        if self.task < 0:
            self.task = self.display.add_task(self.name, total=total, state=state)
        self.display.update(self.task, completed=completed, total=total, state=state)

    def clear(self) -> None:
        """Remove the line from the display."""
        if self.task >= 0:
            self.display.remove_task(self.task)
        self.task, self.total = TaskID(-1), 0


class ProgressBar:
    """Progress bar for counted work, which is also a scikit-learn callback.

    For counted work, call the bar with the number of finished items and the total. As a callback,
    it counts the tasks of a fit if their number is known. Otherwise, it shows the finished share
    that ``estimator.progress()`` returns. In a ``with`` block, Ctrl-C sets ``stop``. Nothing is
    shown if stderr is not a terminal.

    Parameters
    ----------
    name : str
        Name of the work, shown before the bar.
    unit : str
        What is counted, such as "fits".
    quiet : bool, default=False
        Whether to show nothing even on a terminal.
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
        """Remove the bar, and suppress errors after Ctrl-C, including those of compiled code."""
        self.display.stop()
        if self.before is not None:
            signal(SIGINT, self.before)
        self.stop = self.stop or kind is KeyboardInterrupt
        return self.stop

    def check_stop(self) -> None:
        """Raise KeyboardInterrupt after Ctrl-C, in case compiled code suppressed it."""
        if self.stop:
            raise KeyboardInterrupt

    def __call__(self, done: int, total: int) -> None:
        """Show the progress of counted work."""
        self.main.count(done, total)
        self.check_stop()

    def count_step(self, done: int, total: int) -> None:
        """Show the progress of a loop inside a step of a search, if the loop is long."""
        self.check_stop()
        if done <= self.step.done or total != self.step.total:  # a new loop has started
            self.step.clear()
        self.step.count(done, total, after=LONG)

    # -- callback of scikit-learn -----------------------------------------------------------------

    def setup(self, estimator: Any, context: Any) -> None:
        """Show that a fit has started."""
        if context.max_subtasks:
            self(0, context.max_subtasks)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing, because a task is counted when it is finished."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Show the finished task, and return whether the fit should stop."""
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
        """Remove the line that shows the step."""
        self.step.clear()

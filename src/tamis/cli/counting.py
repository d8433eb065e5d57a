"""A bar on stderr for work that is counted: how much is done, how fast, how much time is left."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from tamis.cli.printing import harmless, stderr


class RateColumn(TextColumn):
    """``3.1/s``, or for slow work ``2/min``."""

    def render(self, task: Task) -> Text:
        """What is done in a unit of time."""
        return Text(rate(task.speed))


class CountColumn(TextColumn):
    """``12 of 40 fits``, nothing before it is known how many there are."""

    def __init__(self, unit: str):
        super().__init__("")
        self.unit = unit

    def render(self, task: Task) -> Text:
        """What is done, and of how many."""
        if task.total is None:
            return Text("")
        return Text(f"{task.completed:.0f} of {task.total:.0f} {self.unit}".rstrip())


def rate(speed: float | None) -> str:
    """Counts per second in a unit that people read.

    >>> rate(None), rate(3.14159), rate(0.05), rate(250)
    ('', '3.1/s', '3/min', '250/s')
    """
    if not speed:
        return ""
    for per, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if speed * seconds >= 1:
            return f"{speed * seconds:.2g}/{per}" if speed < 100 else f"{speed:.0f}/{per}"
    return f"{speed * 86400:.2g}/day"


class Counter:
    """A bar that is called with what is done and the total; it stops the work when told to."""

    def __init__(self, what: str, unit: str = "", *, quiet: bool = False):
        console = stderr()
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            CountColumn(unit),
            RateColumn(""),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.task = self.bar.add_task(harmless(what), total=None)
        self.stop = False
        self.done, self.total = 0, 0

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        if not self.total:  # what an earlier run has done says nothing about the speed of this one
            self.bar.reset(self.task, total=total, completed=done)
        self.done, self.total = done, total
        self.bar.update(self.task, completed=done, total=total)
        if self.stop:  # compiled code may have taken Ctrl-C for an error of its own
            raise KeyboardInterrupt


@contextmanager
def counted_bar(what: str, unit: str = "", *, quiet: bool = False) -> Iterator[Counter]:
    """A bar for work that is counted; without a terminal nothing is shown.

    Parameters
    ----------
    what : str
        What is going on.
    unit : str
        What is counted, such as "fits".
    quiet : bool, default=False
        Whether nothing is shown on a terminal either.
    """
    counter = Counter(what, unit, quiet=quiet)
    with counter.bar:
        yield counter

"""Text for people: tables on stdout, sentences on stderr.

Names come from files of anybody, so everything that is printed goes through :func:`text` or
:func:`notify`: a character that a terminal would obey instead of showing becomes U+FFFD.
"""

import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING
from warnings import WarningMessage

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis._format import mask_control
from tamis.exceptions import TableAlert

if TYPE_CHECKING:
    from tamis.table import Alert

#: Width if that of the terminal is not known, as in a pipe.
PIPED = 100
#: Warnings that do not concern a user.
SILENT = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    RuntimeWarning,
    TableAlert,  # printed before the selection, with all other alerts of the table
)


def text(words: object, style: str = "") -> Text:
    """Return words in which nothing is markup."""
    return Text("" if words is None else mask_control(words), style=style)


def stdout() -> Console:
    """Return a console on stdout."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPED)


def stderr() -> Console:
    """Return a console on stderr."""
    return Console(stderr=True, highlight=False)


def is_watched(*, quiet: bool) -> bool:
    """Whether somebody waits who would read notes before the work.

    Otherwise they come after it, so that an error is the only line.
    """
    return not quiet and stderr().is_terminal


def notify(sentence: str, command: str = "") -> None:
    """Print one line on stderr; on a terminal it is broken between words.

    There a command stands whole on a line of its own, to be copied.
    """
    line, command = f"tamis: {mask_control(' '.join(sentence.split()))}", mask_control(command)
    if sys.stderr.isatty():
        # a name that is longer than a line is not cut: it may be copied
        line = "\n".join(wrap_line(line, stderr().width, indent=7))
    space = "\n" if sys.stderr.isatty() else " "
    sys.stderr.write(f"{line}{space}{command}\n" if command else f"{line}\n")


def print_warnings(caught: Iterable[WarningMessage]) -> None:
    """Print each warning once, in the order of its first appearance."""
    told = [str(one.message) for one in caught if not issubclass(one.category, SILENT)]
    for sentence in dict.fromkeys(told):
        notify(f"warning: {sentence}")


def print_alerts(alerts: "Sequence[Alert]") -> None:
    """Print what to know of a table, one line each; what was left out comes first."""
    for alert in sorted(alerts, key=lambda alert: not alert.grave):
        notify(f"note: {alert}")


def print_lines(words: str) -> None:
    """Print text that has its own lines and columns."""
    for line in words.split("\n"):
        sys.stdout.write(f"{mask_control(line)}\n")


def wrap_line(line: str, width: int, indent: int) -> list[str]:
    """Return a line as lines of a width; all but the first are indented."""
    return wrap(
        mask_control(line),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def print_facts(facts: Iterable[tuple[str, str]], indent: int, style: str = "bold") -> None:
    """Print facts, each behind its name; lines to copy are not broken."""
    console = stdout()
    for name, fact in facts:
        width = max(console.width - indent, 30)
        copied = fact.startswith("tamis")
        first, *rest = [fact] if copied else wrap(fact, width, break_on_hyphens=False)
        console.print(text(f"{name:<{indent}}", style), text(first), sep="", soft_wrap=True)
        for line in rest:
            console.print(text(" " * indent + line), soft_wrap=True)


def make_table(
    headings: Iterable[str] = (), *, title: str = "", right: Iterable[str] = (), **options: object
) -> Table:
    """Return a table with a line under its headings and no others."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=text(title) if title else None,
        title_justify="left",
        title_style="bold",
    )
    for name in headings:
        side = "right" if name in right else "left"
        table.add_column(text(name), justify=side, **{"overflow": "fold", **options})  # type: ignore
    return table

"""Printed output: tables on stdout, messages on stderr.

Names in files may be hostile, so all printed text passes through :func:`text` or :func:`notify`,
which replace control characters by U+FFFD.
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

#: Width in characters if the output is not a terminal.
PIPED = 100
#: Categories of warnings that are not shown to the user.
SILENT = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    RuntimeWarning,
    TableAlert,  # printed before the selection, with all other alerts
)


def text(words: object, style: str = "") -> Text:
    """Return text that is printed literally, without interpreting markup."""
    return Text("" if words is None else mask_control(words), style=style)


def stdout() -> Console:
    """Return a console on stdout."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPED)


def stderr() -> Console:
    """Return a console on stderr."""
    return Console(stderr=True, highlight=False)


def is_watched(*, quiet: bool) -> bool:
    """Return whether a user is watching: stderr is a terminal, and ``quiet`` is False.

    If so, messages are printed before the work. Otherwise they are printed after the work, so that
    an error message is the only output.
    """
    return not quiet and stderr().is_terminal


def notify(sentence: str, command: str = "") -> None:
    """Print a sentence on stderr, and a command after it.

    On a terminal, the sentence is wrapped, and the command has its own line for copying.
    """
    line, command = f"tamis: {mask_control(' '.join(sentence.split()))}", mask_control(command)
    if sys.stderr.isatty():
        line = "\n".join(wrap_line(line, stderr().width, indent=7))
    space = "\n" if sys.stderr.isatty() else " "
    sys.stderr.write(f"{line}{space}{command}\n" if command else f"{line}\n")


def print_warnings(caught: Iterable[WarningMessage]) -> None:
    """Print each different warning once, in the order of first appearance."""
    sentences = [str(one.message) for one in caught if not issubclass(one.category, SILENT)]
    for sentence in dict.fromkeys(sentences):
        notify(f"warning: {sentence}")


def print_alerts(alerts: "Sequence[Alert]") -> None:
    """Print the alerts of a table, one per line, grave alerts first."""
    for alert in sorted(alerts, key=lambda alert: not alert.grave):
        notify(f"note: {alert}")


def print_lines(lines: str) -> None:
    """Print text with line breaks on stdout."""
    for line in lines.split("\n"):
        sys.stdout.write(f"{mask_control(line)}\n")


def wrap_line(line: str, width: int, indent: int) -> list[str]:
    """Wrap a line without breaking words, and indent all lines except the first."""
    return wrap(
        mask_control(line),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def print_facts(facts: Iterable[tuple[str, str]], indent: int, style: str = "bold") -> None:
    """Print facts, each after its name. Commands are not wrapped, so that they can be copied."""
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
    """Return a table with a line under its headings."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=text(title) if title else None,
        title_justify="left",
        title_style="bold",
    )
    options = {"overflow": "fold", **options}
    for name in headings:
        side = "right" if name in right else "left"
        table.add_column(text(name), justify=side, **options)  # type: ignore[arg-type]
    return table

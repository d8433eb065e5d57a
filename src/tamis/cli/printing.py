"""What a person reads: tables on stdout, sentences on stderr.

Names come from files of anybody, so everything that is printed goes through :func:`text` or
:func:`say`: what a terminal would obey instead of showing stands there as U+FFFD.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from textwrap import fill, wrap
from typing import TYPE_CHECKING
from warnings import WarningMessage

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.exceptions import TableAlert

if TYPE_CHECKING:
    from tamis.cli.ranking import RankedColumns
    from tamis.contract import Selection
    from tamis.table import Alert

#: Width where nobody knows the width of the terminal, as in a pipe.
PIPED = 100
#: Strongest pairs that are printed; the page has more of them.
PAIRS = 5
#: Longest bar beside a score.
BAR = 12
#: Warnings that say nothing to a user.
SILENT = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    RuntimeWarning,
    TableAlert,  # said before the selection, with all that there is to know of the table
)
#: Control characters, with which escape sequences begin (also those of Latin-1); what breaks lines;
#: what turns the direction of writing; halves of characters; invisible tags.
OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def harmless(words: object) -> str:
    """The words with U+FFFD for every character that a terminal would obey.

    >>> harmless("gene\x1b[2J")
    'gene\ufffd[2J'
    """
    return OBEYED.sub("\ufffd", str(words))


def text(words: object, style: str = "") -> Text:
    """The words as they are, but harmless; nothing in them is markup."""
    return Text(harmless(words), style=style)


def stdout() -> Console:
    """Console on stdout."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPED)


def stderr() -> Console:
    """Console on stderr."""
    return Console(stderr=True, highlight=False)


def is_watched(*, quiet: bool) -> bool:
    """Whether somebody waits who would read notes before the work.

    Elsewhere they come after it, so that a refusal is the only line.
    """
    return not quiet and stderr().is_terminal


def say(sentence: str, command: str = "") -> None:
    """One line on stderr; on a terminal as many as it takes, broken between words.

    There a command stands whole on a line of its own, to be copied.
    """
    line = f"tamis: {harmless(' '.join(sentence.split()))}"
    if command and not sys.stderr.isatty():
        line = f"{line} {harmless(command)}"
    if sys.stderr.isatty():
        # a name or a command that is longer than a line is not cut: it may be copied
        line = fill(
            line,
            stderr().width,
            subsequent_indent="       ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        line += f"\n{harmless(command)}" if command else ""
    sys.stderr.write(f"{line}\n")


def say_warnings(caught: Iterable[WarningMessage]) -> None:
    """Each warning once, in the order of its first appearance."""
    spoken = [str(one.message) for one in caught if not issubclass(one.category, SILENT)]
    for sentence in dict.fromkeys(spoken):
        say(f"warning: {sentence}")


def say_alerts(alerts: "Sequence[Alert]") -> None:
    """What to know of a table, one line each; what was left out comes first."""
    for alert in sorted(alerts, key=lambda alert: not alert.grave):
        say(f"note: {alert}")


def print_lines(words: str) -> None:
    """Text that has its own lines and columns."""
    for line in words.split("\n"):
        sys.stdout.write(f"{harmless(line)}\n")


def bare_table(title: str | None = None) -> Table:
    """A table with a line under its headings and no others."""
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=None if title is None else text(title),
        title_justify="left",
        title_style="bold",
    )


def print_ranking(ranking: "RankedColumns", heading: Sequence[str], rows: int) -> None:
    """The first columns of a ranking, those that are kept marked."""
    tried = ranking.tried.nonzero()[0]
    shown = tried[:rows].tolist()
    names = [ranking.names[i] for i in shown]
    scores = [float(ranking.scores[i]) for i in shown]
    table = bare_table()
    table.add_column("rank", justify="right")
    table.add_column(ranking.word, overflow="fold")
    scored = any(score == score for score in scores)  # an order may be all there is
    if scored:
        table.add_column("score", justify="right")
        table.add_column("")
    table.add_column("kept")
    console = stdout()
    bars = _bars(scores, fine=console.encoding.startswith("utf"))
    for i, name, score, bar in zip(shown, names, scores, bars, strict=True):
        kept = bool(ranking.kept[i])
        said = [text("" if score != score else f"{score:.4g}"), text(bar, style="blue")] * scored
        table.add_row(
            str(i + 1), text(name), *said, "yes" if kept else "", style="" if kept else "dim"
        )
    if not console.is_terminal:  # nothing to fit into: no name is ever cut
        console.width = max(PIPED, 50 + max(map(len, names)))
    for line in heading:
        for part in _broken(line, console.width):
            console.print(text(part, style="bold" if line is heading[0] else ""))
    summary = _summary(
        int(ranking.kept.sum()), len(ranking), len(tried), len(shown), f"{ranking.word}s"
    )
    console.print("", table, "", text(summary), sep="\n")


def print_pairs(selection: "Selection", names: Sequence[str]) -> None:
    """The strongest pairs, where the criterion looked at pairs."""
    pairs = [pair for pair in selection.interactions_ if pair.information > 0][:PAIRS]
    if not pairs:
        return
    named = selection.units_.unit_names(names)
    console = stdout()
    console.print()
    console.print(text("strongest pairs, and what they tell together beyond each alone (nats)"))
    for first, second, told, p in pairs:
        chance = "" if p is None else f" (p {p:.2g})"
        console.print(text(f"  {told:.3f}  {named[first]} and {named[second]}{chance}"))


def _broken(line: str, width: int) -> list[str]:
    """A line as lines of a width; what goes on stands further in than what begins."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return wrap(
        harmless(line), width, drop_whitespace=True, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip


def _summary(n_kept: int, n_columns: int, n_tried: int, n_shown: int, what: str) -> str:
    """How many columns are kept, and which are not in the table."""
    words = [f"{n_kept} of {n_columns} {what} kept"]
    if n_tried > n_shown:
        words.append(f"the first {n_shown} are shown (--rows, --output)")
    if n_columns > n_tried:
        others = "the other " if n_tried == n_kept else ""
        words.append(f"{others}{n_columns - n_tried} never entered")
    return "; ".join(words) + "."


def _bars(scores: Sequence[float], fine: bool) -> list[str]:
    """The scores as bars, nothing where they cannot be compared with zero."""
    top = max((score for score in scores if abs(score) < float("inf")), default=0.0)
    if top <= 0:
        return [""] * len(scores)
    return ["" if score != score else _bar(score / top, fine) for score in scores]


def _bar(share: float, fine: bool) -> str:
    eighths = round(8 * BAR * min(max(share, 0.0), 1.0))
    whole, rest = divmod(eighths, 8)
    if not fine:  # a terminal that knows no blocks
        return "#" * whole
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]

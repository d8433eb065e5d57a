"""What a person reads: tables on stdout, sentences on stderr."""

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any
from warnings import WarningMessage

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tamis.cli.output import Place
from tamis.recipes import Recipe
from tamis.spec import write

#: Width where nobody knows the width of the terminal, as in a pipe.
PIPED = 100
#: Longest bar beside a score.
BAR = 12
#: Warnings that say nothing to a user.
SILENT = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    RuntimeWarning,
)


def stdout() -> Console:
    """Console on stdout."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPED)


def stderr() -> Console:
    """Console on stderr."""
    return Console(stderr=True, highlight=False)


def say(sentence: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"tamis: {' '.join(sentence.split())}\n")


def say_warnings(caught: Iterable[WarningMessage]) -> None:
    """Each warning once, in the order of its first appearance."""
    spoken = [str(one.message) for one in caught if not issubclass(one.category, SILENT)]
    for sentence in dict.fromkeys(spoken):
        say(f"warning: {sentence}")


def print_ranking(ranking: Sequence[Place], heading: Sequence[str], rows: int) -> None:
    """The first columns of a ranking, those that are kept marked."""
    tried = [place for place in ranking if place.kept or place.score is not None]
    shown = tried[:rows]
    table = bare_table()
    table.add_column("rank", justify="right")
    table.add_column("column", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("")
    table.add_column("kept")
    console = stdout()
    fine = console.encoding.startswith("utf")
    for place, bar in zip(shown, _bars(shown, fine), strict=True):
        table.add_row(
            str(place.rank),
            Text(place.column),
            _number(place.score),
            Text(bar, style="blue"),
            "yes" if place.kept else "",
            style="" if place.kept else "dim",
        )
    if not console.is_terminal:  # nothing to fit into: no name is ever cut
        console.width = max(PIPED, 50 + max(len(place.column) for place in shown))
    for line in heading:
        console.print(Text(line, style="bold" if line is heading[0] else ""))
    console.print("", table, "", Text(_summary(ranking, tried, shown)), sep="\n")


def _summary(ranking: Sequence[Place], tried: Sequence[Place], shown: Sequence[Place]) -> str:
    """How many columns are kept, and which are not in the table."""
    words = [f"{sum(place.kept for place in ranking)} of {len(ranking)} columns kept"]
    if len(tried) > len(shown):
        words.append(f"the first {len(shown)} are shown (--rows, --output)")
    if len(ranking) > len(tried):
        words.append(f"the other {len(ranking) - len(tried)} never entered")
    return "; ".join(words) + "."


def _bars(ranking: Sequence[Place], fine: bool) -> list[str]:
    """The scores as bars, nothing where they cannot be compared with zero."""
    finite = [p.score for p in ranking if p.score is not None and abs(p.score) != float("inf")]
    top = max(finite, default=0.0)
    if top <= 0:
        return [""] * len(ranking)
    return [_bar((place.score or 0.0) / top, fine) for place in ranking]


def _bar(share: float, fine: bool) -> str:
    eighths = round(8 * BAR * min(max(share, 0.0), 1.0))
    whole, rest = divmod(eighths, 8)
    if not fine:  # a terminal that knows no blocks
        return "#" * whole
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def _number(score: float | None) -> str:
    return "" if score is None else f"{score:.4g}"


def print_methods(recipes: Sequence[Recipe], catalogue: dict[str, dict[str, type]]) -> None:
    """Recipes with their references, then the words that expressions are made of."""
    tables = [_recipe_table(recipes)] if recipes else []
    tables += [_class_table(group, classes) for group, classes in catalogue.items() if classes]
    stdout().print(*tables, sep="\n\n")


def bare_table(title: str | None = None) -> Table:
    """A table with a line under its headings and no others."""
    return Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        title=title,
        title_justify="left",
        title_style="bold",
    )


def _recipe_table(recipes: Sequence[Recipe]) -> Table:
    table = bare_table("recipes")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it does", ratio=3)
    table.add_column("target")
    table.add_column("reference", ratio=3, style="dim")
    for recipe in recipes:
        target = "any" if len(recipe.targets) > 1 else min(recipe.targets)
        table.add_row(recipe.name, Text(recipe.summary), target, Text(recipe.reference))
    return table


def _class_table(group: str, classes: dict[str, type]) -> Table:
    table = bare_table(group)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it does")
    for name, kind in classes.items():
        table.add_row(name, Text(first_sentence(kind)))
    return table


def print_recipe(recipe: Recipe) -> None:
    """One recipe in full."""
    options = ", ".join(f"{name}={_shown(value)}" for name, value in recipe.parameters.items())
    facts = {
        "what": recipe.summary,
        "reference": recipe.reference,
        "target": " or ".join(sorted(recipe.targets)),
        "options": options,
        "expression": recipe.expression,
        "command": f"tamis select data.csv --target y {recipe.name}",
        "Python": f'tamis.recipe("{recipe.name}")',
    }
    _print_facts(recipe.name, facts)


def print_class(kind: type) -> None:
    """One word of the expressions in full."""
    parameters = [
        name if parameter.default is parameter.empty else f"{name}={_shown(parameter.default)}"
        for name, parameter in signature(kind).parameters.items()
    ]
    call = f"{kind.__name__}({', '.join(parameters)})"
    _print_facts(kind.__name__, {"what": first_sentence(kind), "call": call})


def _print_facts(title: str, facts: dict[str, str]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in facts.items():
        table.add_row(name, Text(fact))
    stdout().print(Text(title, style="bold"), table)


def first_sentence(kind: Any) -> str:
    """The first line of a class's description."""
    text = textwrap.dedent(kind.__doc__ or "").strip()
    sentence = text.split("\n\n")[0].replace("\n", " ").replace("``", "")
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", sentence)


def _shown(value: Any) -> str:
    return write(value, strict=False)

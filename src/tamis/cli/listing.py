"""What there is: ``tamis methods``.

The whole list is read from an index beside this module, because making it needs every criterion and
recipe, and those scikit-learn: two seconds for a page of text. ``python -m tamis.cli.listing``
writes the index anew, and a test says when it is due.
"""

import json
import re
import textwrap
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from tamis.cli.printing import bare_table, stdout, text

INDEX = Path(__file__).with_name("methods.json")


class RecipeLine(NamedTuple):
    """What the list says of a recipe."""

    name: str
    summary: str
    target: str
    reference: str


class Listing(NamedTuple):
    """Recipes with their references, then the words that expressions are made of, in groups."""

    recipes: list[RecipeLine]
    groups: dict[str, dict[str, str]]


def show_methods(asked: str) -> None:
    """The whole list, what speaks of some words, or one method in full."""
    if not asked:
        _print_listing(indexed())
        return
    from tamis import recipes, spec
    from tamis.exceptions import InvalidSpec

    classes = {name: kind for group in spec.catalogue().values() for name, kind in group.items()}
    if asked in recipes.names():
        (one,) = (recipe for recipe in recipes.find(asked) if recipe.name == asked)
        _print_recipe(one)
        return
    if asked in classes:
        _print_class(classes[asked])
        return
    found = gathered(asked)
    if not found.recipes and not found.groups:
        near = spec.did_you_mean(asked, [*recipes.names(), *classes])
        raise InvalidSpec(f"No method speaks of {asked!r}.{near} Write tamis methods to see all.")
    _print_listing(found)


def indexed() -> Listing:
    """The whole list, as it was written."""
    plain = json.loads(INDEX.read_text(encoding="utf-8"))
    return Listing([RecipeLine(*line) for line in plain["recipes"]], plain["groups"])


def gathered(words: str = "") -> Listing:
    """The list of what speaks of these words, from the methods themselves."""
    from tamis import recipes, spec

    groups = {
        group: {name: first_sentence(kind) for name, kind in kinds.items() if _speaks(kind, words)}
        for group, kinds in spec.catalogue().items()
    }
    lines = [
        RecipeLine(
            one.name,
            one.summary,
            "any" if len(one.targets) > 1 else min(one.targets),
            one.reference,
        )
        for one in recipes.find(words)
    ]
    return Listing(lines, {group: kinds for group, kinds in groups.items() if kinds})


def _speaks(kind: type, words: str) -> bool:
    """Whether the name or description of a class has all the words."""
    text = f"{kind.__name__} {kind.__doc__}".lower()
    return all(word in text for word in words.lower().split())


def first_sentence(kind: Any) -> str:
    """The first line of a class's description."""
    text = textwrap.dedent(kind.__doc__ or "").strip()
    sentence = text.split("\n\n")[0].replace("\n", " ").replace("``", "")
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", sentence)


def _print_listing(found: Listing) -> None:
    tables = [_recipe_table(found.recipes)] if found.recipes else []
    tables += [_class_table(group, kinds) for group, kinds in found.groups.items()]
    stdout().print(*tables, sep="\n\n")


def _recipe_table(recipes: Sequence[RecipeLine]) -> Table:
    table = bare_table("recipes")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it does", ratio=3)
    table.add_column("target")
    table.add_column("reference", ratio=3, style="dim")
    for line in recipes:
        table.add_row(line.name, text(line.summary), line.target, text(line.reference))
    return table


def _class_table(group: str, kinds: dict[str, str]) -> Table:
    table = bare_table(group)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it does")
    for name, sentence in kinds.items():
        table.add_row(name, text(sentence))
    return table


def _print_recipe(recipe: Any) -> None:
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


def _print_class(kind: type) -> None:
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
        table.add_row(name, text(fact))
    stdout().print(text(title, style="bold"), table)


def _shown(value: Any) -> str:
    from tamis.spec import write

    return write(value, strict=False)


if __name__ == "__main__":
    INDEX.write_text(json.dumps(gathered()._asdict(), indent=1) + "\n", encoding="utf-8")

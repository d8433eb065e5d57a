"""``tamis methods``: the list of methods, or the description of a single method."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from tamis.cli.terminal import make_table, print_facts, stdout, text
from tamis.exceptions import InvalidSpec

#: Descriptions of all methods, written by :mod:`tamis.cli.catalogue`.
INDEX = Path(__file__).with_name("methods.json")
#: Width of a name in the list, in characters. The few longer names wrap.
NAMES = 24
#: Short names of targets, for the list.
SHORT = {"classification": "classes", "regression": "numbers", "any": "any"}


class Listing(NamedTuple):
    """Recipes, each as a dictionary, and groups of classes that expressions may use.

    ``questions`` and ``titles`` are the headings of recipes and groups. ``blocks`` lists the
    classes that support row blocks, at least for some parameters.
    """

    recipes: list[dict[str, Any]]
    groups: dict[str, dict[str, str]]
    questions: dict[str, str]
    titles: dict[str, str]
    blocks: list[str]

    def where(self, has_recipe: Any, has_class: Any) -> "Listing":
        """Return the recipes and classes that pass a test. Classes are tested by name."""
        groups = {
            group: {name: summary for name, summary in kinds.items() if has_class(name)}
            for group, kinds in self.groups.items()
        }
        found = [line for line in self.recipes if has_recipe(line)]
        kept = {group: kinds for group, kinds in groups.items() if kinds}
        return self._replace(recipes=found, groups=kept)


def read_index() -> Listing:
    """Return all methods in the index file."""
    return Listing(**json.loads(INDEX.read_text(encoding="utf-8")))


def complete_methods(incomplete: str) -> list[str]:
    """Return the names of recipes that complete a word in a shell.

    >>> complete_methods("svm-r")
    ['svm-rfe']
    """
    names = (line["name"] for line in read_index().recipes)
    return [name for name in names if name.startswith(incomplete)]


def show_methods(asked: str, *, as_json: bool = False, blocks: bool = False) -> None:
    """Print all methods, those that mention the given words, or the description of one method.

    With ``blocks``, only methods that support row blocks are listed.
    """
    known = read_index()
    names = [line["name"] for line in known.recipes]
    names += [name for kinds in known.groups.values() for name in kinds]
    # case is ignored if no name matches exactly
    exact = asked if asked in names else None
    name = exact or next((name for name in names if name.lower() == asked.lower()), None)
    one = [line for line in known.recipes if line["name"] == name]
    if blocks:
        found = _find(asked, known).where(lambda line: line["blocks"], known.blocks.__contains__)
    elif one and as_json:
        found = known._replace(recipes=one, groups={})
    elif one:
        _print_facts(one[0]["name"], _recipe_facts(one[0], known))
        return
    elif name is not None and not as_json:
        from tamis import spec
        from tamis.cli.catalogue import describe_class

        (kind,) = (kinds[name] for kinds in spec.catalogue().values() if name in kinds)
        _print_facts(name, describe_class(kind, known))
        return
    else:
        found = _find(asked, known)
    if not found.recipes and not found.groups:
        if blocks:
            raise InvalidSpec(
                f"No method that mentions {asked!r} learns from row blocks. Write tamis methods "
                "--blocks to see all that do."
            )
        from tamis.spec import did_you_mean

        near = did_you_mean(asked, names)
        raise InvalidSpec(f"No method mentions {asked!r}.{near} Write tamis methods to see all.")
    if as_json:
        plain = {"recipes": found.recipes, "words": found.groups}
        sys.stdout.write(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    else:
        _print_listing(found, with_references=bool(asked) and not blocks)


def _find(asked: str, known: Listing) -> Listing:
    """Return the methods that mention all of the words."""
    if not asked:
        return known
    from tamis.spec import catalogue

    docs = {name: kind.__doc__ for kinds in catalogue().values() for name, kind in kinds.items()}

    def mentions(*texts: Any) -> bool:
        whole = " ".join(map(str, texts)).lower()
        return all(word in whole for word in asked.lower().split())

    return known.where(
        lambda line: mentions(*line.values()), lambda name: mentions(name, docs[name])
    )


def _print_listing(found: Listing, *, with_references: bool) -> None:
    console = stdout()
    for key, question in found.questions.items():
        rows = []
        for line in (line for line in found.recipes if line["question"] == key):
            reference = f" {line['reference']}." if with_references else ""
            rows.append((line["name"], f"{line['summary']}{reference}", SHORT[line["target"]]))
        if rows:
            console.print(_table(question, rows))
            console.print()
    for group, kinds in found.groups.items():
        console.print(_table(found.titles[group], [(*both, "") for both in kinds.items()]))
        console.print()
    console.print(text("Write tamis methods NAME for the description of a method.", style="dim"))


def _table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    table = make_table(title=title)
    table.add_column("name", min_width=NAMES, max_width=NAMES, style="bold", overflow="fold")
    table.add_column("what it does", ratio=1)
    if rows[0][2]:
        table.add_column("target", no_wrap=True, style="dim")
    for row in rows:
        table.add_row(*map(text, row[: len(table.columns)]))
    table.show_header = False
    table.expand = True
    return table


def _recipe_facts(one: dict[str, Any], known: Listing) -> dict[str, str]:
    name, criterion = one["name"], one["criterion"]
    other = "jmi" if name == "mrmr" else "mrmr"
    asked = (" --features 10", ", n_features_to_select=10")
    if not re.search(r"n_features_to_select=[\d.]", one["options"]):
        asked = ("", "")  # a given number would replace the recipe's own rule
    sentences = {name: text for kinds in known.groups.values() for name, text in kinds.items()}
    return {
        "question": known.questions[one["question"]],
        "what": " ".join(filter(None, [one["summary"], one["about"]])),
        "criterion": f"{criterion}: {sentences[criterion]}" if criterion in sentences else "",
        "target": one["target"].replace("any", "classification or regression"),
        "reads": one["reads"],
        "reference": one["reference"],
        "options": one["options"],
        "expression": one["expression"],
        "command": f"tamis select data.csv --target y {name}{asked[0]}",
        "compare": f"tamis compare data.csv --target y {name} {other}",
        "Python": f'tamis.select(X, y, "{name}"{asked[1]})',
    }


def _print_facts(title: str, facts: dict[str, str]) -> None:
    stdout().print(text(title, style="bold"))
    shown = [(name, fact) for name, fact in facts.items() if fact]
    print_facts(shown, max(map(len, facts)) + 2, style="dim")

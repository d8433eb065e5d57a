"""What there is: ``tamis methods``.

The list is read from an index beside this module, because making it needs every criterion and
recipe, and those scikit-learn: two seconds for a page of text. ``python -m tamis.cli.listing``
writes the index anew, and a test says when it is due.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from rich.table import Table

from tamis.cli.printing import bare_table, harmless, stdout, text

INDEX = Path(__file__).with_name("methods.json")
#: Columns that names take in the list; the few longer ones break.
NAMES = 24
#: What the list says of targets.
SHORT = {"classification": "classes", "regression": "numbers", "any": "any"}


class Listing(NamedTuple):
    """Recipes, each as a dictionary of :class:`Described`, and the words of expressions in groups.

    ``questions`` and ``titles`` are what stands above them; ``blocks`` are the words that learn
    from blocks of rows, with some parameters at least.
    """

    recipes: list[dict[str, Any]]
    groups: dict[str, dict[str, str]]
    questions: dict[str, str]
    titles: dict[str, str]
    blocks: list[str]

    def in_blocks(self) -> "Listing":
        """What selects from blocks of rows."""
        groups = {
            group: {name: kinds[name] for name in kinds if name in self.blocks}
            for group, kinds in self.groups.items()
        }
        return self._replace(
            recipes=[line for line in self.recipes if line["blocks"]],
            groups={group: kinds for group, kinds in groups.items() if kinds},
        )


def show_methods(asked: str, *, as_json: bool = False, blocks: bool = False) -> None:
    """The whole list, what speaks of some words, or one method in full.

    With ``blocks`` it is those alone that select from blocks of rows.
    """
    if blocks:
        found = (_found(asked) if asked else indexed()).in_blocks()
        _check_some(asked, found)
        _print_json(found) if as_json else _print_listing(found)
        return
    known = indexed()
    name = _meant(asked, known)
    one = [line for line in known.recipes if line["name"] == name]
    if as_json:
        found = known if not asked else known._replace(recipes=one, groups={})
        _print_json(found if one or not asked else _found(asked))
    elif not asked:
        _print_listing(known)
    elif one:
        _print_recipe(one[0], known)
    elif name is not None:
        _print_class(name, known)
    else:
        _print_listing(_found(asked), with_references=True)


def _meant(asked: str, known: Listing) -> str | None:
    """The recipe or word of this name, in any case of letters where none has it exactly."""
    names = [line["name"] for line in known.recipes]
    names += [name for kinds in known.groups.values() for name in kinds]
    if asked in names:
        return asked
    return next((name for name in names if name.lower() == asked.lower()), None)


def indexed() -> Listing:
    """The whole list, as it was written."""
    return Listing(**json.loads(INDEX.read_text(encoding="utf-8")))


def gathered() -> Listing:
    """The whole list, from the methods themselves."""
    from tamis import recipes, spec
    from tamis.cli.describing import (
        GROUPS,
        QUESTIONS,
        blocks_of_class,
        described,
        first_sentence,
    )

    catalogue = spec.catalogue()
    titles = {group: GROUPS.get(group, group) for group in sorted(catalogue, key=_place(GROUPS))}
    groups = {
        group: {name: first_sentence(kind) for name, kind in catalogue[group].items()}
        for group in titles
    }
    lines = [described(one)._asdict() for one in recipes.find("")]
    kinds = {name: kind for group in catalogue.values() for name, kind in group.items()}
    blocks = sorted(name for name, kind in kinds.items() if blocks_of_class(kind))
    return Listing(lines, groups, dict(QUESTIONS), titles, blocks)


def _place(known: Iterable[str]) -> Callable[[str], int]:
    """Where a group stands: in the order of those known, the others last."""
    order = list(known)
    return lambda group: order.index(group) if group in order else len(order)


def _found(words: str) -> Listing:
    """What speaks of all the words; an error with the nearest names where nothing does."""
    from tamis import recipes, spec
    from tamis.exceptions import InvalidSpec

    known, asked = indexed(), words.lower().split()
    lines = [line for line in known.recipes if _speaks(asked, line.values())]
    kinds = {name: kind for group in spec.catalogue().values() for name, kind in group.items()}
    groups = {
        group: {
            name: sentence
            for name, sentence in lines.items()
            if _speaks(asked, (name, kinds[name].__doc__))
        }
        for group, lines in known.groups.items()
    }
    if not lines and not any(groups.values()):
        near = spec.did_you_mean(words, [*recipes.names(), *kinds])
        raise InvalidSpec(f"No method speaks of {words!r}.{near} Write tamis methods to see all.")
    return known._replace(recipes=lines, groups={g: found for g, found in groups.items() if found})


def _check_some(asked: str, found: Listing) -> None:
    from tamis.exceptions import InvalidSpec

    if not found.recipes and not found.groups:
        raise InvalidSpec(
            f"No method that speaks of {asked!r} selects from blocks of rows. Write tamis methods "
            "--blocks to see all that do."
        )


def _speaks(asked: Sequence[str], texts: Any) -> bool:
    whole = " ".join(map(str, texts)).lower()
    return all(word in whole for word in asked)


def _print_json(found: Listing) -> None:
    plain = {"recipes": found.recipes, "words": found.groups}
    sys.stdout.write(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")


def _print_listing(found: Listing, *, with_references: bool = False) -> None:
    console, made = stdout(), []
    for key, question in found.questions.items():
        lines = [line for line in found.recipes if line["question"] == key]
        if lines:
            made.append(_table(question, [_row(one, with_references) for one in lines]))
    for group, kinds in found.groups.items():
        made.append(_table(found.titles[group], [(name, kinds[name]) for name in kinds]))
    for table in made:
        console.print(table)
        console.print()
    console.print(text("tamis methods NAME shows one of them in full.", style="dim"))


def _row(one: dict[str, Any], with_reference: bool) -> tuple[str, str, str]:
    reference = f" {one['reference']}." if with_reference else ""
    return one["name"], f"{one['summary']}{reference}", SHORT[one["target"]]


def _table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    table = bare_table(title)
    table.add_column("name", min_width=NAMES, max_width=NAMES, style="bold", overflow="fold")
    table.add_column("what it does", ratio=1)
    if len(rows[0]) > 2:
        table.add_column("target", no_wrap=True, style="dim")
    for row in rows:
        table.add_row(*map(text, row))
    table.show_header = False
    table.expand = True
    return table


def _print_recipe(one: dict[str, Any], known: Listing) -> None:
    """One recipe in full."""
    name, criterion = one["name"], one["criterion"]
    other = "jmi" if name == "mrmr" else "mrmr"
    # a number would take the place of the rule that such a recipe is about
    asked = ("", "") if _has_rule(one) else (" --features 10", ", n_features_to_select=10")
    sentences = {word: said for kinds in known.groups.values() for word, said in kinds.items()}
    facts = {
        "question": known.questions[one["question"]],
        "what": " ".join(filter(None, [one["summary"], one["about"]])),
        "formula": "\n".join(one["formulas"]),
        "criterion": f"{criterion}: {sentences[criterion]}" if criterion in sentences else "",
        "target": one["target"].replace("any", "classification or regression"),
        "reads": one["reads"],
        "cost": _spoken_cost(one["seconds"]),
        "reference": one["reference"],
        "options": one["options"],
        "expression": one["expression"],
        "command": f"tamis select data.csv --target y {name}{asked[0]}",
        "compare": f"tamis compare data.csv --target y {name} {other}",
        "Python": f'tamis.select(X, y, "{name}"{asked[1]})',
    }
    _print_facts(name, facts)


def _has_rule(one: dict[str, Any]) -> bool:
    """Whether the recipe itself says how many columns it keeps, and not by a number."""
    return not re.search(r"n_features_to_select=[\d.]", one["options"])


def _spoken_cost(seconds: Sequence[float | None]) -> str:
    tables = ("1000 rows x 100 columns", "100 x 10 000")
    known = [f"{table}: {_spoken(s)}" for table, s in zip(tables, seconds, strict=True) if s]
    return f"about {', '.join(known)} (one core, 10 kept)" if known else "not known beforehand"


def _spoken(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _print_class(name: str, known: Listing) -> None:
    """One word of the expressions in full."""
    from tamis import spec
    from tamis.cli.describing import (
        formulas_of,
        paragraphs,
        plain_words,
        reads_of_class,
        reference_of,
        targets_of_class,
    )

    (kind,) = (kinds[name] for kinds in spec.catalogue().values() if name in kinds)
    parameters = [
        one if parameter.default is parameter.empty else f"{one}={_shown(parameter.default)}"
        for one, parameter in signature(kind).parameters.items()
    ]
    used = [line["name"] for line in known.recipes if f"{name}(" in line["expression"]]
    facts = {
        "what": plain_words(paragraphs(kind)),
        "formula": "\n".join(formulas_of(kind)),
        "call": f"{name}({', '.join(parameters)})",
        "target": targets_of_class(kind),
        "reads": reads_of_class(kind),
        "reference": reference_of(kind),
        "recipes": ", ".join(used),
    }
    _print_facts(name, facts)


def _print_facts(title: str, facts: dict[str, str]) -> None:
    """Facts that are there, each under its name; lines to copy are not broken."""
    console = stdout()
    console.print(text(title, style="bold"))
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        if not fact:
            continue
        lines = [_wrapped(line, console.width - width) for line in fact.split("\n")]
        first, *rest = "\n".join(lines).split("\n")
        console.print(text(f"{name:<{width}}", style="dim"), text(first), sep="", soft_wrap=True)
        for line in rest:
            console.print(text(" " * width + line), soft_wrap=True)


def _wrapped(line: str, width: int) -> str:
    if line.startswith("tamis"):
        return line
    return fill(harmless(line), max(width, 30), break_on_hyphens=False)


def _shown(value: Any) -> str:
    from tamis.spec import write

    return write(value, strict=False)


if __name__ == "__main__":
    made = json.dumps(gathered()._asdict(), indent=1, ensure_ascii=False)
    INDEX.write_text(made + "\n", encoding="utf-8")

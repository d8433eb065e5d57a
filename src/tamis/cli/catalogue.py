"""Descriptions of all methods, and the index file that ``tamis methods`` reads.

The index exists because describing all methods imports every criterion and recipe, which takes two
seconds. ``python -m tamis.cli.catalogue`` writes it, and a test fails if it is out of date.
"""

import json
import re
import textwrap
from inspect import getdoc, signature
from typing import Any

from tamis import recipes, spec
from tamis.cli.methods import INDEX, Listing
from tamis.contract import Embedded
from tamis.contract.criterion import Criterion
from tamis.criteria import CrossValidated, Divergence, Scatter
from tamis.meta.search_repeats import Rounds
from tamis.recipes.book import Recipe, last_search

#: Questions that methods answer, in the order in which they are listed.
QUESTIONS = {
    "alone": "Which columns are informative on their own?",
    "beside": "Which columns are informative given the others?",
    "together": "Which columns are best together?",
    "svm": "What does an SVM lose without a column?",
    "trees": "What do trees lose without a column?",
    "model": "What does a linear model or a network lose without a column?",
    "gates": "Which columns does a network choose as it learns?",
    "unsupervised": "Which columns represent the others, without a target?",
}
#: Headings for the groups of classes.
GROUPS = {
    "auto": "Automatic selection (runs if no method is named)",
    "choices": "How many columns? (n_features_to_select=, --features)",
    "around a search": "How many columns, and which can be trusted? (around a method)",
    "criteria": "Parts of expressions: criteria",
    "searches": "Parts of expressions: searches, around a criterion",
    "embedded": "Parts of expressions: models that select columns themselves",
}


def list_methods() -> Listing:
    """Return the descriptions of all methods."""
    catalogue = spec.catalogue()
    groups = {group: catalogue[group] for group in (*GROUPS, *catalogue) if group in catalogue}
    classes = {name: kind for kinds in catalogue.values() for name, kind in kinds.items()}
    return Listing(
        [describe_recipe(one) for one in recipes.find("")],
        {
            group: {name: _plain_text(_paragraphs(kind)[:1]) for name, kind in kinds.items()}
            for group, kinds in groups.items()
        },
        dict(QUESTIONS),
        {group: GROUPS.get(group, group) for group in groups},
        sorted(name for name, kind in classes.items() if _takes_blocks(kind)),
    )


def describe_recipe(recipe: Recipe) -> dict[str, Any]:
    """Return the description of a recipe as a dictionary."""
    made = recipe.make()
    options = [f"{name}={spec.write(v, strict=False)}" for name, v in recipe.parameters.items()]
    return {
        "name": recipe.name,
        "summary": recipe.summary,
        "target": "any" if len(recipe.targets) > 1 else min(recipe.targets),
        "reference": recipe.reference,
        "question": question_of(made),
        "about": _plain_text(_paragraphs(recipe.make)[1:]),
        "criterion": type(_criterion_of(made)).__name__,
        "expression": recipe.expression,
        "options": ", ".join(options),
        "reads": reads_of(made),
        "blocks": bool(getattr(made, "takes_blocks", False)),
    }


def _criterion_of(selector: Any) -> Any:
    """Return the criterion inside all wrappers, or the embedded model."""
    found = last_search(selector)
    while hasattr(found, "criterion"):
        found = found.criterion
    return found


def question_of(selector: Any) -> str:
    """Return the question that a selector answers, as a key of :data:`QUESTIONS`."""
    if isinstance(selector, Rounds):
        return question_of(selector.search)
    search = last_search(selector)
    criterion = _criterion_of(search)
    if isinstance(criterion, Scatter | Divergence | CrossValidated):
        return "together"
    if hasattr(criterion, "estimator"):
        name = type(criterion.estimator).__name__
        kinds = {"SV[CR]": "svm", "Forest|Boost|Tree|LGBM|XGB": "trees"}
        return next((kind for known, kind in kinds.items() if re.search(known, name)), "model")
    if not criterion.needs_target:
        return "unsupervised"
    if isinstance(search, Embedded):
        return "gates"
    return "alone" if search.scores_alone else "beside"


def reads_of(selector: Any) -> str:
    """Describe the kinds of values that a selector's table may contain."""
    tags = selector.__sklearn_tags__().input_tags
    reads = {
        "missing values": bool(tags.allow_nan),
        "categories": bool(getattr(selector, "takes_categories", False)),
        "sparse": bool(tags.sparse),
        "row blocks": bool(getattr(selector, "takes_blocks", False)),
    }
    direct = ", ".join(["numbers", *(word for word, here in reads.items() if here)])
    encoded = [word for word in ("missing values", "categories") if not reads[word]]
    return f"{direct}; {' and '.join(encoded)} of a frame are encoded" if encoded else direct


def _paragraphs(thing: Any) -> list[str]:
    """Return the paragraphs of a docstring before its first section."""
    doc = re.split(r"\n\w[\w ]*\n-{3,}\n", getdoc(thing) or "")[0]
    return [part for part in doc.strip().split("\n\n") if part.strip()]


def _plain_text(parts: list[str]) -> str:
    """Return paragraphs as plain text, without markup and formulas."""
    kept = [part for part in parts if not part.lstrip().startswith(".. ")]
    text = " ".join(" ".join(textwrap.dedent(part).split()) for part in kept)
    # join a sentence that continues after a formula
    text = re.sub(r"[.,:] (?=(where|with|of|and|which) )", ", ", text)
    text = re.sub(r":math:`([^`]*)`", r"\1", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")


def _takes_blocks(kind: type) -> bool:
    """Return whether a criterion supports row blocks, at least for some parameters.

    >>> _takes_blocks(Scatter), _takes_blocks(CrossValidated), _takes_blocks(Embedded)
    (True, True, False)
    """
    return issubclass(kind, Criterion) and bool(kind.takes_blocks)


def describe_class(kind: type, known: Listing) -> dict[str, str]:
    """Return the description of a class that expressions may use."""
    name, target, reads = kind.__name__, "", ""
    parameters = [
        one
        if parameter.default is parameter.empty
        else f"{one}={spec.write(parameter.default, strict=False)}"
        for one, parameter in signature(kind).parameters.items()
    ]
    if issubclass(kind, Criterion):
        targets = getattr(kind, "targets", None)
        target = " or ".join(sorted(targets)) if isinstance(targets, frozenset) else ""
        words = {"missing": "missing values", "categories": "categories", "sparse": "sparse"}
        has = {word: getattr(kind, f"takes_{key}", False) for key, word in words.items()}
        found = ["numbers", *(word for word, fact in has.items() if fact)]
        if not all(isinstance(fact, bool) for fact in has.values()):  # depends on parameters
            found = ["as its estimator"]
        reads = ", ".join([*found, *["row blocks"] * _takes_blocks(kind)])
    reference = re.search(r"\nReferences\n-+\n(.*?)(?=\n\n|\Z)", getdoc(kind) or "", re.DOTALL)
    used = [line["name"] for line in known.recipes if f"{name}(" in line["expression"]]
    return {
        "what": _plain_text(_paragraphs(kind)),
        "call": f"{name}({', '.join(parameters)})",
        "target": target,
        "reads": reads,
        "reference": "" if reference is None else " ".join(reference[1].split()),
        "recipes": ", ".join(used),
    }


if __name__ == "__main__":
    made = json.dumps(list_methods()._asdict(), indent=1, ensure_ascii=False)
    INDEX.write_text(made + "\n", encoding="utf-8")

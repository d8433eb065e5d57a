"""What is known of a method: the question it answers, its formula, what it reads, what it costs."""

import re
import textwrap
from inspect import getdoc
from math import isnan
from typing import Any, NamedTuple

from tamis.choice.inner_search import walk_cost
from tamis.choice.search_rounds import Rounds
from tamis.cli.formulas import formulas
from tamis.contract import Criterion, Embedded
from tamis.criteria import CrossValidated, Divergence, Scatter
from tamis.recipes.book import Recipe, last_search
from tamis.spec import write

#: The questions, as people ask them, in the order in which they are listed.
QUESTIONS = {
    "alone": "Which columns tell something, each by itself?",
    "beside": "Which columns tell something beside the others?",
    "together": "Which columns are best together?",
    "svm": "What does a support vector machine lose without a column?",
    "trees": "What do trees lose without a column?",
    "model": "What does a linear model or a network lose without a column?",
    "gates": "Which columns does a network choose as it learns?",
    "unsupervised": "Which columns stand for the others, without a target?",
}
#: Groups of classes, as questions.
GROUPS = {
    "auto": "Which method? (what is run where none is named)",
    "choices": "How many columns? (behind n_features_to_select=, --features)",
    "around a search": "How many, and which can be trusted? (around a method)",
    "criteria": "Parts of expressions: criteria",
    "searches": "Parts of expressions: searches, around a criterion",
    "embedded": "Parts of expressions: models that choose by themselves",
}
#: Tables for which the cost is told: rows and columns, a long one and a wide one.
TABLES = ((1_000, 100), (100, 10_000))
#: Columns that are kept in those.
KEPT = 10


class Described(NamedTuple):
    """What the list and the detailed view say of a recipe.

    Attributes
    ----------
    name, summary, target, reference : str
    question : str
        A key of :data:`QUESTIONS`.
    about : str
        What its description says beyond the summary.
    criterion : str
        The class that scores the columns.
    formulas : list of str
        Of its criterion.
    expression : str
        What it stands for.
    options : str
    reads : str
        What a table may hold.
    blocks : bool
        Whether it selects from blocks of rows, of a table larger than memory.
    seconds : list of float or None
        About what it takes on each of :data:`TABLES`, on one core; None where nobody can say.
    """

    name: str
    summary: str
    target: str
    reference: str
    question: str
    about: str
    criterion: str
    formulas: list[str]
    expression: str
    options: str
    reads: str
    blocks: bool
    seconds: list[float | None]


def described(recipe: Recipe) -> Described:
    """All that is known of a recipe."""
    made = recipe.make()
    options = ", ".join(
        f"{name}={write(value, strict=False)}" for name, value in recipe.parameters.items()
    )
    return Described(
        recipe.name,
        recipe.summary,
        "any" if len(recipe.targets) > 1 else min(recipe.targets),
        recipe.reference,
        question_of(made),
        plain_words(paragraphs(recipe.make)[1:]),
        type(criterion_of(made)).__name__,
        formulas_of(type(criterion_of(made))),
        recipe.expression,
        options,
        reads_of(made),
        bool(getattr(made, "takes_parts", False)),
        [seconds_of(made, *shape) for shape in TABLES],
    )


def criterion_of(selector: Any) -> Any:
    """What scores the columns: the criterion, looked for behind wrappers; or the model itself."""
    found = last_search(selector)
    while hasattr(found, "criterion"):
        found = found.criterion
    return found


def question_of(selector: Any) -> str:
    """The question that a selector answers, as a key of :data:`QUESTIONS`."""
    if isinstance(selector, Rounds):  # asked again and again, it is the question of its search
        return question_of(selector.search)
    search = last_search(selector)
    criterion = criterion_of(search)
    if isinstance(criterion, Scatter | Divergence | CrossValidated):
        return "together"
    if hasattr(criterion, "estimator"):
        return _kind_of_model(criterion.estimator)
    if not criterion.needs_target:
        return "unsupervised"
    if isinstance(search, Embedded):
        return "gates"
    return "alone" if search.scores_alone else "beside"


def _kind_of_model(estimator: Any) -> str:
    name = type(estimator).__name__
    if re.search(r"SV[CR]", name):
        return "svm"
    return "trees" if re.search("Forest|Boost|Tree|LGBM|XGB", name) else "model"


def reads_of(selector: Any) -> str:
    """What a table may hold, in words."""
    tags = selector.__sklearn_tags__().input_tags
    as_is = {
        "gaps": bool(tags.allow_nan),
        "categories": bool(getattr(selector, "takes_categories", False)),
        "sparse": bool(tags.sparse),
        "row blocks": bool(getattr(selector, "takes_parts", False)),
    }
    words = ", ".join(["numbers", *(word for word, here in as_is.items() if here)])
    encoded = [word for word in ("gaps", "categories") if not as_is[word]]
    return f"{words}; {' and '.join(encoded)} of a frame are encoded" if encoded else words


def seconds_of(selector: Any, n_samples: int, n_features: int) -> float | None:
    """About what a fit takes on one core, in two digits; None where nobody can say."""
    cost = walk_cost(selector, n_samples, n_features, KEPT)
    if cost is None or isnan(cost.operations):
        return None
    return float(f"{cost.operations * 1e-9:.2g}")


def paragraphs(thing: Any) -> list[str]:
    """The description of a class or function up to its sections."""
    text = re.split(r"\n\w[\w ]*\n-{3,}\n", getdoc(thing) or "")[0]
    return [part for part in text.strip().split("\n\n") if part.strip()]


def plain_words(parts: list[str]) -> str:
    """Paragraphs without markup; formulas are left out, which are shown by themselves."""
    kept = [part for part in parts if not part.lstrip().startswith(".. ")]
    text = " ".join(" ".join(textwrap.dedent(part).split()) for part in kept)
    text = re.sub(r"[.,:] (?=(where|with|of|and|which) )", ", ", text)  # what went on after one
    text = re.sub(r":math:`([^`]*)`", r"\1", text)
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")


def first_sentence(kind: Any) -> str:
    """The first paragraph of a class's description."""
    return plain_words(paragraphs(kind)[:1])


def formulas_of(kind: type) -> list[str]:
    """The formulas of a class's description."""
    return formulas(getdoc(kind) or "")


def reference_of(kind: Any) -> str:
    """The first reference of a class's description."""
    found = re.search(r"\nReferences\n-+\n(.*?)(?=\n\n|\Z)", getdoc(kind) or "", re.DOTALL)
    return "" if found is None else " ".join(found[1].split())


def targets_of_class(kind: type) -> str:
    """Kinds of target that a criterion takes, where the class alone can say."""
    if not issubclass(kind, Criterion):
        return ""
    targets = getattr(kind, "targets", None)
    return " or ".join(sorted(targets)) if isinstance(targets, frozenset) else ""


def reads_of_class(kind: type) -> str:
    """What a criterion reads, where the class alone can say."""
    if not issubclass(kind, Criterion):
        return ""
    words = {"takes_missing": "gaps", "takes_categories": "categories", "takes_sparse": "sparse"}
    facts = {word: getattr(kind, name, False) for name, word in words.items()}
    blocks = blocks_of_class(kind)
    if not all(isinstance(fact, bool) for fact in facts.values()):
        return f"what its estimator reads{', row blocks with some' * blocks}"
    found = ["numbers", *(word for word, fact in facts.items() if fact)]
    return ", ".join([*found, *["row blocks"] * blocks])


def blocks_of_class(kind: type) -> bool:
    """Whether a criterion learns from blocks of rows, with some parameters at least.

    >>> blocks_of_class(Scatter), blocks_of_class(CrossValidated), blocks_of_class(Embedded)
    (True, True, False)
    """
    return issubclass(kind, Criterion) and bool(kind.takes_parts)

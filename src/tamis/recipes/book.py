"""The book of recipes: what a recipe is, and how to find one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, Signature, signature
from typing import Any

from tamis.contract import Selection
from tamis.contract.criterion import TASKS
from tamis.exceptions import InvalidSpec
from tamis.meta.fusion import Fusion
from tamis.meta.search_repeats import Rounds
from tamis.search import RecursiveElimination, Then
from tamis.spec import catalogue, did_you_mean, write
from tamis.spec.plugins import find_plugins, load_plugins
from tamis.table import TableSelector

Make = Callable[..., Selection]
#: Parameters of every selection that a composition hands to both of its parts.
UNITS = ("feature_groups", "fixed_features")


@dataclass(frozen=True)
class Recipe:
    """A method of the literature.

    Attributes
    ----------
    name : str
        Lower case, with hyphens.
    summary : str
        What it does, in one line.
    reference : str
        Who described it.
    make : callable
        Function of the options that returns the selector.
    """

    name: str
    summary: str
    reference: str
    make: Make

    @cached_property
    def targets(self) -> frozenset[str]:
        """Kinds of target it can use: "classification", "regression" or both."""
        return targets_of(self.make())

    @property
    def expression(self) -> str:
        """The selector it makes without options, as an expression."""
        return write(self.make())

    @property
    def parameters(self) -> dict[str, Any]:
        """Options and their defaults: those of the recipe, then those of its search."""
        own = signature(self.make).parameters.values()
        held = last_search(self.make()).get_params(deep=False)
        held.pop("criterion", None)
        return {p.name: p.default for p in own if p.kind is not Parameter.VAR_KEYWORD} | held

    def as_function(self) -> Make:
        """Return the recipe as a function whose signature names all options."""

        def make(**params: Any) -> Selection:
            return self(**params)

        options = self.parameters.items()
        named = [Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in options]
        make.__signature__ = Signature(named)  # type: ignore[attr-defined]
        return make

    def __call__(self, **params: Any) -> Selection:
        known = self.parameters
        for name in params:
            if name not in known:
                raise InvalidSpec(
                    f"{self.name} has no option {name!r}.{did_you_mean(name, known)} Its options "
                    f"are {', '.join(known)}."
                )
        units = {name: params.pop(name) for name in UNITS if name in params}
        return self.make(**params).set_params(**units)


#: Recipes of tamis by name; :func:`register` writes them in.
BOOK: dict[str, Recipe] = {}


def all_recipes() -> dict[str, Recipe]:
    """Return all recipes by name, those of other installed packages included."""
    for name, make in load_plugins(recipes=True).items():
        if name not in BOOK:
            package = find_plugins()[name].dist
            _write_in(name, make, f"package {package.name}" if package else "")
    return BOOK


def register(reference: str) -> Callable[[Make], Make]:
    """Register a function as the recipe of its name."""

    def write_in(make: Make) -> Make:
        _write_in(make.__name__.replace("_", "-"), make, reference)
        return make

    return write_in


def _write_in(name: str, make: Make, reference: str) -> None:
    summary = (make.__doc__ or name).strip().splitlines()[0]
    BOOK[name] = Recipe(name, summary, reference, make)


def eliminate(criterion: Any, options: dict[str, Any], step: float = 1) -> RecursiveElimination:
    """Return recursive elimination by a criterion, in steps of this size by default."""
    return RecursiveElimination(criterion, **{"step": step} | options)


def last_search(selector: Selection) -> Selection:
    """Return the search that decides in the end."""
    if isinstance(selector, TableSelector):
        return last_search(selector.search)
    return last_search(selector.second) if isinstance(selector, Then) else selector


def targets_of(selector: Any) -> frozenset[str]:
    """Return the kinds of target that every criterion inside can use."""
    if isinstance(selector, TableSelector | Rounds):
        return targets_of(selector.search)
    if isinstance(selector, Then):
        return targets_of(selector.first) & targets_of(selector.second)
    if isinstance(selector, Fusion):
        return frozenset.intersection(*map(targets_of, selector.searches))
    # an embedded selector is its own criterion
    return frozenset(getattr(getattr(selector, "criterion", selector), "targets", TASKS))


def names() -> list[str]:
    """Names of all recipes, in alphabetical order.

    >>> from tamis.recipes import names
    >>> "svm-rfe" in names()
    True
    """
    return sorted(all_recipes())


def find(words: str = "") -> list[Recipe]:
    """Recipes whose name, summary or reference holds all the words.

    Parameters
    ----------
    words : str, default=""
        With spaces between them; none are all recipes.

    Examples
    --------
    >>> from tamis.recipes import find
    >>> [recipe.name for recipe in find("floating divergence")]
    ['divergence-sffs']
    """
    asked = words.lower().split()

    def text(recipe: Recipe) -> str:
        return f"{recipe.name} {recipe.summary} {recipe.reference}".lower()

    return [BOOK[name] for name in names() if all(w in text(BOOK[name]) for w in asked)]


def recipe(name: str, **params: Any) -> Selection:
    """Selector of a method of the literature.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    **params
        Options of the recipe, and of the search that it returns.

    Examples
    --------
    >>> import tamis.recipes
    >>> tamis.recipes.recipe("sffs-j3", n_features_to_select=5)
    FloatingForward(criterion=Scatter(ridge=0.001), n_features_to_select=5)
    """
    if name not in BOOK and name not in all_recipes():
        raise unknown(name)
    return BOOK[name](**params)


def class_names() -> list[str]:
    """Names of the criteria, searches and choices."""
    return [name for group in catalogue().values() for name in group]


def unknown(name: str) -> InvalidSpec:
    """The error for a name that no recipe has."""
    near = did_you_mean(str(name), [*names(), *class_names()])
    return InvalidSpec(
        f"No method is called {name!r}.{near} Write the name of a recipe (`tamis methods` lists "
        f'them, and tamis.recipes.names()) or an expression such as Forward(Scatter("J3")).'
    )

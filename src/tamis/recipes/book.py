"""The recipes: their definition, registration and lookup."""

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
#: Parameters that a composition of two searches passes to both of them.
UNITS = ("feature_groups", "fixed_features", "feature_costs")


@dataclass(frozen=True)
class Recipe:
    """A method of the literature.

    Attributes
    ----------
    name : str
        Name in lower case, with hyphens.
    summary : str
        Description in one line.
    reference : str
        The publication that describes the method.
    make : callable
        Function that returns the selector, given options.

    Examples
    --------
    >>> from tamis.recipes import find
    >>> recipe = find("fisher-score")[0]
    >>> recipe.expression
    'Ranking(FisherScore())'
    >>> recipe(n_features_to_select=2)
    Ranking(criterion=FisherScore(), n_features_to_select=2)
    """

    name: str
    summary: str
    reference: str
    make: Make

    @cached_property
    def targets(self) -> frozenset[str]:
        """Kinds of target that the method supports, such as "classification"."""
        return targets_of(self.make())

    @property
    def expression(self) -> str:
        """Expression that builds the selector without options."""
        return write(self.make())

    @property
    def parameters(self) -> dict[str, Any]:
        """Options of the recipe and of its search, with their defaults."""
        own = signature(self.make).parameters.values()
        of_search = last_search(self.make()).get_params(deep=False)
        of_search.pop("criterion", None)
        return {p.name: p.default for p in own if p.kind is not Parameter.VAR_KEYWORD} | of_search

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


#: All registered recipes by name. :func:`register` adds them.
BOOK: dict[str, Recipe] = {}


def all_recipes() -> dict[str, Recipe]:
    """Return all recipes by name, including those of other installed packages."""
    for name, make in load_plugins(recipes=True).items():
        if name not in BOOK:
            package = find_plugins()[name].dist
            _add(name, make, f"package {package.name}" if package else "")
    return BOOK


def register(reference: str) -> Callable[[Make], Make]:
    """Return a decorator that registers a function as a recipe, named after the function."""

    def decorate(make: Make) -> Make:
        _add(make.__name__.replace("_", "-"), make, reference)
        return make

    return decorate


def _add(name: str, make: Make, reference: str) -> None:
    summary = (make.__doc__ or name).strip().splitlines()[0]
    BOOK[name] = Recipe(name, summary, reference, make)


def eliminate(criterion: Any, options: dict[str, Any], step: float = 1) -> RecursiveElimination:
    """Return recursive elimination with the given criterion. Options may override ``step``."""
    return RecursiveElimination(criterion, **{"step": step} | options)


def last_search(selector: Selection) -> Selection:
    """Return the last search of a composition, which makes the final selection."""
    if isinstance(selector, TableSelector):
        return last_search(selector.search)
    return last_search(selector.second) if isinstance(selector, Then) else selector


def targets_of(selector: Any) -> frozenset[str]:
    """Return the kinds of target that all criteria of a selector support."""
    if isinstance(selector, TableSelector | Rounds):
        return targets_of(selector.search)
    if isinstance(selector, Then):
        return targets_of(selector.first) & targets_of(selector.second)
    if isinstance(selector, Fusion):
        searches = selector.searches if isinstance(selector.searches, list | tuple) else ()
        return frozenset(TASKS).intersection(*map(targets_of, searches))
    # an embedded selector acts as its own criterion
    return frozenset(getattr(getattr(selector, "criterion", selector), "targets", TASKS))


def names() -> list[str]:
    """Return the names of all recipes in alphabetical order.

    >>> from tamis.recipes import names
    >>> "svm-rfe" in names()
    True
    """
    return sorted(all_recipes())


def find(words: str = "") -> list[Recipe]:
    """Return the recipes whose name, summary or reference contains all of the given words.

    Parameters
    ----------
    words : str, default=""
        Words separated by spaces. An empty string finds all recipes.

    Examples
    --------
    >>> from tamis.recipes import find
    >>> [recipe.name for recipe in find("floating divergence")]
    ['divergence-parzen-sffs', 'divergence-sffs']
    """
    asked = words.lower().split()

    def text(recipe: Recipe) -> str:
        return f"{recipe.name} {recipe.summary} {recipe.reference}".lower()

    return [BOOK[name] for name in names() if all(w in text(BOOK[name]) for w in asked)]


def recipe(name: str, **params: Any) -> Selection:
    """Return the selector of a recipe, not yet fitted.

    Parameters
    ----------
    name : str
        A name in :func:`names`.
    **params
        Options of the recipe and of its search.

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
    """Return the class names of all criteria, searches and choices."""
    return [name for group in catalogue().values() for name in group]


def unknown(name: str) -> InvalidSpec:
    """Return the error to raise for an unknown name."""
    near = did_you_mean(str(name), [*names(), *class_names()])
    return InvalidSpec(
        f"No method is called {name!r}.{near} Write the name of a recipe (`tamis methods` or "
        f'tamis.recipes.names() lists them) or an expression such as Forward(Scatter("J3")).'
    )

"""Parts provided by other installed packages, found by their entry points.

A package lists its criteria, searches, choices, estimators and recipes in ``pyproject.toml``::

    [project.entry-points."tamis.parts"]
    Skewness = "package.criteria:Skewness"
    skewness-filter = "package.recipes:skewness_filter"

A capitalised name is a class that expressions may call. Any other name is a recipe: a function
that takes options and returns a selector. A part is imported only when its name is used or listed.
Names of tamis and scikit-learn take precedence.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from warnings import warn

from tamis.exceptions import InvalidSpec

#: Name of the entry-point group.
GROUP = "tamis.parts"


@cache
def find_plugins() -> dict[str, EntryPoint]:
    """Return the entry points in this group of all installed packages, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load_plugin(name: str) -> Any:
    """Import and return what another package provides under this name, or None."""
    point = find_plugins().get(name)
    try:
        return None if point is None else point.load()
    except Exception as error:  # an import can raise any kind of error
        package = point.dist.name if point and point.dist else "its package"
        raise InvalidSpec(
            f"{name} of {package} cannot be imported: {error}. Update or uninstall {package}."
        ) from error


def load_plugins(*, recipes: bool) -> dict[str, Any]:
    """Import all recipes, or all classes, of other packages. Warn about each import that fails."""
    found: dict[str, Any] = {}
    for name in find_plugins():
        if name[0].isupper() != recipes:
            try:
                found[name] = load_plugin(name)
            except InvalidSpec as error:
                warn(str(error), stacklevel=2)
    return found

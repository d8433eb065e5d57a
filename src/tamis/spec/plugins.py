"""Parts of other installed packages, found by their entry points.

A package lists its criteria, searches, choices, estimators and recipes in ``pyproject.toml``::

    [project.entry-points."tamis.parts"]
    Skewness = "package.criteria:Skewness"
    skewness-filter = "package.recipes:skewness_filter"

A name with a capital is a class, which expressions may then call. Any other name is a recipe: a
function of options that returns a selector. A part is imported when its name is used or listed, and
a name of tamis or scikit-learn takes precedence over it.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from warnings import warn

from tamis.exceptions import InvalidSpec

#: Group of the entry points.
GROUP = "tamis.parts"


@cache
def find_plugins() -> dict[str, EntryPoint]:
    """Return the entry points of all installed packages by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


def load_plugin(name: str) -> Any:
    """Import a part of another package; None if no package has one of this name."""
    point = find_plugins().get(name)
    try:
        return None if point is None else point.load()
    except Exception as error:  # packages fail in their own ways
        package = point.dist.name if point and point.dist else "its package"
        raise InvalidSpec(
            f"{name} of {package} cannot be imported: {error}. Update or uninstall {package}."
        ) from error


def load_plugins(*, recipes: bool) -> dict[str, Any]:
    """Import the recipes of other packages, or their classes; warn about those that fail."""
    found: dict[str, Any] = {}
    for name in find_plugins():
        if name[0].isupper() != recipes:
            try:
                found[name] = load_plugin(name)
            except InvalidSpec as error:
                warn(str(error), stacklevel=2)
    return found

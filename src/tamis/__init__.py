"""tamis selects features and finds provably best SVM hyper-parameters.

A **criterion** scores features, a **search** explores subsets, and a **choice** determines which
subset is selected. Any criterion works with any search that can use it::

    from tamis.criteria import Scatter
    from tamis.search import FloatingForward

    FloatingForward(Scatter("J3"), n_features_to_select=5).fit(X, y).get_feature_names_out()

Methods from the literature have names: ``tamis.recipe("svm-rfe")`` returns the selector, and
``tamis.select(X, y, "svm-rfe")`` selects columns in one line.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tamis._lazy import register
from tamis._version import __version__

if TYPE_CHECKING:
    from tamis.contract.costs import FeatureCosts
    from tamis.recipes import recipe, select
    from tamis.table import inspect, read

__all__ = ["FeatureCosts", "__version__", "inspect", "read", "recipe", "select"]

_HOMES = {
    "FeatureCosts": "tamis.contract.costs",
    "inspect": "tamis.table",
    "read": "tamis.table",
    "recipe": "tamis.recipes",
    "select": "tamis.recipes",
}

register("report", lambda: import_module("tamis.report").report)
register("to_pipeline", lambda: import_module("tamis.table.selector").to_pipeline)
register("substitutes", lambda: import_module("tamis.meta.substitutes").substitutes)


def __getattr__(name: str) -> Any:
    """Load a public name, or a subpackage such as ``tamis.recipes``, when it is first used.

    Importing scikit-learn takes over a second. ``tamis --help`` and programs that only use
    ``tamis.exceptions`` do not need scikit-learn.
    """
    if name in _HOMES:
        value: Any = getattr(import_module(_HOMES[name]), name)
    elif not name.startswith("_") and find_spec(f"tamis.{name}") is not None:
        return import_module(f"tamis.{name}")  # the import binds the name
    else:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""tamis finds the features that matter and the hyper-parameters that are provably best.

A **criterion** says how good features are, a **search** explores subsets, a **choice** says which
subset of the trace is kept; any criterion works with any search that can use it::

    from tamis.criteria import Scatter
    from tamis.search import FloatingForward

    FloatingForward(Scatter("J3"), n_features_to_select=5).fit(X, y).get_feature_names_out()

The methods of the literature are there by name: ``tamis.recipe("svm-rfe")``, all in one line:
``tamis.select(X, y, "svm-rfe")``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tamis._lazy import register
from tamis._version import __version__

if TYPE_CHECKING:
    from tamis.recipes import recipe, select
    from tamis.table import inspect, read

__all__ = ["__version__", "inspect", "read", "recipe", "select"]

_HOMES = {
    "inspect": "tamis.table",
    "read": "tamis.table",
    "recipe": "tamis.recipes",
    "select": "tamis.recipes",
}

register("report", lambda: import_module("tamis.report").report)
register("substitutes", lambda: import_module("tamis.meta.substitutes").substitutes)


def __getattr__(name: str) -> Any:
    """Load a public name, or a subpackage such as ``tamis.recipes``, where it is first used.

    scikit-learn and what it imports take over a second of processor time, which
    ``tamis --help`` and a program that only catches ``tamis.exceptions`` need not pay.
    """
    if name in _HOMES:
        value: Any = getattr(import_module(_HOMES[name]), name)
    elif not name.startswith("_") and find_spec(f"tamis.{name}") is not None:
        return import_module(f"tamis.{name}")  # which binds the name itself
    else:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

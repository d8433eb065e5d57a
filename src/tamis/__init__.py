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
from typing import Any

from tamis._lazy import lazy_names, register
from tamis._version import __version__  # noqa: F401 (read by the build and by users)

_load, __dir__, __all__ = lazy_names(__name__, __file__)

register("report", lambda: import_module("tamis.report").report)
register("to_pipeline", lambda: import_module("tamis.table.selector").to_pipeline)
register("substitutes", lambda: import_module("tamis.meta.substitutes").substitutes)


def __getattr__(name: str) -> Any:
    """Load a public name, or a subpackage such as ``tamis.recipes``, when it is first used.

    Importing scikit-learn takes over a second. ``tamis --help`` and programs that only use
    ``tamis.exceptions`` do not need scikit-learn.
    """
    is_package = name not in __all__ and not name.startswith("_")
    if is_package and find_spec(f"tamis.{name}") is not None:
        return import_module(f"tamis.{name}")  # the import binds the name
    return _load(name)

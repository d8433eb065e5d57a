"""Charts of selections and experiments, as altair charts.

Each function returns a chart without title in light colours: show it in a notebook, or write it as
SVG, PNG or PDF by ``chart.save("curve.svg")``. Needs the extra ``app``. The charts themselves are
in :mod:`tamis.report.charts`.
"""

from importlib import import_module
from typing import Any

from tamis._book import load_from_book

_HOMES = {
    "classes": "class_means",
    "comparison": "methods",
    "curve": "curves",
    "interactions": "interactions",
    "path": "search_path",
    "rank_agreement": "methods",
    "ranking": "columns",
    "redundancy": "columns",
    "stability": "stability",
    "tuning": "validation_curve",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a chart when it is first used."""
    if name == "published":
        return load_from_book(name)
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis.plot' has no attribute {name!r}")
    return getattr(import_module(f"tamis.report.charts.{_HOMES[name]}"), name)

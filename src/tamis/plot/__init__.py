"""Charts of selections and experiments, as altair charts.

Each function returns a chart without title in light colours: show it in a notebook, or write it as
SVG, PNG or PDF by ``chart.save("curve.svg")``. Needs the extra ``app``. The charts themselves are
in :mod:`tamis.report.charts`.
"""

from typing import Any

from tamis._book import load_from_book
from tamis._lazy import lazy_names

_load, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used; some are in the book."""
    return load_from_book(name) if name == "published" else _load(name)

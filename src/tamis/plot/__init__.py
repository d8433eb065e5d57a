"""Charts of selections and experiments, as altair charts.

Each function returns a chart without a title, to be shown in a notebook or saved as SVG, PNG or PDF
with ``chart.save("curve.svg")``. Needs the extra ``app``. The code of the charts is in
:mod:`tamis.report.charts`.
"""

from typing import Any

from tamis._book import load_from_book
from tamis._lazy import lazy_names

_load, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used; some are in the book."""
    return load_from_book(name) if name == "published" else _load(name)

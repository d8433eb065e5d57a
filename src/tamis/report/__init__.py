"""HTML reports of selections and comparisons.

:func:`report` collects the facts about a fitted selection, and ``report(...).save("report.html")``
writes them as a single file that works without network, server or JavaScript. Needs the extra
``app``.
"""

from typing import Any

from tamis._book import load_from_book
from tamis._lazy import lazy_names

_load, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used. Some names are in the package ``tamis_book``."""
    return load_from_book(name) if name in ("ReproductionReport", "reproduced") else _load(name)

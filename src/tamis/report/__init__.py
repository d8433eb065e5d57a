"""One page of the selected columns, the reasons for them, and their estimated error.

:func:`report` gathers the facts of a fitted selection; ``report(...).save("report.html")`` writes
one file that works without network, server or JavaScript. Needs the extra ``app``.
"""

from importlib import import_module
from typing import Any

from tamis._book import load_from_book

_HOMES = {
    "ComparisonReport": "comparison",
    "MeasuredTable": "comparison",
    "Report": "selection",
    "compared": "comparison",
    "report": "selection",
    "resampled": "estimates",
    "write_report": "page",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: a page needs more than a plain selection."""
    if name in ("ReproductionReport", "reproduced"):
        return load_from_book(name)
    if name not in _HOMES:
        raise AttributeError(f"module 'tamis.report' has no attribute {name!r}")
    return getattr(import_module(f"tamis.report.{_HOMES[name]}"), name)

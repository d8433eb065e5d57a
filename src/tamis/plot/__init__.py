"""Pictures of selections and experiments, as altair charts.

Each function returns a chart without title in light colours: show it in a notebook, or write it as
SVG, PNG or PDF by ``chart.save("curve.svg")``. Needs the extra ``app``.
"""

from typing import Any

from tamis._book import load_from_book
from tamis.plot.by_class import classes
from tamis.plot.columns import ranking, redundancy
from tamis.plot.curves import curve
from tamis.plot.kept import stability
from tamis.plot.methods import comparison, rank_agreement
from tamis.plot.pairs import interactions
from tamis.plot.tuned import tuning
from tamis.plot.walks import path

__all__ = [
    "classes",
    "comparison",
    "curve",
    "interactions",
    "path",
    "rank_agreement",
    "ranking",
    "redundancy",
    "stability",
    "tuning",
]


def __getattr__(name: str) -> Any:
    if name == "published":
        return load_from_book(name)
    raise AttributeError(f"module 'tamis.plot' has no attribute {name!r}")
